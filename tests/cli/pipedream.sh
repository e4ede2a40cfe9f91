#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# pipedream.sh - `plan.method`: PipeDream's partitioner says the stages, their layers and their workers; check and sim take what it
# writes, and schedules that cannot have it are refused.
set -u
. tests/cli/lib.sh
needs python3

vgg=$root/scenarios/pipedream.yaml
ln -s "$root/models" "$root/topologies" .

# ---- refused ----------------------------------------------------------------------------------------------------------

refuses 'a method that is none' 'plan.method: ' plan "$vgg" --set plan.method=best
refuses 'GPipe with unequal stages' 'pipedream.yaml: error: plan.method: pipedream gives the stages 15-1 workers, .*take `1f1b`, `pipedream` or `swarm`' \
	plan "$vgg" --set schedule.pipeline=gpipe
refuses 'a batch that unequal stages cannot share' 'each of the 15 pipelines that stages of 15, 1 workers make; the nearest are 960 and 1920' \
	plan "$vgg" --set schedule.pipeline=1f1b
refuses 'more stages than layers' 'model.stages: 17 stages cannot be cut' plan "$vgg" --set model.stages=17
refuses 'a cut that is written' 'plan.method: pipedream says the layers of each stage, and so does model.cut' \
	plan "$vgg" --set model.stages=2 --set 'model.cut=[8, 8]'
refuses 'a cut that is fixed' 'plan.method: pipedream says the layers of each stage: leave out plan.cut' plan "$vgg" --set plan.cut=fixed
refuses 'settings that are free' 'plan.method: pipedream chooses no settings: leave out plan.search' \
	plan "$vgg" --set 'plan.search={schedule.in_flight: [2, 4]}'

# ---- chosen -----------------------------------------------------------------------------------------------------------

holds() { # METHOD CUT SIZES
	"$skep" plan "$vgg" --set "plan.method=$1" -o "$1.yaml" --json >"$1.json" 2>"$1.err" &&
		python3 - "$1" "$2" "$3" <<-'END'
		import collections, json, sys
		plan = json.load(open(sys.argv[1] + ".json"))
		sizes = collections.Counter(plan["stage_of"])
		assert [sizes[s] for s in sorted(sizes)] == json.loads(sys.argv[3]), sizes
		assert plan["chosen"] == sys.argv[1] and "start" not in plan, plan
		assert "cut: " + sys.argv[2] in open(sys.argv[1] + ".yaml").read()
		END
}
check 'the published 15-1 of VGG-16' holds pipedream '[13, 3]' '[15, 1]'
check 'the released tool' holds pipedream-tool '[7, 6, 3]' '[11, 4, 1]'
for method in pipedream pipedream-tool; do
	accepts "check takes what $method writes" check "$method.yaml"
	run_skep sim "$method.yaml" --json && cp "$out" "sim-$method.json"
done
run_skep sim "$vgg" --json && cp "$out" sim-data.json
for pipeline in 1f1b pipedream; do
	steps=$([ $pipeline = 1f1b ] && echo 4 || echo 40)
	run_skep sim pipedream.yaml --json --set schedule.global_batch=960 --set "schedule.pipeline=$pipeline" --set "train.until.steps=$steps" &&
		cp "$out" "sim-by-$pipeline.json"
done
check 'faster than data parallel training, without a flush more so' python3 -c 'import json
def rate(name):
    return json.load(open(f"sim-{name}.json"))["throughput_samples_per_s"]
assert rate("pipedream") > 1.4 * rate("data"), (rate("pipedream"), rate("data"))
assert rate("by-1f1b") > rate("pipedream"), (rate("by-1f1b"), rate("pipedream"))
assert rate("by-pipedream") > 3 * rate("data"), (rate("by-pipedream"), rate("data"))'
run_skep check "$vgg"
check 'check says the method' grep -q 'plan .* by pipedream' "$out"

plan
