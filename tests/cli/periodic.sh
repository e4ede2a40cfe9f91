#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# periodic.sh - periodic sync, simulated: with one inner step of plain descent and an outer rate of 1 it is data parallelism; with
# H of them the reductions move 1/H of the bytes, every worker steps as the plan says, and results count inner steps.
set -u
. tests/cli/lib.sh
needs python3

descent periodic 6 384 24
diloco() { # diloco H OPTION ..
	accepts "H = $1" sim swarm.yaml --json -q --set sync.method=diloco --set "sync.every=$1" "${@:2}"
}

accepts 'a step at a time' sim swarm.yaml --json -q
diloco 1 --set sync.outer.optimizer=sgd
diloco 4 --set sync.outer.optimizer=sgd
diloco 12
diloco 5
diloco auto --set sync.mean_inner_steps=4 --set schedule.wiring=throughput --set sync.delayed=true
diloco 4 --set sync.compression=int8 --set schedule.on_loss=rerun --set sync.collective=tree

streaming() { # streaming H P OVERLAP OPTION ..
	accepts "P = $2" sim swarm.yaml --json -q --set sync.method=streaming --set "sync.every=$1" --set "sync.fragments=$2" \
		--set "sync.overlap_steps=$3" "${@:4}"
}
streaming 4 2 1 --set sync.outer.optimizer=sgd
streaming 6 3 0 --set schedule.on_loss=rerun
streaming 8 2 4 --set sync.compression=fp16
accepts 'without waiting' sim swarm.yaml --json -q --set sync.method=async --set sync.every=4 --set train.validate.every=8 \
	--set 'checkpoint={every: 2, to: here}'
accepts 'by share, in int8' sim swarm.yaml --json -q --set sync.method=async --set sync.every=auto --set sync.mean_inner_steps=4 \
	--set sync.compression=int8

compared() {
	python3 - <<-'END'
	import sqlite3
	db = sqlite3.connect("skep.db")
	of = lambda run, what: db.execute("SELECT %s FROM runs WHERE id = ?" % what, (run,)).fetchone()[0]
	losses = lambda run: [r[0] for r in db.execute("SELECT loss FROM losses WHERE run = ? ORDER BY round", (run,))]
	ops = lambda run: dict(db.execute("SELECT kind, count(*) FROM ops WHERE run = ? GROUP BY kind", (run,)))
	sync = lambda run: db.execute("SELECT sum(bytes) FROM links WHERE run = ? AND traffic = 'sync'", (run,)).fetchone()[0]
	plain, one = losses(1), losses(2)
	assert len(plain) == len(one) == 24 and plain[-1] < plain[0] / 2, plain
	assert all(abs(a / b - 1) < 1e-4 for a, b in zip(plain, one)), (plain, one)
	assert sync(1) == sync(2) == 4 * sync(3) == 12 * sync(4), [sync(r) for r in range(1, 5)]
	assert [of(r, "steps") for r in range(1, 8)] == [24, 24, 24, 24, 25, 24, 24]
	assert [len(losses(r)) for r in range(1, 8)] == [24, 24, 6, 2, 5, 6, 6]
	assert of(3, "samples") == 24 * 384 and of(5, "samples") == 25 * 384
	for run, rounds, h in (2, 24, 1), (3, 6, 4), (4, 2, 12):
	    assert ops(run)["inner_step"] == 6 * rounds * h and ops(run)["pseudo_grad"] == 6 * rounds == ops(run)["step"], ops(run)
	assert ops(6)["pseudo_grad"] <= 36 and 120 <= ops(6)["inner_step"] <= 6 * 36, ops(6)
	per_worker = db.execute("SELECT worker, round, count(*) FROM ops WHERE run = 3 AND kind = 'inner_step' GROUP BY 1, 2").fetchall()
	assert all(n == 4 for _, _, n in per_worker), per_worker
	assert losses(3)[-1] < 2 * plain[-1], (losses(3), plain)
	# each of P fragments of V is summed every H steps: headers but for, as much as without fragments
	assert 1 <= sync(8) / sync(3) < 1.01, (sync(8), sync(3))
	assert [len(losses(r)) for r in (8, 9, 10)] == [12, 12, 6] and losses(8)[-1] < 2 * plain[-1], (losses(8), plain)
	assert ops(8)["inner_step"] == 6 * 24 and ops(8)["pseudo_grad"] == ops(8)["step"] == 6 * 12, ops(8)
	late = db.execute("SELECT count(*) FROM ops AS step WHERE run = 8 AND kind = 'step' AND round < 11 AND NOT EXISTS (SELECT 1"
	                  " FROM ops WHERE run = 8 AND kind = 'inner_step' AND worker = step.worker AND round = step.round + 1"
	                  " AND end_s <= step.begin_s + 1e-9)").fetchone()[0]
	assert late < 66 / 2, late # who has nothing to do meanwhile applies it at once
	# each merge sends the part from each of three members to the next, and all three step
	for run in (11, 12):
	    assert ops(run)["pseudo_grad"] * 3 == ops(run)["step"] and of(run, "steps") == 24, ops(run)
	    assert losses(run)[-1] < 2 * plain[-1], (losses(run), plain)
	    kept = db.execute("SELECT verdict, count(*) FROM v_counted_once WHERE run = ? GROUP BY 1", (run,)).fetchall()
	    assert kept == [("kept", 2 * 24 * 24)], kept
	judged = db.execute("SELECT round, step, asked = counted, loss FROM validations WHERE run = 11 ORDER BY round").fetchall()
	assert [row[:3] for row in judged] == [(2, 8, 1), (4, 16, 1), (6, 24, 1)], judged
	assert judged[0][3] > 1.5 * judged[2][3] > 0, judged
	kept = db.execute("SELECT stage, round FROM notes WHERE run = 11 AND kind = 'checkpointed' ORDER BY 1, 2").fetchall()
	assert kept == [(s, r) for s in (0, 1) for r in (2, 4, 6)], kept
	merge = lambda run: sync(run) / ops(run)["pseudo_grad"]
	assert abs(2 * merge(11) / (sync(3) / 12) - 1) < 0.03, (merge(11), sync(3)) # half of a ring's
	END
}
check 'they are what they should be' compared

