#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# runs.sh - runs that are listed, named, tagged, shown, removed and made small, and that commands find by their names.
set -u
. tests/cli/lib.sh
needs python3

for seed in 1 2 3; do
	accepts "run $seed" sim "${quick[@]}" --seed "$seed" -q
done

query() { # query SQL: the first value
	python3 -c 'import sqlite3, sys; print(sqlite3.connect("skep.db").execute(sys.argv[1]).fetchone()[0])' "$1"
}
equals() { # equals EXPECTED SEEN
	[ "$1" = "$2" ] || { echo "expected $1, saw $2"; return 1; }
}
rejects() { # rejects NAME REGEX ARGUMENT...: as refuses(), but SQLite may touch its log
	local name=$1 regex=$2
	shift 2
	run_skep "$@"
	check "$name" eval '[ "$status" = 2 ] && [ ! -s "$out" ] && grep -qE -- "$regex" "$err"'
}

# ---- list, show, names -----------------------------------------------------------------------------------------------

accepts 'runs list' runs list
check 'newest first' equals '3 2 1' "$(awk 'NR > 1 { print $1 }' "$out" | paste -sd " ")"
check 'what tells them apart' equals 'seed=3 seed=2 seed=1' "$(grep -o 'seed=.*' "$out" | paste -sd " ")"
accepts 'runs of a sweep' sweep "${quick[@]}" --vary train.optimizer.lr=1e-3,2e-3 --seeds 1..2 --db swept.db -q
accepts 'are listed' runs list --db swept.db
check 'each with its values' equals 'lr=1e-3 seed=1,lr=1e-3 seed=2,lr=2e-3 seed=1,lr=2e-3 seed=2' \
	"$(grep -o 'lr=.*' "$out" | sort | paste -sd ,)"
accepts 'a run as the file has it' sim "${quick[@]}" --db told.db -q
accepts 'one of which more is set than is shown' sim "${quick[@]}" --db told.db -q --set plan.objective=throughput \
	--set plan.seeds=2 --set schedule.in_flight=2 --set schedule.wiring=latency --set cluster.bandwidth_scale=2 \
	--set cluster.compute_scale=2 --set train.optimizer.lr=5e-3
accepts 'are listed' runs list --db told.db
check 'by what changes a run' sh -c '! grep -q "plan\." "$1" && grep -q "in_flight=2" "$1"' - "$out"
accepts 'one run alone' sim "${quick[@]}" --db alone.db -q
accepts 'is listed' runs list --db alone.db
check 'by its name' sh -c '! grep -q seed= "$1"' - "$out"
accepts 'runs name' runs name 2 base -q
accepts 'another name' runs name 3 base-slow -q
accepts 'runs tag' runs tag base paper -q
accepts 'runs tag by number' runs tag 3 paper -q
accepts 'once more is no change' runs tag 3 paper -q
many=()
for i in $(seq 10 29); do
	many+=("tag-$i-$(printf 'a%.0s' {1..48})")
done
for tag in "${many[@]}"; do
	run_skep runs tag 1 "$tag" -q
done
accepts 'a run of many tags' runs list --json
check 'has all of them, whole' python3 -c 'import json, sys
runs = json.load(open(sys.argv[1]))["runs"]
assert next(r["tags"] for r in runs if r["run_id"] == 1) == sys.argv[2:], runs' "$out" "${many[@]}"
for tag in "${many[@]}"; do
	run_skep runs tag 1 "$tag" --remove -q
done
rejects 'a name that is taken' 'run 2 has the name base already' runs name 1 base
rejects 'a name that is a number' "'7': a name or tag has a letter in front" runs name 1 7
rejects 'a name of a run that is not there' 'there is no run 9' runs name 9 nine
rejects 'neither a name nor --remove' 'runs name takes RUN NAME, or RUN --remove' runs name 1
accepts 'runs show' runs show base --json
check 'has name, tags, columns and rows' python3 - "$out" <<'END'
import json, sys
r = json.load(open(sys.argv[1]))
assert (r["id"], r["name"], r["tags"], r["status"], r["seed"]) == (2, "base", ["paper"], "done", 2), r
assert r["rows"]["rounds"] == 3 and r["rows"]["ops"] > 0 and r["rows"]["event_log"] == 0, r["rows"]
END
accepts 'runs list --tag' runs list --tag paper --json
check 'those with the tag' python3 -c 'import json, sys
assert [(r["run_id"], r["name"]) for r in json.load(open(sys.argv[1]))["runs"]] == [(3, "base-slow"), (2, "base")]' "$out"

accepts 'runs list --tag of none' runs list --tag nope
check 'says so' grep -qx 'skep: no run has the tag nope' "$err"
accepts 'a seed beyond 2^53' sim "${quick[@]}" --seed 9223372036854775807 -q --db seed.db
for words in 'list --json' 'show 1 --json'; do
	# shellcheck disable=SC2086
	accepts "runs $words" runs $words --db seed.db
	check 'has it to the last digit, and no name' grep -qE '"name":null.*"seed":9223372036854775807[,}]' "$out"
done
accepts 'runs show as text' runs show 1 --db seed.db
check 'has it as well' grep -qE '^  seed  +9223372036854775807$' "$out"

