#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# plots.sh - pictures that can be drawn, and those that cannot.
set -u
. tests/cli/lib.sh
needs python3

accepts 'something to draw' sim "$root/scenarios/two-datacentres.yaml" --set train.until.steps=10

begins_with() { # begins_with FILE BYTES
	[ "$(head -c ${#2} "$1" | tr -d '\0')" = "$2" ]
}

if command -v gnuplot >/dev/null; then
	for kind in accuracy cost matrix pareto throughput timeline utilisation; do
		accepts "plot $kind as PNG" plot "$kind" -o "$kind.png"
		check "$kind.png is a PNG file" begins_with "$kind.png" $'\x89PNG'
		accepts "plot $kind as SVG" plot "$kind" -o "$kind.svg"
		check "$kind.svg is an SVG file" grep -q '</svg>' "$kind.svg"
		accepts "plot $kind as PDF" plot "$kind" -o "$kind.pdf"
		check "$kind.pdf is a PDF file" begins_with "$kind.pdf" '%PDF'
	done
	accepts 'timeline of one round' plot timeline --rounds 3 -o round.png
	accepts 'timeline of the whole run' plot timeline --rounds all -o whole.svg
	check 'whole.svg is an SVG file' grep -q '</svg>' whole.svg
	accepts 'a run with churn' sim "$root/scenarios/preempted.yaml" --set train.until.steps=12 --db churn.db
	accepts 'its timeline' plot timeline -o churn.svg --db churn.db
	for word in 'whole run' 'dead or not there' 'download' 'workers by stage'; do
		check "which shows: $word" grep -q "$word" churn.svg
	done
	accepts 'a run whose links are alike' sim "$root/scenarios/swarm-256.yaml" --set train.until.steps=1 --db alike.db
	accepts 'its matrix' plot matrix -o alike.svg --db alike.db
	check 'the one value is in the legend' grep -q '>10 Gbit/s<' alike.svg
	check 'and there is no scale' eval '! grep -q "capacity (" alike.svg'
	# What no font has, here one for private use, does not cover the picture.
	accepts 'a name that no font can show' sim "$root/scenarios/two-datacentres.yaml" --set train.until.steps=2 --set $'name=\uE123 and \u00e9' --db glyph.db
	accepts 'its picture' plot accuracy -o glyph.png --db glyph.db
	check 'says so' grep -qxF 'skep: warning: no font here has U+E123, so the picture shows ? in its place; .svg has it' "$err"
	accepts 'its picture as SVG' plot accuracy -o glyph.svg --db glyph.db
	check 'has it, and without a word' eval 'grep -q $'\''\uE123'\'' glyph.svg && ! grep -q font "$err"'
	# A place without a worker, and runs that all lie under their mean.
	cat >lone.yaml <<-END
	name: places of which one has no worker
	source: assumed for this test
	directory: desk
	sites:
	  east: {machines: [{count: 2, gpu: v100, price: 1 USD/h}], inside: {bandwidth: 1 Gbit/s, latency: 1 ms}}
	  west: {machines: [{count: 2, gpu: v100, price: 1 USD/h}], inside: {bandwidth: 1 Gbit/s, latency: 1 ms}}
	  desk: {inside: {bandwidth: 1 Gbit/s, latency: 1 ms}}
	links:
	  - {between: [east, west], bandwidth: 100 Mbit/s, latency: 10 ms}
	  - {between: [east, desk], bandwidth: 100 Mbit/s, latency: 10 ms}
	  - {between: [west, desk], bandwidth: 100 Mbit/s, latency: 10 ms}
	END
	ln -s "$root/topologies/gpus" gpus
	for seed in 1 2; do
		accepts "a place without a worker, seed $seed" sim "$root/scenarios/two-datacentres.yaml" --set train.until.steps=3 --seed "$seed" \
			--set cluster.topology=lone.yaml --set train.arithmetic=none --db lone.db
	done
	accepts 'its matrix, with the file and the run as JSON' plot matrix -o lone.svg --db lone.db --json
	check 'which are there' python3 -c 'import json, sys
assert json.load(open(sys.argv[1])) == {"plot": "matrix", "file": "lone.svg", "runs": [2]}' "$out"
	check 'places with workers are in its legend' grep -q '>west<' lone.svg
	check 'and no other' eval '! grep -q ">desk<" lone.svg'
	accepts 'throughput' plot throughput -o lone.svg --db lone.db --json
	check 'names the runs that it shows' grep -q '"runs":\[1,2\]' "$out"
	check 'with what the database has' grep -qF ">$(python3 -c 'import sqlite3
