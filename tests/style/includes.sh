#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# includes.sh - arrows between the folders go one way. Each folder lists what it may include of ours; whatever is not in
# the list is refused. Of core/ only the headers that are meant for it may be included from outside, but for the unit tests of what
# is inside. Every include of ours is written from the root, and every file opens with its licence.
set -u
. tests/tap.sh

may_include() { # may_include FILE: sets `may` to the folders, as one extended regular expression
	case $1 in
	base/*) may='base/' ;;
	core/*) may='core/' ;;
	models/*) may='base/|core/|models/' ;;
	topologies/*) may='base/|core/|topologies/' ;;
	scenarios/*) may='base/|core/|models/|topologies/|scenarios/' ;;
	planning/search/*) may='core/|planning/search/' ;;
	sim/*) may='base/|core/|models/|topologies/|scenarios/|sim/' ;;
	exec/*) may='base/|core/|models/|topologies/|scenarios/|exec/' ;;
	analysis/*) may='base/|core/|models/|topologies/|scenarios/|planning/search/complexity.h|analysis/' ;;
	planning/*) may='base/|core/|models/|topologies/|scenarios/|sim/|analysis/|planning/' ;;
	sweeping/*) may='base/|core/|models/|topologies/|scenarios/|sim/|exec/|analysis/|planning/|sweeping/' ;;
	*) may='.' ;;
	esac
}

# The interface; numbers and bits; what collectives send and who is in which pipeline, which worlds and descriptions count on.
public='skep|plan|sums|note|record|names|prefetch|codec|random|hash|bits|square|collective/collective|collective/ring|jobs/jobs|scale/policy|schedule/pipelines'

declare -A found

check_include() { # check_include FILE LINE INCLUDED: what is wrong with it is added to found[FILE]
	# What the build generates stands in no folder: version.h, and the texts that analysis/ embeds.
	[[ $3 =~ ^(version\.h|[a-z.]+\.inc)$ ]] && return
	may_include "$1"
	[[ $3 =~ ^($may) ]] || found[$1]+="$1:$2: $3"$'\n'
	[[ $1 =~ ^(core/|tests/unit/) || $3 != core/* || $3 =~ ^core/($public)\.h$ ]] || found[$1]+="$1:$2: $3 is core's own"$'\n'
}

mapfile -t files < <(c_files)
while IFS=: read -r file line text; do
	[[ $text =~ \"([^\"]+)\" ]] && check_include "$file" "$line" "${BASH_REMATCH[1]}"
done < <(grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]+"' "${files[@]}")
while IFS= read -r file; do
	found[$file]+="$file:1: no licence line"$'\n'
done < <(awk 'FNR == 1 && !/SPDX-License-Identifier:/ { print FILENAME }' "${files[@]}")
for file in "${files[@]}"; do
	[ -z "${found[$file]-}" ] && pass "$file" || fail "$file" "${found[$file]}"
done
plan
