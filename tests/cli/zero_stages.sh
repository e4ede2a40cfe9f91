#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# zero_stages.sh - ZeRO in several stages, whose workers share each stage's optimizer among themselves, in both worlds: the losses are those of
# optimizers that are not sharded; of each stage bytes and messages are those of its own reduce-scatter and all-gather, and those of the
# other world; a run goes on with what it has kept, to the bit; and what it does not go with is refused with the place.
set -u
. tests/cli/lib.sh
needs python3 sqlite3

small_model
for n in 3 4 5; do place "$n"; done
cat >stages.yaml <<-END
name: two stages in shards
seed: 5
model: {file: small.yaml, stages: 2}
cluster: {topology: place-4.yaml, allocation: {method: contiguous}}
schedule: {pipeline: gpipe, global_batch: 16, microbatch: 8}
sync: {zero: 1, chunks: 3}
train: {arithmetic: real, optimizer: {name: adamw, lr: 3.0e-3}, until: {steps: 20}}
END

# same TOLERANCE: of all runs of zero.db, are losses the same, round by round, and of each stage bytes and messages of sums? Those of a stage of n
# workers and V bytes, in k segments, are n (n - 1) k messages of each half, and 2 (n - 1) V bytes beside their headers, to the byte.
same() {
	python3 - "$1" planned.json <<-'END'
	import collections, json, sqlite3, sys
	db, most, planned = sqlite3.connect("zero.db"), float(sys.argv[1]), json.load(open(sys.argv[2]))
	runs = [r[0] for r in db.execute("SELECT id FROM runs ORDER BY id")]
	losses = [[r[0] for r in db.execute("SELECT loss FROM losses WHERE run = ? ORDER BY round", (i,))] for i in runs]
	assert len(runs) > 1 and len(losses[0]) == 20 and losses[0][19] < losses[0][0], losses
	for other in losses[1:]:
	    assert len(other) == 20 and all(abs(a - b) <= most * abs(a) for a, b in zip(losses[0], other)), (losses[0], other)
	size = [stage["workers"] for stage in planned["stages"]]
	stage_of = [stage for stage, n in enumerate(size) for _ in range(n)]  # contiguous
	for run in runs:
	    sums = collections.Counter()
	    for a, b, bytes, messages in db.execute(
	        "SELECT source, destination, bytes, messages FROM links WHERE run = ? AND traffic = 'sync'", (run,)):
	        assert stage_of[a] == stage_of[b], (a, b)
	        sums[stage_of[a], "bytes"] += bytes
	        sums[stage_of[a], "messages"] += messages
	    for stage, n in enumerate(size):
	        messages = 20 * 2 * n * (n - 1) * 3
	        right = (20 * 2 * (n - 1) * 4 * planned["stages"][stage]["parameters"] + 96 * messages, messages)
	        assert (sums[stage, "bytes"], sums[stage, "messages"]) == right, (run, stage, sums, right)
	END
}

# both TOLERANCE OPTION ..: simulated in shards and not, and for real in shards.
both() {
	local tolerance=$1 set=()
	shift
	for option in "$@"; do set+=(--set "$option"); done
	rm -f zero.db
	"$skep" check stages.yaml --json "${set[@]}" >planned.json 2>"$err"
	accepts "simulated, $*" sim stages.yaml -q --json --db zero.db "${set[@]}"
	accepts "not sharded, $*" sim stages.yaml -q --json --db zero.db "${set[@]}" --set sync.zero=0
	if [ "${SKEP_HAS_MPI:-no}" = yes ]; then
		mpi_environment
		accepts "for real, $*" run stages.yaml -q --json --db zero.db "${set[@]}"
	fi
	check "losses, and bytes and messages of each stage: $*" same "$tolerance"
}
# One microbatch in each pipeline: then sums add the same numbers in the same order in all runs. So they do in 1f1b, where each pipeline has
# its own worker of each stage. The last stage of gpipe takes its microbatches as they come, and a swarm's workers those that come to them.
both 0 schedule.pipeline=gpipe
both 0 schedule.pipeline=gpipe sync.zero=2
both 0 schedule.pipeline=1f1b schedule.microbatch=2
both 1e-5 schedule.pipeline=gpipe schedule.microbatch=2
both 1e-5 schedule.pipeline=swarm schedule.microbatch=2
# Squares are added shard by shard, and stage by stage: another order of addition.
both 1e-6 schedule.pipeline=1f1b schedule.microbatch=2 train.optimizer.clip_norm=0.5
# Three workers and two, two and one, which has all of its stage's state: they share their pipelines, whose microbatches come in any order.
both 1e-5 schedule.pipeline=1f1b schedule.microbatch=2 schedule.global_batch=24 cluster.topology=place-5.yaml
both 1e-5 schedule.pipeline=1f1b schedule.microbatch=2 cluster.topology=place-3.yaml

# ---- what check says ----------------------------------------------------------------------------------------------------------

accepts 'check of stages of three workers and two' check stages.yaml --set schedule.pipeline=1f1b --set schedule.global_batch=48 \
	--set cluster.topology=place-5.yaml
