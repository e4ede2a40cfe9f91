#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# topology.sh - `skep topology`: its command line, and the way from a file of someone else's over `check` to `sim`.
set -u
. tests/cli/lib.sh

data=$root/tests/data
ln -s "$root/topologies" topologies

silent() { # silent FILE
	[ ! -s "$1" ]
}

for word in import stats; do
	accepts "skep topology $word --help" topology "$word" --help
	check "skep topology $word --help tells of $word alone" \
		sh -c 'grep -q "^usage: skep topology $2" "$1" && ! grep "skep topology" "$1" | grep -qv "skep topology $2"' - "$out" "$word"
done
accepts 'skep topology --help' topology --help
for word in import stats; do
	check "skep topology --help lists $word" grep -q "^  $word " "$out"
done
accepts 'skep --help' --help
check 'skep --help lists topology' grep -qw topology "$out"

refuses 'topology without a word' '^skep: expected skep topology import or stats$' topology
refuses 'topology with another word' '^skep: expected skep topology import or stats, not grow' topology grow
refuses 'an unknown option' "^skep: unrecognized option '--frobnicate'" topology stats a.yaml --frobnicate
refuses 'an option without its value' "^skep: option '--fill' requires an argument" topology import rtt a -o a.yaml --fill
refuses 'an option of the other word' '^skep: topology stats does not take the option --gpu' topology stats a.yaml --gpu t4
refuses 'an option of another format' '^skep: --unit is not an option of the format osu' topology import osu a -o a.yaml --unit s
refuses 'no format' '^skep: topology import takes FORMAT FILE' topology import
refuses 'an unknown format' "^skep: there is no format 'ns3'" topology import ns3 a -o a.yaml
refuses 'no files' '^skep: expected files of the format rtt' topology import rtt -o a.yaml
refuses 'no output' '^skep: expected -o NAME.yaml' topology import rtt a
refuses 'an output that is no topology' '^-o: error: expected a folder, or the name of a topology' \
	topology import rtt "$data/planetlab-5.txt" -o a.csv
refuses 'two files of one' '^skep: the format regions takes one file' topology import regions a b -o a.yaml
refuses 'a rule that is none' '^skep: --fill best: expected one of reverse, worst, median' topology import rtt a -o a.yaml --fill best
refuses 'a bandwidth without unit' '^skep: --bandwidth 100: expected a bandwidth above 0 with its unit' \
	topology import rtt a -o a.yaml --bandwidth 100
refuses 'no bandwidth at all' '^skep: --bandwidth 0 bit/s: expected a bandwidth above 0' \
	topology import rtt a -o a.yaml --bandwidth '0 bit/s'
refuses 'half of what is inside' '^skep: --inside 1 Gbit/s: expected a bandwidth and a latency' \
	topology import rtt a -o a.yaml --inside '1 Gbit/s'
refuses 'a count of none' '^skep: --count 0: expected a whole number from 1 to' topology import regions a -o a.yaml --count 0
refuses 'no such file' 'nowhere.txt: error: cannot be opened' topology import rtt nowhere.txt -o a.yaml
refuses 'an unknown GPU' "^skep: --gpu z80: no GPU profile 'z80'" topology import rtt "$data/planetlab-5.txt" -o a.yaml --gpu z80
refuses 'a folder that is not there' 'no/a.yaml: error: cannot be written: the folder that it is to be in is not there: make it first' topology import rtt \
	"$data/planetlab-5.txt" --bandwidth '1 Gbit/s' -o no/a.yaml --gpu v100
refuses 'stats of no topology' 'error' topology stats "$data/planetlab-5.txt"

head -c 10000000 /dev/urandom >noise.dat
head -c 7500000 /dev/urandom | base64 -w 70 >letters.dat
head -c 10000000 /dev/zero | tr '\0' '7' >sevens.dat
for file in noise letters sevens; do
	for format in skyplane city-pairs rtt gcp-ping regions nccl a,b=osu a,b=iperf3 simgrid; do
		operand=$file.dat
		[[ $format == *=* ]] && operand=a,b=$file.dat
		refuses "10 MB of $file as ${format#*=}" "$file.dat|libexpat" topology import "${format#*=}" "$operand" -o a.yaml
	done
