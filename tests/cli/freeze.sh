#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# freeze.sh - model.freeze in the simulator: what it costs, what is refused, and that what is frozen is what it was, to the bit, with every
# way to end a round; frozen.py compares the weights.
set -u
. tests/cli/lib.sh
needs python3

ln -s "$root/tests/data/hf" hf
place 4
for _ in {1..80}; do printf '%s' "!#\$%&'()*+,-./ "; done >corpus.txt # bytes below 48, the vocabulary of that model

# Weights of others, further trained: a GPT-2 of two blocks with a tied head, in two stages of two.
cat >tuned.yaml <<END
name: fine-tuning
seed: 1
model: {file: hf/gpt2/config.json, stages: 2, sequence: 8, freeze: 2}
cluster: {topology: place-4.yaml, allocation: {method: strided}}
schedule: {global_batch: 16, microbatch: 4}
train:
  data: {corpus: text, file: corpus.txt}
  init: {weights: hf/gpt2}
  until: {steps: 4}
END

value() { # value KEY: of what was printed
	python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "${2:-ran.json}" "$1"
}

unchanged() { # unchanged NAME PREFIX... : the weights of the newest checkpoint, against those of the file
	local name=$1
	shift
	rm -rf exported
	if "$skep" export tuned.yaml "${how[@]}" -o exported >"$out" 2>"$err" &&
		python3 "$root/tests/cli/frozen.py" "hf/gpt2/model.safetensors" exported/model.safetensors "$@" >"$out" 2>>"$err"; then
		pass "$name"
	else
		fail "$name" "$(tail -3 "$err")"
	fi
}

trains() { # trains NAME ARGUMENT...: the embedding and the first block stay, and the rest does not
	local name=$1
	shift
	rm -rf kept
	how=(--set 'checkpoint={every: 1, to: kept}' "$@")
	accepts "$name" sim tuned.yaml "${how[@]}" --write-checkpoints --json -q --db "$scratch/all.db"
	cp "$out" ran.json
	unchanged "$name: the embedding and the first block stay" wte. wpe. h.0.
}

# ---- what check says ------------------------------------------------------------------------------------------------------------

accepts 'check' check tuned.yaml
check 'says what is frozen, the table of the tied head with it' \
	grep -q 'freezes   the embedding and the first block, and the head.s table with it: of [0-9]* parameters [0-9]* are trained' "$out"
check 'nothing is told of a tied table' test "$(grep -c 'each hold a copy' "$out")" = 0
check 'the first stage goes back through nothing' grep -q 'no backward pass in the first stage' "$out"
accepts 'check as JSON' check tuned.yaml --json -q
cp "$out" frozen.json
accepts 'check of the whole' check tuned.yaml --set model.freeze=0 --set 'model.cut=[2, 2]' --json -q
check 'of what is not frozen all is trained' test "$(value parameters "$out")" = "$(value trained_parameters "$out")"
check 'costs of what is frozen' python3 - frozen.json "$out" <<'END'
import json, sys
frozen, whole = (json.load(open(name)) for name in sys.argv[1:])
assert frozen["frozen_layers"] == 2 and whole["frozen_layers"] == 0
assert frozen["parameters"] == whole["parameters"] > 2 * frozen["trained_parameters"] > 0
first, last = frozen["stages"]
assert first["layers"] == 2 and first["trained_parameters"] == 0 and first["backward_s"] < 1e-8 and first["sync_bytes"] == 0
assert last["trained_parameters"] == frozen["trained_parameters"]
assert last["sync_bytes"] < whole["stages"][1]["sync_bytes"] and last["memory_bytes"] < whole["stages"][1]["memory_bytes"]
# activations go there, and of gradients the headers of messages come back
assert first["pipeline_bytes"] < 0.75 * whole["stages"][0]["pipeline_bytes"]
rows = {row["stage"]: row for row in frozen["memory"]}
assert rows[0]["gradients_bytes"] == rows[0]["optimizer_bytes"] == 0 and rows[1]["optimizer_bytes"] > 0
END

# ---- what is refused ------------------------------------------------------------------------------------------------------------

for freeze in 4 9; do
	sed "s/freeze: 2/freeze: $freeze/" tuned.yaml >all.yaml
	refuses_at "freezing $freeze layers of four" all.yaml:3:68 'has 4 layers .the embedding, 2 groups of blocks and the head., and at least the last one is trained: expected at most 3' check all.yaml
done
refuses 'less than nothing' 'from 0 to 65535' check tuned.yaml --set model.freeze=-1
refuses 'half a layer' 'whole decimal number' check tuned.yaml --set model.freeze=1.5
refuses 'routing by trainers' 'routing: trainer.* take .peer' check tuned.yaml --set schedule.routing=trainer --set model.stages=3
refuses 'optimizers on the host' 'offload' check tuned.yaml --set train.optimizer.offload=optimizer
refuses 'ZeRO' 'sync.zero' check tuned.yaml --set train.arithmetic=none --set sync.zero=1 --set model.stages=1
refuses 'strides' 'take .sequential' check tuned.yaml \
	--set 'sync={method: streaming, every: 2, fragments: 2, fragment_pattern: strided}'

# ---- what is learnt -------------------------------------------------------------------------------------------------------------

