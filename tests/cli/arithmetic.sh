#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# arithmetic.sh - what is decided does not depend on what is computed: the same digest, time, bytes and ledger with arithmetic (on one
# thread and on two) and without, as long as no target ends the run and passes are timed in one type; and another digest as soon as one
# does.
set -u
. tests/cli/lib.sh
needs python3

figures() { # of the run that was printed last, but for what arithmetic alone can say
	python3 -c 'import json, sys
run = json.load(open(sys.argv[1]))
told = "final_loss final_validation_loss time_to_target_s cost_to_target_usd extrapolated run_id wall_s".split()
print({key: value for key, value in run.items() if key not in told})' "$out"
}

simulated() { # simulated OPTION...: the figures
	run_skep sim "$@" --set cluster.compute.type=fp32 --json -q
	figures
}

same() { # same NAME SCENARIO OPTION...
	local name=$1 one two none
	shift
	one=$(simulated "$@" --threads 1) two=$(simulated "$@" --threads 2)
	none=$(simulated "$@" --set train.arithmetic=none)
	if [ -n "$one" ] && [ "$one" = "$two" ] && [ "$one" = "$none" ]; then
		pass "$name"
	else
		fail "$name" "one thread:  $one"$'\n'"two threads: $two"$'\n'"no arithmetic:    $none"
	fi
}

text=("$root/scenarios/shakespeare.yaml" --set schedule.global_batch=16 --set 'train.schedule={warmup: 2}'
	--set train.until.steps=8)
same 'a swarm' "${text[@]}"
same 'updates delayed' "${text[@]}" --set sync.delayed=true
same 'periodic sync' "${text[@]}" --set 'sync={method: diloco, every: 4}'
same 'compressed' "${text[@]}" --set sync.compression=int8 --set schedule.compression=fp16
same 'workers that come and go' "$root/scenarios/churn.yaml" --set train.until.steps=40
same 'a fixed pipeline' "$root/scenarios/baselines/1f1b.yaml" --set train.until.steps=6

# A target depends on the loss.
whole=$(simulated "${text[@]}") short=$(simulated "${text[@]}" --set train.until.loss=5.3)
if [ -n "$short" ] && [ "$whole" != "$short" ]; then
	pass 'a target ends a run sooner'
else
	fail 'a target ends a run sooner' "$whole"$'\n'"$short"
fi
plan
