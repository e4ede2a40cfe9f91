#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# referee.sh - predictions beside real runs on six hosts whose network is the kernel's (up.sh) and not our model of one: nothing is
# shaped. Throughput has to be within 5 % of the prediction, bytes have to be equal. Passes are paced and take longer than a scheduler's
# delays, so that two cores do for seven processes that sleep most of the time; what they wait for has a clock, so nothing else should run.
#
#     tests/cluster-of-hosts/referee.sh [CASE...]        all of them, or those that are named
set -u
cd "$(dirname "$0")/../.." || exit 1
hosts=$PWD/tests/cluster-of-hosts
if [ "${1:-}" != --inside ]; then
	. tests/tap.sh
	needs python3 mpirun
	status=0
	reason=$("$hosts/up.sh" true 2>&1) || status=$?
	if [ "$status" = 77 ]; then
		skip 'predictions on six hosts' "$reason"
		plan
		exit
	fi
	exec "$hosts/up.sh" "$hosts/referee.sh" --inside "$@"
fi
shift

. tests/cli/lib.sh
mpi_environment alone
export OMPI_MCA_plm_rsh_agent=$hosts/agent.sh PRTE_MCA_plm_ssh_agent=$hosts/agent.sh # Open MPI 4, 5
export OMPI_MCA_mpi_yield_when_idle=1                                                # hosts share this machine's cores
export TMPDIR=$scratch

# ---- six hosts, as a topology that is written by hand --------------------------------------------------------------

goodput() { # goodput MBIT: what a program gets of such a bucket, where a frame of 1514 bytes brings 1448
	python3 -c "print(f'{$1 * 1448 / 1514:.2f} Mbit/s')"
}

host=$(goodput 1000) line=$(goodput 100)
site="{machines: [{count: 3, gpu: sleeper, up: $host, down: $host}], inside: {bandwidth: $host, latency: 0.03 ms},
    uplink: $line, downlink: $line}"
cat >line.yaml <<END
name: six hosts at two sites
source: what tests/cluster-of-hosts/up.sh makes; latency assumed
directory: a
sites:
  a: $site
  b: $site
links: [{between: [a, b], bandwidth: $line, latency: 0.03 ms}]
END
mkdir gpus
cat >gpus/sleeper.yaml <<END
name: sleeper
source: assumed for this test
flops: 1 TFLOP/s
efficiency: 1
memory_bandwidth: 1000 GB/s
memory: 16 GB
overhead: 0 ms
END
mlp() { # mlp WIDTH LAYERS
	cat >"mlp-$1.yaml" <<-END
	name: mlp $1
	kind: mlp
	activation: relu
	layers: {inputs: 1, hidden: $1, hidden_layers: $2, outputs: 1}
	END
}
mlp 128 3
mlp 256 7
mlp 512 7
cat >job.yaml <<END
name: six hosts
seed: 3
model: {file: mlp-256.yaml, stages: 2}
cluster: {topology: line.yaml, allocation: {method: strided}, compute_scale: 480}
schedule: {global_batch: 12288, microbatch: 1024}
train: {optimizer: {name: sgd, lr: 1.0e-4}, until: {steps: 4}}
END
printf '%s slots=%d\n' a1 2 a2 1 a3 1 b1 1 b2 1 b3 1 >slots # rank 0, the directory, is on a1 beside worker 0

# ---- a prediction and a run ----------------------------------------------------------------------------------------

on_hosts() { # on_hosts SEATS RANKS ARGUMENT...: skep, as a user on a1 starts it
	local slots=$1 ranks=$2
	shift 2
	status=0
	"$hosts/on.sh" a1 timeout -k 5 200 mpirun --hostfile "$slots" -n "$ranks" "$skep" "$@" >"$out" 2>"$err" </dev/null || status=$?
}

# Says by how much throughput differs from the prediction; fails if that is more than 5 %, or bytes differ at all.
compare() { # compare PREDICTED REAL
	python3 - "$1" "$2" <<-'END'
	import json, sys
	predicted, real = (json.load(open(path)) for path in sys.argv[1:])
	off = real["throughput_samples_per_s"] / predicted["throughput_samples_per_s"] - 1
	parts = ", ".join(f"{name} {predicted[key]:.3f} s, {real[key]:.3f} s" for name, key in
	                  (("passes", "passes_s"), ("reduction", "reduction_s")))
	print(f"{100 * off:+.1f} % (predicted and real: {parts})", end="")
	for key in "bytes_pipeline", "bytes_sync", "counted", "lost":
	    if predicted[key] != real[key]:
	        sys.exit(f"; {key}: predicted {predicted[key]}, real {real[key]}")
	sys.exit(0 if abs(off) <= 0.05 else 1)
	END
}

