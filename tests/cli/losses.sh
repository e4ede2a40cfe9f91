#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# losses.sh - what a lost worker costs by schedule.on_loss, simulated, against figures by hand: a step in which one of two workers dies.
# And what is learnt, recorded and refused.
set -u
. tests/cli/lib.sh
needs python3 sqlite3

ln -s "$root/topologies/gpus" gpus
printf 'name: one layer\nkind: given\ngiven:\n  microbatch: 1\n  layers:\n' >model.yaml
printf '    - {parameters: 1000, activations: 8 kB, forward: 100 ms, backward: 200 ms, step: 1 ms}\n' >>model.yaml

topology() { # topology WORKERS: makes topology.yaml
	cat >topology.yaml <<-END
	name: in one place
	source: assumed for this test
	directory: here
	sites:
	  here:
	    machines: [{count: $1, gpu: v100}]
	    inside: {bandwidth: 100 Gbit/s, latency: 0.01 ms}
	END
}

trace() { # trace ROW...: makes trace.csv
	printf '%s\n' '# skep trace: who is there when. A row is seconds,join|leave|refused|end,name,gpu,zone' \
		'# unit: seconds since the trace began' '# source: assumed for this test' "$@" 1000,end >trace.csv
}

topology 2
cat >scenario.yaml <<'END'
name: a loss
seed: 1
model: {file: model.yaml, stages: 1}
cluster: {topology: topology.yaml, trace: {file: trace.csv, any_gpu: true}}
schedule: {global_batch: 6, microbatch: 1}
directory: {heartbeat: 100 ms, timeout: 400 ms}
train: {arithmetic: none, optimizer: {name: sgd, lr: 1.0e-1}, until: {steps: 1}}
END

# Six microbatches of 300 ms, three for each of two workers. b dies at 0.55 s: it has counted one, and has begun another. Its last
# heartbeat was at 0.5 s, so it is fenced in the scan at 1.0 s, when a has done its three.
#   report  two did not come back: a does two others.                                 1.0 + 2 * 0.3 = 1.6 s, five are counted
#   rerun   three are missing: a does these.                                          1.0 + 3 * 0.3 = 1.9 s, six
#   void    a throws its three away, and does six others.                             1.0 + 6 * 0.3 = 2.8 s, six
#   wait    b is back at 3 s, and each does one of the two that did not come back.    3.0 + 0.3     = 3.3 s, five
# Then comes a step of 1 ms; messages, downloads and sums of 4 kB take less than a millisecond together.
ends() { # ends ON_LOSS SECONDS ISSUED COUNTED LOST OPTION...
	local seen
	rm -f runs.db
	run_skep sim scenario.yaml -q --json --db runs.db --set "schedule.on_loss=$1" "${@:6}"
	seen=$(sqlite3 runs.db "SELECT max(end_s) FROM ops WHERE kind = 'backward'")
	check "$1: the last pass ends at $seen s for $2" \
		awk "BEGIN { exit !($status == 0 && $seen - $2 < 0.001 && $2 - $seen < 0.001) }"
	same "$1: issued, counted, lost" "$(sqlite3 runs.db "SELECT issued, counted, lost FROM rounds JOIN stage_rounds USING (run, round)")" "$3|$4|$5"
	same "$1: each is counted once or lost" "$(sqlite3 runs.db "SELECT verdict, count(*) FROM v_counted_once GROUP BY 1")" "kept|$3"
}

same() { # same NAME SEEN WANTED
	if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "seen: $2"$'\n'"wanted: $3"; fi
}

trace 0,join,a 0,join,b 0.55,leave,b 3,join,b
ends report 1.6 8 5 3
ends rerun 1.9 6 6 0
ends void 2.8 12 6 6
same 'void: the note, once' "$(sqlite3 runs.db "SELECT printf('%.1f', time_s), microbatch FROM notes WHERE kind = 'round_voided'")" '1.0|6'
same 'void: who is left empties its accumulator' "$(sqlite3 runs.db "SELECT worker, count(*) FROM ops WHERE kind = 'discard' GROUP BY 1")" '0|1'
ends wait 3.3 8 5 3
same 'wait: nothing is granted meanwhile' \
	"$(sqlite3 runs.db "SELECT count(*) FROM notes WHERE kind = 'issued' AND time_s BETWEEN 0.61 AND 3")" 0

# With a machine that boots for half a second before its process asks to be let in.
ends wait 3.8 8 5 3 --set 'cluster.trace.boot=500 ms'
# It asks for six things, and each file that the scenario was read from, over 10 ms each way; their bytes come at 1 MB/s.
sed 's/bandwidth: .*}/bandwidth: 8 Mbit\/s, latency: 10 ms}/' topology.yaml >slow.yaml
run_skep check scenario.yaml --json --set cluster.topology=slow.yaml --set 'cluster.trace.boot=500 ms' --set cluster.trace.admission=served
check 'served: connections and files take their time' python3 - "$out" scenario.yaml slow.yaml model.yaml trace.csv gpus/v100.yaml <<-'END'
	import json, os, sys
	said = json.load(open(sys.argv[1]))["trace_admission_s"]
	files = sys.argv[2:]
	wanted = 0.5 + (6 + len(files)) * 0.02 + sum(map(os.path.getsize, files)) / 1e6
	assert abs(said - wanted) < 1e-6, (said, wanted)
