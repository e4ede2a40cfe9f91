#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# outage.sh - the directory is lost and goes on (directory.lost_at), simulated: when, with what, and what it costs, against figures
# by hand. And what is learnt, recorded and refused.
set -u
. tests/cli/lib.sh
needs python3 sqlite3

ln -s "$root/topologies/gpus" gpus
printf 'name: one layer\nkind: given\ngiven:\n  microbatch: 1\n  layers:\n' >model.yaml
printf '    - {parameters: 1000, activations: 8 kB, forward: 100 ms, backward: 200 ms, step: 1 ms}\n' >>model.yaml
cat >topology.yaml <<'END'
name: in one place
source: assumed for this test
directory: there
sites:
  here:
    machines: [{count: 2, gpu: v100, price: 36 USD/h}]
    inside: {bandwidth: 100 Gbit/s, latency: 0.01 ms}
  there: {}
links:
  - {between: [here, there], bandwidth: 100 Gbit/s, latency: 5 ms}
END
cat >scenario.yaml <<'END'
name: an outage
seed: 1
model: {file: model.yaml, stages: 1}
cluster: {topology: topology.yaml}
schedule: {global_batch: 6, microbatch: 1}
directory: {heartbeat: 100 ms, timeout: 400 ms}
train: {arithmetic: none, optimizer: {name: sgd, lr: 1.0e-1}, until: {steps: 6}}
END

same() { # same NAME SEEN WANTED
	if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "seen: $2"$'\n'"wanted: $3"; fi
}

play() { # play OPTION...: a run alone in runs.db, its result in $out
	rm -f runs.db
	run_skep sim scenario.yaml -q --json --db runs.db "$@"
	same "runs: $*" "$status" 0
}

said() { # said KEY: of the result
	sed -n "s/.*[{,]\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p" "$out"
}

near() { # near NAME SEEN WANTED: to 10 us, as times of messages are not counted
	check "$1: $2 for $3" awk "BEGIN { exit !($2 - $3 < 0.00001 && $3 - $2 < 0.00001) }"
}

books() { # books NAME: each gradient of the rounds that stand is counted once or lost
	same "$1: the books" "$(sqlite3 runs.db "SELECT verdict FROM v_ledger UNION SELECT verdict FROM v_counted_once")" kept
}

resumed="SELECT time_s FROM notes WHERE kind = 'resumed'"

play
clean_s=$(said time_s)

# Lost at 2 s, in the third step, and back at 6 s. The workers knock 1, 2 and 4 s after one another, so at 3, 5 and 9 s; the last
# time they are let in, by six ways of 5 ms there and as many back. Nothing was kept: all six steps are made from then on, as if
# the run began there.
lost=(--set 'directory.lost_at=[2 s]' --set 'directory.back_after=4 s')
play "${lost[@]}"
near 'begins again' "$(sqlite3 runs.db "$resumed")" 9.06
near 'ends' "$(said time_s)" "$(awk "BEGIN { printf \"%.9f\", 9.06 + $clean_s }")"
same 'steps, rounds made again' "$(said steps) $(said rounds_again) $(said outages)" '6 2 1'
same 'issued, counted, lost' "$(said issued) $(said counted) $(said lost)" '48 36 12'
books 'from nothing'
same 'rounds stand once' "$(sqlite3 runs.db "SELECT count(*), min(opened_s) > 9 FROM rounds")" '6|1'
same 'machines stay' "$(sqlite3 runs.db "SELECT count(*), min(ended_s - started_s) > 14 FROM incarnations")" '2|1'
near 'and are paid for' "$(said cost_usd)" "$(awk "BEGIN { printf \"%.9f\", 0.02 * $(said time_s) }")"
check 'said' grep -q 'at 9.1 s: the directory was lost, and is there again; all go on with round 0' "$err"
run_skep check scenario.yaml "${lost[@]}"
check 'said by check' grep -q 'directory lost at 2 s, back after 4 s; all begin again 7.06 s after the loss, with the first step' "$out"

