#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# tensor.sh - stages that several ranks share. In every order of passes the losses are those of workers with whole stages, and so
# are the weights that are exported; what ranks send each other within passes is the published number of bytes, and between stages
# what the simulator sends, to the byte; a run goes on with what its shards have kept; it replays; and what does not go with it is
# refused with the place.
set -u
. tests/cli/lib.sh
needs python3 sqlite3 mpirun

mpi_environment

# Hosts with so many GPUs, for workers of so many stages.
hosts() { # hosts COUNT GPUS
	[ -e gpus ] || ln -s "$root/topologies/gpus" gpus
	cat >"hosts-$1-$2.yaml" <<-END
	name: hosts
	source: assumed for this test
	directory: rack
	sites:
	  rack:
	    machines: [{count: $1, gpu: v100, gpus: $2, inner: {bandwidth: 40 GB/s, latency: 5 us}, up: 10 Gbit/s, down: 10 Gbit/s}]
	    inside: {bandwidth: 10 Gbit/s, latency: 0.05 ms}
	END
}
hosts 2 2
hosts 4 2
hosts 1 4
hosts 2 3
cp "$root/models/text/tinyshakespeare.txt" text.txt
cat >small.yaml <<-'END'
name: small
kind: transformer
transformer: {architecture: gpt2, hidden: 48, heads: 4, blocks: 3, sequence: 32, vocabulary: 256}
END
cat >llama.yaml <<-'END'
name: small llama
kind: transformer
transformer: {architecture: llama, hidden: 48, heads: 8, kv_heads: 4, feed_forward: 96, blocks: 3, sequence: 32, vocabulary: 256}
END
cat >run.yaml <<-END
name: shared stages
seed: 7
model: {file: small.yaml, stages: 2}
cluster: {topology: hosts-4-2.yaml, allocation: {method: strided}, sequence_parallel: true}
schedule: {pipeline: 1f1b, global_batch: 16, microbatch: 2}
train:
  data: {corpus: text, file: text.txt}
  optimizer: {name: adamw, lr: 3.0e-3, clip_norm: 1.0}
  until: {steps: 20}
END
whole=(--set cluster.tensor_parallel=1 --set cluster.sequence_parallel=false)

# of DATABASE TOLERANCE: of all its runs, are the losses of each step those of the first one, and do they fall?
same() {
	python3 - "$@" <<-'END'
	import sqlite3, sys
	db, most = sqlite3.connect(sys.argv[1]), float(sys.argv[2])
	losses = [[r[0] for r in db.execute("SELECT loss FROM losses WHERE run = ? ORDER BY round", run)]
	          for run in db.execute("SELECT id FROM runs ORDER BY id").fetchall()]
	assert len(losses) > 1 and losses[0][-1] < losses[0][0] - 0.3, losses
	for other in losses[1:]:
	    off = [abs(a - b) for a, b in zip(losses[0], other)]
	    assert len(other) == len(losses[0]) and max(off) <= most, off
	END
}

# Between stages, the bytes of the last run in which ranks share them are those of the first one, and those of headers.
between() {
	python3 - "$1" <<-'END'
	import sqlite3, sys
	db = sqlite3.connect(sys.argv[1])
	sums = lambda run: db.execute("SELECT sum(bytes), sum(messages) FROM links WHERE run = ? AND traffic = 'pipeline'", (run,)).fetchone()
	(whole, messages), (shared, shared_messages) = sums(1), sums(2)
	assert shared_messages == 2 * messages, (messages, shared_messages)
	assert shared - whole == 96 * messages, (whole, shared, messages)
	END
}

# within FILE: the bytes that the run said are those of its 20 steps of 8 microbatches, N = 64 tokens of h = 48, in T = 2 ranks. Of
# V = 4 N h bytes a rank sends (T - 1) / T V in an all-gather and as much in a reduce-scatter. A block has two of each forwards;
# backwards, for each of its halves, two all-gathers, of the gradient and of what the product was of, and a reduce-scatter; the
# embedding a reduce-scatter and an all-gather, the head an all-gather, and backwards one and a reduce-scatter. Besides, of each token three
# numbers of each rank for the loss, the sums of gradients that all ranks have (6 h of a block, 2 h of the head) there and back,
# and single numbers: whether what each operation has made is finite, of each stage and step the norm of its gradients, and two by
# which the ranks of each worker compare behind its step what all of them have.
within() {
	python3 - "$1" <<-'END'
	import re, sys
	said = int(re.search(r"within passes they have sent each other (\d+) bytes", open(sys.argv[1]).read())[1])
	T, N, h, blocks = 2, 64, 48, 3
	V = 4 * N * h
	microbatch = (T - 1) * V * (10 * blocks + 2 + 3) + T * (T - 1) * 4 * 3 * N + 2 * (T - 1) * 4 * h * (6 * blocks + 2)
	single = 8 * (1 + 2) + 3 * 4 + 2 # passes that put something out, steps of four workers, norms of two stages
	right = 20 * (8 * microbatch + single * T * (T - 1) * 8)
	assert said == right, (said, right)
	END
}

