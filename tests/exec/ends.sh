#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# ends.sh - real runs that are ended before their time, by a signal to skep or by the death of a process: exit status 1, a last
# line that says which of the two it was, and a database with every round that had finished.
set -u
. tests/cli/lib.sh

mpi_environment

job long.yaml 3 100000 2 2

rounds() { # rounds: of the newest run that has finished
	python3 -c 'import sqlite3
db = sqlite3.connect("file:skep.db?mode=ro", uri=True, timeout=10)
print(db.execute("SELECT count(*) FROM rounds WHERE run = (SELECT max(id) FROM runs)").fetchone()[0])' 2>/dev/null
}

begin() { # begin: a run that would take long, until it has finished some rounds; its process is $running
	rm -f skep.db
	"$skep" run long.yaml -q >"$out" 2>"$err" </dev/null &
	running=$!
	for _ in $(seq 200); do
		[ "$(rounds)" -gt 0 ] 2>/dev/null && return 0
		sleep 0.1
	done
	return 1
}

ended() { # ended NAME PATTERN: the run has failed, and said so in its last line
	status=0
	wait "$running" || status=$?
	if [ "$status" = 1 ] && tail -n 1 "$err" | grep -q "$2"; then pass "$1"; else fail "$1" "$(seen)"; fi
	check "$1: rounds are kept" [ "$(rounds)" -gt 0 ]
}

begin
kill -INT "$running"
ended 'interrupted' '^skep: the run was ended by SIGINT$'

begin
kill -TERM "$running"
ended 'terminated' '^skep: the run was ended by SIGTERM$'

begin
mpirun=$(pgrep -P "$running")
kill -KILL "$(pgrep -P "$mpirun" | tail -n 1)"
ended 'a worker killed' '^skep: a process of the run died'
over() { # over: the newest run does not seem to go on
	python3 -c 'import sqlite3
status, = sqlite3.connect("skep.db").execute("SELECT status FROM runs ORDER BY id DESC").fetchone()
assert status in ("failed", "dead"), status'
}
check 'a worker killed: the run is not left running' over

begin
kill -KILL "$(pgrep -P "$running")"
ended 'mpirun killed' '^skep: mpirun was ended by SIGKILL'
plan