# ---- fixed pipelines ------------------------------------------------------------------------------------------------------------

# Of the same two stages, three pipelines. One inner step of plain descent is what a step of all is, and sums beside the last backward
# pass, which makes the inner step layer by layer, are what sums behind it are.
rm -f fixed.db
pipes=(--db fixed.db --set schedule.pipeline=1f1b --set sync.outer.optimizer=sgd)
accepts 'pipelines, a step at a time' sim swarm.yaml --json -q --db fixed.db --set schedule.pipeline=1f1b
beside=(--set sync.overlap=true --set 'sync.bucket=1 KiB')
for h in 1 4; do
	accepts "pipelines, H = $h" sim swarm.yaml --json -q "${pipes[@]}" --set sync.method=diloco --set sync.every=$h
	accepts "beside the pass, H = $h" sim swarm.yaml --json -q "${pipes[@]}" --set sync.method=diloco --set sync.every=$h "${beside[@]}"
done
accepts 'in flushes, and beside the pass' sim swarm.yaml --json -q "${pipes[@]}" --set sync.method=diloco --set sync.every=4 \
	--set schedule.pipeline=gpipe --set schedule.accumulate=2 "${beside[@]}"
accepts 'in fragments' sim swarm.yaml --json -q "${pipes[@]}" --set sync.method=streaming --set sync.every=4 --set sync.fragments=2 \
	--set sync.overlap_steps=0 --set sync.overlap=true
