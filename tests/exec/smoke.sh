#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# smoke.sh - real runs with 2, 4 and 9 processes, as fast as this machine goes: they end in order, count each gradient
# once, learn, and leave what they did in the database. Started by skep and by mpirun.
set -u
. tests/cli/lib.sh
needs python3 mpirun

mpi_environment

kept() { # kept: every gradient is counted once or lost, and the loss has fallen
	python3 - "$out" <<-'END'
	import json, sqlite3, sys
	run = json.load(open(sys.argv[1]))
	db = sqlite3.connect("skep.db")
	one = lambda sql: db.execute(sql, (run["run_id"],)).fetchone()[0]
	assert run["world"] == "real" and run["steps"] == 40, run
	assert run["lost"] == 0 and run["issued"] == run["counted"] > 0, run
	assert one("SELECT count(*) FROM rounds WHERE run = ?") == 40
	assert one("SELECT count(*) FROM v_counted_once WHERE run = ? AND verdict = 'kept'") == run["issued"]
	assert one("SELECT count(*) FROM v_counted_once WHERE run = ? AND verdict <> 'kept'") == 0
	first = one("SELECT loss FROM rounds WHERE run = ? AND round = 0")
	assert run["final_loss"] < min(first, 4), (first, run["final_loss"])
	END
}

for workers in 1 3 8; do
	ranks=$((workers + 1))
	job "smoke-$workers.yaml" 3 40 "$workers" $((workers < 4 ? workers : 4))
	accepts "$ranks processes" run "smoke-$workers.yaml" --json -q
	check "$ranks processes: counted once, learnt" kept
done

accepts '4 processes, said so' run smoke-3.yaml -n 4 --json -q
check '4 processes, said so: counted once, learnt' kept
accepts '4 processes, paced and shaped' run smoke-3.yaml --pace --shape --json -q
check '4 processes, paced and shaped: counted once, learnt' kept

# With one worker in each stage and one microbatch under way the sums have one order, so both worlds have every bit of every
# loss in common, of validations too.
one=(--set schedule.in_flight=1 --set train.optimizer.lr=2.0e-4 --set train.validate.every=15)
twins() { # twins STALENESS: the last two runs, one of each world
	python3 - "$1" <<-'END'
	import sqlite3, sys
	db = sqlite3.connect("skep.db")
	runs = db.execute("SELECT id, world FROM runs ORDER BY id DESC LIMIT 2").fetchall()
	assert sorted(world for run, world in runs) == ["real", "sim"], runs
	rows = [db.execute("SELECT round, loss, staleness FROM rounds WHERE run = ? ORDER BY round", (run,)).fetchall()
		for run, world in runs]
	assert len(rows[0]) == 40 and rows[0] == rows[1], rows
	assert [row[2] for row in rows[0]] == [0] + 39 * [int(sys.argv[1])], rows[0]
	judged = "SELECT round, step, asked, counted, loss, perplexity FROM validations WHERE run = ? ORDER BY round"
	rows = [db.execute(judged, (run,)).fetchall() for run, world in runs]
	assert [row[0] for row in rows[0]] == [15, 30, 40] and rows[0] == rows[1], rows
	assert all(row[2] == row[3] == 16 and row[4] > 0 and row[5] is None for row in rows[0]), rows
	kept = "SELECT count(*), sum(verdict = 'kept') FROM v_counted_once WHERE run = ?"
	assert all(db.execute(kept, (run,)).fetchone() == (40 * 16 * 3,) * 2 for run, world in runs)
	END
}

# Threads of a device change no bit either. A machine of one core has no second one for them.
threads=$(($(nproc) > 1 ? 2 : 1))
for delayed in false true; do
	accepts "3 stages, delayed: $delayed, simulated" sim smoke-3.yaml "${one[@]}" --set sync.delayed=$delayed --json -q
	accepts "3 stages, delayed: $delayed, for real" run smoke-3.yaml "${one[@]}" --set sync.delayed=$delayed \
		--set cluster.threads=$threads --json -q
	check "3 stages, delayed: $delayed: both worlds compute the same" twins "$([ $delayed = true ] && echo 1 || echo 0)"
done
[ "$threads" = 1 ] || [ "$(nproc)" -ge 6 ] || check 'threads without a core of their own are told of' \
	grep -q '3 processes on .* with 2 threads each (cluster.threads) share [2-5] cores' "$err"
run_skep run smoke-3.yaml --set cluster.threads=1000 --json -q
[ "$(nproc)" -ge 1000 ] || check 'more threads than cores are refused' \
	grep -q 'cluster.threads: 1000 threads, but this process may use [0-9]* cores\?: take --set cluster.threads=' "$err"
accepts '8 workers, delayed' run smoke-8.yaml --set sync.delayed=true --json -q
accepts '8 workers, delayed: replayed' replay "$(grep -o '"run_id":[0-9]*' "$out" | cut -d: -f2)"

[ -e gpus ] || ln -s "$root/topologies/gpus" gpus
sed 's/gpu: v100/gpu: v100, gpus: 2, inner: {bandwidth: 150 GB\/s, latency: 5 us}/' "$root/topologies/one-worker.yaml" >two-gpus.yaml
accepts 'two GPUs with a pace' run "${quick[@]}" --set cluster.topology=two-gpus.yaml --pace -q

under_mpirun() { # under_mpirun RANKS ARGUMENT...
	status=0
	timeout -k 5 300 mpirun --oversubscribe --mca mpi_yield_when_idle 1 -n "$1" "$skep" "${@:2}" \
		>"$out" 2>"$err" </dev/null || status=$?
}
under_mpirun 4 run smoke-3.yaml --json -q
if [ "$status" = 0 ]; then pass 'joins under mpirun'; else fail 'joins under mpirun' "$(seen)"; fi
check 'joins under mpirun: counted once, learnt' kept
under_mpirun 3 run smoke-3.yaml --json -q
if [ "$status" = 2 ] && [ "$(grep -c 'started with 3' "$err")" = 1 ]; then
	pass 'too few processes under mpirun: said once'
else
	fail 'too few processes under mpirun: said once' "$(seen)"
fi
plan
