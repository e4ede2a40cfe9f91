#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# wsp.sh - waves (HetPipe): what check says of them, what results and the database have of their staleness, what is expected of a step, what
# a larger distance is worth where speed varies and what not where it does not, bytes in closed form, losses of workers, and what does
# not go with them.
set -u
. tests/cli/lib.sh
needs python3

ln -s "$root/models" "$root/topologies" .
shipped=$root/scenarios/hetpipe.yaml

# ---- refused ----------------------------------------------------------------------------------------------------------

refuses 'a swarm' 'sync.method: the virtual workers of `wsp` are pipelines .*: take `schedule.pipeline: pipedream`' \
	check "$shipped" --set schedule.pipeline=swarm
refuses 'a distance without waves' 'sync.distance: comes with `method: wsp` alone' check "$shipped" --set sync.method=step
refuses 'too large a distance' 'sync.distance: expected .*0 to 6' check "$shipped" --set sync.distance=7
refuses 'a wave of one' 'schedule.global_batch: with `sync.method: wsp` a wave has .*: 256 samples .*a usual wave has as many as stages, 512' \
	check "$shipped" --set schedule.global_batch=128
refuses 'a batch that does not divide' 'the nearest are 512 and 640' check "$shipped" --set schedule.global_batch=576
refuses 'unequal stages' 'sync.method: a virtual worker of `wsp` has one worker of each stage' check "$shipped" --set model.stages=2 \
	--set model.cut=null --set 'cluster.allocation={method: explicit, stage_of: [0, 0, 0, 1, 0, 0, 0, 1]}' --set schedule.global_batch=768
refuses 'other weights' 'schedule.weights: with `sync.method: wsp` both passes' check "$shipped" --set schedule.weights=newest
refuses 'synchronous steps' 'schedule.synchronous_steps: with `sync.method: wsp`' check "$shipped" --set schedule.synchronous_steps=2
refuses 'activations that are made again' 'schedule.checkpoint_activations: with `sync.method: wsp`' \
	check "$shipped" --set schedule.checkpoint_activations=true
refuses 'adamw' 'train.optimizer.name: `sync.method: wsp` adds up .*take `sgd`' check "$shipped" --set train.optimizer.name=adamw
refuses 'momentum' 'train.optimizer.momentum: with `sync.method: wsp` it has to be 0' check "$shipped" --set train.optimizer.momentum=0.9
refuses 'decay' 'train.optimizer.weight_decay: with `sync.method: wsp` it has to be 0' check "$shipped" --set train.optimizer.weight_decay=0.1
refuses 'a rate by staleness' 'by_staleness: with `sync.method: wsp` all stages are as stale' check "$shipped" --set train.schedule.by_staleness=4
refuses 'a law' 'train.arithmetic: a law knows one staleness' check "$shipped" --set train.arithmetic=law \
	--set "train.law.file=$root/scenarios/laws/tiny-gpt2.yaml"
refuses 'local steps beside it' 'sync.every: comes with' check "$shipped" --set sync.every=4
refuses 'to run a loss again' 'schedule.on_loss: with `pipeline: pipedream`' check "$shipped" --set schedule.on_loss=rerun

# ---- what is said ---------------------------------------------------------------------------------------------------

accepts 'the shipped one' check "$shipped"
check 'check says what a wave is' grep -q 'a round is a wave of 4 microbatches of each' "$out"
check 'and the bounds of staleness' bash -c "tr -s ' \n' ' ' <'$out' | grep -q 'lack at most 3 microbatches before it of its own virtual worker and 10 of each other one'"
accepts 'the same as JSON' check "$shipped" --json
check 'with the same numbers' python3 -c 'import json, sys
waves = json.load(open(sys.argv[1]))["pipelines"]["waves"]
assert waves == {"microbatches": 4, "distance": 1, "local_staleness": 3, "global_staleness": 10}, waves' "$out"

accepts 'simulated' sim "$shipped" --json
check 'the summary has what was seen, within the bounds' python3 -c 'import json, sys
r = json.load(open(sys.argv[1]))
assert r["local_staleness"] == 3 and 4 <= r["global_staleness"] <= 10, r' "$out"
accepts 'for a person' sim "$shipped"
check 'with the bounds' grep -q 'staleness *at most [0-9]* microbatches of each other virtual worker (bound 10), 3 of its own (bound 3)' "$out" "$err"
refuses 'a law that is fitted to it' '^skep: run 1 has waves .*: a law knows one staleness' fit 1 -o law.yaml

recorded() {
	python3 - <<-'END'
	import sqlite3
	db = sqlite3.connect("skep.db")
	rows = db.execute("SELECT loss, staleness, local_staleness FROM rounds WHERE run = 1 ORDER BY round").fetchall()
	assert len(rows) == 120 and rows[-1][0] < rows[0][0] / 4, (rows[0], rows[-1])
	assert all(3 <= s <= 10 and own == 3 for _, s, own in rows[1:]), rows
	assert rows[0][1:] == (3, 3), rows[0] # of the first wave all before is lacking, and no more
	lost = db.execute("SELECT count(*) FROM v_ledger WHERE verdict <> 'kept'").fetchone()[0]
	assert lost == 0, lost
	END
}
check 'each round has its own' recorded

