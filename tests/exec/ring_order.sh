#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# ring_order.sh - real runs whose rings are in the order of their links: the messages go from each member to the next of that order,
# all learn the same to the bit as in the simulator, and up to rounding as in the order of the roster; replays decide the same.
set -u
. tests/cli/lib.sh
needs python3 mpirun

mpi_environment

# Machines of two sites in turn.
ln -s "$root/topologies/gpus" gpus
printf '%s\n' 0,50,0.1,50 50,0,50,0.1 0.1,50,0,50 50,0.1,50,0 >latency.csv
cat >turns.yaml <<'END'
name: two sites in turn
source: Assumed for this test.
directory: 0
matrix: {bandwidth: 1 Gbit/s, latency: latency.csv, latency_unit: ms}
machines: [{count: 4, gpu: v100}]
END
cat >ring.yaml <<-END
name: a ring by links
seed: 5
model: {file: $root/models/square-mlp.yaml, stages: 1}
cluster: {topology: turns.yaml}
schedule: {pipeline: gpipe, global_batch: 64, microbatch: 16}
sync: {ring_order: links}
train:
  arithmetic: real
  optimizer: {name: adamw, lr: 1.0e-3}
  until: {steps: 6}
END

losses() { # losses FIRST LAST BOUND: those runs learn the same, up to that part of the loss
	python3 - "$@" <<-'END'
	import sqlite3, sys
	first, last, bound = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
	db = sqlite3.connect("skep.db")
	loss = lambda run: [row[0] for row in db.execute("SELECT loss FROM rounds WHERE run = ? ORDER BY round", (run,))]
	one, other = loss(first), loss(last)
	assert len(one) == 6 and one[5] < one[0], one
	assert all(abs(a - b) <= bound * a for a, b in zip(one, other, strict=True)), (one, other)
	END
}

# Whom each worker sent more than messages of control.
follows() { # follows RUN
	python3 - "$1" <<-'END'
	import json, sqlite3, sys
	order = json.load(open("checked.json"))["stages"][0]["ring"]["order"]
	assert order != sorted(order), order
	db = sqlite3.connect("skep.db")
	sent = db.execute("SELECT source, destination FROM links WHERE run = ? AND traffic = 'sync' AND bytes > 0", sys.argv[1:]).fetchall()
	assert set(sent) == set(zip(order, order[1:] + order[:1])), (sent, order)
	END
}

"$skep" check ring.yaml --json -q >checked.json
accepts 'simulated' sim ring.yaml --json -q
accepts 'really' run ring.yaml --json -q
accepts 'really, as the roster is' run ring.yaml --json -q --set sync.ring_order=roster
check 'simulated: each sends to the next of the order' follows 1
check 'really: each sends to the next of the order' follows 2
check 'the same to the bit in both worlds' losses 1 2 0
check 'and as in the roster up to the order of sums' losses 2 3 1e-6
accepts 'replay' replay 2
plan
