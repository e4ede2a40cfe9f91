#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# egress.sh - prices of traffic: what a run pays for it is the sum over its links of bytes times price, in both worlds, and is a part
# of its cost; rounds have it as it grows; what is not known is said; check, plan and sweep count it; and what cannot be.
set -u
. tests/cli/lib.sh
needs python3
mpi_environment
job=$root/scenarios/two-datacentres.yaml

topology() { # topology FILE WEST EAST [COUNT]: egress of the two sites, with its key, or nothing; machines at each
	[ -e gpus ] || ln -s "$root/topologies/gpus" gpus
	cat >"$1" <<-END
	name: two sites
	source: Assumed for this test.
	directory: west
	sites:
	  west: {machines: [{count: ${4:-2}, gpu: t4, price: 0.35 USD/h}], $2 inside: {bandwidth: 1 Gbit/s, latency: 2 ms}}
	  east: {machines: [{count: ${4:-2}, gpu: t4, price: 0.35 USD/h}], $3 inside: {bandwidth: 1 Gbit/s, latency: 2 ms, egress: 1 USD/TB}}
	links: [{between: [west, east], bandwidth: 200 Mbit/s, latency: 10 ms}]
	END
}
topology priced.yaml 'egress: 0.08 USD/GB,' 'egress: 0.12 USD/GB,'
topology half.yaml 'egress: 0.08 USD/GB,' ''
topology wide.yaml 'egress: 0.08 USD/GB,' 'egress: 0.12 USD/GB,' 3
settings=(--set cluster.topology=priced.yaml --set cluster.allocation=null --set model.stages=2 --set train.until.steps=8)

# Of the last run: what its links sum up to is what it says that traffic has cost, beside machines for as long as they were there;
# and rounds add up to no more than the whole.
adds_up() {
	python3 - <<-'END'
	import sqlite3
	db = sqlite3.connect("egress.db")
	run, cost, egress = db.execute("SELECT id, cost_usd, egress_usd FROM runs ORDER BY id DESC LIMIT 1").fetchone()
	by_hand = {("west", "east"): 0.08e-9, ("east", "west"): 0.12e-9, ("east", "east"): 1e-12, ("west", "west"): 0}
	place = dict(db.execute("SELECT place, name FROM places WHERE run = ?", (run,)))
	at = {w: place[p] for w, p in db.execute("SELECT worker, place FROM workers WHERE run = ?", (run,))}
	links = db.execute("SELECT source, destination, bytes FROM links WHERE run = ?", (run,)).fetchall()
	paid = sum(b * by_hand[at[s], at[d]] for s, d, b in links)
	assert paid > 1e-5 and len({(at[s], at[d]) for s, d, _ in links}) == 4, links
	assert abs(egress / paid - 1) < 1e-9, (egress, paid)
	rent = db.execute("SELECT sum(cost_usd) FROM incarnations WHERE run = ?", (run,)).fetchone()[0]
	assert abs(cost / (paid + rent) - 1) < 1e-9, (cost, paid, rent)
	rounds = [c for c, in db.execute("SELECT cost_usd FROM rounds WHERE run = ? ORDER BY round", (run,))]
	assert len(rounds) == 8 and rounds == sorted(rounds) and 0.9 * cost < rounds[-1] <= cost * (1 + 1e-9), (rounds, cost)
	sql = ("SELECT sum(bytes * egress_usd_per_GB * 1e-9) FROM links JOIN workers a ON a.run = links.run AND a.worker = links.source"
	       " JOIN workers b ON b.run = links.run AND b.worker = links.destination JOIN pairs ON pairs.run = links.run"
	       " AND pairs.source = a.place AND pairs.destination = b.place WHERE links.run = ?")
	assert abs(db.execute(sql, (run,)).fetchone()[0] / paid - 1) < 1e-9
	END
}

accepts 'a simulated run' sim "$job" "${settings[@]}" --db egress.db
check 'says what traffic has cost' grep -Eq 'cost +0\.0[0-9]+ USD, of that 0\.0[0-9]+ USD for egress' "$out"
check 'which is what its links add up to' adds_up
accepts 'collectives as flows' sim "$job" "${settings[@]}" --db egress.db --set simulate.collectives=flows --set train.arithmetic=none
check 'adds up too' adds_up
accepts 'until a loss' sim "$job" "${settings[@]}" --db egress.db --json --set train.target_loss=20
check 'the cost of that has the traffic until then' python3 - <<-'END'
	import sqlite3
	db = sqlite3.connect("egress.db")
	run, when, cost = db.execute("SELECT id, time_to_target_s, cost_to_target_usd FROM runs ORDER BY id DESC LIMIT 1").fetchone()
	round = db.execute("SELECT cost_usd FROM rounds WHERE run = ? AND abs(closed_s - ?) < 1e-6", (run, when)).fetchone()[0]
	assert abs(cost / round - 1) < 1e-6, (cost, round)
	END
if [ "${SKEP_HAS_MPI:-}" = yes ]; then
	accepts 'a real run' run "$job" "${settings[@]}" --db egress.db -q
	check 'says what traffic has cost, too' grep -q 'USD for egress' "$out"
	check 'which is what its links add up to, too' adds_up
	accepts 'a comparison' compare --db egress.db
	check 'has both costs' grep -Eq '^  of that for egress +USD +0\.0' "$out"
fi