# Two members of each stage: each sends the parameters of its stage once in a wave, whatever the wave has.
bytes() { # bytes BATCH STEPS
	"$skep" sim "$shipped" -q --json --db bytes.db --set train.arithmetic=none --set "schedule.global_batch=$1" --set "train.until.steps=$2" |
		python3 -c 'import json, sys; print(json.load(sys.stdin)["bytes_sync"])'
}
check 'bytes of a wave do not hang on its length' test "$(bytes 512 24)" = "$(bytes 1024 24)"

# ---- distance ------------------------------------------------------------------------------------------------------------

pace() { # pace OPTION..: seconds for a wave
	"$skep" sim "$shipped" -q --json --db pace.db --set train.arithmetic=none "$@" |
		python3 -c 'import json, sys; d = json.load(sys.stdin); print(d["time_s"] / d["steps"])'
}
below() { # below A B FACTOR: A < FACTOR B
	awk "BEGIN { exit !($1 < $3 * $2) }"
}
one_place=(--set cluster.topology=topologies/eight-t4.yaml --set train.until.steps=200)
steady=$(pace "${one_place[@]}" --set sync.distance=0) more=$(pace "${one_place[@]}" --set sync.distance=4)
check "equal virtual workers of steady speed: $steady s a wave, with D = 4 $more" \
	bash -c "awk 'BEGIN { exit !($more < 1.001 * $steady && $more > 0.9 * $steady) }'"
noisy=(--set cluster.compute.noise=0.15 --set model.stages=2 --set model.cut=null)
for distance in 0 1 4; do
	varied[distance]=$(pace "${one_place[@]}" "${noisy[@]}" --set "sync.distance=$distance")
done
check "four of two stages, of speed that varies: ${varied[0]}, ${varied[1]}, ${varied[4]} s with D = 0, 1, 4" \
	bash -c "awk 'BEGIN { exit !(${varied[4]} < ${varied[1]} && ${varied[1]} < ${varied[0]}) }'"

# Fast ones and slow ones, each in a place of its own: all go as the slow one goes, which is as much ahead as it may be.
accepts 'unequal ones' sim "$shipped" --json -q --set cluster.topology=topologies/fast-and-slow.yaml --set sync.distance=3 --set train.until.steps=60
check 'the fast one has gone ahead to the bound' python3 -c 'import json, sys
r = json.load(open(sys.argv[1]))
assert r["global_staleness"] == 18 and r["local_staleness"] == 3, r' "$out"

# ---- expected ----------------------------------------------------------------------------------------------------------

expected() { # expected NAME OPTION..: within 15 %
	local name=$1 said seen
	shift
	said=$("$skep" check "$shipped" --json --set train.arithmetic=none --set train.until.steps=200 "$@" 2>"$err" |
		python3 -c 'import json, sys; print(json.load(sys.stdin)["expected"]["step_s"])')
	seen=$(pace --set train.until.steps=200 "$@")
	check "$name: $said s expected, $seen s simulated" awk "BEGIN { exit !($said < 1.15 * $seen && $said > 0.85 * $seen) }"
}
for distance in 0 1 4; do
	expected "over a thin line, D = $distance" --set "sync.distance=$distance"
	expected "unequal ones, D = $distance" --set "sync.distance=$distance" --set cluster.topology=topologies/fast-and-slow.yaml
	expected "in one place, D = $distance" --set "sync.distance=$distance" --set cluster.topology=topologies/eight-t4.yaml
	expected "waves of eight, D = $distance" --set "sync.distance=$distance" --set schedule.global_batch=1024
	expected "waves of two, D = $distance" --set "sync.distance=$distance" --set schedule.global_batch=256
done

# ---- losses -------------------------------------------------------------------------------------------------------------

printf '0,join,n%d\n' 1 2 3 4 5 6 7 8 >churn.csv
printf '2,leave,n6\n5,join,n6\n100,end,\n' >>churn.csv
accepts 'a worker is lost and comes back' sim "$shipped" --json -q --db lost.db --set cluster.trace.file=churn.csv \
	--set 'directory.heartbeat=100 ms' --set 'directory.timeout=500 ms' \
	--set train.until.steps=200
check 'what it had under way is lost, and nothing else' python3 -c 'import json, sqlite3, sys
r = json.load(open(sys.argv[1]))
db = sqlite3.connect("lost.db")
assert r["preemptions"] == 1 and r["joins"] == 1 and 0 < r["lost"] <= 5 * 4 * 4, r # waves that are open, of four, in four stages
assert r["global_staleness"] <= 10 and r["local_staleness"] <= 3, r
assert db.execute("SELECT count(*) FROM v_ledger WHERE verdict <> \"kept\"").fetchone()[0] == 0' "$out"
accepts 'and a run that goes on' sim "$shipped" --json -q --db kept.db --set train.until.steps=8 --set 'checkpoint={every: 4, to: kept}'

plan
