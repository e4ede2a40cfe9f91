# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: Apache-2.0
#
# nat.sh - machines that can connect to others and to which nobody can connect: one whose port never answers, one that refuses. `serve`
# passes on what others have for them.

hide_port b1 7400
serves nat
joins b1 b1 --listen :7400
awaits 'nat: b1 is the first' grep -q 'b1 is worker' nat.err
joins b2 b2 --listen 127.0.0.1:0
awaits 'nat: b2 is the second' grep -q 'b2 is worker' nat.err
for name in a1 a2 a3 b3; do
	joins "$name" "$name"
done
awaits 'nat: the run begins' rounds 2
"$hosts/on.sh" a2 "$skep" status a1:7337 --ticket "$ticket" >status.txt
check 'nat: status says how many pairs are relayed' grep -qE '; [1-9] pairs? cannot connect to each other: relayed' status.txt
"$hosts/on.sh" a2 "$skep" status a1:7337 --ticket "$ticket" --json >status.json
check 'nat: and which' python3 - status.json <<-'END'
	import json, sys
	s = json.load(open(sys.argv[1]))
	hidden = {m["rank"] for m in s["members"] if m["host"] in ("b1", "b2")}
	assert s["relayed"] and all(hidden & set(pair) for pair in s["relayed"]), s
	assert all(m["relayed"] == sum(m["rank"] in pair for pair in s["relayed"]) for m in s["members"]), s
END
check 'nat: serve says it as well' grep -qE 'cannot connect to each other: what they say goes through here' nat.err
ends nat
gather
show_port b1 7400
whole nat
check 'nat: and how much: serve says that it has passed bytes on' grep -qE 'passed on [0-9]{4,} bytes' nat.err
