#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# gossip.sh - periodic sync in pairs, for real. With two workers in a stage, one inner step of plain descent, rate 1 and no momentum
# it learns what a step of all does, and what the simulator learns; with three and four of them the same pairs meet in both
# worlds, the same bytes travel, and a replay takes the same decisions. And with a worker that is killed and comes back.
set -u
. tests/cli/lib.sh
needs python3 mpirun

mpi_environment

place 6
descent gossip 4 256 12
one=(--set 'sync={method: gossip, every: 1, outer: {lr: 1, momentum: 0}}')
six=(--set cluster.topology=place-6.yaml --set cluster.compute_scale=6000 --set schedule.global_batch=384 --set 'sync={method: gossip, every: 4, steps: fixed}' --set train.until.steps=24)

accepts 'a step at a time' run swarm.yaml --json -q
accepts 'one inner step, in pairs' run swarm.yaml --json -q "${one[@]}"
accepts 'the same simulated' sim swarm.yaml --json -q "${one[@]}"
accepts 'three in a stage' run swarm.yaml --json -q --pace "${six[@]}" --set train.validate.every=8 --set 'checkpoint={every: 3, to: kept}'
accepts 'replay of three' replay 4
accepts 'three, simulated' sim swarm.yaml --json -q "${six[@]}" --set train.validate.every=8 --set 'checkpoint={every: 3, to: simulated}'
accepts 'sim and run side by side' compare --json 5 4
check 'which kept what it had learnt' test "$(ls kept)" = "$(printf '%s\n' files scenario.yaml stage-0-version-{3,6}.kept stage-1-version-{3,6}.kept)"
printf '%s,join,n%d\n' 0 1 0 2 0 3 0 4 0 5 0 6 >churn.csv
printf '1,leave,n1\n3,join,n1\n100,end,\n' >>churn.csv
loses 1 'with a loss' run swarm.yaml --json -q "${six[@]}" --pace --set train.until.steps=80 \
	--set cluster.trace.file=churn.csv --set 'directory.heartbeat=100 ms' --set 'directory.timeout=500 ms'

compared() {
	python3 - <<-'END'
	import math, sqlite3
	db = sqlite3.connect("skep.db")
	losses = lambda run: [r[0] for r in db.execute("SELECT loss FROM losses WHERE run = ? ORDER BY round", (run,))]
	ops = lambda run: dict(db.execute("SELECT kind, count(*) FROM ops WHERE run = ? GROUP BY kind", (run,)))
	sync = lambda run: db.execute("SELECT sum(bytes), sum(messages) FROM links WHERE run = ? AND traffic = 'sync'", (run,)).fetchone()
	met = lambda run: db.execute("SELECT source, destination, sum(bytes) FROM links WHERE run = ? AND traffic = 'sync' GROUP BY 1, 2 ORDER BY 1, 2", (run,)).fetchall()
	step, pairs, simulated = losses(1), losses(2), losses(3)
	assert len(step) == len(pairs) == len(simulated) == 12
	assert all(abs(a / b - 1) < 1e-4 for a, b in zip(pairs, step)), (pairs, step)
	assert all(abs(a / b - 1) < 1e-4 for a, b in zip(pairs, simulated)), (pairs, simulated)
	assert sync(1) == sync(2) == sync(3), [sync(r) for r in (1, 2, 3)]
	assert ops(4)["pseudo_grad"] <= ops(4)["step"] == 6 * 6, ops(4)
	assert sync(4) == sync(5) and met(4) == met(5) and len(met(4)) > 4, (met(4), met(5))
	assert losses(4)[-1] < losses(4)[0] / 2, losses(4)
	# Which worker has which samples is up to the clock, so a round differs by some 5 %: all of them together less.
	apart = sum(math.log(a / b) for a, b in zip(losses(4), losses(5))) / len(losses(5))
	assert abs(apart) < 0.15, (losses(4), losses(5))
	judged = db.execute("SELECT round, step, asked = counted, loss FROM validations WHERE run = 4 ORDER BY round").fetchall()
	assert [row[:3] for row in judged] == [(2, 8, 1), (4, 16, 1), (6, 24, 1)] and judged[0][3] > judged[2][3] > 0, judged
	lost, joins = db.execute("SELECT preemptions, joins FROM runs WHERE id = 6").fetchone()
	assert lost == 1 and joins == 1, (lost, joins)
	assert db.execute("SELECT count(*) FROM v_ledger WHERE run = 6 AND verdict <> 'kept'").fetchone()[0] == 0, "ledger"
	END
}
check 'they are what they should be' compared
plan
