#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# alpa.sh - `plan.method: alpa`: what it says is simulated, takes about as long as its own formula says, fits memory, and is no worse than
# stages and degrees that are all alike; and what it cannot plan is refused.
set -u
. tests/cli/lib.sh
needs python3

ln -s "$root/models" "$root/topologies" .
ln -s "$root/topologies/gpus" gpus
alpa=$root/scenarios/alpa.yaml

hosts() { # hosts FILE COUNT GPU GPUS INNER NIC LATENCY
	cat >"$1" <<-END
	name: hosts
	source: assumed for this test
	directory: rack
	sites:
	  rack:
	    machines: [{count: $2, gpu: $3, gpus: $4, inner: {bandwidth: $5 GB/s, latency: 10 us}, up: $6 Gbit/s, down: $6 Gbit/s}]
	    inside: {bandwidth: $6 Gbit/s, latency: $7 ms}
	END
}

# ---- refused ----------------------------------------------------------------------------------------------------------

refuses 'machines of one GPU' 'plan.method: alpa splits stages over the GPUs of hosts, and no machine of topology .* has more than one' \
	plan "$alpa" --set cluster.topology=topologies/four-a100.yaml --set train.arithmetic=none --set cluster.bandwidth_scale=1
hosts six.yaml 2 a100-40 6 240 100 0.05
refuses 'hosts of six' 'alpa needs hosts of as many GPUs, a power of two, and machines of topology hosts have 6; take `search`' \
	plan "$alpa" --set cluster.topology=six.yaml --set cluster.tensor_parallel=1
sed 's/machines: \[/&{gpu: a100-40, gpus: 4, inner: {bandwidth: 240 GB\/s, latency: 10 us}}, /' six.yaml >mixed.yaml
refuses 'hosts of four and of six' 'machines of topology hosts have 4 to 6; take `search`' \
	plan "$alpa" --set cluster.topology=mixed.yaml --set cluster.tensor_parallel=1 --set schedule.global_batch=66
sed 's/gpus: 6/gpus: 4/; s/gpu: a100-40/gpu: v100/' mixed.yaml >unlike.yaml
refuses 'hosts that are not alike' 'alpa needs hosts that are alike, and machines 0 and 1 of topology hosts are not' \
	plan "$alpa" --set cluster.topology=unlike.yaml --set schedule.global_batch=66
refuses 'a swarm' 'plan.method: alpa plans for `schedule.pipeline: 1f1b`; take that, or plan.method: search' \
	plan "$alpa" --set schedule.pipeline=swarm
refuses 'several flushes' 'plan.method: alpa flushes once in a step; leave out schedule.accumulate' plan "$alpa" --set schedule.accumulate=2
refuses 'shards of the optimizer' 'plan.method: alpa does not shard the optimizer.*; leave out sync.zero' plan "$alpa" --set sync.zero=1
refuses 'a cut that is written' 'plan.method: alpa says the layers of each stage, and so does model.cut' \
	plan "$alpa" --set model.stages=2 --set 'model.cut=[12, 13]'
refuses 'degrees that divide no heads' 'worker 0 would split its stage over 3 GPUs, but model .* a number of heads that is no multiple' \
	check "$alpa" --set 'cluster.worker_gpus=[[3], [3], [3], [3]]' --set model.file=models/opt-350m.yaml
hosts small.yaml 1 t4 2 40 10 0.05
refuses 'too little memory' 'plan.method: alpa finds no stages that fit the memory of 1 hosts of 2 GPUs' \
	plan "$alpa" --set cluster.topology=small.yaml --set model.file=models/megatron-18.4b.yaml

# ---- the shipped one ---------------------------------------------------------------------------------------------------

