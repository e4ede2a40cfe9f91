#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# blocks.sh - compression_block: bytes by hand, of activations and of reductions in segments, chunks, shares and fragments that are no
# multiple of a block; `skep check`, the simulator with messages and with flows, all the same. What makes no sense is refused.
set -u
. tests/cli/lib.sh
needs python3

place 6
cat >swarm.yaml <<-END
name: blocks
seed: 3
model: {file: $root/models/square-mlp.yaml, stages: 2}
cluster: {topology: place-6.yaml, allocation: {method: strided}, compute: {type: fp32}}
schedule: {global_batch: 90, microbatch: 15}
train: {arithmetic: none, optimizer: {name: adamw, lr: 2.0e-3}, until: {steps: 8}}
END

# Two stages of three workers, 8 steps, 6 microbatches of 15 samples of 128 floats between the stages, there and back.
cat >by_hand.py <<-'END'
import json, sys
run, planned = json.load(open(sys.argv[1])), json.load(open(sys.argv[2]))
way, parts, codec, block, fragments = sys.argv[3], int(sys.argv[4]), sys.argv[5], sys.argv[6], int(sys.argv[7])
BITS = {"int8": 8, "e3m0": 4}

def message(v, codec, block):  # the numbers of each block in whole bytes, and 4 for its scale
    length = v if block == "tensor" else int(block)
    return sum(4 + -(-min(length, v - first) * BITS[codec] // 8) for first in range(0, v, length or 1))

def cut(v, n):
    return [v // n + (i < v % n) for i in range(n)]

def segments(v, k):  # between blocks, but for one scale in each message
    if block == "tensor":
        return cut(v, k)
    whole = cut(-(-v // int(block)), k)
    ends = [min(v, sum(whole[:i + 1]) * int(block)) for i in range(k)]
    return [end - begin for begin, end in zip([0] + ends, ends)]

def reduction(v):  # of three
    if way == "all-to-all":
        return 6 * (message(v, codec, block) + 96)
    if way == "chain":  # each piece goes to the end and, but to who made the sum, back
        return sum(4 * (message(c, codec, block) + 96) for c in cut(v, parts))
    if way == "ring":  # each of 3 chunks makes 4 hops, in segments
        return sum(4 * (message(s, codec, block) + 96) for c in cut(v, 3) for s in segments(c, parts))
    if way == "butterfly":  # two bring pieces of each share, and get the sum
        return sum(4 * (message(p, codec, block) + 96) for c in cut(v, 3) for p in cut(c, parts))

each = [reduction(f) for s in planned["stages"] for f in cut(s["parameters"], fragments)]
rounds = 8 if fragments == 1 else 4
right = sum(each) * rounds // fragments
assert run["bytes_sync"] == right, (run["bytes_sync"], right)
assert planned["bytes_sync_per_round"] == right // rounds, (planned["bytes_sync_per_round"], right)
activations = 2 * 6 * (message(15 * 128, "int8", block) + 96)
assert run["bytes_pipeline"] == 8 * activations, (run["bytes_pipeline"], 8 * activations)
END

for codec in int8 e3m0; do
	for block in 8 64 4096 tensor; do
		for way in all-to-all:1 chain:5 ring:1 ring:3 butterfly:3 ring:3:flows ring:2:fragments; do
			IFS=: read -r collective parts more <<<"$way"
			options=(--set schedule.compression=int8 --set "schedule.compression_block=$block")
			sync="collective: $collective, compression: $codec, compression_block: $block" fragments=1
			[ "$collective" = all-to-all ] || sync="$sync, chunks: $parts"
			[ "$more" != flows ] || options+=(--set simulate.collectives=flows)
			[ "$more" != fragments ] || sync="$sync, method: streaming, every: 4, fragments: 2" fragments=2
			options+=(--set "sync={$sync}")
			"$SKEP" check swarm.yaml --json "${options[@]}" >planned.json
			accepts "$way, $codec, $block" sim swarm.yaml --json -q "${options[@]}"
			check "$way, $codec, $block: by hand" \
				python3 by_hand.py "$out" planned.json "$collective" "$parts" "$codec" "$block" "$fragments"
		done
	done
done

# 64 is what it is without the key.
digest() {
	"$SKEP" sim swarm.yaml --json -q --set schedule.compression=int8 --set sync.compression=e3m0 "$@" |
		python3 -c 'import json, sys; print(json.load(sys.stdin)["digest"])'
}
check '64 is the usual one' [ "$(digest)" = "$(digest --set schedule.compression_block=64 --set sync.compression_block=64)" ]
check 'and 128 is another one' [ "$(digest)" != "$(digest --set sync.compression_block=128)" ]

# Learning goes on with one scale for each message, in virtual time.
accepts 'arithmetic with one scale a message' sim swarm.yaml --json -q --set train.arithmetic=real --set schedule.compression=int8 \
	--set schedule.compression_block=tensor --set 'sync={compression: int8, compression_block: tensor}'
check 'which learns' python3 -c 'import json, sys
run = json.load(open(sys.argv[1]))
assert 0 < run["final_loss"] < 10, run["final_loss"]' "$out"

for collective in hierarchical halving-doubling; do
	refuses "one scale a message with $collective" "sync.compression_block: \`$collective\` encodes sums that came in parts once more" \
		check swarm.yaml --set "sync={collective: $collective, compression: int8, compression_block: tensor}"
	accepts "blocks with $collective" check swarm.yaml --json \
		--set "sync={collective: $collective, compression: int8, compression_block: 128}"
done
plan
