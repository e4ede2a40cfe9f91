#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# ring_order.sh - sync.ring_order: the order by links against all orders there are (ring_order.py), what it gains in simulated reductions
# against a recurrence by hand, what `skep check` says of it, and what is refused.
set -u
. tests/cli/lib.sh
needs python3 sqlite3

by_hand=$root/tests/cli/ring_order.py
[ -e gpus ] || ln -s "$root/topologies/gpus" gpus
check 'up to 8 members: none of all orders is better' python3 "$by_hand" brute "$skep" "$root/models/square-mlp.yaml"
check 'more members: no worse than the roster, found sites, in time' python3 "$by_hand" many "$skep" "$root/models/square-mlp.yaml"

# ---- what it gains --------------------------------------------------------------------------------------------------------

rm gpus
only_links

scenario() { # scenario MEMBERS
	cat >scenario.yaml <<-END
	name: a ring of $1
	seed: 1
	model: {file: model.yaml, stages: 1}
	cluster: {topology: links.yaml}
	schedule: {global_batch: $1, microbatch: 1}
	sync: {collective: ring, chunks: 1}
	train: {arithmetic: none, until: {steps: 1}}
	END
}

# From the first operation of the reduction to the last one's end.
took() { # took OPTION ..
	rm -f runs.db
	"$skep" sim -q scenario.yaml --db runs.db "$@" >"$out" 2>"$err" || cat "$err" >&2
	sqlite3 runs.db "SELECT printf('%.6f', max(end_s) - min(begin_s)) FROM ops WHERE kind NOT IN ('forward', 'backward', 'step')"
}

within() { # within NAME SEEN WANTED PART
	if awk "BEGIN { exit !($2 - $3 < $4 * $3 && $3 - $2 < $4 * $3) }" </dev/null; then
		pass "$1: $3 s"
	else
		fail "$1" "$2 s, expected $3 s"
	fi
}

hop() { # hop MEMBERS BIT_PER_S LATENCY_S BEGIN_S: of one chunk
	awk "BEGIN { printf \"%.9f,%s,%s\", 8 * $bytes / $1 / $2, $3, $4 }" </dev/null
}

# Two sites whose machines are listed in turn: 0, 2, 4 here and 1, 3, 5 there.
rm rate.csv latency.csv
near=1e10,0 far=1e9,300
for i in 0 1 2 3 4 5; do
	for file in rate latency; do
		for j in 0 1 2 3 4 5; do
			way=$near
			[ $(((i + j) % 2)) = 0 ] || way=$far
			[ $file = rate ] && echo -n "${way%,*}" || echo -n "${way#*,}"
			[ $j = 5 ] && echo || echo -n ,
		done >>$file.csv
	done
done
cat >links.yaml <<'END'
name: two sites in turn
source: Assumed for this test.
directory: 0
matrix: {bandwidth: rate.csv, bandwidth_unit: bit/s, latency: latency.csv, latency_unit: ms}
machines: [{count: 6, gpu: fast}]
END
scenario 6
# The directory is here, so those there are told to begin one latency later.
n=$(hop 6 1e10 0 0) f=$(hop 6 1e9 0.3 0) nl=$(hop 6 1e10 0 0.3) fl=$(hop 6 1e9 0.3 0.3)
roster=$(python3 "$by_hand" time "$f" "$fl" "$f" "$fl" "$f" "$fl" 1) links=$(python3 "$by_hand" time "$n" "$n" "$f" "$nl" "$nl" "$fl" 1)
within 'listed in turn, all six hops cross: ten of 0.3895 s and a late begin' "$roster" 4.195 0.001
within 'listed in turn, as the roster is' "$(took)" "$roster" 0.002
within 'listed in turn, by links two hops cross' "$(took --set sync.ring_order=links)" "$links" 0.002
within 'and so as flows' "$(took --set sync.ring_order=links --set simulate.collectives=flows)" "$links" 0.01
check 'which is 2.2 times as fast' awk "BEGIN { r = $roster / $links; exit !(r > 2.15 && r < 2.25) }"
"$skep" check scenario.yaml --set sync.ring_order=links >"$out" 2>"$err"
check 'the check says so in one line' grep -qE \
	'^  ring      stage 0: 0 (2 4|4 2) ([135] ?){3}\(exact\); slowest hop [24] to [135] \([024] to [135]\), 1 Gbit/s, 300 ms: a step takes 390 ms, in the roster.s order 390 ms$' "$out"
