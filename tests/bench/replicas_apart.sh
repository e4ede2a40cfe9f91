#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# replicas_apart.sh [MILLISECONDS [EVERY]] - rounds of a run with three replicas on one host, whose lines to each other take so long
# there and back (delay.py), and of the same with none; a checkpoint after each EVERY rounds. Rounds take about a second: operations
# are paced, so that the processes sleep. Medians, so that what else the host does matters little. A figure, not a test.
#
# $ROUNDS: of each run; $KEEP: a folder that gets what it leaves.
set -u
. tests/cli/lib.sh
. "$root/tests/cli/lib_serve.sh"
needs python3 sqlite3
apart=${1:-50} every=${2:-25} rounds=${ROUNDS:-61}
job job.yaml 1 "$rounds" 2 2
sed -i "s/^seed: 1\$/seed: 1\ncheckpoint: {every: $every, to: kept}/" job.yaml
children=()
trap 'kill "${children[@]}" 2>/dev/null; rm -rf "$scratch"' EXIT

# For those who join, and the next number for the other replicas; the same of the line from one replica to another.
first=$((20000 + RANDOM % 1000 * 10))
port() { echo $((first + 10 * $1)); }
line() { echo $((first + 10 * $1 + 2 * $2)); }

list() { # list I: as replica I sees the others
	local j text=
	for j in 1 2 3; do
		text+=,127.0.0.1:$([ "$j" = "$1" ] && port "$j" || line "$1" "$j")
	done
	echo "${text:1}"
}

measure() { # measure MILLISECONDS: there and back
	local i j pairs=() name
	rm -rf r? cache ./*.err
	mkdir r1 r2 r3
	: >relay.out
	for i in 1 2 3; do
		for j in 1 2 3; do
			[ "$i" = "$j" ] || pairs+=($(($(line "$i" "$j") + 1)):$(($(port "$j") + 1)))
		done
		: >"r$i/err"
		cp -R job.yaml place-2.yaml gpus "r$i"
	done
	python3 "$root/tests/bench/delay.py" "$(awk "BEGIN { print $1 / 2 }")" "${pairs[@]}" >relay.out &
	children=($!)
	until_said relay.out 'passes on'
	for i in 1 2 3; do
		(
			cd "r$i" || exit
			exec timeout -k 5 600 "$skep" serve job.yaml --pace --set cluster.compute_scale=27000 --replicas "$(list "$i")" \
				--replica "$i" --json >out 2>>err
		) &
		children+=($!)
		until_said "r$i/err" 'is the key that each of them needs'
		for j in 2 3; do
			[ "$i" != 1 ] || cp -p r1/skep.db-*.serve "r$j"
		done
	done
	ticket=
	until [ -n "$ticket" ]; do
		sleep 0.1
		ticket=$(grep -ho 'skep1-[0-9a-z]*' r?/err | head -n 1)
	done
	for name in a b; do
		timeout -k 5 600 "$skep" join "127.0.0.1:$(port 1),127.0.0.1:$(port 2),127.0.0.1:$(port 3)" --ticket "$ticket" --stay \
			--cache "$PWD/cache/$name" >"$name.out" 2>"$name.err" &
		children+=($!)
	done
	wait "${children[@]:1}"
	kill "${children[0]}"
	if [ -n "${KEEP:-}" ]; then
		rm -rf "$KEEP/$1"
		mkdir -p "$KEEP/$1"
		cp -R r? ./*.err "$KEEP/$1"
	fi
	python3 - "$1" "$every" r?/skep.db <<-'END'
	import sqlite3, statistics, sys
	closed = {}
	for name in sys.argv[3:]:
	    try:
	        closed.update(sqlite3.connect(name).execute("SELECT round, closed_s FROM rounds"))
	    except sqlite3.OperationalError:
	        pass # it never led
	every, lasts = int(sys.argv[2]), {}
	for last in sorted(closed):
	    if last - 1 in closed:
	        lasts.setdefault(last % every == 0, []).append(closed[last] - closed[last - 1])
	usual, kept = (statistics.median(lasts[i]) if i in lasts else float("nan") for i in (False, True))
	print(f"{sys.argv[1]} ms apart: {usual:.3f} s a round, {kept:.3f} s behind a checkpoint;",
	      f"{1 / (usual + (kept - usual) / every):.4f} rounds a second with one after each {every}", flush=True)
	END
}

measure 0
measure "$apart"
