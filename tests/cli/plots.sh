#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# plots.sh - pictures that can be drawn, and those that cannot.
set -u
. tests/cli/lib.sh

accepts 'something to draw' sim "$root/scenarios/two-datacentres.yaml" --set train.until.steps=10

begins_with() { # begins_with FILE BYTES
	[ "$(head -c ${#2} "$1" | tr -d '\0')" = "$2" ]
}

if command -v gnuplot >/dev/null; then
	for kind in accuracy cost matrix pareto throughput timeline; do
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
	accepts 'plot of a named run' plot accuracy 1 -o named.png
	for axis in time steps tokens bytes; do
		accepts "accuracy against $axis" plot accuracy 1 --x $axis --log xy -o "by-$axis.png"
	done
else
	skip 'pictures' 'gnuplot is not installed'
fi

refuses 'an unknown kind' 'accuracy.*matrix.*timeline|accurcy' plot accurcy -o a.png
refuses 'an unknown ending' 'png' plot accuracy -o a.gif
refuses 'rounds of another kind of plot' 'rounds is for the timeline' plot accuracy --rounds 1 -o a.png
refuses 'rounds that end before they begin' 'expected all, a round' plot timeline --rounds 4-2 -o a.png
refuses 'rounds that are no numbers' 'expected all, a round' plot timeline --rounds 1-x -o a.png
refuses 'a round that is not there' 'no round 10' plot timeline --rounds 10 -o a.png
refuses 'an axis that is not known' 'expected time, steps, tokens' plot accuracy --x weeks -o a.png
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
