#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# probe.sh - `skep probe`: what is imposed on messages is what is measured; the topology is taken by all that reads one; what cannot
# be measured is refused, and nothing is left of it.
set -u
. tests/cli/lib.sh
needs python3 mpirun

mpi_environment alone
ln -s "$root/topologies/gpus" shipped
mkdir work
cd work || exit 1

# `probe` fails where a figure cannot be known since other work delays the messages: then it is asked again.
measures() { # measures NAME ARGUMENT...
	local name=$1 try
	shift
	for try in 1 2 3 4; do
		run_skep "$@"
		[ "$status" = 1 ] && grep -q 'bandwidth not known' "$err" || break
	done
	[ "$status" = 0 ] && pass "$name" || fail "$name, try $try" "$(seen)"
}

# ---- a topology that everything takes

measures 'four ranks of this machine' probe -o cluster.yaml -n 4 --time '50 ms' --size 64
check 'four ranks of this machine: the files' \
	[ "$(find . -type f | LC_ALL=C sort | tr '\n' ' ')" = './cluster.yaml ./gpus/cluster-cpu-products.csv ./gpus/cluster-cpu.yaml ' ]
check 'four ranks of this machine: how it was measured' \
	grep -q "^source: \"Measured by skep probe over MPI on 20..-..-.. ..:.. UTC, 4 ranks at " cluster.yaml
check 'four ranks of this machine: the time was said before' \
	grep -q '^skep: 4 ranks on 1 host: 1 link and the devices to measure, in about [0-9]* s$' "$err"
check 'four ranks of this machine: figures of the network' grep -q 'workers *4: 4 cluster-cpu' "$out"
says_how_far() { # 99 % are 2.5758 deviations; comments round up to a tenth of a percent
	python3 - <<'END'
import math, re
text = open("cluster.yaml").read()
within = float(re.search(r"\(within ([0-9.]+) %", text)[1]) / 100
deviation = float(re.search(r"inside: {.*uncertainty: {bandwidth: ([0-9.e-]+)", text)[1])
assert math.log(1 + within - 0.0011) / 2.5758 < deviation <= 1.005 * math.log(1 + within) / 2.5758, (within, deviation)
profile = open("gpus/cluster-cpu.yaml").read()
assert 0 <= float(re.search(r"^uncertainty: ([0-9.e-]+)$", profile, re.M)[1]) <= 1, profile
END
}
check 'four ranks of this machine: how far figures may be off' says_how_far
cat >job.yaml <<-END
name: on what was measured
seed: 3
model: {file: $root/models/square-mlp.yaml, stages: 2}
cluster: {topology: cluster.yaml}
schedule: {global_batch: 256, microbatch: 32}
train: {arithmetic: real, optimizer: {name: adamw, lr: 3.0e-3}, until: {steps: 5}}
END
accepts 'check takes it' check job.yaml
accepts 'check takes its products' check job.yaml --set cluster.compute.predictor=table
accepts 'sim takes it' sim job.yaml -q
accepts 'sim draws it' sim job.yaml -q --json --seeds 1..8 --set cluster.uncertainty=drawn --set cluster.compute.uncertainty=drawn --db drawn.db
check 'and prints the interval' python3 -c 'import json, sys
time = json.load(open(sys.argv[1]))["rows"][0]["time_s"]
assert time["sd"] > 0 and time["p5"] < time["mean"] < time["p95"], time' "$out"
rm -f drawn.db*
accepts 'plan takes it' plan job.yaml -q
accepts 'run takes it' run job.yaml -q
accepts 'compare: both worlds' compare

measures 'all ranks' probe -o ranks.yaml -n 3 --by rank --at-once --gpu cluster-cpu --time '20 ms' --json -q
check 'all ranks: a row for each' [ "$(grep -vc '^#' ranks-bandwidth.csv)" = 3 ]
accepts 'all ranks: check takes it' check job.yaml --set cluster.topology=ranks.yaml

# ---- the layers of a model, on one device

accepts 'one process: its device, and the layers of a model' \
	probe -o solo.yaml -n 1 --size 64 --model "$root/models/tiny-gpt2.yaml"
check 'one process: no link' grep -q '^skep: 1 rank, whose device is measured in about [0-9]* s; links need more ranks$' "$err"
check 'one process: what stands for its link is assumed' grep -q '^ *# Assumed: one process has no link' solo.yaml
check 'layers: four parts, each with microbatches from 1 on' \
	[ "$(grep -cE '^(embedding|block|head|edge),1,1,' gpus/solo-cpu-layers.csv)" = 4 ]
