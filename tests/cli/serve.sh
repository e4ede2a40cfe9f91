#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# serve.sh - `skep serve` and `skep join` on one host: a run of processes that have nothing but an address and a ticket, what they
# are refused for, a process that is killed and one that takes its place, and what each side says. Hosts that fail are in
# tests/cluster-of-hosts/join.sh.
set -u
. tests/cli/lib.sh
. "$root/tests/cli/lib_serve.sh"
needs python3 sqlite3
needs_tls 'runs that are served'
export ASAN_OPTIONS=detect_leaks=1

# ---- a run ---------------------------------------------------------------------------------------------------------

descent 'for guests' 2 64 6
serve swarm.yaml
port="1,127.0.0.1:$port" join a # at two addresses, of which the first is none
first=$!
join b
second=$!
ends 'a guest ends' 0 "$first"
ends 'and so does the other' 0 "$second"
served 'two guests train'
run_is 'all steps are made' 'run["steps"] == 6' 'run["world"] == "real"' 'run["counted"] == run["issued"] == 6 * 4 * 2' 'run["lost"] == 0'
kept 'the ledger is kept'
accepts 'it replays' replay 1 --json
check 'to the end' python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); assert r["verdict"] == "agrees" and r["whole"], r' "$out"
accepts 'the same over MPI or simulated: as many bytes' sim swarm.yaml --json
check 'and the same loss' python3 -c '
import json, sys
real, sim = json.load(open("served.out")), json.load(open(sys.argv[1]))
for key in "bytes_pipeline", "bytes_sync", "issued":
    assert real[key] == sim[key], (key, real[key], sim[key])
assert abs(real["final_loss"] / sim["final_loss"] - 1) < 1e-3, (real["final_loss"], sim["final_loss"])' "$out"
check 'the guest has the files' test -n "$(find cache/a/blobs -type f)"
check 'and says what it is' grep -q 'this is worker [01]; the run begins when all are there' a.err

# ---- refused -------------------------------------------------------------------------------------------------------

fails() { # fails NAME STATUS REGEX ARGUMENT...
	local name=$1 expected=$2 regex=$3
	shift 3
	run_skep "$@"
	if [ "$status" = "$expected" ] && [ ! -s "$out" ] && grep -qE -- "$regex" "$err" && [ "$(wc -l <"$err")" = 1 ]; then
		pass "$name"
	else
		fail "$name" "$(seen)"
	fi
}

other=skep1-8x1e28nbr66eqdkdpgxr9qnwnzrwjprnj86vgtbrp0s512sa7c38vd8w0cnn4t6rqdj8f3fpcwk3vz39
fails 'no ticket' 2 'expected --ticket' join 127.0.0.1:1
fails 'no ticket at all' 2 'ticket' join 127.0.0.1:1 --ticket nonsense --cache cache/x
fails 'an address that is none is said before the ticket that lacks' 2 'node7:port: expected HOST:PORT' join node7:port
fails 'which status does too' 2 'node7:port: expected HOST:PORT' status node7:port
fails 'status without a ticket' 2 'expected --ticket' status 127.0.0.1:1
fails 'status with a ticket that is none' 2 'ticket' status 127.0.0.1:1 --ticket nonsense
fails 'a port that is none' 2 'expected HOST:PORT' join 127.0.0.1:99999 --ticket "$other" --cache cache/x
fails 'an address that is none' 1 'no-such-host.invalid:7337: .*, or give its address' join no-such-host.invalid:7337 --ticket "$other" --cache cache/x
fails 'an empty place in a list' 2 'expected HOST:PORT, or several' join 127.0.0.1:1, --ticket "$other" --cache cache/x
fails 'none of several listens' 1 'no server of 127.0.0.1:1,127.0.0.1:2: .*Connection refused' join 127.0.0.1:1,127.0.0.1:2 \
	--ticket "$other" --cache cache/x
fails 'nothing listens there' 1 'does not answer: Connection refused; does `skep serve` run there' join 127.0.0.1:1 \
	--ticket "$other" --cache cache/x
