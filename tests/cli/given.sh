#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# given.sh - models that are known by parameters, bytes and seconds alone (`kind: given`): passes, messages, steps and memory of `skep sim` and
# `check` are the figures of the file, on any GPU.
set -u
. tests/cli/lib.sh
needs python3 sqlite3

ln -s "$root/topologies/gpus" gpus
model() { # model LAYER...: makes model.yaml
	printf 'name: eight layers\nkind: given\ngiven:\n  microbatch: 2\n  layers:\n' >model.yaml
	printf '    - {%s}\n' "$@" >>model.yaml
}

scenario() { # scenario STAGES WORKERS PIPELINE BATCH: over 1 Gbit/s with 10 ms, in fp32
	cat >topology.yaml <<-END
	name: in a row
	source: Assumed for this test.
	directory: here
	sites:
	  here:
	    machines: [{count: $(($2 / 2)), gpu: v100}, {count: $(($2 - $2 / 2)), gpu: a100-40}]
	    inside: {bandwidth: 1 Gbit/s, latency: 10 ms}
	END
	cat >scenario.yaml <<-END
	name: given
	seed: 1
	model: {file: model.yaml, stages: $1}
	cluster: {topology: topology.yaml, allocation: {method: strided}}
	schedule: {pipeline: $3, global_batch: $4, microbatch: 2}
	train: {arithmetic: none, optimizer: {name: adamw, lr: 1.0e-4}, until: {steps: 1}}
	END
}

ask() { # ask SQL ARGUMENT...
	local sql=$1
	shift
	rm -f runs.db
	run_skep sim scenario.yaml -q --json --db runs.db "$@"
	[ "$status" = 0 ] || cat "$err" >&2
	sqlite3 runs.db "$sql"
}

same() { # same NAME SEEN WANTED
	if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "seen: $2"$'\n'"wanted: $3"; fi
}

# The pipeline of thin_lines.sh: eight stages, 64 microbatches of 8 MiB, a line that serves them in order: 9.967 s.
model 'count: 8, parameters: 1000000, activations: 8 MiB, kept: 100 MB, forward: 18 ms, backward: 36 ms, step: 5 ms'
scenario 8 8 gpipe 128
span=$(ask "SELECT max(end_s) - min(begin_s) FROM ops WHERE kind IN ('forward', 'backward')")
check "GPipe over thin lines: $span s for 9.967" awk "BEGIN { exit !($span - 9.967 < 0.001 && 9.967 - $span < 0.001) }"
same 'a step takes its time' "$(sqlite3 runs.db "SELECT DISTINCT printf('%.6f', end_s - begin_s) FROM ops WHERE kind = 'step'")" 0.005000
same 'bytes of the pipeline' "$(python3 -c 'import json, sys; print(json.load(sys.stdin)["bytes_pipeline"])' <"$out")" $((2 * 7 * 64 * (96 + 8388608)))
# The step that is given is that of train.optimizer: with local steps each of the inner ones, and the outer one moves memory.
steps="SELECT kind, count(*), printf('%.6f', avg(end_s - begin_s)) FROM ops WHERE stage = 0 AND kind IN ('step', 'inner_step') GROUP BY 1"
same 'with local steps the inner ones' "$(ask "$steps" --set 'sync={method: diloco, every: 4}' --set train.until.steps=8 | tr '\n' ' ')" \
	'inner_step|8|0.005000 step|2|0.000131 '

# Figures of a stage are the sums of its layers; backward is twice forward where it is left out.
model 'count: 3, parameters: 1000, activations: 8 kB, forward: 1 ms, backward: 3 ms' 'parameters: 500, activations: 16 kB, forward: 4 ms' \
	'parameters: 7000, forward: 2 ms'
scenario 2 2 1f1b 8
passes="SELECT kind, stage, printf('%.6f', avg(end_s - begin_s)) FROM ops WHERE kind IN ('forward', 'backward') GROUP BY 1, 2"
same 'sums of layers, cut by time' "$(ask "$passes" | tr '\n' ' ')" 'backward|0|0.009000 backward|1|0.012000 forward|0|0.003000 forward|1|0.006000 '
same 'or as the scenario cuts' "$(ask "$passes" --set model.cut='[4, 1]' | tr '\n' ' ')" \
	'backward|0|0.017000 backward|1|0.004000 forward|0|0.007000 forward|1|0.002000 '
