#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# until.sh - runs that end by time or by money (train.until): with the first round that closes when it is up or spent, in both worlds,
# by prices that are constant and that change; what `check` expects of it; and what cannot be.
set -u
. tests/cli/lib.sh
needs python3
mpi_environment
job=$root/scenarios/two-datacentres.yaml

query() { # query SQL: of the last run, one row
	python3 -c 'import sqlite3, sys
print(*sqlite3.connect("until.db").execute(sys.argv[1].replace("$run", "(SELECT max(id) FROM runs)")).fetchone())' "$1"
}

# Of all rounds but the last, and of the last one.
spent='SELECT (SELECT max(cost_usd) FROM rounds WHERE run = $run AND round < (SELECT max(round) FROM rounds WHERE run = $run)) < 0.02,
	(SELECT max(cost_usd) FROM rounds WHERE run = $run) >= 0.02'
# The database counts from when a process was there, the directory from the start of the run.
near=${spent//< 0.02/< 0.0202}
near=${near//>= 0.02/>= 0.0198}
late='SELECT (SELECT max(closed_s) FROM rounds WHERE run = $run AND round < (SELECT max(round) FROM rounds WHERE run = $run)) < 3,
	(SELECT max(closed_s) FROM rounds WHERE run = $run) >= 3'

ends() { # ends NAME SQL KEY OPTION..: the last run ended so, and not before
	local name=$1 sql=$2 key=$3
	shift 3
	if "$skep" "$@" --db until.db -q >"$out" 2>"$err" </dev/null; then pass "$name"; else fail "$name" "$(cat "$err")"; fi
	check "$name: says why it ended" grep -q "of 60, as train.until.$key is" "$out"
	check "$name: with the first round that may" test "$(query "$sql")" = '1 1'
}

ends 'simulated, time' "$late" time sim "$job" --set train.until.time='3 s'
ends 'simulated, money' "$spent" usd sim "$job" --set train.until.usd=0.02
if [ "${SKEP_HAS_MPI:-}" = yes ]; then
	ends 'real, money' "$near" usd run "$job" --pace --shape --set train.until.usd=0.02
	ends 'real, time' "$late" time run "$job" --pace --shape --set train.until.time='3 s'
	number=$(query 'SELECT max(id), max(id) FROM runs')
	accepts 'its events are played again' replay "${number%% *}" --db until.db
fi

# The first of them is reached.
"$skep" sim "$job" --set train.until.usd=0.02 --set train.until.time='3 s' --db until.db --json -q >"$out" 2>"$err"
check 'of several the first' grep -q '"ended_by":"time"' "$out"
"$skep" sim "$job" --set train.until.usd=100 --db until.db --json -q >"$out" 2>"$err"
check 'and steps stay the most' grep -q '"steps":60,"ended_by":"steps"' "$out"

# ---- prices that change -----------------------------------------------------------------------------------------------------

# A dollar for the first second of the two machines together, and then ten times as much.
printf 'time,price\n0,1800\n1,18000\n' >dear.csv
cat >pool.yaml <<-END
name: pool
source: assumed for this test
directory: here
sites:
  here: {machines: [{count: 2, gpu: t4, prices: {file: dear.csv}}], inside: {bandwidth: 1 Gbit/s, latency: 0.1 ms}}
END
cat >dear.yaml <<-END
name: dear
model: {file: $root/models/square-mlp.yaml, stages: 2}
cluster: {topology: pool.yaml}
schedule: {global_batch: 2048, microbatch: 64}
train: {arithmetic: none, until: {steps: 100000, usd: 6}}
END
if "$skep" sim dear.yaml --db until.db --json -q >"$out" 2>"$err"; then pass 'prices that change'; else fail 'prices that change' "$(cat "$err")"; fi
# 1 USD in the first second, and the other 5 in half a second more; a round takes less than 0.2 s.
check 'money by these prices' python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); assert d["ended_by"] == "usd" and 1.5 <= d["time_s"] < 1.7, d' "$out"

# ---- traffic that is paid for by the byte ----------------------------------------------------------------------------------

# Machines and traffic together, round by round: all rounds but the last cost less, and traffic alone is more than half of it.
cat >paid.yaml <<-END
name: paid
source: assumed for this test
directory: west
sites:
  west: {machines: [{count: 2, gpu: t4, price: 0.35 USD/h}], inside: {bandwidth: 1 Gbit/s, latency: 2 ms}}
  east: {machines: [{count: 2, gpu: t4, price: 0.35 USD/h}], inside: {bandwidth: 1 Gbit/s, latency: 2 ms}}
links: [{between: [west, east], bandwidth: 200 Mbit/s, latency: 10 ms, egress: 0.09 USD/GB}]
END
paid=(--set cluster.topology=paid.yaml --set cluster.allocation=null --set model.stages=2 --set train.arithmetic=none)
dollars='SELECT (SELECT max(cost_usd) FROM rounds WHERE run = $run AND round < (SELECT max(round) FROM rounds WHERE run = $run)) < 0.00404,
	(SELECT max(cost_usd) FROM rounds WHERE run = $run) >= 0.00396 AND (SELECT egress_usd > 0.0015 FROM runs WHERE id = $run)'
ends 'traffic, simulated' "$dollars" usd sim "$job" "${paid[@]}" --set train.until.usd=0.004
rounds_of() { query 'SELECT steps, steps FROM runs WHERE id = $run' | cut -d' ' -f1; }
paid_for=$(rounds_of)
ends 'traffic as flows' "$dollars" usd sim "$job" "${paid[@]}" --set train.until.usd=0.004 --set simulate.collectives=flows
if "$skep" sim "$job" "${paid[@]}" --set train.until.usd=0.004 --set 'cluster.links={west-east: {egress: 0 USD/GB}}' --db until.db -q \
	>"$out" 2>"$err"; then pass 'free traffic'; else fail 'free traffic' "$(cat "$err")"; fi
check 'buys more than twice as many steps' test "$(rounds_of)" -gt $((2 * paid_for))
accepts 'check with traffic' check "$job" "${paid[@]}" --set train.until.usd=0.004 --json
check 'expects the same end' python3 -c 'import json, sys; d = json.load(open(sys.argv[1]))["expected"]
assert d["ended_by"] == "usd" and abs(d["steps"] - int(sys.argv[2])) <= 1, (d, sys.argv[2])' "$out" "$paid_for"
if [ "${SKEP_HAS_MPI:-}" = yes ]; then
	ends 'traffic, real' "$dollars" usd run "$job" "${paid[@]}" --set train.arithmetic=real --pace --shape --set train.until.usd=0.004
	number=$(query 'SELECT max(id), max(id) FROM runs')
	accepts 'what was told of it is played again' replay "${number%% *}" --db until.db
fi
sed 's/, egress: 0.09 USD.GB//; s/west: {/west: {egress: 0.09 USD\/GB, /' paid.yaml >half.yaml
refuses 'traffic without a price' 'train.until.usd: the price of traffic from east to west is not known' \
	sim "$job" "${paid[@]}" --set cluster.topology=half.yaml --set train.until.usd=0.004

# ---- what is expected -------------------------------------------------------------------------------------------------------

accepts 'check' check "$job"
check 'check says what the whole takes and costs' grep -qE 'all 60 steps take 1[45]\.[0-9]+ s and cost 0\.04[0-9]+ USD' "$out"
accepts 'check with a limit' check "$job" --set train.until.usd=0.02
check 'check says what ends the run' grep -qE 'train.until.usd ends the run after about 2[5-7] of 60 steps' "$out"
accepts 'check by prices that change' check dear.yaml --json
check 'is as the simulation' python3 -c 'import json, sys; d = json.load(open(sys.argv[1]))["expected"]
assert d["ended_by"] == "usd" and 1.5 <= d["time_s"] < 1.7 and 6 <= d["cost_usd"] < 8, d' "$out"

# Rounds are whole, in what is expected as in what is simulated: a run goes on to the end of the round in which it may end. In
# fragments of 3, 3 and 4 steps a run of 13 steps has four rounds.
whole() { # whole NAME STEPS BY OPTION..
	local name=$1 steps=$2 by=$3
	shift 3
	"$skep" check "$job" --set train.arithmetic=none "$@" --json >expected.json 2>"$err"
	"$skep" sim "$job" --set train.arithmetic=none "$@" --db until.db --json -q >simulated.json 2>>"$err"
	check "$name" python3 - "$steps" "$by" <<-'END'
		import json, sys
		e, s = json.load(open("expected.json"))["expected"], json.load(open("simulated.json"))
		assert e["steps"] == s["steps"] == int(sys.argv[1]) and e["ended_by"] == s["ended_by"] == sys.argv[2], (e, s["steps"])
		ratios = [e[key] / s[key] for key in ("time_s", "cost_usd")]
		assert max(abs(ratio - 1) for ratio in ratios) < 0.15, ratios
	END
}
diloco=(--set 'sync={method: diloco, every: 50}')
streaming=(--set 'sync={method: streaming, every: 10, fragments: 3, overlap_deadline: false}')
whole 'a whole round' 50 steps "${diloco[@]}" --set train.until.steps=10
whole 'two whole rounds' 100 steps "${diloco[@]}"
whole 'a round, by time' 50 time "${diloco[@]}" --set train.until.time='1 s'
whole 'a round, by money' 50 usd "${diloco[@]}" --set train.until.usd=0.001
whole 'fragments of unequal rounds' 13 steps "${streaming[@]}" --set train.until.steps=13
whole 'and of whole cycles' 60 steps "${streaming[@]}"
# Without a flush two stages of 30 ms make N steps in N + 1 times that: pipelines are filled once, and run empty once.
cat >given.yaml <<-END
name: two layers
kind: given
given: {microbatch: 4, layers: [{count: 2, parameters: 1000, activations: 4 kB, forward: 10 ms, backward: 20 ms, step: 0.1 ms}]}
END
cat >filled.yaml <<-END
name: filled
seed: 1
model: {file: given.yaml, stages: 2}
cluster: {topology: pool.yaml}
schedule: {pipeline: pipedream, global_batch: 4, microbatch: 4}
train: {arithmetic: none, until: {steps: 4}}
END
filled() { # filled STEPS
	"$skep" check filled.yaml --set train.until.steps="$1" --json 2>"$err" >expected.json
	"$skep" sim filled.yaml --set train.until.steps="$1" --db until.db --json -q >simulated.json 2>>"$err"
	check "$1 steps and filling" python3 - "$1" <<-'END'
		import json, sys
		e, s = json.load(open("expected.json"))["expected"]["time_s"], json.load(open("simulated.json"))["time_s"]
		by_hand = 0.03 * (int(sys.argv[1]) + 1)
		assert abs(e / by_hand - 1) < 0.05 and abs(s / by_hand - 1) < 0.05, (e, s, by_hand)
	END
}
filled 4
filled 20
accepts 'check of unequal rounds' check "$job" "${streaming[@]}" --set model.stages=2 --json
check 'has a mean round of bytes between stages' python3 - "$out" <<-'END'
	import json, sys
	d = json.load(open(sys.argv[1]))
	cycle = 10 * 32 * 2 * (64 * 256 * 2 + 96) # forwards and backwards, in halves; of three rounds
	assert d["bytes_pipeline_per_round"] == cycle // 3, (d["bytes_pipeline_per_round"], cycle / 3)
END

# ---- what cannot be -----------------------------------------------------------------------------------------------------------

refuses 'no unit' 'train.until.time: expected a time with its unit' sim "$job" --set train.until.time=5
refuses 'no time' 'train.until.time: expected' sim "$job" --set train.until.time='0 s'
refuses 'debts' 'train.until.usd: expected a decimal number from' sim "$job" --set train.until.usd=-1
refuses 'no price' 'train.until.usd: the price of machine 0 at here is not known' sim "$root/scenarios/one-worker.yaml" --set train.until.usd=1
refuses 'time alone' 'steps' sim "$job" --set train.until.steps=null --set train.until.time='5 s'
refuses 'candidates' 'several runs share time and money' sim "$job" --set train.init='{candidates: 2, steps: 4}' --set train.until.time='5 s'

plan
