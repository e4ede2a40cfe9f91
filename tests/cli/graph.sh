#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# graph.sh - `skep plan --graph` and `skep sim --graph`: graphs against the runs that they are of, and against closed forms of
# a pipeline of two stages, unedited and edited; files for graphviz; and what is refused.
set -u
. tests/cli/lib.sh
needs python3
graph() { python3 "$root/tests/cli/graph.py" "$@"; }

# ---- equal to the run -------------------------------------------------------------------------------------------------------

equal() { # equal NAME SCENARIO ROUNDS STEPS ARGUMENT...: what the run records, and what the graph gives when it is simulated
	local name=$1 scenario=$root/scenarios/$2.yaml rounds=$3 steps=$4
	shift 4
	rm -f runs.db
	accepts "$name: a graph" plan "$scenario" --graph plan.json --rounds "$rounds" "$@"
	accepts "$name: the run" sim "$scenario" --details -q --db runs.db --set "train.until.steps=$steps" "$@"
	check "$name: operations as in the run" graph run plan.json runs.db
	check "$name: nothing begins before what it waits for" graph causes plan.json
	run_skep sim --graph plan.json --json
	if [ "$status" = 0 ] && python3 -c 'import json, sys
it = json.load(open(sys.argv[1]))
sys.exit(it["same"] != it["ended"] or it["never"] > 0 or it["makespan_ns"] != it["before_ns"] or
	sum(it["critical_path_ns"].values()) != it["makespan_ns"])' "$out"; then
		pass "$name: simulated to the nanosecond"
	else
		fail "$name: simulated to the nanosecond" "$(seen)"
	fi
}

equal 'swarm, ring, real arithmetic' two-datacentres 2 4
equal '1f1b' baselines/1f1b 2 4
equal 'gpipe' baselines/gpipe 2 4
equal 'interleaved' baselines/interleaved 2 4
equal 'pipedream' baselines/pipedream 2 30
equal 'pipedream with shared workers' baselines/pipedream-uneven 3 6
equal 'DiLoCo' diloco 1 100 --set train.arithmetic=none
equal 'delayed updates' delayed 3 6 --set train.arithmetic=none
equal 'overlapped buckets' overlap 2 4
equal 'asynchronous merging' async 2 40 --set train.arithmetic=none
equal 'gathered parts' byzantine 1 3 --set cluster.byzantine=null
equal 'workers that leave and come back' preempted 60 80 --set train.arithmetic=none
equal 'a butterfly' two-datacentres 2 4 --set sync.collective=butterfly --set train.arithmetic=none
equal 'ZeRO' baselines/zero-3 1 2
equal 'ZeRO in shards, delayed' zero 3 6 --set train.arithmetic=none --set sync.delayed=true --set schedule.pipeline=swarm
equal 'ZeRO stage 2' zero 2 4 --set train.arithmetic=none --set sync.zero=2
equal 'ZeRO in shards' zero 2 4 --set train.arithmetic=none
check 'ZeRO in shards: passes read what all have stepped' graph gathered plan.json 4
equal 'ZeRO in pipelines' baselines/zero-1f1b 2 4 --set train.arithmetic=none
check 'ZeRO in pipelines: passes read what their stage has stepped' graph gathered plan.json 2

# ---- two stages by hand -------------------------------------------------------------------------------------------------------

# A pass takes 20 ms forwards and 40 backwards on the slow machine, half of that on the fast one; a message of 1024 floats and a
# header over 4 Mbit/s and 3 ms is 11.384 ms. Four microbatches, as GPipe has them.
cat >tiny.yaml <<-END
name: tiny
kind: transformer
transformer: {architecture: gpt2, hidden: 16, heads: 1, blocks: 2, sequence: 64, vocabulary: 16}
END
paced_gpu slow tiny 60
paced_gpu fast tiny 30
pair() { # pair FIRST SECOND: kinds of the two machines
	cat >pair.yaml <<-END
	name: a pair
	source: Assumed for this test.
	directory: a
	sites:
	  a: {machines: [{gpu: $1}], inside: {bandwidth: 1 Gbit/s, latency: 1 ms}}
	  b: {machines: [{gpu: $2}]}
	links: [{between: [a, b], bandwidth: 4 Mbit/s, latency: 3 ms}]
	END
	cat >two.yaml <<-END
	name: two stages
	seed: 1
	model: {file: tiny.yaml, stages: 2}
	cluster: {topology: pair.yaml, allocation: {method: explicit, stage_of: [0, 1]}, compute: {predictor: table}}
	schedule: {pipeline: gpipe, global_batch: 4, microbatch: 1}
	train: {arithmetic: none, optimizer: {name: sgd, lr: 1.0e-3}, until: {steps: 3}}
	END
}

