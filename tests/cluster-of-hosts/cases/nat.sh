# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: Apache-2.0
#
# nat.sh - machines that can connect to others and to which nobody can connect: one whose port never answers, one that refuses. They
# join first, so that the others would have to connect to them; these ask to be connected to, and `serve` passes on what the two say to
# each other alone.

hide_port b1 7400
serves nat --set train.until.steps=80
joins b1 b1 --listen :7400
awaits 'nat: b1 is the first' grep -q 'b1 is worker' nat.err
joins b2 b2 --listen 127.0.0.1:0
awaits 'nat: b2 is the second' grep -q 'b2 is worker' nat.err
for name in a1 a2 a3 b3; do
	joins "$name" "$name"
done
awaits 'nat: the run begins' rounds 2
"$hosts/on.sh" a2 "$skep" status a1:7337 --ticket "$ticket" >status.txt
check 'nat: status says how many pairs are relayed' grep -q '; 1 pair cannot connect to each other: relayed' status.txt
"$hosts/on.sh" a2 "$skep" status a1:7337 --ticket "$ticket" --json >status.json
check 'nat: and which' python3 - status.json <<-'END'
	import json, sys
	s = json.load(open(sys.argv[1]))
	hidden = sorted(m["rank"] for m in s["members"] if m["host"] in ("b1", "b2"))
	assert hidden == [1, 2] and s["relayed"] == [hidden], s
	assert all(m["relayed"] == sum(m["rank"] in pair for pair in s["relayed"]) for m in s["members"]), s
END
check 'nat: serve says it as well' grep -qE 'b[12] and b[12] cannot connect to each other: what they say goes through here' nat.err
kills KILL b3
joins late b3
awaits 'nat: another one comes while the run goes on' grep -q 'b3 takes the place of worker' nat.err
goes_on 'nat: with it'
ends nat
check 'nat: and of no other pair' [ "$(grep -c 'cannot connect to each other: ' nat.err)" = 1 ]
gather
show_port b1 7400
check 'nat: serve says that the topology, in which all are at one site, knows nothing of that' grep -qE \
	'^skep: relayed workers 0 and 1, which the topology says can connect: give sites of their own, with .reach: out., to .* here$' nat.err
whole nat
check 'nat: and how much: serve says that it has passed bytes on' grep -qE 'passed on [0-9]{4,} bytes' nat.err
