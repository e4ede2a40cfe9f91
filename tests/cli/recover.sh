#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# recover.sh - a stage that has lost its last worker, simulated with arithmetic: it waits, is restored from a checkpoint
# or from nothing, and the run says so; nobody comes, and the run fails. And a join whose download takes many rounds.
set -u
. tests/cli/lib.sh
needs python3
ln -s "$root/topologies/gpus" gpus

cat >place.yaml <<-END
name: four in one place
source: assumed for this test
directory: here
sites:
  here:
    machines: [{count: 4, gpu: v100}]
    inside: {bandwidth: 100 Mbit/s, latency: 1 ms}
END

# Contiguous: machines 0 and 1 serve stage 0, machine 2 serves stage 1 alone.
trace() { # trace EVENT...: what follows the start
	printf '%s\n' '# skep trace: who is there when. A row is seconds,join|leave|refused|end,name,gpu,zone' \
		'# unit: seconds since the trace began' '# source: assumed for this test' \
		0,join,a 0,join,b 0,join,c "$@" 1000,end >trace.csv
}

cat >job.yaml <<-END
name: recovery
seed: 5
model: {file: $root/models/square-mlp.yaml, stages: 2}
cluster:
  topology: place.yaml
  trace: {file: trace.csv, any_gpu: true}
  compute_scale: 2000
  wait_for_join: 30 s
schedule: {global_batch: 512, microbatch: 32}
directory: {heartbeat: 100 ms, timeout: 400 ms}
train: {optimizer: {name: adamw, lr: 3.0e-3}, until: {steps: 40}}
END

figure() { # figure KEY: of the run that was simulated last
	python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$out" "$1"
}

says() { # says NAME REGEX
	if grep -qE -- "$2" "$err"; then
		pass "$1"
	else
		fail "$1" "$(seen)"
	fi
}

equals() { # equals NAME KEY VALUE
	if [ "$(figure "$2")" = "$3" ]; then
		pass "$1"
	else
		fail "$1" "$2 is $(figure "$2"), expected $3"
	fi
}

trace 2,leave,c 4,join,d
accepts 'a stage waits for a newcomer' sim job.yaml --json -q
says 'its loss is said' 'stage 1 has lost its last worker, and waits for another'
says 'so is that it begins anew' 'stage 1 begins anew, without a checkpoint: all that it had learnt is lost'
equals 'all steps are made' steps 40
equals 'restored once' restarts 1
anew=$(figure final_loss)

accepts 'the same with checkpoints' sim job.yaml --json -q --set 'checkpoint={every: 4, to: kept}'
says 'it goes on from one' 'stage 1 goes on from its checkpoint of round [0-9]+; what it had learnt since is lost'
equals 'restored once, too' restarts 1
if python3 -c "import sys; sys.exit(not $(figure final_loss) < $anew)"; then
	pass 'a checkpoint saves what was learnt'
else
	fail 'a checkpoint saves what was learnt' "$(figure final_loss) with one, $anew without"
fi
if [ -e kept ]; then
	fail 'the simulator writes no checkpoints' "$(ls kept)"
else
	pass 'the simulator writes no checkpoints'
fi

trace 2,leave,c
run_skep sim job.yaml --json -q
if [ "$status" = 1 ]; then
	pass 'nobody comes: the run fails'
else
	fail 'nobody comes: the run fails' "$(seen)"
fi
says 'and says which stage waited' 'no worker has come to serve stage 1'
run_skep sim job.yaml --json -q --set 'cluster.wait_for_join=0 s'
if [ "$status" = 1 ] && python3 -c "import sys; sys.exit(not $(figure time_s) < 3)"; then
	pass 'without a wait it fails at once'
else
	fail 'without a wait it fails at once' "$(seen)"
fi

# 777 KiB in chunks of 32 KiB over 2 Mbit/s, which the reductions need too.
sed 's/100 Mbit/2 Mbit/' place.yaml >thin.yaml
trace 1,join,d
accepts 'a join takes many rounds' sim job.yaml --json -q --set cluster.topology=thin.yaml \
	--set 'sync.state_chunk=32 KiB' --set train.until.steps=30
equals 'and comes to its end' joins 1
plan
