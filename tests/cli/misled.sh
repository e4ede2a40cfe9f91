#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# misled.sh - what a newcomer does first, and where a silence would lead them wrong: names in traces, sites without a network,
# folders other than the clone's, laws that are extrapolated, the best value at an edge, plans without time and price.
set -u
. tests/cli/lib.sh
needs python3

said() { # said REGEX FILE
	grep -qE -- "$1" "$2"
}

accepts '-V' -V
check '-V is --version' said '^skep ' "$out"

# ---- where names are looked for --------------------------------------------------------------------------------------

cd "$root/scenarios" || exit 1
accepts 'in the folder of the scenario' check two-datacentres.yaml
cd baselines || exit 1
accepts 'and in one below' check ddp.yaml
cd "$scratch/here" || exit 1
accepts 'a shipped scenario, from any folder' check scenarios/one-worker.yaml
refuses 'one that is nowhere' '^none/such.yaml: error: cannot be opened' check none/such.yaml

# ---- names in traces, networks of sites ------------------------------------------------------------------------------

cat >pool.yaml <<-END
name: two sites
source: assumed for this test
directory: home
sites:
  home: {machines: []}
  west: {machines: [{gpu: t4, count: 2}], inside: {bandwidth: 10 Gbit/s, latency: 0.1 ms}}
  east: {machines: [{gpu: t4}]}
fallback: {bandwidth: 100 Mbit/s, latency: 20 ms}
END
cat >mine.yaml <<-END
name: named
seed: 1
model: {file: models/square-mlp.yaml, stages: 1}
cluster: {topology: pool.yaml, trace: {file: named.csv}}
schedule: {global_batch: 64, microbatch: 8}
train: {arithmetic: none, until: {steps: 400}}
END
printf '%s\n' time,event,node 0,up,west-1 0,Join,west-2 0,start,east 0.1,preempt,east 0.2,evict,west-1 0.3,down,west-2 0.4,join,east 9,end >named.csv
accepts 'words of people, and a row of column names' trace stats named.csv
accepts 'a trace that names sites' sim mine.yaml -q --json
check 'plays each on its site' python3 - <<-END
	import sqlite3
	row = sqlite3.connect("skep.db").execute("SELECT worker, started_s FROM incarnations WHERE worker < 3 ORDER BY started_s, worker").fetchall()
	assert row[:3] == [(0, 0.0), (1, 0.0), (2, 0.0)] and row[3][0] == 2, row
END
rm -f skep.db
printf '0,join,west-1\n0,join,eats\n9,end\n' >named.csv
refuses 'a site that is misspelt' "'west-1' names a place of the topology 'two sites' and 'eats' none" sim mine.yaml
printf '0,join,west-1\n1,preempt,west-1\n2,preempt,west-1\n9,end\n' >named.csv
refuses 'a machine that leaves twice' "named.csv:3:11: .*is not alive \(\`skep trace import --repair\` leaves it out\)" check mine.yaml
sed 's/, inside: {[^}]*}//' pool.yaml >flat.yaml
refuses_at 'two at a site without a network' flat.yaml:6:9 'expected inside: \{bandwidth, latency\}; the fallback is of links' \
	topology stats flat.yaml
sed 's/t4}]}/T4}]}/' pool.yaml >capital.yaml
refuses 'a GPU in capitals' "no GPU profile 'T4' .*did you mean t4\?.*to add one, copy the nearest to gpus/T4.yaml" \
	topology stats capital.yaml
sed 's/gpu: t4/gpu: a100/' pool.yaml >kinds.yaml
refuses 'a GPU of several kinds' "no GPU profile 'a100' .*did you mean a100-40 or a100-80\?" topology stats kinds.yaml
refuses 'a sweep of a scenario that is wrong anyway' 'no file .models/none.yaml.' \
	sweep "${quick[@]}" --set model.file=models/none.yaml --vary sync.evry=2,3
check 'does not blame a value' said '^skep: nothing was simulated: the scenario is wrong whatever --vary makes of it' "$err"
refuses 'a value that is wrong' 'unknown key .sync.evry.' sweep "${quick[@]}" --vary sync.evry=2,3
check 'is blamed' said 'combination 1 of 2 cannot be: sync.evry=2' "$err"
accepts 'a trace of more machines than there are' sim "$root/scenarios/preempted.yaml" --set cluster.trace.file=topologies/traces/aws-p3.csv \
	--set cluster.trace.any_gpu=true --set train.until.steps=4 --set train.arithmetic=none --db left.db
check 'is said behind the run too' said '^  trace +left out: [0-9]+ of [0-9]+ joins in the trace' "$out"
check 'with times that are of a round' said '^  passes +.* per round$' "$out"
rm -f left.db

# ---- what is not known must not look known ---------------------------------------------------------------------------

law=(--set 'train={arithmetic: law, law: {file: scenarios/laws/tiny-gpt2.yaml}, until: {steps: 8}}')
tiny=("$root/scenarios/diloco-sweep.yaml" "${law[@]}" --set plan=null --set cluster.trace=null)
accepts 'a sweep by a law' sweep "${tiny[@]}" --vary sync.every=2,4,8 -q
check 'says that it is extrapolated' said 'Extrapolated: in [1-3] of 3 runs' "$out"
check 'and in what, once for each quantity' said '^    [^ ]*tiny-gpt2.yaml: tokens of a step in 3 of 3 runs \(asked: 1024; fitted: 4096\)$' "$out"
check 'and what is best by what, since the fastest learns the least' said \
	'The least loss, [0-9.]+, is that of sync.every = 2; the highest throughput that of sync.every = 8, with a loss of [0-9.]+\.' "$out"
