#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# routing.sh - real runs with one worker a stage and one microbatch at a time, so that the order of all sums is given: both
# routings learn the same to the bit, with and without compression, and put on the links what they should.
set -u
. tests/cli/lib.sh
needs python3 mpirun

mpi_environment

place 4
cat >routing.yaml <<-END
name: two ways to travel
seed: 5
model: {file: $root/models/square-mlp.yaml, stages: 4}
cluster: {topology: place-4.yaml, allocation: {method: strided}}
schedule: {global_batch: 64, microbatch: 16, in_flight: 1}
train:
  arithmetic: real
  optimizer: {name: adamw, lr: 3.0e-3}
  until: {steps: 12}
END

# The last two runs: equal losses in all rounds; three tensors in and two out for the stages in the middle, by their share of
# what all stages together receive. BYTES: of one tensor with its header.
same() { # same BYTES
	python3 - "$1" <<-'END'
	import sqlite3, sys
	each = int(sys.argv[1]) * 12 * 4
	db = sqlite3.connect("skep.db")
	peer, trainer = [r[0] for r in db.execute("SELECT id FROM runs ORDER BY id DESC LIMIT 2")][::-1]
	loss = lambda run: db.execute("SELECT round, loss FROM rounds WHERE run = ? ORDER BY round", (run,)).fetchall()
	assert len(loss(peer)) == 12 and loss(peer) == loss(trainer), (loss(peer), loss(trainer))
	def bytes(run, end):
	    rows = db.execute(f"SELECT {end}, sum(bytes) FROM links WHERE run = ? AND traffic = 'pipeline' GROUP BY 1", (run,))
	    return [b / each for _, b in sorted(rows)]
	assert bytes(peer, "destination") == [1, 2, 2, 1] == bytes(peer, "source"), bytes(peer, "destination")
	assert bytes(trainer, "destination") == [5, 3, 3, 1], bytes(trainer, "destination")
	assert bytes(trainer, "source") == [7, 2, 2, 1], bytes(trainer, "source")
	END
}

for codec in none int8; do
	for routing in peer trainer; do
		accepts "$routing, $codec" run routing.yaml --json -q --set "schedule.routing=$routing" \
			--set "schedule.compression=$codec"
	done
	bytes=$((16 * 128 * 4 + 96))
	[ "$codec" = int8 ] && bytes=$((16 * 128 + 16 * 128 / 64 * 4 + 96))
	check "$codec: the same losses, and the bytes" same "$bytes"
done
accepts 'the real run with trainer routing can be replayed' replay 4
plan
