#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# plan.sh - who should serve which stage: what is refused, what is chosen, and the scenario that comes of it, which check and sim must
# take, and which must do what was expected.
set -u
. tests/cli/lib.sh
needs python3

two=$root/scenarios/two-datacentres.yaml
fast=("$two" --set train.arithmetic=none --set cluster.compute.type=fp32)

accepts 'rounds of unequal length' plan "${fast[@]}" --set 'sync={method: streaming, every: 10, fragments: 3}' --set train.until.steps=40
check 'all steps are those of each round' grep -q '^all 40 steps: ' "$out"

# ---- refused ----------------------------------------------------------------------------------------------------------

refuses 'no scenario' '^skep: plan takes SCENARIO' plan
refuses 'no such scenario' 'nothing.yaml: error: ' plan nothing.yaml
refuses 'a budget of nothing' "^skep: --budget 0 s: expected a time with its unit, from 1 ms" plan "${fast[@]}" --budget '0 s'
refuses 'a budget of 0' "^skep: --budget 0: expected a time with its unit, from 1 ms" plan "${fast[@]}" --budget 0
refuses 'a budget that is no time' "^skep: --budget nan: expected a time" plan "${fast[@]}" --budget nan
refuses 'a budget too small' "^skep: --budget 999 us: expected a time" plan "${fast[@]}" --budget '999 us'
refuses 'a budget too large' "^skep: --budget 25 h: expected a time" plan "${fast[@]}" --budget '25 h'
refuses 'a budget without a unit' "^skep: --budget 2: expected a time with its unit" plan "${fast[@]}" --budget 2
refuses 'a negative budget' "^skep: --budget -1 s: expected a time" plan "${fast[@]}" --budget '-1 s'
refuses 'more stages than workers' 'model.stages: 9 stages need at least as many workers' plan "${fast[@]}" --set model.stages=9
refuses 'more stages than layers' 'model.stages: 10 stages cannot be cut' plan "${fast[@]}" --set model.stages=10
refuses 'what fits nobody, however it is cut' 'two-datacentres.yaml: error: stage 1 needs at least 23.6 GB on each of its workers, and no worker has as much; the nearest changes: a stage of at most 16.0 GB, or 7.62 GB more on worker 0, a T4; any of these would do: schedule.microbatch: 262144, schedule.in_flight: 2; nor was another cut of the model found that would do' \
	plan "${fast[@]}" --set schedule.global_batch=4194304 --set schedule.microbatch=1048576
mkdir "$scratch/far" "$scratch/near" # a model that is not shipped: those that are, are found from anywhere
cp "$root/models/square-mlp.yaml" "$scratch/near/near-mlp.yaml"
sed 's,models/square-mlp.yaml,near-mlp.yaml,' "$two" >"$scratch/near/near.yaml"
refuses 'a place from which its files are not found' 'far/plan.yaml:[0-9]+:[0-9]+: error: model.file: .*it was not written, since it would not read from there' \
	plan "$scratch/near/near.yaml" "${fast[@]:1}" -o "$scratch/far/plan.yaml"
SKEP_PATIENCE=60 refuses 'and says so before it searches' 'far/plan.yaml:.*it was not written' \
	plan "$scratch/near/near.yaml" --budget '1 h' -o "$scratch/far/plan.yaml"
cp "$two" own.yaml
ln -s "$root/models" "$root/topologies" .
cat >islands.yaml <<-END
name: two islands
source: assumed for this test
directory: west
sites:
  west: {machines: [{count: 2, gpu: t4}], inside: {bandwidth: 10 Gbit/s, latency: 0.05 ms}}
  east: {machines: [{count: 2, gpu: t4}], inside: {bandwidth: 10 Gbit/s, latency: 0.05 ms}}
links: [{from: west, to: east, bandwidth: 1 Gbit/s, latency: 1 ms}]
END
refuses 'a pool in pieces' '^islands.yaml:7:8: error: no link from east to west: add one, or fallback' \
	plan "${fast[@]}" --set cluster.topology=islands.yaml
