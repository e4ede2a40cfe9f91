#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# experts.sh - mixtures of experts from the command line: what check says and what passes take, in closed form; losses that no cut
# changes; weights of a Mixtral in and out; what is refused.
set -u
. tests/cli/lib.sh
needs python3

name=experts model=$root/models/tiny-mixtral.yaml hf=$root/tests/data/hf/mixtral
. "$root/tests/cli/lib_model.sh"

# ---- costs, by hand: h 64, f 88, 4 of 8 heads' width for keys and values, 4 blocks, 256 tokens of the vocabulary, sequences of 64 ------

cat >by-hand.py <<'END'
import json, math
h, f, t, v, blocks, count, per_token = 64, 88, 64, 256, 4, 8, 2
said = json.load(open("check.json"))
expert = 3 * h * f
attention, router, ends = 3 * h * h, h * count, 2 * v * h
parameters = blocks * (attention + router + count * expert + 2 * h) + ends + h
assert said["parameters"] == said["trained_parameters"] == parameters, (said["parameters"], parameters)
met = parameters - blocks * (count - per_token) * expert
assert said["experts"] == {"count": 8, "per_token": 2, "parameters_per_token": met, "capacity": 256}, said["experts"]
# Two FLOPs for each weight that a token meets, the head's among them; attention 2 h for each pair that the causal mask leaves, twice.
weights = 2 * t * (blocks * (attention + router + per_token * expert) + v * h)
pairs = blocks * 4 * h * t * (t + 1) / 2
stage, = said["stages"]
forward, backward = 4 * (weights + pairs) / 1e12, 4 * (2 * weights + 2.5 * pairs) / 1e12
assert math.isclose(stage["forward_s"], forward, rel_tol=1e-3), (stage["forward_s"], forward)
assert math.isclose(stage["backward_s"], backward, rel_tol=1e-3), (stage["backward_s"], backward)
END
check 'parameters, and times of passes, by hand' python3 by-hand.py

accepts 'check' check job.yaml
check 'says what a token meets' \
	grep -q '  experts   8 in each block, 2 for each token, whose weights sum to 1: it meets 219712 of 625216 parameters, 35.1 %' "$out"
check 'and what is added to the loss' grep -q 'losses of each router: balance 0.01, z 0.001' "$out"
sed 's/per_token: 2,/per_token: 2, capacity_factor: 1.25,/' "$model" >capped.yaml
accepts 'a capacity' check job.yaml --set model.file=capped.yaml
check 'says how many tokens' grep -q 'each takes at most 80 of the 256 tokens of a microbatch' "$out" # 1.25 x 2 x 256 / 8
accepts 'check of a model without experts' check job.yaml --set "model.file=$root/models/tiny-llama.yaml"
check 'says nothing of them' test "$(grep -c experts "$out")" = 1 # the scenario's name

# Mixtral 8x7B has 46.7 billion parameters, and a token meets 12.9 of them (Jiang et al. 2024).
accepts 'Mixtral 8x7B' check "$root/scenarios/mixtral-8x7b.yaml" --json -q
cp "$out" check.json
cat >published.py <<'END'
import json
h, f, kv, v, blocks, count, per_token = 4096, 14336, 1024, 32000, 32, 8, 2
said = json.load(open("check.json"))
block = h * (2 * h + 2 * kv) + h * count + count * 3 * h * f + 2 * h
parameters = blocks * block + 2 * v * h + h
met = parameters - blocks * (count - per_token) * 3 * h * f
assert said["parameters"] == parameters == 46702792704, said["parameters"]
assert said["experts"]["parameters_per_token"] == met and round(met / 1e9, 1) == 12.9, said["experts"]
assert said["stages"][1]["parameters"] == 2 * block, said["stages"][1]  # all experts of both blocks are there
# A ring of two sends all twice, 2 bytes each, and some headers.
assert 0 <= said["stages"][1]["sync_bytes"] - 2 * 2 * 2 * block < 1e4, said["stages"][1]
END
check 'its parameters, and what of them a stage holds and reduces' python3 published.py
accepts 'what fills a GPU' check "$root/scenarios/mixtral-8x7b.yaml"
check 'weights, gradients and moments of all experts' grep -q '    1  H100-SXM5-80  5.81 GB    11.6 GB    34.8 GB ' "$out"

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
check 'nor do threads' test "$(loss --set cluster.threads=2)" = "$one"
check 'recomputed activations route as before' test "$(loss --set schedule.checkpoint_activations=true)" = "$one"
check 'a capacity does' test "$(loss --set model.file=capped.yaml)" != "$one"
sed 's/, aux_loss: 0.01, z_loss: 0.001//' "$model" >plain.yaml
check 'and so do the losses of the router' test "$(loss --set model.file=plain.yaml)" != "$one"
sed 's/per_token: 2,/per_token: 1,/' "$model" >switch.yaml
accepts 'one expert per token' sim job.yaml --set model.file=switch.yaml --db "$scratch/loss.db"

