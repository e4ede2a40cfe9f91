#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# serve_kills.sh [MINUTES] - runs that are served to three who join, in each of which the server or one that joins is killed at a moment
# that a seed draws, and started again: twelve runs, or by hand as many as the minutes hold: tests/cli/serve_kills.sh 10
set -u
. tests/cli/lib.sh
needs python3
if "$skep" serve --help | grep -q 'built without TLS'; then
	skip 'served runs with kills' 'this build has no TLS'
	plan
	exit
fi
job kills.yaml 1 12 3 2
echo 'checkpoint: {every: 5, to: kept}' >>kills.yaml
# A file of 4 MB, so that there is a time while files come.
python3 -c 'print("# " + "\n# ".join(["x" * 1000] * 3800))' >>place-3.yaml
how=(--kills 12)
[ $# = 0 ] || how=(--minutes "$1" --seed "$RANDOM")
status=0
output=$(python3 "$root/tests/cli/serve_kills.py" "$skep" kills.yaml 12 "${how[@]}" 2>&1) || status=$?
if [ "$status" = 0 ]; then pass 'the server or one that joins killed at any moment'; else fail 'the server or one that joins killed' "$output"; fi
printf '%s\n' "$output" | sed 's/^/# /'
plan
