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
