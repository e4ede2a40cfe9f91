#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# weights.sh - a config.json as a model file, weights of others to begin with, all that differs when they do not fit, and runs
# exported.
set -u
. tests/cli/lib.sh
needs python3

hf=$root/tests/data/hf
place 3
for _ in {1..40}; do printf '%s' "!#\$%&'()*+,-./ "; done >corpus.txt # bytes below 48, the vocabulary of those models

job_of() { # job_of FILE MODEL STAGES INIT
	cat >"$1" <<-END
	name: weights
	seed: 1
	model: {file: $2, stages: $3, sequence: 8}
	cluster: {topology: place-3.yaml, allocation: {method: strided}}
	schedule: {global_batch: 4, microbatch: 4}
	train:
	  data: {corpus: text, file: corpus.txt}
	  init: {weights: $4}
	  until: {steps: 1}
	END
}

loss() { # loss SCENARIO [ARGUMENT...]: of its first round
	"$skep" sim --db "$scratch/loss.db" --json -q "$@" 2>"$err" | sed 's/.*"final_loss":\([^,]*\).*/\1/'
}

job_of llama.yaml "$hf/llama/config.json" 2 "$hf/llama"
accepts 'a config.json as a model file' check llama.yaml
check 'check says what it begins with' grep -q 'begins    with the 21 weights of .*llama/model.safetensors.index.json' "$out"
one=$(loss llama.yaml --set model.stages=1) two=$(loss llama.yaml)
check 'the first loss is a number' test -n "$one"
check 'the cut does not change it' test "$one" = "$two"
sed '/init:/d' llama.yaml >drawn.yaml
check 'weights that are drawn give another one' test "$(loss drawn.yaml)" != "$one"

job_of gpt2.yaml "$hf/gpt2/config.json" 1 "$hf/gpt2"
accepts 'a GPT-2' check gpt2.yaml
accepts 'its sequence as long as the context' check gpt2.yaml --set model.sequence=16
refuses 'a sequence longer than the context' '17 tokens are longer than the context of gpt2: expected at most 16' \
	check gpt2.yaml --set model.sequence=17
tied=(gpt2.yaml --set model.stages=2)
accepts 'a tied head in two stages' check "${tied[@]}"
check 'check says who holds a copy' grep -q 'stages 0 and 1 each hold a copy of the embedding.s table, 768 parameters' "$out"
check 'its first loss is that in one stage' test "$(loss "${tied[@]}")" = "$(loss gpt2.yaml)"
refuses 'and not in pairs' 'tied to its embedding' check "${tied[@]}" --set 'sync={method: gossip, every: 2}'
refuses 'and not without waiting' 'tied to its embedding' check "${tied[@]}" --set 'sync={method: async, every: 2}'
check 'which names the key of that kind of file' grep -q 'or `"tie_word_embeddings": false` in the model' "$err"
# Untied, the head begins as a copy of the table, as in transformers: so the first loss is the same, over two stages too.
mkdir untied
sed 's/"tie_word_embeddings": true/"tie_word_embeddings": false/' "$hf/gpt2/config.json" >untied/config.json
grep -q '"tie_word_embeddings": false' untied/config.json || sed -i '0,/{/s//{"tie_word_embeddings": false,/' untied/config.json
untied=(gpt2.yaml --set model.file=untied/config.json --set model.stages=2)
accepts 'its weights without a head, in two stages' check "${untied[@]}"
check 'check says what the head is' grep -q 'and a copy of transformer.wte.weight as lm_head.weight, which is not there' "$out"
check 'the first loss is that of the tied one' test "$(loss "${untied[@]}")" = "$(loss gpt2.yaml)"
run_skep sim "${untied[@]}" --db "$scratch/loss.db"
check 'a run says it too' grep -q 'has no lm_head.weight: the head begins as a copy of transformer.wte.weight' "$err"
accepts 'a tied one has nothing to say' sim gpt2.yaml --db "$scratch/loss.db"
check 'and says nothing' test "$(grep -c lm_head "$err")" = 0

