#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# schedules.sh - real runs of fixed pipelines, beside simulated ones. One pipeline adds the same microbatches whatever its
# schedule: in the simulator in the same order, so all learn the same to the bit; really nearly so, since messages may overtake
# each other; an interleaved one, with two virtual stages of the model on each worker, learns what 1F1B does, and so does one that does a step in several flushes. And two pipelines of which one
# loses a worker, which returns to its own place; also without a flush, and where stages have unequal numbers of workers.
set -u
. tests/cli/lib.sh
needs python3 mpirun

mpi_environment

place 4
cat >one.yaml <<-END
name: one pipeline
seed: 5
model: {file: $root/models/square-mlp.yaml, stages: 4}
cluster: {topology: place-4.yaml, allocation: {method: strided}}
schedule: {global_batch: 96, microbatch: 16}
train:
  optimizer: {name: adamw, lr: 3.0e-3}
  until: {steps: 12}
END

# Runs 1 to 3 are simulated, 4 to 6 real. Really too, the last stage of GPipe turns round when all have gone forwards, and the first
# stage of 1F1B holds no more than four.
same() {
	python3 - <<-'END'
	import sqlite3
	db = sqlite3.connect("skep.db")
	loss = lambda run: [r[0] for r in db.execute("SELECT loss FROM rounds WHERE run = ? ORDER BY round", (run,))]
	assert len(loss(1)) == 12 and loss(1) == loss(2) == loss(3), [loss(r)[-1] for r in (1, 2, 3)]
	for run in (4, 5, 6):
	    assert all(abs(a / b - 1) < 1e-3 for a, b in zip(loss(run), loss(1), strict=True)), (loss(run), loss(1))
	def passes(run, worker):
	    return db.execute("SELECT round, kind FROM ops WHERE run = ? AND worker = ? AND kind IN ('forward', 'backward') "
	                      "ORDER BY begin_s", (run, worker)).fetchall()
	for r in range(12):
	    assert [k for q, k in passes(5, 3) if q == r] == ["forward"] * 6 + ["backward"] * 6, passes(5, 3)
	held = 0
	for _, kind in passes(6, 0):
	    held += 1 if kind == "forward" else -1
	    assert held <= 4, passes(6, 0)
	END
}

for world in sim run; do
	accepts "$world: one at a time" "$world" one.yaml --json -q --set schedule.in_flight=1
	for pipeline in gpipe 1f1b; do
		accepts "$world: $pipeline" "$world" one.yaml --json -q --set "schedule.pipeline=$pipeline"
	done
done
check 'all learn the same, in their order' same
accepts 'gpipe can be replayed' replay 5
accepts '1f1b can be replayed' replay 6

# Runs 7 and 8 are simulated, 9 real. Groups of four microbatches: the first stage goes 11 times forwards before it goes backwards, the
# last one 5 times, and each keeps its list although messages come at any time.
laps() {
	python3 - <<-'END'
	import sqlite3
	db = sqlite3.connect("skep.db")
	loss = lambda run: [r[0] for r in db.execute("SELECT loss FROM rounds WHERE run = ? ORDER BY round", (run,))]
	assert len(loss(7)) == 12 and loss(7) == loss(8) and all(abs(a / b - 1) < 1e-3 for a, b in zip(loss(9), loss(8), strict=True))
	for run in (8, 9):
	    for worker, warm in ((0, 10), (1, 8), (2, 6), (3, 4)):
	        for r in range(12):
	            kinds = [k for k, in db.execute("SELECT kind FROM ops WHERE run = ? AND worker = ? AND round = ? AND "
	                     "kind IN ('forward', 'backward') ORDER BY begin_s", (run, worker, r))]
	            turns = ["forward", "backward"] * (16 - warm)
	            assert kinds == ["forward"] * warm + turns + ["backward"] * warm, (run, worker, r, kinds)
	    ledger = db.execute("SELECT verdict, count(*) FROM v_counted_once WHERE run = ? GROUP BY verdict", (run,)).fetchall()
	    assert ledger == [("kept", 12 * 8 * 8)], ledger
	END
}

