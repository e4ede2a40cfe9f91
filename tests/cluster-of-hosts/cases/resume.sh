# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: Apache-2.0
#
# resume.sh - the directory is killed in the middle of a run and comes back: those that stayed come back to it with their ticket, and
# the run goes on behind the newest states that all stages have kept.

kept=(--set train.until.steps=60 --set "checkpoint={every: 5, to: $scratch/kept-resume}")
serves resume "${kept[@]}"
join_all --stay
awaits 'resume: the run begins' rounds 12
before=$ticket
kill -KILL "$serve"
wait "$serve" 2>/dev/null
awaits 'resume: those that stay knock on' grep -q 'tries again' resume-b3.err
stayed=$(declare -p joiner)
serves resume "${kept[@]}" --resume
eval "$stayed"
check 'resume: the ticket is the same' [ "$ticket" = "$before" ]
ends resume
for name in "${names[@]}"; do
	left "$name" 0
done
check 'resume: no step is missing, and the second run is done' python3 - resume.db <<-'END'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
first, second = ([r for r, in db.execute("SELECT round FROM rounds WHERE run = ? ORDER BY round", (run,))] for run in (1, 2))
assert second[0] >= 10 and second == list(range(second[0], 60)), second
assert first == list(range(len(first))) and second[0] <= len(first), (first, second)
assert db.execute("SELECT status FROM runs WHERE id = 2").fetchone()[0] == "done"
assert db.execute("SELECT count(*) FROM v_ledger WHERE run = 2 AND verdict <> 'kept'").fetchone()[0] == 0
END
run_skep replay 2 --db resume.db --json
check 'resume: replay agrees' grep -q '"verdict":"agrees"' "$out"
