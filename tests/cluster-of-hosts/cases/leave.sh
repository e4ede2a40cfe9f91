# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: Apache-2.0
#
# leave.sh - who is told to leave: a machine, politely and at once, and `serve` itself; and what the others do when serve is killed.

serves leave --set train.until.steps=80
join_all
awaits 'leave: the run begins' rounds 2
joins spare b1
awaits 'leave: the spare is there' grep -q 'stands by' leave.err
kills TERM a1
left a1 0
goes_on 'leave: after a polite leave'
# What it hands back is dealt under other numbers, and its own are lost to every stage alike. What a machine loses in dying is missed by
# one stage only.
check 'leave: no gradient was lost by it' [ "$(sqlite leave.db 'SELECT count(*) FROM (SELECT 1 FROM stage_rounds
	GROUP BY round HAVING min(counted) < 12 OR min(lost) <> max(lost))')" = 0 ]
joins second b2
kills TERM a2
sleep 0.3
kills TERM a2
left a2 0
goes_on 'leave: after a second signal'
ends leave
for name in a3 b1 b2 b3 spare second; do
	left "$name" 0
done
whole leave

told() { # told SIGNAL: serve ends by it, and so do the joiners; the row says that the run has ended
	serves "told-$1" --set train.until.steps=500
	join_all
	awaits "told: the run begins" rounds 2
	kill -s "$1" "$serve"
	ends "$run" "$2"
	for name in "${names[@]}"; do
		left "$name" 1
	done
	check "$run: recorded as failed" [ "$(sqlite "$run.db" 'SELECT status FROM runs')" = failed ]
	check "$run: each says why in a line" sh -c "! grep -Lc 'told to end\|serve\|rank 0' $run-*.err | grep ."
}
told TERM 143
told INT 130

serves killed --set train.until.steps=500
join_all
joins stays b3 --stay
awaits 'killed: the run begins' rounds 2
awaits 'killed: one stands by' grep -q 'stands by' killed.err
kill -KILL "$serve"
wait "$serve" 2>/dev/null
for name in "${names[@]}"; do
	left "$name" 1
	check "killed: $name says so in one line" [ "$(grep -c 'skep: lost a1:7337: ' "killed-$name.err")" = 1 ]
done
awaits 'killed: --stay knocks' grep -q 'tries again in 2 s' killed-stays.err
kills TERM stays
left stays 143
