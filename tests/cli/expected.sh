#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# expected.sh - what `skep check` expects of a step is what `skep sim` makes of it (expected.py): within 15 % on most of fifty pools, and where
# a closed form is known.
set -u
. tests/cli/lib.sh
needs python3

python3 "$root/tests/cli/expected.py" "$skep" "$root" >pools.txt 2>errors.txt
check 'fifty pools are compared' test "$(wc -l <pools.txt)" = 50
[ ! -s errors.txt ] || sed 's/^/# /' errors.txt
awk '$2 < 0.85 || $2 > 1.15 { print "# pool " $0 }' pools.txt
within() { # within PERCENT COUNT: at least so many are
	awk -v most="$1" -v count="$2" '{ n += $2 > 1 - most / 100 && $2 < 1 + most / 100 } END { exit !(n >= count) }' pools.txt
}
check 'most within 15 %' within 15 44
check 'nearly all within 30 %' within 30 48
