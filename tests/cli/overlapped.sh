#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# overlapped.sh - how long a round takes while sums travel, by hand. Of streaming DiLoCo, with steps of c, rounds of n of them, an overlap
# of k and a sum that takes S: (n - k) c + max(k c, S), since a worker waits that has made its overlap; without a deadline
# max(n c, S). And DiLoCo with one inner step takes what a synchronous step of all takes.
set -u
. tests/cli/lib.sh
needs python3 sqlite3

# One block of 144 ms forward and 288 ms backward, with 12 h^2 + 13 h = 12,596,224 parameters, and a head of 2 h.
steady one-block block,1,1,144000,288000,0.000001,1000000,1000000 head,1,1,0.000001,0.000001,0.000001,1,1
cat >model.yaml <<'END'
name: one-block
kind: transformer
transformer: {hidden: 1024, sequence: 2048, blocks: 1, vocabulary: 2}
END

scenario() { # scenario WORKERS RATE LATENCY
	cat >topology.yaml <<-END
	name: $1 at once
	source: Assumed for this test.
	directory: here
	sites:
	  here: {machines: [{count: $1, gpu: steady}], inside: {bandwidth: $2, latency: $3}}
	END
	cat >scenario.yaml <<-END
	name: overlap
	seed: 1
	model: {file: model.yaml, stages: 1}
	cluster: {topology: topology.yaml, allocation: {method: strided}, compute: {predictor: table, outside: refuse}}
	schedule: {global_batch: 64, microbatch: 1}
	train: {arithmetic: none, optimizer: {name: adamw, lr: 1.0e-4}, until: {steps: 40}}
	END
}

# The mean time of a round, from the second one on.
round_s() { # round_s OPTION ..
	rm -f runs.db
	"$skep" sim -q scenario.yaml --db runs.db "$@" >"$out" 2>"$err" || cat "$err" >&2
	sqlite3 runs.db "SELECT printf('%.6f', (max(begin_s) - min(begin_s)) / (count(*) - 1)) FROM ops WHERE worker = 0 AND round > 0
		AND kind = '${seen:-pseudo_grad}'"
}

close() { # close NAME SEEN WANTED WITHIN: in seconds
	if awk "BEGIN { exit !($2 - $3 < $4 && $3 - $2 < $4) }" </dev/null; then
		pass "$1: $3 s"
	else
		fail "$1" "$2 s, by hand $3 s"
	fi
}

# ---- the deadline ---------------------------------------------------------------------------------------------------------

# c = 32 x 432 ms = 13.824 s, n = 4. Half of 12,598,272 parameters in fp32 are a fragment; each of two workers sends half of that twice,
# 25.2 MB: over 5 Mbit/s S = 40.31 s, nearly three steps. Which worker gets the last microbatch may cost one of 0.432 s.
scenario 2 '5 Mbit/s' '0 ms'
for overlap in 0 1 2 3 4; do
	close "an overlap of $overlap" \
		"$(round_s --set "sync={method: streaming, every: 8, fragments: 2, overlap_steps: $overlap}")" \
		"$(awk "BEGIN { k = $overlap * 13.824; s = 40.31; print 4 * 13.824 - k + (k > s ? k : s) }" </dev/null)" 0.9
done
for overlap in 1 3; do
	close "an overlap of at least $overlap" \
		"$(round_s --set "sync={method: streaming, every: 8, fragments: 2, overlap_steps: $overlap, overlap_deadline: false}")" \
		55.296 0.9
done

# ---- steps that are no multiple of the fragments ---------------------------------------------------------------------------

# 7 steps and 3 fragments: sums behind steps 2, 4 and 7 of each cycle, so behind 2, 4, 7, 9, 11, 14, .. of the run; 40 steps end behind
# 42. A third of the parameters takes S = 26.87 s.
run=$("$skep" sim -q scenario.yaml --db cycle.db --json \
	--set "sync={method: streaming, every: 7, fragments: 3, overlap_steps: 0}" 2>"$err")
