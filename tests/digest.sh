#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# digest.sh PROGRAM... - same seed, same run: every scenario has one digest, whatever compiler and optimisation built the
# program, and twice in a row, which the first program is asked; and another seed has another digest.
set -u
. tests/tap.sh
needs python3

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

turns_of() { # turns_of NUMBER: of that program
	[ "$1" = 0 ] && echo 1 2 || echo 1
}

digest() { # digest NUMBER ARGUMENT...: of that program, in a file NUMBER.TURN for each turn; or what it says where it fails
	local program=${programs[$1]} turn
	for turn in $(turns_of "$1"); do
		"$program" sim "${@:2}" --json -q --db "$scratch/$1.db" </dev/null >"$scratch/json.$1" 2>"$scratch/$1.$turn" || return
		python3 -I -S -c 'import json, sys; r = json.load(sys.stdin); print(r["digest"], r["events"], r["time_s"])' \
			<"$scratch/json.$1" >"$scratch/$1.$turn" 2>&1 || return
	done
}

one_digest() { # one_digest NAME ARGUMENT...: with every program; the programs side by side
	local name=$1 i turn first='' got
	local -a running=()
	shift
	rm -f "$scratch"/*
	for i in "${!programs[@]}"; do
		digest "$i" "$@" &
		running[i]=$!
	done
	for i in "${!programs[@]}"; do
		if ! wait "${running[i]}"; then
			fail "$name: ${programs[i]}" "$(cat "$scratch/$i".*)"
			wait
			return
		fi
		for turn in $(turns_of "$i"); do
			got=$(cat "$scratch/$i.$turn")
			: "${first:=$got}"
			if [ "$got" != "$first" ]; then
				fail "$name: ${programs[i]}, turn $turn" "$got, but $first with ${programs[0]}"
				wait
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
twenty=(--set train.until.steps=20)
last=
all=()
one_digest 'two data centres, arithmetic' $two "${twenty[@]}"
one=$last
one_digest 'two data centres, no arithmetic' $two --set train.until.steps=50 --set train.arithmetic=none
one_digest 'two data centres, another seed' $two "${twenty[@]}" --seed 2
if [ "$one" = "$last" ]; then
	fail 'another seed is another run' "$one"
else
	pass 'another seed is another run'
fi
one_digest 'delayed updates' scenarios/delayed.yaml "${twenty[@]}"
for wiring in throughput latency; do
	one_digest "wiring by $wiring" $two "${twenty[@]}" --set schedule.wiring=$wiring
done
for codec in fp16 int8; do
	one_digest "compressed to $codec" $two "${twenty[@]}" --set schedule.compression=$codec \
		--set sync.compression=$codec
done
one_digest 'periodic sync' $two "${twenty[@]}" --set sync.method=diloco --set sync.every=4
one_digest 'periodic sync by share, delayed' $two "${twenty[@]}" --set sync.method=diloco --set sync.every=auto \
	--set sync.mean_inner_steps=4 --set sync.delayed=true --set schedule.wiring=throughput
one_digest 'SGD' $two --set train.until.steps=5 --set 'train.optimizer={name: sgd, lr: 1.0e-4}' # no moments: NULL
one_digest 'SGD with momentum' $two --set train.until.steps=6 --set 'train.optimizer={name: sgd, lr: 1.0e-4, momentum: 0.9}'
one_digest 'reduced in 4 bits' $two "${twenty[@]}" --set sync.compression=e3m0
for way in all-to-all,trimmed-mean butterfly,zeno; do
	one_digest "gathered: $way" $two "${twenty[@]}" --set model.stages=2 --set sync.collective="${way%,*}" \
		--set sync.aggregate="${way#*,}"
done
one_digest 'recomputed activations' $two "${twenty[@]}" --set schedule.checkpoint_activations=true
wan=cluster.topology=topologies/two-datacentres-wan.yaml
one_digest 'jitter, windows and loss' $two "${twenty[@]}" --set $wan
one_digest 'the same with reductions as flows' $two "${twenty[@]}" --set $wan --set train.arithmetic=none \
	--set simulate.collectives=flows
one_digest 'GPipe' scenarios/baselines/gpipe.yaml --set train.until.steps=10
one_digest 'GPipe, recomputed activations' scenarios/baselines/gpipe.yaml --set train.until.steps=10 \
	--set schedule.checkpoint_activations=true
one_digest 'GPipe with a barrier' scenarios/baselines/gpipe.yaml --set train.until.steps=10 --set schedule.barrier=true
one_digest 'data parallel with overlap' scenarios/overlap.yaml --set train.until.steps=5
one_digest '1F1B' scenarios/baselines/1f1b.yaml --set train.until.steps=10
one_digest 'interleaved pipelines' scenarios/baselines/interleaved.yaml --set train.until.steps=10
one_digest 'PipeDream' scenarios/baselines/pipedream.yaml --set train.until.steps=60
one_digest 'PipeDream, uneven stages' scenarios/baselines/pipedream-uneven.yaml --set train.until.steps=10
one_digest 'random allocation' $two "${twenty[@]}" --set cluster.allocation.method=random
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