accepts 'compare by name and number' compare base 3
check 'of two simulations there is nothing to measure' sh -c '! grep -E "measure" "$1"' - "$out"
check 'compares these' grep -q '^first *run 2' "$out"
accepts 'compare by the beginning of a name' compare base-s 1
check 'finds it' grep -q '^first *run 3' "$out"
rejects 'one that two names have' '^skep: bas: 2 runs have names that begin so' compare bas 1
rejects 'a name of none' '^skep: fast is not the number of a run, two of them as in 3..14, or the name of one' compare fast 1
rejects 'a tag where one run is wanted' '@paper stands for several runs, and one is wanted here: name one' compare @paper 1
rejects 'a range where one run is wanted' '1..2 stands for several runs' runs show 1..2
rejects 'more runs than there may be' 'more than 256 runs: name fewer' report 1..256 3 -o r.html
rejects 'and as the last one' 'more than 256 runs: name fewer' report 1..255 3..4 -o r.html
rejects 'a tag of none' '@none: no run has this tag' runs rm @none
accepts 'a plot of a tag' plot accuracy @paper -o tag.svg -q
accepts 'a name is taken away' runs name base-slow --remove -q
check 'and is free' equals 1 "$(query "SELECT count(*) FROM labels WHERE kind = 'name'")"

# ---- gc, rm ----------------------------------------------------------------------------------------------------------

before=$(query 'SELECT count(*) FROM ops')
accepts 'gc that pretends' runs gc --keep 0 --pretend --json
check 'drops nothing' equals "$before" "$(query 'SELECT count(*) FROM ops')"
accepts 'gc' runs gc --keep 0 --json
check 'takes the detail of the run without a label' python3 - "$out" <<'END'
import json, sqlite3, sys
r = json.load(open(sys.argv[1]))
d = sqlite3.connect("skep.db")
assert r["runs"] == 1 and r["ops"] > 0 and r["bytes_after"] < r["bytes_before"], r
assert d.execute("SELECT DISTINCT run FROM ops ORDER BY run").fetchall() == [(2,), (3,)]
assert d.execute("SELECT ops_dropped FROM runs WHERE id = 1").fetchone() == (r["ops"],)
assert d.execute("SELECT count(*) FROM rounds WHERE run = 1").fetchone() == (3,)
assert d.execute("PRAGMA integrity_check").fetchone() == ("ok",)
END
accepts 'gc again' runs gc --keep 0 --json
check 'has nothing to do' grep -q '"runs":0' "$out"
rejects 'rm of one that is not there' 'there is no run 4' runs rm 1..4
check 'removes none of them' equals 3 "$(query 'SELECT count(*) FROM runs')"
accepts 'rm' runs rm base 1 --json
check 'removes all of both' equals '1 0 0' "$(query "SELECT (SELECT count(*) FROM runs) || ' ' ||
	(SELECT count(*) FROM rounds WHERE run <> 3) || ' ' || (SELECT count(*) FROM labels WHERE run <> 3)")"

# ---- a database of a stranger ----------------------------------------------------------------------------------------

cp skep.db strange.db
python3 - <<'END'
import sqlite3
with sqlite3.connect("strange.db") as d:
    d.execute("INSERT INTO runs SELECT 4" + "".join(", " + c[1] for c in d.execute("PRAGMA table_info(runs)") if c[1] != "id") + " FROM runs")
    d.execute("UPDATE runs SET model = ?, host = 'a' || char(27) || ']0;title' || char(7) WHERE id = 3", ["\x1b[31mred"])
    d.execute('CREATE TABLE "runs"" --" (run INTEGER)')
    d.execute("CREATE TABLE \"" + "q" + '""' * 61 + "\" (run INTEGER)")
    d.execute('INSERT INTO "runs"" --" VALUES (3), (4)')
END
accepts 'runs show of a text with escape sequences' runs show 3 --db strange.db
check 'shows none' sh -c '! LC_ALL=C grep -q "[^[:print:][:blank:]]" "$1" && grep -q "[?]\[31mred" "$1"' - "$out"
accepts 'rm beside a table whose name is SQL' runs rm 4 --db strange.db
check 'removes one run' python3 - <<'END'
import sqlite3
d = sqlite3.connect("strange.db")
assert d.execute("SELECT id FROM runs").fetchall() == [(3,)]
assert d.execute('SELECT run FROM "runs"" --"').fetchall() == [(3,)]
END

# ---- a database that is damaged, or not there ------------------------------------------------------------------------

rejects 'no database' 'none.db: no such database' runs gc --db none.db
check 'none is made' test ! -e none.db
cp skep.db hurt.db
python3 - <<'END'
import sqlite3
d = sqlite3.connect("hurt.db")
size, root = d.execute("PRAGMA page_size").fetchone()[0], d.execute("SELECT rootpage FROM sqlite_master WHERE name = 'ops_by_run'").fetchone()[0]
d.close()
with open("hurt.db", "r+b") as f:
    f.seek((root - 1) * size)
    f.write(b"\xff" * 400)
END
sum=$(cksum <hurt.db)
for words in 'gc --keep 0' 'rm 3' 'name 3 x' 'tag 3 x'; do
	# shellcheck disable=SC2086
	rejects "runs ${words%% *} of a damaged database" 'hurt.db: the database is damaged' runs $words --db hurt.db
done
check 'it is as it was' equals "$sum" "$(cksum <hurt.db)"
plan
