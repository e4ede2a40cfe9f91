#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# prefix.sh LIBRARY... - whatever one file of the program exports for others carries the prefix skep_, so that a program that
# links a part of ours meets no name of its own. What a compiler makes up begins with an underscore, or, as
# DW.ref.NAME of C++, has a dot.
set -u
. tests/tap.sh
needs nm

for library in "$@"; do
	found=$(nm -g --defined-only "$library" | awk 'NF == 3 && $3 !~ /^(skep_|_)|[.]/ { print $3 }' | sort -u)
	if [ -z "$found" ]; then
		pass "$(basename "$library")"
	else
		fail "$(basename "$library")" "$found"
	fi
done
plan