printf '0,100,100\n100,0,1\n100,0.0000001,0\n' >thin.csv
cat >thin.yaml <<-END
name: a link that is next to none
source: assumed for this test
directory: 0
matrix: {bandwidth: thin.csv, bandwidth_unit: Mbit/s, latency: 1 ms}
machines: [{count: 3, gpu: t4}]
END
sed 's/thin.csv/nan.csv/' thin.yaml >nan.yaml
refuses 'a link that is next to none' '^thin.csv:3:5: error: bandwidth from 2 to 1: expected 8 to 8e.15 bit/s; leave the cell empty' \
	plan "${fast[@]}" --set cluster.topology=thin.yaml
printf '0,100,100\n100,0,nan\n100,100,0\n' >nan.csv
refuses 'a NaN in the matrix' '^nan.csv:2:7: error: bandwidth from 1 to 2: is missing: fill the hole' plan "${fast[@]}" --set cluster.topology=nan.yaml
refuses 'a folder that is not there' '^skep: nowhere/plan.yaml: the folder that it is to be in is not there' plan "${fast[@]}" -o nowhere/plan.yaml
refuses 'a folder' '^skep: models: is a folder: name a file in it' plan "${fast[@]}" -o models
refuses 'no name' '^skep: -o: expected the name of a file' plan "${fast[@]}" -o ''
mkdir locked && chmod a-w locked
plan_locked() { bound_by_permissions "$skep" plan "${fast[@]}" -o locked/plan.yaml 2>&1 | grep -q '^skep: locked/plan.yaml: its folder cannot be written to: Permission denied'; }
check 'a folder that may not be written to' plan_locked
refuses 'the scenario itself' '^skep: own.yaml: is the scenario itself' plan own.yaml -o own.yaml

seeds=(--seed 9223372036854775806)
refuses 'more seeds than there are' 'plan.seeds: 5 of them, from seed 9223372036854775806 on: there is none above' plan "${fast[@]}" "${seeds[@]}" --set plan.seeds=5
refuses 'by check, at the line' 'plan.seeds: 3 of them, from seed 9223372036854775807' check "${fast[@]}" --seed 9223372036854775807 --set plan.seeds=3
refuses 'more of them to confirm' '^skep: --confirm 2: takes the seeds up to 2 above' plan "${fast[@]}" "${seeds[@]}" --confirm 2
refuses 'more of both' '^skep: --confirm 2: takes the seeds up to 3 above' plan "${fast[@]}" --seed 9223372036854775805 --set plan.seeds=2 --confirm 2
accepts 'the last seeds that there are' check "${fast[@]}" "${seeds[@]}" --set plan.seeds=2
{
	printf '0,join,node%s\n' 1 2 3 4 5 6 7 8
	printf '0.2,leave,node%s\n' 1 2 3 4 5 6 7
} >die.csv
refuses 'trials that do not end' 'error: no allocation that was found can be: its trial does not come to an end: a stage lost its last worker' \
	plan "${fast[@]}" --set 'cluster.trace={file: die.csv}'

# ---- found ------------------------------------------------------------------------------------------------------------

better() { # the object of --json: chosen beats start and random, and is what the best search says
	python3 - "$1" <<-'END'
	import json, sys
	text = open(sys.argv[1]).read()
	assert text.count("\n") == 1, text
	def refuse(word): raise ValueError(word)
	seen = json.loads(text, parse_constant=refuse)
	best, random = seen["throughput_samples_per_s"], seen["random_throughput_samples_per_s"]
	assert random["count"] == 8 and 0 < random["interval95"] < random["mean"], random
	assert best > 1.2 * seen["start"]["throughput_samples_per_s"], seen
	assert best > 1.2 * (random["mean"] + random["interval95"]), seen
	tried = [s["throughput_samples_per_s"] for s in seen["searches"] if s["throughput_samples_per_s"] is not None]
	assert len(tried) >= 3 and best == max(tried), seen
	assert {s["method"] for s in seen["searches"]} >= {"genetic", "anneal", "portfolio", "relaxed", "greedy"}, seen
	assert len(seen["stage_of"]) == 8 and set(seen["stage_of"]) - {-1} == {0, 1, 2, 3}, seen
	assert sum(stage["workers"] for stage in seen["stages"]) + len(seen["left_out"]) == 8, seen
	assert seen["stage_of"].count(-1) == len(seen["left_out"]), seen
	assert sum(stage["bottleneck"] for stage in seen["stages"]) == 1, seen
	END
}

