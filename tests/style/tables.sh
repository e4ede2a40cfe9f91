#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# tables.sh - what READMEs say of their folders is so (tables.py), and what is not so is found.
set -u
. tests/tap.sh
needs python3

mapfile -t pages < <(find . -name README.md -not -path './.*' -not -path './build*' | sed 's,^\./,,' | LC_ALL=C sort)
check 'READMEs of folders' python3 tests/style/tables.py "${pages[@]}"
folder=$(mktemp -d)
mkdir "$folder/below"
touch "$folder"/{here.h,here.c,below/other.c}
printf '| folder | what | begin with |\n|---|---|---|\n| `here.h`, `.c` | | |\n| [below/](below/) | | `below/other.c` |\n' >"$folder/README.md"
check 'a right one is left alone' python3 tests/style/tables.py "$folder/README.md"
mkdir "$folder/unnamed"
touch "$folder/unnamed/other.c"
printf '| `gone.c` | |\n' >>"$folder/README.md"
found=$(python3 tests/style/tables.py "$folder/README.md")
[[ $found == *'names gone.c, which is not there'*'nothing of the folder unnamed/'* ]] && pass 'others are found' || fail 'others are found' "$found"
rm -rf "$folder"
plan