steps=$(echo "$run" | python3 -c 'import json, sys; print(json.load(sys.stdin)["steps"])')
[ "$steps" = 42 ] && pass "rounds of 2, 2 and 3 steps end behind 42" || fail "steps of uneven rounds" "$steps"
counted=$(sqlite3 cycle.db "SELECT group_concat(counted, ' ') FROM (SELECT counted FROM stage_rounds ORDER BY round LIMIT 6)")
[ "$counted" = "128 128 192 128 128 192" ] && pass "their microbatches: $counted" || fail "their microbatches" "$counted"
for round in 1 2 3 4 5; do
	took=$(sqlite3 cycle.db "SELECT sum(CASE round WHEN $round THEN begin_s ELSE -begin_s END)
		FROM ops WHERE worker = 0 AND kind = 'pseudo_grad' AND round BETWEEN $round - 1 AND $round")
	close "round $round of seven steps in three fragments" "$took" \
		"$(awk "BEGIN { print ($round % 3 == 2 ? 3 : 2) * 13.824 + 26.87 }" </dev/null)" 0.9
done
# A sum for each of 7 steps at most, and each step has as many bytes in reductions as there are fragments for it.
bytes() { # bytes EVERY FRAGMENTS
	"$skep" sim -q scenario.yaml --db :memory: --json --set train.until.steps=42 \
		--set "sync={method: streaming, every: $1, fragments: $2, overlap_steps: 1}" 2>"$err" |
		python3 -c 'import json, sys; print(json.load(sys.stdin)["bytes_sync"])'
}
uneven=$(bytes 7 3) even=$(bytes 7 7) many=$(bytes 7 100)
[ "$many" = "$even" ] && pass "a hundred fragments of seven steps are seven" || fail "a hundred fragments" "$many, $even"
awk "BEGIN { exit !($uneven > 0.99 * $even && $uneven < 1.01 * $even) }" </dev/null &&
	pass "whatever the fragments, all is summed once in seven steps" || fail "bytes of fragments" "$uneven, $even"

# ---- sums beside the last backward pass -------------------------------------------------------------------------------------

# Four blocks, one microbatch for each of two data parallel workers: 0.576 s forward, 4 x 0.288 s back. A block is a bucket of 50.38 MB,
# which takes 0.2015 s over 2 Gbit/s, less than a block takes to go back; so of a step's sums the last one alone is waited for. DiLoCo
# makes H - 1 steps without sums and one like that, with fragments or without where there are as many as steps.
seen=step
scenario 2 '2 Gbit/s' '0 ms'
sed -i 's/^schedule:.*/schedule: {pipeline: 1f1b, global_batch: 2, microbatch: 1}/' scenario.yaml
sed 's/blocks: 1/blocks: 4/' model.yaml >four.yaml
four=(--set model.file=four.yaml --set train.until.steps=16)
beside='overlap: true, bucket: 40 MiB'
close 'gradients beside the pass' "$(round_s "${four[@]}" --set "sync={method: step, $beside}")" 1.9295 0.01
close 'one inner step, beside the pass' "$(round_s "${four[@]}" --set "sync={method: diloco, every: 1, $beside}")" 1.9295 0.01
close 'one, in fragments' "$(round_s "${four[@]}" \
	--set "sync={method: streaming, every: 1, fragments: 8, overlap_steps: 0, $beside}")" 1.9295 0.01
close 'one, not beside the pass' "$(round_s "${four[@]}" --set 'sync={method: diloco, every: 1}')" 2.534 0.01
close 'four inner steps, beside the pass' "$(round_s "${four[@]}" --set "sync={method: diloco, every: 4, $beside}")" 7.1135 0.02
close 'four, in two fragments' "$(round_s "${four[@]}" \
	--set "sync={method: streaming, every: 4, fragments: 2, overlap_steps: 0, overlap: true}")" 3.859 0.02
scenario 2 '5 Mbit/s' '0 ms'

# ---- one inner step ---------------------------------------------------------------------------------------------------------

# On four workers over links of which a sum takes one step to twenty of them.
seen=step
for rate in 4 16 100; do
	scenario 4 "$rate Mbit/s" '5 ms'
	for updates in false true; do
		step=$(round_s --set "sync={method: step, delayed: $updates}")
		one=$(round_s --set "sync={method: diloco, every: 1, delayed: $updates}")
		close "one inner step at $rate Mbit/s, delayed: $updates" "$one" "$step" "0.02 * $step"
	done
done

plan
