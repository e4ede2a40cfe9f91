#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# joint.sh - `skep plan` where settings are free: the best of a small space, what is fixed stays so, the law's flag, and the file that
# comes of it.
set -u
. tests/cli/lib.sh
needs python3

cat >law.yaml <<'END'
law: chinchilla-diloco
model: "square-mlp"
reference_tokens: 100000
first_loss: 60
parameters:
  E: {value: 0, fixed: "made"}
  A: {value: 2, fixed: "made"}
  alpha: {value: 0.5, fixed: "made"}
  D0: {value: 0, fixed: "made"}
  gamma: {value: 0.3, fixed: "made"}
  mu: {value: 0.2, fixed: "made"}
  delta: {value: 0.4, fixed: "made"}
fitted:
  tokens: [0, 400000]
  every: [1, 8]
  replicas: [1, 4]
  staleness: [0, 1]
  batch: [1, 10000]
  misfit: 0.01
END
ln -s "$root/models" "$root/topologies" .
two=("$root/scenarios/two-datacentres.yaml" --set cluster.compute.type=fp32)
law=(--set train.arithmetic=law --set "train.law.file=$PWD/law.yaml" --set train.until='{steps: 400, loss: 2.5}')

# ---- refused ----------------------------------------------------------------------------------------------------------

refuses 'a front of nothing' '^skep: --pareto: nothing is free' plan "${two[@]}" --pareto
refuses 'keys that are none' 'plan.search: unknown key .sync.evry.' \
	plan "${two[@]}" --set 'plan.search={sync.evry: [1, 2]}'
refuses 'a loss that is too far' 'with none of these settings the target loss is reached' \
	plan "${two[@]}" "${law[@]}" --set train.until.steps=5 --set 'plan={objective: time-to-loss, search: {schedule.microbatch: [64]}}'
refuses 'a loss that nobody knows of' 'is reached within train.until.steps, where the law was fitted' \
	plan "${two[@]}" "${law[@]}" --set train.until.loss=0.6 --set train.until.steps=4000 \
	--set 'plan={objective: time-to-loss, extrapolate: false, search: {schedule.microbatch: [64]}}'

# ---- the best of a small space ----------------------------------------------------------------------------------------

# Cuts are searched further down: here, where the same is planned many times, the cut stays as it is, which takes half as long.
as_cut=(--set plan.cut=fixed)
free='plan.search={schedule.microbatch: [32, 128, 256], schedule.wiring: [uniform, latency]}'
rate() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["throughput_samples_per_s"])' "$out"; }
none=(--set train.arithmetic=none)
for microbatch in 32 128 256; do
	for wiring in uniform latency; do
		accepts "$microbatch samples, $wiring" plan "${two[@]}" "${none[@]}" "${as_cut[@]}" --json \
			--set schedule.microbatch=$microbatch --set schedule.wiring=$wiring
		echo "$microbatch $wiring $(rate)" >>all
	done
done
accepts 'all of these at once' plan "${two[@]}" "${none[@]}" "${as_cut[@]}" --set "$free" --json --jobs 2
cp "$out" joint.json
check 'the best is chosen' python3 - <<'END'
import json
seen = json.load(open("joint.json"))
rows = {(m, w): float(rate) for m, w, rate in (line.split() for line in open("all"))}
best = max(rows, key=rows.get)
chosen = seen["settings"]["chosen"]
rate = chosen["throughput_samples_per_s"]
assert rate >= 0.99 * rows[best] > 1.2 * min(rows.values()), (rate, rows)
key = (chosen["settings"]["schedule.microbatch"], chosen["settings"]["schedule.wiring"])
assert rows[key] >= 0.97 * rows[best], (key, rows) # of two that are as good either one
assert seen["throughput_samples_per_s"] >= rate * (1 - 1e-9), seen
s = seen["settings"]
assert s["objective"] == seen["objective"] == "throughput" and s["combinations"] == s["looked_at"] == 6, s
own = [row for row in s["simulated"] if row["as_written"]]
assert len(own) == 1 and own[0]["settings"] == {} and own[0]["throughput_samples_per_s"] <= rate, s
assert chosen["time_to_target_s"] is None and seen["time_to_target_s"] is None, s
END
accepts 'in one process' plan "${two[@]}" "${none[@]}" "${as_cut[@]}" --set "$free" --json --jobs 1
check 'the same' cmp joint.json "$out"
accepts 'with one of them set' plan "${two[@]}" "${none[@]}" "${as_cut[@]}" --set "$free" --set schedule.wiring=uniform --json -o fixed.yaml
check 'which stays so' python3 -c 'import json, sys
seen = json.load(open(sys.argv[1]))["settings"]
assert seen["combinations"] == 3 and list(seen["chosen"]["settings"]) == ["schedule.microbatch"], seen' "$out"
check 'in the file too' grep -q 'wiring: uniform' fixed.yaml
accepts 'which check takes' check fixed.yaml

