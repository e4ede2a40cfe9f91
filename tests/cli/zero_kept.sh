#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# zero_kept.sh - what runs in shards (sync.zero) keep, and that they go on with it: each worker writes all parameters and the moments of
# its own shard; a run that takes them up has the losses of one that nothing has happened to, to the bit, simulated with arithmetic,
# for real and served; and it needs as many workers as have kept them, and all of their parts.
set -u
. tests/cli/lib.sh
. "$root/tests/cli/lib_serve.sh"
needs python3 sqlite3

small_model
for n in 2 3 4; do place "$n"; done
cat >kept.yaml <<-END
name: three shards
seed: 5
model: {file: small.yaml, stages: 1}
cluster: {topology: place-3.yaml}
schedule: {pipeline: gpipe, global_batch: 48, microbatch: 4}
sync: {zero: 1}
checkpoint: {every: 5, to: kept}
train: {arithmetic: real, optimizer: {name: adamw, lr: 3.0e-3}, until: {steps: 20}}
END
how=(kept.yaml -q --json)

# Of the runs in DB the last one goes on with the one before, from round FROM on, and both together are the first.
unbroken() { # unbroken DB FROM
	python3 - "$1" "$2" <<-'END'
	import sqlite3, sys
	db, begins = sqlite3.connect(sys.argv[1]), int(sys.argv[2])
	of = lambda run: db.execute("SELECT round, loss FROM rounds WHERE run = ? ORDER BY round", (run,)).fetchall()
	whole = of(1)
	last, first_round = db.execute("SELECT id, first_round FROM runs ORDER BY id DESC LIMIT 1").fetchone()
	assert first_round == begins and len(whole) == 20 and whole[19][1] < whole[0][1], (first_round, whole)
	assert of(last) == whole[begins:], (of(last), whole[begins:])
	assert of(last - 1)[:begins] == whole[:begins], (of(last - 1), whole[:begins])
	END
}

for more in '' train.optimizer.clip_norm=0.5 'train.optimizer={name: sgd, lr: 1.0e-3, momentum: 0.9}' 'sync={zero: 1, delayed: true}'; do
	rm -rf kept
	set -- "${how[@]}" --db "sim.db" ${more:+--set "$more"}
	[ "$more" != 'sync={zero: 1, delayed: true}' ] || set -- "$@" --set schedule.pipeline=swarm --set schedule.global_batch=12
	rm -f sim.db
	accepts "unbroken${more:+, $more}" sim "$@"
	accepts "half of it${more:+, $more}" sim "$@" --set train.until.steps=10 --write-checkpoints
	accepts "the other half${more:+, $more}" sim "$@" --resume --write-checkpoints
	check "together they are the same${more:+, $more}" unbroken sim.db 10
done

# ---- what is in the files -----------------------------------------------------------------------------------------------------

# A header, a state's header, all parameters, and two moments of the shard, whose elements are those of a third of the vector.
rm -rf kept
accepts 'kept' sim "${how[@]}" --db sim.db --write-checkpoints
accepts 'planned' check kept.yaml --json
check 'each worker keeps all parameters, and the moments of its own shard' python3 - "$out" <<-'END'
import glob, json, os, sys
p = json.load(open(sys.argv[1]))["stages"][0]["parameters"]
for version in 10, 15, 20:
    sizes = [os.path.getsize(f"kept/stage-{part}-version-{version}.kept") - 64 - 32 - 4 * p for part in range(3)]
    assert sum(sizes) == 8 * p and sorted(sizes) == sorted(8 * (p // 3 + (i < p % 3)) for i in range(3)), (p, sizes)
assert len(glob.glob("kept/*.kept")) == 9
END

# ---- what it needs ------------------------------------------------------------------------------------------------------------

refuses 'fewer workers' 'states in another number of shards.*as many workers' sim "${how[@]}" --resume --set cluster.topology=place-2.yaml
refuses 'more workers' 'states in another number of shards.*as many workers' sim "${how[@]}" --resume --set cluster.topology=place-4.yaml
refuses 'not in shards' 'all of runs with another seed or scenario' sim "${how[@]}" --resume --set sync.zero=0
rm kept/stage-1-version-20.kept
rm -f parts.db
accepts 'without faults' sim "${how[@]}" --db parts.db
accepts 'once more' sim "${how[@]}" --db parts.db
accepts 'a part of the newest is gone' sim "${how[@]}" --db parts.db --resume --write-checkpoints
check 'it goes on with the version before, which is whole' unbroken parts.db 15
printf x | dd of=kept/stage-2-version-20.kept bs=1 seek=500 conv=notrunc status=none
run_skep sim "${how[@]}" --db parts.db --resume
check 'a part that is damaged is passed over' grep -q '"steps":5,' "$out"

# ---- for real -----------------------------------------------------------------------------------------------------------------

if [ "${SKEP_HAS_MPI:-no}" = yes ]; then
	mpi_environment
	rm -rf kept
	accepts 'unbroken, simulated' sim "${how[@]}" --db real.db
	accepts 'half of it, for real' run "${how[@]}" --db real.db --set train.until.steps=10
	accepts 'the other half, for real' run "${how[@]}" --db real.db --resume
	check 'together they are the same, for real' unbroken real.db 10
fi

# ---- served: a machine is lost, and with it the run, which is taken up -----------------------------------------------------------

if ! "$skep" serve --help | grep -q 'built without TLS'; then
	export ASAN_OPTIONS=detect_leaks=1
	slowly=(--pace --set cluster.compute_scale=1000000 --set 'directory={heartbeat: 200 ms, timeout: 2 s}')
	accepts 'unbroken, beside what is served' sim kept.yaml -q --json --db served.db
	serve kept.yaml "${slowly[@]}" --db served.db
	members=()
	for name in a b c; do # not by join(), whose process is not the machine's own
		"$skep" join "127.0.0.1:$port" --ticket "$ticket" --cache "$PWD/cache/$name" >"$name.out" 2>"$name.err" &
		members+=($!)
	done
	for _ in $(seq 600); do
		[ ! -e kept/stage-2-version-5.kept ] || [ ! -e kept/stage-1-version-5.kept ] || [ ! -e kept/stage-0-version-5.kept ] || break
		sleep 0.05
	done
	kill -KILL "${members[1]}"
	ends 'a machine that is lost ends the run' 1 "$server"
	check 'it says with what' grep -q 'shard' served.err
	wait
	serve_on kept.yaml "${slowly[@]}" --db served.db --listen 127.0.0.1:0 --resume
	check 'it goes on with all parts' grep -qE 'goes on behind step (5|10|15), of which kept has the states' served.err
	for name in d e f; do join "$name"; done # on other machines, which fetch their parts
	served 'to the end'
	wait
	begins=$(sqlite3 served.db 'SELECT first_round FROM runs ORDER BY id DESC LIMIT 1')
	check 'together they are the same, served' unbroken served.db "$begins"
fi

plan
