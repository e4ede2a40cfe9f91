#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# words.sh - names and prose use the words of docs/glossary.md: none of those that its last table gives up.
. tests/tap.sh
needs python3 awk

found=$(mktemp)
trap 'rm -f "$found"' EXIT
check 'words.py' eval 'python3 tests/style/words.py >"$found"'
for kind in names files keys exported prose; do
	check "$kind" awk -v kind="$kind:" '$1 == kind { print; bad = 1 } END { exit bad }' "$found"
done
check 'the table is one' test "$(grep -c '^error:' "$found")" = 0
plan
