#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# collectives.sh - real runs in which a stage of five workers sums its gradients by each of several collectives: they come to their end,
# put on the links exactly what `skep check` says, and decide the same when they are replayed.
set -u
. tests/cli/lib.sh

mpi_environment

place 5
cat >collectives.yaml <<-END
name: ways to sum
seed: 5
model: {file: $root/models/square-mlp.yaml, stages: 1}
cluster: {topology: place-5.yaml}
schedule: {global_batch: 80, microbatch: 16}
train:
  maths: real
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

run=0
for way in halving-doubling,int8 tree,fp16 butterfly,none; do
	options=(--set "sync.collective=${way%,*}" --set "sync.compression=${way#*,}")
	accepts "$way" run collectives.yaml --json -q "${options[@]}"
	run=$((run + 1))
	check "$way: the bytes that were planned" bytes_as_planned "${options[@]}"
	accepts "$way: replay" replay "$run"
done
plan
