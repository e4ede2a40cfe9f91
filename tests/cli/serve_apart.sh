#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# serve_apart.sh - `skep serve` is lost when it has told both stages to step, and its word has come to one of them alone: the other one's
# machine is some seconds away, by a relay that holds all bytes up and is lost with the server. No round is lost but the open one: behind
# some rounds, and in the first one, before which a worker has nothing to keep.
set -u
. tests/cli/lib.sh
. "$root/tests/cli/lib_serve.sh"
needs python3 sqlite3
needs_tls 'word of a step that is lost'
export ASAN_OPTIONS=detect_leaks=1
folders=home

slowly=(--pace --set cluster.compute_scale=1000 --set 'directory={heartbeat: 500 ms, timeout: 30 s}')
relay() { # what connects to $away is near, and on a signal this script's window away: 4 s
	: >relay.out
	python3 "$root/tests/bench/delay.py" 20,4000 "$away:$port" >relay.out &
	relay=$!
	until_said relay.out 'passes on'
}
trap 'kill "${relay:-}" 2>/dev/null; rm -rf "$scratch"' EXIT

begin() { # worker 0 is near the server, and worker 1 by the relay
	rm -rf home skep.db
	serve apart.yaml "${slowly[@]}"
	away=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
	relay
	near=$port stayed=()
	join a --stay --worker 0
	stayed+=($!)
	port=$away
	join b --stay --worker 1
	stayed+=($!)
	port=$near
}

lose() { # lose ROUND: which is closed, of which one stage has not heard
	check "round $1 is closed" until_round 1 "$1"
	kill -KILL "$relay" "$server"
	wait "$relay" "$server" 2>/dev/null
	last=$(sqlite3 skep.db 'SELECT max(round) FROM rounds WHERE run = 1')
	check 'and no other one' test "$last" = "$1"
	for name in a b; do
		check "$name keeps what it holds" until_said "$name.err" 'the state of stage [01] as of round [0-9]+ is kept in kept'
	done
	check 'one stage has stepped' grep -q "stage 0 as of round $((last + 1)) is kept" a.err
	check 'but the other one keeps what the step makes, too' until_said b.err \
		"stage 1 as of round $((last + 1)) is kept in .*: other stages may have made that step"
}

go_on() {
	relay
	serve_on apart.yaml "${slowly[@]}" --listen "127.0.0.1:$port" --resume
	served 'the run goes on to its end'
	for process in "${stayed[@]}"; do
		ends 'with those that stay' 0 "$process"
	done
	kill "$relay"
	wait "$relay" 2>/dev/null
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
}

job apart.yaml 2 6 2 2
echo 'checkpoint: {every: 100, to: kept}' >>apart.yaml
begin
check 'rounds are made' until_round 1 1
kill -USR1 "$relay"
lose 2
check 'and it has not' grep -q "stage 1 as of round 2 is kept" b.err
go_on

begin
check 'the first round has begun' until_said b.err 'the run has begun'
kill -USR1 "$relay"
lose 0
check 'and it has not, and keeps nothing of it' sh -c '! grep -q "stage 1 as of round 0 is kept" b.err'
go_on
plan