accepts 'a report' report 1 --db egress.db -o report.html
check 'has what was paid on each link' python3 - <<-'END'
	import re, sqlite3
	page = open("report.html", encoding="utf-8").read()
	page = page[page.index('id="traffic"'):]
	page = page[:page.index("</table>")]
	said = [float(x) for x in re.findall(r">([0-9.e-]+) USD<", page)]
	paid = sqlite3.connect("egress.db").execute("SELECT egress_usd FROM runs WHERE id = 1").fetchone()[0]
	assert ">egress</th>" in page and len(said) == 4 and abs(sum(said) / paid - 1) < 0.05, (said, paid)
	END
accepts 'a link whose price is not known' sim "$job" "${settings[@]}" --set cluster.topology=half.yaml --db egress.db
check 'is named' grep -q 'cost  *not known: no `egress` from east to west' "$out"
accepts 'as JSON' sim "$job" "${settings[@]}" --set cluster.topology=half.yaml --db egress.db --json
check 'it is null' grep -q '"cost_usd":null,"egress_usd":null' "$out"
accepts 'a scenario changes the price' sim "$job" "${settings[@]}" --set cluster.topology=half.yaml --db egress.db --json \
	--set 'cluster.links={west-east: {egress: 0 USD/GB}}'
check 'to nothing, but for the inside' grep -Eq '"egress_usd":[0-9.]+e-0[67]' "$out"
accepts 'without prices' sim "$job" --set train.until.steps=2 --db egress.db --json
check 'nothing is said' grep -Eq '"cost_usd":0\.[0-9]+,"egress_usd":null' "$out"

accepts 'check' check "$job" "${settings[@]}"
check 'says what traffic costs' grep -q 'egress    0.08 to 0.12 USD/GB between sites' "$out"
check 'and expects what it costs of a whole run' python3 - "$out" <<-'END'
	import re, sqlite3, sys
	expected = float(re.search(r"of that ([0-9.e-]+) USD for egress", open(sys.argv[1]).read())[1])
	db = sqlite3.connect("egress.db")
	simulated = db.execute("SELECT egress_usd FROM runs WHERE world = 'sim' ORDER BY id LIMIT 1").fetchone()[0]
	assert abs(expected / simulated - 1) < 0.03, (expected, simulated)
	END
expects() { # expects NAME OPTION..: what check says traffic costs is what a simulation pays, within 1 %, or $within
	local name=$1 expected paid
	shift
	expected=$("$skep" check "$job" "${settings[@]}" "$@" --json 2>"$err" | python3 -c 'import json, sys; print(json.load(sys.stdin)["expected"]["egress_usd"])')
	paid=$("$skep" sim "$job" "${settings[@]}" "$@" --json -q --db egress.db 2>>"$err" | python3 -c 'import json, sys; print(json.load(sys.stdin)["egress_usd"])')
	check "$name: $expected expected, $paid paid" python3 -c 'import sys; a, b, within = map(float, sys.argv[1:]); assert b > 0 and abs(a / b - 1) < within' "${expected:-0}" "${paid:-0}" "${within:-0.01}"
}
expects 'four stages' --set model.stages=4 --set train.arithmetic=none
expects 'trainers route' --set model.stages=4 --set schedule.routing=trainer --set train.arithmetic=none
# Slow machines in the west, fast ones in the east, and a wide line: by the way a sender gives less to the other site.
sed '/^  east:/s/gpu: t4, price: 0.35/gpu: v100, price: 2.48/; s/count: 2/count: 4/; s/200 Mbit/1 Gbit/; s/10 ms/20 ms/' priced.yaml >fast-east.yaml
for wiring in uniform throughput latency; do
	within=0.06 expects "wired by $wiring" --set cluster.topology=fast-east.yaml --set model.stages=4 --set schedule.wiring=$wiring \
		--set train.arithmetic=none --set train.until.steps=60 --set cluster.allocation.method=strided
done
expects 'interleaved pipelines come round' --set schedule.pipeline=interleaved --set schedule.model_chunks=2 --set train.arithmetic=none
for sync in ring parameter-server reduce-broadcast all-to-all halving-doubling hierarchical 'tree, chunks: 1' 'butterfly, chunks: 1' 'chain, chunks: 1'; do
	expects "$sync" --set cluster.topology=wide.yaml --set model.stages=1 --set "sync={collective: $sync}" --set train.arithmetic=none
done
for zero in 1 2 3; do
	expects "ZeRO $zero" --set cluster.topology=wide.yaml --set model.stages=1 --set "sync={zero: $zero}" --set train.arithmetic=none \
		--set schedule.global_batch=768
done
sed 's/vocabulary: 256/vocabulary: 256, tied: true/' "$root/models/tiny-gpt2.yaml" >tied.yaml
tied=(--set cluster.topology=wide.yaml --set model.file=tied.yaml --set train.arithmetic=none
	--set schedule.global_batch=32 --set schedule.microbatch=4)
expects 'tied tables' "${tied[@]}" --set 'cluster.allocation={method: explicit, stage_of: [0, 0, 0, 1, 1, 1]}'
expects 'tied tables of unequal stages' "${tied[@]}" --set 'cluster.allocation={method: explicit, stage_of: [1, 1, 0, 0, 1, 1]}' \
	--set sync.compression=int8 --set schedule.pipeline=1f1b
expects 'fixed pipelines' --set model.stages=4 --set schedule.pipeline=gpipe --set train.arithmetic=none

accepts 'check of half' check "$job" "${settings[@]}" --set cluster.topology=half.yaml --json
check 'says what it does not know' grep -q '"links_unknown":1' "$out"

plan
