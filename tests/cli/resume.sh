#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# resume.sh - runs that go on with what an earlier one has kept, simulated with arithmetic. With one worker in each stage, and with
# fixed pipelines of several, the losses are those of a run that nothing has happened to, to the bit: nothing of weights,
# optimizers, rates or the place in the data is lost. And what cannot be gone on with.
set -u
. tests/cli/lib.sh
needs python3 sqlite3

place 4
job two.yaml 3 60 2 2
kept=(--set checkpoint.to=kept -q --json)

# equals NAME WHOLE PART EVERY ARGUMENT...: a run of WHOLE steps that keeps its states every EVERY rounds, and one of PART which is
# then taken up. The database is that of the name.
equals() {
	local name=$1 whole=$2 part=$3 every=$4 how=("${kept[@]}" --db "$1.db" --set checkpoint.every="$4")
	shift 4
	rm -rf kept
	if run_skep sim two.yaml "${how[@]}" "$@" --set train.until.steps="$whole" && [ "$status" = 0 ] &&
		run_skep sim two.yaml "${how[@]}" "$@" --set train.until.steps="$part" --write-checkpoints && [ "$status" = 0 ] &&
		run_skep sim two.yaml "${how[@]}" "$@" --set train.until.steps="$whole" --write-checkpoints --resume && [ "$status" = 0 ] &&
		! grep -q 'had recorded' "$err"; then
		check "$name" same "$name.db"
	else
		fail "$name" "$(seen)"
	fi
}

same() { # same DB: rounds and validations of run 1 are those of 2 and then 3, and the books of 3 are in order
	python3 - "$1" <<-'END'
	import sqlite3, sys
	db = sqlite3.connect(sys.argv[1])
	def of(table, run):
	    return db.execute(f"SELECT round, loss FROM {table} WHERE run = ? ORDER BY round", (run,)).fetchall()
	first, continues = db.execute("SELECT first_round, continues FROM runs WHERE id = 3").fetchone()
	rest = of("rounds", 3)
	assert continues == 2 and first > 0 and rest[0][0] == first, (first, continues, rest[0])
	assert of("rounds", 1) == [r for r in of("rounds", 2) if r[0] < first] + rest
	judged = dict(of("validations", 1))
	assert dict(of("validations", 3)).items() <= judged.items()
	assert len(of("validations", 3)) == sum(r > first for r in judged)
	for view in ("v_ledger", "v_counted_once"):
	    assert db.execute(f"SELECT DISTINCT verdict FROM {view} WHERE run = 3").fetchall() == [("kept",)]
	END
}

rates='train.schedule={decay: cosine, warmup: 10, steps: 30}'
outer='outer: {optimizer: nesterov, lr: 0.7, momentum: 0.6}'
equals adamw 30 15 5 --set "$rates" --set 'train.validate={every: 7, microbatches: 3}'
equals sgd 30 15 5 --set 'train.optimizer={name: sgd, lr: 1.0e-4, momentum: 0.9}' --set "$rates"
equals lamb 20 10 5 --set 'train.optimizer={name: lamb, lr: 1.0e-3}'
equals clipped 20 10 5 --set train.optimizer.clip_norm=0.5
equals delayed 30 15 5 --set sync.delayed=true --set "$rates"
equals diloco 80 40 2 --set "sync={method: diloco, every: 8, $outer}" --set schedule.global_batch=128 \
	--set 'train.schedule={decay: cosine, warmup: 10, steps: 80}'
equals interleaved 30 15 5 --set schedule.pipeline=interleaved --set schedule.model_chunks=2
equals gpipe 20 10 5 --set schedule.pipeline=gpipe --set cluster.topology=place-4.yaml
equals 1f1b 20 10 5 --set schedule.pipeline=1f1b --set cluster.topology=place-4.yaml
equals rerun 20 10 5 --set schedule.pipeline=gpipe --set cluster.topology=place-4.yaml --set schedule.on_loss=rerun

# Where states were not all kept at the end: of the newest one that is whole.
rm -rf kept
accepts 'until the end' sim two.yaml "${kept[@]}" --db mid.db --set checkpoint.every=8 --write-checkpoints
rm kept/stage-1-version-60.kept
accepts 'before the end' sim two.yaml "${kept[@]}" --db mid.db --set checkpoint.every=8 --write-checkpoints --resume
check 'before the end: it begins where all stages were' python3 -c 'import sqlite3
db = sqlite3.connect("mid.db")
assert db.execute("SELECT first_round, continues FROM runs WHERE id = 2").fetchone() == (56, 1)
of = lambda r: db.execute("SELECT round, loss FROM rounds WHERE run = ? AND round >= 56", (r,)).fetchall()
assert of(1) == of(2) and len(of(2)) == 4'
check 'before the end: what not all stages had is aside' test -e "$(echo kept/run-*/stage-0-version-60.kept)"