print("%.0f samples/s" % sqlite3.connect("lone.db").execute("SELECT avg(throughput_samples_per_s) FROM runs").fetchone()[0])')" lone.svg
	accepts 'plot of a named run' plot accuracy 1 -o named.png
	for axis in time steps tokens bytes; do
		accepts "accuracy against $axis" plot accuracy 1 --x $axis --log xy -o "by-$axis.png"
	done

	# What a scenario is drawn from, as gnuplot gets it: bytes by class add up to what moves, and no cut moves more than the closed
	# form of it; a search never comes up again.
	mkdir spy
	printf '#!/bin/sh\ntee "%s" | "%s"\n' "$PWD/script.gp" "$(command -v gnuplot)" >spy/gnuplot
	chmod +x spy/gnuplot
	drawn_bytes() {
		python3 - <<-'END'
		import re
		text = open("script.gp").read()
		def block(name):
		    rows = re.search(r"^\$%s << END\n(.*?)^END$" % name, text, re.M | re.S).group(1).splitlines()
		    return [list(map(float, row.split())) for row in rows]
		passes, reductions, steps = block("stages_0"), block("stages_1"), block("steps_1")
		assert [row[0] for row in passes] == [row[0] for row in reductions] == list(range(1, 9)), passes
		assert passes[0][1:] == [0, 0, 0] and reductions[7][1:3] == [0, 0], (passes, reductions)
		for stages, fast, thin, closed in passes:
		    assert fast + thin <= closed * 1.0001 and (stages == 1 or fast + thin > 0.6 * closed), passes
		assert passes[3][3] == 6.309888 and abs(passes[3][1] + passes[3][2] - 6.309888) < 1e-5, passes
		assert reductions[3][1] == 0 and abs(reductions[3][2] - reductions[3][3]) < 1e-5, reductions
		assert steps[-1][0] == 60 and abs(steps[-1][2] - 60 * reductions[3][2]) < 1e-3, steps
		END
	}
	accepts 'stages with periods of their own' sim "$root/scenarios/diloco-periods.yaml" -q --set 'sync.every=[2, 4, 4, 2]' \
		--set train.schedule=null --set train.until.steps=8 --db periods.db
	drawn_steps() {
		PATH=$PWD/spy:$PATH "$skep" plot accuracy --x steps -o steps.svg --db periods.db &&
			test "$(sed -n '/^$mean <</,/^END/s/^\([0-9]*\) .*/\1/p' script.gp | tr '\n' ' ')" = '2 4 6 8 '
	}
	check 'against steps, in rounds of the shortest' drawn_steps
	drawn_searches() {
		python3 - <<-'END'
		import re
		text = open("script.gp").read()
		lines = [[tuple(map(float, row.split())) for row in rows.splitlines()]
		         for rows in re.findall(r"^\$line_1_\d+ << END\n(.*?)^END$", text, re.M | re.S)]
		assert len(lines) == 8 and {len(line) for line in lines} > {2}, lines
		for line in lines:
		    assert all(a[0] <= b[0] and a[1] >= b[1] for a, b in zip(line, line[1:])), line
		best = min(line[-1][1] for line in lines)
		assert sum(line[-1][1] == best for line in lines) >= 4 and best < 0.8 * lines[0][0][1], lines
		END
	}
	plain_path=$PATH
	PATH=$PWD/spy:$PATH
	accepts 'bytes of a scenario' plot complexity "$root/scenarios/two-datacentres.yaml" -o complexity.svg
	check 'by class of link' grep -q '100 Mbit/s to 1 Gbit/s' complexity.svg
	check 'which add up' drawn_bytes
	accepts 'searches of a scenario' plot search "$root/scenarios/two-datacentres.yaml" -o search.svg
	check 'each a line' grep -q '>portfolio<' search.svg
	check 'which comes down' drawn_searches
	PATH=$plain_path
	accepts 'bytes where nothing is reduced' plot complexity "$root/scenarios/square-cube.yaml" -o square-cube.svg
	accepts 'bytes with periodic sync' plot complexity "$root/scenarios/diloco.yaml" -o periodic.png
	printf '%s\n' network,method,evaluations,steps,cost_s {north,south}{,}',greedy,1,0,2.5' 'north,portfolio,7,9,1.5' >searches.csv
	accepts 'a table of searches' plot search searches.csv -o table.svg
	check 'with a panel for each network' grep -q '>south<' table.svg
