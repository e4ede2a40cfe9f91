#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# accumulate.sh - several flushes in a step (`schedule.accumulate`): `skep sim`, what `skep check` expects and the memory that it says against
# closed forms by hand; losses and bytes against those of one flush; and where the key has no meaning.
set -u
. tests/cli/lib.sh
needs python3 sqlite3

# Two pipelines of four stages. A stage has two layers, f = 6 ms forward and b = 12 ms backward together, 2,000,000 parameters whose step takes
# 10 ms, and keeps 2 MB of a microbatch; what is sent on is next to nothing.
ln -s "$root/topologies/gpus" gpus
cat >model.yaml <<'END'
name: eight layers
kind: given
given:
  microbatch: 1
  layers:
    - {count: 8, parameters: 1000000, activations: 8 B, kept: 1 MB, forward: 3 ms, backward: 6 ms, step: 5 ms}
END
cat >topology.yaml <<'END'
name: eight in one place
source: Assumed for this test.
directory: here
sites:
  here: {machines: [{count: 8, gpu: v100}], inside: {bandwidth: 1 Gbit/s, latency: 0 ms}}
END

scenario() { # scenario PIPELINE MICROBATCHES ACCUMULATE: so many of each pipeline
	local chunks=
	[ "$1" != interleaved ] || chunks="model_chunks: 2, "
	cat >scenario.yaml <<-END
	name: $1 in $3 flushes
	seed: 1
	model: {file: model.yaml, stages: 4}
	cluster: {topology: topology.yaml, allocation: {method: strided}}
	schedule: {pipeline: $1, ${chunks}global_batch: $((2 * $2)), microbatch: 1, accumulate: $3}
	train: {arithmetic: none, optimizer: {name: sgd, lr: 1.0e-4}, until: {steps: 1}}
	END
}

# A (M / A + (K - 1) / v) (f + b) for the passes. The ring of the two workers of a stage moves half of 8,000,000 bytes twice at 1 Gbit/s, 64 ms;
# the step is 10 ms. All figures within 1 ms, the expected ones too. What is held, from the simulated passes: with GPipe M / A on each
# worker, with 1F1B K - s of stage s but no more than that, and interleaved 2 (K - s - 1) + (v - 1) K + 1 virtual stages but no more than v M / A.
as_by_hand() { # as_by_hand PIPELINE MICROBATCHES ACCUMULATE; leaves sim.json, check.json, runs.db
	python3 - "$@" <<-'END'
	import json, sqlite3, sys
	pipeline, m, a = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
	f_b, k, v, s = 0.018, 4, 2 if sys.argv[1] == "interleaved" else 1, m // a
	passes = a * (s + (k - 1) / v) * f_b
	sim, check, db = json.load(open("sim.json")), json.load(open("check.json")), sqlite3.connect("runs.db")
	near = lambda name, seen, wanted: abs(seen - wanted) < 0.001 or sys.exit(f"{name}: {seen}, by hand {wanted}")
	span = db.execute("SELECT max(end_s) - min(begin_s) FROM ops WHERE kind IN ('forward', 'backward')").fetchone()[0]
	near("passes", span, passes)
	near("the step", sim["time_s"], passes + 0.064 + 0.010)
	near("expected passes", check["expected"]["passes_s"], passes)
	near("expected step", check["expected"]["step_s"], passes + 0.064 + 0.010)
	for worker in range(8):
	    stage, held, most = worker % k, 0, 0
	    for kind, in db.execute("SELECT kind FROM ops WHERE worker = ? AND kind IN ('forward', 'backward') ORDER BY begin_s", (worker,)):
	        held += 1 if kind == "forward" else -1
	        most = max(most, held)
	    bound = {"gpipe": s, "1f1b": k - stage, "interleaved": 2 * (k - stage - 1) + (v - 1) * k + 1}[pipeline]
	    assert held == 0 and most == min(bound, v * s) == check["pipelines"]["held"][stage], (worker, most, check["pipelines"]["held"])
	if pipeline != "interleaved": # what is kept, and 8 bytes in and 8 out of each, of the last stage 8 in
	    for row in check["memory"]:
	        held, ends = check["pipelines"]["held"][row["stage"]], (row["stage"] > 0) + (row["stage"] < k - 1)
	        assert abs(row["activations_bytes"] - held * (2e6 + 8 * ends)) < 1, (row, held)
	END
}

