#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# calibrate.sh - a real run on a network and at a pace that are imposed, so that they are known; the topology and the profile that
# calibrate begins from are wrong by a factor of two. It has to find what was imposed, and a second run has to be predicted by what
# it writes. Passes take 40 ms and more, so that a busy machine matters little.
set -u
. tests/cli/lib.sh
needs python3 mpirun

mpi_environment

# cluster FOLDER MBIT LATENCY_MS FACTOR: a topology with its profile, as fast as FACTOR times a T4
cluster() {
	mkdir -p "$1/gpus"
	cat >"$1/place.yaml" <<-END
	name: two sites
	source: assumed for this test
	directory: west
	sites:
	  west: {machines: [{count: 2, gpu: one}], inside: {bandwidth: 1 Gbit/s, latency: $3 ms}}
	  east: {machines: [{count: 2, gpu: one}], inside: {bandwidth: 1 Gbit/s, latency: $3 ms}}
	links:
	  - {between: [west, east], bandwidth: $2 Mbit/s, latency: $((2 * $3)) ms, shared: true}
	END
	cat >"$1/gpus/one.yaml" <<-END
	name: one
	source: assumed for this test
	flops: $((8 * $4)) TFLOP/s
	efficiency: 0.5
	memory_bandwidth: $((320 * $4)) GB/s
	memory: 16 GB
	overhead: 1 ms
	END
}

cluster true 20 10 1
cluster wrong 40 5 2
cat >job.yaml <<-END
	name: known
	seed: 1
	model: {file: $root/models/square-mlp.yaml, stages: 2}
	cluster: {topology: true/place.yaml, allocation: {method: strided}, compute_scale: 40000}
	schedule: {pipeline: swarm, global_batch: 512, microbatch: 32}
	sync: {method: step, collective: ring}
	train: {arithmetic: real, optimizer: {name: adamw, lr: 3.0e-3}, until: {steps: 6}}
END

# Where something else computes meanwhile, messages come late, and figures are kept that they do not bear: then once more, in a database
# that is new.
told() { # the lines between both sites, and the passes, have figures
	python3 -c 'import json, sys
names = "west to east", "east to west", "forward of stage", "backward of stage"
asked = [f for f in json.load(open(sys.argv[1]))["figures"] if any(name in f["figure"] for name in names)]
sys.exit(len(asked) != 8 or any(f["kept"] for f in asked))' "$out"
}
for try in 1 2 3 4 5; do
	rm -rf measured skep.db
	accepts "the run, try $try" run job.yaml --pace --shape -q --json
	accepts "the calibration, try $try" calibrate 1 -o measured --topology wrong/place.yaml --json
	! told || break
done
cp "$out" figures.json
check 'says that what it found was imposed' grep -qxF \
	'skep: warning: run 1 was paced and shaped: its times and links are those that were imposed, not those of this machine, and are written as assumed' "$err"

found() { # what was imposed is found from what was wrong
	python3 - figures.json <<-'END'
	import json, sys
	result = json.load(open(sys.argv[1]))
	assert result["paced"] and result["shaped"]
	assert result["run_id"] == 1 and result["rounds"] == 6 and result["folder"] == "measured", result
	figure = {f["figure"]: f for f in result["figures"]}
	def near(name, before, after):
	    f = figure[name]
	    assert f["kept"] is None, f
	    assert abs(f["before"] / before - 1) < 0.001, f
	    within = f["low"] <= after <= f["high"]
	    assert within or abs(f["after"] / after - 1) < 0.05, f
	    assert f["low"] <= f["after"] <= f["high"] and f["samples"] >= 6, f
	for way in ("from west to east", "from east to west"):
	    near("bandwidth " + way + ", shared", 5e6, 2.5e6)
	    near("latency " + way, 0.010, 0.020)
	for stage in (0, 1):
	    for kind in ("forward", "backward"):
	        f = figure[f"{kind} of stage {stage} on one"]
	        assert f["samples"] >= 90, f # 16 in each of 6 rounds, but for what stands in two
	        near(f["figure"], f["before"], 2 * f["before"] - 0.001) # but for the overhead, which is right
	overhead = figure["overhead of an operation on one"] # with the hand-over, which is no part of what was imposed
	assert overhead["before"] == 0.001 and 0.00099 < overhead["after"] < 0.002, overhead
	END
}
check 'what was imposed is found' found