# Each step is kept: its state at 100 kB/s, which takes 80 ms beside the next one. Lost at 2.1 s, when that of two steps is kept,
# it is read again before all begin, and what is left takes as long as a run of four steps.
kept=(--set 'checkpoint={every: 1, to: kept, bandwidth: 100 kB/s}' --set directory.back_with=checkpoints)
run_skep check scenario.yaml --json
state_s=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["joins"]["state_bytes"] / 1e5)' "$out")
play "${kept[@]}" --set train.until.steps=4
clean_s=$(said time_s)
play "${lost[@]}" --set 'directory.lost_at=[2100 ms]' "${kept[@]}"
near 'reads what was kept' "$(sqlite3 runs.db "$resumed")" "$(awk "BEGIN { printf \"%.9f\", 9.16 + $state_s }")"
same 'goes on behind what was kept' "$(sqlite3 runs.db "SELECT round FROM notes WHERE kind = 'resumed'")" 2
same 'the open round alone is lost' "$(said rounds_again) $(said counted) $(said lost)" '0 36 0'
near 'ends' "$(said time_s)" "$(awk "BEGIN { printf \"%.9f\", 9.16 + $state_s + $clean_s }")"
books 'from what was kept'

# Every other step is: the third one is made again, if it is lost in the fourth.
play "${lost[@]}" --set 'directory.lost_at=[3 s]' --set 'checkpoint={every: 2, to: kept}' --set directory.back_with=checkpoints
same 'one step again' "$(sqlite3 runs.db "SELECT round FROM notes WHERE kind = 'resumed'") $(said rounds_again) $(said lost)" '2 1 6'
books 'one step again'

# Behind the last step, whose state is kept: what the directory lacks is the last validation, and the run ends without it.
judged=("${lost[@]}" --set 'checkpoint={every: 1, to: kept}' --set 'train.validate={every: 6, microbatches: 60}')
play "${judged[@]}" --set 'directory.lost_at=[1000 s]'
judged_s=$(said time_s)
play "${judged[@]}" --set "directory.lost_at=[$(awk "BEGIN { print $judged_s - 1 }") s]"
same 'behind the last step' "$(said steps) $(said rounds_again) $(said lost) $(said outages)" '6 0 0 1'
near 'behind the last step: over when all have heard it' "$(said time_s)" "$(sqlite3 runs.db "SELECT time_s + 0.005 FROM notes WHERE kind = 'resumed'")"
same 'behind the last step: the run is done' "$(sqlite3 runs.db "SELECT status FROM runs")" done
check 'behind the last step: said' grep -q 'the directory was lost, and is there again; all steps are kept, and the run is over' "$err"
books 'behind the last step'

# Again, and once more while it is lost already, which changes nothing.
play "${kept[@]}" --set 'directory.lost_at=[2 s, 2500 ms, 5 s]' --set 'directory.back_after=0 s'
same 'as often as it is lost' "$(said outages) $(sqlite3 runs.db "SELECT count(*) FROM notes WHERE kind = 'resumed'")" '2 2'
books 'twice'

# b is gone while the directory is lost, and comes when it is there again; or it is gone before, and comes meanwhile.
trace() { # trace ROW...: makes trace.csv
	printf '%s\n' '# skep trace: who is there when. A row is seconds,join|leave|refused|end,name,gpu,zone' \
		'# unit: seconds since the trace began' '# source: assumed for this test' "$@" 1000,end >trace.csv
}
churn=(--set 'cluster.trace={file: trace.csv, any_gpu: true}')
trace 0,join,a 0,join,b 4,leave,b 11,join,b
play "${lost[@]}" "${churn[@]}" "${kept[@]}"
same 'gone meanwhile: lives' \
	"$(sqlite3 runs.db "SELECT worker, printf('%.0f', started_s), CASE WHEN ended_s < 5 THEN printf('%.0f', ended_s) ELSE 'end' END FROM incarnations ORDER BY 1, 2" | tr '\n' ' ')" \
	'0|0|end 1|0|4 1|11|end '
same 'gone meanwhile: is fenced' "$(sqlite3 runs.db "SELECT peer, time_s BETWEEN 9 AND 9.6 FROM notes WHERE kind = 'fenced'")" '1|1'
books 'gone meanwhile'
trace 0,join,a 0,join,b 1,leave,b 5,join,b
play "${lost[@]}" "${churn[@]}" "${kept[@]}"
same 'comes meanwhile: all of it' "$(sqlite3 runs.db "SELECT count(*) FROM rounds JOIN stage_rounds USING (run, round) WHERE opened_s > 9 AND members < 2")" 0
books 'comes meanwhile'

