#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# equal.sh - a small GPT on one worker, on T workers that are a stage each, and on N workers for each of T stages: the same samples
# in every step, so the same loss curve, within what rounding does when sums are made in another order. Simulated and real,
# with gradients as they are and clipped by the norm of all stages together; and once more with a tied head, of which the first
# stage and the last one each hold a copy.
set -u
. tests/cli/lib.sh
needs python3 mpirun

mpi_environment
for workers in 1 2 3 4 6 8 12; do place "$workers"; done
cat >gpt.yaml <<-END
name: a small GPT
seed: 3
model: {file: $root/models/tiny-gpt2.yaml, stages: 1, sequence: 16}
cluster: {topology: place-1.yaml, allocation: {method: strided}}
schedule: {global_batch: 12, microbatch: 2}
train:
  data: {corpus: text, file: $root/models/text/tinyshakespeare.txt}
  optimizer: {name: adamw, lr: 3.0e-3}
  until: {steps: 6}
END

# Rounding grows with every step: 1e-6 of the loss after six. What clipping changes is a hundred times as much.
same_curves() { # same_curves FIRST LAST: runs
	python3 - "$@" <<-'END'
	import sqlite3, sys
	first, last = map(int, sys.argv[1:])
	db = sqlite3.connect("skep.db")
	loss = lambda run: [r[0] for r in db.execute("SELECT loss FROM rounds WHERE run = ? ORDER BY round", (run,))]
	one = loss(first)
	assert len(one) == 6 and one[5] < one[0] - 0.5, one
	for run in range(first, last + 1):
	    assert all(abs(a / b - 1) < 1e-6 for a, b in zip(loss(run), one, strict=True)), (run, loss(run), one)
	END
}
run=0
curves() { # curves NAME SETTING...: of all cuts and numbers of workers
	local name=$1 first=$((run + 1)) worlds
	shift
	for stages in 1 2 4; do
		for each in 1 2 3; do
			worlds=sim # and really so, plain once and clipped all of them
			if [ "$name$stages" = tied1 -a "$each" != 1 ]; then
				continue # there is nothing to tell between stages
			fi
			if [ "${SKEP_HAS_MPI:-yes}" != no ] && [[ "$name$stages$each" =~ ^(plain22|tied23|clipped..)$ ]]; then
				worlds='sim run'
			fi
			for world in $worlds; do
				run=$((run + 1))
				accepts "$name, $world: $each x $stages" "$world" gpt.yaml --json -q --set "model.stages=$stages" \
					--set "cluster.topology=place-$((stages * each)).yaml" "$@"
			done
		done
	done
	check "$name: all learn the same" same_curves "$first" "$run"
}
curves plain
curves clipped --set train.optimizer.clip_norm=0.5
differ() {
	python3 - "$run" <<-'END'
	import sqlite3, sys
	db = sqlite3.connect("skep.db")
	loss = [db.execute("SELECT loss FROM rounds WHERE run = ? AND round = 5", (r,)).fetchone()[0] for r in (1, int(sys.argv[1]))]
	assert abs(loss[0] / loss[1] - 1) > 1e-4, loss
	END
}
check 'clipping changes what they learn' differ
if [ "${SKEP_HAS_MPI:-yes}" != no ]; then
	accepts 'a clipped run can be replayed' replay "$run"
fi

# Whatever is between the stages and within them.
more=(--set model.stages=2 --set cluster.topology=place-4.yaml --set train.optimizer.clip_norm=0.5)
first=$((run + 1))
accepts 'clipped: one worker' sim gpt.yaml --json -q --set train.optimizer.clip_norm=0.5
for way in sync.collective=tree schedule.pipeline=1f1b schedule.pipeline=gpipe schedule.on_loss=rerun; do
	accepts "clipped: $way" sim gpt.yaml --json -q "${more[@]}" --set "$way"
done
accepts 'clipped: interleaved' sim gpt.yaml --json -q "${more[@]}" --set schedule.pipeline=interleaved --set schedule.model_chunks=2 \
	--set cluster.topology=place-2.yaml
accepts 'clipped: in buckets' sim gpt.yaml --json -q "${more[@]}" --set schedule.pipeline=1f1b \
	--set 'sync={overlap: true, bucket: 32 KiB}'
check 'all of them learn the same' same_curves "$first" $((first + 6))
accepts 'clipped: delayed' sim gpt.yaml --json -q "${more[@]}" --set sync.delayed=true

run=$((first + 7))
# A tied head: the table is stepped in two stages by what both have summed, and counts once in the norm.
printf '%s\n' 'name: tied' 'kind: transformer' \
	'transformer: {architecture: gpt2, hidden: 64, heads: 4, blocks: 4, sequence: 64, vocabulary: 256, tied: true}' >tied.yaml
curves tied --set model.file=tied.yaml --set train.optimizer.clip_norm=0.5
tied=("${more[@]}" --set model.file=tied.yaml)
first=$((run + 1))
accepts 'tied: one worker' sim gpt.yaml --json -q --set model.file=tied.yaml --set train.optimizer.clip_norm=0.5
for way in sync.collective=all-to-all schedule.on_loss=rerun schedule.routing=trainer; do
	accepts "tied: $way" sim gpt.yaml --json -q "${tied[@]}" --set "$way"
done
accepts 'tied: interleaved' sim gpt.yaml --json -q "${tied[@]}" --set schedule.pipeline=interleaved --set schedule.model_chunks=2 \
	--set cluster.topology=place-2.yaml
accepts 'tied: in buckets' sim gpt.yaml --json -q "${tied[@]}" --set schedule.pipeline=1f1b \
	--set 'sync={overlap: true, bucket: 32 KiB}'
check 'tied: all of them learn the same' same_curves "$first" $((first + 5))
run=$((first + 5))
descends=(--set model.file=tied.yaml --set 'train.optimizer={name: sgd, lr: 0.3}')
accepts 'tied: one worker descends' sim gpt.yaml --json -q "${descends[@]}"
accepts 'tied: outer steps after each inner one' sim gpt.yaml --json -q "${descends[@]}" --set model.stages=2 \
	--set cluster.topology=place-4.yaml --set 'sync={method: diloco, every: 1, outer: {optimizer: sgd, lr: 1.0, momentum: 0}}'
check 'tied: both learn the same' same_curves $((run + 1)) $((run + 2))
accepts 'tied: delayed, compressed' sim gpt.yaml --json -q "${tied[@]}" --set sync.delayed=true --set sync.compression=int8
refuses 'no norm without a flush' 'clip_norm: with `pipedream` a stage steps as soon' check gpt.yaml "${more[@]}" \
	--set schedule.pipeline=pipedream --set schedule.global_batch=4
plan