f=20000000 b=40000000 message=$((3000000 + (4 * 1024 + 96) * 2000))
near() { # near NAME GRAPH WANTED: the passes of its first round take so many nanoseconds
	local taken
	taken=$(graph span "$2")
	if [ "$((taken - $3))" -le 40 ] && [ "$(($3 - taken))" -le 40 ]; then
		pass "$1: $3 ns"
	else
		fail "$1" "$taken ns, expected $3"
	fi
}

edited() { # edited NAME WANTED EDIT...
	local name=$1 wanted=$2
	shift 2
	check "$name: an edit" graph edit plan.json edited.json "$@"
	rm -f after.json
	accepts "$name: is simulated" sim --graph edited.json -o after.json
	near "$name" after.json "$wanted"
}

pair slow slow
accepts 'two stages: a graph' plan two.yaml --graph plan.json --rounds 1
near 'two stages' plan.json $((5 * (f + b) + 2 * message))
edited 'as it is' $((5 * (f + b) + 2 * message)) slower forward 0 1
# The last stage's backward passes take three times as long, and the first one's wait for them.
edited 'slower' $((5 * f + 4 * 3 * b + b + 2 * message)) slower backward 1 3
# The second microbatch waits until the first one is through the last stage's forward pass.
edited 'a dependency more' $((5 * (f + b) + 2 * message + f + message)) after forward.s0.r0.m1.w0 forward.s1.r0.m0.w1
# Ten times as large, activations take longer than passes: one waits for the other on the link.
edited 'larger activations' \
	$((f + 3000000 + 4 * (40 * 1024 + 96) * 2000 + f + 4 * b + message + b)) larger activations 10
# All on one device, which is never idle, and no message takes time.
edited 'all at one place' $((8 * (f + b))) move 'worker 1' 'worker 0'
accepts 'as a picture' plan two.yaml --graph plan.dot
check 'two stages for graphviz' graph dot plan.dot 2

pair slow fast
rm -f plan.json
accepts 'a slow and a fast one: a graph' plan two.yaml --graph plan.json --rounds 1
near 'a slow and a fast one' plan.json $((4 * f + f / 2 + b / 2 + 4 * b + 2 * message))
edited 'moved to the slow one, which takes its own time' $((8 * (f + b))) move 'worker 1' 'worker 0'
edited 'moved with the time that it has' $((4 * (f + b) + 4 * (f + b) / 2)) move-keeping 'worker 1' 'worker 0'

# On another network: its first microbatch is there later.
pair slow slow
rm -f plan.json after.json
accepts 'a graph for another network' plan two.yaml --graph plan.json --rounds 1
accepts 'a graph on another network' sim --graph plan.json --set cluster.links.a-b.latency='13 ms' -o after.json
near 'a graph on another network' after.json $((5 * (f + b) + 2 * message + 20000000))
accepts 'a graph on a scenario' sim --graph plan.json two.yaml --json
accepts 'times for graphviz' sim --graph plan.json -o after.dot
check 'times for graphviz parse' graph dot after.dot 2
accepts 'a swarm for graphviz' plan "$root/scenarios/two-datacentres.yaml" --graph swarm.gv
check 'a swarm for graphviz parses' graph dot swarm.gv 8

# An edit against the scenario that says the same: stage 1 on the machine that stood by.
stages=$root/scenarios/two-stages.yaml
accepts 'stage 1 on a T4' plan "$stages" --graph t4.json
accepts 'stage 1 on the L4' plan "$stages" --graph l4.json --set 'cluster.allocation.stage_of=[0, spare, 1]'
check 'stage 1 moved: an edit' graph edit t4.json moved.json move 'worker 1' 'worker 2'
accepts 'stage 1 moved' sim --graph moved.json -o moved-after.json
check 'stage 1 moved: the same passes at the same times' graph passes moved-after.json l4.json

# ---- what is refused ------------------------------------------------------------------------------------------------------------

wrong() { # wrong NAME ID|- REGEX EDIT...: at the line of this id
	local name=$1 id=$2 regex=$3 line
	shift 3
	graph edit plan.json wrong.json "$@" || fail "$name: edit"
	if [ "$id" = - ]; then
		refuses "$name" "$regex" sim --graph wrong.json
		return
	fi
	line=$(grep -n "\"id\": \"$id\"" wrong.json | head -n 1 | cut -d : -f 1)
	refuses_at "$name" "wrong.json:$line:8" "$regex" sim --graph wrong.json
}

