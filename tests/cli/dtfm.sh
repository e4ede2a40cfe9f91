#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# dtfm.sh - `plan.objective: dt-fm`: allocations by DT-FM's cost, of stages of one size; what it chooses costs least of what was found.
set -u
. tests/cli/lib.sh
needs python3

two=("$root/scenarios/two-datacentres.yaml" --set train.arithmetic=none --set plan.objective=dt-fm)

refuses 'workers that cannot be shared out' 'two-datacentres.yaml: error: plan.objective: dt-fm has as many workers in each stage, and 8 workers cannot be shared out over 3 stages' \
	plan "${two[@]}" --set model.stages=3
refuses 'settings that are free' 'plan.objective: dt-fm .*leave out plan.search' \
	plan "${two[@]}" --set 'plan.search={schedule.in_flight: [2, 4]}'
refuses 'a method with an objective of its own' 'plan.objective: dt-fm is for the searches' plan "${two[@]}" --set plan.method=pipedream

run_skep plan "${two[@]}" --json
check 'chosen by its cost, in stages of one size' python3 -c 'import collections, json, sys
plan = json.load(open(sys.argv[1]))
assert plan["objective"] == "dt-fm", plan["objective"]
assert sorted(collections.Counter(plan["stage_of"]).values()) == [2, 2, 2, 2], plan["stage_of"]
site = [w // 4 for w in range(8)]
crossing = sum(len({site[w] for w in range(8) if plan["stage_of"][w] == s}) - 1 for s in range(4))
assert crossing == 0, plan["stage_of"]' "$out"

refuses 'a comparison that is to be written' '^skep: --compare chooses no plan' plan "${two[@]}" --compare -o plan.yaml
run_skep plan "${two[@]}" --compare --json
check 'planners side by side' python3 -c 'import json, sys
row = {r["planner"]: r for r in json.load(open(sys.argv[1]))["planners"]}
assert list(row) == ["search", "dt-fm", "pipedream", "pipedream-tool", "alpa"], row
assert "take that" in row.pop("alpa")["why_not"], row
assert all(r["throughput_samples_per_s"] > 1000 for r in row.values()) and row["dt-fm"]["stage_workers"] == "2-2-2-2", row' "$out"

plan
