#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# serve_left.sh - `skep serve` is killed long after the last checkpoint: those that stay keep what they hold and bring it to the
# server that takes the run up again, which goes on from there.
set -u
. tests/cli/lib.sh
. "$root/tests/cli/lib_serve.sh"
needs python3 sqlite3
needs_tls 'what workers have left'
export ASAN_OPTIONS=detect_leaks=1
folders=home

first_of() { # first_of RUN: the first round of it that is recorded
	sqlite3 skep.db "SELECT min(round) FROM rounds WHERE run = $1"
}

last_of() {
	sqlite3 skep.db "SELECT max(round) FROM rounds WHERE run = $1"
}

lose_server() {
	kill -KILL "$server"
	wait "$server" 2>/dev/null
}

slowly=(--pace --set cluster.compute_scale=4000 --set 'directory={heartbeat: 200 ms, timeout: 2 s}')
job left.yaml 1 60 4 2
echo 'checkpoint: {every: 25, to: kept}' >>left.yaml
sed -i 's/optimizer: {[^}]*}/optimizer: {name: sgd, lr: 2.0e-4}/' left.yaml # whose end hardly depends on the order of sums

# ---- far behind a checkpoint -----------------------------------------------------------------------------------------

rm -rf home
serve left.yaml "${slowly[@]}"
stayed=()
for name in a b c d; do
	join "$name" --stay
	stayed+=($!)
done
check 'rounds are made behind the checkpoint' until_round 1 38
lose_server
for name in a b c d; do
	check "$name keeps what it holds" until_said "$name.err" 'the state of stage [01] as of round [0-9]+ is kept in kept'
done
check 'the server has nothing of it' test -z "$(find kept -name 'stage-*-version-[345]*')"
serve_on left.yaml "${slowly[@]}" --listen "127.0.0.1:$port" --resume
check 'it says what it waits for' until_said served.err \
	'behind step 25, and [0-9]+ were made: waits for machines that have newer ones, for 65 s at most'
served 'the run goes on to its end'
check 'newer states have come' grep -q 'newer states of all stages have come' served.err
for process in "${stayed[@]}"; do
	ends 'those that stay end with it' 0 "$process"
done
# What was made and not recorded when it was killed is not lost either: the server has no row of it, and says so.
check 'no round is lost but the open one' python3 -c '
import re, sys
last, first = map(int, sys.argv[1:])
found = re.search(r"had recorded rounds? (\d+)(?: to (\d+))?,", open("served.err").read())
told = list(range(int(found[1]), int(found[2] or found[1]) + 1)) if found else []
assert last < first <= last + 5 and list(range(last + 1, first)) == told, (last, first, told)' "$(last_of 1)" "$(first_of 2)"
kept 'the ledger is kept'
run_skep replay 2 --json
check 'stages step together, also when it is replayed' grep -q '"verdict":"agrees"' "$out"
accepts 'the same, simulated' sim left.yaml "${slowly[@]:1}"
for run in 1 2; do
	accepts "the simulated run beside run $run" compare 3 "$run" --json
	check "run $run: of the same scenario, whose stages step together in both" grep -q '"same_scenario_text":true' "$out"
done
accepts 'the same in one go' sim left.yaml --json
check 'has the same loss' python3 -c '
import json, sys
real, sim = json.load(open("served.out")), json.load(open(sys.argv[1]))
assert abs(real["final_loss"] / sim["final_loss"] - 1) < 1e-3, (real["final_loss"], sim["final_loss"])' "$out"

# ---- in the middle of a round of several inner steps -------------------------------------------------------------------

rm -rf home skep.db
job diloco.yaml 2 60 2 1
cat >>diloco.yaml <<'END'
sync: {method: diloco, every: 4, steps: fixed}
checkpoint: {every: 10, to: kept}
END
sed -i 's/optimizer: {[^}]*}/optimizer: {name: sgd, lr: 2.0e-4}/' diloco.yaml
serve diloco.yaml "${slowly[@]}"
stayed=()
for name in a b; do
	join "$name" --stay
	stayed+=($!)
done
check 'rounds are made without a checkpoint' until_round 1 3
lose_server
serve_on diloco.yaml "${slowly[@]}" --listen "127.0.0.1:$port" --resume
served 'the run goes on to its end'
for process in "${stayed[@]}"; do
	ends 'with those that stay' 0 "$process"
done
check 'no round is lost but the open one' test "$(first_of 2)" -gt "$(last_of 1)"
accepts 'the same in one go' sim diloco.yaml --json
check 'has the same loss, to the bit' python3 -c '
import json, sys
real, sim = json.load(open("served.out")), json.load(open(sys.argv[1]))
assert real["final_loss"] == sim["final_loss"], (real["final_loss"], sim["final_loss"])' "$out"

# ---- machines that have nothing ----------------------------------------------------------------------------------------

# When all of them are there the run begins with what is kept: nothing, which --resume=auto allows.
rm -rf home skep.db
job fresh.yaml 3 20 2 1
echo 'checkpoint: {every: 15, to: kept}' >>fresh.yaml
serve fresh.yaml "${slowly[@]}"
join a
join b
check 'rounds are made' until_round 1 4
lose_server
wait
rm -rf home
serve_on fresh.yaml "${slowly[@]}" --listen "127.0.0.1:$port" --resume=auto
join a
join b
served 'machines that are new begin it again'
check 'when all of them are there' grep -q 'no newer states of all stages have come' served.err
check 'with the first step' test "$(first_of 2)" = 0
wait

# ---- what a loss costs is said at the start ------------------------------------------------------------------------------

says() { # says NAME WORDS OPTION...: "": nothing of it
	serve left.yaml "${@:3}"
	if [ -n "$2" ]; then
		check "$1: said" until_said served.err "if this server is lost, .*$2"
	else
		check "$1: nothing is said" bash -c '! grep -q "if this server is lost" served.err'
	fi
	lose_server
}
says 'stages that step together' ''
says 'no checkpoint' 'begins with its first step: nothing is kept' --set checkpoint=null
says 'async' 'newest checkpoint: with .sync.method: async. the server alone knows' --set 'sync={method: async, every: 2}'
says 'shards' 'what all workers hold, or from its newest checkpoint if one is gone' --set sync.zero=1
says 'without a flush' 'what workers hold, or from its newest checkpoint' --set 'schedule={pipeline: pipedream, global_batch: 64, microbatch: 32}'
says 'checkpoints alone' 'newest checkpoint .*back_with: checkpoints' --set directory.back_with=checkpoints

plan
