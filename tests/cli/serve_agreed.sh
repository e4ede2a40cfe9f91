#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# serve_agreed.sh - three replicas that are 0.8 s apart, there and back: training goes on while a majority fetches a checkpoint, which takes
# two ways there and back at least. At the run's end a majority has the last one.
set -u
. tests/cli/lib.sh
. "$root/tests/cli/lib_serve.sh"
needs python3 sqlite3
needs_tls 'replicas far apart'
if "$skep" serve none.yaml --replicas a:1,b:1,c:1 --replica 1 2>&1 | grep -q 'built without libraft'; then
	skip 'replicas far apart' 'this build has no libraft'
	plan
	exit
fi
ROUNDS=18 KEEP=$PWD/left
export ROUNDS KEEP
(cd "$root" && bash tests/bench/replicas_apart.sh 800 4) >figures.txt 2>&1
check 'both runs end' test "$(grep -c 'ms apart: .* behind a checkpoint' figures.txt)" = 2
check 'a round behind a checkpoint waits for less than a way there and back' python3 -c '
import re
usual, kept = map(float, re.search(r"^800 ms apart: ([0-9.]+) s a round, ([0-9.]+) s behind", open("figures.txt").read(), re.M).groups())
assert kept - usual < 0.8, (usual, kept)'
for stage in 0 1; do
	check "a majority has the last state of stage $stage" \
		test "$(find left/800 -path '*/kept/*' -name "stage-$stage-version-18.kept" | wc -l)" -ge 2
done
plan
