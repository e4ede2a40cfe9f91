#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# report.sh - `skep report`: pages of one run, two, many, a sweep, a run without losses, and one whose names try to break out. Each
# page is read as HTML and held against the database (report.py), and one is opened in a browser where there is one.
set -u
. tests/cli/lib.sh
needs python3

page() { # page NAME FILE ARGUMENT... of report.py
	local name=$1
	shift
	if python3 "$root/tests/cli/report.py" "$@" >"$scratch/why" 2>&1; then pass "$name"; else fail "$name" "$(tail -5 "$scratch/why")"; fi
}

runs='asked machines loss timeline utilisation traffic churn prediction scenario repeat'
many='asked results choice pictures repeat'
job mine.yaml 3 8 4 2
printf '%s\n' 0,join,a 0,join,b 0,join,c 0,join,d 0.01,leave,b 0.03,join,b >trace.csv
sed -e 's/cluster: {/&trace: {file: trace.csv, any_gpu: true}, /' -e 's/^schedule.*/&\ndirectory: {heartbeat: 1 ms, timeout: 5 ms}/' mine.yaml >churn.yaml

refuses 'no file' '^skep: report needs -o FILE' report
refuses 'a file of another kind' 'ends in .html' report -o report.png
refuses 'no database' 'skep.db' report -o report.html
accepts 'a run' sim mine.yaml
accepts 'and one with churn' sim churn.yaml
accepts 'one without losses' sim mine.yaml --set train.arithmetic=none --seed 4
refuses 'a run that is not there' '77' report 77 -o report.html
refuses 'a run twice' 'twice' report 1 1 -o report.html
refuses 'one of several that is not there' 'no run 77' report --sweep 1 77 -o report.html
refuses 'a run of no sweep' 'part of no sweep' report 1 --sweep -o report.html
refuses 'no sweep' 'no sweep' report --sweep -o report.html

accepts 'the report of a run' report 1 -o one.html
page 'is a page' one.html skep.db 1 $runs
accepts 'the report of two' report 1 2 -o two.html
page 'has both' two.html skep.db 1,2 $runs
accepts 'the report of a run without losses' report 3 -o none.html
page 'has all sections' none.html skep.db 3 $runs
accepts 'it replaces its own page' report 3 -o none.html
cp skep.db eventful.db
python3 - <<'END'
import sqlite3
with sqlite3.connect("eventful.db") as db:
    end_s = db.execute("SELECT time_s FROM runs WHERE id = 1").fetchone()[0]
    db.executemany("INSERT INTO notes (run, time_s, worker, epoch, kind, round, peer, value) VALUES (1, ?, 4, 1, 'left', 0, ?, 0)",
                   [(end_s * i / 999, i) for i in range(1000)])
END
accepts 'a report of more events than the map has frames' report 1 --db eventful.db -o eventful.html
check 'the map says the last one of each frame' python3 - <<'END'
import json
page = open("eventful.html").read()
events = json.JSONDecoder().raw_decode(page, page.index('"events":[[') + len('"events":'))[0]
assert [frame for frame, _ in events] == list(range(240)), events
assert events[0][1] == "worker 4 leaves" and events[-1][1] == "worker 999 leaves", (events[0], events[-1])
END
echo precious >other.html
refuses 'but no other' 'not what this command writes' report 3 -o other.html
accepts 'runs side by side' report --sweep 1..3 -o many.html
page 'in a page' many.html skep.db 1,2,3 $many
accepts 'a sweep' sweep mine.yaml --vary schedule.microbatch=16,32 --seeds 1..2 --set train.until.steps=3
accepts 'its report' report --sweep -o sweep.html
page 'in a page of its own' sweep.html skep.db '' $many
check 'with its command' grep -q 'skep sweep mine.yaml --vary schedule.microbatch=16,32 --seeds 1,2' sweep.html

# A loss is called one thing wherever it is said.
accepts 'a run that validates' sim mine.yaml --set 'train.validate={every: 1}' --db validated.db -q --json
cp "$out" validated.json
accepts 'its report' report --db validated.db -o validated.html
accepts 'and its row' runs list --db validated.db --json
check 'have the losses of its summary' python3 - "$out" <<-'END'
import json, re, sys
seen, row, page = json.load(open("validated.json")), json.load(open(sys.argv[1]))["runs"][0], open("validated.html").read()
assert seen["final_loss"] != seen["final_validation_loss"], seen
assert row["loss"] == seen["final_loss"], row
for name in "final loss", "final validation loss":
    values = re.findall("<dt>%s</dt><dd>(.*?)</dd>|<th scope=.row.>%s</th><td>(.*?)</td>" % (name, name), page.replace("\n", ""))
    want = "%.4g" % seen[name.replace(" ", "_")]
    assert len(values) == 2 and {a or b for a, b in values} == {want}, (name, values, want)
