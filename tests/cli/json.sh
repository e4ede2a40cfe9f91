#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# json.sh - what every command has in common: --json prints one JSON object on stdout and nothing else, -q nothing on stderr,
# help begins alike, and bad input ends with status 2 and a message, with nothing on stdout.
set -u
. tests/cli/lib.sh
needs python3
mpi_environment

one_object() { # stdout is one line with one JSON object, without numbers that JSON has not
	python3 - "$out" <<-'END'
	import json, sys
	text = open(sys.argv[1]).read()
	def refuse(word): raise ValueError(word)
	assert text.count("\n") == 1 and text.endswith("\n"), text[:500]
	assert isinstance(json.loads(text, parse_constant=refuse), dict), text[:500]
	END
}

speaks() { # speaks NAME ARGUMENT...: with --json, with -q, and with both
	local name=$1
	shift
	accepts "$name --json" "$@" --json
	check "$name --json: one object" one_object
	accepts "$name -q" "$@" -q
	check "$name -q: nothing on stderr" test ! -s "$err"
	accepts "$name --json -q" "$@" --json -q
	check "$name --json -q: one object" one_object
	check "$name --json -q: nothing on stderr" test ! -s "$err"
}

data=$root/tests/data
ln -s "$root/topologies" topologies
two=("$root/scenarios/two-datacentres.yaml" --set train.until.steps=3)
speaks check check "${quick[@]}"
speaks 'check of a topology with all' check "$root/scenarios/opt-350m.yaml"
speaks sim sim "${two[@]}"
speaks 'sim without arithmetic' sim "${two[@]}" --set train.arithmetic=none
speaks sweep sweep "${quick[@]}" --vary schedule.in_flight=1,2 --seeds 1..2
speaks compare compare 1 2
speaks 'trace stats' trace stats topologies/traces/small.csv
speaks 'trace import' trace import topologies/traces/small.csv -o own.csv
speaks 'trace generate' trace generate -o drawn.csv --machines 8 --duration '2 h' --scale '20 min'
speaks 'topology import' topology import rtt "$data/planetlab-5.txt" --bandwidth '100 Mbit/s' -o a.yaml
speaks 'topology stats' topology stats a.yaml
speaks bench bench P-16
if command -v gnuplot >/dev/null; then
	for kind in accuracy pareto; do
		speaks "plot $kind" plot "$kind" 1 -o "$kind.png"
	done
	speaks 'plot sweep' plot sweep -o sweep.png
else
	skip 'plot' 'gnuplot is not installed'
fi
if [ "$SKEP_HAS_MPI" = yes ]; then
	speaks run run "${quick[@]}" --db real.db
	speaks replay replay 1 --db real.db
	refuses 'replay of a simulated run' 'run 1' replay 1
else
	skip 'run and replay' 'built without MPI'
fi

for words in 'check' 'sim' 'run' 'sweep' 'compare' 'plot' 'replay' 'bench' 'trace import' 'trace stats' 'trace generate' \
	'topology import' 'topology stats' 'trace' 'topology'; do
	read -ra command <<<"$words"
	for option in --help -h; do
		accepts "skep $words $option" "${command[@]}" "$option"
		check "skep $words $option: usage, a blank line, a sentence" python3 - "$out" "$words" <<-'END'
		import sys
		lines = open(sys.argv[1]).read().split("\n")
		assert lines[0].startswith("usage: skep " + sys.argv[2]) and lines[1] == "" and lines[2][0].isupper(), lines[:3]
		assert all(len(line) <= 120 and line == line.rstrip() for line in lines), "a line too wide, or with blanks at its end"
		END
	done
	case $words in trace | topology) continue ;; esac
	refuses "skep $words with an unknown option" 'frobnicate' "${command[@]}" --frobnicate
	refuses "skep $words --db without a file" "--db|'--db'" "${command[@]}" --db
done
accepts 'skep help sim' help sim
check 'skep help sim is that of sim' grep -q '^usage: skep sim' "$out"
refuses 'skep help of nothing known' "no command 'simm'" help simm

for command in compare 'plot accuracy -o a.png' 'replay 1'; do
	read -ra words <<<"$command"
	refuses "$command without a database" 'no/such.db: no such database' "${words[@]}" --db no/such.db
done
refuses 'a database in no folder' 'no/such.db: cannot be created: .*make its folder first' sim "${quick[@]}" --db no/such.db
refuses 'a kind of plot before a database' 'not a kind of plot' plot pie -o a.png --db no/such.db
refuses 'a scenario where a topology belongs' 'this is no topology but a scenario' topology stats "$root/scenarios/one-worker.yaml"
plan