done
rm ./*.dat
printf 'region_a,region_b,delay_ms,bandwidth_gbps\nA,B,1,1\nB,C,1,-2\n' >bad.csv
refuses_at 'a negative bandwidth' 'bad.csv:3:7' 'expected a bandwidth in Gbit/s from' topology import city-pairs bad.csv -o a.yaml

# From each format to a simulation, the generated file unchanged.
cat >job.yaml <<-END
	name: round trip
	seed: 1
	model: {file: $root/models/square-mlp.yaml, stages: 1}
	cluster: {topology: a.yaml, allocation: {method: strided}}
	schedule: {global_batch: 64, microbatch: 4}
	train: {arithmetic: none, until: {steps: 2}}
END
whole_way() { # whole_way WORKERS FORMAT ARGUMENT...
	local workers=$1 format=$2
	shift 2
	rm -f a.yaml a-*.csv
	accepts "import $format" topology import "$format" "$@" -o a.yaml
	accepts "import $format: check" check job.yaml
	check "import $format: $workers workers" grep -q " $workers workers and the directory" "$out"
	check "import $format: check says what was assumed" grep -q 'Assumed: ' "$out"
	accepts "import $format: sim" sim job.yaml -q --json
	accepts "import $format: stats" topology stats a.yaml --json
	check "import $format: stats counts them" grep -q "\"workers\":$workers," "$out"
}
whole_way 4 skyplane "$data"/skyplane-*.csv
whole_way 6 skyplane "$data"/skyplane-*.csv --provider aws,azure --machines 2 --inside '10 Gbit/s, 0.1 ms'
whole_way 3 city-pairs "$data/city-pairs.csv"
whole_way 5 rtt "$data/planetlab-5.txt" --bandwidth '100 Mbit/s'
whole_way 8 rtt "$data/seattle-8.txt" --unit s --bandwidth '100 Mbit/s' --fill reverse,worst
whole_way 3 gcp-ping "$data"/gcp-ping/*.dat --bandwidth '1 Gbit/s'
whole_way 50 regions "$root/topologies/regions/home-2019.csv" --count 50 --seed 3
whole_way 4 nccl "$data/nccl-all-reduce.txt"
whole_way 2 osu "a,b=$data/osu-bw.txt" "b,a=$data/osu-bw.txt" "a,b=$data/osu-latency.txt"
whole_way 2 iperf3 "a,b=$data/iperf3-two-streams.json" --fill reverse
run_skep topology import simgrid "$data/simgrid-two-hosts.xml" -o a.yaml
if grep -q 'install libexpat1-dev' "$err"; then
	skip 'import simgrid' 'this build has no XML library'
else
	whole_way 2 simgrid "$data/simgrid-two-hosts.xml"
	whole_way 6 simgrid "$data/simgrid-clusters.xml"
fi

accepts 'import with -q' topology import rtt "$data/planetlab-5.txt" --bandwidth '1 Gbit/s' -o a.yaml -q
check 'import -q is quiet on stderr' silent "$err"
accepts 'import without -q' topology import rtt "$data/planetlab-5.txt" --bandwidth '1 Gbit/s' -o a.yaml
check 'import says what it took' grep -q '^note: round trips taken as ms' "$err"
check 'and writes it into the file' grep -q '^# round trips taken as ms' a.yaml
mkdir there
accepts 'import into a folder' topology import rtt "$data/planetlab-5.txt" --bandwidth '1 Gbit/s' -o there
check 'a folder gets a file named by the format' test -s there/rtt.yaml -a -s there/rtt-latency.csv
echo 'another table of this name' >a-latency.csv
accepts 'a matrix of a name that the working folder has too' topology import rtt "$data/planetlab-5.txt" \
	--bandwidth '1 Gbit/s' -o there/a.yaml
accepts 'is read beside its topology' topology stats there/a.yaml

accepts 'stats of a matrix' topology stats "$root/topologies/ten-regions.yaml"
check 'stats: quantiles of bandwidth' grep -qE 'bandwidth, Mbit/s +326 +342 +523 +1120 +1160$' "$out"
check 'stats: quantiles of latency' grep -qE 'latency, ms +5.5 +17 +69.5 +117.5 +132.5$' "$out"
accepts 'stats of sites' topology stats "$root/topologies/two-datacentres.yaml"
check 'stats: places' grep -q 'places    2: 4 west, 4 east' "$out"
accepts 'stats of peers' topology stats "$root/topologies/home-peers.yaml"
check 'stats: a sample' grep -q 'a sample of 1000000 ordered pairs' "$out"
# ---- links of a topology, by the names of their sites ---------------------------------------------------------------------------

digest() { # digest OPTION..: of a short simulation
	run_skep sim "$root/scenarios/two-datacentres.yaml" --set train.until.steps=5 --json -q "$@"
	python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["digest"])' "$out"
}
sed 's/bandwidth: 200 Mbit\/s, latency: 10 ms/bandwidth: 50 Mbit\/s, latency: 30 ms/' "$root/topologies/two-datacentres.yaml" >thin.yaml
check 'the file is another one' sh -c '! cmp -s "$1" thin.yaml' - "$root/topologies/two-datacentres.yaml"
links=(--set cluster.links.west-east.bandwidth='50 Mbit/s')
check 'a link by its name is as one in the file' test "$(digest "${links[@]}" --set cluster.links.east-west.latency='30 ms')" = \
	"$(digest --set cluster.topology=thin.yaml)"
check 'and is another one than the shipped' test "$(digest "${links[@]}")" != "$(digest)"
accepts 'links are varied' sweep "$root/scenarios/two-datacentres.yaml" --set train.until.steps=3 \
	--vary cluster.links.west-east.bandwidth='50 Mbit/s,200 Mbit/s' --db links.db
for wrong in west-eas:'is no link of topology' west-west:'is no link of topology' westeast:'is no link of topology'; do
	refuses "link ${wrong%%:*}" "cluster.links: .${wrong%%:*}. ${wrong#*:}" check "$root/scenarios/two-datacentres.yaml" \
		--set "cluster.links.${wrong%%:*}.latency=1 ms"
done
sed 's/gpu: t4/gpu: {base: t4, speed: 0.5}/' "$root/topologies/two-datacentres.yaml" >slow.yaml
check 'half as fast cards by their name are as in the file' test "$(digest --set cluster.gpus.t4.speed=0.5)" = \
	"$(digest --set cluster.topology=slow.yaml)"
check 'and are others than the shipped' test "$(digest --set cluster.gpus.t4.speed=0.5)" != "$(digest)"
check 'twice half is one' test "$(digest --set cluster.topology=slow.yaml --set cluster.gpus.t4.speed=2)" = "$(digest)"
accepts 'speeds are varied' sweep "$root/scenarios/two-datacentres.yaml" --set train.until.steps=3 \
	--vary cluster.gpus.t4.speed=0.5,2 --db links.db
refuses 'a card that is not there' 'cluster.gpus: no machine of topology two data centres has a .l4.; there are: t4, v100' check \
	"$root/scenarios/two-datacentres.yaml" --set cluster.gpus.l4.speed=2
refuses 'a card without its speed' 'cluster.gpus.t4.speed' check "$root/scenarios/two-datacentres.yaml" --set 'cluster.gpus={t4: {}}'
refuses 'a card of no speed' 'from 0.001 to 1000' check "$root/scenarios/two-datacentres.yaml" --set cluster.gpus.t4.speed=0
refuses 'a link without a unit' 'expected a bandwidth with its unit' check "$root/scenarios/two-datacentres.yaml" \
	--set cluster.links.west-east.bandwidth=5
refuses 'a unit of other programs' 'expected a bandwidth in .Mbit/s., as Mbps is written here, not .100 Mbps.' check \
	"$root/scenarios/two-datacentres.yaml" --set cluster.links.west-east.bandwidth='100 Mbps'

# ---- cards that are so many times as fast as a profile -------------------------------------------------------------------------

cards() { # cards FIRST SECOND: two workers of one stage, and what the passes take on each
	cat >cards.yaml <<-END
	name: cards
	source: assumed for this test
	directory: here
	sites: {here: {machines: [{gpu: $1}, {gpu: $2}], inside: {bandwidth: 1 Gbit/s, latency: 0.1 ms}}}
	END
	cat >cards-job.yaml <<-END
	name: cards
	model: {file: $root/models/opt-350m.yaml, stages: 1}
	cluster: {topology: cards.yaml}
	schedule: {global_batch: 16, microbatch: 1, checkpoint_activations: true}
	train: {arithmetic: none, until: {steps: 1}}
	END
}
twice() { # twice NAME OPTION..: the slower one takes twice as long as the faster one
	local name=$1
	shift
	accepts "$name" check cards-job.yaml --json "$@"
	check "$name: twice as long" python3 -c 'import json, sys
s = json.load(open(sys.argv[1]))["stages"][0]
assert all(abs(s[k + "_s"] / s[k + "_least_s"] - 2) < 1e-4 for k in ("forward", "backward")), s' "$out"
}
for base in t4 a100-40; do
	cards "$base" "{base: $base, speed: 0.5}"
	twice "half a $base"
	twice "half a $base, of fp16" --set cluster.compute.type=fp16
	twice "half a $base, by its tables" --set cluster.compute.type=fp16 --set cluster.compute.predictor=table
	cards "{base: $base, speed: 2}" "$base"
	twice "two $base in one" --set cluster.compute.type=fp16 --set cluster.compute.predictor=table
done
cards '{base: t4, speed: 0}' t4
refuses 'a speed of 0' 'gpu.speed: expected a decimal number from 0.001 to 1000' check cards-job.yaml
cards "{base: a100-04, speed: 2}" t4
refuses 'an unknown base' "no GPU profile 'a100-04'" check cards-job.yaml
cards "{base: t4}" t4
refuses 'no speed' 'gpu.speed. is missing' check cards-job.yaml

accepts 'stats of PlanetLab' topology stats "$root/topologies/planetlab.yaml"
check 'stats: all pairs' grep -q ' 239610 ordered pairs' "$out"
accepts 'simulate home peers' sim "$root/scenarios/home-peers.yaml" -q --json --set train.until.steps=1 --set schedule.global_batch=512
plan
