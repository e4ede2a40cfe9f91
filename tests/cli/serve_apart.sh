#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# serve_apart.sh - `skep serve` is lost when it has told both stages to step, and its word has come to one of them alone: the other one's
# machine is 0.7 s away, by a relay that holds all bytes up and is lost with the server. No round is lost but the open one.
set -u
. tests/cli/lib.sh
. "$root/tests/cli/lib_serve.sh"
needs python3 sqlite3
needs_tls 'word of a step that is lost'
export ASAN_OPTIONS=detect_leaks=1
folders=home

slowly=(--pace --set cluster.compute_scale=1000 --set 'directory={heartbeat: 500 ms, timeout: 5 s}')
job apart.yaml 2 14 2 2
echo 'checkpoint: {every: 100, to: kept}' >>apart.yaml

relay() { # what connects to $away is 0.7 s away
	: >relay.out
	python3 "$root/tests/bench/delay.py" 700 "$away:$port" >relay.out &
	relay=$!
	until_said relay.out 'passes on'
}
trap 'kill "${relay:-}" 2>/dev/null; rm -rf "$scratch"' EXIT

serve apart.yaml "${slowly[@]}"
away=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
relay
near=$port
stayed=()
join a --stay --worker 0
stayed+=($!)
port=$away
join b --stay --worker 1
stayed+=($!)
port=$near
until_round 1 1 # of some seconds each
until_round 1 1
check 'rounds are made' until_round 1 1
check 'and another one' until_round 1 2
kill -KILL "$relay" "$server"
wait "$relay" "$server" 2>/dev/null
last=$(sqlite3 skep.db 'SELECT max(round) FROM rounds WHERE run = 1')
for name in a b; do
	check "$name keeps what it holds" until_said "$name.err" 'the state of stage [01] as of round [0-9]+ is kept in kept'
done
check 'one stage has stepped' grep -q "stage 0 as of round $((last + 1)) is kept" a.err
check 'and the other one has not' grep -q "stage 1 as of round $last is kept" b.err
check 'but it keeps what the step makes, too' grep -q "stage 1 as of round $((last + 1)) is kept in .*: other stages may have made that step" b.err
relay
serve_on apart.yaml "${slowly[@]}" --listen "127.0.0.1:$port" --resume
served 'the run goes on to its end'
for process in "${stayed[@]}"; do
	ends 'with those that stay' 0 "$process"
done
check 'newer states have come' grep -q 'newer states of all stages have come' served.err
check 'no round is lost' test "$(sqlite3 skep.db 'SELECT min(round) FROM rounds WHERE run = 2')" = "$((last + 1))"
kept 'the ledger is kept'
run_skep replay 2 --json
check 'and what followed replays' grep -q '"verdict":"agrees"' "$out"
accepts 'the same in one go' sim apart.yaml --json
check 'has the same loss, to the bit' python3 -c '
import json, sys
real, sim = json.load(open("served.out")), json.load(open(sys.argv[1]))
assert real["final_loss"] == sim["final_loss"], (real["final_loss"], sim["final_loss"])' "$out"
wait "$server" 2>/dev/null

plan
