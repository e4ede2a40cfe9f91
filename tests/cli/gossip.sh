#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# gossip.sh - periodic sync in pairs, simulated. With two workers in a stage, one inner step of plain descent, rate 1 and no momentum
# it is data parallelism; with more of them it learns, sends what pairs send and no more, and takes workers that come and go.
set -u
. tests/cli/lib.sh
needs python3

place 4
place 8
descent gossip 6 384 24
four=(--set cluster.topology=place-4.yaml) eight=(--set cluster.topology=place-8.yaml)
pairs=(--set sync.method=gossip --set sync.every=4)

accepts 'a step at a time' sim swarm.yaml --json -q "${four[@]}"                                                       # 1
accepts 'in pairs, which are all there are' sim swarm.yaml --json -q "${four[@]}" --set 'sync={method: gossip, every: 1, outer: {lr: 1, momentum: 0}}'
accepts 'diloco of eight' sim swarm.yaml --json -q "${eight[@]}" --set sync.method=diloco --set sync.every=4            # 3
accepts 'pairs of eight' sim swarm.yaml --json -q "${eight[@]}" "${pairs[@]}"
accepts 'diloco of six' sim swarm.yaml --json -q --set sync.method=diloco --set sync.every=4                            # 5
accepts 'pairs of six' sim swarm.yaml --json -q "${pairs[@]}"
accepts 'judged, and kept' sim swarm.yaml --json -q "${pairs[@]}" --set sync.collective=butterfly --set train.validate.every=8 \
	--set 'checkpoint={every: 3, to: here}' --write-checkpoints                                                     # 7
accepts 'gone on with' sim swarm.yaml --json -q "${pairs[@]}" --set sync.collective=butterfly --set train.validate.every=8 \
	--set 'checkpoint={every: 3, to: here}' --set train.until.steps=40 --resume
printf '%s,join,n%d\n' 0 1 0 2 0 3 0 4 0 5 0 6 0 7 0 8 >churn.csv
printf '1,leave,n1\n2,leave,n4\n3,join,n1\n100,end,\n' >>churn.csv
accepts 'with losses' sim swarm.yaml --json -q "${eight[@]}" "${pairs[@]}" --set cluster.compute_scale=5000 --set train.until.steps=80 \
	--set cluster.trace.file=churn.csv --set 'directory.heartbeat=100 ms' --set 'directory.timeout=500 ms'         # 9
accepts 'as flows' sim swarm.yaml --json -q "${eight[@]}" "${pairs[@]}" --set train.arithmetic=none --set simulate.collectives=flows
"$SKEP" check swarm.yaml --json "${eight[@]}" "${pairs[@]}" >check.json