cp "$two" "it's mine.yaml"
accepts 'a file whose name has a blank and a quote' plan "it's mine.yaml" "${fast[@]:1}" -o quoted.yaml
quoted() {
	eval "set -- $(sed -n '1s/.*from: skep plan //p' quoted.yaml)"
	[ "$1" = "it's mine.yaml" ] && [ "$2" = --set ]
}
check 'stands in the head of the plan as a shell takes it' quoted
accepts 'two data centres' plan "${fast[@]}" --json -o plan.yaml
cp "$out" first.json
check 'better than the start and than random' better first.json
check 'says what was expected above it' grep -q '^# Found by .* Expected of it, simulated over 8 steps: .* samples/s' plan.yaml
check 'says who serves each stage' grep -q '^#   stage 3: ' plan.yaml
inspectable() { # the table of --explain, in comments: layers, workers, memory, bytes, times, who
	"$skep" plan "${fast[@]}" -q --explain >explained.txt || return 1
	grep -E '^ *(stage +layers|[0-9]+( \*)? +[0-9]+-[0-9]+) ' explained.txt | sed 's/^/#   /' >wanted.txt
	[ "$(wc -l <wanted.txt)" = 5 ] && grep -q ' memory .* to next .* reduced .* pace ' wanted.txt && grep -qE '^# +[0-3] \* ' wanted.txt &&
		grep -xF -f wanted.txt "$1" | cmp - wanted.txt
}
check 'and what is expected of each stage' inspectable plan.yaml
accepts 'once more' plan "${fast[@]}" --json -o again.yaml
check 'the same for the same seed' cmp first.json "$out"
check 'the same file' cmp plan.yaml again.yaml
accepts 'with another seed' plan "${fast[@]}" --json --seed 2
check 'better as well' better "$out"

agrees() { # the run of the file has the throughput that was expected, and the stages that were chosen
	python3 - first.json "$out" <<-'END'
	import json, sys
	plan, run = (json.load(open(name)) for name in sys.argv[1:])
	assert abs(run["throughput_samples_per_s"] / plan["throughput_samples_per_s"] - 1) < 1e-9, (plan, run)
	END
}

accepts 'check takes the file' check plan.yaml
accepts 'sim takes the file' sim plan.yaml -q --json --set train.until.steps=8
check 'and does what was expected' agrees
accepts 'plan takes the file' plan plan.yaml --json
check 'and finds nothing better' python3 -c 'import json, sys
a, b = (json.load(open(name))["throughput_samples_per_s"] for name in sys.argv[1:])
assert b >= a, (a, b)' first.json "$out"

of_all() { # exact costs least of all searches that leave nobody out, and better than the mean, which is better than the worst
	python3 - "$1" <<-'END'
	import json, sys
	rows = json.load(open(sys.argv[1]))["searches"]
	exact = [r for r in rows if r["method"] == "exact"]
	assert len(exact) == 1 and exact[0]["least_cost"], rows
	least, mean, worst = (exact[0][k] for k in ("cost_shared_s", "cost_mean_of_all_s", "cost_worst_of_all_s"))
	assert 0 < least < mean < worst, exact
	seen = [r["cost_shared_s"] for r in rows if r["links"] == "shared" and r["method"] != "exact" and r["cut"] is None][:-1]
	assert seen and min(seen) >= least * (1 - 1e-9) and max(seen) <= worst * (1 + 1e-9), rows
	assert all(r["cost_mean_of_all_s"] is None for r in rows if r["method"] != "exact"), rows
	END
}
check 'exact is the least of all' of_all first.json
accepts 'the table says what all come to' plan "${fast[@]}"
# In the row of `exact`, or of the first of the searches that found the same.
check 'in the mean and at worst' grep -qE '^(exact .* the least cost of all allocations: mean [0-9.]+ m?s, worst [0-9.]+ m?s|.* the least cost of all allocations: mean [0-9.]+ m?s, worst [0-9.]+ m?s, as (.*, )?exact)$' "$out"
accepts 'a pool too large for exact' plan "${fast[@]}" --set cluster.topology=topologies/two-datacentres-64.yaml
check 'has no such row' bash -c '! grep -q "^exact" "$1"' - "$out"
accepts 'exact as a method' check "${fast[@]}" --set cluster.allocation.method=exact
check 'is named' grep -q 'by the search `exact`' "$out"
sed 's/method: strided/method: exact/' "$two" >exact.yaml
refuses_at 'exact for a pool too large' exact.yaml:8:24 \
	'cluster.allocation.method: .exact. looks at every allocation, of which this pool has up to [0-9.e+]+; it does at most 100000: take .portfolio.' \
	check exact.yaml --set cluster.topology=topologies/two-datacentres-64.yaml

