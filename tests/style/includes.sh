#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# includes.sh - arrows between the folders go one way. Each folder lists what it may include of ours; whatever is not in
# the list is refused. Of core/ only the headers that are meant for it may be included from outside, but for the unit tests of what
# is inside. Every include of ours is written from the root, and every file opens with its licence.
set -u
. tests/tap.sh

may_include() { # may_include FILE: the folders, as one extended regular expression
	case $1 in
	base/*) echo 'base/|core/plan.h|core/skep.h' ;;
	core/*) echo 'core/' ;;
	models/*) echo 'base/|core/|models/' ;;
	topologies/*) echo 'base/|core/|topologies/' ;;
	scenarios/*) echo 'base/|core/|models/|topologies/|scenarios/' ;;
	planning/search/*) echo 'core/|planning/search/' ;;
	sim/*) echo 'base/|core/|models/|topologies/|scenarios/|sim/' ;;
	exec/*) echo 'base/|core/|models/|topologies/|scenarios/|exec/' ;;
	analysis/*) echo 'base/|core/|models/|topologies/|scenarios/|planning/search/complexity.h|analysis/' ;;
	planning/*) echo 'base/|core/|models/|topologies/|scenarios/|sim/|analysis/|planning/' ;;
	sweeping/*) echo 'base/|core/|models/|topologies/|scenarios/|sim/|exec/|analysis/|planning/|sweeping/' ;;
	*) echo '.' ;;
	esac
}

# The interface; numbers and bits; what collectives send, which worlds and descriptions count on.
public='skep|plan|note|record|names|prefetch|codec|random|hash|bits|square|collective/collective|collective/ring'

private_includes() { # private_includes FILE: its includes of what is core's own
	case $1 in
	core/* | tests/unit/*) ;;
	*) grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]+"core/' "$1" | grep -vE "\"core/($public)\.h\"" ;;
	esac
}

for file in $(c_files); do
	# What the build generates stands in no folder: version.h, and the texts that analysis/ embeds.
	found=$(grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]+"' "$file" |
		grep -vE '"(version\.h|[a-z.]+\.inc)"' | grep -vE "\"($(may_include "$file"))")
	found+=$(private_includes "$file")
	[[ $(head -n 1 "$file") == *SPDX-License-Identifier:* ]] || found+=$'\n'"$file:1: no licence line"
	if [ -z "$found" ]; then
		pass "$file"
	else
		fail "$file" "$found"
	fi
done
plan