trains 'a swarm'
loss=$(value final_loss)
trains 'in one stage' --set model.stages=1
check 'the loss is that of two stages' python3 -c 'import sys; a, b = map(float, sys.argv[1:]); assert abs(a - b) < 1e-5, (a, b)' \
	"$loss" "$(value final_loss)"
trains 'cut after the first layer' --set 'model.cut=[1, 3]'
trains 'in three stages' --set model.stages=3 --set cluster.allocation.method=contiguous
trains 'clipped' --set train.optimizer.clip_norm=0.01
trains 'by LAMB' --set train.optimizer.name=lamb
trains 'recomputed' --set schedule.checkpoint_activations=all
check 'the loss is that of what is kept' test "$(value final_loss)" = "$loss"
trains 'delayed' --set sync.delayed=true
trains 'in int8' --set sync.compression=int8 --set schedule.compression=int8
fixed=(--set schedule.pipeline=1f1b)
trains '1f1b' "${fixed[@]}"
trains 'overlapped' "${fixed[@]}" --set 'sync={overlap: true, bucket: 1 kB}'
trains 'gpipe' --set schedule.pipeline=gpipe --set sync.collective=all-to-all
accepts 'gpipe in three stages, recomputed' sim tuned.yaml -q --db "$scratch/recomputed.db" \
	--set 'schedule={pipeline: gpipe, checkpoint_activations: true, global_batch: 16, microbatch: 4}' \
	--set 'model={file: hf/gpt2/config.json, sequence: 8, freeze: 2, stages: 3, cut: [2, 1, 1]}' \
	--set 'cluster.allocation={method: explicit, stage_of: [0, 1, 2, unused]}'
check 'a frozen stage recomputes nothing, and the one behind it does' python3 - "$scratch/recomputed.db" <<-'END'
	import sqlite3
	import sys
	passes = dict(sqlite3.connect(sys.argv[1]).execute("SELECT stage || ' ' || kind, count(*) FROM ops GROUP BY 1"))
	assert passes["0 forward"] == 16 and passes["1 recompute"] > 0 and "0 recompute" not in passes, passes
END
trains 'interleaved' --set 'schedule={pipeline: interleaved, model_chunks: 2, global_batch: 16, microbatch: 4}'
trains 'pipedream' --set 'schedule={pipeline: pipedream, global_batch: 8, microbatch: 4}'
trains 'DiLoCo' --set 'sync={method: diloco, every: 2}'
trains 'DiLoCo in fixed pipelines, overlapped' "${fixed[@]}" --set 'schedule.accumulate=2' \
	--set 'sync={method: diloco, every: 2, overlap: true}'
trains 'streaming' --set 'sync={method: streaming, every: 2, fragments: 2, overlap_steps: 1}'
trains 'gossip' --set 'sync={method: gossip, every: 2}'
trains 'async' --set 'sync={method: async, every: 2}'
trains 'robust' --set model.stages=1 --set 'sync={collective: butterfly, aggregate: trimmed-mean}'
how=()
printf '%s\n' 0,join,a 0,join,b 0,join,c 0,join,d 0.000002,leave,b 0.00001,join,b >trace.csv
trains 'with a loss and a newcomer' --set 'cluster.trace={file: trace.csv, any_gpu: true}' --set train.until.steps=8 \
	--set 'directory={heartbeat: 1 ms, timeout: 5 ms}' --set sync.state_chunk='1 KiB'
check 'there was one' test "$(value joins)" -gt 0

# A head of its own is trained with its table, and may be all that is.
how=(--set 'checkpoint={every: 1, to: kept}' --set model.file=untied/config.json --set model.freeze=3)
mkdir untied
sed 's/"tie_word_embeddings": true/"tie_word_embeddings": false/' "hf/gpt2/config.json" >untied/config.json
grep -q '"tie_word_embeddings": false' untied/config.json || sed -i '0,/{/s//{"tie_word_embeddings": false,/' untied/config.json
rm -rf kept
accepts 'the head alone' sim tuned.yaml "${how[@]}" --write-checkpoints --json -q --db "$scratch/all.db"
accepts 'export of it' export tuned.yaml "${how[@]}" -o head
check 'all but the head is what it was' python3 "$root/tests/cli/frozen.py" hf/gpt2/model.safetensors head/model.safetensors wte. wpe. h.

# ---- resumed --------------------------------------------------------------------------------------------------------------------

how=(--set 'checkpoint={every: 1, to: kept}' --set 'schedule={pipeline: 1f1b, global_batch: 16, microbatch: 4}' --db "$scratch/all.db")
keeps=("${how[@]}" --write-checkpoints --json -q)
rm -rf kept
accepts 'four steps at once' sim tuned.yaml "${keeps[@]}"
loss=$(value final_loss "$out")
accepts 'export of these' export tuned.yaml "${how[@]:0:4}" -o at-once
rm -rf kept
accepts 'two steps' sim tuned.yaml "${keeps[@]}" --set train.until.steps=2
refuses 'two more, with less that is frozen' 'kept' sim tuned.yaml "${keeps[@]}" --set model.freeze=1 --resume
accepts 'and two more' sim tuned.yaml "${keeps[@]}" --resume
check 'the loss is the same' test "$(value final_loss "$out")" = "$loss"
accepts 'export of those' export tuned.yaml "${how[@]:0:4}" -o resumed
check 'and so are all weights' cmp at-once/model.safetensors resumed/model.safetensors

plan
