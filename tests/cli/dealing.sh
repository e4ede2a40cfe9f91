#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# dealing.sh - which first-stage worker gets how many microbatches: equal workers equally many, slow ones none that the others would have
# to wait for, against the shortest schedule there is (dealing.py); and slow and fast GPUs together against each alone.
set -u
. tests/cli/lib.sh
needs python3 sqlite3

paced_gpu fast one-block 300
paced_gpu middle one-block 720
paced_gpu slow one-block 1800
cat >model.yaml <<'END'
name: one-block
kind: transformer
transformer: {hidden: 64, sequence: 64, blocks: 1, vocabulary: 2}
END

pool() { # pool MICROBATCHES STEPS KEYS MACHINES: makes topology.yaml and scenario.yaml
	cat >topology.yaml <<-END
	name: a pool
	source: Assumed for this test.
	directory: here
	sites:
	  here: {machines: [$4], inside: {bandwidth: 100 Gbit/s, latency: 0.1 ms}}
	END
	cat >scenario.yaml <<-END
	name: a pool of one stage
	seed: 1
	model: {file: model.yaml, stages: 1}
	cluster: {topology: topology.yaml, allocation: {method: strided}, compute: {predictor: table, outside: refuse}}
	schedule: {global_batch: $1, microbatch: 1$3}
	train: {arithmetic: none, optimizer: {name: adamw, lr: 1.0e-4}, until: {steps: $2}}
	END
}

simulate() {
	rm -f runs.db
	"$skep" sim -q scenario.yaml --db runs.db >"$out" 2>"$err" || cat "$err" >&2
}

dealt() { # dealt ROUND: how many each worker has done
	sqlite3 runs.db "SELECT group_concat(n, ' ') FROM (SELECT count(*) AS n FROM ops
		WHERE kind = 'backward' AND round = $1 GROUP BY worker ORDER BY worker)"
}

passes_s() { # passes_s ROUND: from the first pass's begin to the last one's end
	sqlite3 runs.db "SELECT printf('%.4f', max(end_s) - min(begin_s)) FROM ops
		WHERE kind IN ('forward', 'backward') AND round = $1"
}

verdict() { # verdict STATUS NAME SEEN
	if [ "$1" -eq 0 ]; then pass "$2"; else fail "$2" "seen: $3"; fi
}

# How many percent of a round's passes lie between what `skep check` expects of a step, STEPS a round, and what was simulated.
expected_off() { # expected_off ROUND STEPS
	"$skep" check scenario.yaml --json 2>"$err" | python3 -c 'import json, sys
print(100 * abs(json.load(sys.stdin)["expected"]["passes_s"] * float(sys.argv[2]) / float(sys.argv[1]) - 1))' "$(passes_s "$1")" "$2"
}

# ---- equal workers ------------------------------------------------------------------------------------------------------

equally() { # equally MICROBATCHES COUNT KEYS WANTED
	pool "$1" 2 "$3" "{count: $2, gpu: fast}"
	simulate
	[ "$(dealt 0)" = "$4" ] && [ "$(dealt 1)" = "$4" ]
	verdict $? "$1 microbatches to $2 equal workers$3: $4" "$(dealt 0), then $(dealt 1)"
}
equally 24 2 '' '12 12'
equally 24 2 ', in_flight: 1' '12 12'
equally 24 2 ', in_flight: 8' '12 12'
equally 25 2 '' '13 12'
equally 60 5 '' '12 12 12 12 12'
equally 7 3 ', wiring: throughput' '3 2 2'

# ---- an uneven pool, against the shortest schedule ----------------------------------------------------------------------

# Grants and what comes back take 0.1 ms each; a worker has the next microbatch before it needs it.
shortest() { # shortest MICROBATCHES KEYS FAST MIDDLE SLOW PERCENT: each round within 1 % of the shortest schedule
	pool "$1" 3 "$2" "{count: $3, gpu: fast}, {count: $4, gpu: middle}, {count: $5, gpu: slow}"
	simulate
	local best round seen all=
	best=$(python3 "$root/tests/cli/dealing.py" "$1" 300 "$3" 720 "$4" 1800 "$5")
	for round in 0 1 2; do
		seen=$(passes_s $round)
		all="$all $seen"
		awk "BEGIN { exit !($seen <= 1.01 * $best && $seen >= 0.999 * $best) }" </dev/null ||
			{ fail "$1 microbatches, $3 fast, $4 middle, $5 slow$2" "round $round took $seen s, best $best s"; return; }
	done
	pass "$1 microbatches, $3 fast, $4 middle, $5 slow$2: $best s"
	awk "BEGIN { exit !($(expected_off 0 1) < $6) }" </dev/null
	verdict $? "and expected within $6 %" "off by $(expected_off 0 1) %"
}
shortest 40 '' 4 1 1 1
shortest 40 ', in_flight: 8' 4 1 1 1
shortest 41 ', in_flight: 12' 3 1 2 1
shortest 41 ', in_flight: 4' 2 2 2 1
shortest 400 '' 4 1 1 1
shortest 400 ', in_flight: 12, wiring: throughput' 1 1 6 1
shortest 100 ', wiring: throughput' 2 3 4 1
shortest 13 ', in_flight: 8, wiring: throughput' 1 1 1 1

