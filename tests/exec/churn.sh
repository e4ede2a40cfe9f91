#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# churn.sh - real runs in which workers come and go, on whatever MPI is there: scenarios/churn.yaml with its ten kills and eight
# joins (SIGKILL where MPI survives it, else softly, and said so), a worker that is lost while it downloads, frozen ones.
set -u
. tests/cli/lib.sh
needs python3 mpirun

mpi_environment

kept() { # kept KILLS JOINS: every gradient of the newest run is counted once or lost, it has learnt, and so many came and went
	python3 - "$out" "$@" <<-'END'
	import json, sqlite3, sys
	run = json.load(open(sys.argv[1]))
	kills, joins = int(sys.argv[2]), int(sys.argv[3])
	db = sqlite3.connect("skep.db")
	one = lambda sql: db.execute(sql, (run["run_id"],)).fetchone()[0]
	assert run["preemptions"] == kills and run["joins"] >= joins, run
	assert run["issued"] == run["counted"] + run["lost"] and run["issued"] > 0, run
	links = [one(f"SELECT sum(bytes) FROM links WHERE run = ? AND traffic = '{kind}'") for kind in ("pipeline", "sync")]
	assert links == [run["bytes_pipeline"], run["bytes_sync"]], (links, run) # of the dead too
	assert one("SELECT count(*) FROM v_ledger WHERE run = ? AND verdict <> 'kept'") == 0
	assert one("SELECT count(*) FROM v_counted_once WHERE run = ? AND verdict = 'kept'") == run["issued"]
	assert one("SELECT count(*) FROM v_counted_once WHERE run = ? AND verdict <> 'kept'") == 0
	first = one("SELECT loss FROM rounds WHERE run = ? AND round = 0")
	assert run["final_loss"] < first / 100, (first, run["final_loss"])
	END
}

replays() { # replays LIVES: the newest run, to the end of each life
	"$skep" replay "$(sqlite3_newest)" --json >"$scratch/replay" || return 1
	python3 - "$scratch/replay" "$1" <<-'END'
	import json, sys
	replay = json.load(open(sys.argv[1]))
	assert replay["verdict"] == "agrees" and replay["whole"] and replay["unfinished"] == [], replay
	assert replay["events"] == replay["run_events"] and replay["lives"] == int(sys.argv[2]), replay
	END
}

sqlite3_newest() {
	python3 -c 'import sqlite3; print(sqlite3.connect("skep.db").execute("SELECT max(id) FROM runs").fetchone()[0])'
}

loses 10 'ten kills, eight joins' run "$root/scenarios/churn.yaml" --pace --json -q
check 'says how hard the kills are' grep -qE 'kills are (soft|hard)' "$err"
check 'ten kills, eight joins: counted once, learnt' kept 10 8
check 'ten kills, eight joins: replays in 20 lives' replays 20
loses 10 'twice as fast, with notice' run "$root/scenarios/churn.yaml" --pace --json -q --time-scale 0.05 \
	--set 'cluster.trace.preempt_notice=600 ms'
check 'twice as fast, with notice: counted once, learnt' kept 10 8
left() { # left: with notice they go in order
	python3 -c 'import sqlite3; n = sqlite3.connect("skep.db").execute(
		"SELECT count(*) FROM notes WHERE run = 2 AND kind = ?", ("left",)).fetchone()[0]; assert n >= 5, n'
}
check 'twice as fast, with notice: they leave in order' left

# A join and a loss 50 ms later; the state takes some 200 ms to download.
cat >slow.yaml <<-END
name: five machines on slow lines
source: assumed for this test
directory: here
sites:
  here:
    machines: [{count: 5, gpu: t4, up: 20 Mbit/s, down: 20 Mbit/s}]
    inside: {bandwidth: 20 Mbit/s, latency: 1 ms}
END
printf '%s,join,n%d\n' 0 1 0 2 0 3 0 4 1 5 >join.csv
printf '1.05,leave,n5\n100,end,\n' >>join.csv
ln -s "$root/topologies/gpus" gpus
cat >download.yaml <<-END
name: lost in the download
seed: 2
model: {file: $root/models/square-mlp.yaml, stages: 2}
cluster: {topology: slow.yaml, trace: {file: join.csv}, allocation: {method: strided}}
schedule: {global_batch: 128, microbatch: 16}
directory: {heartbeat: 200 ms, timeout: 1 s}
train: {optimizer: {name: adamw, lr: 4.0e-3}, until: {steps: 30}}
END
in_download() { # in_download: the newcomer was fenced, had not joined and had not loaded anything
	python3 - "$out" <<-'END'
	import json, sqlite3, sys
	run = json.load(open(sys.argv[1]))
	db = sqlite3.connect("skep.db")
	one = lambda sql: db.execute(sql, (run["run_id"],)).fetchone()[0]
	assert run["steps"] == 30 and run["issued"] == run["counted"] + run["lost"], run
	assert one("SELECT count(*) FROM notes WHERE run = ? AND kind = 'fenced' AND peer = 4") == 1, run
	assert one("SELECT count(*) FROM notes WHERE run = ? AND kind = 'joined'") == 0, run
	assert one("SELECT count(*) FROM ops WHERE run = ? AND worker = 4 AND kind = 'load'") == 0, run
	END
}
loses 1 'lost in the download' run download.yaml --pace --shape --json -q
check 'lost in the download: the others go on' in_download
check 'lost in the download: replays' replays 6

sed '/trace:/d; s/steps: 200/steps: 120/' "$root/scenarios/churn.yaml" >frozen.yaml
sed -i "s,file: models/,file: $root/models/,; s,topology: ,topology: $root/," frozen.yaml
check 'frozen workers come back as newcomers' python3 "$root/tests/exec/torment.py" freeze "$skep" frozen.yaml 1 3
plan
