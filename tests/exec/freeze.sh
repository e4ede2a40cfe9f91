#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# freeze.sh - model.freeze for real, over MPI: two stages of two replicas of a GPT-2 that begins with weights of others. What is frozen
# is what it was, to the bit, what is learnt is what the simulator learns, as many bytes move as it says, and a run goes on
# where one has ended.
set -u
. tests/cli/lib.sh
needs python3 mpirun

mpi_environment
ln -s "$root/tests/data/hf" hf
place 4
for _ in {1..80}; do printf '%s' "!#\$%&'()*+,-./ "; done >corpus.txt # bytes below 48, the vocabulary of that model
cat >tuned.yaml <<END
name: fine-tuning for real
seed: 1
model: {file: hf/gpt2/config.json, stages: 2, sequence: 8, freeze: 2}
cluster: {topology: place-4.yaml, allocation: {method: strided}}
schedule: {pipeline: 1f1b, global_batch: 16, microbatch: 4}
train:
  data: {corpus: text, file: corpus.txt}
  init: {weights: hf/gpt2}
  until: {steps: 4}
END

same() { # same NAME ARGUMENT...: the real run and the simulated one
	local name=$1 world
	shift
	for world in run sim; do
		local writes=()
		[ "$world" = run ] || writes=(--write-checkpoints)
		accepts "$name: $world" "$world" tuned.yaml --set "checkpoint={every: 1, to: kept-$world}" "$@" "${writes[@]}" --json -q
		cp "$out" "$world.json"
		accepts "$name: export of $world" export tuned.yaml --set "checkpoint={every: 1, to: kept-$world}" "$@" -o "of-$world"
	done
	check "$name: losses and bytes are the same" python3 - <<-'END'
	import json
	real, sim = (json.load(open(f"{world}.json")) for world in ("run", "sim"))
	for key in ("final_loss", "bytes_pipeline", "bytes_sync", "counted", "lost", "steps"):
	    assert real[key] == sim[key], (key, real[key], sim[key])
	END
	check "$name: all weights are the same" cmp of-run/model.safetensors of-sim/model.safetensors
	check "$name: the embedding and the first block stay" \
		python3 "$root/tests/cli/frozen.py" hf/gpt2/model.safetensors of-run/model.safetensors wte. wpe. h.0.
	rm -rf kept-run kept-sim of-run
}

same 'a step of all'
same 'DiLoCo' --set 'sync={method: diloco, every: 2}' --set schedule.accumulate=2
same 'overlapped' --set 'sync={overlap: true, bucket: 1 kB}'
same 'the first block alone is frozen in its stage' --set 'model.cut=[3, 1]'

keeps=(--set 'checkpoint={every: 1, to: kept}')
accepts 'two steps' run tuned.yaml "${keeps[@]}" --set train.until.steps=2 --json -q
accepts 'two more' run tuned.yaml "${keeps[@]}" --resume --json -q
accepts 'export of these' export tuned.yaml "${keeps[@]}" -o resumed
accepts 'four at once' sim tuned.yaml --set 'checkpoint={every: 1, to: at-once}' --write-checkpoints --json -q
accepts 'export of those' export tuned.yaml --set 'checkpoint={every: 1, to: at-once}' -o once
check 'all weights are the same' cmp resumed/model.safetensors once/model.safetensors

accepts 'a swarm in one stage' run tuned.yaml --set schedule.pipeline=swarm --set model.stages=1 --json -q
one=$(sed 's/.*"final_loss":\([^,]*\).*/\1/' "$out")
accepts 'a swarm in two' run tuned.yaml --set schedule.pipeline=swarm --json -q
check 'losses are those of the model in one piece' python3 -c 'import sys; a, b = map(float, sys.argv[1:]); assert abs(a - b) < 1e-5, (a, b)' \
	"$one" "$(sed 's/.*"final_loss":\([^,]*\).*/\1/' "$out")"

plan
