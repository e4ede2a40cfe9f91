#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# sums.sh - all-reduces through `skep sim` against recurrences by hand (sums.py), with latency and without, in segments and chunks of
# several sizes; what `skep check` says of segments; and the planner's expected time of a step against the simulated one.
set -u
. tests/cli/lib.sh
needs python3 sqlite3

only_links

scenario() { # scenario KIND MEMBERS CHUNKS|- RATE_BIT LATENCY: makes star.yaml and scenario.yaml
	local chunks=
	[ "$3" = - ] || chunks=", chunks: $3"
	cat >star.yaml <<-END
	name: star of $2
	source: Assumed for this test.
	directory: here
	sites:
	  here: {machines: [{count: $2, gpu: fast, up: $4 bit/s, down: $4 bit/s}], inside: {bandwidth: 1000 Gbit/s, latency: $5}}
	END
	cat >scenario.yaml <<-END
	name: $1 of $2
	seed: 1
	model: {file: model.yaml, stages: 1}
	cluster: {topology: star.yaml}
	schedule: {global_batch: $2, microbatch: 1}
	sync: {collective: $1$chunks}
	train: {arithmetic: none, until: {steps: 1}}
	END
}

# From the first operation of the reduction to the last one's end.
sums_span() { # sums_span OPTION ..
	spanned "kind NOT IN ('forward', 'backward', 'step')" "$@"
}

within() { # within NAME SEEN WANTED PART
	if awk "BEGIN { exit !($2 - $3 < $4 * $3 && $3 - $2 < $4 * $3) }" </dev/null; then
		pass "$1: $3 s"
	else
		fail "$1" "$2 s, expected $3 s"
	fi
}

by_hand() { # by_hand KIND MEMBERS CHUNKS RATE_BIT LATENCY_MS
	python3 "$root/tests/cli/sums.py" "$1" "$2" $bytes "$3" "$4" "$(awk "BEGIN { print $5 / 1000 }")"
}

# Messages have headers, and some collectives answers of a header each, which are not in the recurrences.
as_by_hand() { # as_by_hand KIND MEMBERS CHUNKS RATE_BIT LATENCY_MS
	local chunks=$3
	case $1 in ring | chain | tree | butterfly) ;; *) chunks=- ;; esac
	scenario "$1" "$2" "$chunks" "$4" "$5 ms"
	within "$1 of $2, $3 chunks, $4 bit/s, $5 ms" "$(sums_span)" "$(by_hand "$1" "$2" "$3" "$4" "$5")" 0.002
}

# ---- each kind, with latency and without ----------------------------------------------------------------------------------

for latency in 0 5 100; do
	for n in 2 5 32; do
		as_by_hand ring $n 1 1e9 $latency
		as_by_hand ring $n 4 1e9 $latency
		as_by_hand chain $n 8 1e9 $latency
		as_by_hand butterfly $n 8 1e9 $latency
	done
	as_by_hand ring 8 7 1e9 $latency
	as_by_hand chain 8 64 1e9 $latency
	as_by_hand butterfly 16 1 1e9 $latency
	as_by_hand butterfly 16 3 1e8 $latency
	as_by_hand parameter-server 5 1 1e9 $latency
	as_by_hand all-to-all 5 1 1e9 $latency
	as_by_hand reduce-broadcast 8 1 1e9 $latency
	as_by_hand halving-doubling 8 1 1e9 $latency
	as_by_hand tree 7 8 1e9 $latency
done

# ---- the default hides the latency ------------------------------------------------------------------------------------------

# 62 hops of 2 MiB over 1 Gbit/s are 1.041 s; with 5 ms on each they would be 1.351 s.
scenario ring 32 - 1e9 '5 ms'
"$skep" check scenario.yaml >"$out" 2>"$err"
check 'the check says in how many segments' grep -q "sync .*each worker's part goes round the ring in segments, by stage: 3" "$out"
within 'a ring of 32 over 5 ms pays the latency once' "$(sums_span)" 1.046 0.002
within 'and so does one flow for each link' "$(sums_span --set simulate.collectives=flows)" 1.046 0.002
within 'in one piece it pays it at each hop' "$(sums_span --set sync.chunks=1)" 1.351 0.002

# Messages that have a connection each share the line, so the segments of a chunk come nearly all when it is over.
echo 'streams: each' >>star.yaml
each=$(sums_span)
check 'streams of their own hide little' awk "BEGIN { exit !($each > 1.25 && $each < 1.36) }"

# ---- the planner expects what is simulated ------------------------------------------------------------------------------------

# As `skep check` says it and `skep plan` takes it. Of other collectives than the ring tests/unit/test_planned.c has the same closed forms.
expected() {
	"$skep" check scenario.yaml --json -q >checked.json 2>"$err" || cat "$err" >&2
	python3 -c 'import json; print("%.6f" % json.load(open("checked.json"))["expected"]["reduction_s"])'
}

for latency in 0 5 20 100; do
	scenario ring 8 - 1e9 "$latency ms"
	within "the planner on a ring, $latency ms" "$(expected)" "$(sums_span)" 0.05
	scenario ring 6 1 1e9 "$latency ms"
	within "the planner on a ring in one piece, $latency ms" "$(expected)" "$(sums_span)" 0.05
done

plan
