#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# format.sh - every C file is as clang-format leaves it. Versions of clang-format differ; those that are known to agree on
# this tree are named below, and any other one is not asked.
set -u
. tests/tap.sh

version=$(clang-format --version 2>/dev/null | grep -oE 'version [0-9]+' | grep -oE '[0-9]+')
case $version in
'')
	skip 'format' 'clang-format is not installed'
	;;
1[4-9])
	echo "# clang-format $version"
	mapfile -t files < <(c_files)
	found=$(clang-format --dry-run "${files[@]}" 2>&1) || fail "clang-format ends with $?"
	for file in "${files[@]}"; do
		[[ $'\n'$found == *$'\n'"$file:"* ]] && fail "$file" "$(grep "^$file:" <<<"$found")" || pass "$file"
	done
	;;
*)
	skip 'format' "clang-format $version may differ from 14 to 19, which this tree is formatted with"
	;;
esac
plan