check 'it names who shares' grep -q 'zero      stage 1: optimizer shared among the workers of each stage, by stage: 3, 2$' "$out" "$err"
halved() { # AdamW's two moments, of a share of each stage
	"$skep" check stages.yaml --json --set schedule.pipeline=1f1b --set schedule.global_batch=48 --set cluster.topology=place-5.yaml |
		python3 -c "
import json, sys
d = json.load(sys.stdin)
have = [row['optimizer_bytes'] for row in d['memory']]
right = [8 * stage['parameters'] / n for stage, n in zip(d['stages'], (3, 2))]
assert len(have) == 2 and all(abs(a - b) < 1 for a, b in zip(have, right)), (have, right)"
}
check 'the state of each stage is a share of its own' halved

# ---- what is kept -------------------------------------------------------------------------------------------------------------

# Of the runs in DB the last one goes on with the one before from round 10 on, and both together are the first.
unbroken() {
	python3 - "$1" <<-'END'
	import sqlite3, sys
	db = sqlite3.connect(sys.argv[1])
	of = lambda run: db.execute("SELECT round, loss FROM losses WHERE run = ? ORDER BY round", (run,)).fetchall()
	whole = of(1)
	last, begins = db.execute("SELECT id, first_round FROM runs ORDER BY id DESC LIMIT 1").fetchone()
	assert begins == 10 and len(whole) == 20, (begins, whole)
	assert of(last) == whole[10:] and of(last - 1)[:10] == whole[:10], (whole, of(last - 1), of(last))
	END
}
kept=(stages.yaml -q --json --set 'checkpoint={every: 5, to: kept}' --set schedule.microbatch=2 --set schedule.pipeline=1f1b)
uneven=(--set schedule.global_batch=24 --set cluster.topology=place-5.yaml)
accepts 'unbroken' sim "${kept[@]}" --db kept.db
accepts 'half of it' sim "${kept[@]}" --db kept.db --set train.until.steps=10 --write-checkpoints
check 'each worker of each stage keeps its part' test "$(find kept -name '*.kept' | wc -l)" = 8 # of two versions
accepts 'the other half' sim "${kept[@]}" --db kept.db --resume
check 'together they are the same' unbroken kept.db
refuses 'fewer workers in one stage' 'states in another number of shards.*as many workers in each stage' sim "${kept[@]}" --resume \
	--set cluster.topology=place-3.yaml
rm -rf kept
accepts 'three and two: unbroken' sim "${kept[@]}" "${uneven[@]}" --db uneven.db
accepts 'three and two: half of it' sim "${kept[@]}" "${uneven[@]}" --db uneven.db --set train.until.steps=10 --write-checkpoints
accepts 'three and two: the other half' sim "${kept[@]}" "${uneven[@]}" --db uneven.db --resume
check 'three and two: together they are the same' unbroken uneven.db
if [ "${SKEP_HAS_MPI:-no}" = yes ]; then
	rm -rf kept
	accepts 'unbroken, simulated' sim "${kept[@]}" --db real.db
	accepts 'half of it, for real' run "${kept[@]}" --db real.db --set train.until.steps=10
	accepts 'the other half, for real' run "${kept[@]}" --db real.db --resume
	check 'together they are the same, for real' unbroken real.db
fi

# ---- what it does not go with: the place, and what would do -------------------------------------------------------------------

sed 's/zero: 1/zero: 3/' stages.yaml >all.yaml
refuses_at 'stage 3' all.yaml:6:14 'needs .model.stages: 1., not 2; 1 and 2 share each stage' sim all.yaml
refuses_at 'interleaved stages' stages.yaml:6:14 'an interleaved one has several; take .pipeline: 1f1b' sim stages.yaml \
	--set schedule.pipeline=interleaved --set schedule.model_chunks=2 --set schedule.global_batch=32
sed "s,small.yaml,$root/models/gpt2-124m.yaml," stages.yaml >tied.yaml
refuses 'a tied head' 'tied.yaml:3:.*sum of a part of it; take another one' check tied.yaml --set train.arithmetic=none
refuses 'rebalancing' 'no worker can move' sim stages.yaml --set schedule.pipeline=swarm --set 'schedule.rebalance={period: 1 s}'
refuses 'stage 2, shares that differ' 'all workers of stage 0 .* multiple of 24 .3 workers, microbatch 8.; the next is 24' sim stages.yaml \
	--set sync.zero=2 --set schedule.pipeline=swarm --set cluster.topology=place-5.yaml
refuses 'stage 2 for real, several microbatches' 'its 4 of a round first.*sync.zero=1, or schedule.global_batch=4' run stages.yaml \
	--set sync.zero=2 --set schedule.microbatch=2
refuses 'stage 2 for real, stages that differ' '2 in the stage with the fewest.*sync.zero=1$' run stages.yaml --set sync.zero=2 \
	--set schedule.pipeline=1f1b --set cluster.topology=place-3.yaml
refuses 'stage 2 for real, in a swarm' 'worker of a swarm.*sync.zero=1' run stages.yaml --set sync.zero=2 --set schedule.pipeline=swarm

plan