piped() {
	python3 - <<-'END'
	import sqlite3
	db = sqlite3.connect("fixed.db")
	losses = lambda run: [r[0] for r in db.execute("SELECT loss FROM losses WHERE run = ? ORDER BY round", (run,))]
	def same(a, b):
	    assert len(a) == len(b) > 0 and all(abs(x / y - 1) < 1e-4 for x, y in zip(a, b)), (a, b)
	same(losses(1), losses(2)), same(losses(2), losses(3)), same(losses(4), losses(5)), same(losses(4), losses(6))
	assert [len(losses(run)) for run in range(1, 8)] == [24, 24, 24, 6, 6, 6, 12] and losses(7)[-1] < losses(7)[0]
	count = lambda run, kind: db.execute("SELECT count(*) FROM ops WHERE run = ? AND kind = ?", (run, kind)).fetchone()[0]
	# six workers; beside the pass the last step of a round and its pseudo-gradient are made with it
	assert [count(run, "inner_step") for run in (2, 3, 4, 5, 6, 7)] == [144, 0, 144, 108, 108, 144]
	assert [count(run, "pseudo_grad") for run in (2, 3, 4, 5, 7)] == [144, 0, 36, 0, 72]
	assert all(n == "kept" for n, in db.execute("SELECT DISTINCT verdict FROM v_counted_once"))
	END
}
check 'they learn what a swarm learns' piped
fixed=(--set schedule.pipeline=1f1b --set sync.method=diloco --set sync.every=4)
refuses 'interleaved' 'sync.method: with `schedule.pipeline: interleaved`' check swarm.yaml "${fixed[@]}" --set schedule.pipeline=interleaved \
	--set schedule.model_chunks=2 --set schedule.global_batch=768
refuses 'delayed pipelines' 'sync.delayed: not with `pipeline: 1f1b`' check swarm.yaml "${fixed[@]}" --set sync.delayed=true
refuses 'as many steps as each can' 'sync.every: with `schedule.pipeline: 1f1b`' check swarm.yaml "${fixed[@]}" --set sync.every=auto \
	--set sync.mean_inner_steps=4
refuses 'steps by choice' 'sync.steps: with `schedule.pipeline: 1f1b`' check swarm.yaml "${fixed[@]}" --set sync.steps=fixed
refuses 'uneven rounds' 'sync.every: with `schedule.pipeline: 1f1b`' check swarm.yaml "${fixed[@]}" --set sync.method=streaming \
	--set sync.fragments=3 --set sync.overlap_steps=0
refuses 'an overlap with the next step' 'sync.method: with `schedule.pipeline: 1f1b`' check swarm.yaml "${fixed[@]}" \
	--set sync.method=streaming --set sync.fragments=2
refuses 'a norm of what is not there yet' 'train.optimizer.clip_norm: not with' check swarm.yaml "${fixed[@]}" --set sync.overlap=true \
	--set train.optimizer.clip_norm=1
refuses 'in a swarm' 'sync.overlap: a worker of a swarm' check swarm.yaml --set sync.method=diloco --set sync.every=4 --set sync.overlap=true

refuses 'keys of another method' 'sync.every: comes with `method: diloco`, `streaming`, `async` or `gossip` alone' check swarm.yaml --set sync.every=4
refuses 'auto without a mean' 'sync.every: .auto. needs sync.mean_inner_steps' check swarm.yaml --set sync.method=diloco --set sync.every=auto
refuses 'a mean and a number' 'sync.mean_inner_steps: comes with `every: auto` alone' check swarm.yaml --set sync.method=diloco --set sync.every=4 --set sync.mean_inner_steps=4
refuses 'nothing to mix' 'sync.mixing: a worker waits' check swarm.yaml --set sync.method=diloco --set sync.every=4 --set sync.mixing=0.5
refuses 'too many' 'sync.every: 50000 inner steps of 24 microbatches' check swarm.yaml --set sync.method=diloco --set sync.every=50000
refuses 'no period' 'key `sync.every` is missing' check swarm.yaml --set sync.method=diloco
streaming=(--set sync.method=streaming --set sync.every=4 --set sync.fragments=2)
refuses 'fragments of another method' 'sync.fragments: comes with `method: streaming` alone' check swarm.yaml --set sync.fragments=2
refuses 'an overlap of more than a round' 'sync.overlap_steps: expected' check swarm.yaml "${streaming[@]}" --set sync.overlap_steps=3
refuses 'an overlap of more than the shortest round' 'sync.overlap_steps: expected' check swarm.yaml "${streaming[@]}" --set sync.every=5 \
	--set sync.overlap_steps=3
