#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# bert.sh - masked language models from the command line: what check says and what passes take, in closed form; losses that no cut
# changes; weights of a BERT in and out; what is refused.
set -u
. tests/cli/lib.sh
needs python3

name=bert model=$root/models/tiny-bert.yaml hf=$root/tests/data/hf/bert
. "$root/tests/cli/lib_model.sh"

# ---- costs, by hand: h 64, f 256, 4 blocks, sequences of 64 of which 10 are predicted, 257 tokens of the vocabulary ------------------

cat >by-hand.py <<'END'
import json, math
h, f, t, v, blocks, predicted = 64, 256, 64, 257, 4, 10
said = json.load(open("check.json"))
block = 4 * h * h + 2 * h * f + 9 * h + f
parameters = (v + t + 2 + 2) * h + blocks * block + h * h + 3 * h + v
assert said["parameters"] == said["trained_parameters"] == parameters, (said["parameters"], parameters)
assert said["masking"] == {"predicted": predicted, "mask_token": 256}, said["masking"]
# Two FLOPs for each weight, in the head of the predicted tokens; attention 2 h for each pair of tokens, twice.
weights = 2 * (t * blocks * (4 * h * h + 2 * h * f) + predicted * (h * h + v * h))
pairs = blocks * 4 * h * t * t
stage, = said["stages"]
forward, backward = 4 * (weights + pairs) / 1e12, 4 * (2 * weights + 2.5 * pairs) / 1e12
assert math.isclose(stage["forward_s"], forward, rel_tol=1e-3), (stage["forward_s"], forward)
assert math.isclose(stage["backward_s"], backward, rel_tol=1e-3), (stage["backward_s"], backward)
END
check 'parameters, and times of passes, by hand' python3 by-hand.py

accepts 'check' check job.yaml
check 'says what is predicted' \
	grep -q '  masks     of each sequence of 64 tokens 10 are predicted; in 8 of 10 cases token 256 stands in their place' "$out"
sed 's/vocabulary: 257/vocabulary: 257, masked: 0.5, mask_token: 3/' "$model" >half.yaml
accepts 'another part' check job.yaml --set model.file=half.yaml
check 'says how many' grep -q 'of 64 tokens 32 are predicted; in 8 of 10 cases token 3 ' "$out"
accepts 'shorter sequences' check job.yaml --set model.sequence=20
check 'have as large a part' grep -q 'of 20 tokens 3 are predicted' "$out"

# BERT-base has 109,514,298 parameters with its masked language model, as transformers counts them.
accepts 'BERT-base' check "$root/scenarios/bert.yaml" --json -q --set "model.file=$root/models/bert-base.yaml" --set train.arithmetic=none
cp "$out" check.json
check 'its parameters' python3 -c 'import json
said = json.load(open("check.json"))
assert said["parameters"] == 109514298 and said["tied_parameters"] == 30522 * 768, said["parameters"]
assert said["masking"] == {"predicted": 77, "mask_token": 103}, said["masking"]'
accepts 'BERT-base, simulated' sim "$root/scenarios/bert.yaml" -q --db "$scratch/loss.db" \
	--set "model.file=$root/models/bert-base.yaml" --set train.arithmetic=none --set train.until.steps=3 --set train.schedule.warmup=0

# ---- losses -------------------------------------------------------------------------------------------------------------------------

loss() { # loss [ARGUMENT...]: of the last round
	"$skep" sim "${job:-job.yaml}" --db "$scratch/loss.db" --json -q "$@" 2>"$err" | sed 's/.*"final_loss":\([^,]*\).*/\1/'
}
near() { # near A B: equal within 1e-6
	python3 -c 'import sys; a, b = map(float, sys.argv[1:]); assert abs(a - b) < 1e-6, (a, b)' "$@"
}
one=$(loss)
check 'the loss is a number' test -n "$one"
check 'the cut does not change the first one' \
	test "$(loss --set model.stages=3 --set train.until.steps=1)" = "$(loss --set train.until.steps=1)"
check 'nor the last, but for the order of sums' near "$(loss --set model.stages=3)" "$one"
first=$(loss --set train.until.steps=1) # samples of later steps have other numbers with another microbatch
check 'nor do microbatches of another size' near "$(loss --set schedule.microbatch=1 --set train.until.steps=1)" "$first"
check 'nor does each sample on its own in three stages' \
	near "$(loss --set model.stages=3 --set schedule.microbatch=1 --set train.until.steps=1)" "$first"
