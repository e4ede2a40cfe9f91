#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# periods.sh - periodic sync in which each stage has a period of its own, for real: what a run learns, moves and decides is what the
# simulator says and the closed form; a replay agrees; a worker that is killed between two sums of its stage comes back; and a run
# goes on from states that were kept behind a sum of all stages as if it had not ended, and from others.
set -u
. tests/cli/lib.sh
needs python3 mpirun

mpi_environment

descent periods 4 256 16
pipes=(--set schedule.pipeline=1f1b --set 'sync={method: diloco, every: [2, 4]}')
swarm=(--set 'sync={method: diloco, every: [8, 4], compression: [int8, none]}')
keeps=(--set 'checkpoint={every: 1, to: kept}')

accepts 'two periods' run swarm.yaml --json -q "${pipes[@]}"
accepts 'replay of them' replay 1
accepts 'the same, simulated' sim swarm.yaml --json -q "${pipes[@]}"
accepts 'planned' check swarm.yaml --json "${pipes[@]}"
cp "$out" pipes.json
accepts 'in a swarm' run swarm.yaml --json -q "${swarm[@]}" --set train.validate.every=4
accepts 'replay of that' replay 3
accepts 'the swarm, simulated' sim swarm.yaml --json -q "${swarm[@]}" --set train.validate.every=4
accepts 'the swarm, planned' check swarm.yaml --json "${swarm[@]}"
cp "$out" swarm.json
printf '%s,join,n%d\n' 0 1 0 2 0 3 0 4 >churn.csv
printf '1,leave,n1\n3,join,n1\n100,end,\n' >>churn.csv
loses 1 'with a loss' run swarm.yaml --json -q --set 'sync={method: diloco, every: [4, 8]}' --pace --set cluster.compute_scale=5000 \
	--set train.until.steps=80 --set cluster.trace.file=churn.csv --set 'directory.heartbeat=100 ms' \
	--set 'directory.timeout=500 ms'
accepts 'replay of a loss' replay 5
accepts 'half of it' run swarm.yaml --json -q "${pipes[@]}" "${keeps[@]}" --set train.until.steps=8
cp -r kept early
accepts 'and the rest' run swarm.yaml --json -q "${pipes[@]}" "${keeps[@]}" --resume
rm -f early/*-version-4.kept
accepts 'from between two sums' run swarm.yaml --json -q "${pipes[@]}" "${keeps[@]}" --set checkpoint.to=early --resume
accepts 'replay of that too' replay 8

compared() {
	python3 - <<-'END'
	import json, sqlite3
	db = sqlite3.connect("skep.db")
	of = lambda run, what: db.execute("SELECT %s FROM runs WHERE id = ?" % what, (run,)).fetchone()[0]
	losses = lambda run: dict(db.execute("SELECT round, loss FROM losses WHERE run = ?", (run,)))
	sync = lambda run: db.execute("SELECT sum(bytes) FROM links WHERE run = ? AND traffic = 'sync'", (run,)).fetchone()[0]
	ops = lambda run, kind: dict(db.execute("SELECT stage, count(*) FROM ops WHERE run = ? AND kind = ? GROUP BY 1", (run, kind)))
	near = lambda a, b: a.keys() == b.keys() and all(abs(a[r] / b[r] - 1) < 1e-4 for r in a)
	planned = {name: json.load(open(name + ".json")) for name in ("pipes", "swarm")}
	assert len(losses(1)) == 8 and near(losses(1), losses(2)), (losses(1), losses(2))
	assert planned["pipes"]["periodic"]["every"] == [2, 4] and planned["swarm"]["periodic"]["every"] == [8, 4]
	# 16 steps: of the first stage eight sums and of the second four, of two members; and in a swarm two and four
	for run, name, sums in ((1, "pipes", (8, 4)), (2, "pipes", (8, 4)), (3, "swarm", (2, 4)), (4, "swarm", (2, 4))):
	    plan = planned[name]
	    assert plan["rounds"] == max(sums) and sync(run) == plan["rounds"] * plan["bytes_sync_per_round"], (run, sync(run), plan)
	    assert ops(run, "pseudo_grad") == {s: 2 * n for s, n in enumerate(sums)}, ops(run, "pseudo_grad")
	    assert ops(run, "step") == {s: 2 * plan["rounds"] for s in (0, 1)}, ops(run, "step")
	    for stage, n in zip(plan["stages"], sums): # a sum of two members: twice the vector, in four messages for each segment
	        p = stage["trained_parameters"]
	        vector = p + p // 64 * 4 if name == "swarm" and stage["stage"] == 0 else 4 * p
	        assert plan["rounds"] * stage["sync_bytes"] == n * (2 * vector + 4 * 96 * stage["ring_segments"]), stage
	    assert of(run, "steps") == 16, of(run, "steps")
	assert losses(3)[3] < losses(3)[0] / 2 and losses(4)[3] < losses(4)[0] / 2, (losses(3), losses(4))
	assert (of(5, "preemptions"), of(5, "joins"), of(5, "steps")) == (1, 1, 80), "churn"
	assert db.execute("SELECT count(*) FROM v_ledger WHERE run IN (1, 3, 5) AND verdict <> 'kept'").fetchone()[0] == 0, "ledger"
	rest = {r: l for r, l in losses(1).items() if r >= 4}
	assert of(7, "first_round") == 4 and near(losses(7), rest), (losses(7), rest)
	# All members go on from the inner parameters of one, so losses are near to, but not, what they were.
	off = {r: abs(l / losses(1)[r] - 1) for r, l in losses(8).items()}
	assert of(8, "first_round") == 3 and list(off) == [3, 4, 5, 6, 7] and 1e-4 < off[3] and max(off.values()) < 0.01, off
	END
}
check 'they are what they should be' compared
plan