# ---- to a loss --------------------------------------------------------------------------------------------------------

methods='{method: step}, {method: diloco, every: 8}, {method: diloco, every: 64}, {every: 2}'
# The cut as it is: with the one that is found the thin line is not crossed, and then no method beats steps.
free="plan={objective: time-to-loss, cut: fixed, search: {sync: [$methods], sync.compression: [none, int8]}}"
accepts 'time to a loss' plan "${two[@]}" "${law[@]}" --set "$free" --json --pareto -o best.yaml
cp "$out" joint.json
accepts 'sim takes the file' sim best.yaml --json -q
check 'and reaches the loss when the plan says' python3 - "$out" <<'END'
import json, sys
plan, run = json.load(open("joint.json")), json.load(open(sys.argv[1]))
s = plan["settings"]
chosen = s["chosen"]
assert s["refused"] == 2, s # `every` without a method
assert chosen["runs"] == chosen["reached"] == 1, chosen
# The file has the best allocation of all that were simulated for these settings, which may be better still.
assert run["time_to_target_s"] <= 1.05 * chosen["time_to_target_s"], (run, chosen)
assert abs(run["time_to_target_s"] / plan["time_to_target_s"] - 1) < 0.2, (run, plan["time_to_target_s"])
assert run["extrapolated"] == chosen["extrapolated"] == plan["extrapolated"], (run, chosen)
own = [row for row in s["simulated"] if row["as_written"]][0]
assert chosen["time_to_target_s"] < own["time_to_target_s"], s
far = [row for row in s["simulated"] if "64" in row["settings"].get("sync", "")]
assert all(row["extrapolated"] for row in far), far # H of 64, and 8 is the most that was fitted
front = [row for row in s["simulated"] if row["front"]]
assert front and min(row["time_to_target_s"] for row in front) == min(
    row["time_to_target_s"] for row in s["simulated"] if row["runs"]), s
END
check 'the settings are said above it' grep -q '^# Settings chosen for time to the target loss: sync={method: ' best.yaml
accepts 'where the law was fitted' plan "${two[@]}" "${law[@]}" --set "$free" --set plan.extrapolate=false --json
check 'H is no more than that' python3 -c 'import json, sys
seen = json.load(open(sys.argv[1]))
assert not seen["extrapolated"] and "64" not in seen["settings"]["chosen"]["settings"]["sync"], seen["settings"]' "$out"
accepts 'with kills, over two seeds' plan "${two[@]}" "${law[@]}" --json \
	--set 'cluster.trace={file: topologies/traces/six-kills.csv, scale: 0.05}' --set 'directory={heartbeat: 100 ms, timeout: 300 ms}' \
	--set 'plan={objective: time-to-loss, seeds: 2, cut: fixed, search: {schedule.microbatch: [32, 64]}}'
check 'until the loss, with both' python3 -c 'import json, sys
rows = json.load(open(sys.argv[1]))["settings"]["simulated"]
assert all(row["runs"] == row["reached"] == 2 for row in rows), rows
assert rows[0]["time_to_target_s"] < rows[-1]["time_to_target_s"], rows' "$out"
accepts 'the cost of a loss, as text' plan "${two[@]}" "${law[@]}" --set "$free" --set plan.objective=cost-to-loss --pareto
check 'what is chosen is marked' grep -q ' chosen: sync=' "$out"
check 'what cannot be is said' grep -q '^2 cannot be, such as sync={every: 2}, ' "$out"
check 'the front too' grep -q '^nothing that was simulated is both faster and cheaper than' "$out"

# ---- cut points -------------------------------------------------------------------------------------------------------