for pipeline in gpipe 1f1b interleaved; do
	for way in '16 1' '16 2' '16 4' '24 3' '4 1'; do
		# shellcheck disable=SC2086 # two words
		scenario $pipeline $way
		rm -f runs.db
		run_skep sim scenario.yaml -q --json --db runs.db
		cp "$out" sim.json
		run_skep check scenario.yaml -q --json
		cp "$out" check.json
		# shellcheck disable=SC2086
		check "$pipeline, ${way% *} microbatches, flushes: ${way#* }" as_by_hand $pipeline $way
	done
done
scenario gpipe 16 16
run_skep check scenario.yaml
check 'the check says how many flushes of how many' grep -q 'with 16 microbatches a round, in 16 flushes of 1$' "$out"
sed 's/kept: 1 MB/kept: 1 GB/' model.yaml >large.yaml # 2 GB for each of 16 microbatches, of the 16 GB of a V100
refuses 'what does not fit at once' 'any of these would do: .*schedule.accumulate: 4' check scenario.yaml --set schedule.accumulate=1 --set model.file=large.yaml
accepts 'fits in four flushes' check scenario.yaml --set schedule.accumulate=4 --set model.file=large.yaml

# ---- learning -----------------------------------------------------------------------------------------------------------

# Gradients are added in the order of the microbatches with any number of flushes, so losses are equal to the bit, and so are bytes.
place 8
cat >learns.yaml <<END
name: learns
seed: 7
model: {file: $root/models/square-mlp.yaml, stages: 4}
cluster: {topology: place-8.yaml, allocation: {method: strided}}
schedule: {pipeline: gpipe, global_batch: 512, microbatch: 16}
train: {arithmetic: real, optimizer: {name: adamw, lr: 3.0e-3}, until: {steps: 8}}
END
rm -f runs.db
all_alike() {
	python3 - <<-'END'
	import sqlite3
	db = sqlite3.connect("runs.db")
	runs = [r for r, in db.execute("SELECT id FROM runs ORDER BY id")]
	rows = [db.execute("SELECT loss FROM rounds WHERE run = ? ORDER BY round", (r,)).fetchall() for r in runs]
	assert len(runs) == 12 and len(rows[0]) == 8 and all(row == rows[0] for row in rows), rows
	END
}
for pipeline in gpipe 1f1b interleaved overlap; do
	more=(--set schedule.pipeline=${pipeline/overlap/1f1b})
	[ $pipeline != interleaved ] || more+=(--set schedule.model_chunks=2)
	[ $pipeline != overlap ] || more+=(--set sync.overlap=true)
	bytes=()
	for accumulate in 1 2 4; do
		accepts "$pipeline, flushes: $accumulate" sim learns.yaml -q --json --db runs.db "${more[@]}" --set schedule.accumulate=$accumulate
		bytes+=("$(python3 -c 'import json, sys; r = json.load(sys.stdin); print(r["bytes_pipeline"], r["bytes_sync"])' <"$out")")
	done
	check "$pipeline: equal bytes" test "${bytes[0]}" = "${bytes[1]}" -a "${bytes[0]}" = "${bytes[2]}"
done
check 'losses are equal to the bit' all_alike

# ---- refused ------------------------------------------------------------------------------------------------------------

refuses 'no equal flushes' 'schedule.accumulate: a pipeline has 16 microbatches a step, which are not 3 equal flushes; .* the nearest are 480 and 576' \
	check learns.yaml --set schedule.accumulate=3
refuses 'no whole groups' 'which are not 8 equal flushes, taken in groups of 4' \
	check learns.yaml --set schedule.accumulate=8 --set schedule.pipeline=interleaved --set schedule.model_chunks=2
refuses 'a swarm' 'schedule.accumulate: a swarm is not flushed within a step' \
	check learns.yaml --set schedule.accumulate=2 --set schedule.pipeline=swarm
refuses 'no flush' 'schedule.accumulate: `pipedream` never flushes' \
	check learns.yaml --set schedule.accumulate=2 --set schedule.pipeline=pipedream --set schedule.global_batch=32
refuses 'a barrier' 'schedule.barrier: not with `accumulate`' \
	check learns.yaml --set schedule.accumulate=2 --set schedule.barrier=true
refuses 'none' 'schedule.accumulate: expected a whole decimal number from 1' check learns.yaml --set schedule.accumulate=0

plan
