#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# shipped.sh - of each shipped scenario that is quick to simulate, what `skep check` expects of a step is within 15 % of what `skep sim`
# makes of it; and of allocations that a plan must not be wrong about.
set -u
. tests/cli/lib.sh
needs python3

within_15() { # within_15 NAME SCENARIO OPTION ..
	local name=$1 file=$root/scenarios/$2.yaml seen
	shift 2
	"$skep" check "$file" --json -q "$@" >check.json 2>"$err" && "$skep" sim "$file" --json -q --db "$scratch/runs.db" "$@" >sim.json 2>"$err"
	seen=$(python3 -c 'import json
check, sim = (json.load(open(name)) for name in ("check.json", "sim.json"))
expected, simulated = check["expected"]["step_s"], sim["time_s"] / sim["steps"]
print(f"{expected / simulated:.3f} {expected:.4g} s expected, {simulated:.4g} s simulated")' 2>>"$err")
	if awk -v r="${seen%% *}" 'BEGIN { exit !(r > 0.85 && r < 1.15) }' </dev/null; then
		pass "$name: $seen"
	else
		fail "$name" "$seen"
	fi
}

none=(--set train.arithmetic=none)
quiet=("${none[@]}" --set cluster.trace=null)
for name in baselines/1f1b baselines/gpipe baselines/interleaved baselines/tensor-parallel bench-executor delayed diloco diloco-sweep \
	diloco-sweep-1m fine-tuning lost-accuracy one-worker shakespeare t4-a100-both two-datacentres; do
	within_15 "$name" "$name" "${none[@]}"
done
# Steps in shards, in pipelines and of one stage, and what is gathered in passes.
for name in baselines/zero-1f1b zero baselines/zero-offload baselines/zero-3; do
	within_15 "$name" "$name" "${none[@]}"
done
within_15 'shards of stages of three and one' baselines/zero-1f1b "${none[@]}" --set 'cluster.allocation={method: explicit, stage_of: [0, 0, 1, 0]}' \
	--set schedule.global_batch=24
within_15 'shards across a line' baselines/1f1b "${none[@]}" --set sync.zero=1
for name in opt-350m papers/diloco-bandwidth papers/dt-fm papers/gpipe papers/swarm-latency papers/swarm-square-cube square-cube \
	swarm-vs-gpipe-vs-zero; do
	within_15 "$name" "$name"
done
# A sum of one stage is longer than the passes beside it, and the next one waits for the update.
within_15 'delayed, with the update between two sums' delayed "${none[@]}" --set model.stages=1 \
	--set 'cluster.allocation={method: strided}' --set cluster.bandwidth_scale=5
within_15 churn churn "${quiet[@]}"
within_15 preempted preempted "${quiet[@]}"
within_15 'baselines/pipedream, a third of the steps synchronous' baselines/pipedream "${none[@]}" --set train.until.steps=300 \
	--set schedule.synchronous_steps=100 --set schedule.weights=corrected
within_15 three-spot three-spot "${quiet[@]}" --set train.target_loss=null
# Not here: byzantine.yaml, whose robust sums cost their members arithmetic that is not expected; papers/swarm-large.yaml, whose three
# rounds are over before its 456 workers know each other; pipedream.yaml (0.85), home-peers.yaml and the larger swarms, which take long.

# What the directory has outstanding is bound by the stage with the fewest workers, so fast machines that wait for one alone do not help.
two=(two-datacentres "${none[@]}" --set schedule.in_flight=2)
within_15 'a stage of four before stages of one' "${two[@]}" --set 'cluster.allocation={method: explicit, stage_of: [0, 0, 0, 0, 3, 3, 1, 2]}'
within_15 'a stage of five behind a line' "${two[@]}" --set 'cluster.allocation={method: explicit, stage_of: [1, 0, 3, 2, 0, 0, 0, 0]}'
# A pipeline that stays in its place and one that does not.
within_15 'circles of unequal length' diloco-sweep-1m "${none[@]}" --set schedule.in_flight=2 \
	--set 'cluster.allocation={method: explicit, stage_of: [1, 0, 3, 2, 2, 2, 0, 1]}'
within_15 'virtual stages over a thin line' baselines/interleaved "${none[@]}" \
	--set 'cluster.allocation={method: explicit, stage_of: [3, 1, 0, 3, 2, 2, 0, 1]}'
within_15 'pipelines across a line' baselines/1f1b "${none[@]}" \
	--set 'cluster.allocation={method: explicit, stage_of: [1, 2, 0, 2, 3, 1, 3, 0]}'

# Who is late is near the directory, and where there is no flush only a sum's own words are waited for.
cat >"$scratch/far.yaml" <<END
name: fast ones far away
source: Assumed for this test.
directory: west
sites:
  west: {machines: [{count: 4, gpu: t4, up: 10 Gbit/s, down: 10 Gbit/s}], inside: {bandwidth: 10 Gbit/s, latency: 0.05 ms}}
  east: {machines: [{count: 4, gpu: v100, up: 10 Gbit/s, down: 10 Gbit/s}], inside: {bandwidth: 10 Gbit/s, latency: 0.05 ms}}
links:
  - {between: [west, east], bandwidth: 1 Gbit/s, latency: 40 ms, shared: true}
END
far=("${none[@]}" --set "cluster.topology=$scratch/far.yaml" --set model.stages=2)
within_15 'gpipe, the slow ones near' two-datacentres "${far[@]}" --set schedule.pipeline=gpipe
within_15 '1f1b, the slow ones near' two-datacentres "${far[@]}" --set schedule.pipeline=1f1b
# Forward and backward passes take turns, so that few microbatches go across a long hop at once, however many a stage may hold.
cat >"$scratch/hop.yaml" <<END
name: a long hop
source: Assumed for this test.
directory: west
sites:
  west: {machines: [{gpu: t4}], inside: {bandwidth: 10 Gbit/s, latency: 0.1 ms}}
  east: {machines: [{count: 4, gpu: t4}], inside: {bandwidth: 10 Gbit/s, latency: 0.1 ms}}
links: [{between: [west, east], bandwidth: 10 Gbit/s, latency: 40 ms}]
END
hop=("${none[@]}" --set "cluster.topology=$scratch/hop.yaml" --set train.until.steps=10 --set schedule.pipeline=1f1b --set schedule.global_batch=8192)
within_15 '1f1b, a hop in front' two-datacentres "${hop[@]}" --set model.stages=5 \
	--set 'cluster.allocation={method: explicit, stage_of: [0, 1, 2, 3, 4]}'
within_15 '1f1b, a hop to the second of four' two-datacentres "${hop[@]}" --set model.stages=4 \
	--set 'cluster.allocation={method: explicit, stage_of: [1, 0, 2, 3, 3]}'
within_15 '1f1b, a hop before stages of two' two-datacentres "${hop[@]}" --set model.stages=3 \
	--set 'cluster.allocation={method: explicit, stage_of: [0, 1, 1, 2, 2]}'
within_15 'interleaved, the slow ones near' two-datacentres "${far[@]}" \
	--set 'schedule={pipeline: interleaved, model_chunks: 2, global_batch: 2048, microbatch: 64}'
within_15 'a barrier, which the fast ones ask far for' two-datacentres "${far[@]}" --set schedule.pipeline=gpipe --set schedule.barrier=true
within_15 'a barrier' baselines/gpipe "${none[@]}" --set schedule.barrier=true
within_15 'a barrier of one stage' two-datacentres "${far[@]}" --set schedule.pipeline=gpipe --set schedule.barrier=true --set model.stages=1
within_15 'pipedream, whose sums are far' two-datacentres "${far[@]}" --set schedule.pipeline=pipedream --set schedule.global_batch=256
within_15 'pipedream of stages of three and one' two-datacentres "${far[@]}" --set schedule.pipeline=pipedream --set schedule.global_batch=384 \
	--set 'cluster.allocation={method: explicit, stage_of: [0, 0, 1, unused, 0, 0, 0, 0]}'

# ---- what is planned by it ---------------------------------------------------------------------------------------------------

for in_flight in 2 14; do
	accepts "a plan with $in_flight in flight" plan "$root/scenarios/two-datacentres.yaml" "${none[@]}" \
		--set schedule.in_flight=$in_flight --set plan.cut=fixed --json
	check 'finds what is better than random, and as expected' python3 -c 'import json, sys
seen = json.load(open(sys.argv[1]))
best = max((row for row in seen["searches"] if row["simulated_step_s"]), key=lambda row: row["throughput_samples_per_s"])
assert 0.8 < best["expected_step_s"] / best["simulated_step_s"] < 1.2, best
assert seen["throughput_samples_per_s"] > 1.6 * seen["random_throughput_samples_per_s"]["mean"], seen
assert any(row["links"] == "all" for row in seen["searches"]), seen' "$out"
done

plan
