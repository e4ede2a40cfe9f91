#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# wsp.sh - waves (HetPipe) for real. One virtual worker with as many microbatches in a wave as stages learns what the simulator does
# to the digit, for what it reads is its own and known by the order of its passes; with more it hangs on which gradient is back first.
# Two count, send and stay within the bounds as simulated, learn as much, and a replay takes the same decisions. And with a worker
# that is killed and comes back.
set -u
. tests/cli/lib.sh
needs python3 mpirun

mpi_environment

place 2
place 4
descent waves 2 32 16
one=(--set schedule.pipeline=pipedream --set 'sync={method: wsp, distance: 1}' --set train.optimizer.lr=3.0e-4)
four=("${one[@]}" --set train.optimizer.lr=1.0e-3 --set cluster.topology=place-4.yaml --set cluster.compute_scale=6000 --set schedule.global_batch=128 --set train.until.steps=60)

accepts 'one virtual worker' run swarm.yaml --json -q "${one[@]}"
accepts 'simulated' sim swarm.yaml --json -q "${one[@]}"
accepts 'two' run swarm.yaml --json -q --pace "${four[@]}"
accepts 'replay of two' replay 3
accepts 'two, simulated' sim swarm.yaml --json -q "${four[@]}"
accepts 'sim and run side by side' compare --json 4 3
printf '0,join,n%d\n' 1 2 3 4 >churn.csv
printf '1,leave,n4\n3,join,n4\n100,end,\n' >>churn.csv
loses 1 'with a loss' run swarm.yaml --json -q "${four[@]}" --pace --set train.until.steps=120 \
	--set cluster.trace.file=churn.csv --set 'directory.heartbeat=100 ms' --set 'directory.timeout=500 ms'
accepts 'replay of that' replay 5

compared() {
	python3 - <<-'END'
	import sqlite3
	db = sqlite3.connect("skep.db")
	losses = lambda run: [r[0] for r in db.execute("SELECT loss FROM losses WHERE run = ? ORDER BY round", (run,))]
	sync = lambda run: db.execute("SELECT sum(bytes), sum(messages) FROM links WHERE run = ? AND traffic = 'sync'", (run,)).fetchone()
	stale = lambda run: db.execute("SELECT max(staleness), max(local_staleness) FROM rounds WHERE run = ?", (run,)).fetchone()
	real, simulated = losses(1), losses(2)
	assert len(real) == len(simulated) == 16 and real[-1] < real[0], real
	assert all(abs(a / b - 1) < 1e-4 for a, b in zip(real, simulated)), (real, simulated)
	assert sync(3) == sync(4), (sync(3), sync(4))
	assert losses(3)[-1] < losses(3)[0] / 2 and losses(4)[-1] < losses(4)[0] / 2, (losses(3), losses(4))
	for run in 3, 4, 5: # waves of four, D = 1
	    most, own = stale(run)
	    assert 3 <= most <= 10 and own <= 3, (run, most, own)
	lost, joins, gone = db.execute("SELECT preemptions, joins, lost FROM runs WHERE id = 5").fetchone()
	assert lost == 1 and joins == 1 and gone > 0, (lost, joins, gone)
	assert db.execute("SELECT count(*) FROM v_ledger WHERE verdict <> 'kept'").fetchone()[0] == 0, "ledger"
	END
}
check 'they are what they should be' compared
plan
