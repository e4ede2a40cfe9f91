#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# ends.sh - real runs that are ended before their time, by a signal to skep or by the death of a process: the exit status of the
# signal, or 1, a last line that says which of the two it was, a database with every round that had finished, and no process left.
set -u
. tests/cli/lib.sh
needs python3 mpirun

mpi_environment

job long.yaml 3 100000 2 2

rounds() { # rounds: of the newest run that has finished
	python3 -c 'import sqlite3
db = sqlite3.connect("file:skep.db?mode=ro", uri=True, timeout=10)
print(db.execute("SELECT count(*) FROM rounds WHERE run = (SELECT max(id) FROM runs)").fetchone()[0])' 2>/dev/null
}

begin() { # begin: a run that would take long, until it has finished some rounds; its process is $running
	rm -f skep.db skep.db-wal skep.db-shm
	"$skep" run long.yaml -q >"$out" 2>"$err" </dev/null &
	running=$!
	for _ in $(seq 600); do
		if [ "$(rounds)" -gt 0 ] 2>/dev/null; then
			mpirun=$(children "$running" | head -n 1)
			processes="$mpirun $(children "$mpirun")"
			return 0
		fi
		sleep 0.1
	done
	return 1
}

gone() { # gone: no process of the run is left, soon
	for _ in $(seq 600); do
		# shellcheck disable=SC2086
		any_left $processes || return 0
		sleep 0.1
	done
	return 1
}

ended() { # ended STATUS NAME PATTERN: the run has failed, and said so in its last line
	local wanted=$1
	shift
	status=0
	wait "$running" || status=$?
	if [ "$status" = "$wanted" ] && tail -n 1 "$err" | grep -q "$2"; then pass "$1"; else fail "$1" "$(seen)"; fi
	check "$1: rounds are kept" [ "$(rounds)" -gt 0 ]
	check "$1: no process is left" gone
}

state() {
	python3 -c 'import sqlite3
print(sqlite3.connect("skep.db", timeout=10).execute("SELECT status FROM runs ORDER BY id DESC").fetchone()[0])'
}

for signal in INT:130 TERM:143 HUP:129; do
	name=${signal%:*}
	begin
	kill -s "$name" "$running"
	ended "${signal#*:}" "SIG$name" "^skep: the run was ended by SIG$name\$"
	check "SIG$name: rank 0 names the run" grep -q '^skep: run 1 was told to end by SIGTERM after [0-9]* steps, which are in skep.db$' "$err"
	check "SIG$name: the run goes on no more" [ "$(state)" = failed ]
done

# To mpirun as well, as a terminal does.
begin
kill -INT "$running" "$mpirun"
ended 130 'to all' '^skep: the run was ended by SIGINT$'

# No process of skep is left to tidy up: what was begun ends, and the folder of the run goes.
mkdir own
export TMPDIR=$PWD/own
begin
check 'skep killed: its folder is in TMPDIR' compgen -G 'own/skep-*'
kill -KILL "$running"
wait "$running" 2>/dev/null
check 'skep killed: no process is left' gone
tidy() {
	for _ in $(seq 600); do
		[ -n "$(ls own)" ] || return 0
		sleep 0.1
	done
	return 1
}
check 'skep killed: no folder is left' tidy
unset TMPDIR

# Somebody who does not want to wait: rank 0, stopped, could not end.
begin
kill -STOP "$(children "$mpirun" | head -n 1)"
kill -INT "$running"
check 'told twice: it hears the first' has_heard "$running"
sleep 0.5 # what comes sooner is the same word twice
kill -INT "$running"
ended 130 'told twice' '^skep: the run was ended by SIGINT$'

begin
kill -KILL "$(children "$mpirun" | tail -n 1)"
ended 1 'a worker killed' '^skep: a process of the run died'
check 'a worker killed: the run goes on no more' [ "$(state)" != running ]

begin
kill -KILL "$mpirun"
ended 1 'mpirun killed' '^skep: mpirun was ended by SIGKILL'
check 'mpirun killed: the run goes on no more' [ "$(state)" != running ]
plan