END
# What is gone before it is let in never was: the rest of the run is a's.
trace 0,join,a 0,join,b 0.55,leave,b 3,join,b 3.4,leave,b
ends report 1.6 8 5 3 --set 'cluster.trace.boot=500 ms'
run_skep check scenario.yaml --set 'cluster.trace.boot=500 ms'
check 'said by check' grep -q 'begins up to 500 ms after its machine has joined; 1 machine is taken away before' "$out"

# b dies in the second of three rounds, which take 0.9 s each with two workers: that one alone is void.
trace 0,join,a 0,join,b 1.15,leave,b
rm -f runs.db
run_skep sim scenario.yaml -q --json --db runs.db --set schedule.on_loss=void --set train.until.steps=3
same 'void: other rounds stay as they are' \
	"$(sqlite3 runs.db "SELECT group_concat(issued || ':' || counted || ':' || lost, ' ') FROM (SELECT * FROM rounds JOIN stage_rounds USING (run, round) ORDER BY round)")" \
	'6:6:0 12:6:6 6:6:0'

# No other one comes: the run says so, and stops when it has waited for as long as it may.
trace 0,join,a 0,join,b 0.55,leave,b
run_skep sim scenario.yaml -q --db runs.db --set schedule.on_loss=wait --set 'cluster.wait_for_join=2 s'
same 'wait: in vain' "$status" 1
check 'wait: why' grep -q 'the run failed: a stage lacked a worker, and no other came in time' "$err"
check 'wait: for which stage, and for so long' grep -qE 'at 3\.[01] s: no worker has come to serve stage 0' "$err"

# Workers that come and go in two stages, with arithmetic: it learns, and the books are in order.
topology 6
trace 0,join,a 0,join,b 0,join,c 0,join,d 0,join,e 0,join,f 1,leave,b 3,leave,e 4,join,b 5,join,e 7,leave,a 8,join,a
cat >learn.yaml <<END
name: losses
seed: 5
model: {file: $root/models/square-mlp.yaml, stages: 2}
cluster: {topology: topology.yaml, trace: {file: trace.csv, any_gpu: true}, compute_scale: 20000}
schedule: {global_batch: 384, microbatch: 32}
directory: {heartbeat: 100 ms, timeout: 400 ms}
train: {optimizer: {name: adamw, lr: 3.0e-3}, until: {steps: 40}}
END
learns() { # learns NAME VOIDS OPTION...
	local name=$1 voids=$2
	shift 2
	rm -f runs.db
	run_skep sim learn.yaml -q --json --db runs.db "$@"
	check "$name: learns, and keeps its books" python3 - "$voids" <<-'END'
	import sqlite3, sys
	db = sqlite3.connect("runs.db")
	one = lambda sql: db.execute(sql).fetchone()[0]
	assert one("SELECT count(*) FROM rounds") == 40
	assert one("SELECT loss FROM rounds WHERE round = 39") < one("SELECT loss FROM rounds WHERE round = 0") / 3
	assert [v for v, in db.execute("SELECT DISTINCT verdict FROM v_counted_once")] == ["kept"]
	assert [v for v, in db.execute("SELECT DISTINCT verdict FROM v_ledger")] == ["kept"]
	assert one("SELECT count(*) FROM notes WHERE kind = 'fenced'") >= 3
	assert one("SELECT count(*) FROM notes WHERE kind = 'round_voided'") == int(sys.argv[1])
	END
}
learns 'void' 3 --set schedule.on_loss=void
learns 'void, clipped, by a butterfly' 3 --set schedule.on_loss=void --set train.optimizer.clip_norm=0.5 --set sync.collective=butterfly
learns 'void, gpipe' 3 --set schedule.on_loss=void --set schedule.pipeline=gpipe
learns 'wait' 0 --set schedule.on_loss=wait
learns 'wait, 1f1b' 0 --set schedule.on_loss=wait --set schedule.pipeline=1f1b
learns 'wait, diloco' 0 --set schedule.on_loss=wait --set 'sync={method: diloco, every: 4, outer: {lr: 1, momentum: 0}}' --set train.until.steps=160

# What they do not go together with.
never() { # never ON_LOSS NAME REGEX OPTION...
	local on_loss=$1 name=$2 why=$3
	shift 3
	refuses "$on_loss, $name" "schedule.on_loss: .*$why" check learn.yaml --set "schedule.on_loss=$on_loss" "$@"
}
never void diloco 'steps of their own on them, which cannot be taken back' --set sync.method=diloco --set sync.every=4
never void gossip 'steps of their own on them' --set sync.method=gossip --set sync.every=4
never void async 'steps of their own on them' --set sync.method=async --set sync.every=4
never void delayed 'the next step is under way' --set sync.delayed=true
never void pipedream 'later steps are under way' --set schedule.pipeline=pipedream --set schedule.global_batch=96
never wait pipedream 'later steps are under way' --set schedule.pipeline=pipedream --set schedule.global_batch=96
never wait delayed 'parameters which a newcomer does not have' --set sync.delayed=true
never wait streaming 'parameters which a newcomer does not have' --set 'sync={method: streaming, every: 4, fragments: 2}'
never wait async 'no worker waits for others' --set sync.method=async --set sync.every=4
never wait gossip 'a worker needs one other' --set sync.method=gossip --set sync.every=4
never wait rebalancing 'they move' --set 'schedule.rebalance.period=1 s'
never wait candidates 'share them' --set 'train.init={candidates: 2, steps: 4}'
never wait 'no time' 'is 0 s' --set 'cluster.wait_for_join=0 s'
plan
