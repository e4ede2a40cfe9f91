#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# silent.sh - real runs in which a process falls silent (SIGSTOP) or dies at the start, in the middle or before the end: the run ends
# by itself, with 0 only if its row says done, and else with a sentence that says who was missing.
set -u
. tests/cli/lib.sh
needs python3 mpirun

mpi_environment
job job.yaml 3 400 4 2
quickly=(--set 'directory={heartbeat: 200 ms, timeout: 3 s}') # others are kept from a core for less, even on a busy machine

query() { # query SQL: of skep.db
	python3 -c 'import sqlite3, sys
print(sqlite3.connect("skep.db", timeout=10).execute(sys.argv[1]).fetchone()[0])' "$1" 2>/dev/null
}

rank_of() { # rank_of LAUNCHER RANK: its process, when there is one
	local mpirun process
	for mpirun in $(children "$1"); do
		for process in $(children "$mpirun"); do
			tr '\0' '\n' <"/proc/$process/environ" 2>/dev/null | grep -qx "PMIX_RANK=$2" && echo "$process" && return
		done
	done
	return 1
}

begin() { # begin RANK ARGUMENT...: a run, and $process is that rank's
	local rank=$1
	shift
	rm -f skep.db skep.db-wal skep.db-shm
	"$skep" run job.yaml -q "$@" >"$out" 2>"$err" </dev/null &
	running=$!
	for _ in $(seq 2000); do
		process=$(rank_of "$running" "$rank") && return
		sleep 0.01
	done
	return 1
}

has_rounds() { # has_rounds: waits until some are finished
	for _ in $(seq 600); do
		[ "$(query 'SELECT count(*) FROM rounds')" -gt 5 ] 2>/dev/null && return
		sleep 0.1
	done
	return 1
}

over() { # over: the run has ended by itself; its exit status is $status
	timeout 200 tail --pid="$running" -f /dev/null || kill -KILL "$running"
	status=0
	wait "$running" || status=$?
}

ended() { # ended NAME STATUS PATTERN
	over
	if [ "$status" = "$2" ] && grep -qE "$3" "$err"; then pass "$1"; else fail "$1" "$(seen)"; fi
}

# Fenced long before the end, which does not wait for it, in what is recorded at least.
begin 3 "${quickly[@]}" --pace --set train.until.steps=1500
has_rounds
kill -STOP "$process"
ended 'a worker silent from the middle on' 0 '^skep: rank 3 does not answer at the end'
check 'a silent worker: the run is done' [ "$(query 'SELECT status FROM runs')" = done ]
check 'a silent worker: it was fenced' [ "$(query 'SELECT preemptions FROM runs')" = 1 ]
check 'a silent worker: all steps are made' [ "$(query 'SELECT steps FROM runs')" = 1500 ]
check 'a silent worker: the waiting is not counted' \
	[ "$(query 'SELECT time_s - (SELECT max(closed_s) FROM rounds) < 4 FROM runs')" = 1 ] # it takes 5 s and more
accepts 'a silent worker: replays' replay 1 --json

# Before it has come up.
begin 3 --start-limit 3
kill -STOP "$process"
ended 'a worker silent from the start on' 1 'see whether .* or take a longer --start-limit'
check 'silent from the start on: no run goes on' [ "$(query "SELECT count(*) FROM runs WHERE status = 'running'")" = 0 ]

# One that comes up and does not answer: a process of another command waits for work.
cat >mixed.sh <<-'END'
	case ${PMIX_RANK:-$OMPI_COMM_WORLD_RANK} in
	4) exec "$1" sweep job.yaml --seeds 1..2 ;;
	*) exec "$1" run job.yaml --start-limit "$2" ;;
	esac
END
for limit in 6 24; do # on a busy machine the others may need more
	rm -f skep.db
	status=0
	timeout -k 5 300 mpirun --oversubscribe -n 5 sh mixed.sh "$skep" $limit >"$out" 2>"$err" </dev/null || status=$?
	grep -qE '^skep: (waits for )?rank [123] .*(has not answered|: )' "$err" || break
done
if [ "$status" = 1 ]; then pass 'a rank that does not answer'; else fail 'a rank that does not answer' "$(seen)"; fi
check 'a rank that does not answer: it is said whom rank 0 waits for' grep -q '^skep: waits for rank 4' "$err"
check 'a rank that does not answer: in a sentence without two marks in a row' sh -c '! grep -q ",:" "$1"' - "$err"
check 'a rank that does not answer: and that it gives up' \
	grep -qE '^skep: rank 4.* has not answered for ([6-9]|[1-9][0-9]) s during the start' "$err"

refuses 'no time at all for the start' '--start-limit 0: expected a number of seconds' run job.yaml --start-limit 0

# Where deaths are survived, mpirun ends with 0 after them; skep does not unless the run is done.
run_skep run "${quick[@]}" --spares 0 -q --db "$scratch/spares.db"
if [ "$status" = 0 ]; then
	begin 0 --spares 1 --set train.until.steps=100000
	has_rounds
	kill -KILL "$process"
	ended 'the directory killed' 1 '^skep: .*the directory \(rank 0\) died, and the run with it'
	check 'the directory killed: the run goes on no more' [ "$(query 'SELECT status FROM runs')" = dead ]
	for rank in 0 2 5; do
		begin $rank --spares 1 --start-limit 3
		kill -KILL "$process"
		over
		finished=$(query "SELECT count(*) FROM runs WHERE status = 'done'")
		if [ "$status" != 0 ] && grep -q '^skep: ' "$err" || [ "$status.$finished" = 0.1 ]; then
			pass "rank $rank killed at the start: no false success"
		else
			fail "rank $rank killed at the start: no false success" "$(seen)"
		fi
	done
else
	begin 0 --set train.until.steps=100000
	has_rounds
	kill -KILL "$process"
	ended 'the directory killed' 1 '^skep: a process of the run died'
	check 'the directory killed: the run goes on no more' [ "$(query 'SELECT status FROM runs')" = dead ]
fi
plan