predicts() { # predicts CASE OPTION...: in two tries, since other work on this machine can hold up any one
	local name=$1 try how within=no
	shift
	[ ${#asked[@]} = 0 ] || [[ " ${asked[*]} " == *" $name "* ]] || return 0
	accepts "$name: sim" sim job.yaml --json -q "$@"
	cp "$out" predicted.json
	for try in 1 2; do
		on_hosts slots 7 run job.yaml --pace --json -q "$@"
		cp "$out" real.json
		if [ "$status" != 0 ]; then
			fail "$name: run" "$(seen)"
			return
		fi
		how=$(compare predicted.json real.json 2>&1) && within=yes && break
		echo "# $name, try $try: $how"
	done
	check "$name: throughput within 5 % of the prediction, bytes equal" [ "$within" = yes ]
	echo "# $name: $how"
	[ -e found.yaml ] || return 0
	run_skep sim job.yaml --json -q "$@" --set cluster.topology=found.yaml
	cp "$out" predicted.json
	within=no
	how=$(compare predicted.json real.json 2>&1) && within=yes
	check "$name: the same with the topology that probe has written" [ "$within" = yes ]
	echo "# $name, probed: $how"
}

# ---- what skep probe finds of it --------------------------------------------------------------------------------------

# Two sites of three hosts, and the line between them within 5 %, each way.
right() { # right FILE
	python3 - "$1" "${line% *}" <<-'END'
	import re, sys
	text = open(sys.argv[1]).read()
	lines = [float(rate) for rate in re.findall(r"^    (?:up|down)link: ([0-9.]+) Mbit/s", text, re.M)]
	assert text.count("{count: 3, gpu:") == 2 and len(lines) == 4, text
	assert all(abs(rate / float(sys.argv[2]) - 1) <= 0.05 for rate in lines), lines
	print("uplinks and downlinks of", *lines, "Mbit/s", end="")
	END
}

printf '%s slots=1\n' a1 a2 a3 b1 b2 b3 >hosts
asked=("$@")
for try in 1 2 3; do # other work can hold up any one
	rm -rf found*
	on_hosts hosts 6 probe -o found.yaml --gpu sleeper --time '0.5 s'
	how=$(right found.yaml 2>&1) && break
	echo "# probe, try $try: $(tail -n 1 <<<"$how")"
	grep 'warning: \(all\|whether\)\|not known' "$err" | sed 's/^/#   /'
done
if [ "$status" = 0 ] && [[ $how == uplinks* ]]; then
	pass 'probe: two sites of three hosts, and the line that they share'
	echo "# probe: $how"
else
	fail 'probe: two sites of three hosts, and the line that they share' "$how"$'\n'"$(seen)"
	rm -rf found*
fi

# ---- the cases ---------------------------------------------------------------------------------------------------------

contiguous=(--set cluster.allocation.method=contiguous)
predicts 'swarm'
predicts 'contiguous' "${contiguous[@]}"
# Activations of 8 MiB. With a barrier, since TCP gives the three connections that cross the line unequal parts of it for seconds: the
# first pipeline through would begin its way back while the others are still on their way there.
predicts 'network-bound' "${contiguous[@]}" --set model.file=mlp-128.yaml --set cluster.compute_scale=250 --set train.until.steps=2 \
	--set schedule.pipeline=gpipe --set schedule.barrier=true --set schedule.global_batch=98304 --set schedule.microbatch=16384
predicts 'diloco' --set model.stages=1 --set sync.method=diloco --set sync.every=2
predicts 'gpipe' "${contiguous[@]}" --set model.stages=3 --set schedule.pipeline=gpipe --set cluster.compute_scale=640 \
	--set schedule.global_batch=8192
summing=(--set model.stages=1 --set model.file=mlp-512.yaml --set cluster.compute_scale=1600 --set schedule.microbatch=64
	--set schedule.global_batch=384)
predicts 'ring' "${summing[@]}" --set train.until.steps=5
predicts 'butterfly' "${summing[@]}" --set sync.collective=butterfly
plan