accepts 'explained' plan "${fast[@]}" --explain --set plan.cut=fixed # which crosses the thin line
check 'stages with their bottleneck' grep -qE '^ *[0-3] \* .* (computing|sending|receiving) ' "$out"
check 'bytes by class of link' grep -qE '^100 Mbit/s to 1 Gbit/s ' "$out"
check 'and in the closed form' grep -qF '2 B (S - 1) b L H = 2 x 32 x 3 x 64 x' "$out"
check 'no blanks at the ends of lines' bash -c '! grep -qE "[[:blank:]]$" "$1"' - "$out"
accepts 'explained, with eight steps a round' plan "$root/scenarios/three-spot.yaml" --explain --set train.arithmetic=none \
	--set train.target_loss=null
check 'each part is one of a step, and they make the cost' python3 -c 'import re, sys
text = open(sys.argv[1]).read()
part = lambda what: next(float(n) * {"s": 1e3, "ms": 1, "us": 1e-3}[unit] for n, unit in re.findall(what + r" +([0-9.]+) (s|ms|us)\b", text))
cost, parts = part("its cost, by the search:"), [part("  " + name) for name in ("passes", "reductions", "the rest")]
assert abs(cost - sum(parts)) < 0.01 * cost, (cost, parts)
assert abs(8 * parts[1] - part("the longest takes")) < 0.01 * 8 * parts[1] and ", every 8 steps)" in text, parts' "$out"
accepts 'within a time' plan "${fast[@]}" --budget '1 ms'
check 'one random allocation at least' grep -qE '^mean random .*  of [1-8] allocations, with these settings' "$out"

# All allocations of one stage, and of one kind of workers on one kind of links, cost the same, and more workers are faster: then what is
# there stays.
accepts 'all-equal costs' plan "${fast[@]}" --set model.stages=1 --set cluster.topology=topologies/eight-p3.yaml
check 'nothing is better' grep -qF "samples/s simulated: the scenario's own allocation, and nothing that was tried is better" "$out"
check 'one stage' grep -qF ': 8 workers in 1 stage; ' "$out"

# ---- cuts ---------------------------------------------------------------------------------------------------------------

refuses 'two who say where to cut' 'plan.cut: `auto` looks for the layers of each stage, and model.cut says them: leave out either' \
	plan "${fast[@]}" --set plan.cut=auto --set 'model.cut=[3, 2, 2, 2]'
refuses 'a cut to find, and cuts to choose from' 'plan.cut: `auto` looks for the layers of each stage, and plan.search has values of model.cut' \
	plan "${fast[@]}" --set 'plan={cut: auto, search: {model.cut: [[3, 2, 2, 2], [2, 2, 2, 3]]}}'
refuses 'a cut that is no word' 'plan.cut: expected one of: auto, fixed, not `even`' plan "${fast[@]}" --set plan.cut=even

