#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# confirm.sh - `skep plan --confirm`: its runs are those that `skep sim` makes of the plan's file and of a random start, its means and
# intervals are what Python makes of them, and what cannot be run is said.
set -u
. tests/cli/lib.sh
needs python3

two=("$root/scenarios/two-datacentres.yaml")
none=(--set train.arithmetic=none --set train.until.steps=6 --set cluster.compute.type=fp32)
ln -s "$root/models" "$root/topologies" "$root/scenarios" .

# ---- refused ----------------------------------------------------------------------------------------------------------

for number in 0 1 1001 many -2; do
	refuses "confirmed by $number" "^skep: --confirm $number: expected a number of seeds, from 2 to 1000" plan "${two[@]}" --confirm "$number"
done
refuses 'a database for nothing' '^skep: --db: a plan keeps the runs of --confirm alone' plan "${two[@]}" --db c.db
refuses 'a database in no folder' 'no/such.db: cannot be created' plan "${two[@]}" --confirm 2 --db no/such.db

# ---- what it says is what the runs are ----------------------------------------------------------------------------------

accepts 'a plan and four seeds' plan "${two[@]}" "${none[@]}" --confirm 4 --json --db c.db -o plan.yaml --jobs 2
cp "$out" plan.json
accepts 'in one process' plan "${two[@]}" "${none[@]}" --confirm 4 --json --jobs 1
check 'the same' cmp plan.json "$out"
for seed in 2 3 4 5; do
	accepts "the plan with seed $seed" sim plan.yaml --json -q --seed $seed --db s.db
	cat "$out" >>plan.sims
	accepts "a random start with seed $seed" sim "${two[@]}" "${none[@]}" --json -q --seed $seed --set 'cluster.allocation={method: random}' --db s.db
	cat "$out" >>random.sims
done
cat >"$scratch/figures.py" <<'END'
import json, math, statistics
seen = json.load(open("plan.json"))["confirmed"]
assert seen["seeds"] == 4 and seen["first_seed"] == 2 and seen["traces"] == "none", seen
assert [side["name"] for side in seen["sides"]] == ["random start", "as written", "plan"], seen
key, t = "throughput_samples_per_s", 3.182446
near = lambda a, b: math.isclose(a, b, rel_tol=1e-6)
def holds(r, values):
    half = t * statistics.stdev(values) / math.sqrt(len(values))
    mean = statistics.mean(values)
    assert r["count"] == 4 and near(r["mean"], mean) and near(r["low95"], mean - half) and near(r["high95"], mean + half), (r, values)
side = {side["name"]: side[key] for side in seen["sides"]}
for name in ("random start", "plan"):
    sims = [json.loads(line)[key] for line in open(name.split()[0] + ".sims")]
    assert side[name]["values"] == sims, (side[name], sims)
for name, r in side.items():
    holds(r, r["values"])
assert [a["name"] for a in seen["plan_against"]] == ["random start", "as written"], seen
for against in seen["plan_against"]:
    pairs = list(zip(side["plan"]["values"], side[against["name"]]["values"]))
    holds(against[key]["difference"], [a - b for a, b in pairs])
    logs = dict(against[key]["times"])
    for bound in ("mean", "low95", "high95"):
        logs[bound] = math.log(logs[bound])
    holds(logs, [math.log(a / b) for a, b in pairs])
    assert near(against[key]["least_times"], min(a / b for a, b in pairs)) and against[key]["least_times"] > 1.1, against
    assert against["time_to_target_s"]["times"] == {"count": 0, "mean": None, "low95": None, "high95": None}, against
END
check 'means and intervals are those of these runs' python3 "$scratch/figures.py"
kept() { # once each, as a simulation of theirs
	python3 - <<-'END'
	import sqlite3
	rows = lambda name: sorted(sqlite3.connect(name).execute("SELECT seed, digest FROM runs WHERE world = 'sim'"))
	seen, sims = rows("c.db"), rows("s.db")
	assert len(seen) == 12 and len(sims) == 8 and set(sims) < set(seen), (seen, sims)
	END
}
check 'the database has them' kept
accepts 'as text' plan "${two[@]}" "${none[@]}" --confirm 2
check 'with how often it is better' grep -qE '^times better than random start +[1-9]\.[0-9]{3} \([01]\.[0-9]{3} to [0-9]\.[0-9]{3}\) +- +-' "$out"
check 'without a trace' grep -q '^confirmed with 2 seeds that the plan has not seen, 2 to 3, without a trace:$' "$out"
check 'no blanks at the ends of lines' bash -c '! grep -qE "[[:blank:]]$" "$1"' - "$out"

# ---- what is expected -------------------------------------------------------------------------------------------------------

# Short runs are simulated to their ends, with seeds that no confirmation has.
for seed in 1002 1003 1004 1005; do
	accepts "the plan with seed $seed" sim plan.yaml --json -q --seed $seed --db e.db
	cat "$out" >>expected.sims