digest() { python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); print(r["digest"], r["final_loss"])' "$out"; }
few=(--set train.until.steps=3 --json -q)
accepts 'cut as evenly as it can be' sim "${two[@]}" "${few[@]}"
even=$(digest)
accepts 'the same, said' sim "${two[@]}" "${few[@]}" --set 'model.cut=[3, 2, 2, 2]'
check 'is the same run' test "$even" = "$(digest)"
accepts 'cut elsewhere' sim "${two[@]}" "${few[@]}" --set 'model.cut=[1, 3, 3, 2]'
check 'is another run' test "${even% *}" != "$(digest | cut -d ' ' -f 1)"
check 'that learns the same' python3 -c 'import sys
a, b = (float(word) for word in sys.argv[1:])
assert abs(a / b - 1) < 1e-5, (a, b)' "${even#* }" "$(digest | cut -d ' ' -f 2)"
accepts 'four cuts' plan "${two[@]}" "${none[@]}" --json -o cut.yaml \
	--set 'plan.search={model.cut: [[6, 1, 1, 1], [3, 2, 2, 2], [1, 1, 1, 6], [3, 3, 3]]}'
# As many workers as a stage wants: a cut that is even is not always the best.
check 'the best is chosen, and three stages are no cut' python3 -c 'import json, sys
seen = json.load(open(sys.argv[1]))["settings"]
rates = {row["settings"].get("model.cut"): row["throughput_samples_per_s"] for row in seen["simulated"]}
assert seen["refused"] == 1 and len(rates) == 4, seen
assert rates["[3, 2, 2, 2]"] == rates[None], rates
assert seen["chosen"]["throughput_samples_per_s"] == max(rates.values()) > 1.05 * min(rates.values()), seen' "$out"
accepts 'check takes what came of it' check cut.yaml
check 'and it is cut so' grep -q 'cut: \[' cut.yaml

# ---- every setting, and a budget ------------------------------------------------------------------------------------------

# What a merge without waiting cannot have (a collective) stands in the values of `sync` that have it.
methods='{method: step, collective: butterfly}, {method: step, delayed: true}, {method: diloco, every: 8}, {method: diloco, every: auto, mean_inner_steps: 8}'
methods="$methods, {method: streaming, every: 8, fragments: 4}, {method: async, every: 8}"
free="plan.search={sync: [$methods], sync.compression: [none, int8], schedule.microbatch: [32, 64], schedule.in_flight: [4, 8], \
schedule.compression: [none, fp16], schedule.wiring: [uniform, latency]}"
long=(--set train.until.steps=64)
accepts 'every setting' plan "${two[@]}" "${none[@]}" "${as_cut[@]}" "${long[@]}" --set "$free" --json
check 'all can be, and all methods are tried' python3 - "$out" <<'END'
import json, sys
s = json.load(open(sys.argv[1]))["settings"]
assert s["combinations"] == s["looked_at"] == 192 and s["refused"] == 0, s
rate = {}
for row in s["simulated"]:
    if not row["as_written"]:
        sync = row["settings"]["sync"]
        rate[sync] = max(rate.get(sync, 0), row["throughput_samples_per_s"])
assert len(rate) == 6, rate # the descent has tried all beside the best
assert rate["{method: async, every: 8}"] > rate["{method: step, collective: butterfly}"], rate
assert s["chosen"]["throughput_samples_per_s"] >= max(rate.values()), (s["chosen"], rate)
END
accepts 'with all but one set' plan "${two[@]}" "${none[@]}" "${long[@]}" --set "$free" --json -o async.yaml \
	--set 'sync={method: async, every: 8}' --set schedule.microbatch=64 --set schedule.compression=none --set schedule.wiring=latency
check 'the one is chosen' python3 -c 'import json, sys
s = json.load(open(sys.argv[1]))["settings"]
assert s["combinations"] == 2 and list(s["chosen"]["settings"]) in (["schedule.in_flight"], []), s' "$out"
check 'the others stay' bash -c 'grep -q "method: async" async.yaml && grep -q "wiring: latency" async.yaml && grep -q "microbatch: 64" async.yaml'
accepts 'which sim takes' sim async.yaml -q --set train.until.steps=16
for budget in '1 ms' '1 s'; do
	accepts "within $budget" plan "${two[@]}" "${none[@]}" --set "$free" --json --budget "$budget" --set schedule.wiring=uniform
	check 'something is compared, and what is set stays' python3 -c 'import json, sys
seen = json.load(open(sys.argv[1]))
s = seen["settings"]
assert s["combinations"] == 96 and s["refused"] < 96 and len(s["simulated"]) >= 2, s
assert all("schedule.wiring" not in row["settings"] for row in s["simulated"]), s
assert seen["throughput_samples_per_s"] > 0, seen' "$out"
done
refuses 'a budget of 0' '^skep: --budget 0: expected a time with its unit' plan "${two[@]}" --set "$free" --budget 0