cut() { # the object of --json: the cut that was found is better, and what the file says
	python3 - "$@" <<-'END'
	import json, re, sys
	seen, text = json.load(open(sys.argv[1])), open(sys.argv[2]).read()
	cut = seen["cut"]
	assert seen["cut_searched"] and seen["cut_found"] and len(cut) == 4 and sum(cut) == 9 and min(cut) >= 1, seen
	assert cut != [3, 2, 2, 2] and cut == [stage["layers"] for stage in seen["stages"]], seen
	assert seen["throughput_samples_per_s"] > 1.1 * seen["throughput_without_cut_samples_per_s"], seen
	assert f"cut: {json.dumps(cut)}" in text and "--set 'model.cut" not in text, text
	assert re.search(rf"^#   stage 0: layers 0-{cut[0] - 1}: ", text, re.M), text
	END
}
check 'a better cut was found' cut first.json plan.yaml
accepts 'the even one' plan "${fast[@]}" --json --set plan.cut=fixed
check 'is what it was without' python3 -c 'import json, sys
cut, even = (json.load(open(name)) for name in sys.argv[1:])
assert even["throughput_samples_per_s"] == cut["throughput_without_cut_samples_per_s"] > 0, even
assert even["cut"] == [3, 2, 2, 2] and not even["cut_searched"] and not even["cut_found"], even
assert not any(row["cut"] for row in even["searches"]) and any(row["cut"] for row in cut["searches"])' first.json "$out"
accepts 'one that is written' plan "${fast[@]}" --json --set 'model.cut=[1, 2, 3, 3]'
check 'stays' python3 -c 'import json, sys
seen = json.load(open(sys.argv[1]))
assert seen["cut"] == [1, 2, 3, 3] and not seen["cut_searched"], seen' "$out"
accepts 'said in the file' plan "${fast[@]}" --set plan.cut=auto -o said.yaml
check 'which then says what was found' grep -q 'cut: fixed' said.yaml
accepts 'so that it can be checked' check said.yaml
check 'explained with its layers' bash -c '"$0" plan "$@" --explain | grep -qE "^ +1 +[*]? +[0-9]+-[0-9]+ "' "$skep" "${fast[@]}"

# What goes between stages, by the formula and by class of link: of equal cuts the same.
same_bytes() { # same_bytes FORMULA SCENARIO [OPTION...]
	local formula=$1
	shift
	"$skep" plan "$@" --explain >explained.txt || return 1
	grep -qF "$formula = " explained.txt &&
		awk '/ between stages$/ { for (i = 1; i < NF; i++) if ($i == "=") { told = $(i + 1) " " $(i + 2) } }
		     /^from .*bit/ { moved = $4 " " $5 } END { if (told != moved) print "# " told " and " moved; exit told != moved }' explained.txt
}
check 'bytes of interleaved pipelines' same_bytes '2 B (v S - 1) b L H' "$root/scenarios/baselines/interleaved.yaml"
check 'layers of interleaved pipelines are counted in all chunks' awk '/^ +[0-9]+[ *]+[0-9]+ in 2 / { n += $2 == "*" ? $3 : $2 } END { exit n != 9 }' \
	explained.txt
check 'bytes where trainers route' same_bytes 'B (5 S - 8) b L H' "$root/scenarios/two-datacentres.yaml" --set schedule.routing=trainer \
	--set train.arithmetic=none --set train.until.steps=20 --set train.target_loss=null
accepts 'a stage for each layer' plan "${fast[@]}" --set model.file=models/tiny-mlp.yaml --set model.stages=5 --json
check 'has but one cut' python3 -c 'import json, sys
seen = json.load(open(sys.argv[1]))
assert seen["cut"] == [1] * 5 and not seen["cut_searched"], seen' "$out"
accepts 'virtual stages of interleaved pipelines' plan "${fast[@]}" --set schedule.pipeline=interleaved --set schedule.model_chunks=2 \
	--set model.stages=2 --json -o vstages.yaml
check 'are cut as well' python3 -c 'import json, sys
seen = json.load(open(sys.argv[1]))
assert seen["cut_searched"] and len(seen["cut"]) == 4 and sum(seen["cut"]) == 9, seen
assert sum(stage["layers"] for stage in seen["stages"]) == 9, seen' "$out"
accepts 'and sim takes them' sim vstages.yaml -q --set train.until.steps=2

# Half of the model is too much for the T4, a fifth of it is not.
cat >uneven.yaml <<END
name: a small one and a large one
source: assumed for this test
directory: here
sites:
  here:
    machines: [{count: 1, gpu: t4, up: 10 Gbit/s, down: 10 Gbit/s}, {count: 1, gpu: a100-40, up: 10 Gbit/s, down: 10 Gbit/s}]
    inside: {bandwidth: 10 Gbit/s, latency: 0.1 ms}