sed -e 's/global_batch: 96/global_batch: 128/' one.yaml >laps.yaml
accepts 'sim: 1f1b' sim laps.yaml --json -q --set schedule.pipeline=1f1b
for world in sim run; do
	accepts "$world: interleaved" "$world" laps.yaml --json -q --set schedule.pipeline=interleaved --set schedule.model_chunks=2
done
check 'a virtual stage at a time they learn the same' laps
accepts 'interleaved can be replayed' replay 9

# ---- two pipelines, strided: workers 0 to 3 and 4 to 7; worker 5 is lost and comes back -----------------------------------

place 8
{
	echo '# skep trace: one of eight goes and comes back'
	echo '# unit: seconds since the trace began'
	for i in 1 2 3 4 5 6 7 8; do echo "0,join,node$i"; done
	echo '0.5,leave,node6'
	echo '1,join,node6'
	echo '100,end,'
} >trace.csv
sed -e 's/one pipeline/two pipelines/; s/place-4.yaml/place-8.yaml, trace: {file: trace.csv}, compute_scale: 4000/' \
	-e 's/schedule: {/&pipeline: gpipe, /; s/global_batch: 96/global_batch: 512/; s/steps: 12/steps: 40/' one.yaml >two.yaml
echo 'directory: {heartbeat: 100 ms, timeout: 500 ms}' >>two.yaml

kept() { # kept STEPS: of the newest run, of so many steps, every gradient is counted once or lost
	python3 - "$out" "$1" <<-'END'
	import json, sqlite3, sys
	run, steps = json.load(open(sys.argv[1])), int(sys.argv[2])
	db = sqlite3.connect("skep.db")
	one = lambda sql: db.execute(sql, (run["run_id"],)).fetchone()[0]
	assert run["preemptions"] == 1 and run["joins"] == 1 and run["steps"] == steps, run
	assert run["issued"] == run["counted"] + run["lost"] and run["issued"] >= 1280, run
	assert one("SELECT count(*) FROM v_counted_once WHERE run = ? AND verdict <> 'kept'") == 0
	# whoever was lost serves its own stage again, and is granted nothing of its neighbour's
	places = db.execute("SELECT DISTINCT worker, stage FROM ops WHERE run = ? AND kind = 'forward'", (run["run_id"],))
	assert sorted(places) == [(w, w % 4) for w in range(8)]
	END
}

run=10
for pipeline in gpipe 1f1b interleaved; do
	more=()
	[ "$pipeline" != interleaved ] || more=(--set schedule.model_chunks=2)
	loses 1 "$pipeline, a worker lost" run two.yaml --pace --json -q --set "schedule.pipeline=$pipeline" "${more[@]}"
	check "$pipeline: counted once, and back in its place" kept 40
	accepts "$pipeline, a worker lost: replays" replay $((run++))
done

# Without a flush: a step for each microbatch of the two. What is lost is reported, nothing is replaced;
# the first of four stages works on parameters that lack three steps, or four while a round is summed.
loses 1 'pipedream, a worker lost' run two.yaml --pace --json -q --set schedule.pipeline=pipedream \
	--set schedule.global_batch=32 --set train.until.steps=300 --set 'directory.timeout=2 s'
check 'pipedream: counted once, and back in its place' kept 300
accepts 'pipedream, a worker lost: replays' replay $run
stale() {
	python3 - "$run" <<-'END'
	import sqlite3, sys
	db = sqlite3.connect("skep.db")
	most = [r[0] for r in db.execute("SELECT staleness FROM rounds WHERE run = ? ORDER BY round", (sys.argv[1],))]
	assert len(most) == 300 and max(most) in (3, 4), most
	END
}
check 'pipedream: as stale as it may be, and no more' stale

# ---- data parallel training with overlap: a device really goes backwards in parts, while the other lane sums --------------

sed -e 's/one pipeline/data parallel/; s/stages: 4/stages: 1/; s/schedule: {/&pipeline: 1f1b, /; s/global_batch: 96/global_batch: 128/' \
	one.yaml >ddp.yaml
echo 'sync: {overlap: true, bucket: 128 KiB}' >>ddp.yaml

