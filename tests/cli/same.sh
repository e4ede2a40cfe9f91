#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# same.sh - same.py, which compares two builds, can fail: the same program is the same, and another seed, another learning
# rate, a story that goes another way and a scenario that is gone are differences that it names.
set -u
. tests/cli/lib.sh
needs python3

build=$(dirname "$skep")
[ -x "$build/tests/story" ] || build=
mkdir -p old/scenarios old/tests/cluster/stories store/tests
mkdir new
ln -s "$root/models" "$root/topologies" old/
ln -s "$root/models" "$root/topologies" new/
cp "$root/scenarios/one-worker.yaml" old/scenarios/lonely.yaml # a name that is not shipped: those are found anywhere
cp "$root/tests/cluster/stories/ddp-round.txt" old/tests/cluster/stories/
ln -s "$skep" store/skep
ln -s "$build/tests/story" "$build/tests/chaos" store/tests/

same() { # same STATUS REGEX ARGUMENT...: what same.py says
	local wanted=$1 regex=$2
	shift 2
	status=0
	python3 "$root/tests/same.py" old store new store --jobs 1 --only lonely --only story "$@" >"$out" 2>"$err" || status=$?
	[ "$status" = "$wanted" ] && grep -qE -- "$regex" "$out" && return
	seen
	return 1
}

afresh() {
	rm -rf new/scenarios new/tests
	cp -R old/scenarios old/tests new/
}

if [ -z "$build" ]; then
	skip 'two builds' 'the stories are not built'
	plan
	exit
fi
afresh
check 'the same is the same' same 0 '^3 compared, 0 different$'
check 'and once more, from what was kept' same 0 '^3 compared, 0 different$'
sed -i 's/^seed: .*/seed: 7/' new/scenarios/lonely.yaml
check 'another seed' same 1 '^3 compared, 2 different$'
check 'names what differs' grep -qE 'database\.rounds\[0\] .*loss: [0-9.]+, now [0-9.]+|json\.(digest|seed): .*, now ' "$out"
afresh
sed -i 's/lr: [0-9.e-]*/lr: 1.5e-3/' new/scenarios/lonely.yaml
check 'losses alone' same 1 'DIFFERENT .* sim lonely'
check 'losses alone: one of them is named' grep -qE 'final_loss: [0-9.]+, now [0-9.]+' "$out"
afresh
sed -i 's/^microbatches 6/microbatches 5/' new/tests/cluster/stories/ddp-round.txt
check 'a story that goes another way' same 1 'DIFFERENT .* story ddp-round'
afresh
rm new/scenarios/lonely.yaml
check 'a scenario that is gone' same 1 'broken: .*lonely.yaml'
plan