# Workers step before a round has its row, so a run that is killed between the two has states of a round that is not in its books.
unrecorded() { # unrecorded NAME ROUNDS SENTENCE: of run 1 that many rows are gone, and the run that goes on with it says so
	sqlite3 mid.db "DELETE FROM runs WHERE id > 1; DELETE FROM rounds WHERE round >= 60 - $2"
	accepts "$1" sim two.yaml "${kept[@]}" --db mid.db --set checkpoint.every=8 --set train.until.steps=64 --resume
	check "$1: it is said" grep -qF "$3" "$err"
	check "$1: and how many" grep -q "\"steps\":4,.*\"rounds_unrecorded\":$2," "$out"
}
rm -rf kept mid.db
accepts 'of all rounds there are rows' sim two.yaml "${kept[@]}" --db mid.db --set checkpoint.every=8 --write-checkpoints
unrecorded 'a round without a row' 1 'had recorded round 59, which its workers had made: mid.db has no row of it'
unrecorded 'three rounds without rows' 3 'had recorded rounds 57 to 59, which its workers had made: mid.db has no row of them'
accepts 'it is in the text' sim two.yaml --set checkpoint.to=kept --db mid.db --set checkpoint.every=8 --set train.until.steps=64 --resume
check 'as what it is' grep -q 'directory .*of 3 rounds, which workers had made, there are no books' "$out"

# A database that does not know that run can tell nothing of its rows, and that is said; the one that knows it says nothing.
accepts 'another database' sim two.yaml --set checkpoint.to=kept --db other.db --set checkpoint.every=8 --set train.until.steps=64 --resume
check 'another database: it is said' grep -q 'other.db does not know the run that this one goes on with: it has no rows of what was before round 60' "$err"
accepts 'the same database' sim two.yaml --set checkpoint.to=kept --db mid.db --set checkpoint.every=8 --set train.until.steps=64 --resume
check 'the same database: it is known' test "$(grep -c 'does not know' "$err")" = 0

# These begin with their pipelines empty, or without what was under way; they go on all the same.
goes_on() { # goes_on NAME STEPS PART EVERY ARGUMENT...
	local name=$1 whole=$2 part=$3 how=("${kept[@]}" --db "$1.db" --set checkpoint.every="$4")
	shift 4
	rm -rf kept
	accepts "$name: first" sim two.yaml "${how[@]}" "$@" --set train.until.steps="$part" --write-checkpoints
	accepts "$name: then" sim two.yaml "${how[@]}" "$@" --set train.until.steps="$whole" --resume
	check "$name: all rounds before have rows" test "$(grep -c 'had recorded' "$err")$(sed 's/.*"rounds_unrecorded":\([0-9]*\),.*/\1/' "$out")" = 00
	check "$name: has learnt" python3 -c 'import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
of = lambda r: [l for l, in db.execute("SELECT loss FROM rounds WHERE run = ? ORDER BY round", (r,))]
a, b = of(1), of(2)
assert max(b) < 2 * a[0] and min(b) < a[0] / 10, (a[0], b)
assert [v for v, in db.execute("SELECT DISTINCT verdict FROM v_counted_once WHERE run = 2")] == ["kept"]' "$name.db"
}
goes_on pipedream 400 200 50 --set schedule.pipeline=pipedream --set schedule.global_batch=32
goes_on async 160 80 5 --set "sync={method: async, every: 8, $outer}" --set schedule.global_batch=128
goes_on streaming 160 80 5 --set "sync={method: streaming, every: 16, fragments: 2, $outer}" --set schedule.global_batch=128 \
	--set train.optimizer.lr=1.0e-3
goes_on candidates 60 30 10 --set 'train.init={candidates: 2, steps: 12}' --set cluster.topology=place-4.yaml
check 'nothing is written without --write-checkpoints' test ! -e kept/stage-0-version-60.kept

