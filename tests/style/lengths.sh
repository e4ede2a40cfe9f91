#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# lengths.sh - no function over 70 lines, no file over 600, no line over 130 columns (clang-format breaks code at 120, but no
# comment). A function runs from the line of its name, in column 1, to the brace that closes it, in column 1.
set -u
. tests/tap.sh

# One process for all files. A tab reaches to the next multiple of 8, a character of several bytes is one column.
too_long() { # too_long FILE...
	LC_ALL=C awk '
		function columns(text,    i, at) {
			gsub(/[\200-\277]/, "", text)
			while ((i = index(text, "\t")) > 0)
				text = substr(text, 1, i - 1) substr("        ", 1, 8 - (i - 1) % 8) substr(text, i + 1)
			return length(text)
		}
		function end_file() {
			if (lines > 600)
				printf "%s: %d lines\n", file, lines
		}
		FNR == 1 { end_file(); file = FILENAME; start = 0 }
		{ lines = FNR }
		length($0) > 60 && columns($0) > 130 { printf "%s:%d: over 130 columns\n", FILENAME, FNR }
		/^[A-Za-z_].*\(/ && !/;[ \t]*$/ { name = $0; start = FNR }
		/^}/ {
			if (start && FNR - start + 1 > 70)
				printf "%s:%d: %d lines: %s\n", FILENAME, start, FNR - start + 1, substr(name, 1, 70)
			start = 0
		}
		END { end_file() }' "$@"
}

# What it finds in a file that is too long in all three ways.
long=$(mktemp)
{
	printf 'void f(void)\n{\n'
	for i in {1..70}; do printf '\t;\n'; done
	printf '}\n\t%s\n' "$(printf 'ä%.0s' {1..123})"
	for i in {1..530}; do echo; done
} >"$long"
found=$(too_long "$long" | sed "s,^$long:,,")
[ "$found" = $'1: 73 lines: void f(void)\n74: over 130 columns\n 604 lines' ] && pass 'each is found' || fail 'each is found' "$found"
sed -i '50,60d; s/ä//' "$long"
check 'what is not too long is let pass' test -z "$(too_long "$long")"
rm -f "$long"

mapfile -t files < <(c_files)
found=$(too_long "${files[@]}")
for file in "${files[@]}"; do
	[[ $'\n'$found == *$'\n'"$file:"* ]] && fail "$file" "$(grep "^$file:" <<<"$found")" || pass "$file"
done
plan
