#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# relays.sh - sites that only dial out: what two of them say to each other goes through the directory and over both links, is said by
# `check`, costs time and money on both ways; and what cannot be.
set -u
. tests/cli/lib.sh
needs python3
ln -s "$root/topologies/gpus" gpus

topology() { # topology FILE RENTED-REACH LINKS...: two homes and a directory between them
	local file=$1 rented=$2
	shift 2
	{
		cat <<-END
		name: two homes
		source: Assumed for this test.
		directory: rented
		sites:
		  rented: {machines: [], egress: 0.1 USD/GB$rented}
		  first: {machines: [{gpu: t4}], egress: 0 USD/GB, reach: ${reach:-out}}
		  second: {machines: [{gpu: t4}], egress: 0 USD/GB, reach: ${reach:-out}}
		links:
		  - {between: [rented, first], bandwidth: 80 Mbit/s, latency: 20 ms}
		  - {between: [rented, second], bandwidth: 40 Mbit/s, latency: 30 ms}
		END
		printf '%s\n' "$@"
	} >"$file"
}
straight='  - {between: [first, second], bandwidth: 40 Mbit/s, latency: 50 ms}'
topology homes.yaml ''
reach=any topology straight.yaml '' "$straight"
topology linked.yaml '' "$straight"
topology hidden.yaml ', reach: out'
settings=(--set cluster.topology=homes.yaml --set cluster.allocation=null --set model.stages=1 --set train.until.steps=4
	--set train.arithmetic=none --set 'model.file='"$root/models/gpt2-124m.yaml" --set train.data=null --set cluster.compute_scale=1
	--set schedule.microbatch=4 --set schedule.global_batch=16)
job=$root/scenarios/two-datacentres.yaml

accepts 'check' check "$job" "${settings[@]}"
check 'says who is relayed' grep -q 'what first and second say to each other goes through the directory' "$out"
accepts 'check --json' check "$job" "${settings[@]}" --json
check 'says so too' python3 -c 'import json, sys; assert json.load(open(sys.argv[1]))["network"]["reach_out"] == ["first", "second"]' "$out"
accepts 'a run through the directory' sim "$job" "${settings[@]}" --db relays.db --json
accepts 'a run over a link that both ways come to' sim "$job" "${settings[@]}" --set cluster.topology=straight.yaml --db relays.db --json

# A pass of a ring of two that sends P bytes in segments, each of which takes some 64 KiB more on the faster way: no more than 3 % are
# lost to that. The directory (worker 2) sends each byte that it receives for another one, and pays for it.
check 'its links have both ways, as dear, and it takes little longer' python3 - <<-'END'
	import sqlite3
	db = sqlite3.connect("relays.db")
	def run(n):
	    links = dict(((s, d, t), (m, b)) for s, d, t, m, b in db.execute(
	        "SELECT source, destination, traffic, messages, bytes FROM links WHERE run = ?", (n,)))
	    return links, *db.execute("SELECT time_s, bytes_sync, egress_usd FROM runs WHERE id = ?", (n,)).fetchone()
	(relayed, time, sync, usd), (direct, direct_time, direct_sync, direct_usd) = run(1), run(2)
	sums = {key: use for key, use in direct.items() if 2 not in key[:2]}
	assert sums and sum(b for _, b in sums.values()) > 1e9, direct
	assert not [key for key in relayed if 2 not in key[:2]], relayed
	for (s, d, t), use in sums.items():
	    assert relayed[s, 2, t] == relayed[2, d, t] == use, ((s, d, t), use, relayed)
	assert sync == direct_sync, (sync, direct_sync)
	passed = sum(b for _, b in sums.values())
	assert abs((usd - direct_usd) / (passed * 0.1e-9) - 1) < 1e-6, (usd, direct_usd, passed)
	assert 1 < time / direct_time < 1.03, (time, direct_time)
	END

# What is expected of a step knows that both ways, and messages of all pairs, share the line of the directory's site.
topology thin.yaml ', uplink: 20 Mbit/s, downlink: 30 Mbit/s'
for stages in 1 2; do
	accepts "expected with $stages stages" check "$job" "${settings[@]}" --set cluster.topology=thin.yaml --set model.stages=$stages --json
	mv "$out" "expected-$stages.json"
	accepts "simulated with $stages stages" sim "$job" "${settings[@]}" --set cluster.topology=thin.yaml --set model.stages=$stages --db thin.db --json
	mv "$out" "simulated-$stages.json"
done
check 'expected is what is simulated, within 5 %' python3 - <<-'END'
	import json
	for stages in (1, 2):
	    expected = json.load(open(f"expected-{stages}.json"))["expected"]
	    run = json.load(open(f"simulated-{stages}.json"))
	    step = run["time_s"] / run["steps"]
	    assert abs(expected["step_s"] / step - 1) < 0.05, (stages, expected, step)
	assert expected["busiest"] == "the uplink of rented", expected
END

refuses 'a link between two that only dial out' 'first and second have `reach: out`.*expected no link between them' \
	check "$job" "${settings[@]}" --set cluster.topology=linked.yaml
refuses 'a directory that none can connect to' 'site rented has the directory.*expected `reach: any` there' \
	check "$job" "${settings[@]}" --set cluster.topology=hidden.yaml
refuses 'a link of theirs in the scenario' 'first and second have `reach: out`.*expected first-rented or second-rented' \
	check "$job" "${settings[@]}" --set cluster.links.first-second.bandwidth='1 Gbit/s'
refuses 'collectives as flows' 'flows do not go through the directory' check "$job" "${settings[@]}" --set simulate.collectives=flows
plan
