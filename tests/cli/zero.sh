#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# zero.sh - ZeRO stage 1 by the user's commands, in both worlds: the losses are those of an optimizer that is not sharded, on sums by
# the same ring; bytes and messages are the ring's, and those of the other world; a worker that is lost ends the run; and what it
# does not go with is refused with the place.
set -u
. tests/cli/lib.sh
needs python3 sqlite3

# One microbatch for each worker, and each pipeline has its own: so sums add the same numbers in the same order in all runs.
small_model
for n in 2 3; do
	place "$n"
	cat >"zero-$n.yaml" <<-END
	name: $n shards
	seed: 5
	model: {file: small.yaml, stages: 1}
	cluster: {topology: place-$n.yaml}
	schedule: {pipeline: gpipe, global_batch: $((n * 16)), microbatch: 8}
	sync: {zero: 1, chunks: 3}
	train: {arithmetic: real, optimizer: {name: adamw, lr: 3.0e-3}, until: {steps: 20}}
	END
done

# same [TOLERANCE]: do all runs of zero.db have the same losses, round by round, and the same bytes and messages of sums?
same() {
	python3 - "${1:-0}" <<-'END'
	import sqlite3, sys
	db, most = sqlite3.connect("zero.db"), float(sys.argv[1])
	runs = [r[0] for r in db.execute("SELECT id FROM runs ORDER BY id")]
	losses = [[r[0] for r in db.execute("SELECT loss FROM losses WHERE run = ? ORDER BY round", (i,))] for i in runs]
	sent = [db.execute("SELECT sum(bytes), sum(messages) FROM links WHERE run = ? AND traffic = 'sync'", (i,)).fetchone() for i in runs]
	assert len(runs) > 1 and len(losses[0]) == 20 and losses[0][19] < losses[0][0], losses
	for other in losses[1:]:
	    assert len(other) == 20 and all(abs(a - b) <= most * abs(a) for a, b in zip(losses[0], other)), (losses[0], other)
	assert sent[0][0] > 0 and all(s == sent[0] for s in sent), sent
	END
}
# closed N: n members in k segments send n (n - 1) k messages in each half, and 2 (n - 1) V in all.
closed() {
	"$SKEP" check "zero-$1.yaml" --json >planned.json
	python3 - "$1" <<-'END'
	import json, sqlite3, sys
	n, stage = int(sys.argv[1]), json.load(open("planned.json"))["stages"][0]
	messages = 2 * n * (n - 1) * 3
	right = (20 * (2 * (n - 1) * 4 * stage["parameters"] + 96 * messages), 20 * messages)
	have = sqlite3.connect("zero.db").execute("SELECT sum(bytes), sum(messages) FROM links WHERE run = 1 AND traffic = 'sync'").fetchone()
	assert have == right, (have, right)
	END
}

for n in 2 3; do
	for more in '' train.optimizer.clip_norm=0.5 sync.delayed=true; do
		rm -f zero.db
		set -- "zero-$n.yaml" -q --json --db zero.db ${more:+--set "$more"}
		[ "$more" = sync.delayed=true ] && set -- "$@" --set schedule.pipeline=swarm
		accepts "$n shards, simulated${more:+, $more}" sim "$@"
		accepts "not sharded${more:+, $more}" sim "$@" --set sync.zero=0
		# squares are added shard by shard: another order of addition, so the last bits of the norm may differ
		tolerance=0
		[ "$more" = train.optimizer.clip_norm=0.5 ] && tolerance=1e-6
		if [ "${SKEP_HAS_MPI:-no}" = yes ] && [ "$more" != sync.delayed=true ]; then
			accepts "$n shards, for real${more:+, $more}" run "$@"
		fi
		check "$n shards${more:+, $more}: losses, bytes and messages" same $tolerance
		[ -n "$more" ] || check "$n shards: the closed form" closed "$n"
	done
done

# ---- how long a half takes --------------------------------------------------------------------------------------------------

# halves MEMBERS SEGMENTS LATENCY_MS: over equal links of 1 Gbit/s, to and from each of n members, n - 1 hops of V/n each in k segments,
# (n - 2) max(V/nB, a + V/knB) + V/nB + a, once for the gradients and once for the parameters. Headers are not in it.
mkdir timed && cd timed || exit 1 # where gpus/ is its own
only_links
halves() {
	local wanted seen half
	cat >star.yaml <<-END
	name: star of $1
	source: Assumed for this test.
	directory: here
	sites:
	  here: {machines: [{count: $1, gpu: fast, up: 1e9 bit/s, down: 1e9 bit/s}], inside: {bandwidth: 1000 Gbit/s, latency: $3 ms}}
	END
	cat >scenario.yaml <<-END
	name: halves of $1
	seed: 1
	model: {file: model.yaml, stages: 1}
	cluster: {topology: star.yaml}
	schedule: {global_batch: $1, microbatch: 1}
	sync: {collective: ring, chunks: $2, zero: 1}
	train: {arithmetic: none, until: {steps: 1}}
	END
	wanted=$(python3 -c "n, k, a, t = $1, $2, $3 / 1e3, $bytes / ($1 * 125e6); print((n - 2) * max(t, a + t / k) + t + a)")
	for half in "'copy_grad', 'add', 'add_store'" "'copy_shard', 'store_shard'"; do
		seen=$(spanned "kind IN ($half)")
		if awk "BEGIN { d = $seen - $wanted; exit !(d * d < (0.002 * $wanted) ^ 2) }" </dev/null; then
			pass "$1 members, $2 segments, $3 ms, $half: $wanted s"
		else
			fail "$1 members, $2 segments, $3 ms, $half" "$seen s, expected $wanted s"
		fi
	done
	seen=$("$skep" check scenario.yaml --json 2>"$err" | python3 -c 'import json, sys; print(json.load(sys.stdin)["expected"]["reduction_s"] / 2)')
	check "$1 members, $2 segments, $3 ms: check expects both halves" \
		awk "BEGIN { d = $seen - $wanted; exit !(d * d < (0.002 * $wanted) ^ 2) }"
}
for latency in 0 5 100; do
	halves 2 1 $latency
	halves 5 1 $latency
	halves 5 4 $latency
	halves 8 7 $latency
done
cd ..

# Moments for a shard alone.
accepts 'check says what is sharded' check zero-3.yaml
check 'it names the stage of ZeRO and the workers' grep -q 'zero      stage 1: optimizer shared among 3 workers$' "$out" "$err"

# What it does not go with: the place, and what would do.
refuses 'pseudo-gradients' 'zero-2.yaml:6:.*leave out either' sim zero-2.yaml --set sync.method=diloco --set sync.every=4
refuses 'without waiting' 'sync.zero needs .ring.' sim zero-2.yaml --set 'sync={zero: 1, method: async, every: 4}' --set schedule.pipeline=swarm
refuses 'LAMB' 'norms of whole tensors.*adamw' sim zero-2.yaml --set train.optimizer.name=lamb
refuses 'rounds that begin again' 'schedule.on_loss' sim zero-2.yaml --set schedule.on_loss=wait
refuses 'stage 3 for real' 'stage 3 is simulated alone.*sync.zero=1' run zero-2.yaml --set sync.zero=3
refuses 'stage 2 for real, several microbatches' 'stage 2 reduces.*sync.zero=1' run zero-2.yaml --set sync.zero=2

plan