run_skep plan "$alpa" --json -o planned.yaml && cp "$out" planned.json
check 'stages of workers of two GPUs, copies of each' python3 - <<-'END'
import collections, json
plan = json.load(open("planned.json"))
assert plan["chosen"] == "alpa" and len(set(plan["stage_of"])) == 4, plan
assert set(collections.Counter(plan["stage_of"]).values()) == {2}, plan["stage_of"]
text = open("planned.yaml").read()
assert "worker_gpus: [[2, 2], [2, 2], [2, 2], [2, 2]]" in text, text
END
run_skep plan "$alpa"
check 'it says its own formula beside the simulator' grep -q 'by its own formula a step takes .* in the simulator' "$out"
accepts 'check takes what it writes' check planned.yaml
rate() { # rate SCENARIO OPTION..
	"$skep" sim -q --json --db rates.db "$@" 2>"$err" | python3 -c 'import json, sys; print(json.load(sys.stdin)["throughput_samples_per_s"])'
}
best=$(rate planned.yaml)
for workers in '[[4], [4], [4], [4]]' '[[2, 2], [2, 2], [2, 2], [2, 2]]' '[[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1]]'; do
	for stages in 1 2 4; do
		other=$(rate "$alpa" --set "cluster.worker_gpus=$workers" --set "model.stages=$stages")
		check "as good as $stages stages on $workers: $best and $other" awk "BEGIN { exit !($best > 0.995 * $other) }"
	done
done
run_skep plan "$alpa" --compare
check 'a row among the planners' grep -Eq '^alpa .* 2-2-2-2$' "$out"

# Hosts stay what they are where the scenario has other workers already.
"$skep" plan "$alpa" --json --set schedule.global_batch=320 >plain.json 2>"$err"
"$skep" plan "$alpa" --json --set schedule.global_batch=320 --set 'cluster.worker_gpus=[[1, 3], [4], [4], [4]]' --set cluster.tensor_parallel=1 \
	--set 'cluster.allocation={method: explicit, stage_of: [0, 0, 0, 0, 0]}' >other.json 2>"$err"
check 'its own workers do not count' python3 -c 'import json
plain, other = json.load(open("plain.json")), json.load(open("other.json"))
assert plain["stage_of"] == other["stage_of"] and plain["method_step_s"] == other["method_step_s"], (plain, other)'

# ---- the step that it says ----------------------------------------------------------------------------------------------

says() { # says COUNT GPU GPUS INNER NIC LATENCY MODEL BATCH MICROBATCH
	local name="$*" ratio
	hosts pool.yaml "$1" "$2" "$3" "$4" "$5" "$6"
	cat >pool-job.yaml <<-END
	name: pool
	seed: 1
	model: {file: models/$7.yaml, stages: 1}
	cluster: {topology: pool.yaml, tensor_parallel: 1, allocation: {method: contiguous}}
	schedule: {pipeline: 1f1b, global_batch: $8, microbatch: $9}
	train: {arithmetic: none, until: {steps: 4}}
	plan: {method: alpa}
	END
	rm -f pool-plan.yaml
	"$skep" plan pool-job.yaml --json -o pool-plan.yaml >plan.json 2>"$err"
	"$skep" sim -q --json --db pool.db pool-plan.yaml >sim.json 2>>"$err"
	ratio=$(python3 -c 'import json
sim = json.load(open("sim.json"))
print(json.load(open("plan.json"))["method_step_s"] / (sim["time_s"] / sim["steps"]))' 2>>"$err")
	check "$name: $ratio of the simulated step" awk "BEGIN { exit !(0$ratio > 0.85 && 0$ratio < 1.15) }"
}
says 1 a100-40 8 40 10 0.02 gpt3-xl 64 1
says 2 v100 4 240 100 0.02 bert-base 32 2
says 4 a100-40 4 40 200 0.02 gpt2-124m 128 1
says 4 v100 4 10 200 1 opt-350m 32 1
says 4 v100 4 240 10 0.02 opt-350m 128 4
says 4 v100 2 240 25 0.1 gpt3-xl 64 2
says 3 a100-40 2 40 10 0.1 opt-350m 48 2
says 4 v100 4 10 100 0.02 gpt3-xl 1024 4
says 2 t4 8 40 50 0.1 bert-base 64 2
says 4 v100 8 40 100 1 gpt3-xl 256 1
says 1 t4 4 240 100 1 bert-base 64 4
says 3 t4 8 40 100 0.02 gpt3-xl 96 2

plan