cat >layers.yaml <<-END
name: by layers
seed: 3
model: {file: $root/models/tiny-gpt2.yaml, stages: 1}
cluster: {topology: solo.yaml, compute: {predictor: table, outside: refuse}}
schedule: {global_batch: 8, microbatch: 4}
train:
  data: {corpus: text, file: $root/models/text/tinyshakespeare.txt}
  until: {steps: 3}
END
accepts 'layers: sim takes them' sim layers.yaml -q
accepts 'layers: run' run layers.yaml -q
accepts 'layers: check' check layers.yaml --json

# adds_up FILE MODEL STAGES: stages of `check --json` are the sums of their parts in the table of layers, whose microbatch is 4
adds_up() {
	python3 - "$@" <<'END'
import csv, json, sys
table, out, blocks = sys.argv[1], json.load(open(sys.argv[2])), json.loads(sys.argv[3])
rows = csv.DictReader(l for l in open(table) if not l.startswith("#"))
us = {(r["layer"], k): float(r[k + "_us"]) for r in rows if r["microbatch"] == "4" for k in ("forward", "backward", "update")}
last = len(blocks) - 1
for stage, (time, count) in enumerate(zip(out["compute"]["times"], blocks)):
    for key in ("forward", "backward", "update"):
        want = count * us["block", key] + ((stage > 0) + (stage < last)) * us["edge", key]
        want += us["embedding", key] if stage == 0 else 0
        want += us["head", key] if stage == last and not (key == "update" and "tied" in sys.argv) else 0
        got = time[{"update": "step"}.get(key, key) + "_s"] * 1e6
        assert abs(got / want - 1) < 1e-3, (stage, key, got, want)
    assert time["forward_from"] == {"measured": 1} and time["step_measured"], time
assert len(out["compute"]["times"]) == len(blocks)
END
}
check 'layers: one stage is the sum of them' adds_up gpus/solo-cpu-layers.csv "$out" '[4]'
sed 's/count: 1/count: 2/' solo.yaml >pair.yaml
accepts 'layers: two stages' check layers.yaml --json --set cluster.topology=pair.yaml --set model.stages=2 --set model.cut='[3, 3]'
check 'layers: two stages have an edge each' adds_up gpus/solo-cpu-layers.csv "$out" '[2, 2]'
sed 's/vocabulary: 256}/vocabulary: 256, tied: true}/' "$root/models/tiny-gpt2.yaml" >tied.yaml
accepts 'layers: a tied head' check layers.yaml --json --set model.file=tied.yaml
check 'layers: a tied head is updated with the embedding' adds_up gpus/solo-cpu-layers.csv "$out" '[4]' tied

# ---- what is imposed is what is measured

cat >near.yaml <<-END
name: near and far
source: assumed for this test
directory: near
sites:
  near:
    machines: [{count: 2, gpu: cluster-cpu}]
    inside: {bandwidth: 400 Mbit/s, latency: 10 ms}
  far:
    machines: [{gpu: cluster-cpu}]
links:
  - {from: near, to: far, bandwidth: 100 Mbit/s, latency: 20 ms}
  - {from: far, to: near, bandwidth: 50 Mbit/s, latency: 40 ms}
END

within() { # within FILE: bandwidths within 5 %, latencies too; a round trip has both ways, so each is half of their sum
	python3 - "$1" <<'END'
import re, sys

unit = {"us": 1e-3, "ms": 1, "s": 1e3, "kbit/s": 1e-3, "Mbit/s": 1, "Gbit/s": 1e3}
link = re.compile(r"bandwidth: ([0-9.]+) (\S+), latency: ([0-9.]+) ([a-z]+)")
wanted = {"inside:": (400, 10), 'from: "near"': (100, 30), 'from: "far"': (50, 30)}
seen = 0
for line in open(sys.argv[1]):
    for name, values in wanted.items():
        if name in line and not line.startswith("#"):
            rate, rate_unit, time, time_unit = link.search(line).groups()
            for value, want in zip((float(rate) * unit[rate_unit], float(time) * unit[time_unit]), values):
                assert abs(value / want - 1) <= 0.05, (name, value, want)
            seen += 1
assert seen == 3, seen
END
}

# Other work on this machine can make any one measurement late; three in a row it does not.
for attempt in 1 2 3; do
	rm -f back.yaml
	run_skep probe -o back.yaml --shape near.yaml --gpu cluster-cpu -q
	[ "$status" = 0 ] && seen_within=$(within back.yaml 2>&1) && break
done
if [ "$status" = 0 ] && [ -z "$seen_within" ]; then
	pass 'what is imposed comes back within 5 %'
else
	fail 'what is imposed comes back within 5 %' "attempt $attempt: $seen_within"$'\n'"$(seen)"
fi
check 'what is imposed: the file says so' grep -q '^# Messages were held back as on near.yaml' back.yaml

