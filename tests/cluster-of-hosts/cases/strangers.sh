# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: Apache-2.0
#
# strangers.sh - who has no ticket, a wrong one, or bad manners: refused and counted, and the run goes on.

serves strangers --set train.until.steps=240
join_all
awaits 'strangers: the run begins' rounds 1
for what in random_bytes half_handshakes garbage_after_handshake absurd_sizes before_admission wrong_ticket; do
	check "strangers: $what" "$hosts/on.sh" b3 timeout 60 python3 "$hosts/strangers.py" a1 7337 "$what"
done
check 'strangers: admitted_and_absurd' "$hosts/on.sh" b2 timeout 60 python3 "$hosts/strangers.py" a1 7337 admitted_and_absurd "$ticket"
"$hosts/on.sh" b2 timeout 60 python3 "$hosts/strangers.py" a1 7337 record_join "$scratch/said" >record.out 2>&1 9>&- &
recorder=$!
awaits 'strangers: one stands in between' test -e "$scratch/said"
"$hosts/on.sh" b3 "$skep" join b2:7500 --ticket "$ticket" --cache "$scratch/cache-b3" >between.out 2>between.err </dev/null 9>&- &
between=$!
awaits 'strangers: a machine that is overheard comes in' grep -qs 'stands by' between.err
kill -KILL "$between"
wait "$between" "$recorder" 2>/dev/null
check 'strangers: replayed_handshake' "$hosts/on.sh" b2 timeout 60 python3 "$hosts/strangers.py" a1 7337 replayed_handshake "$scratch/said"
"$hosts/on.sh" b3 timeout 60 python3 "$hosts/strangers.py" a1 7337 half_open >half_open.out 2>&1 9>&- &
flood=$!
sleep 1
joins late a2 # while thousands of others hold connections
kills KILL a2
awaits 'strangers: a machine with a ticket comes in beside thousands' grep -q 'a2 takes the place' "$run.err"
status=0
wait "$flood" || status=$?
check 'strangers: half_open' [ "$status" = 0 ]
unset 'joiner[a2]'
goes_on 'strangers: afterwards'
ends strangers
left late 0
whole strangers
check 'strangers: serve says how many it refused' grep -qE 'refused [0-9]{4,} connections' strangers.err

serves admit --admit 6 --set train.until.steps=20
joins wrong a1 --ticket "${ticket%?????????}$(tr 0-9a-f b-h1-9 <<<"${ticket: -9}")"
left wrong 2
join_all
awaits 'admit: the run begins' rounds 1
joins seventh b3
left seventh 2
check 'admit: told that the ticket is used up' grep -q 'used up' admit-seventh.err
ends admit
gather
whole admit

serves revoked --set train.until.steps=20
before=$ticket
kill -KILL "$serve"
wait "$serve" 2>/dev/null
rm revoked.err
serves revoked --set train.until.steps=20 --resume=auto --new-ticket
joins old a1 --ticket "$before"
left old 2
check 'revoked: told so' grep -q 'revoked' revoked-old.err
join_all
ends revoked
gather
check 'revoked: the run is done with the other ticket' [ "$(sqlite revoked.db 'SELECT status FROM runs ORDER BY id DESC LIMIT 1')" = done ]
