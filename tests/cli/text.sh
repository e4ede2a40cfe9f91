#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# text.sh - transformers learn a text in virtual time: either architecture, layers that share, a tied head, every optimizer; and the
# same losses to the bit in 1, 2 and 4 stages. A uniform guess costs 5.55 nats a byte, the frequencies of bytes 3.3.
set -u
. tests/cli/lib.sh
needs python3

loss() {
	python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["final_loss"])' "$out"
}

below() { # below BOUND: the run that was printed last has learnt, and counted every gradient once
	python3 - "$out" "$1" <<-'END'
	import json, sys
	run = json.load(open(sys.argv[1]))
	assert run["final_loss"] < float(sys.argv[2]), run["final_loss"]
	assert run["lost"] == 0 and run["issued"] == run["counted"] > 0, run
	assert run["tokens"] == 64 * run["samples"], run
	END
}

model() { # model NAME TEXT
	printf 'name: %s\nkind: transformer\ntransformer: {%s}\n' "$1" "$2" >"$1.yaml"
}

learns() { # learns NAME BOUND OPTION...
	accepts "$1" sim "$root/scenarios/shakespeare.yaml" --json -q --set train.until.steps=40 \
		--set 'train.schedule={warmup: 10}' --set train.optimizer.lr=1.0e-2 --set schedule.global_batch=16 "${@:3}"
	check "$1: loss below $2" below "$2"
}

sizes='hidden: 32, heads: 2, blocks: 4, sequence: 64, vocabulary: 256'
model tied "architecture: gpt2, tied: true, shared: 2, $sizes"
model llama "architecture: llama, kv_heads: 1, feed_forward: 88, $sizes"
model gpt2 "architecture: gpt2, $sizes"
learns 'gpt2' 3.1 --set model.file=gpt2.yaml --set 'train.validate={every: 15, microbatches: 8}' --set train.target_loss=3.3
judged() { # judged: what it makes of text that it has not seen, by step and time, and when it was good enough
	python3 - "$out" <<-'END'
	import json, math, sqlite3, sys
	run = json.load(open(sys.argv[1]))
	rows = sqlite3.connect("skep.db").execute("SELECT step, time_s, loss, perplexity, tokens, counted, bytes FROM"
		" v_validations WHERE run = ? ORDER BY round", (run["run_id"],)).fetchall()
	assert [row[0] for row in rows] == [15, 30, 40] and all(row[5] == 8 for row in rows), rows
	assert all(abs(row[3] - math.exp(row[2])) < 1e-6 * row[3] for row in rows), rows
	assert rows[-1][2] == run["final_validation_loss"] < 3.3 < rows[0][2], rows
	assert rows[-1][4] == run["tokens"] and rows[-1][6] == run["bytes_pipeline"] + run["bytes_sync"], rows
	assert run["time_to_target_s"] == min(row[1] for row in rows if row[2] <= 3.3), rows
	assert 0 < run["cost_to_target_usd"] <= run["cost_usd"] and run["steps"] == 40, run
	END
}
check 'gpt2: judged on text that is held out' judged
learns 'gpt2, tied and shared, in one stage' 3.5 --set model.file=tied.yaml --set model.stages=1
learns 'llama' 3.1 --set model.file=llama.yaml
learns 'llama, recomputed, compressed' 3.1 --set model.file=llama.yaml --set schedule.checkpoint_activations=true \
	--set schedule.compression=fp16 --set sync.compression=int8
learns 'LAMB' 3.4 --set model.file=gpt2.yaml --set 'train.optimizer={name: lamb, lr: 0.05}'
learns 'Nesterov' 3.4 --set model.file=llama.yaml --set 'train.optimizer={name: nesterov, lr: 0.1}'

# One worker in each stage and one microbatch a round: the sums have one order.
place 4
alone() { # alone STAGES
	run_skep sim "$root/scenarios/shakespeare.yaml" --json -q --set model.file=llama.yaml --set model.stages="$1" \
		--set cluster.topology=place-4.yaml --set "cluster.allocation={method: explicit, stage_of: $2}" \
		--set schedule.global_batch=4 --set train.until.steps=6 --set 'train.schedule={warmup: 2}'
	loss
}
one=$(alone 1 '[0, -1, -1, -1]') two=$(alone 2 '[0, 1, -1, -1]') four=$(alone 4 '[0, 1, 2, 3]')
if [ -n "$one" ] && [ "$one" = "$two" ] && [ "$one" = "$four" ]; then
	pass 'one loss in 1, 2 and 4 stages'
else
	fail 'one loss in 1, 2 and 4 stages' "$one, $two, $four"$'\n'"$(seen)"
fi

accepts 'check' check "$root/scenarios/shakespeare.yaml"
check 'check tells of the text' grep -q 'tinyshakespeare.txt: 1115394 tokens in 1 file: 15685 samples of 64 to train on' "$out"
check 'and of the learning rate' grep -q 'reached after 50 steps, then falling by a cosine to 10 % of that at step 400' "$out"
plan