# One worker has one order of sums: what is learnt is the same to the bit, and so is a run again.
one=("$root/scenarios/one-worker.yaml" -q --json --db learnt.db --set train.until.steps=12)
run_skep sim "${one[@]}"
plain=$(said final_loss)
for every in 5 100; do
	run_skep sim "${one[@]}" --set 'directory.lost_at=[8 ms]' --set "checkpoint={every: $every, to: kept}"
	same "learns the same, kept every $every steps" "$(said final_loss) $(said outages)" "$plain 1"
	digest=$(said digest)
	run_skep sim "${one[@]}" --set 'directory.lost_at=[8 ms]' --set "checkpoint={every: $every, to: kept}"
	same "the same run again, kept every $every steps" "$(said digest)" "$digest"
done

# Whatever the method, the books are in order.
rm -f runs.db
for name in preempted delayed gossip async pipedream overlap churn; do
	run_skep sim "$root/scenarios/$name.yaml" -q --db runs.db --set train.arithmetic=none --set 'directory.lost_at=[3 s]' \
		--set 'checkpoint={every: 3, to: kept}'
	same "$name: ends" "$status" 0
done
same 'methods: each was lost' "$(sqlite3 runs.db "SELECT count(DISTINCT run) FROM notes WHERE kind = 'resumed'")" 7
same 'methods: the books' "$(sqlite3 runs.db "SELECT run, verdict FROM v_ledger WHERE verdict <> 'kept' UNION
	SELECT run, verdict FROM v_counted_once WHERE verdict NOT IN ('kept', 'not seen')")" ''

# With what workers hold: at 2 s two steps, of which none is kept. They knock at 9 s and hand it over, as fast as it would be kept, and
# are let in once more and read it. What is left takes as long as a run of four steps.
held=(--set directory.back_with=workers --set 'checkpoint={every: 100, to: kept, bandwidth: 100 kB/s}')
play "${held[@]:2}" --set train.until.steps=4
clean_s=$(said time_s)
play "${lost[@]}" "${held[@]}"
near 'held: begins again' "$(sqlite3 runs.db "$resumed")" "$(awk "BEGIN { printf \"%.9f\", 9.12 + 2 * $state_s }")"
near 'held: ends' "$(said time_s)" "$(awk "BEGIN { printf \"%.9f\", 9.12 + 2 * $state_s + $clean_s }")"
same 'held: the open round alone is lost' "$(said rounds_again) $(said counted) $(said outages)" '0 36 1'
books 'held'
held_digest=$(said digest)
run_skep check scenario.yaml "${lost[@]}" "${held[@]}"
check 'held: said by check' grep -q 'all begin again 7.28 s after the loss, with what workers hold' "$out"
play "${lost[@]}" "${held[@]:2}"
same 'held: also where the scenario does not say it' "$(said digest)" "$held_digest"
for other in 'sync={method: async, every: 2}' checkpoint=null; do
	run_skep check scenario.yaml "${lost[@]}" "${held[@]:2}" --set "$other"
	check "held: not with $other" grep -qE 'all begin again .*, with the (newest state|first step)' "$out"
done

# The machine that alone holds the newest state of its stage is gone meanwhile: nothing is held of that stage, and nothing kept.
two=(--set model.stages=2 --set 'model.file=two.yaml')
sed 's/\(    - .*\)/\1\n\1/' model.yaml >two.yaml
trace 0,join,a 0,join,b 5,leave,b 6,join,b
four=("${lost[@]}" --set 'directory.lost_at=[4 s]')
play "${four[@]}" "${held[@]}" "${two[@]}"
same 'held: of both stages' "$(sqlite3 runs.db "SELECT round > 0 FROM notes WHERE kind = 'resumed'") $(said rounds_again)" '1 0'
play "${four[@]}" "${held[@]}" "${two[@]}" "${churn[@]}"
same 'held: of a stage whose machine is gone' "$(sqlite3 runs.db "SELECT round FROM notes WHERE kind = 'resumed'") $(said rounds_again)" '0 1'
books 'held: of one stage'

# Without a flush a worker that is alone in its stage steps before the directory has heard of it, and may hold a round that was not closed.
# It goes on behind it, and that the round has no row is said.
sed 's/count: 2/count: 1/' topology.yaml >single.yaml
stream=(--set cluster.topology=single.yaml --set 'schedule={pipeline: pipedream, global_batch: 1, microbatch: 1}')
play "${stream[@]}"
same 'without a flush: closed 5 ms behind the step' "$(said steps) $(said rounds_unrecorded) $(sqlite3 runs.db "SELECT printf('%.3f', closed_s) FROM rounds
	WHERE round = 2")" '6 0 0.912'