# ---- lines that several hosts share

cat >shared.yaml <<-END
name: two sites
source: assumed for this test
directory: here
sites:
  here: {machines: [{count: 2, gpu: cluster-cpu}], inside: {bandwidth: 400 Mbit/s, latency: 2 ms}, uplink: 40 Mbit/s}
  there: {machines: [{count: 2, gpu: cluster-cpu}], inside: {bandwidth: 400 Mbit/s, latency: 2 ms}, uplink: 30 Mbit/s}
links: [{between: [here, there], bandwidth: 100 Mbit/s, latency: 3 ms}]
END

lines() { # lines FILE: two sites, up 40 and 30 Mbit/s, down what the other one sends, within 5 %
	python3 - "$1" <<'END'
import re, sys
lines = re.findall(r"^    (?:up|down)link: ([0-9.]+) Mbit/s", open(sys.argv[1]).read(), re.M)
assert len(lines) == 4, lines
assert all(abs(float(line) / want - 1) <= 0.05 for line, want in zip(lines, (40, 30, 30, 40))), lines
END
}

for attempt in 1 2 3; do
	rm -f lines.yaml
	run_skep probe -o lines.yaml --by rank --shape shared.yaml --gpu cluster-cpu --time '0.4 s' -q
	[ "$status" = 0 ] && seen_lines=$(lines lines.yaml 2>&1) && break
done
if [ "$status" = 0 ] && [ -z "$seen_lines" ]; then
	pass 'a shared line: sites with what leaves and enters each'
else
	fail 'a shared line: sites with what leaves and enters each' "attempt $attempt: $seen_lines"$'\n'"$(seen)"
fi
accepts 'a shared line: check takes it' check job.yaml --set cluster.topology=lines.yaml

# ---- what the samples do not bear

drifting() { # drifting FILE BANDWIDTH: a message takes 2 ms, give or take 0.5
	cat >"$1" <<-END
	name: drifting
	source: assumed for this test
	directory: here
	sites:
	  here:
	    machines: [{count: 2, gpu: cluster-cpu}]
	    inside: {bandwidth: $2, latency: 2 ms, jitter: {distribution: normal, deviation: 0.5 ms}}
	END
}

# 4 KiB take 3.3 ms, which is not enough beside the jitter to be known in so little time.
drifting drifting.yaml '10 Mbit/s'
measures 'uncertain' probe -o uncertain.yaml --shape drifting.yaml --gpu cluster-cpu --payload '4 KiB' --time '50 ms' -q
check 'uncertain: said, with the pair and by how much' \
	grep -qE '^skep: warning: here -> itself: .*the bandwidth is known within [0-9.]+ %$' "$err"
check 'uncertain: what would help' grep -q 'try more --time, fewer processes a host$' "$err"
check 'uncertain: in the file too' \
	grep -qE '^#   here -> itself: .* with 4 KiB \(within [0-9.]+ %, [0-9]+ transfers\), uncertain: ' uncertain.yaml
accepts 'uncertain: check takes it' check job.yaml --set cluster.topology=uncertain.yaml

# And here they take no time at all: whatever the rate is, it is not in the samples.
drifting endless.yaml '100000 Gbit/s'
run_skep probe -o unknown.yaml --shape endless.yaml --gpu cluster-cpu --payload '4 KiB' --time '50 ms'
if [ "$status" = 1 ] && grep -q 'here -> itself: bandwidth not known: [0-9]* messages of up to 4 KiB take times' "$err" &&
	[ "$(find . -name 'unknown*')" = '' ]; then
	pass 'not known: no file, and why'
else
	fail 'not known: no file, and why' "$(seen)"
fi

# ---- what cannot be

refuses 'no -o' 'expected -o NAME.yaml' probe -n 2
refuses 'no number of processes' 'needs -n RANKS' probe -o new.yaml
refuses 'no process' '-n 0: expected a whole number from 1' probe -o new.yaml -n 0
refuses 'one process with a profile' 'one process has no link to measure, and --gpu leaves its device out' \
	probe -o new.yaml -n 1 --gpu v100
refuses 'no layers to run' 'square-cube-768.yaml: error: --model measures the layers of transformers with an `architecture`' \
	probe -o new.yaml -n 1 --model "$root/models/square-cube-768.yaml"
refuses 'no transformer' 'square-mlp.yaml: error: --model measures the layers of transformers' \
	probe -o new.yaml -n 1 --model "$root/models/square-mlp.yaml"
refuses 'no such model' 'nowhere.yaml' probe -o new.yaml -n 1 --model nowhere.yaml
refuses 'layers beside a profile' '--gpu takes a profile as it is and --model measures one' \
	probe -o new.yaml -n 2 --gpu v100 --model "$root/models/tiny-gpt2.yaml"
