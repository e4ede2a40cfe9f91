#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# tables.sh - each README's table of files is whole (tables.py), and what it lacks is found.
set -u
. tests/tap.sh

mapfile -t pages < <(find . -name README.md -not -path './.*' -not -path './build*' | sed 's,^\./,,' | LC_ALL=C sort)
check 'tables of files' python3 tests/style/tables.py "${pages[@]}"
folder=$(mktemp -d)
touch "$folder"/{here.h,here.c,other.c,plot_one.c}
printf '| file | |\n|---|---|\n| `here.h`, `.c` | with `other.c` |\n| `plot_*.c` | |\n' >"$folder/README.md"
check 'a whole one is left alone' python3 tests/style/tables.py "$folder/README.md"
touch "$folder/more.c"
printf '| `gone.c` | |\n' >>"$folder/README.md"
found=$(python3 tests/style/tables.py "$folder/README.md")
[[ $found == *'no table names more.c'*'names gone.c, which is not there'* ]] && pass 'others are found' || fail 'others are found' "$found"
rm -rf "$folder"
plan
