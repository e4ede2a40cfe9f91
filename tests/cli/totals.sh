#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# totals.sh - what `skep check`, `plan`, `slurm` and `jobs` say of a whole run has its validations and checkpoints: by hand, and against `skep sim`.
set -u
. tests/cli/lib.sh
. "$root/tests/cli/lib_pair.sh"
needs python3

two=$root/scenarios/two-datacentres.yaml base=$root/scenarios/baselines
plain=(--set train.arithmetic=none --set cluster.compute.type=fp32 --set train.target_loss=null)

told() { # told KEY SCENARIO OPTION..: what check expects
	local key=$1
	shift
	"$skep" check --json "$@" 2>"$err" | python3 -c 'import json, sys; print(json.load(sys.stdin)["expected"][sys.argv[1]])' "$key"
}
seen() { # seen SCENARIO OPTION..
	"$skep" sim -q --json "$@" 2>"$err" | python3 -c 'import json, sys; print(json.load(sys.stdin)["time_s"])'
}
near() { # near NAME PERCENT A B
	check "$1: $3 of $4" awk "BEGIN { exit !($3 > (1 - $2 / 100) * $4 && $3 < (1 + $2 / 100) * $4) }"
}

# ---- by hand ----------------------------------------------------------------------------------------------------------------

# 0.1 ms from the directory, 10 ms forwards, 4 MB at 10 MB/s and 10 ms, 10 ms forwards, 10 ms for the loss, and 0.1 ms; the line
# carries three more.
near 'a validation of four microbatches' 0.1 "$(told validation_s few.yaml --set 'train.validate={every: 1, microbatches: 4}')" 1.6402
# A million parameters and two moments of 4 bytes at 10 MB/s; the worker at the directory has nothing to do meanwhile but to wait.
near 'a state' 0.1 "$(told last_checkpoint_s few.yaml --set 'checkpoint={every: 1, to: kept, bandwidth: 10 MB/s}')" 1.2

# ---- against the simulator --------------------------------------------------------------------------------------------------

judged='train.validate={every: 1}' some='train.validate={every: 2, microbatches: 4}'
kept() { # kept EVERY BANDWIDTH
	echo "checkpoint={every: $1, to: kept, bandwidth: $2}"
}
total() { # total PERCENT NAME SCENARIO OPTION..: with the shares of validations and checkpoints of several tenths
	local most=$1 name=$2
	shift 2
	near "$name" "$most" "$(told time_s "$@" "${plain[@]}")" "$(seen "$@" "${plain[@]}")"
}
total 1 'two machines, judged' few.yaml --set "$judged"
total 1 'two machines, kept' few.yaml --set "$(kept 2 '10 MB/s')"
total 1 'two machines, both' few.yaml --set "$some" --set "$(kept 5 '10 MB/s')"
eight=(few.yaml --set cluster.topology=eight.yaml --set schedule.wiring=throughput --set schedule.global_batch=256)
total 12 'four workers a stage, judged' "${eight[@]}" --set "$judged"
total 10 'four workers a stage, kept' "${eight[@]}" --set "$(kept 2 '10 MB/s')"
steps='--set train.until.steps=20'
total 10 'four stages of two, judged' "$two" $steps --set "$judged"
total 10 'four stages of two, kept' "$two" $steps --set "$(kept 2 '2 MB/s')"
for pipeline in gpipe 1f1b interleaved; do
	total 8 "$pipeline, judged" "$base/$pipeline.yaml" $steps --set "$judged"
	total 8 "$pipeline, kept" "$base/$pipeline.yaml" $steps --set "$(kept 2 '2 MB/s')"