parts() { # runs 14 and 15 learn the same, and the last pass of each worker and round has a row for each bucket
	python3 - <<-'END'
	import sqlite3
	db = sqlite3.connect("skep.db")
	loss = lambda run: [r[0] for r in db.execute("SELECT loss FROM rounds WHERE run = ? ORDER BY round", (run,))]
	assert len(loss(14)) == 12 and all(abs(a / b - 1) < 1e-3 for a, b in zip(loss(14), loss(15), strict=True)), (loss(14), loss(15))
	for run in (14, 15):
	    rows = db.execute("SELECT count(*) FROM ops WHERE run = ? AND kind = 'backward' GROUP BY worker, round, microbatch",
	                      (run,)).fetchall()
	    assert sorted(n for n, in rows) == [1] * 48 + [4] * 48, rows
	END
}
accepts 'sim: overlap' sim ddp.yaml --json -q
accepts 'run: overlap' run ddp.yaml --json -q
check 'the last pass goes in parts, and all learn the same' parts
accepts 'overlap can be replayed' replay 15
# ---- several flushes in a step ------------------------------------------------------------------------------------------

# A list of passes fixes the order in which gradients are added, so real runs of one, two and three flushes learn the same to the bit; with GPipe no
# worker holds more than the two microbatches of a flush, and what it learns is near.
cat >alike.py <<-END
import sqlite3, sys
first, bits = int(sys.argv[1]), sys.argv[2] == "bits"
db = sqlite3.connect("skep.db")
loss = lambda run: [r[0] for r in db.execute("SELECT loss FROM rounds WHERE run = ? ORDER BY round", (run,))]
moved = lambda run: db.execute("SELECT bytes_pipeline, bytes_sync FROM runs WHERE id = ?", (run,)).fetchone()
for run in (first + 1, first + 2):
    same = loss(run) == loss(first) if bits else all(abs(a / b - 1) < 1e-3 for a, b in zip(loss(run), loss(first), strict=True))
    assert len(loss(run)) == 12 and same and moved(run) == moved(first), (loss(run), loss(first), moved(run), moved(first))
for worker in range(4):
    held = 0
    for kind, in db.execute("SELECT kind FROM ops WHERE run = ? AND worker = ? AND kind IN ('forward', 'backward') ORDER BY begin_s", (first + 2, worker)):
        held += 1 if kind == "forward" else -1
        assert held <= 2, (worker, held)
END
run=16
for pipeline in 1f1b gpipe; do
	for accumulate in 1 2 3; do
		accepts "$pipeline in flushes: $accumulate" run one.yaml --json -q --set "schedule.pipeline=$pipeline" --set schedule.accumulate=$accumulate
	done
	check "$pipeline: the same with any number of flushes" python3 alike.py $run "$([ $pipeline = gpipe ] || echo bits)"
	run=$((run + 3))
done
accepts 'flushes can be replayed' replay 18
accepts 'flushes of gpipe can be replayed' replay 21

# ---- stages of unequal numbers of workers -------------------------------------------------------------------------------

# 3-1: three pipelines that share the last worker. A step has the same microbatches as the one pipeline of runs 1 to 6, so it learns the same; really too the
# last worker takes them in the order in which they begin, one of each owner in turn. 22 is simulated, 23 real.
sed -e 's/stages: 4}/stages: 2, cut: [7, 2]}/; s/method: strided/method: explicit, stage_of: [0, 0, 1, 0]/' \
	-e 's/schedule: {/&pipeline: 1f1b, /' one.yaml >uneven.yaml
shared() {
	python3 - <<-'END'
	import sqlite3
	db = sqlite3.connect("skep.db")
	loss = lambda run: [r[0] for r in db.execute("SELECT loss FROM rounds WHERE run = ? ORDER BY round", (run,))]
	for run in (22, 23):
	    assert len(loss(run)) == 12 and all(abs(a / b - 1) < 1e-3 for a, b in zip(loss(run), loss(1), strict=True)), (loss(run), loss(1))
	    for r in range(12):
	        passes = db.execute("SELECT kind, microbatch FROM ops WHERE run = ? AND worker = 2 AND round = ? AND "
	                            "kind IN ('forward', 'backward') ORDER BY begin_s", (run, r)).fetchall()
	        assert passes == [(k, m) for m in (0, 2, 4, 1, 3, 5) for k in ("forward", "backward")], (run, r, passes)
	    ledger = db.execute("SELECT verdict, count(*) FROM v_counted_once WHERE run = ? GROUP BY verdict", (run,)).fetchall()
	    assert ledger == [("kept", 12 * 6 * 2)], ledger
	END
}
for world in sim run; do
	accepts "$world: 3-1" "$world" uneven.yaml --json -q
