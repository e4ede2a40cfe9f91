# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# six.sh - six hosts, all by serve and join, and nothing happens to them.

serves six
join_all
for name in "${names[@]}"; do
	left "$name" 0
done
ends six
whole six
check 'six: nothing was lost' [ "$(sqlite six.db 'SELECT lost + preemptions FROM runs')" = 0 ]
