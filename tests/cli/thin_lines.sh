#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# thin_lines.sh - pipelines of known passes, also over lines that are slower than their stages: `skep sim` against recurrences by hand (thin_lines.py), in
# which a line serves the messages of two workers one after the other; and what `streams` makes of it.
set -u
. tests/cli/lib.sh
needs python3 sqlite3

eight_blocks

scenario() { # scenario KIND STAGES MODEL_CHUNKS MICROBATCHES RATE LATENCY [STREAMS]: makes topology.yaml and scenario.yaml
	local chunks=
	[ "$3" -eq 1 ] || chunks="model_chunks: $3, "
	[ -z "${recomputed:-}" ] || chunks+="checkpoint_activations: $recomputed, "
	cat >topology.yaml <<-END
	name: $2 in a row
	source: Assumed for this test.
	directory: here
	${7:+streams: $7}
	sites:
	  here: {machines: [{count: $2, gpu: steady}], inside: {bandwidth: $5, latency: $6}}
	END
	cat >scenario.yaml <<-END
	name: $1 over thin lines
	seed: 1
	model: {file: model.yaml, stages: $2}
	cluster: {topology: topology.yaml, allocation: {method: strided}, compute: {predictor: table, outside: refuse}}
	schedule: {pipeline: $1, ${chunks}global_batch: $4, microbatch: 1}
	train: {arithmetic: none, optimizer: {name: adamw, lr: 1.0e-4}, until: {steps: 1}}
	END
}

close() { # close NAME SEEN WANTED: within 1 ms, since messages have headers, which are not in the recurrences
	if awk "BEGIN { exit !($2 - $3 < 0.001 && $3 - $2 < 0.001) }" </dev/null; then
		pass "$1: $3 s"
	else
		fail "$1" "$2 s, by hand $3 s"
	fi
}

# What `skep check` expects of the passes, by arithmetic on means, is near; but for chunks that wait for each other.
expected() { # expected NAME WANTED
	local told
	told=$("$skep" check scenario.yaml --json -q | python3 -c 'import json, sys; print(json.load(sys.stdin)["expected"]["passes_s"])')
	if awk "BEGIN { exit !($told > 0.85 * $2 && $told < 1.15 * $2) }" </dev/null; then
		pass "$1, as expected"
	else
		fail "$1, as expected" "$told s, by hand $2 s"
	fi
}

as_by_hand() { # as_by_hand KIND STAGES MODEL_CHUNKS MICROBATCHES RATE_BIT LATENCY_MS
	scenario "$1" "$2" "$3" "$4" "$5 bit/s" "$6 ms"
	local name="$1, $2 stages, $4 microbatches, $5 bit/s, $6 ms" wanted
	wanted=$(python3 "$root/tests/cli/thin_lines.py" "$1" "$2" "$3" "$4" 8388608 "$5" "$(awk "BEGIN { print $6 / 1000 }")" \
		"${recomputed:-false}")
	close "$name" "$(passes_span)" "$wanted"
	[ "$1" = interleaved ] || expected "$name" "$wanted"
}

# ---- a line serves in order ---------------------------------------------------------------------------------------------

scenario gpipe 8 1 64 '1 Gbit/s' '10 ms'
close 'GPipe in eight stages over 1 Gbit/s' "$(passes_span)" 9.967

for kind in gpipe 1f1b; do
	as_by_hand $kind 8 1 64 1e9 10
	as_by_hand $kind 8 1 64 3e8 10
	"$skep" check scenario.yaml >"$out" 2>"$err"
	check "$kind: the first line is as busy as any" grep -q '^ *busiest .*: the connection from worker 0, a steady, to worker 1$' "$out"
	as_by_hand $kind 4 1 16 2e9 100
	as_by_hand $kind 2 1 32 5e8 1
done
for rate in 1e9 3e8 1e10; do
	as_by_hand interleaved 4 2 16 $rate 10
done
as_by_hand interleaved 2 4 8 1e9 5

# ---- activations that are recomputed ------------------------------------------------------------------------------------

# The last stage goes backwards right after it went forwards, and has nothing to recompute unless it is asked to: with all of them it
# takes 18 ms more for each of its blocks, and fits more of them into its memory.
for recomputed in true all; do
	as_by_hand 1f1b 2 1 16 1e10 1
	as_by_hand interleaved 4 2 16 1e10 1
	as_by_hand 1f1b 8 1 64 1e10 1
	"$skep" check scenario.yaml --json >"$recomputed.json" 2>"$err"
done
recomputed=true
scenario 1f1b 2 1 2 '10 Tbit/s' '0 ms'
close 'two microbatches in two stages, 1f1b' "$(passes_span)" 0.720
recomputed=all
scenario 1f1b 2 1 2 '10 Tbit/s' '0 ms'
close 'the same, recomputed in the last stage too' "$(passes_span)" 0.864
recomputed=
last_keeps() { # the same but for the last stage, which keeps what its blocks do for one microbatch, and does not repeat its forward pass
	python3 - <<-'END'
	import json
	some, every = (json.load(open(name + ".json")) for name in ("true", "all"))
	assert some["recomputes"] == 7 * [True] + [False] and every["recomputes"] == 8 * [True], some["recomputes"]
	for stage in range(8):
	    less = every["stages"][stage]["backward_s"] - some["stages"][stage]["backward_s"]
	    assert abs(less - (0.018 if stage == 7 else 0)) < 1e-6, (stage, less)
	END
}
check 'the check says so of each stage' last_keeps

# ---- streams ------------------------------------------------------------------------------------------------------------

# With a connection for each, all that is under way creeps, and the next stage waits for it.
scenario gpipe 8 1 64 '1 Gbit/s' '10 ms' 1
one=$(passes_span)
close 'one stream is the default' "$one" 9.967
scenario gpipe 8 1 64 '1 Gbit/s' '10 ms' 2
two=$(passes_span)
scenario gpipe 8 1 64 '1 Gbit/s' '10 ms' each
each=$(passes_span)
close 'a stream for each message is what it was' "$each" 20.519
if awk "BEGIN { exit !($one < $two && $two < $each) }" </dev/null; then
	pass 'two streams lie between'
else
	fail 'two streams lie between' "$one s, $two s, $each s"
fi

"$skep" check scenario.yaml >"$out" 2>"$err"
check 'the check says so' grep -q 'network .*each message has a connection of its own' "$out"

plan
