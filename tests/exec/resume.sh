#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# resume.sh - a real run of which every process gets SIGKILL in the middle of it, as when its host is lost, and which is taken up
# again, twice: by as many workers, and by others of them in another place. The database is readable all the time, the runs are one
# line, each gradient is counted once, decisions replay, and what is learnt is what a run learns that nothing has happened to.
set -u
. tests/cli/lib.sh
needs python3 mpirun

mpi_environment
job job.yaml 5 300 4 2
place 2
keeps=(--set 'checkpoint={every: 20, to: kept}' --set cluster.compute_scale=400 --pace -q --json)

newest() { # newest STAGE: version that is kept of it
	find kept -maxdepth 1 -name "stage-$1-version-*.kept" 2>/dev/null | sed 's/.*version-//; s/\.kept//' | sort -n | tail -n 1
}

whole() { # whole: the newest version of both stages
	local version
	for version in $(find kept -maxdepth 1 -name 'stage-0-*.kept' | sed 's/.*version-//; s/\.kept//' | sort -nr); do
		[ -e "kept/stage-1-version-$version.kept" ] && echo "$version" && return
	done
	echo 0
}

processes() { # processes PID: it and all below it
	local child
	echo "$1"
	for child in $(children "$1"); do processes "$child"; done
}

cut_short() { # cut_short UNTIL ARGUMENT...: all of it is killed at once as soon as that version is kept
	local until=$1
	shift
	"$skep" run "$@" >"$out" 2>"$err" </dev/null &
	running=$!
	for _ in $(seq 1200); do
		[ "$(newest 0)" -ge "$until" ] 2>/dev/null && [ "$(newest 1)" -ge "$until" ] && break
		sleep 0.05
	done
	# shellcheck disable=SC2046
	kill -KILL $(processes "$running") 2>/dev/null
	wait "$running" 2>/dev/null
}

accepts 'a run that nothing happens to' run job.yaml "${keeps[@]}" --set checkpoint.to=undisturbed
cut_short 40 job.yaml "${keeps[@]}" --resume=auto
first=$(whole)
check 'the first one has begun where nothing was kept, and has kept something' [ "$first" -ge 40 ]
check 'the first one is not at its end' [ "$first" -lt 200 ]
sleep 0.2

cut_short "$((first + 40))" job.yaml "${keeps[@]}" --resume=auto
second=$(whole)
check 'the second one has gone on' [ "$second" -gt "$first" ]
check 'nothing is moved aside but what no stage could go on with' \
	[ "$(find kept -path '*run-*' -name "*-version-$first.kept" | wc -l)" = 0 ]

# Other machines: two workers in place of four.
accepts 'two workers go on with what four have kept' run job.yaml "${keeps[@]}" --resume --set cluster.topology=place-2.yaml
check 'it reached its end' [ "$(whole)" = 300 ]
check 'three versions of each stage are left' [ "$(find kept -maxdepth 1 -name '*.kept' | wc -l)" = 6 ]

told() { # told FIRST SECOND: what the database says of runs 2 to 4, of which 1 is the one that nothing has happened to
	python3 - "$1" "$2" <<-'END'
	import sqlite3, sys
	db = sqlite3.connect("skep.db")
	rows = db.execute("SELECT id, first_round, continues, status FROM runs ORDER BY id").fetchall()
	assert rows[1][:3] == (2, 0, None) and rows[2][:3] == (3, int(sys.argv[1]), 2), rows
	assert rows[3] == (4, int(sys.argv[2]), 3, "done") and rows[1][3] == rows[2][3] == "dead", rows
	for run, first in ((3, int(sys.argv[1])), (4, int(sys.argv[2]))):
	    least = db.execute("SELECT min(round) FROM rounds WHERE run = ?", (run,)).fetchone()[0]
	    assert least == first, (run, least, first)
	assert [v for v, in db.execute("SELECT DISTINCT verdict FROM v_ledger")] == ["kept"]
	assert [v for v, in db.execute("SELECT DISTINCT verdict FROM v_counted_once WHERE run IN (1, 4)")] == ["kept"]
	before = dict(db.execute("SELECT run, time_s FROM v_before"))
	assert 0 < before[3] < before[4], before
	spent = dict(db.execute("SELECT run, counted FROM v_before"))
	assert spent == {3: 16 * rows[2][1], 4: 16 * rows[3][1]}, spent
	losses = [[l for l, in db.execute("SELECT loss FROM rounds WHERE run = ? ORDER BY round", (r,))] for r in (1, 4)]
	ends = [sum(l[-20:]) / 20 for l in losses]
	assert ends[1] < 2 * ends[0] and ends[1] < losses[0][0] / 10, (ends, losses[0][0])
	END
}

check 'the database tells of all, as one' told "$first" "$second"
accepts 'both are one line' plot accuracy 2 3 4 -o line.svg
accepts 'the last one replays' replay 4 --json
accepts 'what was cut short replays as far as it is known' replay 3 --json

accepts 'again: there is nothing left to do' run job.yaml "${keeps[@]}" --resume
check 'again: nothing was done' grep -q '"resumed":false,"steps":300' "$out"
accepts 'longer' run job.yaml "${keeps[@]}" --resume --set train.until.steps=310
check 'longer: ten steps more' python3 -c 'import json, sys; assert json.load(open(sys.argv[1]))["steps"] == 10' "$out"
plan
