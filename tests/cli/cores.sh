#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# cores.sh - workers of one host share its cores (`host: {cores}` of a topology): passes of `skep sim` against processor sharing by hand, and
# what a real run says when its arithmetic does not fit the cores of the machine.
set -u
. tests/cli/lib.sh
needs sqlite3 python3
mpi_environment

mkdir gpus
cat >gpus/steady.yaml <<'END'
name: steady
source: Assumed for this test.
flops: 1 GFLOP/s
efficiency: 1
memory_bandwidth: 100000 GB/s
memory: 16 GB
overhead: 0 s
END

scenario() { # scenario HOST [WORKERS]: makes scenario.yaml, on one host or on what HOST says
	cat >topology.yaml <<-END
	name: one host
	source: Assumed for this test.
	directory: here
	sites:
	  here:
	    machines: [{count: ${2:-8}, gpu: steady$1}]
	    inside: {bandwidth: 1000 Gbit/s, latency: 0 s}
	END
	cat >scenario.yaml <<-END
	name: workers of one host
	seed: 1
	model: {file: $root/models/bench-mlp-512.yaml, stages: 1}
	cluster: {topology: topology.yaml}
	schedule: {pipeline: gpipe, global_batch: $((8 * ${2:-8} * 4)), microbatch: 8}
	train: {arithmetic: none, optimizer: {name: sgd, lr: 1.0e-3}, until: {steps: 2}}
	END
}

simulate() { # simulate ARGUMENT...: digest, seconds, and the mean of forward passes in seconds
	rm -f runs.db
	run_skep sim scenario.yaml -q --json --db runs.db "$@"
	python3 -c 'import json, sys; r = json.load(sys.stdin); print(r["digest"], r["time_s"])' <"$out"
	sqlite3 runs.db "SELECT avg(end_s - begin_s) FROM ops WHERE kind = 'forward'"
}

ratio() { # ratio NAME SEEN BASE WANTED PERCENT
	if awk "BEGIN { r = $2 / $3 / $4 - 1; exit !(r < $5 / 100 && r > -$5 / 100) }" </dev/null; then
		pass "$1: $4 times as long"
	else
		fail "$1" "$2 s over $3 s, by hand $4"
	fi
}

field() { # field N TEXT
	echo "$2" | tr '\n' ' ' | cut -d' ' -f"$1"
}

scenario ''
alone=$(simulate)
scenario ', host: {cores: 8}'
enough=$(simulate)
if [ "$alone" = "$enough" ]; then pass 'a core each: as alone, to the last event'; else fail 'a core each' "$alone; $enough"; fi
for cores in 2 3 5 1; do
	scenario ", host: {cores: $cores}"
	seen=$(simulate)
	wanted=$(awk "BEGIN { print 8 / $cores }")
	ratio "eight workers on $cores: a pass" "$(field 3 "$seen")" "$(field 3 "$alone")" "$wanted" 0.01
	ratio "eight workers on $cores: the run" "$(field 2 "$seen")" "$(field 2 "$alone")" "$wanted" 1
done
scenario ', host: {cores: 2, machines: 4}'
ratio 'two hosts of four: a pass' "$(field 3 "$(simulate)")" "$(field 3 "$alone")" 2 0.01
scenario ', host: {cores: 8}'
ratio 'two threads each on eight' "$(field 3 "$(simulate --set cluster.threads=2)")" "$(field 3 "$alone")" 2 0.01
run_skep check scenario.yaml
check 'the check says that they suffice' grep -q '8 workers on a host share 8 cores: operations take as long as alone' "$out"
scenario ', host: {cores: 2}'
run_skep check scenario.yaml
check 'the check says by how much they do not' grep -q '8 workers on a host share 2 cores: operations take up to 4 times as long as alone' "$out"
run_skep check scenario.yaml --json
check 'and so does its JSON' python3 -c 'import json, sys
assert json.load(open(sys.argv[1]))["cores"] == {"cores": 2, "workers": 8, "crowding": 4}' "$out"

# One of two on a core is lost: the other one has it to itself from there on, and does the rest of the round.
cat >trace.csv <<'END'
# skep trace: who is there when. A row is seconds,join|leave|refused|end,name,gpu,zone
# unit: seconds since the trace began
# source: made by hand for this test
# licence: the project's
0,join,a
0,join,b
1,leave,b
10000,end,
END
scenario ', host: {cores: 1}' 2
sed -i 's/pipeline: gpipe, //' scenario.yaml
run_skep sim scenario.yaml -q --db lost.db --set cluster.trace.file=trace.csv --set directory='{heartbeat: 100 ms, timeout: 300 ms}'
lone=$(sqlite3 lost.db "SELECT max(abs((end_s - begin_s) / $(field 3 "$alone") - 1)) < 1e-6, count(*) > 0 FROM ops WHERE kind = 'forward' AND worker = 0 AND begin_s > 1.5")
shared=$(sqlite3 lost.db "SELECT (end_s - begin_s) / $(field 3 "$alone") > 1.5 FROM ops WHERE kind = 'forward' AND worker = 0 AND end_s < 1 ORDER BY begin_s LIMIT 1")
if [ "$lone $shared" = '1|1 1' ]; then pass 'who is lost leaves its core to the other'; else fail 'who is lost' "$lone $shared"$'\n'"$(seen)"; fi