play "${stream[@]}" "${held[@]}" --set 'directory.lost_at=[909 ms]' --set 'directory.back_after=4 s'
same 'held, without a flush: a round without books' "$(sqlite3 runs.db "SELECT round FROM notes WHERE kind = 'resumed'") $(
	sqlite3 runs.db 'SELECT group_concat(round) FROM rounds') $(said steps) $(said rounds_unrecorded) $(said rounds_again)" '3 0,1,3,4,5 5 1 0'
books 'held, without a flush'

# A stage of two workers whose sum takes 0.3 s, and one of a thousand numbers, which has its sum at once. It steps with the other one,
# so that a loss while that sums finds both before the step.
uneven=(--set cluster.topology=slow.yaml --set model.file=uneven.yaml --set model.stages=2 --set cluster.allocation.method=strided
	"${held[@]:0:2}" --set 'checkpoint={every: 100, to: kept}')
sed -e 's/count: 2/count: 4/' -e 's/bandwidth: 100 Gbit.s, latency: 0.01/bandwidth: 100 Mbit\/s, latency: 0.01/' topology.yaml >slow.yaml
sed -e 's/100 ms/50 ms/' -e 's/200 ms/100 ms/' -e 's/1000,/1000000,/' model.yaml >uneven.yaml
sed -n 's/1000000,/1000,/p' uneven.yaml >>uneven.yaml
for delayed in false true; do
	again=
	for ms in $(seq 1500 100 3400); do
		run_skep sim scenario.yaml -q --json "${uneven[@]}" --set sync.delayed=$delayed --set "directory.lost_at=[$ms ms]"
		again+=$(said rounds_again)
	done
	same "held, stages that sum for longer than others, delayed: $delayed: no round is made again" "$again" 00000000000000000000
done
play "${uneven[@]}"
together_s=$(said time_s) together=$(said digest)
play "${uneven[@]}" --set directory.back_with=null
same 'held: and so they do where the scenario does not say it' "$(said digest)" "$together"
play "${uneven[@]}" --set directory.back_with=checkpoints
check 'held: and not with `checkpoints`' [ "$(said digest)" != "$together" ]
check 'held: stages that step together take a step longer at most' awk "BEGIN { exit !($together_s <= $(said time_s) + 6 * 0.001) }"

# Word of a step takes 5 ms to the first stage and 105 ms to the second one: at a loss between the two the first one has made its
# step, and the second one holds its sum. It makes that step too, if nothing of the round was lost; not where the norm of all gradients
# is wanted for it.
sed -e 's/count: 2/count: 1/' -e 's/^  there: {}/  far: {machines: [{count: 1, gpu: v100, price: 36 USD\/h}]}\n&/' topology.yaml >far.yaml
cat >>far.yaml <<'END'
  - {between: [here, far], bandwidth: 100 Gbit/s, latency: 5 ms}
  - {between: [far, there], bandwidth: 100 Gbit/s, latency: 105 ms}
END
far=(--set cluster.topology=far.yaml --set directory.timeout='1 s' "${two[@]}" "${held[@]:0:2}" --set 'checkpoint={every: 100, to: kept}')
again() { # again OPTION...: rounds that are made again, by moment
	local ms text=
	for ms in $(seq 3000 80 5320); do
		run_skep sim scenario.yaml -q --json "${far[@]}" --set "directory.lost_at=[$ms ms]" "$@"
		text+=$(said rounds_again)
	done
	echo "$text"
}
none=$(printf '0%.0s' $(seq 30))
same 'held, a stage hears of its step 0.1 s late: no round is made again' "$(again)" "$none"
same 'held, a stage hears of its step late, delayed: no round is made again' "$(again --set sync.delayed=true)" "$none"
check 'held, a stage hears of its step late, clipped: rounds are made again' [ "$(again --set train.optimizer.clip_norm=1.0e-3)" != "$none" ]

# In shards each of two workers holds a part of the state, which has to be there of the same version: so it is, but within a step.
shards=(--set sync.zero=1 "${held[@]}")
again=
for ms in $(seq 1000 100 2950); do
	run_skep sim scenario.yaml -q --json "${shards[@]}" --set "directory.lost_at=[$ms ms]"
	again+=$(said rounds_again)
