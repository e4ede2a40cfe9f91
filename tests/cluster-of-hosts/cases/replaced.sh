# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: Apache-2.0
#
# replaced.sh - all machines of a run are replaced, one after the other, by machines that nobody named before, until none of the first
# is left.

serves replaced --set train.until.steps=90
for i in 0 1 2 3 4 5; do
	joins "old-$i" "${names[i % 3]}"
done
awaits 'replaced: the run begins' rounds 2
for i in 0 1 2 3 4 5; do
	kills KILL "old-$i"
	joins "new-$i" "${names[3 + i % 3]}"
	goes_on "replaced: machine $i" 6
	unset "joiner[old-$i]"
done
ends replaced
for i in 0 1 2 3 4 5; do
	left "new-$i" 0
done
whole replaced
check 'replaced: each worker has had two machines' [ "$(sqlite replaced.db '
	SELECT count(*) FROM (SELECT worker FROM incarnations WHERE worker < 6 GROUP BY worker HAVING count(*) >= 2)')" = 6 ]
