#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# losses.sh - schedule.on_loss: void and wait in real runs, in which a worker is killed and another one comes: all steps are made, the
# books are in order, what the core has decided is what it decides in a replay, and a run whose worker is not replaced stops.
set -u
. tests/cli/lib.sh
needs python3 mpirun

mpi_environment

# Five start, in two stages.
job job.yaml 5 40 6 2
printf '%s\n' 0,join,a 0,join,b 0,join,c 0,join,d 0,join,e 0.5,leave,b 4,join,f 1000,end, >trace.csv
arguments=(job.yaml --pace --json -q --set 'cluster.trace={file: trace.csv, any_gpu: true}'
	--set cluster.compute_scale=2000 --set 'directory={heartbeat: 200 ms, timeout: 1 s}')

went_on() { # went_on VOIDS JOINS: all steps were made, one worker was lost, its round was void so often, and so many came
	python3 - "$out" "$1" "$2" <<-'END'
	import json, sqlite3, sys
	run = json.load(open(sys.argv[1]))
	assert run["steps"] == 40 and run["preemptions"] == 1 and run["joins"] >= int(sys.argv[3]), run
	assert run["issued"] == run["counted"] + run["lost"], run
	one = lambda sql: sqlite3.connect("skep.db").execute(sql, (run["run_id"],)).fetchone()[0]
	voids = one("SELECT count(*) FROM notes WHERE run = ? AND kind = 'round_voided'")
	assert voids == int(sys.argv[2]), voids
	assert one("SELECT count(*) FROM ops WHERE run = ? AND kind = 'discard'") >= voids
	assert run["final_loss"] < one("SELECT loss FROM rounds WHERE run = ? AND round = 0") / 3, run
	assert one("SELECT count(*) FROM v_ledger WHERE run = ? AND verdict <> 'kept'") == 0
	assert one("SELECT count(*) FROM v_counted_once WHERE run = ? AND verdict NOT IN ('kept', 'not seen')") == 0
	END
}

loses 1 'void' run "${arguments[@]}" --set schedule.on_loss=void
check 'void: one round is' went_on 1 0
accepts 'void: replays' replay 1 --json

loses 1 'wait' run "${arguments[@]}" --set schedule.on_loss=wait
check 'wait: for the newcomer' went_on 0 1
accepts 'wait: replays' replay 2 --json

printf '%s\n' 0,join,a 0,join,b 0,join,c 0,join,d 0,join,e 0.5,leave,b 1000,end, >trace.csv
run_skep run "${arguments[@]}" --set schedule.on_loss=wait --set 'cluster.wait_for_join=2 s'
check 'wait: in vain' test "$status" = 1
check 'wait: why' grep -q 'a stage lacked a worker, and no other came in time' "$err"
plan