# ---- loads ------------------------------------------------------------------------------------------------------------------------

balance() { # balance EXPRESSION [ARGUMENT...]: of the summary of a run
	"$skep" sim job.yaml --db "$scratch/loss.db" --json -q "${@:2}" >ran.json 2>"$err" &&
		python3 -c 'import json, sys
one, run = (json.load(open(f)) for f in ("one.json", "ran.json"))
assert eval(sys.argv[1]), run' "$1"
}
"$skep" sim job.yaml --db "$scratch/loss.db" --json -q >one.json 2>"$err"
check 'the fullest expert has more than the mean' balance '1 < run["expert_imbalance"] <= 4 and run["expert_dropped"] == 0 and run["expert_balance"] > 1.9'
check 'passes that are done again are not counted again' \
	balance 'all(run[k] == one[k] for k in one if k.startswith("expert_"))' --set schedule.checkpoint_activations=true
check 'what is dropped is said' balance '0 < run["expert_dropped"] < 0.5' --set model.file=capped.yaml
check 'the database has it' python3 - "$scratch/loss.db" <<'END'
import json, sqlite3, sys
run = json.load(open("ran.json"))
row = sqlite3.connect(sys.argv[1]).execute("SELECT expert_imbalance, expert_dropped, expert_balance FROM runs WHERE id = ?", (run["run_id"],)).fetchone()
assert row == (run["expert_imbalance"], run["expert_dropped"], run["expert_balance"]), row
END
check 'a model without experts has none' \
	balance 'run["expert_imbalance"] is None and run["expert_balance"] is None' --set "model.file=$root/models/tiny-llama.yaml"
run_skep sim job.yaml --db "$scratch/loss.db"
check 'the summary says it' grep -q '  experts       the fullest has [0-9.]* times the tokens of the mean, load balance [0-9.]*$' "$out" "$err"

# ---- weights ------------------------------------------------------------------------------------------------------------------------

for _ in {1..40}; do printf '%s' "!#\$%&'()*+,-./ "; done >small.txt # bytes below 48, the vocabulary of that model
sed "s,file: $model,file: $hf/config.json,; s,stages: 1,stages: 2\, sequence: 8,; s,corpus.txt,small.txt," job.yaml >theirs.yaml
first=(--set "train.init.weights=$hf" --set train.until.steps=1)
accepts 'weights of a Mixtral' check theirs.yaml "${first[@]}"
check 'check says what it begins with' grep -q 'begins    with the 41 weights of .*mixtral/model.safetensors' "$out"
check 'and with what load balance' grep -q 'losses of each router: balance 0.01, z 0' "$out" # 0.02 over two blocks
begun=$(job=theirs.yaml loss "${first[@]}")
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
assert config["architectures"] == ["MixtralForCausalLM"] and config["num_local_experts"] == 4, config
assert "router_jitter_noise" not in config and isinstance(config["router_aux_loss_coef"], float), config
assert config["output_router_logits"] is True and config["router_aux_loss_coef"] == 0.02, config
END
again=$(job=theirs.yaml loss --set model.file=exported/config.json --set train.init.weights=exported --set train.until.steps=1)
check 'which begin as theirs do' near "$again" "$begun"
accepts 'a Switch, kept' sim job.yaml --set model.file=switch.yaml "${kept[@]}" --write-checkpoints -q --db "$scratch/loss.db"
refuses 'whose weights a Mixtral would take otherwise' 'model tiny-mixtral has experts whose weights are not renormalized' \
	export job.yaml --set model.file=switch.yaml "${kept[@]}" -o switched
plan