done
same 'held, in shards: no round is made again' "$again" "${none:0:20}"
play "${lost[@]}" "${shards[@]}"
same 'held, in shards: the open round alone is lost' "$(said rounds_again) $(said steps) $(said lost)" '0 6 0'
books 'held, in shards'

# That b is gone is known when the directory is lost already.
late=(--set 'cluster.trace={file: trace.csv, any_gpu: true, detection_delay: 500 ms}')
trace 0,join,a 0,join,b 1.9,leave,b 11,join,b
for with in checkpoints workers; do
	play "${lost[@]}" "${late[@]}" "${kept[@]}" --set "directory.back_with=$with"
	books "known while it is lost, with $with"
done

# One worker learns the same with what it holds; and whatever the method, no round is made again.
run_skep sim "${one[@]}" --set 'directory.lost_at=[8 ms]' "${held[@]}"
same 'held: learns the same' "$(said final_loss) $(said rounds_again) $(said outages)" "$plain 0 1"
rm -f runs.db
for name in preempted delayed gossip pipedream overlap churn diloco; do
	run_skep sim "$root/scenarios/$name.yaml" -q --db runs.db --set train.arithmetic=none --set 'directory.lost_at=[3 s]' \
		"${held[@]:0:2}" --set 'checkpoint={every: 100, to: kept}'
	same "held, $name: ends" "$status" 0
done
same 'held, methods: goes on behind the last round' "$(sqlite3 runs.db "SELECT count(*), sum(n.round = (SELECT max(round) + 1 FROM rounds r
	WHERE r.run = n.run AND closed_s < n.time_s)) FROM notes n WHERE kind = 'resumed'")" '7|7'
same 'held, methods: the books' "$(sqlite3 runs.db "SELECT run, verdict FROM v_ledger WHERE verdict <> 'kept' UNION
	SELECT run, verdict FROM v_counted_once WHERE verdict NOT IN ('kept', 'not seen')")" ''

# Also while reductions, as flows of the network, are on their way.
for ms in 3000 3040 3080 3120 3160 3200; do
	run_skep sim "$root/scenarios/two-datacentres.yaml" -q --set train.arithmetic=none --set simulate.collectives=flows \
		--set "directory.lost_at=[$ms ms]" --set directory.back_with=workers --set 'checkpoint={every: 100, to: kept}'
	same "held, as flows, at $ms ms" "$status" 0
done

# What check expects of a run has the losses of the directory in it.
within() { # within NAME PERCENT SEEN WANTED
	check "$1: $3 for $4" awk "BEGIN { exit !($3 > (1 - $2 / 100) * $4 && $3 < (1 + $2 / 100) * $4) }"
}
expects() { # expects NAME PERCENT OPTION...
	run_skep check scenario.yaml --json --set train.until.steps=40 "${@:3}"
	read -r expected_s expected_outages < <(python3 -c 'import json, sys; e = json.load(open(sys.argv[1]))["expected"]; print(e["time_s"], e["outages"])' "$out")
	play --set train.until.steps=40 "${@:3}"
	within "expected, $1" "$2" "$expected_s" "$(said time_s)"
	same "expected, $1: how often" "$expected_outages" "$(said outages)"
}

# Of two stages that step each for itself the first one is behind the other for most of the time, and then the run goes on with a
# checkpoint: on the mean of moments, over a fast line and over one that takes longer than passes.
sed -n 'p; /parameters: 1000/p' model.yaml >two.yaml
sed 's/latency: 0.01 ms/latency: 600 ms/' topology.yaml >long.yaml
for line in topology long; do
	check "expected, without a flush: $line" python3 - "$skep" "$line.yaml" <<-'END'
		import json, subprocess, sys
		skep, line = sys.argv[1:]
		def ask(command, at, *more):
		    settings = [f"cluster.topology={line}", "model.file=two.yaml", "model.stages=2", "cluster.allocation.method=strided",
		        "schedule={pipeline: pipedream, global_batch: 1, microbatch: 1}", "train.until.steps=60", "directory.back_after=2 s",
		        "checkpoint={every: 20, to: kept}", "directory.back_with=workers", f"directory.lost_at=[{at} s]"]
		    words = [word for setting in settings for word in ("--set", setting)]
		    return json.loads(subprocess.run([skep, command, "scenario.yaml", "--json", "-q", *more, *words], capture_output=True).stdout)
		moments = [13 + 0.537 * i for i in range(8)]
		played = sum(ask("sim", at, "--db", "moments.db")["time_s"] for at in moments)
		expected = sum(ask("check", at)["expected"]["time_s"] for at in moments)
		assert abs(expected / played - 1) < 0.06, (expected, played)
		END
