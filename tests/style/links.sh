#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# links.sh - links of the documents lead somewhere (links.py), and one that does not is found.
set -u
. tests/tap.sh
needs python3

mapfile -t pages < <(find . -name '*.md' -not -path './.*' -not -path './build*' | sed 's,^\./,,' | LC_ALL=C sort)
check 'links' python3 tests/style/links.py "${pages[@]}"
folder=$(mktemp -d)
printf '# One thing, and another\n[a](#one-thing-and-another) [b](page.md#one-thing-and-another) [c](https://example.org/#none)\n' >"$folder/page.md"
check 'good ones are left alone' python3 tests/style/links.py "$folder/page.md"
printf '[a](no-page.md)\n[b](#another)\n' >>"$folder/page.md"
found=$(python3 tests/style/links.py "$folder/page.md")
[[ $found == *page.md:3:*'no such file'*page.md:4:*'no such heading'* ]] && pass 'others are found' || fail 'others are found' "$found"
rm -rf "$folder"
plan
