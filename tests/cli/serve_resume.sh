#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# serve_resume.sh - `skep serve --resume`: the server is killed in the middle of a run and comes back with the same ticket, those
# that stay come back by themselves, and the run goes on with what was kept.
set -u
. tests/cli/lib.sh
. "$root/tests/cli/lib_serve.sh"
needs python3 sqlite3
needs_tls 'runs that are taken up again'
export ASAN_OPTIONS=detect_leaks=1
folders=home

keys() { # what is kept of tickets: file names
	find . -maxdepth 1 -name 'skep.db-*.serve'
}

newest_of() { # newest_of FOLDER STAGE: the name of its newest state
	find "$1" -name "stage-$2-version-*.kept" -printf '%f\n' 2>/dev/null | sort -t- -k4 -V | tail -n 1
}

until_kept() { # until_kept FOLDER VERSION: of both stages, this version or a later one
	local i stage newest
	for i in $(seq 1200); do
		for stage in 0 1; do
			newest=$(newest_of "$1" "$stage" | sed 's/.*version-\(.*\)\.kept/\1/')
			[ "${newest:-0}" -ge "$2" ] || break
			[ "$stage" = 0 ] || return 0
		done
		sleep 0.05
	done
	return 1
}

slowly=(--pace --set cluster.compute_scale=4000 --set 'directory={heartbeat: 200 ms, timeout: 2 s}')
job long.yaml 1 60 4 2
echo 'checkpoint: {every: 5, to: kept}' >>long.yaml
sed -i 's/optimizer: {[^}]*}/optimizer: {name: sgd, lr: 2.0e-4}/' long.yaml # whose end hardly depends on the order of sums

# ---- nothing to go on with -----------------------------------------------------------------------------------------

refuses 'no run was lost' 'skep.db-.*no run of this scenario .* was lost; --resume=auto begins one' serve long.yaml --resume
refuses 'a new ticket for a new run' 'goes with --resume' serve long.yaml --new-ticket
refuses 'another word' 'resume often: expected one of auto' serve long.yaml --resume=often

# ---- killed and taken up again -------------------------------------------------------------------------------------

serve long.yaml "${slowly[@]}" --resume=auto
check 'it begins where nothing is kept' grep -q 'nothing is kept of an earlier run' served.err
check 'the ticket is kept for the owner alone' test "$(stat -c %a "$(keys)")" = 600
stayed=()
for name in a b c d; do
	join "$name" --stay
	stayed+=($!)
done
check 'states are kept' until_kept kept 10
before=$ticket
kill -KILL "$server"
wait "$server" 2>/dev/null
check 'who stays knocks on' until_said a.err 'tries again'
there=$(ls -A) # names alone: those that knock on write to their files meanwhile
run_skep serve long.yaml "${slowly[@]}" --resume --set seed=77
check 'a scenario that is another one since' grep -qE \
	'is not there, but skep.db-[0-9a-f]{16}.serve is: the run that was lost had another' "$err"
check 'is refused' test "$status/$(ls -A)" = "2/$there"
serve_on long.yaml "${slowly[@]}" --listen "127.0.0.1:$port" --resume
check 'the ticket is the same' test "$ticket" = "$before"
check 'those that stayed come back and keep more' until_kept kept 30
check 'it says from where it went on' grep -qE 'goes on behind step [1-5][0-9], of which kept has the states' served.err
cp served.err second.err
newest=$(newest_of kept 0)
check 'one machine alone has kept the same' test "$(find home -name "$newest" | wc -l)" = 1
check 'the server has the same' cmp "kept/$newest" "$(find home -name "$newest")"
check 'rounds are made behind it' until_round 2 32
kill -KILL "$server"
wait "$server" 2>/dev/null

# ---- and with it all machines --------------------------------------------------------------------------------------

for process in "${stayed[@]}"; do
	kill -TERM "$process"