check 'and calls none of them the best' test "$(grep -c 'The best' "$out")" = 0
accepts 'a sweep with periods of which one does not divide the steps' sweep "${tiny[@]}" --set train.until.steps=20 --vary sync.every=2,10,24
check 'says that the work differs, and with how many steps it does not' said \
	'of 20 steps that were asked for some do 20 and some 24; all do as many with a multiple of 120, as --set train.until.steps=120' "$err"
accepts 'as many steps as it says' sweep "${tiny[@]}" --set train.until.steps=120 --vary sync.every=2,10,24
check 'do the same work' test "$(grep -c 'amounts of work' "$err")" = 0
accepts 'the same as JSON' sweep "${tiny[@]}" --vary sync.every=2,4,8 -q --json
check 'counts them' python3 -c 'import json, sys; assert sum(r["extrapolated"] for r in json.load(open(sys.argv[1]))["rows"]) > 0' "$out"
# A model of a size that the law is of, but far fewer tokens than its data begin at: the loss is a guess, in each command that prints it.
few=("$root/scenarios/diloco-sweep.yaml" --set model.file=models/diloco-150m.yaml --set schedule.wiring=throughput --set sync.every=30
	--set 'train={arithmetic: law, law: {file: scenarios/laws/diloco-2025.yaml}, until: {tokens: 32000}}')
accepts 'a law that is asked below its data' sim "${few[@]}"
check 'is said by sim' said 'extrapolated.*fewer tokens than 700M' "$err"
accepts 'the same, checked' check "${few[@]}"
check 'is said by check' said 'extrapolated: fewer tokens than 700M' "$out"
accepts 'the same in a sweep' sweep "${few[@]}" --vary schedule.microbatch=1,2 -q
check 'is said by sweep' said 'Extrapolated: in 2 of 2 runs' "$out"
check 'with the quantity' said '^    [^ ]*diloco-2025.yaml: tokens in 2 of 2 runs \(asked: [0-9.e+]+; fitted: 7e\+08' "$out"
accepts 'a sweep over two laws' sweep "${few[@]}" --vary train.law.file=scenarios/laws/tiny-gpt2.yaml,scenarios/laws/diloco-2025.yaml -q --json
check 'counts by law and quantity' python3 -c 'import json, sys
left = {(l["law"].split("/")[-1], l["quantity"]): l for l in json.load(open(sys.argv[1]))["left_laws"]}
tokens = left["diloco-2025.yaml", "tokens"]
assert tokens["runs"] == 1 and tokens["asked_most"] < 1e6 and tokens["fitted_least"] == 7e8, left
model = left["tiny-gpt2.yaml", "model"]
assert model["runs"] == 1 and model["asked_least"] is None and ("diloco-2025.yaml", "model") not in left, left' "$out"
accepts 'as many as its data have' check "${few[@]}" --set 'train.until={tokens: 2B}'
check 'are not said to be too few' eval '! said extrapolated "$out"'
rm -f skep.db
plan=("$root/scenarios/two-datacentres.yaml" --set train.arithmetic=none --set train.until.steps=100)
accepts 'a plan' plan "${plan[@]}" -q
check 'says how long and how much' said '^all 100 steps: [0-9.]+ (ms|s|min), [0-9.]+ USD at the prices of the start' "$out"
accepts 'a plan as JSON' plan "${plan[@]}" -q --json
check 'has both' python3 -c 'import json, sys; p = json.load(open(sys.argv[1])); assert p["whole_run_s"] > 0 and p["whole_run_usd"] > 0' "$out"
accepts 'a plan of machines that are lost' plan "$root/scenarios/three-spot.yaml" -q --json
check 'its time is that of whole runs' python3 -c 'import json, sys
p = json.load(open(sys.argv[1]))
plan = p["stated"]["sides"][-1]
assert p["stated"]["whole"] and plan["ended"] > 0
steps = p["whole_run_s"] * plan["throughput_samples_per_s"]["mean"] / 48
assert 0.95 < steps / 240 < 1.05, steps' "$out"
rm -f skep.db

# Of 64 tokens a sample and 32 samples a step, 300,000 tokens are 146.5 steps, and 147 are 19 rounds of 8.
accepts 'tokens as people write them' check "$root/scenarios/diloco.yaml" --set train.until.steps=null --set train.until.tokens=300k
check 'come to steps, in whole rounds' sh -c 'grep -q "152 steps, not the 147" "$1" && grep -q "all 152 steps take" "$1"' - "$out"
accepts 'one step' check "$root/scenarios/square-cube.yaml"
check 'is one' grep -q 'the 1 step takes' "$out"

# ---- terminals -------------------------------------------------------------------------------------------------------

if command -v script >/dev/null; then
	long=("$root/scenarios/two-datacentres.yaml" --set train.arithmetic=none --set train.until.steps=300 -q)
	draws() { # draws TERM: does a run draw on such a terminal?
		TERM=$1 script -qec "$skep sim ${long[*]/-q/} --db $1.db" /dev/null </dev/null | grep -q "$(printf '\033')\[K"
	}
	check 'a dumb terminal is not drawn on' eval '! draws dumb'
else
	skip 'terminals' 'script is not installed'
fi
plan
