#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# periodic.sh - periodic sync for real. One inner step of plain descent and an outer rate of 1 learn what a step of all does, and
# what the simulator learns; with four of them a quarter of the bytes travel, each worker makes a step for each part of a round
# that it was sent, and the machines decide the same when the run is replayed. And with a worker that is killed and comes back.
set -u
. tests/cli/lib.sh
needs python3 mpirun

mpi_environment

descent periodic 4 256 12
one=(--set sync.method=diloco --set sync.every=1 --set sync.outer.optimizer=sgd)
four=(--set sync.method=diloco --set sync.every=4)

accepts 'a step at a time' run swarm.yaml --json -q
accepts 'one inner step' run swarm.yaml --json -q "${one[@]}"
accepts 'simulated' sim swarm.yaml --json -q "${one[@]}"
accepts 'four' run swarm.yaml --json -q "${four[@]}"
accepts 'replay of four' replay 4
accepts 'four, delayed, in int8' run swarm.yaml --json -q "${four[@]}" --set sync.delayed=true --set sync.compression=int8
accepts 'replay of that' replay 5
accepts 'streaming' run swarm.yaml --json -q --set sync.method=streaming --set sync.every=4 --set sync.fragments=2 \
	--set sync.fragment_pattern=strided
accepts 'replay of streaming' replay 6
printf '%s,join,n%d\n' 0 1 0 2 0 3 0 4 >churn.csv
printf '1,leave,n1\n3,join,n1\n100,end,\n' >>churn.csv
loses 1 'with a loss' run swarm.yaml --json -q "${four[@]}" --pace --set cluster.compute_scale=5000 \
	--set train.until.steps=80 --set cluster.trace.file=churn.csv --set 'directory.heartbeat=100 ms' \
	--set 'directory.timeout=500 ms'
# Who merges first is the machine's doing; with less momentum than usual three rounds learn whatever that is.
accepts 'without waiting' run swarm.yaml --json -q --set sync.method=async --set sync.every=4 --set train.validate.every=4 \
	--set 'sync.outer={optimizer: nesterov, lr: 0.7, momentum: 0.5}' --set 'checkpoint={every: 2, to: kept}'
accepts 'replay of that' replay 8
check 'which kept what it had learnt' test "$(ls kept)" = "$(printf '%s\n' files scenario.yaml stage-0-version-{2,3}.kept stage-1-version-{2,3}.kept)"
loses 1 'and with a loss' run swarm.yaml --json -q --set sync.method=async --set sync.every=4 --pace --set cluster.compute_scale=5000 \
	--set train.until.steps=80 --set cluster.trace.file=churn.csv --set 'directory.heartbeat=100 ms' \
	--set 'directory.timeout=500 ms'
uneven=(--set sync.method=streaming --set sync.every=5 --set sync.fragments=3)
accepts 'five steps in three fragments' run swarm.yaml --json -q "${uneven[@]}"
accepts 'replay of that' replay 10
accepts 'the same, simulated' sim swarm.yaml --json -q "${uneven[@]}"
pipes=(--set schedule.pipeline=1f1b --set sync.method=diloco --set sync.every=2 --set sync.overlap=true --set 'sync.bucket=1 KiB')
accepts 'beside the backward pass' run swarm.yaml --json -q "${pipes[@]}"
accepts 'replay of that' replay 12
accepts 'the same, simulated' sim swarm.yaml --json -q "${pipes[@]}"
stages=(--set schedule.pipeline=1f1b --set sync.method=diloco --set sync.every=2 --set 'sync.compression=[int8, none]')
accepts 'a codec for each stage' run swarm.yaml --json -q "${stages[@]}"
accepts 'replay of that' replay 14
accepts 'the same, simulated' sim swarm.yaml --json -q "${stages[@]}"
accepts 'and planned' check swarm.yaml --json "${stages[@]}"
cp "$out" planned.json