done
wait
rm -rf home
serve_on long.yaml "${slowly[@]}" --listen 127.0.0.1:0 --resume
check 'the ticket is still the same' test "$ticket" = "$before"
# Its third connection, by which a state would come, is cut off: the first is before the run, and on the second it is let in.
mkfifo way_port
python3 - "$port" >way_port <<'END' &
import socket, sys, threading
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
def pour(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass # the other end is gone
for connection in range(2):
    one, _ = listener.accept()
    other = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    for ends in (one, other), (other, one):
        threading.Thread(target=pour, args=ends).start()
listener.accept()[0].close()
listener.close()
END
read -r way <way_port
others=()
for name in e f g; do
	join "$name"
	others+=($!)
done
port=$way join cut
ends 'one that cannot fetch its state may try again' 1 $!
check 'and says why' grep -q 'is not kept here, and cannot be fetched' cut.err
join h
others+=($!)
served 'the run goes on to its end'
for process in "${others[@]}"; do
	ends 'and so do machines that had nothing of it' 0 "$process"
done
check 'its ticket has ended with it' test -z "$(keys)"
# Machines step and keep that before the server has a row of it: a row that the kill came before is missing, and the server says so.
check 'no step is missing without a word' python3 -c '
import re, sqlite3
def told(path):
    found = re.search(r"had recorded rounds? (\d+)(?: to (\d+))?,", open(path).read())
    return list(range(int(found[1]), int(found[2] or found[1]) + 1)) if found else []
db = sqlite3.connect("skep.db")
first, second, third = ([r for r, in db.execute("SELECT round FROM rounds WHERE run = ? ORDER BY round", (run,))]
                        for run in (1, 2, 3))
for before, after, least, file in ((first, second, 10, "second.err"), (second, third, 30, "served.err")):
    missing = list(range(before[-1] + 1, after[0]))
    assert missing == told(file) and after[0] >= least, (before, after, told(file))
assert first == list(range(len(first))) and second == list(range(second[0], second[-1] + 1)), (first, second)
assert third == list(range(third[0], 60)), third'
kept 'the ledger is kept'
accepts 'it replays' replay 3 --json
check 'to the end' python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); assert r["verdict"] == "agrees", r' "$out"
accepts 'the same in one go' sim long.yaml --json
check 'has the same loss' python3 -c '
import json, sys
real, sim = json.load(open("served.out")), json.load(open(sys.argv[1]))
assert abs(real["final_loss"] / sim["final_loss"] - 1) < 1e-3, (real["final_loss"], sim["final_loss"])' "$out"

# ---- lost behind its last step -------------------------------------------------------------------------------------

rm -rf home
job over.yaml 1 10 2 2
echo 'checkpoint: {every: 5, to: kept}' >>over.yaml
serve over.yaml "${slowly[@]}"
saved=$(keys)
cp -p "$saved" saved.serve
join a
join b
served 'a run ends'
wait
mv saved.serve "$saved" # as if the server had been killed before it removed it
join a --stay
stayed=($!)
join b --stay
stayed+=($!)
check 'those that stay knock' until_said a.err 'tries again'
"$skep" serve over.yaml "${slowly[@]}" --listen "127.0.0.1:$port" --resume 2>served.err >served.out &
server=$!
for process in "${stayed[@]}"; do
	ends 'who knocks at one that is over ends' 0 "$process"
done
check 'and says why' grep -q 'the run has reached its end: nothing is left to do' a.err
served 'so does the server that has told them'
check 'and forgets its ticket' test -z "$(keys)"

# ---- a stage whose only machine is gone ----------------------------------------------------------------------------

rm -rf home
job pair.yaml 1 40 2 2
echo 'checkpoint: {every: 5, to: kept}' >>pair.yaml
serve pair.yaml "${slowly[@]}"
join a --worker 0
first=$!
join b --worker 1
check 'states of each are kept' until_kept kept 10
children "$first" | xargs kill -KILL
check 'one is lost' until_said served.err 'its place waits for'
join c
served 'another goes on'
run_is 'from the state that the server has kept' 'run["steps"] == 40' 'run["restarts"] == 1'
check 'which it has received' test -n "$(find home/c -name 'stage-0-version-*.kept')"
kept 'the ledger is kept'
wait

# ---- tickets -------------------------------------------------------------------------------------------------------

serve long.yaml --admit 5
join a
check 'one is admitted' until_said served.err '1 of 4 are here'
check 'which is kept' grep -qE '^ticket [0-9a-f]{32} 4$' "$(keys)"
kill -KILL "$server"
wait
serve_on long.yaml --listen 127.0.0.1:0 --resume=auto --new-ticket --json
check 'another ticket' grep -qE '^ticket [0-9a-f]{32} revoked$' "$(keys)"
check 'beside the revoked one' test "$(grep -c '^ticket ' "$(keys)")" = 2
kill -TERM "$server"
wait
echo 'ticket 0' >"$(keys)"
refuses 'a file that holds no tickets' 'has a line of a ticket that is none' serve long.yaml --resume=auto
plan
