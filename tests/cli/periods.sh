#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# periods.sh - periodic sync in which each stage has a period of its own, simulated: of each stage the bytes of a run in which all
# have that period, the step that `skep check` expects, what goes on from states between two sums, and what is refused.
set -u
. tests/cli/lib.sh
needs python3 sqlite3

descent periods 6 384 24
diloco=(--set sync.method=diloco)

# ---- bytes, by any collective: of a round the mean, and in a run that of whole cycles
for collective in ring tree butterfly chain halving-doubling parameter-server; do
	how=("${diloco[@]}" --set "sync.collective=$collective")
	for every in 4 12 '[4, 12]'; do
		accepts "$collective, $every, planned" check swarm.yaml --json "${how[@]}" --set "sync.every=$every"
		cp "$out" "plan-$every.json"
		accepts "$collective, $every" sim swarm.yaml --json -q "${how[@]}" --set "sync.every=$every" --db "$collective.db"
	done
	bytes() {
		python3 - "$1" <<-'END'
		import json, sqlite3, sys
		four, twelve, each = (json.load(open(f"plan-{every}.json")) for every in ("4", "12", "[4, 12]"))
		of = lambda plan: [s["sync_bytes"] for s in plan["stages"]]
		db = sqlite3.connect(sys.argv[1] + ".db")
		sent = [b for b, in db.execute("SELECT bytes_sync FROM runs ORDER BY id")]
		assert (four["rounds"], twelve["rounds"], each["rounds"]) == (6, 2, 6)
		assert of(each)[0] == of(four)[0] and 0 <= of(twelve)[1] / 3 - of(each)[1] < 1, (of(four), of(twelve), of(each))
		assert sent == [6 * sum(of(four)), 2 * sum(of(twelve)), 6 * of(four)[0] + 2 * of(twelve)[1]], sent
		assert each["stages"][0]["ring_segments"] == four["stages"][0]["ring_segments"]
		assert each["periodic"]["every"] == [4, 12] and each["periodic"]["inner_steps"] == 4 and "every" not in four["periodic"]
		kinds = dict(db.execute("SELECT stage, count(*) FROM ops WHERE run = 3 AND kind = 'pseudo_grad' GROUP BY 1"))
		assert kinds == {0: 3 * 6, 1: 3 * 2}, kinds
		END
	}
	check "$collective: each stage has the bytes of its own period" bytes "$collective"
done

# ---- one number for all, in a list or not
accepts 'four' sim swarm.yaml --json -q "${diloco[@]}" --set sync.every=4
accepts 'four and four' sim swarm.yaml --json -q "${diloco[@]}" --set 'sync.every=[4, 4]'
check 'are the same, to the bit' test "$(sqlite3 skep.db 'SELECT count(DISTINCT loss) FROM rounds')$(sqlite3 skep.db 'SELECT count(DISTINCT digest) FROM runs')" = 61
accepts 'one period in a list' sim "$root/scenarios/diloco-periods.yaml" -q --set 'sync.every=[2, 2, 2, 2]' --set train.schedule=null \
	--set train.until.steps=60 --db law.db
accepts 'which a law takes' fit --db law.db
accepts 'in the order of links' sim swarm.yaml --json -q "${diloco[@]}" --set 'sync.every=[8, 4]' --set sync.ring_order=links
accepts 'what is gathered' sim swarm.yaml --json -q "${diloco[@]}" --set 'sync.every=[8, 4]' --set sync.collective=butterfly --set sync.aggregate=trimmed-mean
accepts 'varied' sweep swarm.yaml -q "${diloco[@]}" --vary 'sync.every=[4, 8],[8, 4],4' --db swept.db
check 'three runs' test "$(sqlite3 swept.db 'SELECT count(*), count(DISTINCT bytes_sync) FROM runs')" = '3|3'
accepts 'no whole cycle' check swarm.yaml "${diloco[@]}" --set 'sync.every=[4, 16]'
check 'it is said' grep -q 'the run ends with a sum of every stage: 32 steps, not the 24 of train.until.steps' "$out" "$err"
check 'and who sums when' grep -q 'by stage, workers sum every 4, 16 steps; bytes of a round are the mean' "$out" "$err"
accepts 'a run within the longest' check swarm.yaml "${diloco[@]}" --set 'sync.every=[2, 8]' --set train.until.steps=4
check 'has sums before its end' sh -c '! grep "is longer than the run" "$1" "$2" && grep -q "of every stage: 8 steps, not the 4 of" "$1"' - "$out" "$err"
accepts 'the same for programs' check swarm.yaml "${diloco[@]}" --set 'sync.every=[2, 8]' --set train.until.steps=4 --json
check 'is no longer than the run' grep -q '"longer_than_run":[[:space:]]*false' "$out"
check 'nor may it end elsewhere' sh -c '! grep "between two sums of a stage" "$1"' - "$out"
accepts 'a run that a loss may end' check swarm.yaml "${diloco[@]}" --set 'sync.every=[2, 8]' --set train.until.loss=1000000
check 'may end between two sums' grep -q 'a run that time, usd or loss ends may end between two sums of a stage' "$out"
accepts 'as it does' sim swarm.yaml --json -q "${diloco[@]}" --set 'sync.every=[2, 8]' --set train.until.loss=1000000 --db short.db
check 'behind two steps' test "$(sqlite3 short.db 'SELECT steps FROM runs')" = 2
refuses 'a law has one' 'from stage to stage: a law has one H' fit 3 --db "$PWD/ring.db"

