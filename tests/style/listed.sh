#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# listed.sh - no test is forgotten: tests/meson.build names every unit test and every story.
set -u
. tests/tap.sh

for file in tests/unit/test_*.c; do
	name=$(basename "$file" .c)
	check "$file" grep -qE "'${name#test_}'" tests/meson.build
done
for file in tests/cluster/stories/*.txt; do
	check "$file" grep -qE "'$(basename "$file" .txt)'" tests/meson.build
done
for file in tests/cli/*.sh tests/style/*.sh tests/exec/*.sh; do
	name=$(basename "$file" .sh)
	[ "$name" = lib ] || check "$file" grep -qE "'(cli|exec|style)?/?$name(\.sh)?'" tests/meson.build
done
plan
