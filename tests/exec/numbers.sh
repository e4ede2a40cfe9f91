#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# numbers.sh - what becomes of a run whose numbers become infinite: it stops, says where that was seen first, and what was kept
# before is still there. And what is kept in the end: the state after the last step, which can be exported and begun with; on a
# full disk what was there before.
set -u
. tests/cli/lib.sh
needs python3 mpirun

mpi_environment
job learns.yaml 5 20 4 2
echo 'checkpoint: {every: 2, to: kept}' >>learns.yaml
sed -e 's/{name: adamw, lr: 3.0e-3}/{name: sgd, lr: 0.5}, schedule: {warmup: 2000}/; s/steps: 20/steps: 200/' learns.yaml >explodes.yaml

stopped() { # stopped WORLD: the newest run, as JSON and in the database
	python3 - "$out" "$1" <<-'END'
	import json, re, sqlite3, sys
	run = json.load(open(sys.argv[1]))
	assert run["world"] == sys.argv[2] and 2 < run["steps"] < 200, run
	said = re.search(r"(activations|the loss|gradients) became infinite or no number in round (\d+), first in worker (\d) "
	                 r"\(stage (\d), layer (\d+) of 9\)", run["failure"])
	assert said and int(said[2]) == run["steps"] and int(said[3]) % 2 == int(said[4]), run["failure"]
	db = sqlite3.connect("skep.db")
	assert db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
	worker, stage, turn = db.execute("SELECT peer, stage, round FROM notes WHERE run = ? AND kind = 'diverged'", (run["run_id"],)).fetchone()
	assert (worker, stage, turn) == (int(said[3]), int(said[4]), run["steps"]), (worker, stage, turn)
	assert db.execute("SELECT count(*) FROM rounds WHERE run = ?", (run["run_id"],)).fetchone()[0] >= run["steps"]
	assert db.execute("SELECT count(*) FROM v_counted_once WHERE run = ? AND verdict <> 'kept'", (run["run_id"],)).fetchone()[0] == 0
	END
}
finite() { # finite FOLDER: no checkpoint holds what is not
	python3 - "$1" <<-'END'
	import array, math, os, sys
	names = [name for name in os.listdir(sys.argv[1]) if name not in ("files", "scenario.yaml")]
	assert names and all(name.endswith(".kept") for name in names), names
	for name in names:
	    numbers = array.array("f", open(os.path.join(sys.argv[1], name), "rb").read()[56 + 32:])
	    assert len(numbers) > 1000 and all(map(math.isfinite, numbers)), name
	END
}
for world in sim run; do
	[ "$world" = sim ] || [ "${SKEP_HAS_MPI:-yes}" != no ] || continue
	run_skep "$world" explodes.yaml --json -q
	check "$world: it fails" test "$status" = 1
	check "$world: it says where" grep -q 'skep: the run failed: .* first in worker [0-3] (stage [01], layer' "$err"
	name=$world
	[ "$world" = sim ] || name=real
	check "$world: and so do its results" stopped "$name"
done
if [ "${SKEP_HAS_MPI:-yes}" = no ]; then
	skip 'checkpoints' 'this build has no MPI'
	plan
	exit
fi
check 'what was kept is finite' finite kept
accepts 'that run can be replayed' replay 2
run_skep sim explodes.yaml --json -q --set sync.method=async --set sync.every=2 --db apart.db
check 'where nobody waits it fails' test "$status" = 1
kept_before() { # apart.db: it names what is not finite, and the last states are of rounds that were good
	python3 - <<-'END'
	import sqlite3
	db = sqlite3.connect("apart.db")
	told, kept = (db.execute("SELECT max(round) FROM notes WHERE kind = ?", (kind,)).fetchone()[0] for kind in ("diverged", "checkpointed"))
	worst = db.execute("SELECT max(loss) FROM losses WHERE round < ?", (kept,)).fetchone()[0]
	assert 0 < kept <= told + 1 and kept % 2 == 0 and worst < 9e300, (told, kept, worst)
	END
}
check 'says where, and had kept what was good' kept_before

# ---- the last state -----------------------------------------------------------------------------------------------------

rm -rf kept
accepts 'a run of an odd number of steps' run learns.yaml -q --set train.until.steps=5
check 'keeps the last one too' test "$(ls kept | grep -c 'stage-[01]-version-5.kept')" = 2
accepts 'and so does one that ends with its loss' run learns.yaml -q --set 'train.until={steps: 400, loss: 4}' --set checkpoint.every=300
newest() { # as many as the run has made
	python3 - <<-'END'
	import os, sqlite3
	last, loss = sqlite3.connect("skep.db").execute("SELECT round, loss FROM rounds WHERE run = 4 ORDER BY round DESC").fetchone()
	assert 5 < last < 399 and loss <= 4, (last, loss)
	assert {f"stage-{s}-version-{last + 1}.kept" for s in (0, 1)} <= set(os.listdir("kept")), (last, os.listdir("kept"))
	END
}
check 'after that very step' newest

cat >gpt.yaml <<-END
name: a small GPT
seed: 3
model: {file: $root/models/tiny-gpt2.yaml, stages: 2, sequence: 16}
cluster: {topology: place-4.yaml, allocation: {method: strided}}
schedule: {global_batch: 12, microbatch: 2}
checkpoint: {every: 4, to: gpt}
train:
  data: {corpus: text, file: $root/models/text/tinyshakespeare.txt}
  optimizer: {name: adamw, lr: 3.0e-3}
  until: {steps: 7}
END
accepts 'a GPT' run gpt.yaml -q
accepts 'its export' export gpt.yaml -o out --json
check 'is of the last step' grep -q '"step":7,' "$out"
accepts 'it goes on from there' sim gpt.yaml -q --set 'train.init={weights: out}' --set train.until.steps=1
goes_on() {
	python3 - <<-'END'
	import sqlite3
	loss = lambda run: [r[0] for r in sqlite3.connect("skep.db").execute("SELECT loss FROM rounds WHERE run = ? ORDER BY round", (run,))]
	assert len(loss(5)) == 7 and loss(6)[0] < loss(5)[6] + 0.3 < loss(5)[0], (loss(5), loss(6))
	END
}
check 'with what it had learnt' goes_on

# ---- a full disk --------------------------------------------------------------------------------------------------------

mkdir full
cat >full.sh <<-END
set -e
mount -t tmpfs -o size=2300k tmpfs full
"$skep" run learns.yaml -q --set checkpoint.to=full --set train.until.steps=9 >"$out" 2>"$err" || echo "status \$?"
ls full >names
cp full/* copy/
END
mkdir copy
if ! with_mounts true 2>"$err"; then
	skip 'a full disk' 'no permission to mount a file system'
else
	check 'a run goes on when the disk is full' test -z "$(with_mounts bash full.sh)"
	check 'it says so' grep -q 'checkpoint full/stage-[01]-version-[0-9]*.kept: cannot be written: No space left on device' "$err"
	check 'and what it means' grep -q 'could not be kept; older checkpoints are still there, and the run goes on' "$err"
	check 'in its results too' grep -q 'checkpoints* ([0-9]* more could not be written)' "$out"
	check 'older checkpoints are whole' finite copy
	check 'of both stages' test "$(grep -c 'version-2.kept' names)" = 2
fi
plan
