#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# recover.sh - a stage loses its last worker in a real run, by SIGKILL where MPI survives that. It waits for another one, which
# founds it anew from the newest checkpoint, or from nothing; the run says which, learns, and replays.
set -u
. tests/cli/lib.sh
needs python3 mpirun

mpi_environment

# Three start, in two stages: the last one serves stage 1 alone.
job job.yaml 5 40 4 2
printf '%s\n' 0,join,a 0,join,b 0,join,c 2,leave,c 4,join,d 1000,end, >trace.csv
arguments=(job.yaml --pace --json -q --set 'cluster.trace={file: trace.csv, any_gpu: true}'
	--set cluster.allocation.method=contiguous --set cluster.compute_scale=2000
	--set 'directory={heartbeat: 200 ms, timeout: 1 s}')

says() { # says NAME REGEX
	check "$1" grep -qE -- "$2" "$err"
}

recovered() { # recovered: all steps were made, one stage was restored, the books are in order
	python3 - "$out" <<-'END'
	import json, sqlite3, sys
	run = json.load(open(sys.argv[1]))
	assert run["steps"] == 40 and run["restarts"] == 1 and run["preemptions"] == 1, run
	assert run["issued"] == run["counted"] + run["lost"], run
	one = lambda sql: sqlite3.connect("skep.db").execute(sql, (run["run_id"],)).fetchone()[0]
	first = one("SELECT loss FROM rounds WHERE run = ? AND round = 0")
	assert run["final_loss"] < first / 3, (first, run["final_loss"])
	assert one("SELECT count(*) FROM v_ledger WHERE run = ? AND verdict <> 'kept'") == 0
	END
}

loses 1 'without checkpoints' run "${arguments[@]}"
says 'without checkpoints: its loss is said' 'stage 1 has lost its last worker, and waits for another'
says 'without checkpoints: so is that it begins anew' 'stage 1 begins anew, without a checkpoint'
check 'without checkpoints: recovered' recovered
accepts 'without checkpoints: replays' replay 1 --json

loses 1 'with checkpoints' run "${arguments[@]}" --set 'checkpoint={every: 4, to: kept}'
says 'with checkpoints: it goes on from one' 'stage 1 goes on from its checkpoint of round [0-9]+'
check 'with checkpoints: recovered' recovered
check 'with checkpoints: they are there' test "$(find kept -name 'stage-[01]-version-*.kept' | wc -l)" -ge 4
accepts 'with checkpoints: replays' replay 2 --json
plan
