#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# as_it_is.sh [RUNS] [CASE...] - predictions of this very machine beside runs on it: `skep probe` measures it, `skep sim` predicts, `skep
# run` runs with nothing paced and nothing shaped, two workers with a core each. Prints, for each case, the predicted time of a round, the
# median of those that were seen, and what passes took longer than predicted; fails where a round is more than 5 % off.
#
# It times the machine, so nothing else may run on it: no test of a suite, but a command whose result is worth a note. Where something else
# does, `sudo chrt -r 1 tests/bench/as_it_is.sh` keeps its processes from the cores, if not from the caches. Two cores at least.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh
mpi_environment alone
needs python3 mpirun
[[ ${1:-} =~ ^[0-9]+$ ]] && runs=$1 && shift
runs=${runs:-3}
wanted=" $* "

# try NAME MODEL STAGES PIPELINE BATCH MICROBATCH STEPS: a round takes a fifth of a second to one second on a core of 2023
try() {
	local name=$1 model=$2 stages=$3 pipeline=$4 batch=$5 microbatch=$6 steps=$7 data='' layers=()
	[[ $wanted == '  ' || $wanted == *" $name "* ]] || return 0
	if grep -q 'kind: transformer' "$root/models/$model.yaml"; then
		data='data: {corpus: text, file: models/text/tinyshakespeare.txt}, '
		layers=(--model "$root/models/$model.yaml")
	fi
	mkdir "$name" && cd "$name" || exit 1
	cat >job.yaml <<-END
	name: $name
	seed: 1
	model: {file: models/$model.yaml, stages: $stages}
	cluster: {topology: here.yaml, compute: {predictor: table}}
	schedule: {pipeline: $pipeline, global_batch: $batch, microbatch: $microbatch}
	train: {${data}optimizer: {name: adamw, lr: 1.0e-4}, until: {steps: $steps}}
	END
	"$skep" probe -n 2 --size 512 --bind "${layers[@]}" -q -o here.yaml 2>probe.err || { fail "$name: probed" "$(cat probe.err)" && cd .. && return; }
	"$skep" sim job.yaml -q --set train.arithmetic=none >sim.out 2>&1 || { fail "$name: simulated" "$(cat sim.out)" && cd .. && return; }
	for _ in $(seq "$runs"); do
		"$skep" run job.yaml --bind -q >run.out 2>&1 || { fail "$name: run" "$(cat run.out)" && cd .. && return; }
	done
	check "$name: within 5 %" judge
	cd ..
}

judge() { # of the database of a case; the first round is not counted: memory is touched in it for the first time
	python3 - <<-'END' | tee -a "$scratch/table"
	import sqlite3, statistics, sys
	db = sqlite3.connect("skep.db")
	def rounds(run):
	    return statistics.median(c - o for o, c in db.execute("SELECT opened_s, closed_s FROM rounds WHERE run = ? AND round > 0", (run,)))
	def passes(run):
	    return db.execute("SELECT sum(end_s - begin_s) FROM ops WHERE run = ? AND round > 0 AND kind IN ('forward', 'backward')", (run,)).fetchone()[0]
	runs = [r for r, in db.execute("SELECT id FROM runs ORDER BY id")]
	sim, real = rounds(runs[0]), [rounds(r) for r in runs[1:]]
	longer = statistics.median(passes(r) for r in runs[1:]) / passes(runs[0]) - 1
	off = statistics.median(real) / sim - 1
	name = db.execute("SELECT scenario FROM runs").fetchone()[0]
	print(f"{name:12s} predicted {1e3 * sim:7.1f} ms, real {1e3 * statistics.median(real):7.1f} ms"
	      f" ({1e3 * min(real):.1f} to {1e3 * max(real):.1f}): {100 * off:+5.1f} %; passes {100 * longer:+5.1f} %")
	sys.exit(abs(off) > 0.05)
	END
	return "${PIPESTATUS[0]}"
}

try mlp-one bench-mlp-512 1 swarm 16384 256 6
try mlp-two bench-mlp-512 2 swarm 16384 256 6
try gpt2-64 tiny-gpt2 2 1f1b 256 8 10
try gpt2-128 gpt2-128x6 2 swarm 128 8 10
try gpt2-256 gpt2-256x4 2 1f1b 64 4 6
try gpt2-one gpt2-256x4 1 swarm 64 4 6
try llama tiny-llama 2 swarm 256 8 10
try gpipe gpt2-128x6 2 gpipe 128 8 10
sed "s/^/# /" "$scratch/table"
plan
