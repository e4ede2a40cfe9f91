#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# moves.sh - who moves first by `rebalance: {by: queue}`, in simulated pools of uneven GPUs: whom Algorithm 2 of SWARM names, from
# queues that moves.py finds in the recorded passes; and that rates name others. A real run: exec/moves.sh.
set -u
. tests/cli/lib.sh
needs python3 sqlite3

paced_gpu a three-blocks 300
paced_gpu b three-blocks 450
paced_gpu c three-blocks 720
paced_gpu d three-blocks 1200
cat >model.yaml <<'END'
name: three-blocks
kind: transformer
transformer: {hidden: 64, sequence: 64, blocks: 3, vocabulary: 2}
END

pool() { # pool SEED MACHINES STAGES: makes topology.yaml and scenario.yaml
	local machines= gpu
	for gpu in $2; do
		machines="$machines${machines:+, }{count: 1, gpu: $gpu}"
	done
	cat >topology.yaml <<-END
	name: a pool
	source: Assumed for this test.
	directory: here
	sites:
	  here: {machines: [$machines], inside: {bandwidth: 100 Gbit/s, latency: 0.01 ms}}
	END
	cat >scenario.yaml <<-END
	name: a pool of three stages
	seed: $1
	model: {file: model.yaml, stages: 3}
	cluster: {topology: topology.yaml, allocation: {method: explicit, stage_of: [$3]}, compute: {predictor: table, outside: refuse}}
	schedule: {global_batch: 60, microbatch: 1, in_flight: 4, rebalance: {period: 1.7 s}}
	train: {arithmetic: none, optimizer: {name: adamw, lr: 1.0e-4}, until: {steps: 2}}
	END
}

first_move() { # first_move BY: "worker stage" of the first move
	rm -f runs.db
	"$skep" sim -q scenario.yaml --set "schedule.rebalance.by=$1" --db runs.db >"$out" 2>"$err" || cat "$err" >&2
	sqlite3 -separator ' ' runs.db "SELECT peer, stage FROM notes WHERE kind = 'migrated' AND round = 1 ORDER BY rowid LIMIT 1"
}

differ=0
moves() { # moves SEED MACHINES STAGES: the one that the paper's algorithm names
	local rate queue wanted clear
	pool "$1" "$2" "$3"
	rate=$(first_move rate)
	queue=$(first_move queue)
	wanted=$(python3 "$root/tests/cli/moves.py" runs.db 1.7 2>clear)
	clear=$(cat clear)
	[ "$queue" != "$rate" ] && differ=$((differ + 1))
	if [ "$queue" = "$wanted" ] && awk "BEGIN { exit !($clear > 0.002) }" </dev/null; then
		pass "of $2 in stages $3, seed $1: worker and stage $queue, by rate ${rate:-none}"
	else
		fail "of $2 in stages $3, seed $1" "moved: $queue; by hand: $wanted, clear by $clear"
	fi
}

for seed in 1 2 3; do
	moves $seed 'a a b b c c a' '0, 0, 1, 1, 2, 2, 2'
	moves $seed 'a b c a b c d d' '0, 0, 0, 1, 1, 1, 2, 2'
	moves $seed 'a a a a a a' '0, 0, 1, 1, 2, 2'
	moves $seed 'd d a a b b' '0, 0, 1, 1, 2, 2'
	moves $seed 'a b c d a b c d a b' '0, 1, 2, 0, 1, 2, 0, 1, 2, 2'
	moves $seed 'a b a b a b b b' '0, 0, 1, 1, 2, 2, 1, 2'
done
[ $differ -ge 9 ]
check "in $differ of 18 pools rates name another worker, or none" test $? -eq 0

"$skep" check scenario.yaml --set schedule.rebalance.by=queue >"$out" 2>"$err"
check 'the check says what moves go by' grep -q 'the most loaded stage, that with the longest queues' "$out"
"$skep" check scenario.yaml --set schedule.rebalance.by=queue --json >"$out" 2>"$err"
check 'and as JSON' grep -q '"rebalance_by": *"queue"' "$out"

plan
