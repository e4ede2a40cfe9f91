#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# uncertain.sh - how far figures of links and machines may be off: what seeds draw of it against its law, who draws and who does not,
# and what is refused.
set -u
. tests/cli/lib.sh
needs python3

# Two machines that do little but sum: passes take no time to speak of, and a round is the ring's two hops over one link, V / B.
mkdir gpus
cat >gpus/quick.yaml <<-END
	name: quick
	source: Assumed for this test.
	flops: 1000 TFLOP/s
	efficiency: 1
	memory_bandwidth: 10000000 GB/s
	memory: 1000 GB
	overhead: 0 s
	END
cat >model.yaml <<-END
	name: a block
	kind: transformer
	transformer: {hidden: 256, sequence: 8, blocks: 2, heads: 4, vocabulary: 100}
	END
cat >scenario.yaml <<-END
	name: sums
	seed: 1
	model: {file: model.yaml, stages: 1}
	cluster: {topology: topology.yaml, compute: {type: fp32}}
	schedule: {pipeline: 1f1b, global_batch: 2, microbatch: 1}
	train: {arithmetic: none, until: {steps: 2}}
	END
link='{between: [a, b], bandwidth: 10 Mbit/s, latency: 0 s}' price='price: 0.5 USD/h'

pool() { # pool LINK GROUP [MORE]: writes topology.yaml, the directory beside the first machine
	cat >topology.yaml <<-END
	name: two
	source: Assumed for this test.
	directory: a
	sites:
	  a: {machines: [{gpu: quick, $2}], inside: {bandwidth: 10 Gbit/s, latency: 0 s}}
	  b: {machines: [{gpu: quick, $2}]}
	links: [$1]
	END
}
unsure() { # unsure FIGURE DEVIATION: the link with that
	printf '%s, uncertainty: {%s: %s}}' "${link%\}}" "$1" "$2"
}
drawn=(--set cluster.uncertainty=drawn)

pool "$link" "$price"
run_skep sim scenario.yaml -q --json --db runs.db
cp "$out" plain
run_skep sim scenario.yaml -q --json --db runs.db "${drawn[@]}"
check 'a file without the key has nothing to draw' python3 - plain "$out" <<-'END'
	import json, sys
	plain, drawn = (json.load(open(p)) for p in sys.argv[1:])
	assert plain["digest"] == drawn["digest"] and plain["time_s"] == drawn["time_s"], (plain, drawn)
	assert plain["reduction_s"] > 0.95 * plain["time_s"] / 2, plain
	END

pool "$(unsure bandwidth 0.1)" "$price"
run_skep sim scenario.yaml -q --json --db runs.db --seeds 1..3
check 'without cluster.uncertainty figures are as stated' python3 - plain "$out" <<-'END'
	import json, sys
	plain, drawn = json.load(open(sys.argv[1])), json.load(open(sys.argv[2]))["rows"][0]["time_s"]
	assert drawn["sd"] == 0 and drawn["mean"] == plain["time_s"], (plain, drawn)
	END

# A time of V / B is lognormal if B is: its mean is exp(s^2 / 2) of what is stated, its deviation sqrt(exp(s^2) - 1) of that. Costs
# follow the time.
law='import json, math, sys
key, s = sys.argv[3], float(sys.argv[4])
plain, drawn = json.load(open(sys.argv[1]))[key], json.load(open(sys.argv[2]))["rows"][0][key]
mean, ratio = math.exp(s * s / 2), drawn["sd"] / drawn["mean"]
print("mean %.5f, law %.5f; deviation %.5f, law %.5f" % (drawn["mean"] / plain, mean, ratio, math.sqrt(math.exp(s * s) - 1)))
assert drawn["runs"] == 200, drawn
assert abs(drawn["mean"] / plain / mean - 1) < 4 * s / math.sqrt(200)
assert abs(ratio / math.sqrt(math.exp(s * s) - 1) - 1) < 4 / math.sqrt(400)
for quantile, z in (("p5", -1.645), ("p95", 1.645)):
    assert abs(math.log(drawn[quantile] / plain) / s - z) < 4 * 0.15, (quantile, drawn)'
