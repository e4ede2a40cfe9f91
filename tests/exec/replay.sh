#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# replay.sh - real runs replay: fresh machines, told what those of the run were told, decide the same. What was changed in
# between is found; a log that is not there, or damaged, is refused.
set -u
. tests/cli/lib.sh
needs python3 mpirun

mpi_environment

agrees() { # agrees: the replay just printed is of the whole run, event for event
	python3 - "$out" <<-'END'
	import json, sqlite3, sys
	replay = json.load(open(sys.argv[1]))
	assert replay["verdict"] == "agrees" and replay["whole"] and replay["first"] is None, replay
	assert replay["events"] == replay["run_events"] > 0, replay
	db = sqlite3.connect("skep.db")
	one = lambda sql: db.execute(sql, (replay["run_id"],)).fetchone()[0]
	assert one("SELECT events FROM runs WHERE id = ?") == replay["events"]
	assert one("SELECT workers + 1 FROM runs WHERE id = ?") == replay["machines"]
	assert one("SELECT sum(length(bytes)) FROM event_log WHERE run = ?") == replay["log_bytes"]
	END
}

exits() { # exits NAME STATUS REGEX ARGUMENT...: what is printed matches
	local name=$1 want=$2 regex=$3
	shift 3
	run_skep "$@"
	if [ "$status" = "$want" ] && cat "$out" "$err" | grep -qE -- "$regex"; then
		pass "$name"
	else
		fail "$name" "$(seen)"
	fi
}

accepts 'runs one-worker' run "$root/scenarios/one-worker.yaml" --set train.until.steps=10 -q --json
accepts 'replays one-worker' replay 1 --json
check 'one-worker agrees' agrees
accepts 'runs two-datacentres' run "$root/scenarios/two-datacentres.yaml" --set train.until.steps=20 --seed 7 -q --json
accepts 'replays two-datacentres' replay 2 --json
check 'two-datacentres agrees' agrees
mkdir elsewhere
(cd elsewhere && "$skep" replay 2 --db ../skep.db) >"$out" 2>"$err"
check 'from another folder' grep -q 'run 2 agrees' "$out"
accepts 'runs paced and shaped' run "$root/scenarios/two-datacentres.yaml" --set train.until.steps=3 --pace --shape -q --json
accepts 'replays paced and shaped' replay 3 --json
check 'paced and shaped agrees' agrees
accepts 'simulates' sim "${quick[@]}" -q --json

exits 'a simulated run has no log' 2 'name a real one' replay 4
exits 'a run that is not there' 2 'there is no run 5' replay 5
exits 'not a number' 2 'is not the number of a run' replay last
exits 'no run' 2 'replay takes RUN' replay

tamper() { # tamper COPY SQL
	python3 - "$1" "$2" <<-'END'
	import sqlite3, sys
	to = sqlite3.connect(sys.argv[1])
	sqlite3.connect("skep.db").backup(to)
	def checksum(data):
	    value = 0xcbf29ce484222325
	    for byte in data:
	        value = (value ^ byte) * 0x100000001b3 % 2**64
	    return value - 2**64 if value >= 2**63 else value
	to.create_function("checksum", 1, checksum)
	def flip(data, place):  # one bit
	    data = bytearray(data)
	    data[place] ^= 1
	    return bytes(data)
	to.create_function("flip", 2, flip)
	to.executescript(sys.argv[2])
	to.commit()
	END
}

tamper flipped.db 'UPDATE event_log SET bytes = flip(bytes, 100) WHERE run = 2 AND worker = 3 AND part = 2'
exits 'a flipped bit is damage' 2 'damaged: part 2 of machine 3' replay 2 --db flipped.db
tamper dropped.db 'DELETE FROM event_log WHERE run = 2 AND worker = 3 AND part = 2'
exits 'a missing part is damage' 2 'damaged: part 3 of machine 3' replay 2 --db dropped.db
tamper short.db 'DELETE FROM event_log WHERE run = 2 AND worker = 3 AND part > 2'
exits 'a missing end is damage' 2 'the log ends before the machine did' replay 2 --db short.db
# The first event is a start: a byte for its kind, eight for its time.
tamper forged.db 'UPDATE event_log SET bytes = flip(bytes, 1) WHERE run = 2 AND worker = 3 AND part = 0;
	UPDATE event_log SET checksum = checksum(bytes)'
exits 'a forged event is a difference' 1 'machine 3, event 1,' replay 2 --db forged.db
exits 'and so it is in JSON' 1 '"verdict":"differs".*"first":\{"machine":3,"event":1,.*"what":"start"' \
	replay 2 --json --db forged.db
tamper seed.db "UPDATE runs SET text = replace(text, 'seed: 7', 'seed: 8') WHERE id = 2"
exits 'another seed' 1 'run 2 differs' replay 2 --db seed.db
tamper text.db "UPDATE runs SET text = 'nonsense: 1' WHERE id = 1"
exits 'a scenario that is none' 2 'nonsense' replay 1 --db text.db

# The files that the scenario names are part of the run.
cp "$root/models/square-mlp.yaml" model.yaml
cp "$root/topologies/two-datacentres.yaml" place.yaml
ln -s "$root/topologies/gpus" gpus
accepts 'runs with files of its own' run "$root/scenarios/two-datacentres.yaml" --set train.until.steps=3 \
	--set model.file=model.yaml --set cluster.topology=place.yaml -q --json --db own.db
exits 'unchanged they agree' 0 'run 1 agrees' replay 1 --db own.db
sed -i 's/tanh/relu/; s/gelu/relu/' model.yaml
cmp -s model.yaml "$root/models/square-mlp.yaml" && fail 'the model is changed'
exits 'a changed model' 2 '^skep: model.yaml is not as run 1 read it' replay 1 --db own.db
cp "$root/models/square-mlp.yaml" model.yaml
echo '# a remark' >>place.yaml
exits 'a changed topology' 2 '^skep: place.yaml is not as run 1 read it' replay 1 --db own.db
echo 'nonsense: 1' >model.yaml
exits 'a model that is none' 2 '^skep: model.yaml is not as run 1 read it' replay 1 --db own.db
python3 - <<-'END'
	import sqlite3
	db = sqlite3.connect("file:own.db?mode=rw", uri=True)
	for path, text in db.execute("SELECT path, text FROM sources WHERE run = 1 AND path IN ('model.yaml', 'place.yaml')"):
	    open(path, "w").write(text)
END
exits 'as the database has them they agree' 0 'run 1 agrees' replay 1 --db own.db
plan