# ---- real runs ----------------------------------------------------------------------------------------------------------

if [ "${SKEP_HAS_MPI:-yes}" = no ] || ! command -v taskset >/dev/null; then
	skip 'a real run on too few cores' 'a build without MPI, or no taskset'
	plan
	exit
fi
rm -r gpus && job real.yaml 1 2 2 2
skep_alone() { # as run_skep, on one core
	status=0
	timeout -k 5 300 taskset -c "$(taskset -pc $$ | sed 's/.*: *\([0-9]*\).*/\1/')" "$skep" "$@" >"$out" 2>"$err" </dev/null || status=$?
}
skep_alone run real.yaml -q --db real.db
check 'two workers on one core' grep -q 'skep: 2 workers compute on 1 core of .*: passes take about 2.0 times as long as predicted; .*host: {cores: 1}' "$err"
check 'which runs all the same' test "$status" = 0
skep_alone run real.yaml -q --db real.db --pace --set cluster.compute_scale=3000
check 'paced passes sleep' test "$status" = 0 -a -z "$(grep 'times as long' "$err")"
skep_alone run real.yaml -q --db real.db --pace --set cluster.compute_scale=1e-6 --set schedule.microbatch=256
check 'a pace that no core keeps' grep -qE 'skep: --pace: the run cannot keep up: .* passes take [0-9.]+ times as long as paced; they need [0-9.]+ cores, and there is 1$' "$err"
check 'is tried all the same' test "$status" = 0
job many.yaml 1 2 31 2
TMPDIR=/proc/nowhere skep_alone run many.yaml -q --db real.db # where no mpirun starts
check 'many processes for each core' grep -q 'skep: starts 32 processes on 1 core, 32 for each' "$err"
job many.yaml 1 2 30 2
TMPDIR=/proc/nowhere skep_alone run many.yaml -q --db real.db
check 'fewer are nothing to speak of' test "$status" = 1 -a -z "$(grep 'skep: starts' "$err")"
sed 's/gpu: v100/gpu: v100, host: {cores: 1}/' place-2.yaml >crowded.yaml
skep_alone run real.yaml -q --db real.db --set cluster.topology=crowded.yaml
check 'a topology that says so predicts it' test "$status" = 0 -a -z "$(grep 'times as long' "$err")"
skep_alone run real.yaml -q --db real.db --set cluster.topology=crowded.yaml --pace
check 'paced passes do not share cores' grep -q 'skep: --pace: .*up to 2.0 times as long' "$err"
skep_alone run real.yaml -q --db real.db --set cluster.compute.type=fp16
check 'a type that the CPU does not compute in' grep -q 'skep: CPU devices compute in fp32, and the passes of this scenario are timed in fp16' "$err"

# ---- cores of their own ------------------------------------------------------------------------------------------------

skep_alone run real.yaml -q --db real.db --bind
check 'a core each where there is one' grep -q 'skep: --bind: 2 workers on .* with 1 thread each want cores of their own, and there are fewer' "$err"
check 'is run unbound' test "$status" = 0
cores_of() { # cores_of SCENARIO: what processes of its run may use, where that is one core
	for process in $(pgrep -f "skep run $1"); do
		sed -n 's/^Cpus_allowed_list:[[:space:]]*\([0-9]*\)$/\1/p' "/proc/$process/status" 2>/dev/null
	done | sort
}
if [ "$(nproc)" -lt 2 ]; then
	skip 'two workers on two cores' 'there is one core'
else
	job bound.yaml 1 100000 2 2
	"$skep" run bound.yaml -q --db real.db --bind >"$out" 2>"$err" </dev/null &
	for _ in $(seq 200); do
		bound=$(cores_of bound.yaml)
		[ "$(wc -w <<<"$bound")" = 2 ] && break
		sleep 0.1
	done
	kill -INT $!
	wait $!
	if [ "$(uniq <<<"$bound" | wc -l)" = 2 ]; then pass 'two workers on two cores'; else fail 'two workers on two cores' "$bound"$'\n'"$(cat "$err")"; fi
fi
mkdir probed
accepts 'a probe that binds' probe -n 2 --size 64 --time '50 ms' --bind -q -o probed/bound.yaml

plan
