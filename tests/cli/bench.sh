#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# bench.sh - `skep bench`: its small rows are right, and what it refuses. No figure of speed is asked for.
set -u
. tests/cli/lib.sh
needs python3

rows() { # rows LEAST NAME=MAKESPAN...: one object, all rows right, and these rows have these makespans
	python3 - "$out" "$@" <<-'END'
	import json, sys
	text = open(sys.argv[1]).read()
	assert text.count("\n") == 1 and text.endswith("\n"), text
	seen = json.loads(text)
	assert list(seen) == ["version", "compiler", "processor", "cores", "load", "rows", "right"], list(seen)
	rows = seen["rows"]
	assert seen["right"] and len(rows) >= int(sys.argv[2]) and all(row["right"] for row in rows), rows
	for row in rows:
	    assert row["done"] > 0 and row["done_per_s"] > 0 and row["wall_s"] > 0 and row["peak_MiB"] > 0, row
	    assert row["exact_s"] is None or abs(row["makespan_s"] / row["exact_s"] - 1) < 1e-6, row
	for name, makespan in (word.split("=") for word in sys.argv[3:]):
	    assert any(row["workload"] == name and abs(row["makespan_s"] - float(makespan)) < 5e-9 for row in rows), name
	END
}

accepts 'skep bench small' bench small
check 'it tells of machine and compiler' grep -qE '^skep .*(gcc|clang) [0-9]' "$out"
check 'and of every workload' sh -c 'for w in PHOLD P F X R-fast start swarm; do grep -q "^$w-" "$1" || exit 1; done' - "$out"
check 'no row is wrong' sh -c '! grep -q WRONG "$1"' - "$out"
accepts 'skep bench small --json' bench small --json
check 'all small rows are right' rows 30 P-16=7.465306368 P-16=11.010780926 P-16=33.906793444 P-16=18.324373379 \
	P-16=15.029133970 P-16=9.535700971 P-16=24.859383315 P-16=12.324760267 P-16=15.366951740 P-128=11.019048192 \
	P-128=16.467580926 P-128=70.571295008 P-128=30.572154027 P-128=24.830365792 P-128=14.108554781 \
	P-128=18.185911445 P-128=21.923582084 R-fast-64=0.039438000
accepts 'a size, and repetitions' bench p-16 R-fast-64 --repeat 3 --json
check 'are those rows' rows 11
check 'nothing is left behind' test -z "$(ls -A)"
refuses 'a workload that is not there' "^skep: there is no workload 'Q';.* P-16 P-128 " bench Q
refuses 'half a number' "^skep: there is no workload 'P-1';" bench P-1
refuses 'one of two' "^skep: there is no workload 'nothing';" bench P-16 nothing
refuses 'no repetition' '^skep: --repeat 0: expected a number from 1 to 1000' bench P-16 --repeat 0
refuses 'an option of another command' '^skep: bench does not take the option --db' bench --db a.db
plan