# ---- the same number of inner steps -------------------------------------------------------------------------------------

# How many microbatches each inner step of each worker has: those since the one before.
parts() { # parts ROUND
	sqlite3 runs.db "SELECT count(*) FROM (SELECT worker, (SELECT count(*) FROM ops s WHERE s.kind = 'inner_step' AND s.round = $1
		AND s.worker = b.worker AND s.end_s <= b.begin_s) AS steps FROM ops b WHERE kind = 'backward' AND round = $1)
		GROUP BY worker, steps"
}

# A round takes as long as the slowest takes for its part of every step.
fixed() { # fixed NAME BATCH KEYS SYNC MACHINES PARTS SECONDS
	pool "$2" 8 "$3" "$5"
	echo "sync: {method: diloco, every: 4, steps: fixed$4}" >>scenario.yaml
	simulate
	local seen
	seen=$(parts 1 | sort -n | uniq -c | awk '{printf("%s%sx%s", (NR > 1 ? " " : ""), $1, $2)}')
	[ "$seen" = "$6" ] && awk "BEGIN { s = $(passes_s 1); exit !(s >= 0.999 * $7 && s <= 1.005 * $7) }" </dev/null
	verdict $? "four steps of $2 microbatches$3$4, $1: $6, $7 s" "$seen, $(passes_s 1) s"
	awk "BEGIN { exit !($(expected_off 1 4) < 1) }" </dev/null
	verdict $? 'and expected within 1 %' "off by $(expected_off 1 4) %"
}
uneven='{count: 3, gpu: fast}, {count: 1, gpu: slow}'
fixed 'three of four are fast' 16 '' '' "$uneven" '16x4' 28.8
fixed 'three of four are fast' 16 ', in_flight: 1' '' "$uneven" '16x4' 28.8
fixed 'three of four are fast' 16 ', in_flight: 9, wiring: throughput' '' "$uneven" '16x4' 28.8
fixed 'one each' 4 '' '' "$uneven" '16x1' 7.2
fixed 'they take turns with what is left' 6 '' '' "$uneven" '8x1 8x2' 10.8
fixed 'all are equal' 24 '' ', delayed: true' '{count: 2, gpu: fast}' '8x12' 14.4
pool 16 8 '' "$uneven"
echo 'sync: {method: diloco, every: 4}' >>scenario.yaml
simulate
check 'shared, a slow one does less' awk "BEGIN { exit !($(passes_s 1) < 9.5) }"
echo 'sync: {method: diloco, every: 4, steps: fixed}' >few.yaml
grep -v '^sync' scenario.yaml >>few.yaml
refuses 'fewer microbatches than workers' 'has none for each of the 4 workers' check few.yaml --set schedule.global_batch=3
refuses 'fixed by share' 'sync.steps: with `every: auto`' check few.yaml --set sync.every=auto --set sync.mean_inner_steps=4
refuses 'fixed, async' 'sync.steps: with `method: async`' check few.yaml --set sync.method=async
refuses 'fixed without local steps' 'sync.steps: comes with' check few.yaml --set sync='{method: step, steps: fixed}'
refuses 'fixed how' 'sync.steps' check few.yaml --set sync.steps=12
check 'said by check' bash -c "'$skep' check few.yaml | grep -q 'each worker makes so many, on equal parts'"

# ---- slow and fast GPUs in four stages ----------------------------------------------------------------------------------

rate() { # rate TOPOLOGY: samples a second of three rounds
	"$skep" sim --json -q "$root/scenarios/t4-a100-both.yaml" --set train.until.steps=3 \
		--set "cluster.topology=$root/topologies/$1.yaml" --db runs.db 2>"$err" |
		python3 -c 'import json, sys; print(json.load(sys.stdin)["throughput_samples_per_s"])'
}
slow=$(rate eight-t4)
fast=$(rate four-a100)
both=$(rate t4-a100)
awk "BEGIN { exit !($both >= 0.85 * ($slow + $fast)) }" </dev/null
verdict $? 'eight T4 and four A100 together come to 85 % of the sum of both alone' "$slow, $fast, both $both"

"$skep" check "$root/scenarios/t4-a100-both.yaml" >"$out" 2>"$err"
check 'the check says how many a fast one may have' grep -q 'on the mean of them, by speed; at most 64' "$out"
"$skep" check "$root/scenarios/t4-a100-both.yaml" --set schedule.wiring=uniform >"$out" 2>"$err"
check 'uniform wiring asks for no speed' bash -c "! grep -q 'by speed' '$out'"

plan