# ---- the step that is expected: between sums of a thin line in each round and in every fourth
thin=("${diloco[@]}" --set cluster.topology="$root/topologies/two-datacentres.yaml" --set train.arithmetic=none --set train.until.steps=64
	--set cluster.allocation.method=strided)
for every in 2 8 '[2, 8]' '[8, 2]'; do
	accepts "$every expected" check swarm.yaml --json "${thin[@]}" --set "sync.every=$every"
	cp "$out" "expected-$every.json"
	accepts "$every simulated" sim swarm.yaml --json -q "${thin[@]}" --set "sync.every=$every"
	cp "$out" "simulated-$every.json"
done
steps() {
	python3 - <<-'END'
	import json
	expected, simulated = {}, {}
	for every in ("2", "8", "[2, 8]", "[8, 2]"):
	    expected[every] = json.load(open(f"expected-{every}.json"))["expected"]["step_s"]
	    run = json.load(open(f"simulated-{every}.json"))
	    simulated[every] = run["time_s"] / run["steps"]
	for mixed in ("[2, 8]", "[8, 2]"):
	    assert expected["8"] < expected[mixed] <= expected["2"], expected
	    # as near as where all stages have one
	    off = max(abs(expected[e] / simulated[e] - 1) for e in ("2", "8"))
	    assert abs(expected[mixed] / simulated[mixed] - 1) < off + 0.05, (expected, simulated)
	END
}
check 'the step is as near as with one period' steps

# ---- states: one worker in each stage, so what it keeps between two sums is all that there is
descent alone 2 64 32
kept=("${diloco[@]}" --set 'sync.every=[2, 8]' --set 'checkpoint={every: 1, to: kept}' --json -q --db kept.db)
accepts 'whole' sim swarm.yaml "${kept[@]}"
accepts 'half' sim swarm.yaml "${kept[@]}" --set train.until.steps=16 --write-checkpoints
rm kept/*-version-8.kept
accepts 'from behind the seventh round' sim swarm.yaml "${kept[@]}" --resume
check 'as if it had not ended, to the bit' test "$(sqlite3 kept.db 'SELECT min(round), count(*) FROM rounds WHERE run = 3;
	SELECT count(*) FROM rounds a JOIN rounds b USING (round, loss) WHERE a.run = 1 AND b.run = 3')" = "$(printf '7|9\n9')"
accepts 'the first stage' sim swarm.yaml "${kept[@]}" --set 'sync.every=[8, 2]' --set checkpoint.to=other

# ---- lost and run again
place 6
descent lossy 6 384 24
printf '%s,join,n%d\n' 0 1 0 2 0 3 0 4 0 5 0 6 >churn.csv
printf '0.05,leave,n1\n0.1,leave,n2\n0.3,join,n1\n0.35,join,n2\n100,end,\n' >>churn.csv
for lost in report rerun; do
	accepts "with losses: $lost" sim swarm.yaml --json -q "${diloco[@]}" --set 'sync.every=[4, 8]' --set cluster.compute_scale=5000 \
		--set cluster.trace.file=churn.csv --set 'directory.heartbeat=5 ms' --set 'directory.timeout=20 ms' \
		--set "schedule.on_loss=$lost" --db lossy.db --set train.until.steps=80
done
check 'each is counted once' test "$(sqlite3 lossy.db "SELECT group_concat(DISTINCT verdict) FROM v_ledger; SELECT min(preemptions), min(steps) FROM runs")" = "$(printf 'kept\n2|80')"

# ---- what is refused
each=("${diloco[@]}" --set 'sync.every=[4, 8]')
refuses 'too few' 'sync.every: a list has the steps of each stage, 2 of them, and here are 1' check swarm.yaml "${diloco[@]}" --set 'sync.every=[4]'
refuses 'no multiple' 'sync.every: of two stages one would sum every 4 steps and one every 6; the longer has to be a multiple' check swarm.yaml \
	"${diloco[@]}" --set 'sync.every=[4, 6]'
refuses 'none at all' 'expected a whole decimal number from 1' check swarm.yaml "${diloco[@]}" --set 'sync.every=[4, 0]'
refuses 'each as it can' 'expected a whole decimal number from 1' check swarm.yaml "${diloco[@]}" --set 'sync.every=[4, auto]'
refuses 'a mean' 'sync.mean_inner_steps: comes with `every: auto` alone' check swarm.yaml "${each[@]}" --set sync.mean_inner_steps=4
refuses 'a step at a time' 'sync.every: comes with' check swarm.yaml --set 'sync.every=[4, 8]'
for method in streaming async gossip; do
	refuses "$method" "sync.every: a number for each stage goes with .method: diloco. alone, .* with .method: $method" check swarm.yaml "${each[@]}" \
		--set "sync.method=$method"
done
refuses 'delayed' 'sync.every: a number for each stage goes .* with `delayed: true`' check swarm.yaml "${each[@]}" --set sync.delayed=true
refuses 'beside the passes' 'sync.every: .* does not go with sync.overlap' check swarm.yaml "${each[@]}" --set schedule.pipeline=1f1b --set sync.overlap=true
refuses 'candidates' 'sync.every: .* does not go with train.init.candidates' check swarm.yaml "${each[@]}" --set 'train.init={candidates: 2, steps: 12}'
refuses 'a tied table' 'sync.every: .* does not go with a head that is tied' check "$root/scenarios/shakespeare.yaml" --set model.file="$root/tests/bad/model-tied.yaml" \
	"${diloco[@]}" --set 'sync.every=[4, 8, 8, 4]' --set model.stages=4
refuses 'a plan' 'sync.every: `skep plan` forecasts rounds in which all stages sum' plan swarm.yaml "${each[@]}"
plan
