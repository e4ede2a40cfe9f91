#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# worker_gpus.sh - several workers on one machine, for real: their losses are those of workers on machines of their own; what Alpa's
# planner writes runs, with the losses of the simulator; and workers of unequal degrees, which are simulated alone, are refused.
set -u
. tests/cli/lib.sh
needs python3 sqlite3 mpirun

mpi_environment
ln -s "$root/topologies/gpus" gpus
cp "$root/models/text/tinyshakespeare.txt" text.txt
for hosts in 1-4 2-2; do
	cat >"hosts-$hosts.yaml" <<-END
	name: hosts
	source: assumed for this test
	directory: rack
	sites:
	  rack:
	    machines: [{count: ${hosts%-*}, gpu: v100, gpus: ${hosts#*-}, inner: {bandwidth: 40 GB/s, latency: 5 us}, up: 10 Gbit/s, down: 10 Gbit/s}]
	    inside: {bandwidth: 10 Gbit/s, latency: 0.05 ms}
	END
done
cat >small.yaml <<-'END'
name: small
kind: transformer
transformer: {architecture: gpt2, hidden: 48, heads: 4, blocks: 3, sequence: 32, vocabulary: 256}
END
cat >run.yaml <<-END
name: several workers
seed: 7
model: {file: small.yaml, stages: 2}
cluster: {topology: hosts-2-2.yaml, sequence_parallel: true}
schedule: {pipeline: 1f1b, global_batch: 8, microbatch: 2}
train:
  data: {corpus: text, file: text.txt}
  optimizer: {name: adamw, lr: 3.0e-3}
  until: {steps: 3}
END
two=(--set cluster.topology=hosts-1-4.yaml --set 'cluster.worker_gpus=[[2, 2]]' --set cluster.tensor_parallel=0)

same() { # same DATABASE TOLERANCE: two runs of three steps with the same losses
	python3 - "$@" <<-'END'
	import sqlite3, sys
	db = sqlite3.connect(sys.argv[1])
	a, b = ([r[0] for r in db.execute("SELECT loss FROM losses WHERE run = ? ORDER BY round", (run,))] for run in (1, 2))
	assert len(a) == len(b) == 3 and max(abs(x - y) for x, y in zip(a, b)) <= float(sys.argv[2]), (a, b)
	END
}
accepts 'two hosts of two' run run.yaml -q --json --db host.db
accepts 'one host of four with two workers' run run.yaml -q --json --db host.db "${two[@]}"
check 'the same losses' same host.db 1e-9
accepts 'what Alpa plans' plan run.yaml -q --set model.stages=1 --set 'plan={method: alpa}' -o alpa.yaml
accepts 'runs' run alpa.yaml -q --json --db alpa.db
accepts 'and is simulated' sim alpa.yaml -q --json --db alpa.db
check 'with the same losses' same alpa.db 1e-5
refuses 'workers of two GPUs and of one' 'all workers need the same degree' run run.yaml "${two[@]}" --set 'cluster.worker_gpus=[[2, 1]]'

plan