first=forward.s0.r0.m0.w0 second=forward.s0.r0.m1.w0 there=forward.s1.r0.m0.w1
wrong 'a circle of dependencies' $there 'a circle: "forward.s1.r0.m0.w1" waits for "activations.*" waits for "forward.s0.* waits for' \
	after $first $there
wrong 'a circle in a lane' $first 'a circle: .*"forward.s0.r0.m1.w0" waits for' set $first follows "\"$second\""
wrong 'itself' $first 'a circle: "forward.s0.r0.m0.w0" waits for "forward.s0.r0.m0.w0"' set $first after "[\"$first\"]"
wrong 'an unknown tensor' $there 'reads: there is no tensor "nothing"' set $there reads '["nothing"]'
wrong 'an unknown operation' $there 'after: there is no operation or message "nothing"' set $there after '["nothing"]'
wrong 'a tensor that none makes' $there 'reads the tensor "activations.s0.r0.m0.w0-w1:data", which no operation makes' \
	drop activations.s0.r0.m0.w0-w1 writes
wrong 'a tensor elsewhere' $there 'at worker 0, and it is at worker 1, made by "activations.*let a message bring it' \
	set $there place '"worker 0"'
wrong 'a tensor that two write' $second 'writes the tensor "forward.s0.r0.m0.w0:out", which' set $second writes "[\"$first:out\"]"
wrong 'an unknown place' $there 'there is no place "worker 7": expected .* "worker 1"' set $there place '"worker 7"'
wrong 'a place that is no device' $there 'the directory has no device' set $there place '"directory"'
wrong 'a time below 0' $there 'ns: expected a whole number from 0' set $there ns -1
wrong 'half a nanosecond' $there 'ns: expected a whole number' set $there ns 0.5
wrong 'a time beyond all' $there 'ns: expected a whole number from 0 to' set $there ns 1e300
wrong 'an end before the beginning' $there 'ends before it begins' set $there end_ns 1
wrong 'a size beyond all' $first:out 'bytes: expected a whole number' set $first:out bytes 1e20
wrong 'a size below 0' $first:out 'bytes: expected a whole number' set $first:out bytes -5
wrong 'two of one name' $first 'two operations or messages of this name' twice $first
wrong 'an unknown kind' $first 'there is no kind "sideways"' set $first kind '"sideways"'
wrong 'an unknown key' $first 'has no key "colour"' set $first colour 1
wrong 'an unknown message' activations.s0.r0.m0.w0-w1 'no kind "LETTER"' set activations.s0.r0.m0.w0-w1 message '"LETTER"'
wrong 'a time that no clock counts' - 'take more than 70 years' larger activations 200000000000
wrong 'another version' - 'this is version 9' set - skep_graph 9
wrong 'no places' - 'places: expected a list' drop - places
wrong 'a place left out' - 'expected "worker 1"' set - places '[{"place": "worker 0"}, {"place": "worker 2"}, {"place": "directory"}]'
head -c 3000 plan.json >half.json
refuses 'half a file' 'half.json:[0-9]+:[0-9]+: error: this is no JSON' sim --graph half.json
refuses 'no file' 'nowhere.json' sim --graph nowhere.json
refuses 'a scenario of other workers' 'the graph has 2 workers, and the scenario 8' sim --graph plan.json "$root/scenarios/two-datacentres.yaml"
refuses 'over the graph itself' 'is the graph, which this command reads' sim --graph plan.json -o plan.json
echo mine >mine.json
refuses 'over what is not ours' 'is there already' plan two.yaml --graph mine.json
refuses 'over the scenario' 'which this command reads' plan two.yaml --graph two.yaml
refuses 'flows' 'simulate.collectives=messages' plan "$root/scenarios/two-datacentres.yaml" --set train.arithmetic=none \
	--set simulate.collectives=flows --graph flows.json
refuses 'too large' 'more than 500000 operations and messages' plan "$root/scenarios/plan-1024.yaml" --graph large.json
refuses 'a search beside it' 'searches for nothing: leave out' plan two.yaml --graph x.json --explain
refuses 'rounds of nothing' '--rounds says how many' plan two.yaml --rounds 3
refuses 'a database beside it' 'stores no run: leave out' sim --graph plan.json --db x.db
refuses 'no scenario' 'sim takes SCENARIO, or --graph FILE' sim
refuses 'times of nothing' 'give --graph as well' sim two.yaml -o x.json

plan