refuses 'a word too many' "'more' is one word too many" probe -o new.yaml -n 2 more
refuses 'an option of others' 'probe does not take the option --seed' probe -o new.yaml -n 2 --seed 1
refuses 'by what' '--by site: expected one of host, rank' probe -o new.yaml -n 2 --by site
refuses 'no device of that kind' '--device tpu: expected one of cpu, cuda' probe -o new.yaml -n 2 --device tpu
refuses 'a size between' '--size 100: expected a multiple of 64' probe -o new.yaml -n 2 --size 100
refuses 'no time' '--time 0 s: expected a time of 10 ms to 60 s' probe -o new.yaml -n 2 --time '0 s'
refuses 'a payload without a unit' '--payload 5: expected a size' probe -o new.yaml -n 2 --payload 5
refuses 'a payload as small as a frame' '--payload 1 KiB: expected a size above 2 KiB' probe -o new.yaml -n 2 --payload '1 KiB'
refuses 'a profile that is not there' "^skep: --gpu v10: no GPU profile 'v10' in .*; there are: cluster-cpu" \
	probe -o new.yaml -n 2 --gpu v10
here=$PWD
cd "$root" || exit 1 # where there are more of them
refuses 'and which is near' "^skep: --gpu v10: no GPU profile 'v10' in .*, did you mean v100\?; there are: .*t4, " \
	probe -o "$scratch/new.yaml" -n 2 --gpu v10
cd "$here" || exit 1
refuses 'one that nothing is near to' "^skep: --gpu nope: no GPU profile 'nope' in [^;]*; there are: " \
	probe -o new.yaml -n 2 --gpu nope
refuses 'no topology to impose' 'nowhere.yaml' probe -o new.yaml --shape nowhere.yaml
refuses 'other machines than processes' '--shape near.yaml: has 3 machines, so 3 processes are needed, not 2' \
	probe -o new.yaml -n 2 --shape near.yaml
refuses 'a topology that is there' 'cluster.yaml: error: is there already' probe -o cluster.yaml -n 2
touch other-latency.csv
refuses 'a matrix that is there' 'other-latency.csv: error: is there already' probe -o other.yaml -n 2
refuses 'not the name of a topology' 'expected the name of a topology' probe -o new.txt -n 2
refuses 'no such folder' 'its folder is not there' probe -o none/new.yaml -n 2
mkdir shut && chmod a-w shut
if [ "$(id -u)" != 0 ] || bound_by_permissions true 2>/dev/null; then
	bound() {
		status=0
		bound_by_permissions timeout -k 5 300 "$skep" "$@" >"$out" 2>"$err" </dev/null || status=$?
	}
	bound probe -o shut/new.yaml -n 2
	if [ "$status" = 2 ] && grep -q 'shut/new.yaml: error: its folder cannot be written to' "$err"; then
		pass 'a folder that takes no files'
	else
		fail 'a folder that takes no files' "$(seen)"
	fi
else
	skip 'a folder that takes no files' 'root cannot be bound by permissions here'
fi

alone() { # alone COMMAND...: one process of mpirun
	status=0
	timeout -k 5 300 mpirun -n 1 "$skep" "$@" >"$out" 2>"$err" </dev/null || status=$?
}
alone probe -o new.yaml --gpu cluster-cpu
if [ "$status" = 2 ] && grep -q 'one process has no link to measure' "$err" && [ ! -e new.yaml ]; then
	pass 'one process under mpirun'
else
	fail 'one process under mpirun' "$(seen)"
fi

# ---- ended before its time

begin() { # begin: a measurement that would take long; its process is $running
	: >"$err" # of the command before, which also speaks of what there is to measure
	"$skep" probe -o long.yaml --shape near.yaml --gpu cluster-cpu --time '60 s' >"$out" 2>"$err" </dev/null &
	running=$!
	for _ in $(seq 200); do
		grep -q 'to measure' "$err" && return 0
		sleep 0.1
	done
	return 1
}

ended() { # ended STATUS NAME PATTERN: the reason, and no file
	local wanted=$1
	shift
	status=0
	wait "$running" || status=$?
	if [ "$status" = "$wanted" ] && grep -q "$2" "$err" && [ "$(find . -name 'long*')" = '' ]; then
		pass "$1"
	else
		fail "$1" "$(seen)"
	fi
}

begin
mpirun=$(children "$running" | head -n 1)
kill -KILL "$(children "$mpirun" | tail -n 1)"
ended 1 'a rank killed' 'a process of the run died'

begin
kill -TERM "$running"
ended 143 'terminated' 'ended by SIGTERM'
plan
