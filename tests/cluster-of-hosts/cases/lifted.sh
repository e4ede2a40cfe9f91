# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: Apache-2.0
#
# lifted.sh - two machines of which none can connect to the other, until a rule that drops what comes to one of them is lifted while the
# run goes on: they find out by themselves, `serve` passes nothing on any more, and no row of the run knows of it.

hide_port b1 7400
serves lifted --set train.until.steps=250
joins b1 b1 --listen :7400
awaits 'lifted: b1 is the first' grep -q 'b1 is worker' lifted.err
joins b2 b2 --listen 127.0.0.1:0
awaits 'lifted: b2 is the second' grep -q 'b2 is worker' lifted.err
for name in a1 a2 a3 b3; do
	joins "$name" "$name"
done
awaits 'lifted: the run begins' rounds 2
awaits 'lifted: they are relayed' grep -qE 'b[12] and b[12] cannot connect to each other: what they say goes through here' lifted.err
show_port b1 7400
awaits 'lifted: serve says that they have connected' grep -qE 'b[12] and b[12] have connected: what they say goes through here no more' lifted.err
"$hosts/on.sh" a2 "$skep" status a1:7337 --ticket "$ticket" --json >status.json
check 'lifted: status says that no pair is relayed' python3 - status.json <<-'END'
	import json, sys
	s = json.load(open(sys.argv[1]))
	assert s["relayed"] == [] and all(m["relayed"] == 0 for m in s["members"]) and len(s["members"]) == 6, s
END
goes_on 'lifted: with all of them' 20
ends lifted
gather
check 'lifted: the topology is right in the end' [ "$(grep -cE '^skep: (relayed|.* which the topology says cannot)' lifted.err)" = 0 ]
check 'lifted: and no machine was lost' test "$(sqlite "$run.db" "SELECT preemptions FROM runs")" = 0
whole lifted