# ---- schedules, collectives, and money ------------------------------------------------------------------------------------------

short=(--set train.until.steps=6)
for pipeline in swarm gpipe 1f1b; do
	accepts "$pipeline alone" plan "${two[@]}" "${none[@]}" "${short[@]}" --json --set "schedule.pipeline=$pipeline"
	echo "$pipeline $(rate)" >>pipelines
done
accepts 'fixed pipelines or a swarm' plan "${two[@]}" "${none[@]}" "${short[@]}" --json -o pipeline.yaml \
	--set 'plan.search={schedule.pipeline: [swarm, gpipe, 1f1b]}'
check 'the best is chosen' python3 - "$out" <<'END'
import json, sys
seen = json.load(open(sys.argv[1]))
rate = {name: float(value) for name, value in (line.split() for line in open("pipelines"))}
chosen = seen["settings"]["chosen"]["settings"].get("schedule.pipeline", "swarm")
assert rate[chosen] == max(rate.values()) > 1.02 * min(rate.values()), (chosen, rate)
assert seen["throughput_samples_per_s"] >= rate[chosen] * (1 - 1e-9), (seen, rate)
END
accepts 'check takes it' check pipeline.yaml -q
free='plan.search={sync.collective: [ring, parameter-server, halving-doubling, hierarchical, butterfly]}'
accepts 'collectives' plan "${two[@]}" "${none[@]}" "${short[@]}" --set "$free" --set model.stages=2 --json
check 'all are simulated, the best is chosen' python3 -c 'import json, sys
s = json.load(open(sys.argv[1]))["settings"]
rate = {row["settings"]["sync.collective"]: row["throughput_samples_per_s"] for row in s["simulated"] if not row["as_written"]}
assert len(rate) == 5 and s["chosen"]["throughput_samples_per_s"] == max(rate.values()) > 1.02 * min(rate.values()), (s["chosen"], rate)' "$out"
accepts 'cost to a loss, with kills' plan "${two[@]}" "${law[@]}" --json --pareto \
	--set 'cluster.trace={file: topologies/traces/six-kills.csv, scale: 0.05}' --set 'directory={heartbeat: 100 ms, timeout: 300 ms}' \
	--set 'plan={objective: cost-to-loss, seeds: 2, cut: fixed, search: {schedule.microbatch: [32, 64], sync: [{method: step}, {method: diloco, every: 8}]}}'
check 'the cheapest over both seeds, which is on the front' python3 -c 'import json, sys
seen = json.load(open(sys.argv[1]))
rows = [row for row in seen["settings"]["simulated"] if row["runs"] == row["reached"] == 2]
chosen = seen["settings"]["chosen"]
assert seen["objective"] == "cost-to-loss" and len(rows) > 2, seen["settings"]
assert chosen["cost_to_target_usd"] == min(row["cost_to_target_usd"] for row in rows) and chosen["front"], rows
assert chosen["cost_to_target_usd"] < 0.9 * max(row["cost_to_target_usd"] for row in rows), rows' "$out"

# ---- how many GPUs of its machine a worker splits its stage over -----------------------------------------------------------

