#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# export.sh - `skep export timeline`, `runs` and `rounds`: what other programs read, held against the database (export.py).
set -u
. tests/cli/lib.sh
needs python3

held() { # held NAME ARGUMENT... of export.py
	local name=$1
	shift
	if python3 "$root/tests/cli/export.py" "$@" >"$scratch/why" 2>&1; then pass "$name"; else fail "$name" "$(tail -5 "$scratch/why")"; fi
}

job mine.yaml 3 8 4 2
printf '%s\n' 0,join,a 0,join,b 0,join,c 0,join,d 0.01,leave,b 0.03,join,b >trace.csv
sed -e 's/cluster: {/&trace: {file: trace.csv, any_gpu: true}, /' -e 's/^schedule.*/&\ndirectory: {heartbeat: 1 ms, timeout: 5 ms}/' mine.yaml >churn.yaml
accepts 'a run' sim mine.yaml
accepts 'and one with churn' sim churn.yaml
accepts 'one without losses' sim mine.yaml --set train.arithmetic=none --seed 4
refuses 'a run alone' 'export what of that run. .skep export runs RUN.' export 1
refuses 'the word weights' 'need no word before it: skep export SCENARIO -o FOLDER' export weights 1 -o x
refuses 'a scenario of two runs' 'export scenario takes one run' export scenario 1 2
refuses 'a scenario of no run' 'there is no run 77' export scenario 77
refuses 'a scenario of another ending' 'ends in .yaml' export scenario 1 -o again.json
refuses 'a timeline without a file' 'export timeline needs -o FILE' export timeline
refuses 'a timeline of two runs' 'takes one run' export timeline 1 2 -o t.json
refuses 'a timeline of no run' 'there is no run 77' export timeline 77 -o t.json
refuses 'a timeline of another ending' 'ends in .json' export timeline -o t.csv
refuses 'a table of no run' 'there is no run 77' export runs --csv 77
refuses 'weights with --csv' 'weights takes one scenario' export mine.yaml --csv -o folder
refuses 'weights with a run' 'weights takes one scenario' export mine.yaml 1 -o folder
refuses 'a table with --step' 'for weights' export runs --step 3
refuses 'a table with --set' 'for the weights' export runs --set seed=1
accepts 'the timeline of the newest run' export timeline -o newest.json
held 'is that of the database' timeline newest.json skep.db 3
accepts 'the timeline of a run with churn' export timeline 2 -o churn.json
held 'has who left' timeline churn.json skep.db 2
accepts 'which it may write again' export timeline 1 -o churn.json
echo '{}' >other.json
refuses 'but not over another file' 'not what this command writes' export timeline 1 -o other.json
accepts 'all runs' export runs --csv -o runs.csv
held 'as a table' csv runs.csv skep.db runs id
accepts 'a name' runs name 1 first
accepts 'a tag' runs tag first good
accepts 'and another' runs tag first best
accepts 'runs with them' export runs --csv 1 3 -o named.csv
check 'are in its last columns' test "$(sed 's/.*,\([^,]*,[^,]*\)$/\1/' named.csv | tr '\n' ';')" = 'name,tags;first,best good;,;'
cp skep.db old.db
python3 -c 'import sqlite3; db = sqlite3.connect("old.db"); db.execute("DROP TABLE labels"); db.commit()'
accepts 'a database without names' export runs --csv 1 --db old.db -o old.csv
check 'has none' test "$(sed 's/.*,\([^,]*,[^,]*\)$/\1/' old.csv | tr '\n' ';')" = 'name,tags;,;'
accepts 'rounds of two' export rounds 1 3 --csv
cp "$out" rounds.csv
held 'as a table' csv rounds.csv skep.db rounds run,round 1,3
python3 - <<'END'
import sqlite3
with sqlite3.connect("skep.db") as db:
    db.execute("UPDATE runs SET path = 'a' || char(13) || 'b' WHERE id = 1")
    db.execute("UPDATE runs SET scenario = ?, final_loss = 9e999 WHERE id = 2", ['a "quoted", name\nof \x1b[31mtwo lines</script>'])
END
accepts 'names with quotes and line ends' export runs --csv -o runs.csv
held 'stay cells' csv runs.csv skep.db runs id
check 'a carriage return is quoted' python3 -c 'assert b",\"a\rb\"," in open("runs.csv", "rb").read()'
check 'a terminal gets no escape sequence' python3 - "$skep" <<'END'
import os, pty, sys
shown = b""
child, terminal = pty.fork()
if child == 0:
    os.execv(sys.argv[1], [sys.argv[1], "export", "runs", "--csv"])
try:
    while more := os.read(terminal, 4096):
        shown += more
except OSError:
    pass # the child has closed it
status = os.waitpid(child, 0)[1]
assert status == 0 and b"?[31mtwo lines" in shown and b"\x1b" not in shown, (status, shown)
END
accepts 'and strings' export timeline 2 -o churn.json
held 'in JSON' timeline churn.json skep.db 2
plan