written() { # in the words of the reader: checks and simulates, and says where figures come from
	grep -q '^# Calibrated by skep from run 1 of known, 6 rounds' measured/topology.yaml &&
		grep -q '^# Calibrated by skep from run 1' measured/gpus/one.yaml &&
		grep -q '^source: "Assumed: run 1 was shaped, by skep calibrate; the rest: ' measured/topology.yaml &&
		grep -q '^source: "Stages assumed: run 1 was paced, by skep calibrate; the rest: ' measured/gpus/one.yaml &&
		! grep -rqi 'measured' measured/*.yaml measured/gpus &&
		grep -q '^# stage 1: forward .* to .* us of' measured/gpus/one-stages.csv &&
		grep -q 'messages; latency .* to .* of .*; bandwidth' measured/topology.yaml &&
		"$skep" check measured/scenario.yaml | grep -q 'stages, derived from run 1, which was paced, by skep calibrate'
}
check 'the files say where figures come from' written
[ "$(ls -A | sort | tr '\n' ' ')" = 'figures.json job.yaml measured skep.db true wrong ' ] &&
	[ "$(cd measured && find . -type f | sort | tr '\n' ' ')" = './gpus/one-stages.csv ./gpus/one.yaml ./scenario.yaml ./topology.yaml ' ] &&
	pass 'nothing else is left' || fail 'nothing else is left' "$(find . | head -40)"

unsure() { # each figure is off by what its interval of 95 % is of the normal law
	python3 - figures.json <<-'END'
	import json, math, re, sys
	figure = {f["figure"]: f for f in json.load(open(sys.argv[1]))["figures"]}
	link = re.compile(r'from: "(\w+)", to: "(\w+)".*uncertainty: {bandwidth: ([0-9.e-]+), latency: ([0-9.e-]+)}')
	seen = 0
	for line in open("measured/topology.yaml"):
	    found = link.search(line)
	    if not found:
	        continue
	    ends = "from %s to %s" % found.groups()[:2]
	    for name, value in (("bandwidth %s, shared" % ends, found[3]), ("latency " + ends, found[4])):
	        f = figure[name]
	        want = math.log(f["high"] / f["low"]) / (2 * 1.959964)
	        assert abs(float(value) / want - 1) < 0.01, (name, value, want)
	        seen += 1
	assert seen == 4, open("measured/topology.yaml").read()
	assert "uncertainty: 0.18 # as before" in open("measured/gpus/one.yaml").read()
	END
}
check 'figures say how far they may be off' unsure
accepts 'seeds draw it' sim measured/scenario.yaml --seeds 1..8 --set cluster.uncertainty=drawn --set cluster.compute.noise=0 --json -q \
	--db drawn.db
check 'and the prediction has its interval' python3 -c 'import json, sys
time = json.load(open(sys.argv[1]))["rows"][0]["time_s"]
assert time["sd"] > 0 and time["p5"] < time["mean"] < time["p95"], time' "$out"
rm -f drawn.db

# The second run: another seed, so other ways of microbatches.
accepts 'the second run' run job.yaml --seed 2 --pace --shape -q --json
accepts 'its prediction' sim measured/scenario.yaml --seed 2 -q --json
accepts 'the prediction from the wrong topology' sim job.yaml --seed 2 --set cluster.topology=wrong/place.yaml -q --json

predicted() {
	python3 - <<-'END'
	import sqlite3, statistics
	db = sqlite3.connect("skep.db")
	def median(run):
	    return statistics.median(b - a for a, b in db.execute("SELECT opened_s, closed_s FROM rounds WHERE run = ?", (run,)))
	real, now, before = median(2), median(3), median(4)
	assert abs(now / real - 1) < 0.05, (real, now, before)
	assert before / real < 0.75, (real, now, before)
	END
}
check 'a second run is predicted' predicted

# What the wrong topology had wrong: passes take half of their time there, and waiting for messages does.
accepts 'a comparison' compare 4 2 --json
parts() {
	python3 - "$out" <<-'END'
	import json, sys
	result = json.load(open(sys.argv[1]))
	part = {p["part"]: p for p in result["time_parts"]}
	time = next(m for m in result["metrics"] if m["metric"] == "time")
	for side in ("first", "second"):
	    assert abs(sum(p[side + "_s"] for p in part.values()) - time[side]) < 1e-6, part
	assert part["passes"]["second_s"] / part["passes"]["first_s"] > 1.8, part
	assert part["waiting"]["difference_s"] > 0 and abs(part["joins"]["difference_s"]) < 0.1, part
	assert result["largest_part"] in ("passes", "waiting") and "skep calibrate" in result["measure_next"], result
	END
}
check 'says which part makes the difference' parts

# Over seeds, so that the prediction has its own spread.
accepts 'a prediction over seeds' sim measured/scenario.yaml --seeds 1..6 --json -q
spread() {
	python3 - "$out" <<-'END'
	import json, sys
	row = json.load(open(sys.argv[1]))["rows"][0]
	time = row["time_s"]
	assert row["done"] == time["runs"] == 6 and time["p5"] < time["mean"] < time["p95"] and time["sd"] > 0, time
	END
}
check 'has mean, deviation, p5 and p95' spread

accepts 'a table' calibrate 1 -o measured
grep -qE 'bandwidth from west to east, shared .* to .* %' "$out" && pass 'has a row for each link' ||
	fail 'has a row for each link' "$(seen)"
cmp -s measured/topology.yaml true/place.yaml && fail 'the topology of the run is as it was'

# ---- what is refused ----

refuses 'a run that is not there' 'there is no run 99' calibrate 99 -o new
refuses 'a simulated run' 'run 3 was simulated and has no log: name a real one' calibrate 3 -o new
refuses 'no folder' '^skep: calibrate: -o FOLDER' calibrate 1
refuses 'a folder with other files' 'wrong/.* was not written by skep calibrate' calibrate 1 -o wrong
refuses 'the folder of the run, by force' 'which the run was read from, lies there' calibrate 1 -o true --force
mkdir other
cp measured/topology.yaml other
echo mine >other/notes.txt
refuses 'a folder with notes' 'other/notes.txt was not written by skep calibrate.*--force' calibrate 1 -o other
accepts 'but by force' calibrate 1 -o other --force -q
[ "$(cat other/notes.txt)" = mine ] && [ -s other/scenario.yaml ] && pass 'which leaves the notes' || fail 'which leaves the notes'
cp -r wrong third
sed -i 's/count: 2, gpu: one}\], inside: {bandwidth: 1 Gbit\/s, latency: 5 ms}}$/count: 3, gpu: one}], inside: {bandwidth: 1 Gbit\/s, latency: 5 ms}}/' \
	third/place.yaml
refuses 'the topology of another cluster' 'third/place.yaml is the topology of another cluster: the run had 4 machines at 2 places' \
	calibrate 1 -o new --topology third/place.yaml --json
refuses 'a topology that is not there' 'nowhere.yaml' calibrate 1 -o new --topology nowhere.yaml
refuses 'a folder in none' 'nowhere/new: cannot be made' calibrate 1 -o nowhere/new

# A matrix is written as sites; a machine that takes no part stays, and what is added to each latency is in the links.
printf '0,20,30\n20,0,25\n30,25,0\n' >bandwidth.csv
printf '0,25,40\n30,0,45\n40,45,0\n' >latency.csv
cat >matrix.yaml <<-END
	name: three
	source: assumed for this test
	matrix: {bandwidth: bandwidth.csv, bandwidth_unit: Mbit/s, latency: latency.csv, latency_unit: ms, names: [a, b, c]}
	machines: [{count: 3, gpu: t4}]
	directory: 0
END
ln -s "$root/topologies/gpus" gpus
matrix=(--set cluster.topology=matrix.yaml --set cluster.extra_latency='15 ms' --set cluster.compute_scale=5000
	--set 'cluster.allocation={method: explicit, stage_of: [0, unused, 1]}' --set train.until.steps=3)
accepts 'a run over a matrix' run job.yaml "${matrix[@]}" --pace --shape -q --json --db matrix.db
accepts 'its calibration' calibrate 1 -o sites --db matrix.db --json
ways() {
	python3 - "$out" <<-'END'
	import json, sys
	figure = {f["figure"]: f for f in json.load(open(sys.argv[1]))["figures"]}
	for way in ("from a to c", "from c to a"):
	    assert abs(figure["latency " + way]["after"] / 0.040 - 1) < 0.1, figure
	    assert abs(figure["bandwidth " + way]["after"] / 3.75e6 - 1) < 0.1, figure
	assert not any("b" in name.split()[-3:] for name in figure), figure
	END
	grep -q 'from: "b", to: "a", bandwidth: 20 Mbit/s, latency: 45 ms' sites/topology.yaml &&
		tr -s '\n ' ' ' <sites/scenario.yaml | grep -q 'extra_latency: 0 s' &&
		"$skep" sim sites/scenario.yaml --db sites.db -q --json | grep -q '"steps":3'
}
check 'has what was used, and the rest as before' ways

accepts 'a short run' run job.yaml --set train.until.steps=2 --set cluster.compute_scale=1 -q --json
refuses 'too few rounds' 'the log has 2 rounds that came to an end: a calibration needs at least 3' calibrate 11 -o new
echo '# a remark' >>true/place.yaml
refuses 'a file that has changed' 'true/place.yaml is not as run 1 read it' calibrate 1 -o new

plan