END
cat >half.yaml <<END
name: half of it is too much
seed: 1
model: {file: models/transformer-32.yaml, stages: 2}
cluster: {topology: uneven.yaml, compute: {type: fp32}}
schedule: {global_batch: 16, microbatch: 1, in_flight: 2, checkpoint_activations: true}
train: {arithmetic: none, data: {corpus: quadratic}, optimizer: {name: adamw, lr: 1.0e-3}, until: {steps: 4}}
END
refuses 'halves' 'half.yaml: error: stage 0 needs at least 19.7 GB .* take smaller parts of all$' plan half.yaml --set plan.cut=fixed
accepts 'unequal parts' plan half.yaml -o parts.yaml
check 'and says why' grep -qE "^model.cut=\[[0-9]+, [0-9]+\]: as it is cut by itself the model fits no machine's memory" "$out"
accepts 'check takes them' check parts.yaml
accepts 'sim too' sim parts.yaml -q

# ---- left out -----------------------------------------------------------------------------------------------------------

# Stages that fit no T4.
accepts 'workers that can hold nothing' plan "$root/scenarios/t4-a100-both.yaml" --set train.arithmetic=none --explain \
	--set schedule.microbatch=32 --set schedule.global_batch=1024 --set plan.cut=fixed # smaller stages would fit them
check 'are left out' grep -qxF '  here 8 x T4: no stage fits' "$out"

# Two slow machines behind a thin line cost more than they bring.
cat >behind.yaml <<END
name: two behind a thin line
source: assumed for this test
directory: fast
sites:
  fast:
    machines: [{count: 6, gpu: v100, up: 10 Gbit/s, down: 10 Gbit/s, price: 3 USD/h}]
    inside: {bandwidth: 10 Gbit/s, latency: 0.1 ms}
  far:
    machines: [{count: 2, gpu: t4, up: 20 Mbit/s, down: 20 Mbit/s, price: 1 USD/h}]
    inside: {bandwidth: 1 Gbit/s, latency: 0.1 ms}
links: [{between: [fast, far], bandwidth: 20 Mbit/s, latency: 50 ms}]
END
accepts 'a slow place' plan "${fast[@]}" --set cluster.topology=behind.yaml --explain -o lean.yaml
check 'is left out, and why' grep -qE '^  far 2 x T4: with one at stage [0-9] a step takes [0-9.]+ ms, not [0-9.]+ ms$' "$out"
check 'and the file says so' grep -qF 'unused, unused]' lean.yaml
check 'above as well' grep -qxF '#   left out: far 2 x T4' lean.yaml
accepts 'check takes it' check lean.yaml
check 'and names them' grep -qF '  left out  2 of the 8 machines of the topology: 6 7; workers are numbered without them' "$out"
rm -f skep.db
accepts 'sim takes it' sim lean.yaml -q --set train.until.steps=8
accepts 'as it was' sim "${fast[@]}" -q --set cluster.topology=behind.yaml --set train.until.steps=8
check 'it is faster, and cheaper by the hour' python3 -c '
import sqlite3
rows = sqlite3.connect("skep.db").execute("SELECT throughput_samples_per_s, cost_usd, time_s FROM runs ORDER BY id").fetchall()
(lean, usd, s), (all_, all_usd, all_s) = rows
assert lean > 3 * all_ and abs(usd / s * 3600 - 18) < 0.4 and abs(all_usd / all_s * 3600 - 20) < 0.4, rows'
accepts 'plan takes it' plan lean.yaml --json
check 'and they stay out' python3 -c 'import json, sys
seen = json.load(open(sys.argv[1]))
assert seen["stage_of"][6:] == [-1, -1] and seen["workers"] <= 6, seen' "$out"

# V100s (2.48 USD/h) are seven times as dear as T4s (0.35) and three times as fast: for the least money they stay out, for the
# least time those near the directory do not. Both plans have one worker for each stage, so they sum nothing. That for time stays
# in one place: 32 microbatches of 3.1 ms on a T4, 107 ms a step, for 2 * 0.35 + 2 * 2.48 = 5.66 USD/h. With all eight it is
# 119 ms. That for money goes over the line, at 10 ms a way: two ways and 14 ms of passes and transfers for each of eight in
# flight, beside queues and the ways to the directory, 221 ms, for 4 * 0.35 = 1.40 USD/h. As many steps of each come to
# 1.40 / 5.66 * 221 / 107 = 0.51 of the money.
for aim in cost-to-loss time-to-loss; do
	accepts "for $aim" plan "$two" --set train.arithmetic=law --set train.law.file=scenarios/laws/tiny-gpt2.yaml --json \
		--set train.until='{steps: 4000, loss: 3.5}' --set "plan={objective: $aim, extrapolate: true, cut: fixed}"
	cp "$out" "$aim.json"