ln -s "$root/topologies/gpus" .
nodes() { # nodes FILE LINK: four machines of four GPUs
	cat >"$1" <<-END
	name: four machines of four
	source: assumed for this test
	directory: here
	sites:
	  here:
	    machines: [{count: 4, gpu: v100, gpus: 4, inner: $2}]
	    inside: {bandwidth: 10 Gbit/s, latency: 0.05 ms}
	END
	cat >degrees.yaml <<-END
	name: degrees
	seed: 1
	model: {file: models/opt-350m.yaml, stages: 2}
	cluster: {topology: $1, allocation: {method: strided}}
	schedule: {global_batch: 32, microbatch: 2, in_flight: 4, checkpoint_activations: true}
	train: {arithmetic: none, until: {steps: 2}}
	plan: {search: {cluster.tensor_parallel: [1, 2, 4]}}
	END
}
degrees() { # degrees BEST: this one has the most throughput, planned by itself as well, and is chosen
	accepts 'all degrees' plan degrees.yaml --json
	cp "$out" joint.json
	rm -f all
	for degree in 1 2 4; do
		accepts "degree $degree" plan degrees.yaml --json --set cluster.tensor_parallel=$degree
		echo "$degree $(rate)" >>all
	done
	check "$1 is best, and chosen" python3 - "$1" <<-'END'
	import json, sys
	seen = json.load(open("joint.json"))
	rows = {degree: float(rate) for degree, rate in (line.split() for line in open("all"))}
	settings = seen["settings"]["chosen"]["settings"]
	best = max(rows, key=rows.get)
	assert best == sys.argv[1] == settings.get("cluster.tensor_parallel", "4"), (rows, settings) # as written it is 4
	assert abs(seen["throughput_samples_per_s"] / rows[best] - 1) < 0.02 and rows[best] > 1.1 * sorted(rows.values())[1], (seen, rows)
	assert all(stage["gpus_of_slowest_worker"] == int(best) for stage in seen["stages"]), seen["stages"]
	END
}
nodes wide.yaml '{bandwidth: 100 GB/s, latency: 5 us}'
degrees 4
accepts 'explained' plan degrees.yaml --explain -o split.yaml
check 'with the GPUs of each worker' grep -qE 'here 2 x 4 V100-SXM2-16$' "$out"
check 'and the time between them' grep -qE '^ +1 +4 +[0-9.]+ ms +[0-9]+\.[0-9] %$' "$out"
accepts 'check takes it' check split.yaml -q
accepts 'sim takes it' sim split.yaml -q
nodes thin.yaml '{bandwidth: 2 GB/s, latency: 1 ms}'
degrees 1
accepts 'explained' plan degrees.yaml --explain -o split.yaml
check 'no time where there is one' bash -c '! grep -q "GPUs of a worker" "$1"' - "$out"
check 'in the file too' grep -q 'tensor_parallel: 1' split.yaml

# What is said to be expected of a combination is of the allocation that was simulated: as written one machine alone is fastest, since
# sums of every step cross a thin line, and all five were expected at first.
cat >far.yaml <<-END
	name: two and three
	source: Assumed for this test.
	directory: a
	sites:
	  a: {machines: [{count: 2, gpu: v100}], inside: {bandwidth: 160 Mbit/s, latency: 1 ms}}
	  b: {machines: [{count: 3, gpu: v100}], inside: {bandwidth: 160 Mbit/s, latency: 1 ms}}
	links: [{between: [a, b], bandwidth: 80 Mbit/s, latency: 20 ms}]
END
cat >layers.yaml <<-END
	name: four layers
	kind: given
	given: {microbatch: 4, layers: [{count: 4, parameters: 10000000, activations: 160 kB, forward: 10 ms, backward: 20 ms}]}
END
cat >every.yaml <<-END
	name: sums of every step, or not
	seed: 1
	model: {file: layers.yaml, stages: 1}
	cluster: {topology: far.yaml}
	schedule: {pipeline: swarm, global_batch: 200, microbatch: 4}
	train: {arithmetic: none, until: {steps: 600}}
	plan: {search: {sync: [{method: diloco, every: 20}]}}
END
accepts 'sums of every step, or not' plan every.yaml --json
check 'expected and simulated are of one allocation' python3 -c 'import json, sys
row = next(r for r in json.load(open(sys.argv[1]))["settings"]["simulated"] if r["as_written"])
simulated_s = 200 / row["throughput_samples_per_s"]
assert abs(row["expected_step_s"] / simulated_s - 1) < 0.1 and simulated_s < 10, row' "$out"

# The same machines as workers of one GPU each: two topologies are two values.
python3 - <<'END'
site = "  %s: {machines: [{count: 4, gpu: v100}], inside: {bandwidth: 80 Gbit/s, latency: 0.02 ms}, uplink: 10 Gbit/s, downlink: 10 Gbit/s}\n"
link = "  - {from: %s, to: %s, bandwidth: 10 Gbit/s, latency: 0.05 ms}\n"
with open("ones.yaml", "w") as out:
    out.write("name: four machines of four workers\nsource: assumed for this test\ndirectory: a\nsites:\n")
    out.writelines(site % name for name in "abcd")
    out.write("links:\n")
    out.writelines(link % (a, b) for a in "abcd" for b in "abcd" if a != b)
END
accepts 'one worker of a machine, or four' plan degrees.yaml --json --set 'plan={search: {cluster.topology: [thin.yaml, ones.yaml]}}'
check 'four, over so thin a link' python3 -c 'import json, sys
seen = json.load(open(sys.argv[1]))
assert seen["settings"]["chosen"]["settings"] == {"cluster.topology": "ones.yaml"} and seen["workers"] == 16, seen["settings"]' "$out"

plan