check 'and nothing where the roster is the order' eval '! "$skep" check scenario.yaml | grep -q "^  ring "'

# Four sites of two machines, listed a, b, c, d: all that a sends to b shares a thin line, and what c sends to d.
cat >links.yaml <<'END'
name: four sites
source: Assumed for this test.
directory: a
sites:
  a: {machines: [{count: 2, gpu: fast}], inside: {bandwidth: 10 Gbit/s, latency: 0 s}}
  b: {machines: [{count: 2, gpu: fast}], inside: {bandwidth: 10 Gbit/s, latency: 0 s}}
  c: {machines: [{count: 2, gpu: fast}], inside: {bandwidth: 10 Gbit/s, latency: 0 s}}
  d: {machines: [{count: 2, gpu: fast}], inside: {bandwidth: 10 Gbit/s, latency: 0 s}}
links:
  - {between: [a, b], bandwidth: 100 Mbit/s, latency: 0 s, shared: true}
  - {between: [c, d], bandwidth: 100 Mbit/s, latency: 0 s, shared: true}
  - {between: [a, c], bandwidth: 1 Gbit/s, latency: 0 s, shared: true}
  - {between: [a, d], bandwidth: 1 Gbit/s, latency: 0 s, shared: true}
  - {between: [b, c], bandwidth: 1 Gbit/s, latency: 0 s, shared: true}
  - {between: [b, d], bandwidth: 1 Gbit/s, latency: 0 s, shared: true}
END
scenario 8
n=$(hop 8 1e10 0 0) w=$(hop 8 1e9 0 0) t=$(hop 8 1e8 0 0)
roster=$(python3 "$by_hand" time "$n" "$t" "$n" "$w" "$n" "$t" "$n" "$w" 1)
links=$(python3 "$by_hand" time "$n" "$w" "$n" "$w" "$n" "$w" "$n" "$w" 1)
within 'four sites: 2 (n - 1) / n of the bytes over the thin line' "$roster" 9.4 0.02
within 'four sites, as the roster is' "$(took)" "$roster" 0.002
within 'four sites, by links around the thin lines' "$(took --set sync.ring_order=links)" "$links" 0.002
check 'which is 10 times as fast' awk "BEGIN { r = $roster / $links; exit !(r > 9.5 && r < 10.5) }"

# A stage each for every second machine: each has a ring of its own, a b c d.
"$skep" check scenario.yaml --json -q --set sync.ring_order=links --set model.stages=2 --set cluster.allocation='{method: strided}' >checked.json
check 'each stage has an order of its own' python3 - <<'END'
import json
for number, stage in enumerate(json.load(open("checked.json"))["stages"]):
    ring = stage["ring"]
    assert ring["by"] == "links" and ring["exact"] and sorted(ring["order"]) == [number, number + 2, number + 4, number + 6], ring
    assert abs(ring["slowest"]["rate_Bps"] - 1.25e8) < 1 and ring["slowest"]["crossings"] == 1, ring
    assert 9 < ring["roster_step_s"] / ring["slowest"]["step_s"] < 10.1, ring
END

# ---- what stays, and what is refused -----------------------------------------------------------------------------------------

digest() { "$skep" sim -q --json scenario.yaml --db runs.db "$@" | python3 -c 'import json, sys; print(json.load(sys.stdin)["digest"])'; }
check 'the default is the roster' test "$(digest)" = "$(digest --set sync.ring_order=roster)"
check 'another order is another run' test "$(digest)" != "$(digest --set sync.ring_order=links)"
refuses 'an unknown order' 'sync.ring_order: .*roster.*links' check scenario.yaml --set sync.ring_order=fast
refuses 'without a ring' 'sync.ring_order: members of a ring follow each other, and sync.collective is `tree`' \
	check scenario.yaml --set sync.collective=tree --set sync.ring_order=links
refuses 'in pairs' 'sync.ring_order: with `method: gossip`' check "$root/scenarios/gossip.yaml" --set sync.ring_order=links
refuses 'by merges' 'sync.ring_order: with `method: async`' check "$root/scenarios/async.yaml" --set sync.ring_order=links
refuses 'sharded state' 'sync.ring_order: what sync.zero gathers' check "$root/scenarios/baselines/zero-3.yaml" --set sync.ring_order=links
sed -i 's/count: 2,/count: 600,/' links.yaml
refuses 'too many machines' 'sync.ring_order: `links` compares the links of at most 2048 workers, and here are 2400' \
	check scenario.yaml --set sync.ring_order=links --set schedule.global_batch=2400
plan
