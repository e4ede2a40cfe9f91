#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# listed.sh - no test is forgotten: tests/meson.build names every unit test and every story.
set -u
. tests/tap.sh

list=$(<tests/meson.build)

listed() { # listed FILE NAME
	[[ $list =~ \'((cli|exec|style)/)?$2(\.sh)?\' ]] && pass "$1" || fail "$1"
}

for file in tests/unit/test_*.c; do
	name=${file##*/test_}
	listed "$file" "${name%.c}"
done
for file in tests/cluster/stories/*.txt tests/cli/*.sh tests/style/*.sh tests/exec/*.sh; do
	name=${file##*/}
	name=${name%.*}
	[[ $file == *.sh && ${name%%_*} == lib ]] || listed "$file" "$name"
done
plan