compared() {
	python3 - <<-'END'
	import json, sqlite3
	db = sqlite3.connect("skep.db")
	losses = lambda run: [r[0] for r in db.execute("SELECT loss FROM losses WHERE run = ? ORDER BY round", (run,))]
	ops = lambda run: dict(db.execute("SELECT kind, count(*) FROM ops WHERE run = ? GROUP BY kind", (run,)))
	sync = lambda run: db.execute("SELECT sum(bytes) FROM links WHERE run = ? AND traffic = 'sync'", (run,)).fetchone()[0]
	def inner_steps(run):
	    rows = db.execute("SELECT worker, round, count(*) FROM ops WHERE run = ? AND kind = 'inner_step' GROUP BY 1, 2", (run,))
	    return {(worker, round): steps for worker, round, steps in rows}
	# A worker steps before it goes backwards with a microbatch of a later step than those before it, and once at the end. What it
	# is sent, and in which order, is the machine's doing; so each is held to what it has really been sent.
	def due(run, batch):
	    reached, steps = {}, {}
	    for worker, round, microbatch in db.execute("SELECT worker, round, microbatch FROM ops WHERE run = ? AND "
	                                                "kind = 'backward' ORDER BY begin_s", (run,)):
	        key, nth = (worker, round), microbatch // batch
	        if nth > reached.get(key, -1):
	            reached[key], steps[key] = nth, steps.get(key, 0) + 1
	    return steps
	step, inner, simulated = losses(1), losses(2), losses(3)
	assert len(step) == len(inner) == len(simulated) == 12
	assert all(abs(a / b - 1) < 1e-4 for a, b in zip(inner, step)), (inner, step)
	assert all(abs(a / b - 1) < 1e-4 for a, b in zip(inner, simulated)), (inner, simulated)
	assert sync(1) == sync(2) == sync(3) == 4 * sync(4), [sync(r) for r in (1, 2, 3, 4)]
	assert ops(2)["inner_step"] == ops(2)["pseudo_grad"] == ops(2)["step"] == 4 * 12, ops(2)
	assert ops(4)["pseudo_grad"] == ops(4)["step"] == 4 * 3 and inner_steps(4) == due(4, 16), (inner_steps(4), due(4, 16))
	assert max(inner_steps(4).values()) == 4, inner_steps(4)
	assert db.execute("SELECT steps FROM runs WHERE id = 4").fetchone()[0] == 12 and len(losses(4)) == 3
	assert len(losses(6)) == 6 and 1 <= sync(6) / sync(4) < 1.01, (sync(6), sync(4))
	for run in (7, 9):
	    lost, joins = db.execute("SELECT preemptions, joins FROM runs WHERE id = ?", (run,)).fetchone()
	    assert lost == 1 and joins == 1, (lost, joins)
	kept = db.execute("SELECT verdict, count(*) FROM v_counted_once WHERE run = 8 GROUP BY 1").fetchall()
	assert kept == [("kept", 2 * 12 * 16)] and len(losses(8)) == 3, kept
	judged = db.execute("SELECT round, step, asked = counted, loss FROM validations WHERE run = 8 ORDER BY round").fetchall()
	assert [row[:3] for row in judged] == [(1, 4, 1), (2, 8, 1), (3, 12, 1)] and judged[0][3] > judged[2][3] > 0, judged
	assert db.execute("SELECT count(*) FROM v_ledger WHERE run = 9 AND verdict <> 'kept'").fetchone()[0] == 0
	# sums behind steps 1, 3 and 5 of each five: 12 steps end behind 13, and the eighth round has two of 16 microbatches
	for run in (10, 11):
	    counted = db.execute("SELECT counted FROM stage_rounds WHERE run = ? AND stage = 0 ORDER BY round", (run,)).fetchall()
	    assert [n for n, in counted] == [16, 32, 32] * 2 + [16, 32], counted
	    assert db.execute("SELECT steps FROM runs WHERE id = ?", (run,)).fetchone()[0] == 13
	assert sync(10) == sync(11), (sync(10), sync(11))
	# pipelines are fixed, so both worlds make the same steps on the same microbatches
	assert len(losses(12)) == 6 and all(abs(a / b - 1) < 1e-4 for a, b in zip(losses(12), losses(13), strict=True)), losses(12)
	assert ops(12)["inner_step"] == 4 * 6 and "pseudo_grad" not in ops(12) and sync(12) == sync(13), (ops(12), sync(12))
	# each stage with its own codec: the bytes that are planned, in both worlds
	assert len(losses(14)) == 6 and all(abs(a / b - 1) < 1e-4 for a, b in zip(losses(14), losses(15), strict=True)), losses(14)
	assert sync(14) == sync(15) == 6 * json.load(open("planned.json"))["bytes_sync_per_round"], (sync(14), sync(15))
	END
}
check 'they are what they should be' compared
plan