done
often=(--set 'directory.lost_at=[7 s, 8 s, 22 s, 41 s, 1000 s]' --set 'directory.back_after=2 s')
expects 'none' 1
expects 'with what workers hold' 1 "${often[@]}" "${held[@]}"
expects 'with checkpoints' 2 "${often[@]}" --set 'checkpoint={every: 5, to: kept, bandwidth: 100 kB/s}' --set directory.back_with=checkpoints
expects 'with nothing' 1 "${often[@]}"
expects 'drawn' 2 --set 'directory.lost_every=15 s' "${held[@]}"
expects 'by time' 4 "${often[@]}" "${held[@]}" --set train.until.time='30 s'
run_skep check scenario.yaml --set train.until.steps=40 "${often[@]}" "${held[@]}"
check 'expected: said' grep -qE 'in that the directory is lost 3 times, which takes [0-9.]+ s with what is made again' "$out"

# Two machines of 36 USD/h cost 0.02 USD a second, also while the directory is lost: what they have cost before each loss counts, so
# the run ends with the first step of some 0.9 s behind 20 s.
for at in 2 '2 s, 12 s, 16.5'; do
	play --set "directory.lost_at=[$at s]" "${kept[@]}" --set train.until.steps=100 --set train.until.usd=0.4
	same "money, lost at $at s: what ends it" "$(said ended_by)" usd
	check "money, lost at $at s: when: $(said time_s) s for $(said cost_usd) USD" \
		awk "BEGIN { t = $(said time_s); u = $(said cost_usd); exit !(t >= 20 && t < 21 && u >= 0.4 && u < 0.42) }"
	books "money, lost at $at s"
done

# Candidates: nothing is kept in their trial of 5 rounds of some 0.4 s, and of the version behind it there is one of each; from the next
# one on no round is lost, and there is no second trial.
for at in 1.2 2.1 2.7; do
	rm -f runs.db
	run_skep sim "$root/scenarios/candidates.yaml" -q --json --db runs.db --set train.until.steps=20 --set "directory.lost_at=[$at s]" \
		--set 'directory.back_after=1 s' --set 'checkpoint={every: 3, to: kept}'
	same "candidates, lost at $at s: runs" "$status $(said steps)" '0 20'
	check "candidates, lost at $at s: where it goes on" python3 - "$at" <<-'END'
		import sqlite3, sys
		db = sqlite3.connect("runs.db")
		(resumed,), = db.execute("SELECT round FROM notes WHERE kind = 'resumed'")
		chosen = [t for t, in db.execute("SELECT time_s FROM notes WHERE kind = 'candidate_chosen'")]
		closed = {r for r, in db.execute("SELECT round FROM rounds")}
		assert closed == set(range(20)), closed
		if float(sys.argv[1]) < 2.5:
		    assert resumed == 0 and len(chosen) == 1 and chosen[0] > float(sys.argv[1]), (resumed, chosen)
		else:
		    assert resumed > 5 and len(chosen) == 1, (resumed, chosen)
		END
	books "candidates, lost at $at s"
done

# What is refused.
refused() { # refused WORDS OPTION...
	run_skep check scenario.yaml "${@:2}"
	check "refused: ${*:2}" [ "$status" = 2 ]
	check "why: $1" grep -qF -- "$1" "$err"
}
refused 'later times one after the other' --set 'directory.lost_at=[2 s, 2 s]'
refused 'the directory is not lost: say when' --set 'directory.back_after=2 s'
refused 'leave out either' --set 'directory.lost_every=2 h' --set 'directory.lost_at=[2 s]'
refused 'directory.lost_at' --set 'directory.lost_at=[-1 s]'
refused 'expected a time with its unit' --set 'directory.lost_at=[2]'
refused 'at most 256 times, not 257' --set "directory.lost_at=[$(seq -s ', ' -f '%g s' 257)]"
refused 'workers have nowhere to keep what they hold' "${lost[@]}" "${held[@]:0:2}"
refused 'holds no state of a step by itself' "${lost[@]}" "${held[@]}" --set 'sync={method: async, every: 2}'
refused 'begins with the `start` machines again' "${lost[@]}" --set 'cluster.scale={policy: price, start: 1}'
plan