# What does not fit is said at the key, all of it.
sed "s,weights: .*},weights: $hf/gpt},"  gpt2.yaml >none.yaml
refuses_at 'weights that are not there' none.yaml:8:19 'no file or folder' sim none.yaml
sed "s,weights: .*},weights: $hf/llama}," gpt2.yaml >other.yaml
refuses_at 'weights of another model' other.yaml:8:19 'does not fit the model: 28 weights missing, 0 of another shape' sim other.yaml
check 'all that are missing' test "$(grep -c '^missing: transformer\.' "$err")" = 28
check 'all that are unknown' test "$(grep -c '^unknown: model\.' "$err")" = 20
head -c 9000 "$hf/gpt2/model.safetensors" >cut.safetensors
sed "s,weights: .*},weights: cut.safetensors}," gpt2.yaml >cut.yaml
refuses_at 'weights that are cut short' cut.yaml:8:19 'is cut short' sim cut.yaml
refuses 'weights for a model without an architecture' 'only models with an architecture' \
	check "${quick[@]}" --set train.init.weights=cut.safetensors
# Headers that lie: one file each, made of a good one.
python3 - "$hf/gpt2/model.safetensors" <<-'END'
	import json, struct, sys
	raw = open(sys.argv[1], "rb").read()
	size = struct.unpack("<Q", raw[:8])[0]
	header, data = json.loads(raw[8:8 + size]), raw[8 + size:]
	def put(name, header, size=None):
	    text = json.dumps(header).encode()
	    open(name + ".safetensors", "wb").write(struct.pack("<Q", len(text) if size is None else size) + text + data)
	def changed(name, **what):
	    return {**header, name: {**header[name], **what}}
	wide, narrow = "transformer.h.0.attn.c_attn.weight", "transformer.h.0.ln_1.bias"
	other = {("bias" if k == narrow else k): v for k, v in changed(wide, shape=header[wide]["shape"][::-1]).items()}
	put("shapes", other)
	put("long", header, 2 * len(raw))
	put("overlap", {**header, "another": header[narrow]})
END
begins_with() { sed "s,weights: .*},weights: $1.safetensors}," gpt2.yaml >"$1.yaml"; }
begins_with shapes
refuses_at 'weights of another shape and name' shapes.yaml:8:19 '1 weights missing, 1 of another shape, .* 1 that the model does not have' sim shapes.yaml
check 'which is listed with both shapes' grep -qx 'shape: transformer.h.0.attn.c_attn.weight is \[48, 16\], the model has \[16, 48\]' "$err"
check 'and so are both names' test "$(grep -cE '^(missing: transformer.h.0.ln_1.bias \[16\]|unknown: bias \[16\])$' "$err")" = 2
begins_with long
refuses_at 'a header larger than its file' long.yaml:8:19 'is cut short: a header of [0-9]+ bytes in a file of [0-9]+' sim long.yaml
begins_with overlap
refuses_at 'offsets that overlap' overlap.yaml:8:19 overlap sim overlap.yaml

# Texts that do not fit.
sed '/init:/d' gpt2.yaml >text.yaml
printf '%s' 'the bytes of letters are beyond a vocabulary of 48' >letters.txt
refuses 'tokens beyond the vocabulary' 'letters.txt: token 0 \(from 0\) is 116, but the model knows 48 \(0 to 47\)' \
	check text.yaml --set train.data.file=letters.txt
: >nothing.txt
refuses 'an empty corpus' 'nothing.txt: is empty: expected tokens' check text.yaml --set train.data.file=nothing.txt
printf '!#$' >short.txt
refuses 'a corpus shorter than a sample' 'short.txt: has 3 tokens, but one sample takes 9' check text.yaml --set train.data.file=short.txt
sed 's/"n_head": 2/"n_head": 3/' "$hf/gpt2/config.json" >config.json
refuses_at 'a config.json whose heads do not divide' config.json:14:13 'n_head: expected a divisor' check gpt2.yaml --set model.file=config.json

printf '{"model_type": "gpt2",\n "n_embd": {"n":1}\n\n' >ends.json
refuses_at 'a config.json that ends too early' ends.json:2:18 'not JSON: the file ends here' check gpt2.yaml --set model.file=ends.json
printf '{"model_type": "gpt2",\n "n_embd": }}\n' >wrong.json
refuses_at 'one that is no JSON inside' wrong.json:2:12 'not JSON: this cannot stand here' check gpt2.yaml --set model.file=wrong.json

# A model is named by its folder, whatever it is called by.
mkdir mine
cp "$hf/gpt2/config.json" mine
accepts 'a model in a folder' check text.yaml --json --set model.file=mine/config.json
check 'has its name' grep -q '"model":"mine"' "$out"
(cd mine && "$skep" check ../text.yaml --json --set model.file=config.json >"$out" 2>"$err")
check 'from within it, too' grep -q '"model":"mine"' "$out"

