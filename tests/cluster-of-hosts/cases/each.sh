# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: Apache-2.0
#
# each.sh - one host after the other is lost, each in another way, and comes back or is replaced: its processes are killed, its power is
# cut, it is heard in one direction only, it cannot reach another one, it is stopped for longer than others wait.

serves each --set train.until.steps=150
join_all --stay
awaits 'each: the run begins' rounds 3

kills KILL a1
unset 'joiner[a1]'
joins a1-new a1 --stay
goes_on 'each: processes killed'

cut_power a2
joins a2-elsewhere a3 --stay
goes_on 'each: power cut'
kills KILL a2
unset 'joiner[a2]'
restore_power a2

deafen a1 a3
sleep 4
hear_again a1 a3
goes_on 'each: deaf in one direction'
deafen b1 a1 # what serve and its neighbour there say to b1
sleep 4
hear_again b1 a1
goes_on 'each: deaf in the other direction'

partition b1 b2
goes_on 'each: two cannot reach each other' 12
heal b1 b2

"$hosts/on.sh" b3 kill -STOP "$(children "${joiner[b3]}" | head -n 1)"
sleep 5
kill -CONT "$(children "${joiner[b3]}" | head -n 1)"
goes_on 'each: stopped'
ends each
gather
whole each