refuses 'a pattern of nothing' 'sync.fragment_pattern: comes with `method: streaming` alone' check swarm.yaml --set sync.fragment_pattern=strided
refuses 'a deadline for nothing' 'sync.overlap_deadline: with `overlap_steps: 0`' check swarm.yaml "${streaming[@]}" --set sync.overlap_steps=0 --set sync.overlap_deadline=true
refuses 'delayed twice' 'sync.delayed: with `streaming`' check swarm.yaml "${streaming[@]}" --set sync.delayed=true
async=(--set sync.method=async --set sync.every=4)
refuses 'what it did meanwhile, in part' 'sync.mixing: with `method: async`' check swarm.yaml "${async[@]}" --set sync.mixing=0.5
accepts 'waiting for its own merge' sim swarm.yaml --json -q "${async[@]}" --set sync.delayed=false
waited() { # no pass between a pseudo-gradient and the step of its merge, and without that there are
	python3 - <<-'END'
	import sqlite3
	db = sqlite3.connect("skep.db")
	def beside(run):
	    ops = db.execute("SELECT worker, kind, begin_s, end_s, round FROM ops WHERE run = ? ORDER BY worker, begin_s", (run,)).fetchall()
	    total, since, last = 0, None, {}
	    for worker, kind, begin, end, number in ops:
	        if last.get(worker) is None:
	            last[worker], since = True, None
	        if kind == "pseudo_grad":
	            since = end
	        elif kind == "step" and (run, worker, number) in own:
	            since = None
	        elif kind in ("forward", "backward") and since is not None:
	            total += 1
	    return total
	own = set()
	for run in (11, 13):
	    for stage in (0, 1): # merge v of a stage is that of its vth MERGED worker
	        order, seen = [], {}
	        for worker, nth in db.execute("SELECT peer, time_s FROM notes WHERE run = ? AND kind = 'outer_updated' AND stage = ? ORDER BY rowid", (run, stage)):
	            if order and order[-1] == (worker, nth):
	                continue
	            order.append((worker, nth))
	        own |= {(run, worker, v) for v, (worker, _) in enumerate(order)}
	assert beside(13) == 0 < beside(11), (beside(13), beside(11))
	END
}
check 'makes no pass meanwhile' waited
# ---- fragments of strided layers ------------------------------------------------------------------------------------------------

# One worker in each stage, whose outer step is all of what it has come: plain descent, whatever is in which fragment.
cp swarm.yaml six.yaml
descent one-each 2 384 24
alone() { # alone PATTERN DB OPTION ..
	rm -f "$2"
	accepts "alone, $1" sim swarm.yaml --json -q --db "$2" --set train.arithmetic=real --set 'sync.outer={optimizer: sgd, lr: 1}' \
		--set sync.method=streaming --set sync.every=2 --set sync.fragments=2 --set sync.overlap_steps=0 \
		--set "sync.fragment_pattern=$1" "${@:3}"
}
alone strided strided.db
alone sequential sequential.db
rm -f plain.db
accepts 'alone, plain descent' sim swarm.yaml --json -q --db plain.db --set train.arithmetic=real
# The layers of square-mlp have 256, 16512 (seven times) and 129 parameters, five layers in stage 0 and four in stage 1: fragment 0 of
# two has layers 0, 2 and 4 of stage 0, fragment 1 has 1 and 3; of stage 1 layers 0 and 2, and 1 and 3. So long a pseudo-gradient takes.
strides() {
	python3 - <<-'END'
	import sqlite3
	def rows(db, what):
	    return sqlite3.connect(db).execute(what).fetchall()
	def losses(db):
	    return [r[0] for r in rows(db, "SELECT loss FROM rounds ORDER BY round")]
	plain = losses("plain.db")
	for other in ("strided.db", "sequential.db"):
	    assert len(plain) == 24 and all(abs(a / b - 1) < 1e-4 for a, b in zip(plain, losses(other), strict=True)), losses(other)
	layers = [256] + 7 * [16512] + [129]
	time = {}
	for stage, odd, seconds in rows("strided.db", "SELECT stage, round % 2, avg(end_s - begin_s) FROM ops WHERE kind = 'pseudo_grad' "
	                                              "GROUP BY 1, 2"):
	    time[stage, odd] = seconds
	for stage, first in ((0, 0), (1, 5)):
	    part = [sum(layers[first + f:5 if stage == 0 else 9:2]) for f in (0, 1)]
	    assert abs(time[stage, 0] / time[stage, 1] / (part[0] / part[1]) - 1) < 0.01, (stage, time, part)
	END
}
check 'and each fragment has every second layer' strides
refuses 'more fragments than layers' 'sync.fragment_pattern: 16 fragments of whole layers' check swarm.yaml --set sync.method=streaming \
	--set sync.every=16 --set sync.fragments=16 --set sync.fragment_pattern=strided
