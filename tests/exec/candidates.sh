#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# candidates.sh - real runs that try several sets of first parameters: the same losses, to the bit, and so the same choice as in the
# simulator, and as many bytes after each round. Then workers die in the trial, by SIGKILL where MPI survives that: one of several
# of a stage, all of a candidate, and all of a stage, of both candidates. Each run replays.
set -u
. tests/cli/lib.sh
needs python3 mpirun

mpi_environment

# With one worker in a candidate's stage and one microbatch under way sums have one order.
job four.yaml 7 16 4 2
tries=(--set 'train.init={candidates: 2, steps: 6}' --set schedule.in_flight=1 --json -q)

twins() { # twins: runs 1 and 2, one of each world
	python3 - <<-'END'
	import sqlite3
	db = sqlite3.connect("skep.db")
	pair = lambda sql: [db.execute(sql, (run,)).fetchall() for run in (1, 2)]
	assert pair("SELECT world FROM runs WHERE id = ?") == [[("sim",)], [("real",)]]
	tried = pair("SELECT round, microbatch, value FROM notes WHERE run = ? AND kind = 'candidate_loss' ORDER BY round, microbatch")
	assert len(tried[0]) == 12 and tried[0] == tried[1], tried
	kept = pair("SELECT round, microbatch, value FROM notes WHERE run = ? AND kind = 'candidate_chosen'")
	assert len(kept[0]) == 1 and kept[0] == kept[1], kept
	last = [value for round, candidate, value in tried[0] if round == 5]
	assert last[kept[0][0][1]] > min(last), (kept, last) # by its slope: a seed at which it is not the lowest one
	rounds = pair("SELECT round, bytes_pipeline, bytes_sync FROM rounds WHERE run = ? ORDER BY round")
	assert len(rounds[0]) == 16 and rounds[0] == rounds[1], rounds
	assert rounds[0][5][1] == 12 * rounds[0][0][1] / 2 and rounds[0][5][2] == 0 < rounds[0][6][2], rounds # two candidates
	assert rounds[0][15][1] - rounds[0][14][1] == rounds[0][0][1] / 2, rounds # and one
	end = pair("SELECT bytes_pipeline, bytes_sync FROM runs WHERE id = ?")
	assert end[0] == end[1] == [rounds[0][15][1:]], (end, rounds[0][15])
	moved = pair("SELECT preemptions, joins, migrations, issued - counted, lost FROM runs WHERE id = ?")
	assert moved[0] == moved[1] == [(0, 0, 2, 0, 0)], moved
	END
}

says() { # says NAME REGEX
	check "$1" grep -qE -- "$2" "$err"
}

suffered() { # suffered KEPT PREEMPTIONS JOINS STEPS MIGRATIONS...: what the run says of itself; its books are in order
	python3 - "$out" "$@" <<-'END'
	import json, sqlite3, sys
	run = json.load(open(sys.argv[1]))
	wanted = [int(word) for word in sys.argv[2:]]
	seen = [run["candidate"]["kept"], run["preemptions"], run["joins"], run["steps"]]
	assert seen == wanted[:4] and run["migrations"] in wanted[4:], (seen, run)
	assert run["issued"] == run["counted"] + run["lost"] > 0, run
	one = lambda sql: sqlite3.connect("skep.db").execute(sql, (run["run_id"],)).fetchone()[0]
	assert one("SELECT count(*) FROM v_ledger WHERE run = ? AND verdict <> 'kept'") == 0
	assert one("SELECT count(*) FROM v_counted_once WHERE run = ? AND verdict = 'kept'") == run["issued"]
	END
}

accepts 'two candidates, simulated' sim four.yaml "${tries[@]}"
accepts 'two candidates, for real' run four.yaml "${tries[@]}"
check 'two candidates: both worlds try, choose and send the same' twins
accepts 'two candidates: replays' replay 2

# Each inner step and each sum is the candidate's own: number 0 is what the run's seed alone would have become.
alone() { # alone: runs 3 and 4
	python3 - <<-'END'
	import sqlite3
	db = sqlite3.connect("skep.db")
	ask = lambda sql: [row[0] for row in db.execute(sql)]
	tried = ask("SELECT value FROM notes WHERE run = 3 AND kind = 'candidate_loss' AND microbatch = 0 ORDER BY round")
	one = ask("SELECT loss FROM rounds WHERE run = 4 ORDER BY round")
	assert len(tried) == 4 and tried == [round(1e9 * loss) for loss in one[:4]] and len(one) == 8, (tried, one)
	assert ask("SELECT sum(verdict <> 'kept') FROM v_ledger WHERE run = 3") == [0]
	END
}
diloco=(--set 'sync={method: diloco, every: 2}' --set schedule.in_flight=1)
job two.yaml 7 16 2 2
accepts 'two candidates, with periodic sync' sim four.yaml "${diloco[@]}" --set 'train.init={candidates: 2, steps: 8}' --json -q
accepts 'one, with periodic sync' sim two.yaml "${diloco[@]}" --json -q
check 'with periodic sync a candidate learns what it would learn alone' alone

hurt=("${tries[@]}" --pace --set cluster.allocation.method=contiguous --set cluster.compute_scale=1000
	--set 'cluster.trace={file: trace.csv, any_gpu: true}' --set 'directory={heartbeat: 200 ms, timeout: 1 s}')
trace() { # trace WORKERS LINE...: so many come at once; then that, and an end
	printf '0,join,%s\n' $(seq "$1") >trace.csv
	printf '%s\n' "${@:2}" 100,end, >>trace.csv
}

job six.yaml 7 16 6 2
trace 6 0.15,leave,3 0.2,join,7
loses 1 'one of two dies' run six.yaml "${hurt[@]}"
check 'one of two dies: another one comes, and the trial goes on' suffered 1 1 1 16 3 4
accepts 'one of two dies: replays' replay 5

trace 4 0.15,leave,2 0.15,leave,4
loses 2 'a candidate dies' run four.yaml "${hurt[@]}"
says 'a candidate dies: it says so' 'candidate 1 is out: a stage of it has lost its last worker'
check 'a candidate dies: two deaths are counted, and the other one is kept' suffered 0 2 0 16 1
accepts 'a candidate dies: replays' replay 6

trace 4 0.15,leave,3 0.15,leave,4
run_skep run four.yaml "${hurt[@]}" --set cluster.wait_for_join=0.3s
check 'a stage dies in both candidates: the run fails' test "$status" = 1
says 'a stage dies in both candidates: it says what failed' 'the run failed: a stage lost its last worker, and no other came in time'
plan