same 'compute_scale' "$(ask "$passes" --set cluster.compute_scale=10 | head -n 1)" 'backward|0|0.090000'
same 'recomputation' "$(ask "$passes" --set schedule.checkpoint_activations=true | head -n 1)" 'backward|0|0.012000'

figures() { # of stage 0: parameters, bytes to the next stage in a round, weights
	run_skep check scenario.yaml --json "$@"
	python3 -c 'import json, sys
seen = json.load(sys.stdin)
print(seen["stages"][0]["parameters"], int(seen["bytes_pipeline_per_round"]), int(seen["memory"][0]["weights_bytes"]))' <"$out"
}
same 'parameters, bytes, memory' "$(figures)" "3000 $((2 * 4 * (96 + 8000))) 12000"
same 'in bf16 the parameters alone are smaller' "$(figures --set cluster.topology="$root/topologies/four-a100.yaml" --set 'cluster.compute={type: bf16, mixed: true}')" "3000 $((2 * 4 * (96 + 8000))) 6000"
same 'a codec makes them smaller' "$(figures --set schedule.compression=fp16)" "3000 $((2 * 4 * (96 + 4000))) 12000"
run_skep check scenario.yaml
check 'the check says whose times they are' grep -q '^  type      times of passes are given by the model' "$out"

# What two layers keep of the one microbatch that is done again is in flight too, beside what goes out: 8 B of each that is held.
model 'count: 2, parameters: 1000, activations: 8 B, kept: 250 MB, forward: 1 ms, backward: 2 ms' \
	'count: 2, parameters: 7000, kept: 100 MB, activations: 8 B, forward: 1 ms'
scenario 2 2 1f1b 8
in_flight() {
	run_skep check scenario.yaml --json "$@"
	python3 -c 'import json, sys; print([int(row["activations_bytes"]) for row in json.load(sys.stdin)["memory"]])' <"$out"
}
same 'kept of two microbatches, and of one' "$(in_flight)" '[1000000016, 200000008]'
same 'kept of the one that is done again' "$(in_flight --set schedule.checkpoint_activations=true)" '[500000016, 200000008]'

# ---- refused ------------------------------------------------------------------------------------------------------------

refuses 'another microbatch' 'schedule.microbatch: the figures of eight layers are of microbatches of 2' \
	check scenario.yaml --set schedule.microbatch=4
refuses 'real arithmetic' 'train.arithmetic: eight layers is known by the figures of its layers alone' \
	check scenario.yaml --set train.arithmetic=real
refuses 'a predictor' 'cluster.compute.predictor: the file of eight layers gives the times' \
	check scenario.yaml --set cluster.compute.predictor=table
refuses_at 'a GPU of another speed' '--set cluster.gpus.v100.speed=2' 'cluster.gpus: the file of eight layers gives the times of its passes' \
	check scenario.yaml --set cluster.gpus.v100.speed=2
refuses 'a real run' 'eight layers is known by its cost alone' run scenario.yaml
model 'parameters: 1000, activations: 9 B, forward: 1 ms' 'parameters: 7000, forward: 2 ms'
refuses_at 'no whole elements' 'model.yaml:6:39' 'expected a multiple of 8' check scenario.yaml
model 'parameters: 1000, activations: 8 B, forward: 1 ms, step: 1 ms' 'parameters: 7000, forward: 2 ms'
refuses 'a step here and none there' 'either each layer has a `step`, or none' check scenario.yaml
model 'parameters: 1000, forward: 1 ms' 'parameters: 7000, forward: 2 ms'
refuses 'what leaves a layer' "activations.* is missing|missing.*activations" check scenario.yaml
printf 'name: none\nkind: given\ngiven: {layers: []}\n' >model.yaml
refuses_at 'no layer' 'model.yaml:3:17' 'at least one layer' check scenario.yaml

plan