cp six.yaml swarm.yaml
gathers=("${async[@]}" --set sync.aggregate=zeno --set sync.collective=butterfly)
refuses 'nothing to sum' 'sync.collective: with `method: async` a merge has one part' check swarm.yaml "${async[@]}" --set sync.collective=tree
refuses 'parts of a mean' 'sync.group_size: comes with `method: async` and an `aggregate`' check swarm.yaml "${async[@]}" --set sync.group_size=3
refuses 'two parts' 'sync.group_size: of 2 parts none can be left out' check swarm.yaml "${gathers[@]}" --set sync.group_size=2
refuses 'waiting for those who wait' 'sync.delayed: a worker whose part waits' check swarm.yaml "${gathers[@]}" --set sync.delayed=false
refuses 'no delayed descent' 'sync.outer.optimizer: with `method: async`' check swarm.yaml "${async[@]}" --set sync.outer.optimizer=sgd
refuses 'a buffer of nothing' 'sync.outer.buffer: comes with `method: async` alone' check swarm.yaml --set sync.method=diloco --set sync.every=4 --set sync.outer.buffer=2
refuses 'what overlaps cannot be run again' 'sync.method: a round that is reduced|sync.overlap_steps: a round' check swarm.yaml "${streaming[@]}" --set schedule.on_loss=rerun

# A codec for each stage: of each stage the bytes of a run in which all have that one, and all of them those that are planned.
by_stage() {
	accepts 'a codec for each stage, planned' check swarm.yaml --json "${mixed[@]}" "$@"
	cp "$out" planned.json
	accepts 'that, simulated' sim swarm.yaml --json -q --db stages.db "${mixed[@]}" "$@"
	cp "$out" mixed.json
	for codec in int8 none; do
		accepts "all with $codec" check swarm.yaml --json "${mixed[@]}" "$@" --set "sync.compression=$codec"
		cp "$out" "$codec.json"
	done
}
as_planned() { # as_planned ROUNDS
	python3 - "$1" <<-'END'
	import json, sys
	planned, run, int8, none = (json.load(open(f"{name}.json")) for name in ("planned", "mixed", "int8", "none"))
	of = lambda plan: [s["sync_bytes"] for s in plan["stages"]]
	assert of(planned) == [of(int8)[0], of(none)[1]] and of(planned)[0] < of(none)[0], (of(planned), of(int8), of(none))
	assert planned["bytes_sync_per_round"] == sum(of(planned)) and run["bytes_sync"] == int(sys.argv[1]) * sum(of(planned)), run
	assert planned["reduction_compression"] == ["int8", "none"] and planned["reduction_compression_block"] == 64, planned
	assert none["reduction_compression"] == "none" and none["reduction_compression_block"] is None, none
	memory = lambda plan: [s["memory_bytes"] for s in plan["stages"]]
	assert memory(planned) == [memory(int8)[0], memory(none)[1]], (memory(planned), memory(int8), memory(none))
	END
}
mixed=(--set sync.method=diloco --set sync.every=4 --set 'sync.compression=[int8, none]')
by_stage
check 'each stage has the bytes of its own codec' as_planned 6
by_stage --set sync.collective=chain
check 'round a chain too' as_planned 6
mixed=(--set 'sync.compression=[int8, none]')
by_stage --set sync.collective=butterfly --set cluster.compute.type=fp32
check 'and of gradients' as_planned 24
accepts 'what travels in 2 bytes' check swarm.yaml --json "${mixed[@]}" --set train.arithmetic=none --set cluster.compute.type=fp16
check 'is no codec, of that stage' grep -q '"reduction_compression":.*"int8",.*"none"' <(tr -d '\n\t' <"$out")
accepts 'in words' check swarm.yaml "${mixed[@]}"
check 'by stage' grep -q 'what is reduced as int8, fp32, by stage' "$out" "$err"
refuses 'a codec for too few stages' 'sync.compression: a list has one codec for each stage, 2 of them, and here are 1' check swarm.yaml \
	--set 'sync.compression=[int8]'
plan
