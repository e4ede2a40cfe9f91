#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# listed.sh - no test is forgotten: tests/meson.build names every unit test and every story. And nothing lies in the project's root that
# does not belong there, such as what a test has left.
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

belongs=' .ci .clang-format .gitignore CHANGELOG.md CONTRIBUTING.md LICENSE README.md SECURITY.md analysis asking base commands core docs exec
meson.build meson_options.txt models packaging planning pyproject.toml quickstart scenarios sim skep.c sweeping tests topologies version.h.in '
stray=
for name in $(git ls-files 2>/dev/null | cut -d/ -f1 | sort -u); do
	[[ ${belongs//$'\n'/ } == *" $name "* ]] || stray+="$name "
done
[ -z "$stray" ] && pass 'the root' || fail 'the root' "$stray: does it belong there?"
plan
