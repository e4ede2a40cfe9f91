#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# text.sh - transformers learn a text for real: with one worker in each stage and one microbatch under way both worlds have the same
# losses to the bit; with two, nearly the same. Also when workers make steps of their own, five to a round.
set -u
. tests/cli/lib.sh
needs python3 mpirun

mpi_environment
job=("$root/scenarios/shakespeare.yaml" --json -q --set train.until.steps=25 --set 'train.schedule={warmup: 5}')

twins() { # twins TOLERANCE: the last two runs, one of each world; they have learnt, each as much as there were rounds for
	python3 - "$1" "$rounds" "$loss" <<-'END'
	import sqlite3, sys
	db = sqlite3.connect("skep.db")
	rounds = int(sys.argv[2])
	runs = db.execute("SELECT id, world FROM runs ORDER BY id DESC LIMIT 2").fetchall()
	assert {world for _, world in runs} == {"sim", "real"}, runs
	losses = [[loss for loss, in db.execute("SELECT loss FROM rounds WHERE run = ? ORDER BY round", (run,))]
		for run, _ in runs]
	assert len(losses[0]) == len(losses[1]) == rounds and losses[0][-1] < float(sys.argv[3]) < losses[0][0], losses
	off = max(abs(a - b) for a, b in zip(*losses))
	assert off <= float(sys.argv[1]), (off, losses)
	END
}

both() { # both NAME TOLERANCE OPTION...
	accepts "$1, real" run "${job[@]}" "${@:3}"
	accepts "$1, simulated" sim "${job[@]}" "${@:3}"
	check "$1: losses differ by at most $2" twins "$2"
}

rounds=25 loss=3.6
place 4
one=(--set schedule.in_flight=1 --set cluster.topology=place-4.yaml)
both 'gpt2, one worker a stage' 0 "${one[@]}"
both 'gpt2, two workers a stage' 0.01
# What differs at all between the worlds differs to the bit after a step or two.
rounds=8 loss=4.6
both 'llama, one worker a stage' 0 "${one[@]}" --set "model.file=$root/models/tiny-llama.yaml" --set train.until.steps=8
both 'mixture of experts, one worker a stage' 0 "${one[@]}" --set "model.file=$root/models/tiny-mixtral.yaml" --set train.until.steps=8
rounds=8 loss=5.2
both 'bert, one worker a stage' 0 "${one[@]}" --set "model.file=$root/models/tiny-bert.yaml" --set train.until.steps=8
rounds=8 loss=2.35
both 'resnet, one worker a stage' 0 "${one[@]}" --set "model.file=$root/models/tiny-resnet.yaml" --set 'train.data={corpus: images}' \
	--set train.until.steps=8
rounds=5 loss=3.6
periodic=(--set 'sync={method: diloco, every: 5, outer: {optimizer: nesterov, lr: 0.7, momentum: 0.5}}' --set train.optimizer.clip_norm=1)
both 'gpt2, rounds of five steps, one worker a stage' 0 "${one[@]}" "${periodic[@]}"
# Equal parts for the first stage, so that a busy machine does not decide what each worker learns from.
both 'gpt2, rounds of five steps, two workers a stage' 0.05 --set schedule.in_flight=2 --set schedule.microbatch=2 "${periodic[@]}" \
	--set sync.steps=fixed --set train.optimizer.lr=2.0e-3 --set 'train.schedule={warmup: 15}'
plan