check 'nor do threads' test "$(loss --set cluster.threads=2)" = "$one"
check 'recomputed activations are of the same masks' test "$(loss --set schedule.checkpoint_activations=true)" = "$one"
check 'another seed has other ones' test "$(loss --seed 2)" != "$one"
check 'a frozen embedding leaves the head its bias' near "$(loss --set model.freeze=1 --set train.until.steps=1)" "$(loss --set train.until.steps=1)"
sed 's/vocabulary: 257/vocabulary: 257, tied: false/' "$model" >untied.yaml
check 'a head of its own learns otherwise' test "$(loss --set model.file=untied.yaml)" != "$one"
accepts 'such a one is pipelined without a flush' sim job.yaml --db "$scratch/loss.db" --set model.file=untied.yaml --set model.stages=3 \
	--set schedule.pipeline=pipedream --set schedule.global_batch=4
refuses 'a tied one is not' 'the head of tiny-bert is tied to its embedding' \
	check job.yaml --set model.stages=3 --set schedule.pipeline=pipedream --set schedule.global_batch=4
check 'it is judged' test -n "$(loss --set 'train.validate={every: 1, microbatches: 2}' --set 'train.data.validation=50 %')"

# ---- what there is no arithmetic for ------------------------------------------------------------------------------------------------

refuses 'ranks that share a stage' 'model tiny-bert is a BERT, whose norms and head are not split: take a gpt2 or a llama' \
	run "$root/scenarios/tensor-parallel.yaml" --set "model.file=$model"

# ---- weights ------------------------------------------------------------------------------------------------------------------------

for _ in {1..40}; do printf '%s' "!#\$%&'()*+,-./ "; done >small.txt # bytes below 48, the vocabulary of that model
sed "s,file: $model,file: $hf/config.json,; s,stages: 1,stages: 2\, sequence: 8,; s,corpus.txt,small.txt," job.yaml >theirs.yaml
first=(--set "train.init.weights=$hf" --set train.until.steps=1)
accepts 'weights of a BERT' check theirs.yaml "${first[@]}"
check 'check says what it begins with' grep -q 'begins    with the [0-9]* weights of .*bert/model.safetensors' "$out"
begun=$(job=theirs.yaml loss "${first[@]}")
check 'its first files say the same' \
	test "$(job=theirs.yaml loss --set "train.init.weights=$root/tests/data/hf/bert-old" --set train.until.steps=1)" = "$begun"
kept=(--set 'checkpoint={every: 1, to: kept}' --set train.optimizer.lr=1.0e-12)
accepts 'a step that changes next to nothing' sim theirs.yaml "${first[@]}" "${kept[@]}" --write-checkpoints -q --db "$scratch/loss.db"
accepts 'export' export theirs.yaml "${first[@]}" "${kept[@]}" -o exported
check 'the same weights as they were' python3 - "$hf" exported <<'END'
import json, struct, sys
def read(folder):
    raw = open(folder + "/model.safetensors", "rb").read()
    size, = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + size])
    header.pop("__metadata__", None)
    pieces = {name: raw[8 + size:][slice(*t["data_offsets"])] for name, t in header.items()}
    return {name: (t["shape"], struct.unpack(f"<{len(pieces[name]) // 4}f", pieces[name])) for name, t in header.items()}
a, b = map(read, sys.argv[1:])
assert a.keys() == b.keys(), a.keys() ^ b.keys()
for name in a:
    assert a[name][0] == b[name][0] and all(abs(x - y) < 1e-11 for x, y in zip(a[name][1], b[name][1])), name
config = json.load(open(sys.argv[2] + "/config.json"))
assert config["architectures"] == ["BertForMaskedLM"] and config["hidden_act"] == "gelu", config
assert config["mask_token_id"] == 47 and config["tie_word_embeddings"] is True, config
END
again=$(job=theirs.yaml loss --set model.file=exported/config.json --set train.init.weights=exported --set train.until.steps=1)
check 'which begin as theirs do' near "$again" "$begun"
plan