refuses 'an export without a folder' 'export needs -o FOLDER' export llama.yaml
refuses 'an export without checkpoints' 'keeps no checkpoints' export llama.yaml -o out
refuses 'an export before the run' 'has no checkpoint of all 2 stages: `skep run` of this scenario keeps them \(`skep sim` with --write-checkpoints alone' export llama.yaml -o out --set checkpoint.every=2 --set checkpoint.to=kept
refuses 'an export of a perceptron' 'no architecture' export "${quick[@]}" -o out
refuses 'an export of step 0' '--step 0: expected' export llama.yaml -o out --step 0

if [ "${SKEP_HAS_MPI:-yes}" = no ]; then
	skip 'runs exported' 'this build has no MPI'
	plan
	exit
fi
mpi_environment
keeps=(--set train.until.steps=5 --set checkpoint.every=2 --set checkpoint.to=kept)
accepts 'a run that keeps checkpoints' run llama.yaml "${keeps[@]}" -q --db "$scratch/run.db"
accepts 'its export' export llama.yaml "${keeps[@]}" -o out --json
check 'of its newest step' grep -qx '{"step":5,"weights":21,"parameters":6992}' "$out"
accepts 'that of an older step, in 16 bits' export llama.yaml "${keeps[@]}" -o out16 --step 2 --bf16
check 'which takes half the room' test $((2 * $(wc -c <out16/model.safetensors))) -lt $((3 * $(wc -c <out/model.safetensors) / 2))
refuses 'a step that is not there' 'has no checkpoint of all 2 stages of step 3, but of steps 2, 4, 5' export llama.yaml "${keeps[@]}" -o out3 --step 3
refuses 'a state of another seed' '6 states of stages, all of runs with another seed or scenario.*; seed is 2, and was [0-9]+$' export llama.yaml "${keeps[@]}" --seed 2 -o out2
accepts 'a run of another seed, and shorter' run llama.yaml "${keeps[@]}" --seed 2 --set train.until.steps=3 -q --db "$scratch/run.db"
check 'says where the states of the first one are' grep -qx 'skep: kept had 6 states that another run has kept, now in kept/run-\*: remove what is not needed' "$err"
accepts 'its export, asked for by more steps' export llama.yaml "${keeps[@]}" --seed 2 -o out2 --json
check 'is its own' grep -qx '{"step":3,"weights":21,"parameters":6992}' "$out"
accepts 'the first one is still there' export llama.yaml "${keeps[@]}" --set checkpoint.to="$(echo kept/run-*)" -o out1 --json
check 'with the same numbers' cmp out/model.safetensors out1/model.safetensors
# Rounds of 4 inner steps.
inner=(--set 'sync={method: diloco, every: 4}' --set train.until.steps=16 --set checkpoint.every=2 --set checkpoint.to=far)
accepts 'a run with periodic sync' run llama.yaml "${inner[@]}" -q --json --db "$scratch/run.db"
check 'counts inner steps' grep -q '"steps":16,' "$out"
accepts 'and so does its export' export llama.yaml "${inner[@]}" -o outer --step 8 --json
check 'in what it says' grep -q '"step":8,' "$out"
refuses 'no step in the middle of a round' 'of step 2, but of steps 8, 16' export llama.yaml "${inner[@]}" -o outer --step 2
# A tied head in two stages: files have one table, and whoever reads them gets both copies from it.
accepts 'a run with a tied head' run "${tied[@]}" "${keeps[@]}" --set checkpoint.to=tied -q --db "$scratch/run.db"
accepts 'its export, the table once' export "${tied[@]}" "${keeps[@]}" --set checkpoint.to=tied -o tied1 --json
check 'as many weights as the file that it began with' grep -q '"weights":28,"parameters":' "$out"
check 'and the same word in its config.json' grep -q '"tie_word_embeddings":.*true' tied1/config.json
job_of alone.yaml tied1/config.json 1 tied1
alone=$(loss alone.yaml)
check 'which another skep begins with' test -n "$alone" -a "$alone" = "$(loss alone.yaml --set model.stages=2)" -a "$alone" != "$(loss gpt2.yaml)"
job_of again.yaml out/config.json 3 out
accepts 'a run of it, cut in three' check again.yaml
check 'which begins elsewhere' test "$(loss again.yaml)" != "$one"
plan
