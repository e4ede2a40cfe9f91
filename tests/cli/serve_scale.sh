#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# serve_scale.sh - a served run that asks for machines by a command of the user's, which starts `skep join` on this host, and gives
# them back. Rounds are paced: 16 passes of 16 ms are shared by those who are there.
set -u
. tests/cli/lib.sh
. "$root/tests/cli/lib_serve.sh"
needs python3 setsid
needs_tls 'machines that a served run asks for'
export SKEP=$skep

mkdir gpus
cat >gpus/steady.yaml <<'END'
name: steady
source: assumed for this test
flops: 1000 TFLOP/s
efficiency: 1
memory_bandwidth: 1000 GB/s
memory: 16 GB
overhead: 8 ms
END
cat >pool.yaml <<'END'
name: a pool
source: assumed for this test
directory: here
sites:
  here:
    machines: [{count: 6, gpu: steady, price: 0.36 USD/h}]
    inside: {bandwidth: 1 Gbit/s, latency: 0.1 ms}
END
cat >job.yaml <<END
name: asked for
seed: 5
model: {file: $root/models/square-mlp.yaml, stages: 1}
cluster: {topology: pool.yaml, scale: {policy: deadline, deadline: 1 s, start: 1, max: 3, period: 100 ms, cool_down: 2 s}}
schedule: {global_batch: 512, microbatch: 32}
train: {arithmetic: real, optimizer: {name: adamw, lr: 3.0e-3}, until: {steps: 60}}
END

# A command as a user may write it: has as many processes as are wanted, counted by itself. It notes each call; while the file
# `broken` is there it fails, and while `slow` is there, a call for more than one does not end.
cat >machines <<'END'
#!/bin/bash
echo "$SKEP_SCALE_KIND $SKEP_SCALE_WANTED $SKEP_SCALE_PRESENT" >>asked
mkdir calls 2>/dev/null || echo 'two at a time' >>asked
while [ -e slow ] && [ "$SKEP_SCALE_WANTED" -gt 1 ]; do sleep 0.1; done
rmdir calls
if [ -e broken ]; then
	rm broken
	exit 3