done
check 'money leaves out what is dear' python3 -c 'import json
cost, time = (json.load(open(name + "-to-loss.json")) for name in ("cost", "time"))
out = lambda plan: [row["machine"] for row in plan["left_out"]]
usd_per_h = lambda plan: 3600 * plan["cost_to_target_usd"] / plan["time_to_target_s"]
assert out(cost) == [2, 3, 6, 7] and out(time) == [4, 5, 6, 7], (out(cost), out(time))
assert abs(usd_per_h(cost) - 1.40) < 0.001 and abs(usd_per_h(time) - 5.66) < 0.001, (usd_per_h(cost), usd_per_h(time))
assert cost["cost_to_target_usd"] < 0.53 * time["cost_to_target_usd"]
assert time["time_to_target_s"] < cost["time_to_target_s"]'

# Two V100 that stand by cost their 4.96 USD an hour whatever the others do.
standing=(--set model.stages=2 --set 'cluster.allocation={method: explicit, stage_of: [0, 1, spare, spare, 0, 1, 0, 1]}')
accepts 'for money, beside machines that stand by' plan "$two" "${standing[@]}" --set train.arithmetic=law \
	--set train.law.file=scenarios/laws/tiny-gpt2.yaml --json --set train.until='{steps: 4000, loss: 3.5}' \
	--set 'plan={objective: cost-to-loss, extrapolate: true, cut: fixed}'
check 'they are paid for' python3 -c 'import json, sys
plan = json.load(open(sys.argv[1]))
out = [row["machine"] for row in plan["left_out"]]
usd = [0.35 if i % 4 < 2 else 2.48 for i in range(8)]
rent = sum(usd[i] for i in range(8) if i not in out or i in (2, 3))
seen = 3600 * plan["cost_to_target_usd"] / plan["time_to_target_s"]
assert abs(seen - rent) < 0.001 and seen > 2 * 2.48, (seen, rent, out)' "$out"

# ---- searched for when the scenario is read -----------------------------------------------------------------------------

refuses 'a method that is none' 'cluster.allocation.method: expected one of: .*explicit.*genetic.*portfolio' \
	sim "${fast[@]}" --set cluster.allocation.method=best
refuses 'no memory for any' 'stage 1 needs at least 23.6 GB .*, and no worker has as much' sim "${fast[@]}" \
	--set cluster.allocation.method=genetic --set schedule.global_batch=4194304 --set schedule.microbatch=1048576
rm -f skep.db
for method in strided greedy relaxed genetic anneal portfolio portfolio; do
	accepts "simulated with $method" sim "${fast[@]}" -q --json --set "cluster.allocation.method=$method" --set train.until.steps=8
done
found() { # runs 2 to 7 in the order above; 3 is the best that there is
	python3 - first.json <<-'END'
	import json, re, sqlite3, sys
	rows = sqlite3.connect("skep.db").execute(
	    "SELECT throughput_samples_per_s, digest, text FROM runs ORDER BY id").fetchall()
	assert len(rows) == 7, rows
	for rate, _, text in rows[1:]:
	    assert re.search(r"method: explicit", text) and re.search(r"stage_of:", text), text
	    assert rate > 1.05 * rows[0][0], (rate, rows[0][0])
	assert rows[5] == rows[6], rows[5:]
	best = json.load(open(sys.argv[1]))["throughput_without_cut_samples_per_s"]
	assert all(abs(rate / best - 1) < 1e-9 for rate, _, _ in rows[2:]), ([row[0] for row in rows], best)
	END
}
check 'which is better than none, the same each time, and kept' found
accepts 'a sweep over methods' sweep "${fast[@]}" -q --vary cluster.allocation.method=strided,genetic --set train.until.steps=2 --jobs 1
accepts 'a plan that begins with it' plan "${fast[@]}" --set cluster.allocation.method=genetic --set plan.cut=fixed
check 'and finds nothing better' grep -q '^chosen: start, ' "$out"