mkfifo http_port
python3 -c 'import http.server, sys
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
print(server.server_port, flush=True)
server.handle_request()' >http_port 2>/dev/null &
read -r port <http_port
fails 'a server of another kind' 1 "127.0.0.1:$port is not the server .*does not speak TLS, so another program has the port" \
	join "127.0.0.1:$port" --ticket "$other" --cache cache/x
fails 'a cache that cannot be made' 2 '/proc/nowhere' join 127.0.0.1:1 --ticket "$other" --cache /proc/nowhere
refuses_at 'a scenario that cannot run' "$root/scenarios/square-cube.yaml:6:15" 'simulate it' serve "$root/scenarios/square-cube.yaml"
refuses 'an address of another machine' 'cannot listen on 192\.0\.2\.1' serve swarm.yaml --listen 192.0.2.1:7337

serve swarm.yaml --admit 1
fails 'the ticket of another run' 1 'is not the server that the ticket is of' join "127.0.0.1:$port" --ticket "$other" --cache cache/x
wrong=$(python3 - "$ticket" <<'END'
import sys
# The same fingerprint with another secret, and the checksum that belongs to it.
words = "0123456789abcdefghjkmnpqrstvwxyz"
bits = "".join(format(words.index(c), "05b") for c in sys.argv[1][6:])
data = bytearray(int(bits[i:i + 8], 2) for i in range(0, len(bits) // 8 * 8, 8))
data[40] ^= 1
crc = 0xffff
for byte in data[:48]:
    crc ^= byte << 8
    for _ in range(8):
        crc = (crc << 1 ^ (0x1021 if crc & 0x8000 else 0)) & 0xffff
data[48:50] = crc.to_bytes(2, "big")
bits = "".join(format(b, "08b") for b in data)
print("skep1-" + "".join(words[int(bits[i:i + 5], 2)] for i in range(0, len(bits), 5)))
END
)
fails 'another secret' 2 'refuses this machine: the ticket|mistyped' join "127.0.0.1:$port" --ticket "$wrong" --cache cache/x
fails 'a worker that is none' 2 'there is no worker 7: the scenario has workers 0 to 1' join "127.0.0.1:$port" --ticket "$ticket" \
	--worker 7 --cache cache/x
fails 'a machine that is too small' 2 'its memory of .* MiB holds no stage' join "127.0.0.1:$port" --ticket "$ticket" \
	--memory '1 kB' --cache cache/x
join a --worker 1 --gpu a1000
check 'a place that was asked for' until_said a.err 'this is worker 1'
check 'a GPU that no machine has' grep -q 'no machine of the scenario has a GPU `a1000`, so any place will do; they have' a.err
check 'the address to join at' grep -q 'skep join 127.0.0.1:' served.err
accepts 'who is there' status "127.0.0.1:$port" --ticket "$ticket"
check 'as a table' grep -qE 'has not begun, workers are missing' "$out"
check 'with the one that has come' grep -qE '^ +2 +[^ ]+ +a1000 +1 ' "$out"
fails 'a ticket that is used up' 2 'used up' join "127.0.0.1:$port" --ticket "$ticket" --cache cache/x
kill -TERM "$server"
ends 'a server that is ended before the run' 143 "$server"
check 'says so' grep -q 'ended by SIGTERM before all workers were there' served.err
check 'and what it leaves' grep -qE 'skep.db-[0-9a-f]{16}.serve has the keys and the ticket of this run, so that .skep serve --resume. goes on' served.err
wait
check 'its guest hears of it' grep -q 'has ended' a.err

serve swarm.yaml
cp swarm.yaml as-it-was.yaml
sed -i 's/^seed: 3/seed: 4/' swarm.yaml
fails 'a scenario that was changed since' 1 'swarm.yaml has come with other bytes than were announced .* changed since .serve. began' \
	join "127.0.0.1:$port" --ticket "$ticket" --cache cache/x
echo '# and longer' >>swarm.yaml
fails 'one that is longer now' 1 'refuses this machine: .*swarm.yaml has changed since .serve. began: put it back as it was' \
	join "127.0.0.1:$port" --ticket "$ticket" --cache cache/x
mv as-it-was.yaml swarm.yaml
kill -TERM "$server"
wait

# ---- killed --------------------------------------------------------------------------------------------------------

job long.yaml 1 60 3 1
serve long.yaml --pace --set cluster.compute_scale=4000 --set 'directory={heartbeat: 200 ms, timeout: 2 s}'
for name in a b c; do
	join "$name"
	eval "$name=$!"
done
check 'all are there' until_said served.err '3 of 3 are here'
for i in $(seq 600); do
	! "$skep" status "127.0.0.1:$port" --ticket "$ticket" --json 2>/dev/null | grep -q '"state":"running"' || break
	sleep 0.1
done
accepts 'how far it is' status "127.0.0.1:$port" --ticket "$ticket" --json
check 'and who is there' python3 -c '
import json, sys
s = json.load(open(sys.argv[1]))
assert s["state"] == "running" and s["steps_total"] == 60 and s["workers"] == 3, s
assert sorted(m["worker"] for m in s["members"]) == [0, 1, 2] and all(m["stage"] == 0 for m in s["members"]), s' "$out"
# shellcheck disable=SC2154
children "$a" | xargs kill -KILL
check 'a loss is said' until_said served.err 'has no machine; its place waits for one that joins'
join d
check 'and who takes the place' until_said served.err 'takes the place of worker'
# shellcheck disable=SC2154
children "$b" | xargs kill -TERM
wait "$b"
check 'one that is told to leave' until_said served.err 'its place waits for one that joins'
join e
served 'the run goes on to its end'
run_is 'with what was lost' 'run["steps"] == 60' 'run["preemptions"] == 2' 'run["joins"] >= 1' \
	'run["issued"] == run["counted"] + run["lost"]'
kept 'and its ledger is kept'
accepts 'it replays as well' replay "$(sqlite3 skep.db 'SELECT max(id) FROM runs')" --json
check 'but for the end of the one that was killed' python3 -c '
import json, sys
r = json.load(open(sys.argv[1]))
assert r["verdict"] == "agrees" and not any(life["waits"] for life in r["unfinished"]) and len(r["unfinished"]) <= 2, r' "$out"
wait

# ---- with fewer than the scenario has --------------------------------------------------------------------------------

job grows.yaml 2 60 6 2
refuses 'more than there are' 'at-least 7: the scenario has 6 workers' serve grows.yaml --at-least 7
refuses 'fewer than stages' 'at-least 1: the model has 2 stages' serve grows.yaml --at-least 1
serve grows.yaml --pace --at-least 2 --set cluster.compute_scale=4000 --set 'directory={heartbeat: 200 ms, timeout: 2 s}'
check 'how many are to come' grep -q '2 to 6 workers to come' served.err
join a
join b
check 'it begins with two' until_said a.err 'the run has begun'
sleep 0.5
join c --stay --notice 'test -e taken' --farewell '2 s'
leaves=$!
join d
check 'a third takes a place that nothing had' until_said served.err 'takes the place of worker'
check 'and a fourth' until_said d.err 'stands by'
for i in $(seq 1200); do
	[ "$(grep -c 'takes the place of worker' served.err)" -lt 2 ] || break
	sleep 0.05
done
accepts 'its state is asked for' status "127.0.0.1:$port" --ticket "$ticket" --json
check 'places that nothing had are not lost workers' python3 -c 'import json, sys; s = json.load(open(sys.argv[1])); assert s["preemptions"] == 0, s' "$out"
: >taken
ends 'one leaves at the notice of its cloud' 143 "$leaves"
served 'it grows'
run_is 'to its end' 'run["steps"] == 60' 'run["joins"] >= 2' 'run["issued"] == run["counted"] + run["lost"]'
kept 'with its ledger kept'
check 'four have trained' python3 -c '
import sqlite3
db = sqlite3.connect("skep.db")
run = db.execute("SELECT max(id) FROM runs").fetchone()[0]
busy = db.execute("SELECT count(DISTINCT worker) FROM ops WHERE run = ?", (run,)).fetchone()[0]
assert busy == 4, busy'
accepts 'and it replays' replay "$(sqlite3 skep.db 'SELECT max(id) FROM runs')" --json
check 'whole' python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); assert r["verdict"] == "agrees" and r["whole"], r' "$out"
wait
plan