fi
mkdir -p pids
here=0
for pid in pids/*; do
	[ -e "$pid" ] && kill -0 "${pid#pids/}" 2>/dev/null && here=$((here + 1))
done
for ((; here < SKEP_SCALE_WANTED; here++)); do
	number=$(find . -maxdepth 1 -name 'join.*.err' | wc -l)
	: >"join.$number.err" # here, since the next one counts these before the process behind has opened its own
	setsid "$SKEP" join "$SKEP_SERVER" --stay --gpu "$SKEP_SCALE_KIND" --cache "$PWD/cache/$number" \
		>"join.$number.out" 2>"join.$number.err" </dev/null &
	touch "pids/$!"
done
END
chmod +x machines
trap 'for pid in pids/*; do [ -e "$pid" ] && kill "${pid#pids/}" 2>/dev/null; done; chmod -R u+rwx "$scratch"; rm -rf "$scratch"' EXIT

asks() { # asks ARGUMENT...: begins to serve
	rm -rf asked pids calls join.* skep.db*
	serve job.yaml --pace --silence '2 s' --scale-command ./machines "$@"
}
closed() { # closed ROUNDS: have so many been?
	[ "$(python3 -c 'import sqlite3; print(sqlite3.connect("skep.db").execute("SELECT count(*) FROM rounds").fetchone()[0])' 2>/dev/null)" -ge "$1" ] 2>/dev/null
}
awaits() { # awaits COMMAND...
	local i
	for ((i = 0; i < 600; i++)); do
		"$@" && return
		sleep 0.05
	done
	return 1
}
gone() { # none of the processes is left, ten seconds later at most
	local pid i
	for pid in pids/*; do
		for ((i = 0; i < 200; i++)); do
			kill -0 "${pid#pids/}" 2>/dev/null || break
			sleep 0.05
		done
		! kill -0 "${pid#pids/}" 2>/dev/null || return 1
	done
}

# ---- more ------------------------------------------------------------------------------------------------------------------

asks
served 'a run that is late asks for machines'
check 'the command is told of each number, and that the run is done' test "$(tr '\n' ';' <asked)" = 'steady 1 0;steady 2 1;steady 3 2;steady 0 3;'
run_is 'those that it starts take part' 'run["steps"] == 60' 'run["joins"] == 2' 'run["scalings"] == 2' 'run["preemptions"] == 0' 'run["lost"] == 0'
kept 'the ledger is kept'
accepts 'it replays' replay 1 --json
check 'and asks for the same' python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); assert r["verdict"] == "agrees", r' "$out"
check 'and all of them end' gone

# ---- fewer -----------------------------------------------------------------------------------------------------------------

asks --set 'cluster.scale={policy: deadline, deadline: 1 h, start: 3, min: 1, period: 100 ms, cool_down: 1 s}'
served 'a run that is early gives machines back'
run_is 'and loses nothing with them' 'run["steps"] == 60' 'run["returned"] == 2' 'run["preemptions"] == 0' 'run["lost"] == 0' 'run["issued"] == run["counted"]'
check 'the command is told' test "$(tr '\n' ';' <asked)" = 'steady 3 0;steady 2 3;steady 1 2;steady 0 1;'
check 'two processes say so, and do not come back though they were to stay' test "$(cat join.*.err | grep -c 'this machine is given back')" = 2
check 'long before the end' python3 -c 'import json, sqlite3
db = sqlite3.connect("skep.db")
lives = sorted(end for (end,) in db.execute("SELECT ended_s FROM incarnations"))
run = json.load(open("served.out"))
assert len(lives) == 3 and lives[1] < run["time_s"] / 2, (lives, run)
assert abs(run["cost_usd"] - sum(e - s for s, e in db.execute("SELECT started_s, ended_s FROM incarnations")) * 0.36 / 3600) < 1e-9'
kept 'the ledger is kept there'
accepts 'it replays too' replay 1 --json
check 'and gives back the same' python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); assert r["verdict"] == "agrees", r' "$out"
check 'and those end as well' gone

# ---- a command that fails, one that is slow, a machine that is lost ---------------------------------------------------------

touch broken
asks --set cluster.scale.max=2 --set train.until.steps=30
served 'a command that fails is called again'
check 'that is said' grep -q 'skep: the scale command ended with status 3: it was to have 1 of steady there' served.err
check 'with the same number' test "$(head -n 2 asked | tr '\n' ';')" = 'steady 1 0;steady 1 0;'
check 'and these end' gone

: >slow
asks --set cluster.scale.max=2 --set train.until.steps=40
awaits grep -qs '^steady 2' asked
before=$(python3 -c 'import sqlite3; print(sqlite3.connect("skep.db").execute("SELECT count(*) FROM rounds").fetchone()[0])')
check 'the run goes on while a command takes its time' awaits closed $((before + 3))
check 'of which it calls one at a time' test ! -e "$(grep -l 'two at a time' asked)"
check 'that one is still on its way' test -d calls
rm slow
served 'it ends'
check 'with all of its processes' gone

asks --set 'cluster.scale={policy: deadline, deadline: 1 s, start: 2, min: 2, max: 2, period: 100 ms, cool_down: 30 s}' --set train.until.steps=120
awaits closed 10
victim=$(find pids -type f | head -n 1)
kill -KILL -- "-${victim#pids/}"
awaits grep -qs '^steady 2 1' asked
check 'a machine that is lost is asked for again' grep -q '^steady 2 1' asked
served 'and comes'
run_is 'to take part' 'run["preemptions"] == 1' 'run["joins"] == 1' 'run["steps"] == 120'
kept 'the ledger is kept with a loss'

# ---- wrong usage -------------------------------------------------------------------------------------------------------------

refuses 'keys without a command' 'cluster.scale: --scale-command says what asks for machines' serve job.yaml
refuses 'a command without keys' '--scale-command: nothing says how many machines are wanted' serve job.yaml --set cluster.scale=null --scale-command true
refuses 'beside --at-least' '--at-least: cluster.scale.start says how many' serve job.yaml --scale-command true --at-least 1
refuses 'a trace' 'cluster.trace: which machines may be had is for --scale-command' serve job.yaml --scale-command true \
	--set "cluster.trace.file=$root/topologies/traces/small.csv" --set cluster.trace.any_gpu=true
[ "${SKEP_HAS_MPI:-no}" != yes ] || refuses 'a run over MPI' 'has all of its machines from the start' run job.yaml

plan