else
	skip 'pictures' 'gnuplot is not installed'
fi

refuses 'an unknown kind' 'accuracy.*matrix.*timeline|accurcy' plot accurcy -o a.png
two=$root/scenarios/two-datacentres.yaml
refuses 'a scenario that is not given' '^skep: plot complexity takes one scenario$' plot complexity -o a.png
refuses 'two scenarios' '^skep: plot search takes one scenario, or a table of searches .\.csv.$' plot search "$two" "$two" -o a.png
refuses 'a scenario that is not there' 'nothing.yaml: error: ' plot complexity nothing.yaml -o a.png
refuses 'an axis of a scenario' 'are for pictures of runs' plot complexity "$two" --x time -o a.png
refuses 'a setting of a run' '--set and --seed are for pictures of a scenario' plot accuracy --set seed=2 -o a.png
refuses 'a scenario without a target' '^skep: plot needs -o FILE' plot complexity "$two"
refuses 'a scenario and an unknown ending' 'a.gif: the ending of the file says' plot search "$two" -o a.gif
refuses 'a table that is not there' '^none.csv: error: cannot be opened: No such file' plot search none.csv -o a.png
printf 'network,method\nx,y\n' >"$scratch/few.csv"
refuses 'a table of something else' 'few.csv:1:1: error: the header lacks these columns: evaluations, steps, cost_s' plot search "$scratch/few.csv" -o a.png
printf 'network,method,evaluations,steps,cost_s\nx,y,1,0,nan\n' >"$scratch/nan.csv"
refuses 'a table with a NaN' 'nan.csv:2:9: error: expected cost_s, a plain decimal number, not .nan.' plot search "$scratch/nan.csv" -o a.png
printf 'network,method,evaluations,steps,cost_s\n' >"$scratch/none.csv"
refuses 'a table without rows' 'none.csv: error: there is no row in it' plot search "$scratch/none.csv" -o a.png
refuses 'an unknown ending' 'png' plot accuracy -o a.gif
refuses 'rounds of another kind of plot' 'rounds is for the timeline' plot accuracy --rounds 1 -o a.png
refuses 'rounds that end before they begin' 'expected all, a round' plot timeline --rounds 4-2 -o a.png
refuses 'rounds that are no numbers' 'expected all, a round' plot timeline --rounds 1-x -o a.png
refuses 'a round that is not there' 'no round 10' plot timeline --rounds 10 -o a.png
refuses 'an axis that is not known' 'expected one of time, steps, tokens' plot accuracy --x weeks -o a.png
refuses 'an axis of another kind of plot' 'are for accuracy' plot cost --y loss -o a.png
refuses 'perplexity without tokens' 'no perplexity' plot accuracy --y perplexity -o a.png
refuses 'validation that was not made' 'validation' plot accuracy --validation -o a.png
refuses 'no ending' 'png' plot accuracy -o picture
refuses 'a run that is not there' '77' plot accuracy 77 -o a.png
refuses 'a run that is no number' 'run|first' plot accuracy first -o a.png
refuses 'a target in no folder' 'none/a.png' plot accuracy -o none/a.png
mkdir folder.png
refuses 'a target that is a folder' 'folder.png' plot accuracy -o folder.png
plain=$skep
mkdir bin locked
printf '#!/bin/sh\nPATH=%s exec %s "$@"\n' "$PWD/bin" "$plain" >"$scratch/poor"
chmod +x "$scratch/poor"
skep=$scratch/poor
refuses 'no gnuplot' 'gnuplot' plot accuracy -o a.png
skep=$plain
chmod 555 locked
if bound_by_permissions sh -c '! ( : >locked/probe ) 2>/dev/null'; then
	declare -f bound_by_permissions >"$scratch/bound.sh"
	printf '#!/bin/bash\n. "%s/bound.sh"\nbound_by_permissions "%s" "$@"\n' "$scratch" "$plain" >"$scratch/as-user"
	chmod +x "$scratch/as-user"
	skep=$scratch/as-user
	refuses 'a target in a read-only folder' 'locked/a.png' plot accuracy -o locked/a.png
	skep=$plain
else
	skip 'a target in a read-only folder' 'this system does not let a test give up root'
fi
plan
