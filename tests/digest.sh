#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# digest.sh PROGRAM... - same seed, same run: every scenario has one digest, whatever compiler and optimisation built the
# program, and twice in a row; and another seed has another digest.
set -u
. tests/tap.sh
needs python3

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

digest() { # digest PROGRAM ARGUMENT...
	"$1" sim "${@:2}" --json -q --db "$scratch/skep.db" </dev/null |
		python3 -c 'import json, sys; r = json.load(sys.stdin); print(r["digest"], r["events"], r["time_s"])'
}

one_digest() { # one_digest NAME ARGUMENT...: with every program, twice
	local name=$1 program first='' got
	shift
	for program in "${programs[@]}"; do
		for turn in 1 2; do
			if ! got=$(digest "$program" "$@" 2>&1); then
				fail "$name: $program" "$got"
				return
			fi
			: "${first:=$got}"
			if [ "$got" != "$first" ]; then
				fail "$name: $program, turn $turn" "$got, but $first with ${programs[0]}"
				return
			fi
		done
	done
	pass "$name: ${first%% *}"
	all+=("$first")
	last=$first
}

programs=("$@")
[ $# -gt 0 ] || { echo 'usage: digest.sh PROGRAM...' >&2; exit 2; }
two=scenarios/two-datacentres.yaml
last=
all=()
one_digest 'two data centres, arithmetic' $two --set train.until.steps=20
one=$last
one_digest 'two data centres, no arithmetic' $two --set train.until.steps=50 --set train.arithmetic=none
one_digest 'two data centres, another seed' $two --set train.until.steps=20 --seed 2
if [ "$one" = "$last" ]; then
	fail 'another seed is another run' "$one"
else
	pass 'another seed is another run'
fi
one_digest 'delayed updates' scenarios/delayed.yaml --set train.until.steps=20
for wiring in throughput latency; do
	one_digest "wiring by $wiring" $two --set train.until.steps=20 --set schedule.wiring=$wiring
done
for codec in fp16 int8; do
	one_digest "compressed to $codec" $two --set train.until.steps=20 --set schedule.compression=$codec \
		--set sync.compression=$codec
done
one_digest 'periodic sync' $two --set train.until.steps=20 --set sync.method=diloco --set sync.every=4
one_digest 'periodic sync by share, delayed' $two --set train.until.steps=20 --set sync.method=diloco --set sync.every=auto \
	--set sync.mean_inner_steps=4 --set sync.delayed=true --set schedule.wiring=throughput
one_digest 'reduced in 4 bits' $two --set train.until.steps=20 --set sync.compression=e3m0
for way in all-to-all,trimmed-mean butterfly,zeno; do
	one_digest "gathered: $way" $two --set train.until.steps=20 --set model.stages=2 --set sync.collective="${way%,*}" \
		--set sync.aggregate="${way#*,}"
done
one_digest 'recomputed activations' $two --set train.until.steps=20 --set schedule.checkpoint_activations=true
wan=cluster.topology=topologies/two-datacentres-wan.yaml
one_digest 'jitter, windows and loss' $two --set train.until.steps=20 --set $wan
one_digest 'the same with reductions as flows' $two --set train.until.steps=20 --set $wan --set train.arithmetic=none \
	--set simulate.collectives=flows
one_digest 'GPipe' scenarios/baselines/gpipe.yaml --set train.until.steps=10
one_digest 'GPipe, recomputed activations' scenarios/baselines/gpipe.yaml --set train.until.steps=10 \
	--set schedule.checkpoint_activations=true
one_digest 'GPipe with a barrier' scenarios/baselines/gpipe.yaml --set train.until.steps=10 --set schedule.barrier=true
one_digest 'data parallel with overlap' scenarios/overlap.yaml --set train.until.steps=5
one_digest '1F1B' scenarios/baselines/1f1b.yaml --set train.until.steps=10
one_digest 'interleaved pipelines' scenarios/baselines/interleaved.yaml --set train.until.steps=10
one_digest 'PipeDream' scenarios/baselines/pipedream.yaml --set train.until.steps=60
one_digest 'random allocation' $two --set train.until.steps=20 --set cluster.allocation.method=random
one_digest 'machines that come and go' scenarios/preempted.yaml
one_digest 'one worker' scenarios/one-worker.yaml --set train.until.steps=20
one_digest 'times from measured layers' scenarios/opt-350m.yaml
one_digest 'times from laws of layers' scenarios/opt-350m.yaml --set 'cluster.compute={predictor: regression}'
for predictor in table analytic; do
	one_digest "times of products by $predictor" $two --set train.until.steps=5 --set train.arithmetic=none \
		--set "cluster.compute={predictor: $predictor, type: fp16}"
done
one_digest 'swarm of 256' scenarios/swarm-256.yaml --set train.until.steps=1
if [ "$(printf '%s\n' "${all[@]}" | sort | uniq -d)" = '' ]; then
	pass 'each of these is a run of its own'
else
	fail 'each of these is a run of its own' "$(printf '%s\n' "${all[@]}")"
fi
plan