# Whatever the schedule, check and sim take the file, whose whole runs are those that the plan states. tests/exec/planned.sh runs some.
for kind in gpipe 1f1b interleaved pipedream; do
	steps=(--set train.arithmetic=none --set train.until.steps=6)
	accepts "$kind" plan "$root/scenarios/baselines/$kind.yaml" "${steps[@]}" --json -o "$kind.yaml"
	cp "$out" "$kind.json"
	accepts "$kind: check takes it" check "$kind.yaml" -q
	accepts "$kind: sim takes it" sim "$kind.yaml" --json -q --seed 1002
	check "$kind: as stated, with equal stages" python3 -c 'import json, sys
plan, run = (json.load(open(name)) for name in sys.argv[1:])
key = "throughput_samples_per_s"
assert plan["stated"]["whole"] and plan["stated"]["sides"][1][key]["values"][0] == run[key], (plan["stated"], run)
assert len({stage["workers"] for stage in plan["stages"]}) == 1, plan["stages"]' "$kind.json" "$out"
done

# One pipeline in each place; workers of one stage must be as many.
accepts 'fixed pipelines' plan "${fast[@]}" --json --set schedule.pipeline=1f1b
check 'have equal stages' python3 -c 'import json, sys
seen = json.load(open(sys.argv[1]))
assert all(stage["workers"] == 2 for stage in seen["stages"]), seen' "$out"
# Here stages 1 to 3 fit the A100s alone, which the scenario has elsewhere.
accepts 'what only another allocation makes fit' plan "$root/scenarios/t4-a100-both.yaml" --set train.arithmetic=none \
	--set schedule.microbatch=16 --set schedule.global_batch=1024 --set schedule.in_flight=36 -o fits.yaml
check 'the scenario did not fit' grep -qE '^start .* does not fit ' "$out"
check 'check takes what was found' "$skep" check fits.yaml -q

# Nine homes of three machines each: all together wait for the thinnest way out, and one home alone is best, that of the directory. A
# search that leaves out one machine after the other does not get there: a step takes no less time until the last one of a home is gone.
{
	printf '%s\n' 'name: homes' 'source: assumed for this test' 'directory: h0' 'sites:'
	gpus=(rtx-3090 l4 l4) ways=(20 40 40 100)
	for i in {0..8}; do
		echo "  h$i: {machines: [{count: 3, gpu: ${gpus[i % 3]}}], inside: {bandwidth: 1 Gbit/s, latency: 0.2 ms}," \
			"uplink: ${ways[i % 4]} Mbit/s, downlink: 200 Mbit/s}"
	done
	echo 'fallback: {bandwidth: 500 Mbit/s, latency: 10 ms}'
} >homes.yaml
cat >layers.yaml <<-'END'
	name: layers
	kind: mlp
	activation: tanh
	layers: {inputs: 64, hidden: 1024, hidden_layers: 7, outputs: 64}
	END
cat >at-home.yaml <<-'END'
	name: at home
	seed: 1
	model: {file: layers.yaml, stages: 3}
	cluster: {topology: homes.yaml, allocation: {method: strided}}
	schedule: {pipeline: swarm, global_batch: 112, microbatch: 4}
	sync: {method: diloco, every: 4, collective: butterfly}
	train: {arithmetic: none, optimizer: {name: sgd}, until: {steps: 24}}
	plan: {cut: fixed}
	END
others=$(printf ', unused%.0s' {1..24})
accepts 'the home of the directory by hand' sim at-home.yaml --json -q --set "cluster.allocation={method: explicit, stage_of: [0, 1, 2${others}]}"
by_hand=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["throughput_samples_per_s"])' "$out")
for seed in 1 2; do
	accepts "homes, seed $seed" plan at-home.yaml --json --seed "$seed"
	check "is as fast as that, $by_hand samples/s" python3 -c 'import json, sys
seen = json.load(open(sys.argv[1]))
assert seen["throughput_samples_per_s"] > 0.97 * float(sys.argv[2]), seen["throughput_samples_per_s"]' "$out" "$by_hand"
done

accepts 'stages with shards of the optimizer' plan "$root"/scenarios/baselines/zero-1f1b.yaml --json

plan
