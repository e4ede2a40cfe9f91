#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# lengths.sh - no function over 70 lines, no file over 600. A function runs from the line of its name, in column 1, to the
# brace that closes it, in column 1.
set -u
. tests/tap.sh

too_long() { # too_long FILE
	awk '
		/^[A-Za-z_].*\(/ && !/;[ \t]*$/ { name = $0; start = FNR }
		/^}/ {
			if (start && FNR - start + 1 > 70)
				printf "%s:%d: %d lines: %s\n", FILENAME, start, FNR - start + 1, substr(name, 1, 70)
			start = 0
		}
		END { if (FNR > 600) printf "%s: %d lines\n", FILENAME, FNR }' "$1"
}

for file in $(c_files); do
	found=$(too_long "$file")
	if [ -z "$found" ]; then
		pass "$file"
	else
		fail "$file" "$found"
	fi
done
plan
