#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# digests.sh CHAOS [--rewrite | KIND ...] - what the core does in 4,000 seeds of each kind is what it did when digests.txt was written: every message,
# operation and note, with its time. A change that is meant to change nothing leaves the file as it is; one that is meant to is told
# by `--rewrite`, and what has changed is to be looked at in the stories. It notices what the referee has no rule about: work that is dealt
# in another order, memory that is held longer, a question that is asked twice.
set -u
. tests/tap.sh
file=tests/cluster/digests.txt

kinds=(any fixed periodic async gossip trial void wait resumed 'resumed fixed' 'resumed async' 'resumed void' 'resumed gossip' timed)

digests() { # digests CHAOS KIND...: a line for each kind of seeds
	local chaos=$1 kind
	shift
	for kind in "$@"; do
		local options=()
		for word in $kind; do [ "$word" = any ] || options+=("--$word"); done
		printf '%s: %s\n' "$kind" "$("$chaos" --seeds 1..4000 --jobs 2 --again 0 "${options[@]}" | sed -n 's/.*; digest //p')"
	done
}

if [ "${2:-}" = --rewrite ]; then
	digests "$1" "${kinds[@]}" >"$file"
	exit
fi
chaos=$1
shift
[ $# = 0 ] || kinds=("$@")
wrong=0
while IFS= read -r line; do
	kept=$(grep "^${line%%: *}: " "$file")
	[ "$line" = "$kept" ] || wrong=1
	check "seeds of ${line%%: *} do what they did (else see tests/cluster/digests.sh)" [ "$line" = "$kept" ]
done < <(digests "$chaos" "${kinds[@]}")
plan
exit $wrong
