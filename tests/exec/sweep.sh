#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# sweep.sh - a sweep over the ranks of mpirun: the same runs as without, in one database that rank 0 writes; a process that
# is killed costs its combination alone, a rank that is killed what MPI does not survive, and the same words again do the rest.
set -u
. tests/cli/lib.sh
needs python3 mpirun

mpi_environment
mpi=(mpirun --oversubscribe --bind-to none -n 3 "$skep" sweep)
words=("$root/scenarios/two-datacentres.yaml" --set train.until.steps=20 --vary schedule.wiring=uniform,throughput --seeds 1..4)

query() { # query FILE SQL: the first value
	python3 -c 'import sqlite3, sys
print(sqlite3.connect("file:" + sys.argv[1] + "?mode=rw", uri=True, timeout=20).execute(sys.argv[2]).fetchone()[0])' "$1" "$2"
}

equals() { # equals EXPECTED SEEN
	[ "$1" = "$2" ] || { echo "expected $1, saw $2"; return 1; }
}

spread() { # spread ARGUMENT...
	status=0
	timeout -k 5 300 "${mpi[@]}" "$@" >"$out" 2>"$err" </dev/null || status=$?
}

results() { # results FILE
	query "$1" "SELECT group_concat(digest) FROM (SELECT digest FROM sweep_runs JOIN runs ON id = run ORDER BY number)"
}

accepts 'without mpirun' sweep "${words[@]}" --db one.db -q --json
cp "$out" one.json
spread "${words[@]}" --db three.db --json -q
check 'three ranks' equals 0 "$status"
check 'three ranks: say it once' cmp one.json "$out"
check 'three ranks: the same runs' equals "$(results one.db)" "$(results three.db)"
check 'three ranks: each has done some' equals 3 "$(query three.db 'SELECT count(DISTINCT pid) FROM runs')"
spread "${words[@]}" --db three.db --json -q
check 'again: nothing is left to do' equals '0 8' "$status $(query three.db 'SELECT count(*) FROM runs')"
spread "${words[0]}" --vary schedule.in_fligt=2 --db bad.db
check 'a bad key: exit status 2' equals 2 "$status"
check 'a bad key: said once' equals 1 "$(grep -c 'unknown key .schedule.in_fligt., did you mean .in_flight.' "$err")"
check 'a bad key: no database' test ! -e bad.db

long=("${words[@]}" --set train.until.steps=45)

begin() { # begin FILE: a sweep in the background that has a run; its ranks are `ranks`
	"${mpi[@]}" "${long[@]}" --db "$1" >"$out" 2>"$err" </dev/null &
	sweep=$!
	for _ in {1..600}; do
		[ "$(query "$1" 'SELECT count(*) FROM runs' 2>/dev/null || echo 0)" -lt 1 ] || break
		sleep 0.05
	done
	for _ in {1..600}; do # a run may be over before another rank has begun
		ranks=$(children "$sweep")
		workers=$(for rank in $ranks; do children "$rank"; done)
		[ "$(wc -w <<<"$workers")" -lt 3 ] || break
		sleep 0.05
	done
}

begin worker.db
check 'each rank has its worker' equals 3 "$(echo "$workers" | wc -w)"
kill -9 "$(echo "$workers" | tail -n 1)"
wait "$sweep"
check 'a worker of another rank is killed: exit status 1' equals 1 $?
check 'which is said' grep -qE '^skep: process [0-9]+ was ended by SIGKILL' "$err"
check 'the others are there' equals 7 "$(query worker.db 'SELECT count(*) FROM runs')"
spread "${long[@]}" --db worker.db
check 'the same again does the one' equals '0 8' "$status $(query worker.db 'SELECT count(*) FROM runs')"

begin rank.db
kill -9 "$(echo "$ranks" | tail -n 1)"
wait "$sweep"
check 'a rank is killed: the sweep fails' test $? != 0
check 'what is there is whole' equals '0 ok' "$(query rank.db "SELECT count(*) FROM runs WHERE status <> 'done' OR steps <> 45
	OR steps <> (SELECT count(*) FROM rounds WHERE run = id)") $(query rank.db 'PRAGMA integrity_check')"
for _ in {1..600}; do
	# shellcheck disable=SC2086
	any_left $workers || break
	sleep 0.05
done
# shellcheck disable=SC2086
if any_left $workers; then fail 'no worker is left'; else pass 'no worker is left'; fi
spread "${long[@]}" --db rank.db
check 'the same again does the others' equals '0 8' "$status $(query rank.db 'SELECT count(*) FROM runs')"
plan