run_skep sim scenario.yaml -q --json --db runs.db "${drawn[@]}" --seeds 1..200
check 'seeds draw bandwidths of the law that is said' python3 -c "$law" plain "$out" time_s 0.1
check 'and costs with them' python3 -c "$law" plain "$out" cost_usd 0.1
cp "$out" once
run_skep sweep scenario.yaml -q --json --db runs.db --seeds 1..200 --vary cluster.uncertainty=ignored,drawn
check 'a sweep draws the same' python3 - once "$out" <<-'END'
	import json, sys
	a, b = (json.load(open(p))["rows"] for p in sys.argv[1:])
	assert len(b) == 2 and b[0]["time_s"]["sd"] == 0 and b[1]["time_s"] == a[0]["time_s"], (a, b)
	END

pool "$link" "$price, up: 10 Mbit/s, uncertainty: {up: 0, down: 0}"
refuses 'a figure that is not there' 'topology.yaml:5:[0-9]*.*how far .down. may be off, but these machines have no .down.' check scenario.yaml
pool "$link" "$price, uncertainty: {price: 0.1}"
run_skep sim scenario.yaml -q --json --db runs.db "${drawn[@]}" --seeds 1..200
check 'a price is off, and no time' python3 - plain "$out" <<-'END'
	import json, math, sys
	plain, drawn = json.load(open(sys.argv[1])), json.load(open(sys.argv[2]))["rows"][0]
	assert drawn["time_s"]["sd"] == 0 and drawn["time_s"]["mean"] == plain["time_s"], drawn
	# Two groups, each half of the price and with a draw of its own.
	assert abs(drawn["cost_usd"]["mean"] / plain["cost_usd"] / math.exp(0.005) - 1) < 4 * 0.1 / 20, drawn
	ratio = drawn["cost_usd"]["sd"] / drawn["cost_usd"]["mean"] / math.sqrt((math.exp(0.01) - 1) / 2)
	assert abs(ratio - 1) < 4 / math.sqrt(400), ratio
	END

# ---- who says what -------------------------------------------------------------------------------------------------------------

pool "$(unsure bandwidth '0.1, latency: 0.2')" "$price"
accepts 'check' check scenario.yaml "${drawn[@]}"
check 'says that it takes figures as they are stated' \
	grep -qF 'here all figures are as stated; the seed of a simulated run draws them' "$out"
expected=$(grep '^expected' "$out")
pool "$link" "$price"
accepts 'check of the stated ones' check scenario.yaml
check 'and does so' [ "$(grep '^expected' "$out")" = "$expected" ]

# ---- what is refused -----------------------------------------------------------------------------------------------------------

for wrong in -0.1 1.5 '5 %' '1 Mbit/s' nan; do
	pool "$(unsure bandwidth "$wrong")" "$price"
	refuses "of a bandwidth: $wrong" 'topology.yaml:7:[0-9]*.*bandwidth: expected a decimal number from 0 to 1' check scenario.yaml
done
pool "$(unsure width 0.1)" "$price"
refuses 'of what a link has not' 'topology.yaml:7:.*width' check scenario.yaml
pool "${link%\}}, uncertainty: 0.1}" "$price"
refuses 'of what it is not said' 'topology.yaml:7:.*uncertainty' check scenario.yaml
pool "$link" 'uncertainty: {price: 0.1}'
refuses 'of a price that is not there' 'topology.yaml:5:.*how far .price. may be off, but these machines have no .price.' check scenario.yaml
pool "$link" "$price"
refuses 'another word' 'cluster.uncertainty: expected one of: ignored, drawn' check scenario.yaml --set cluster.uncertainty=0.1

plan
