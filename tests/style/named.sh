#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# named.sh - files, messages and fields that pages and comments name are there; and the check sees those that are not.
. tests/tap.sh
needs python3

root=$PWD
found=$(mktemp -d)
trap 'rm -rf "$found"' EXIT
check 'named.py' eval 'python3 tests/style/named.py >"$found/here"'
for kind in file message field; do
	check "each $kind is there" awk -v kind="$kind" '$1 == kind { print; bad = 1 } END { exit bad }' "$found/here"
done

mkdir -p "$found/tree/docs" "$found/tree/core"
cd "$found/tree" || exit 1
echo 'struct skep_plan { int rounds; }; /* SKEP_MESSAGE_FORWARD; see gone.c and plan.h */' >core/plan.h
echo 'FORWARD goes before BACKWARD; `plan->rounds`, `plan->laps`, core/plan.h, test_NAME.c and llm.c.' >docs/protocol.md
python3 "$root/tests/style/named.py" >"$found/there"
printf '%s\n' 'file core/plan.h gone.c' 'message docs/protocol.md BACKWARD' 'field docs/protocol.md plan->laps' >"$found/wanted"
check 'what is not there is found, and nothing else' diff "$found/wanted" "$found/there"
plan
