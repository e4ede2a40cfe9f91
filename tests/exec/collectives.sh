#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# collectives.sh - real runs in which a stage of five workers sums its gradients by each of several collectives, or trims what one of them
# brings: they come to their end, put on the links exactly what `skep check` says, and decide the same when they are replayed. Rings in
# segments: all five learn the same to the bit as in one piece, and as in the simulator.
set -u
. tests/cli/lib.sh
needs python3 mpirun

mpi_environment

place 5
cat >collectives.yaml <<-END
name: ways to sum
seed: 5
model: {file: $root/models/square-mlp.yaml, stages: 1}
cluster: {topology: place-5.yaml}
schedule: {global_batch: 80, microbatch: 16}
train:
  arithmetic: real
  optimizer: {name: adamw, lr: 1.0e-3}
  until: {steps: 6}
END

# The last run: what `skep check` says of a round, six times.
bytes_as_planned() { # bytes_as_planned OPTION ..
	"$SKEP" check collectives.yaml --json "$@" >planned.json
	python3 - <<-'END'
	import json, sqlite3
	planned = 6 * json.load(open("planned.json"))["bytes_sync_per_round"]
	db = sqlite3.connect("skep.db")
	run = db.execute("SELECT max(id) FROM runs").fetchone()[0]
	sent = db.execute("SELECT sum(bytes) FROM links WHERE run = ? AND traffic = 'sync'", (run,)).fetchone()[0]
	assert sent == planned, (sent, planned)
	END
}

# The loss of the last round that was computed on steps which a NaN could have been in.
finite() {
	python3 - <<-'END'
	import sqlite3
	db = sqlite3.connect("skep.db")
	run = db.execute("SELECT max(id) FROM runs").fetchone()[0]
	losses = [row[0] for row in db.execute("SELECT loss FROM rounds WHERE run = ? ORDER BY round", (run,))]
	assert len(losses) == 6 and all(0 < loss < 1e3 for loss in losses), losses
	END
}

run=0
liar='cluster.byzantine={workers: [3], attack: nan}'
for way in halving-doubling,int8 tree,fp16 butterfly,none all-to-all,e3m0,trimmed-mean butterfly,int8,zeno ring:3,int8 chain:2,none \
	ring:3,int8,,tensor butterfly,e3m0,,tensor halving-doubling,e3m0,,128 all-to-all,int8,trimmed-mean,tensor; do
	IFS=, read -r collective codec aggregate block <<<"$way"
	options=(--set "sync.collective=${collective%:*}" --set "sync.compression=$codec")
	[ "${collective%:*}" = "$collective" ] || options+=(--set "sync.chunks=${collective#*:}")
	[ -z "$block" ] || options+=(--set "sync.compression_block=$block")
	# Fixed pipelines: each worker has its part. Of two that had all of them nothing tells which one is wrong.
	[ -z "$aggregate" ] || options+=(--set "sync.aggregate=$aggregate" --set "$liar" --set schedule.pipeline=gpipe)
	accepts "$way" run collectives.yaml --json -q "${options[@]}"
	run=$((run + 1))
	check "$way: the bytes that were planned" bytes_as_planned "${options[@]}"
	accepts "$way: replay" replay "$run"
	[ -z "$aggregate" ] || check "$way: what a liar brings is left out" finite
done

# With a share of its own for each worker sums have the same parts in the same order, however they travel: a member with other
# weights would have other losses in the next round.
same_bits() { # same_bits RUNS: the last ones
	python3 - "$1" <<-'END'
	import sqlite3, sys
	db = sqlite3.connect("skep.db")
	last = db.execute("SELECT max(id) FROM runs").fetchone()[0]
	losses = [[row[0] for row in db.execute("SELECT loss FROM rounds WHERE run = ? ORDER BY round", (run,))]
	          for run in range(last - int(sys.argv[1]) + 1, last + 1)]
	assert len(losses[0]) == 6 and losses[0][5] < losses[0][0], losses[0]
	assert all(of_one == losses[0] for of_one in losses), losses
	END
}
for codec in none int8; do
	fixed=(--set schedule.pipeline=gpipe --set "sync.compression=$codec")
	for chunks in 1 4; do
		accepts "$codec, $chunks segments, simulated" sim collectives.yaml --json -q "${fixed[@]}" --set "sync.chunks=$chunks"
		accepts "$codec, $chunks segments, really" run collectives.yaml --json -q "${fixed[@]}" --set "sync.chunks=$chunks"
	done
	check "$codec: the same to the bit, in segments and in one piece, in both worlds" same_bits 4
done

# One scale for each message: other segments are other scales, and the two worlds have the same ones, in bytes and in bits.
same_bytes() { # of the last two runs
	python3 - <<-'END'
	import sqlite3
	db = sqlite3.connect("skep.db")
	sent = db.execute("SELECT run, traffic, sum(bytes) FROM links WHERE run > (SELECT max(id) - 2 FROM runs) AND "
	                  "traffic IN ('sync', 'pipeline') GROUP BY run, traffic ORDER BY run, traffic").fetchall()
	half = len(sent) // 2
	assert half > 0 and [row[1:] for row in sent[:half]] == [row[1:] for row in sent[half:]], sent
	END
}
for stages in 1 5; do # one microbatch for each pipeline: there is no order of several to sum
	block=(--set "schedule.global_batch=$((80 / stages))" --set schedule.pipeline=gpipe --set "model.stages=$stages"
		--set 'sync={compression: int8, compression_block: tensor}' --set schedule.compression=int8 --set schedule.compression_block=tensor)
	accepts "$stages stages, one scale a message, simulated" sim collectives.yaml --json -q "${block[@]}"
	accepts "$stages stages, one scale a message, really" run collectives.yaml --json -q "${block[@]}"
	check "$stages stages: the same to the bit in both worlds" same_bits 2
	check "$stages stages: and the same bytes" same_bytes
done
plan