# Others: more workers, elsewhere; not another model, cut, batch or seed.
rm -rf kept
how=("${kept[@]}" --set checkpoint.every=10)
accepts 'half of it' sim two.yaml "${how[@]}" --set train.until.steps=30 --write-checkpoints
rm -f skep.db
accepts 'other machines' sim two.yaml "${how[@]}" --resume --set train.until.steps=32 --set cluster.topology=place-4.yaml
accepts 'a number that is written in another way' sim two.yaml "${how[@]}" --resume --set train.until.steps=32 --set train.optimizer.lr=0.00300
rm -f skep.db
none='of runs with another seed or scenario: take the --seed and --set of that run'
refuses 'another seed, and other machines' "$none.*; seed is 4, and was [0-9]+$" sim two.yaml "${how[@]}" --resume --seed 4 --set cluster.topology=place-4.yaml --set train.until.steps=40
refuses 'another batch' "$none.*; schedule.global_batch is 256, and was [0-9]+$" sim two.yaml "${how[@]}" --resume --set schedule.global_batch=256
refuses 'another optimizer, with two keys' "$none.*; (train.optimizer.lr|train.optimizer.name) is .*, and was .*, and 1 more$" \
	sim two.yaml "${how[@]}" --resume --set train.optimizer.lr=1.0e-3 --set train.optimizer.name=sgd
refuses 'without arithmetic' "$none" sim two.yaml "${how[@]}" --resume --set train.arithmetic=none
refuses 'another cut' "$none.*; model.stages is 1, and was 2$" sim two.yaml "${how[@]}" --resume --set model.stages=1
refuses 'no folder' 'has no checkpoint of all 2 stages' sim two.yaml "${how[@]}" --resume --set checkpoint.to=elsewhere
[ "${SKEP_HAS_MPI:-yes}" = no ] || refuses 'no folder, for real' 'has no checkpoint of all 2 stages' run two.yaml "${how[@]}" --resume --set checkpoint.to=elsewhere
refuses 'no checkpoint in the scenario' 'two.yaml.*keeps no states to go on with: add .checkpoint' sim two.yaml --resume
[ "${SKEP_HAS_MPI:-yes}" = no ] || refuses 'none, for real' 'two.yaml.*keeps no states to go on with: add .checkpoint' run two.yaml --resume
refuses 'nowhere to keep' '--write-checkpoints: the scenario does not say where' sim two.yaml --write-checkpoints
refuses 'nothing to keep' '--write-checkpoints: without arithmetic' sim two.yaml "${how[@]}" --write-checkpoints --set train.arithmetic=none
refuses 'a folder that is a file' 'checkpoint.to: cannot' sim two.yaml --write-checkpoints --set 'checkpoint={every: 10, to: two.yaml}'
refuses 'check takes no --resume' 'check does not take the option --resume' check two.yaml --resume
refuses 'run takes no --write-checkpoints' 'run does not take the option --write-checkpoints' run two.yaml --write-checkpoints

mkdir half && cp kept/stage-0-* half
refuses 'half of the stages' 'has no checkpoint of all 2 stages: 3 states of some' sim two.yaml "${how[@]}" --resume \
	--set checkpoint.to=half
# What is damaged is passed over with a warning, wherever in the file it is, and the version before it is taken.
passed_over() {
	run_skep sim two.yaml "${how[@]}" --resume --set train.until.steps=22 --set checkpoint.to="$1"
	if [ "$status" = 0 ] && grep -q "warning: $1/stage-1-version-30.kept is damaged .*passed over: step 20 is the newest" "$err"; then
		pass "$2"
	else
		fail "$2" "$(seen)"
	fi
	rm -f skep.db
}
cp -r kept cut && head -c 40 kept/stage-1-version-30.kept >cut/stage-1-version-30.kept
passed_over cut 'a head is cut off'
for at in 3 9 17 25 33 41 49 57 200; do
	cp -r kept spoilt$at
	python3 -c 'import sys; f = open(sys.argv[1], "r+b"); f.seek(int(sys.argv[2])); b = f.read(1)[0]; f.seek(-1, 1); f.write(bytes([b ^ 4]))' \
		spoilt$at/stage-1-version-30.kept $at
	passed_over spoilt$at "a flipped bit in byte $at"
done
mkdir all && for state in kept/*.kept; do head -c 100 "$state" >"all/${state#*/}"; done
refuses 'all are damaged' 'is no checkpoint, or damaged, and of no version before it' sim two.yaml "${how[@]}" --resume \
	--set checkpoint.to=all
accepts 'the end is reached' sim two.yaml "${how[@]}" --resume --set train.until.steps=30
check 'the end is reached: it is said' grep -q '"resumed":false,"steps":30' "$out"
check 'the end is reached: nothing is recorded' test ! -e skep.db
plan
