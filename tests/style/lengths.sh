#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# lengths.sh - no function over 70 lines, no file over 600, no line over 130 columns (clang-format breaks code at 120, but no
# comment). A function runs from the line of its name, in column 1, to the brace that closes it, in column 1.
set -u
. tests/tap.sh

too_wide() { # too_wide FILE: a tab reaches to the next multiple of 8, a character of several bytes is one column
	expand "$1" | LC_ALL=C.UTF-8 grep -nE '^.{131}' | sed "s,^\([0-9]*\):.*,$1:\1: over 130 columns,"
}

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
	found=$(too_long "$file"; too_wide "$file")
	if [ -z "$found" ]; then
		pass "$file"
	else
		fail "$file" "$found"
	fi
done
plan
