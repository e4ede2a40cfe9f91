#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# digests.sh CHAOS [--rewrite | KIND ...] - in 4,000 seeds of each kind no promise is broken, and what the core does is what it did when
# digests.txt was written: every message, operation and note, with its time. A change that is meant to change nothing leaves the file as it is; one that is meant to is told
# by `--rewrite`, and what has changed is to be looked at in the stories. It notices what the referee has no rule about: work that is dealt
# in another order, memory that is held longer, a question that is asked twice.
set -u
. tests/tap.sh
file=tests/cluster/digests.txt

kinds=(any fixed periodic async gossip trial void wait resumed 'resumed fixed' 'resumed async' 'resumed void' 'resumed gossip' timed sharded)

seeds_of() { # seeds_of KIND: what chaos says of its seeds, into $said; fails where a promise is broken
	local options=()
	for word in $1; do [ "$word" = any ] || options+=("--$word"); done
	said=$("$chaos" --seeds 1..4000 --jobs 2 "${options[@]}" 2>&1)
}

digest_of() { # digest_of KIND: its line, of what was said
	printf '%s: %s\n' "$1" "$(sed -n 's/.*; digest //p' <<<"$said")"
}

chaos=$1
shift
if [ "${1:-}" = --rewrite ]; then
	for kind in "${kinds[@]}"; do
		seeds_of "$kind"
		digest_of "$kind"
	done >"$file"
	exit
fi
[ $# = 0 ] || kinds=("$@")
wrong=0
for kind in "${kinds[@]}"; do
	if seeds_of "$kind"; then
		pass "no promise is broken in seeds of $kind"
	else
		fail "no promise is broken in seeds of $kind" "$said"
		wrong=1
	fi
	line=$(digest_of "$kind") kept=$(grep "^$kind: " "$file")
	[ "$line" = "$kept" ] || wrong=1
	check "seeds of $kind do what they did (else see tests/cluster/digests.sh)" [ "$line" = "$kept" ]
done
plan
exit $wrong
