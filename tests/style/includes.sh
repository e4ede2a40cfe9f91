#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# includes.sh - arrows between the folders go one way. Each folder lists what it may include of ours; whatever is not in
# the list is refused. Every include of ours is written from the root, and every file opens with its licence.
set -u
. tests/tap.sh

may_include() { # may_include FILE: the folders, as one extended regular expression
	case $1 in
	core/*) echo 'core/' ;;
	scenarios/reader/*) echo 'scenarios/reader/' ;;
	models/*) echo 'core/|models/|scenarios/reader/' ;;
	topologies/*) echo 'core/|topologies/|scenarios/reader/' ;;
	scenarios/*) echo 'core/|models/|topologies/|scenarios/' ;;
	planning/*) echo 'core/|models/|topologies/|scenarios/|planning/' ;;
	sim/*) echo 'core/|models/|topologies/|scenarios/|sim/' ;;
	exec/*) echo 'core/|models/|topologies/|scenarios/|exec/' ;;
	analysis/*) echo 'core/|models/|topologies/|scenarios/|analysis/' ;;
	*) echo '.' ;;
	esac
}

for file in $(c_files); do
	# What the build generates stands in no folder: version.h, and the texts that analysis/ embeds.
	found=$(grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]+"' "$file" |
		grep -vE '"(version\.h|[a-z.]+\.inc)"' | grep -vE "\"($(may_include "$file"))")
	[[ $(head -n 1 "$file") == *SPDX-License-Identifier:* ]] || found+=$'\n'"$file:1: no licence line"
	if [ -z "$found" ]; then
		pass "$file"
	else
		fail "$file" "$found"
	fi
done
plan