for pipeline in 1f1b gpipe swarm; do
	rm -f "$pipeline.db"
	accepts "whole stages, $pipeline" run run.yaml -q --json --db "$pipeline.db" --set schedule.pipeline=$pipeline "${whole[@]}"
	accepts "shared stages, $pipeline" run run.yaml -q --json --db "$pipeline.db" --set schedule.pipeline=$pipeline
	cp "$err" "$pipeline.err"
	accepts "simulated, $pipeline" sim run.yaml -q --json --db "$pipeline.db" --set schedule.pipeline=$pipeline
	check "losses, $pipeline" same "$pipeline.db" 1e-5
	check "bytes between stages, $pipeline" between "$pipeline.db"
	check "bytes within passes, $pipeline" within "$pipeline.err"
done
accepts 'replay' replay --db 1f1b.db 2

rm -f four.db
one=(--set model.stages=1 --set schedule.global_batch=8 --set cluster.topology=hosts-1-4.yaml --set model.file=llama.yaml)
accepts 'llama, whole' run run.yaml -q --json --db four.db "${one[@]}" "${whole[@]}"
accepts 'llama, four ranks' run run.yaml -q --json --db four.db "${one[@]}"
accepts 'llama, two ranks' run run.yaml -q --json --db four.db "${one[@]}" --set cluster.tensor_parallel=2
accepts 'llama, four ranks that recompute' run run.yaml -q --json --db four.db "${one[@]}" --set schedule.checkpoint_activations=true
check 'losses of four and two ranks' same four.db 1e-5

# ---- with what else a stage can be -------------------------------------------------------------------------------------------

# both NAME OPTION ..: whole and shared stages learn the same.
both() {
	local name=$1 set=() option
	shift
	for option in "$@"; do set+=(--set "$option"); done
	rm -f both.db
	accepts "whole, $name" run run.yaml -q --json --db both.db "${set[@]}" "${whole[@]}"
	accepts "shared, $name" run run.yaml -q --json --db both.db "${set[@]}"
	check "losses, $name" same both.db 1e-5
}
both 'optimizers in shards of shards' sync.zero=1
both 'DiLoCo of shards' 'sync={method: diloco, every: 2, outer: {lr: 0.4, momentum: 0.9}}' schedule.accumulate=2 schedule.global_batch=8
both 'model chunks, and validation' schedule.pipeline=interleaved schedule.model_chunks=2 train.validate.every=8
both 'norms of whole tensors' train.optimizer.name=lamb train.optimizer.lr=1.0e-2

# ---- what is kept ---------------------------------------------------------------------------------------------------------------

keeps=(--set 'checkpoint={every: 5, to: kept}')
rm -f kept.db
accepts 'keeps' run run.yaml -q --json --db kept.db "${keeps[@]}" --set train.until.steps=10
accepts 'goes on' run run.yaml -q --json --db kept.db "${keeps[@]}" --resume
accepts 'the same in whole stages' run run.yaml -q --json --db kept.db --set 'checkpoint={every: 5, to: alone}' "${whole[@]}"
resumed() {
	python3 - <<-'END'
	import sqlite3
	kept, whole = sqlite3.connect("kept.db"), sqlite3.connect("1f1b.db")
	losses = lambda db, run: dict(db.execute("SELECT round, loss FROM losses WHERE run = ?", (run,)))
	on, through = losses(kept, 2), losses(whole, 2)
	assert sorted(on) == list(range(10, 20)) and all(on[r] == through[r] for r in on), (on, through)
	END
}
check 'as if it had not been stopped, to the bit' resumed
refuses 'another degree' 'several ranks share each stage' run run.yaml -q "${keeps[@]}" "${whole[@]}" --resume
accepts 'export of shards' export run.yaml -q "${keeps[@]}" -o shared
accepts 'export of whole stages' export run.yaml -q --set 'checkpoint={every: 5, to: alone}' "${whole[@]}" -o apart
weights() {
	python3 - <<-'END'
	import json, struct
	def read(path):
	    with open(path, "rb") as file:
	        head = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
	        data = file.read()
	    ret = {}
	    for name, t in head.items():
	        if name != "__metadata__":
	            begin, end = t["data_offsets"]
	            ret[name] = (t["shape"], struct.unpack("<%df" % ((end - begin) // 4), data[begin:end]))
	    return ret
	a, b = read("shared/model.safetensors"), read("apart/model.safetensors")
	assert a.keys() == b.keys() and len(a) > 10
	for name in a:
	    assert a[name][0] == b[name][0], name
	    off = max(abs(x - y) for x, y in zip(a[name][1], b[name][1]))
	    assert off < 2e-4, (name, off)
	END
}
check 'the same weights' weights

# ---- what is refused ------------------------------------------------------------------------------------------------------------

refuses 'degrees that do not divide heads' 'number of heads that is no multiple' run run.yaml --set cluster.topology=hosts-2-3.yaml
refuses 'no sequence' 'sequence_parallel: true' run run.yaml --set cluster.sequence_parallel=false
refuses 'too few processes' 'needs 10 processes, 2 of them the directory' run run.yaml -n 5
refuses 'steps beside passes' 'leave out sync.delayed' run run.yaml --set sync.delayed=true --set schedule.pipeline=swarm
refuses 'a scale in common' 'take .fp16., or none' run run.yaml --set sync.compression=int8
refuses 'served' 'only .skep run. starts as many' serve run.yaml
refuses 'a perceptron' 'run with --pace' run "$root/scenarios/two-datacentres.yaml" --set cluster.topology=hosts-4-2.yaml
accepts 'one process each, paced' run run.yaml -q --pace --set train.until.steps=2 --db paced.db
plan
