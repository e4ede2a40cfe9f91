#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh - periodic sync over MPI on GPUs, with the skep that has them emulated (SKEP): two workers, outer steps on pseudo-gradients
# in 4 bits, and text that is held out. It learns what it learns on CPUs, but for what is bf16.
set -u
. tests/cli/lib.sh
needs python3 mpirun

mpi_environment
place 2
cat >diloco.yaml <<-END
name: diloco on GPUs
seed: 3
model: {file: $root/models/tiny-gpt2.yaml, stages: 1, sequence: 16}
cluster: {topology: place-2.yaml}
schedule: {global_batch: 2, microbatch: 1}
sync: {method: diloco, every: 2, steps: fixed, compression: e3m0}
train:
  data: {corpus: text, file: $root/models/text/tinyshakespeare.txt}
  optimizer: {name: adamw, lr: 2.0e-3}
  validate: {every: 1, microbatches: 2}
  until: {steps: 6}
END
accepts 'on GPUs' run diloco.yaml --device cuda --json -q
accepts 'on CPUs' run diloco.yaml --device cpu --json -q

compared() {
	python3 - <<-'END'
	import sqlite3
	db = sqlite3.connect("skep.db")
	kept = lambda run: [l for l, in db.execute("SELECT loss FROM losses WHERE run = ? ORDER BY round", (run,))]
	held = lambda run: [l for l, in db.execute("SELECT loss FROM validations WHERE run = ? ORDER BY round", (run,))]
	cuda, cpu = kept(1) + held(1), kept(2) + held(2)
	assert len(cuda) == len(cpu) == 6 and cpu[2] < cpu[0] - 0.3 and cpu[5] < cpu[3] - 0.3, (cuda, cpu)
	assert all(0 < abs(a / b - 1) < 5e-4 for a, b in zip(cuda, cpu)), (cuda, cpu)
	END
}
check 'losses differ by at most 0.05 %, and do differ' compared
plan