done
spot=("$root/scenarios/three-spot.yaml" --set cluster.trace=null --set train.schedule=null --set train.until.steps=80)
total 5 'one stage, judged' "${spot[@]}" --set 'train.validate={every: 8}'
total 5 'one stage, kept by one while others go on' "${spot[@]}" --set "$(kept 1 '10 MB/s')"
total 10 'measured times, judged' "$root/scenarios/opt-350m.yaml" --set train.until.steps=10 --set "$judged"
total 10 'measured times, kept' "$root/scenarios/opt-350m.yaml" --set train.until.steps=10 --set "$(kept 2 '100 MB/s')"
total 5 'shards, judged' "$root/scenarios/zero.yaml" --set train.until.steps=10 --set "$judged"
total 5 'shards, kept' "$root/scenarios/zero.yaml" --set train.until.steps=10 --set "$(kept 2 '100 MB/s')"
far=("$root/scenarios/diloco.yaml" --set train.until.steps=240)
total 5 'local steps, judged' "${far[@]}" --set 'train.validate={every: 8}'
total 5 'local steps, kept' "${far[@]}" --set "$(kept 1 '2 MB/s')"
# Beside a delayed sum a state is kept for nothing; a validation waits for it.
late=("$root/scenarios/delayed.yaml" $steps)
total 8 'delayed, judged' "${late[@]}" --set "$judged"
total 11 'delayed, kept' "${late[@]}" --set "$(kept 2 '10 MB/s')"
# Where a sum is short nothing hides it: a worker that waits for microbatches of others is late with them.
total 13 'delayed in four stages, kept' "$two" --set train.until.steps=48 --set sync.delayed=true --set "$(kept 1 '5 MB/s')"
total 8 'streaming, kept' "$two" --set train.until.steps=48 --set model.stages=1 --set "$(kept 1 '5 MB/s')" \
	--set 'sync={method: streaming, every: 8, fragments: 2, overlap_steps: 2}'

# ---- what the others say ----------------------------------------------------------------------------------------------------

long=("$two" --set train.arithmetic=none --set train.until.steps=40000 --set "$judged" --set "$(kept 5 '2 MB/s')")
limit=$("$skep" slurm --device cuda "${long[@]}" | sed -n "s/^#SBATCH --time=//p" | head -n 1 | tr ":-" "  " | awk "{ print 1440 * \$1 + 60 * \$2 + \$3 }")
near 'the limit of a job for Slurm is 10 min and twice that' 0.5 "$limit" "$(told time_s "${long[@]}" | awk '{ print 10 + 2 * $1 / 60 }')"

printf '%s\n' 'name: shared' 'cluster: {topology: pair.yaml}' 'jobs:' '  - scenario: few.yaml' \
	'    set: {train.validate: {every: 1}, checkpoint: {every: 5, to: kept, bandwidth: 10 MB/s}}' >shared.yaml
job=$("$skep" jobs shared.yaml --json 2>"$err" | python3 -c 'import json, sys; print(json.load(sys.stdin)["policies"][0]["makespan_s"])')
near 'a job on a cluster takes as long' 0.01 "$job" "$(told time_s few.yaml --set "$judged" --set "$(kept 5 '10 MB/s')")"

planned() { # planned NAME OPTION..: of eight rounds that are tried, against the run of what is planned
	local name=$1 whole
	shift
	whole=$("$skep" plan --json --force -o planned.yaml "$two" --set train.until.steps=200 "$@" --set train.arithmetic=none 2>"$err" |
		python3 -c 'import json, sys; print(json.load(sys.stdin)["whole_run_s"])')
	near "$name" 3 "$whole" "$(seen planned.yaml)"
}
planned 'a plan with few validations' --set 'train.validate={every: 50}'
planned 'a plan with few checkpoints' --set "$(kept 50 '0.2 MB/s')"

# Without a flush it is the least, which is said.
pipe=("$base/pipedream.yaml" --set train.arithmetic=none --set "$(kept 2 '2 MB/s')")
check 'what is not known is said' bash -c '"$@" | grep -q "without losses, joins and what waits while a state is kept;"' - "$skep" check "${pipe[@]}"
check 'also to Slurm' bash -c '"$@" | grep -q "^# The limit has not in it what waits"' - "$skep" slurm --device cuda "${pipe[@]}"
check 'and only then' bash -c '! "$@" | grep -q "what waits"' - "$skep" slurm --device cuda "${long[@]}"

plan