END

# The page must hold whatever a name holds.
python3 - <<'END'
import sqlite3
with sqlite3.connect("skep.db") as db:
    evil = "\x1b[31mred\x07</script><script>alert(1)</script><img src=x onerror=alert(2)>'\"&amp;\u202e\x7f"
    db.execute("UPDATE runs SET scenario = ?, model = ?, topology = ?, path = ?, text = ?", [evil] * 5)
    db.execute("UPDATE places SET name = ?", [evil])
    db.execute("UPDATE workers SET gpu = ? WHERE gpu IS NOT NULL", [evil])
    db.execute("UPDATE sources SET path = ?, text = ?", [evil] * 2)
    db.execute("UPDATE sweeps SET scenario = ?, path = ?", [evil] * 2)
    db.execute("UPDATE sweep_values SET value = ? || value", [evil])
END
accepts 'the report of runs with evil names' report 1 2 -o evil.html
page 'keeps them text' evil.html skep.db 1,2 $runs
accepts 'the report of such a sweep' report --sweep -o evils.html
page 'keeps them text too' evils.html skep.db '' $many

if command -v chromium >/dev/null; then
	browse() { # browse FILE: the page as it is after its script has run; what the script or the browser complained of in $err
		timeout -k 5 100 chromium --headless=new --no-sandbox --disable-gpu --user-data-dir="$scratch/browser" --enable-logging=stderr \
			--virtual-time-budget=2000 --dump-dom "file://$PWD/$1" >"$out" 2>"$err" </dev/null
	}
	browse evil.html
	check 'the script plays the map' grep -q 'class="swarm playable"' "$out"
	check 'and says who is there' grep -q '4 of 4 workers are there' "$out"
	check 'without an error' sh -c "! grep -E 'CONSOLE' '$err'"

	# On a phone nothing is wider than the screen but what scrolls by itself, and text stands out from the page, dark or light.
	cat >measure.html <<-'END'
	<!doctype html><body><iframe id="page" width="360" height="700"></iframe><p id="said"></p><script>
	const frame = document.getElementById('page'), light = c => c.match(/\d+/g).slice(0, 3).reduce((sum, x) => sum + x / 765, 0);
	frame.onload = () => setTimeout(() => {
		const page = frame.contentDocument, style = getComputedStyle(page.body), root = page.documentElement;
		const pictures = [...page.querySelectorAll('#loss svg, #pictures svg')], turned = pictures.every(p => /invert/.test(getComputedStyle(p).filter));
		const text = pictures.flatMap(p => [...p.querySelectorAll('text')]).map(t => light(getComputedStyle(t).fill));
		document.getElementById('said').textContent = 'measured ' + JSON.stringify({wide: root.scrollWidth, screen: root.clientWidth,
			back: light(style.backgroundColor), ink: light(style.color), turned, texts: text.length, brightest: Math.max(...text)});
	}, 500);
	frame.src = location.search.slice(1);
	</script></body>
	END
	measure() { # measure PAGE [OPTION]: what the browser makes of it, as JSON in $out
		timeout -k 5 100 chromium --headless=new --no-sandbox --disable-gpu --user-data-dir="$scratch/browser" --allow-file-access-from-files \
			--virtual-time-budget=3000 --dump-dom ${2:+"$2"} "file://$PWD/measure.html?$1" 2>"$err" </dev/null |
			grep -o 'measured {[^<]*' | sed 's/^measured //' >"$out"
	}
	readable() { # readable light|dark
		python3 -c 'import json, sys
m = json.load(open(sys.argv[1]))
assert 300 < m["screen"] <= 360 and m["wide"] <= m["screen"], m
bright, dark = (m["back"], m["ink"]) if sys.argv[2] == "light" else (m["ink"], m["back"])
assert bright > 0.8 and dark < 0.2 and m["texts"] > 5, m
assert m["brightest"] < 0.6 and m["turned"] == (sys.argv[2] == "dark"), m' "$out" "$1"
	}
	for page in two.html sweep.html; do
		measure $page
		check "$page on a phone" readable light
		measure $page --force-dark-mode
		check "$page in the dark" readable dark
	done
else
	skip 'in a browser' 'chromium is not installed'
fi
plan