done
check '3-1 learns the same, and takes turns' shared
accepts '3-1 can be replayed' replay 23

# 6-2: worker 5 of the first stage is lost and comes back to its own place; the other five go on with what it would have done.
sed -e 's/stages: 4}/stages: 2, cut: [7, 2]}/; s/method: strided/method: explicit, stage_of: [0, 0, 1, 0, 0, 0, 1, 0]/' \
	-e 's/pipeline: gpipe/pipeline: 1f1b/; s/global_batch: 512/global_batch: 480/' two.yaml >uneven.yaml
counted() { # counted STEPS
	python3 - "$out" "$1" <<-'END'
	import json, sqlite3, sys
	run, steps = json.load(open(sys.argv[1])), int(sys.argv[2])
	db = sqlite3.connect("skep.db")
	assert run["preemptions"] == 1 and run["joins"] == 1 and run["steps"] == steps, run
	assert run["issued"] == run["counted"] + run["lost"], run
	assert db.execute("SELECT count(*) FROM v_counted_once WHERE run = ? AND verdict <> 'kept'", (run["run_id"],)).fetchone()[0] == 0
	places = db.execute("SELECT DISTINCT worker, stage FROM ops WHERE run = ? AND kind = 'forward'", (run["run_id"],))
	assert sorted(places) == [(w, int(w in (2, 6))) for w in range(8)]
	END
}
loses 1 '6-2, a worker lost' run uneven.yaml --pace --json -q
check '6-2: counted once, and back in its place' counted 40
accepts '6-2, a worker lost: replays' replay 24
loses 1 'pipedream 6-2, a worker lost' run uneven.yaml --pace --json -q --set schedule.pipeline=pipedream \
	--set schedule.global_batch=96 --set train.until.steps=100 --set 'directory.timeout=2 s'
check 'pipedream 6-2: counted once, and back in its place' counted 100
accepts 'pipedream 6-2, a worker lost: replays' replay 25
# ---- what passes read without a flush -----------------------------------------------------------------------------------

# Where the version that a pass reads follows from the round alone, both worlds learn the same to the bit: with vertical sync, and while all
# steps are synchronous. Else a message that is late lets a step come first, so that something newer is read.
sed -e 's/one pipeline/answers/; s/schedule: {/&pipeline: pipedream, /; s/global_batch: 96/global_batch: 16/; s/steps: 12/steps: 40/' one.yaml >answers.yaml
alike() { # alike FIRST [bits]: two runs, simulated and real
	python3 - "$@" <<-'END'
	import sqlite3, sys
	first, bits = int(sys.argv[1]), len(sys.argv) > 2
	db = sqlite3.connect("skep.db")
	rows = lambda run: db.execute("SELECT loss, staleness FROM rounds WHERE run = ? ORDER BY round", (run,)).fetchall()
	sim, real = rows(first), rows(first + 1)
	assert len(sim) == len(real) == 40 and all(b <= min(r, 3) for rows in (sim, real) for r, (_, b) in enumerate(rows)), real
	assert not bits or sim == real, list(zip(sim, real))
	END
}
run=$(python3 -c 'import sqlite3; print(sqlite3.connect("skep.db").execute("SELECT max(id) + 1 FROM runs").fetchone()[0])')
for options in weights=vertical-sync synchronous_steps=40 'weights=vertical-sync --set schedule.synchronous_steps=9' \
	weights=newest weights=predicted weights=corrected; do
	for world in sim run; do
		# shellcheck disable=SC2086
		accepts "$world: $options" $world answers.yaml --json -q --set schedule.$options
	done
	case $options in
	*vertical* | *=40) check "$options: both worlds are the same" alike $run bits ;;
	*) check "$options: neither is staler than it may be" alike $run ;;
	esac
	accepts "$options: can be replayed" replay $((run + 1))
	run=$((run + 2))
done

plan
