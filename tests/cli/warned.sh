#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# warned.sh - what a user has not asked for and has to know: what of a trace is not played, local steps that outlast the run, the
# format of the numbers that times are of; and that what is said on stderr does not land amid a table.
set -u
. tests/cli/lib.sh
needs python3

# ---- the trace --------------------------------------------------------------------------------------------------------

# Of seven joins, all of them machines of V100: four take the four machines, the second batch finds none free for one v100, and two
# are of a GPU that is not there. What leaves makes room for nobody.
job job.yaml 1 4 4 2
printf '%s\n' '0,join,a,v100' '0,join,b,v100' '0,join,c,v100' '0,join,d,v100' '0,join,e,v100' '0,join,f,a100' \
	'1,join,g,p3' '2,leave,g,p3' >trace.csv
left='left out: 3 of 7 joins in the trace, with their leaves: 2 for a GPU that no machine of the topology has, such as a100 \(cluster\.trace\.any_gpu: true takes any\); 1 found no free machine of its type$'
played=(job.yaml --set train.arithmetic=none --set cluster.trace.file=trace.csv)
accepts 'check reads a trace that does not fit' check "${played[@]}"
check 'and says what is left out, and why' grep -qE "^ +$left" "$out"
accepts 'so does sim' sim "${played[@]}"
check 'as a warning' grep -qE "^skep: warning: $left" "$err"
accepts 'sim --json' sim "${played[@]}" --json
check 'has nothing else on stdout' python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$out"
accepts 'sim of the same with types ignored' sim "${played[@]}" --set cluster.trace.any_gpu=true
check 'has three that find no machine free' grep -qE '^skep: warning: left out: 3 of 7 joins in the trace, with their leaves: 3 found no free machine of their type$' "$err"
printf '%s\n' '0,join,a,v100' '0,join,b,v100' '0,join,c,v100' '0,join,d,v100' >trace.csv
accepts 'a trace that fits' sim "${played[@]}"
check 'is no warning' test ! -s "$err"
if [ "${SKEP_HAS_MPI:-no}" = yes ]; then
	mpi_environment
	printf '%s\n' '0,join,a,v100' '0,join,b,v100' '0,join,c,v100' '0,join,d,v100' '0,join,e,t4' >trace.csv
	accepts 'run says it too' run "${played[@]}" --set train.arithmetic=real
	check 'once' test "$(grep -cE '^skep: warning: left out: 1 of 5 joins in the trace, with its leave: 1 for a GPU' "$err")" = 1
fi

# ---- local steps ------------------------------------------------------------------------------------------------------

rare() { # rare NAME EXPECTED SET...: what check says of the length of a round, in both forms
	local name=$1 expected=$2 set=()
	shift 2
	for word in "$@"; do set+=(--set "$word"); done
	accepts "$name" check job.yaml "${set[@]}"
	check "$name: warning" test "$(grep -c 'warning: .*longer than the run' "$out")" = "$expected"
	cp "$out" text
	accepts "$name, --json" check job.yaml "${set[@]}" --json
	check "$name, --json: the same" python3 -c 'import json, sys
assert json.load(open(sys.argv[1]))["periodic"]["longer_than_run"] == bool(int(sys.argv[2]))' "$out" "$expected"
}
rare 'local steps that outlast the run' 1 'sync={method: diloco, every: 5}'
check 'with the key and the steps' grep -qE \
	'warning: sync\.every, 5 steps, is longer than the run, 4 in train\.until\.steps: the only outer step is the one that ends it$' text
rare 'as many as the run' 0 'sync={method: diloco, every: 4}'
rare 'fragments whose turns outlast the run' 1 'sync={method: streaming, every: 8, fragments: 2}'
check 'some of which are never summed' grep -qE 'sync\.every, 8 steps, .* some fragments are never summed$' text

# ---- the number format -------------------------------------------------------------------------------------------------

# A V100 has matrix units for fp16: it trains in mixed precision where no arithmetic is done, which is in fp32.
half='fp16, mixed precision' hint=' \(arithmetic: real is in fp32; cluster\.compute\.type sets it\)'
format() { # format FILE KEY: of a JSON object
	python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["number_format"])' "$1"
}
rm -f skep.db
accepts 'sim without arithmetic' sim job.yaml --set train.arithmetic=none
check 'says the format and how to change it' grep -qxE "  number format $half$hint" "$out"
accepts 'sim with arithmetic' sim job.yaml
check 'computes in fp32' grep -qxE '  number format fp32' "$out"
accepts 'sim in a type that is asked for' sim job.yaml --set train.arithmetic=none --set cluster.compute.type=fp16
check 'has tensors in fp32' grep -qx '  number format fp16, fp32 tensors' "$out"
accepts 'sim in mixed precision that is asked for' sim job.yaml --set train.arithmetic=none --set 'cluster.compute={type: fp16, mixed: true}' --json
check 'has it in --json' test "$(format "$out")" = "$half"
check 'a row of the database has each' test "$(python3 -c 'import sqlite3
print(*(row[0] for row in sqlite3.connect("skep.db").execute("SELECT number_format FROM runs ORDER BY id")), sep="; ")')" = "$half; fp32; fp16, fp32 tensors; $half"
accepts 'compare of runs in two formats' compare 1 2
check 'warns' grep -qx "warning: the number formats of the two runs differ: $half | fp32" "$out"
accepts 'compare of two in one' compare 1 4
check 'does not' sh -c '! grep -q "number format" "$1"' - "$out"
accepts 'compare --json' compare 1 2 --json
check 'has both' python3 -c 'import json, sys
seen = json.load(open(sys.argv[1]))
assert (seen["first"]["number_format"], seen["second"]["number_format"]) == (sys.argv[2], "fp32"), seen' "$out" "$half"
accepts 'sweep' sweep job.yaml --set train.arithmetic=none --vary schedule.in_flight=1,2
check 'says it once' grep -qx "  number format: $half" "$out"
accepts 'sweep over formats' sweep job.yaml --vary train.arithmetic=none,real
check 'says that they differ' grep -qx "  number formats, which are not alike: $half; fp32" "$out"
accepts 'sweep --json' sweep job.yaml --vary train.arithmetic=none,real --json
check 'has them' test "$(format "$out")" = "$half; fp32"
accepts 'plan' plan job.yaml --set train.arithmetic=none
check 'says it above its table' grep -qxE "number format: $half$hint" "$out"
accepts 'plan --json' plan job.yaml --json
check 'has it' test "$(format "$out")" = fp32
if [ "${SKEP_HAS_MPI:-no}" = yes ]; then
	accepts 'a paced run' run job.yaml --pace --set train.arithmetic=none
	check 'computes in fp32 whatever it is paced as' grep -qx "  number format fp32, paced as $half" "$out"
fi

# ---- one place for both streams ----------------------------------------------------------------------------------------

together() { # together NAME LAST ARGUMENT...: stdout and stderr in one file end in that line
	local name=$1 last=$2
	shift 2
	timeout -k 5 300 "$skep" "$@" >"$scratch/both" 2>&1 </dev/null
	check "$name" grep -qxE "$last" <(tail -n 1 "$scratch/both")
}
together 'plan says behind its tables what it wrote' 'wrote plan.yaml' plan job.yaml --set train.arithmetic=none --explain -o plan.yaml

plan