done
check 'whole runs with other seeds' python3 -c '
import json
seen = json.load(open("plan.json"))["stated"]
assert seen["seeds"] == 4 and seen["first_seed"] == 1002 and seen["whole"] and seen["rounds_not_counted"] == 0, seen
assert [side["name"] for side in seen["sides"]] == ["random start", "plan"] and seen["rounds"] == 6, seen
key = "throughput_samples_per_s"
assert seen["sides"][1][key]["values"] == [json.loads(line)[key] for line in open("expected.sims")], seen
assert seen["plan_against"][0][key]["times"]["low95"] > 1.1, seen'
check 'the file says it' grep -qE '^#   expected with 4 other seeds, in whole runs: [0-9.]+( ± [0-9.]+)? samples/s, [12]\.[0-9]+ times random starts of the scenario as written \(' plan.yaml
accepts 'the last seed there is' plan "${two[@]}" "${none[@]}" --json --seed 9223372036854775807
check 'has seeds before it' python3 -c 'import json, sys
seen = json.load(open(sys.argv[1]))["stated"]
assert all(side["ended"] == seen["seeds"] == 4 for side in seen["sides"]), seen' "$out"
accepts 'with no time left' plan "${two[@]}" "${none[@]}" --json --budget '1 ms'
check 'two pairs' python3 -c 'import json, sys
seen = json.load(open(sys.argv[1]))["stated"]
assert seen["seeds"] == 4 and [side["ended"] for side in seen["sides"]] == [2, 2], seen' "$out"

# Wiring by latency tries each of 16 workers twice before it knows them, 2 in a round: until then a random start has two thirds of
# its throughput, and eight steps see nothing else.
learns=("$root/scenarios/swarm-64-learns.yaml" --set train.arithmetic=none --set train.until.steps=200)
accepts 'wiring that learns' plan "${learns[@]}" --json -o learns.yaml
cp "$out" learns.json
accepts 'and its run' sim learns.yaml -q --seed 1002 --set train.until.steps=100 --db l.db
accepts 'and that of a random start' sim "${learns[@]}" -q --seed 1002 --set 'cluster.allocation={method: random}' --db l.db
check 'the warm-up is not counted' python3 - <<'END'
import json, sqlite3
plan = json.load(open("learns.json"))
seen, key = plan["stated"], "throughput_samples_per_s"
assert not seen["whole"] and seen["rounds"] == 24 and seen["rounds_not_counted"] == 16, seen
closed = [[row[0] for row in sqlite3.connect("l.db").execute("SELECT closed_s FROM rounds WHERE run = ? ORDER BY round", (run,))]
          for run in (1, 2)]
for side, run in ((1, closed[0]), (0, closed[1])): # the same rounds of the same run
    rate = seen["sides"][side][key]["values"][0]
    assert abs(rate * (run[23] - run[15]) / (8 * 32) - 1) < 1e-6, (rate, run)
times, trial = seen["plan_against"][0][key]["times"], plan[key] / plan["random_throughput_samples_per_s"]["mean"]
later = (closed[1][199] - closed[1][23]) / 176 / ((closed[0][99] - closed[0][23]) / 76)
assert trial > 1.3 * later, (trial, later) # what eight steps say
assert times["low95"] < 1.05 * later and later < 1.05 * times["high95"], (times, later)
END

# ---- a trace for each seed, until a loss ----------------------------------------------------------------------------------

world=("$root/scenarios/plan-world.yaml" --set train.until.loss=4.0 --set plan='{objective: time-to-loss, search: {schedule.in_flight: [4]}}')
accepts 'traces' plan "${world[@]}" --json --confirm 3 -o world.yaml --db w.db
check 'each seed has its own, which the pair shares' python3 - "$out" <<'END'
import json, sqlite3, sys
seen = json.load(open(sys.argv[1]))["confirmed"]
assert seen["traces"] == "drawn" and [side["name"] for side in seen["sides"]] == ["random start", "plan"], seen
assert all(side["ended"] == side["reached"] == 3 and side["impossible"] == 0 for side in seen["sides"]), seen
plan, random = seen["sides"][1]["time_to_target_s"]["values"], seen["sides"][0]["time_to_target_s"]["values"]
assert len(set(plan)) == 3 and all(a < b for a, b in zip(plan, random)), (plan, random)
against = seen["plan_against"][0]["time_to_target_s"]
assert against["times"]["mean"] > 1.05 and against["difference"]["mean"] < 0, against
END

# ---- what cannot be -------------------------------------------------------------------------------------------------------

accepts 'random starts that do not fit' plan "$root/scenarios/t4-a100-both.yaml" --set train.arithmetic=none --set train.until.steps=2 \
	--set schedule.microbatch=16 --set schedule.global_batch=1024 --set schedule.in_flight=36 --confirm 2 --budget '1 s'
check 'are counted, with the reason' grep -qE '^random start: 2 of 2 runs cannot be, and their pairs are left out; the first: stage . needs .* GB on worker .*; any of these would do: ' "$out"
check 'the plan is there' grep -qE '^plan +[0-9.]+( ± [0-9.]+)? .* 2 of 2 ' "$out"

plan
