#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# damaged.sh FAULTS - bits that flip on the way between real processes (flips.c): a tensor is counted and sent again, and what is
# learnt is what a run learns that nothing has happened to, to the bit; a small message, or one within a pass, ends the run with a
# sentence.
set -u
faults=$(readlink -f "$1")
. tests/cli/lib.sh
needs python3 mpirun

mpi_environment
export FAULT_RANK=1
# One worker in each of two stages and one microbatch under way: the sums have one order.
job two.yaml 3 12 2 2
one=(--set schedule.in_flight=1 --json -q)

damaged() { # damaged NAME COUNT TEXT: the run is done, has counted so many, said so, and learnt what the first one has
	python3 - "$2" "$out" <<-'END' && { [ "$2" = 0 ] || grep -q "$3" "$err"; }
	import json, sqlite3, sys
	count, run = int(sys.argv[1]), json.load(open(sys.argv[2]))
	db = sqlite3.connect("skep.db")
	assert run["damaged"] == count and run["steps"] == 12 and run["lost"] == 0, run
	assert db.execute("SELECT damaged FROM runs WHERE id = ?", (run["run_id"],)).fetchone()[0] == count
	losses = "SELECT round, loss FROM rounds WHERE run = ? ORDER BY round"
	first = db.execute(losses, (1,)).fetchall()
	assert len(first) == 12 and first == db.execute(losses, (run["run_id"],)).fetchall()
	END
}

accepts 'undisturbed' run two.yaml "${one[@]}"
check 'undisturbed: nothing is damaged' damaged undisturbed 0 ''
said='dropped a message whose payload was damaged on its way, from rank 1'
runs=1
for nth in 1 100; do
	runs=$((runs + 1))
	LD_PRELOAD=$faults FAULT_FLIP=$nth accepts "tensor $nth" run two.yaml "${one[@]}"
	check "tensor $nth: counted, sent again, no loss differs" damaged "$nth" 1 "$said"
	accepts "tensor $nth: replays" replay "$runs"
done

# Two replicas of one stage, by an exchange of chunks: a chunk, and an element more, which is one of the other's.
job twins.yaml 3 12 2 1
accepts 'replicas' run twins.yaml --json -q
LD_PRELOAD=$faults FAULT_FLIP=5 accepts 'a chunk of a sum' run twins.yaml --json -q
check 'a chunk of a sum: counted' grep -q '"damaged":1,' "$out"
accepts 'a chunk of a sum: replays' replay $((runs + 2))

export LD_PRELOAD=$faults FAULT_FLIP_FRAME=20
run_skep run two.yaml "${one[@]}"
unset LD_PRELOAD FAULT_FLIP_FRAME
check 'a small message: the run has failed' [ "$status" = 1 ]
check 'a small message: why is said' grep -q 'lost a message with a wrong sum, from rank 1' "$err"

# Ranks that share a stage: what they send each other within passes (rank 2 is the worker's first one).
cp "$root/models/tiny-gpt2.yaml" "$root/models/text/tinyshakespeare.txt" .
cat >hosts.yaml <<-END
	name: one host with two GPUs
	source: assumed for this test
	directory: rack
	sites:
	  rack:
	    machines: [{count: 1, gpu: v100, gpus: 2, inner: {bandwidth: 40 GB/s, latency: 5 us}, up: 10 Gbit/s, down: 10 Gbit/s}]
	    inside: {bandwidth: 10 Gbit/s, latency: 0.05 ms}
	END
cat >shared.yaml <<-END
	name: a stage of two ranks
	seed: 7
	model: {file: tiny-gpt2.yaml, stages: 1}
	cluster: {topology: hosts.yaml, allocation: {method: strided}, tensor_parallel: 2, sequence_parallel: true}
	schedule: {global_batch: 4, microbatch: 2}
	train: {data: {corpus: text, file: tinyshakespeare.txt}, optimizer: {name: sgd, lr: 1.0e-2}, until: {steps: 2}}
	END
for nth in 5 60; do
	FAULT_RANK=2 LD_PRELOAD=$faults FAULT_FLIP=$nth run_skep run shared.yaml -q --db shared.db
	check "within a pass, message $nth: the run has failed" [ "$status" = 1 ]
	check "within a pass, message $nth: why is said" grep -q \
		'skep: tensor parallel rank 1 of 2: [0-9]* bytes from rank 0 were damaged on their way, within a pass' "$err"
done

# Replicas compare: of three that should be equal one has a weight with a flipped bit, in both worlds.
job three.yaml 3 12 3 1
unequal() { # unequal: one worker was told so, has come again, and the run is done
	python3 - "$out" <<-'END'
	import json, sqlite3, sys
	run = json.load(open(sys.argv[1]))
	db = sqlite3.connect("skep.db")
	notes = dict(db.execute("SELECT kind, count(*) FROM notes WHERE run = ? GROUP BY kind", (run["run_id"],)))
	assert run["steps"] == 12 and notes["unequal"] == notes["fenced"] == 1, (run, notes)
	assert db.execute("SELECT count(*) FROM v_ledger WHERE run = ? AND verdict <> 'kept'", (run["run_id"],)).fetchone()[0] == 0
	END
}
for world in sim run; do
	LD_PRELOAD=$faults FAULT_PARAMETER=100 accepts "a bit of a weight, $world" "$world" three.yaml --json -q
	check "a bit of a weight, $world: noticed, and its worker downloads the state again" unequal
done
accepts 'a bit of a weight: replays' replay $((runs + 5))
accepts 'no bit of a weight' sim three.yaml --json -q
check 'no bit of a weight: nothing is noticed' grep -q '"preemptions":0,' "$out"

# Runs are put in order by their numbers, whatever a clock says: that of the second one is years behind.
kept=(--set 'checkpoint={every: 4, to: kept}' -q --json)
accepts 'keeps its states' sim two.yaml "${kept[@]}" --write-checkpoints
LD_PRELOAD=$faults FAULT_CLOCK=-100000000 accepts 'goes on with a clock that is behind' sim two.yaml "${kept[@]}" \
	--set train.until.steps=20 --resume --write-checkpoints
accepts 'goes on with the newer of the two' sim two.yaml "${kept[@]}" --set train.until.steps=24 --resume
check 'goes on with the newer of the two: by four steps' grep -q '"steps":4,' "$out"
plan