compared() {
	python3 - <<-'END'
	import json, sqlite3
	db = sqlite3.connect("skep.db")
	losses = lambda run: [r[0] for r in db.execute("SELECT loss FROM losses WHERE run = ? ORDER BY round", (run,))]
	ops = lambda run: dict(db.execute("SELECT kind, count(*) FROM ops WHERE run = ? GROUP BY kind", (run,)))
	sync = lambda run: db.execute("SELECT sum(bytes), sum(messages) FROM links WHERE run = ? AND traffic = 'sync'", (run,)).fetchone()
	plain, pairs = losses(1), losses(2)
	assert len(plain) == len(pairs) == 24 and plain[-1] < plain[0] / 2, plain
	assert all(abs(a / b - 1) < 1e-4 for a, b in zip(plain, pairs)), (plain, pairs)
	assert sync(1) == sync(2), (sync(1), sync(2))
	# a ring of n sends 2(n - 1) V, so 6 V of four and 4 V of three; two pairs send 4 V, and one pair 2 V
	body = lambda run: sync(run)[0]
	assert abs(body(4) / body(3) - 4 / 6) < 0.02 and abs(body(6) / body(5) - 2 / 4) < 0.02, [sync(r) for r in (3, 4, 5, 6)]
	segments = sum(stage["ring_segments"] for stage in json.load(open("check.json"))["stages"])
	assert sync(4)[1] == 6 * segments * 2 * 4 and sync(6)[1] == 6 * segments * 1 * 4, (sync(4), sync(6)) # rounds, pairs, hops
	assert body(10) == body(4), (body(10), body(4))
	told = json.load(open("check.json"))["bytes_sync_per_round"]
	assert 6 * told == body(4), (told, body(4))
	for run, workers in (4, 8), (6, 6):
	    assert ops(run)["inner_step"] == 6 * 4 * workers and ops(run)["pseudo_grad"] == ops(run)["step"] == 6 * workers, ops(run)
	    assert len(losses(run)) == 6 and losses(run)[-1] < losses(run)[0] / 2, losses(run)
	    kept = db.execute("SELECT verdict, count(*) FROM v_counted_once WHERE run = ? GROUP BY 1", (run,)).fetchall()
	    assert kept == [("kept", 2 * 24 * 24)], kept
	judged = db.execute("SELECT round, step, asked = counted, loss FROM validations WHERE run = 7 ORDER BY round").fetchall()
	assert [row[:3] for row in judged] == [(2, 8, 1), (4, 16, 1), (6, 24, 1)] and judged[0][3] > 1.5 * judged[2][3] > 0, judged
	first, last = losses(7), losses(8)
	assert len(last) == 4 and last[0] < first[-1] * 1.5 and last[-1] < first[-1], (first, last)
	lost, joins = db.execute("SELECT preemptions, joins FROM runs WHERE id = 9").fetchone()
	assert lost == 2 and joins == 1, (lost, joins)
	assert losses(9)[-1] < losses(9)[0] / 4, losses(9)
	assert db.execute("SELECT count(*) FROM v_ledger WHERE run = 9 AND verdict <> 'kept'").fetchone()[0] == 0
	END
}
check 'they are what they should be' compared
reproduced() {
	for digest in 1 2; do
		"$SKEP" sim swarm.yaml --json -q "${pairs[@]}" --db again.db | python3 -c 'import json, sys; print(json.load(sys.stdin)["digest"])'
	done | uniq | wc -l | grep -qx 1
}
check 'the same seed draws the same pairs' reproduced

refuses 'what waits for nobody' 'sync.delayed: with `method: gossip`' check swarm.yaml "${pairs[@]}" --set sync.delayed=true
refuses 'nothing to mix' 'sync.mixing: with `method: gossip`' check swarm.yaml "${pairs[@]}" --set sync.mixing=0.5
refuses 'two parts' 'sync.aggregate: with `method: gossip`' check swarm.yaml "${pairs[@]}" --set sync.aggregate=zeno --set sync.collective=butterfly
refuses 'rounded parameters' 'sync.compression: with `method: gossip`' check swarm.yaml "${pairs[@]}" --set sync.compression=int8
refuses 'a share of how many' 'sync.every: with `method: gossip`' check swarm.yaml --set sync.method=gossip --set sync.every=auto --set sync.mean_inner_steps=4
refuses 'again, elsewhere' 'sync.method: with `method: gossip`' check swarm.yaml "${pairs[@]}" --set schedule.on_loss=rerun
refuses 'another descent' 'sync.outer.optimizer: with `method: gossip`' check swarm.yaml "${pairs[@]}" --set sync.outer.optimizer=nesterov
refuses 'a buffer' 'sync.outer.buffer: comes with `method: async` alone' check swarm.yaml "${pairs[@]}" --set sync.outer.buffer=2
refuses 'fragments' 'sync.fragments: comes with `method: streaming` alone' check swarm.yaml "${pairs[@]}" --set sync.fragments=2
refuses 'with a fixed pipeline' 'sync.method: with `schedule.pipeline: 1f1b`' check swarm.yaml "${pairs[@]}" --set schedule.pipeline=1f1b
refuses 'candidates' 'train.init.candidates: with `sync.method: gossip`' check swarm.yaml "${pairs[@]}" --set 'train.init={candidates: 2, steps: 8}'
refuses 'a law' 'train.arithmetic: not with `sync.method: gossip`' check "$root/scenarios/gossip.yaml" --set train.arithmetic=law \
	--set "train.law={file: $root/scenarios/laws/tiny-gpt2.yaml}"
plan
