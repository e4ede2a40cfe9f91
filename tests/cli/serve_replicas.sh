#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# serve_replicas.sh - three machines' worth of `skep serve --replicas` on one host, and one run that goes on: the one that leads is
# killed, comes back, the next one is stopped and continued, two of three are killed, and come back. Checkpoints are rare, so that
# it goes on from what workers bring. Which one leads when is not foreseen, and nothing is compared with a clock.
set -u
. tests/cli/lib.sh
. "$root/tests/cli/lib_serve.sh"
needs python3 sqlite3 ss pgrep
needs_tls 'servers with replicas'
job job.yaml 1 60 2 2
if "$skep" serve job.yaml --replicas a:1,b:1,c:1 --replica 1 2>&1 | grep -q 'built without libraft'; then
	skip 'servers with replicas' 'this build has no libraft'
	plan
	exit
fi
refuses 'nothing to go on with' 'states that were kept: add `checkpoint:' serve job.yaml --replicas a:1,b:1,c:1 --replica 1
sed -i 's/^seed: 1$/seed: 1\ncheckpoint: {every: 25, to: kept}/' job.yaml
export ASAN_OPTIONS=detect_leaks=0 # what is killed frees nothing

# ---- refused -------------------------------------------------------------------------------------------------------------

refuses 'two replicas' 'has 2 addresses: expected three or five' serve job.yaml --replicas a:1,b:1 --replica 1
refuses 'an address that is none' 'expected HOST:PORT' serve job.yaml --replicas a:1,b:x,c:1 --replica 1
refuses 'a fourth of three' 'expected which of the 3 addresses is this machine' serve job.yaml --replicas a:1,b:1,c:1 --replica 4
refuses 'none of them' 'expected which of the 3 addresses is this machine' serve job.yaml --replicas a:1,b:1,c:1
refuses 'a number without the list' 'goes with --replicas A,B,C' serve job.yaml --replica 2
refuses 'and --resume' 'leave out --resume' serve job.yaml --replicas a:1,b:1,c:1 --replica 1 --resume
refuses 'and --admit' 'leave out --admit' serve job.yaml --replicas a:1,b:1,c:1 --replica 1 --admit 3
rm -f skep.db-*.serve # which replica 1 makes
refuses 'without the key' 'copy it from where it lies beside the database of replica 1' serve job.yaml --replicas a:1,b:1,c:1 --replica 2

# ---- processes -----------------------------------------------------------------------------------------------------------

mapfile -t ports < <(python3 - <<'PORTS'
import random
import socket
# Pairs of ports that follow each other and are free: one for those who join, the other for the other replicas.
found = []
while len(found) < 3:
    port = random.randrange(20000, 32000, 2)
    try:
        for number in port, port + 1:
            with socket.socket() as one:
                one.bind(("127.0.0.1", number))
    except OSError:
        continue
    if port not in found:
        found.append(port)
print(*found, sep="\n")
PORTS
)
list=127.0.0.1:${ports[0]},127.0.0.1:${ports[1]},127.0.0.1:${ports[2]}
replica=() joined=()

begin() { # begin N [FOLDER]: its process in replica[N]; it runs in FOLDER, or rN
	(
		cd "${2:-r$1}" || exit
		exec timeout -k 5 200 "$skep" serve job.yaml --pace --set cluster.compute_scale=4000 --silence '4 s' \
			--set 'directory={heartbeat: 200 ms, timeout: 2 s}' --replicas "$list" --replica "$1" --json >>out 2>>err
	) &
	replica[$1]=$!
}

processes() { # processes N: of the replica, with its server, but for `timeout`
	local own
	own=$(pgrep -P "${replica[$1]}")
	# shellcheck disable=SC2086
	echo $own "$(pgrep -P "$own")"
}

family() { # family PROCESS: it, and all that it has begun
	local child
	echo "$1"
	for child in $(pgrep -P "$1"); do
		family "$child"
	done
}

until_brought() { # until_brought FOLDER: a state lies there that no checkpoint has made
	local i
	for i in $(seq 600); do
		find "$1/kept" -name 'stage-*-version-*' | sed 's/.*-version-//; s/[^0-9].*//' | awk '$1 % 25 { found = 1 } END { exit !found }' && return
		sleep 0.05
	done
	return 1
}

begin_again() { # begin_again N: it is killed, and stands by soon
	# shellcheck disable=SC2046
	kill -KILL $(processes "$1")
	wait "${replica[$1]}" 2>/dev/null
	while ss -tlnH "sport = :${ports[$1 - 1]}" | grep -q .; do
		sleep 0.05
	done
	begin "$1"
}

leader() { # leader [BUT]: the replica that serves, in $lead; another one than BUT. "": none does
	local i n
	lead=
	for i in $(seq 600); do
		for n in 1 2 3; do
			[ "$n" != "${1:-}" ] && ss -tlnH "sport = :${ports[n - 1]}" | grep -q . || continue
			lead=$n
			return
		done
		sleep 0.05
	done
}

rounds() { # that are closed, wherever they were made
	local n all=0
	for n in 1 2 3; do
		all=$((all + $(sqlite3 "file:r$n/skep.db?mode=ro" 'SELECT count(*) FROM rounds' 2>/dev/null || echo 0)))
	done
	echo "$all"
}

goes_on() { # more rounds are closed
	local i had
	had=$(rounds)
	for i in $(seq 600); do
		[ "$(rounds)" -le "$((had + 1))" ] || return 0
		sleep 0.05
	done
	return 1
}

said_by_any() { # said_by_any REGEX: of the replicas
	local i
	for i in $(seq 1200); do
		! cat r?/err | grep -qE -- "$1" || return 0
		sleep 0.05
	done
	return 1
}

for n in 1 2 3; do
	mkdir "r$n"
	cp -R job.yaml place-2.yaml gpus "r$n"
done
begin 1
check 'the first one makes the key' until_said r1/err 'is the key that each of them needs'
check 'for its owner alone' test "$(stat -c %a r1/skep.db-*.serve)" = 600
cp -p r1/skep.db-*.serve r2
cp -p r1/skep.db-*.serve r3
begin 2
begin 3
leader
check 'one of them leads' test -n "$lead"
check 'and prints the line for all' said_by_any "skep join $list --ticket skep1-.* --stay"
ticket=$(grep -ho 'skep1-[0-9a-z]*' r?/err | head -n 1)
for name in a b; do
	timeout -k 5 200 "$skep" join "$list" --ticket "$ticket" --stay --cache "$PWD/cache/$name" >"$name.out" 2>"$name.err" &
	joined+=($!)
done
check 'the run begins' until_said a.err 'the run has begun'
check 'and goes on' goes_on

# ---- who has no certificate ----------------------------------------------------------------------------------------------

check 'a stranger is not heard' python3 - "$((ports[lead - 1] + 1))" <<'STRANGER'
import os
import socket
import ssl
import sys
port = int(sys.argv[1])
with socket.create_connection(("127.0.0.1", port)) as bare:
    bare.sendall(os.urandom(4096))
    bare.settimeout(20)
    try:
        while bare.recv(4096):
            pass
    except ConnectionResetError:
        pass
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE
with context.wrap_socket(socket.create_connection(("127.0.0.1", port))) as guest:
    guest.settimeout(20)
    try:
        guest.sendall(b"\1\0\0\0\x15\0\0\0!")
        assert guest.recv(1) == b"", "it answers"
    except (ssl.SSLError, ConnectionResetError):
        pass
STRANGER
check 'and changes nothing' goes_on

# ---- killed --------------------------------------------------------------------------------------------------------------

first=$lead
# shellcheck disable=SC2046
kill -KILL $(processes "$first")
leader "$first"
check 'another one leads' test -n "$lead"
check 'workers bring what they hold' until_said "r$lead/err" 'newer states of all stages have come'
check 'it goes on from that' until_said "r$lead/err" 'goes on behind step [0-9]+, of which kept has the states'
check 'and the run goes on' goes_on
check 'no round is lost but the open one' python3 - "r$first/skep.db" "r$lead/skep.db" <<'ROUNDS'
import sqlite3, sys
last, first = (sqlite3.connect(name).execute(f"SELECT {what}(round) FROM rounds").fetchone()[0]
               for name, what in zip(sys.argv[1:], ("max", "min")))
assert first in (last + 1, last + 2), (last, first) # or the one that was closed while it was killed
ROUNDS
check 'what they brought is with a majority' test "$(find r?/kept -name 'stage-0-version-*' | sed 's/.*-//' | sort | uniq -d | wc -l)" -ge 1
begin "$first"
check 'one that comes back stands by' until_said "r$first/err" 'stands by: replica . leads'

# ---- the next one too, while it gathers; and the one after that, as soon as it has begun ------------------------------------

for n in 1 2 3; do
	: >"r$n/err"
done
leader
mapfile -t stopped < <(family "${joined[1]}")
kill -STOP "${stopped[@]}" # so that the next one waits for it
last=$(sqlite3 "r$lead/skep.db" 'SELECT max(round) FROM rounds')
begin_again "$lead"
check 'the next one waits for what workers hold' said_by_any 'waits for machines that have newer ones, for 8 s at most'
leader
check 'one of them has brought it' until_brought "r$lead"
for n in 1 2 3; do
	: >"r$n/err"
done
begin_again "$lead"
kill -CONT "${stopped[@]}"
check 'a third one gathers, and workers bring it once more' said_by_any 'newer states of all stages have come'
check 'it goes on from that' said_by_any 'goes on behind step [0-9]+, of which kept has the states'
leader
for n in 1 2 3; do
	: >"r$n/err"
done
begin_again "$lead"
check 'a fourth one goes on from that too' said_by_any 'goes on behind step [0-9]+, of which kept has the states'
check 'and the run goes on' goes_on
leader
check 'no round is lost but the open one, with three servers' python3 - "$last" "r$lead/skep.db" <<'ROUNDS'
import sqlite3, sys
last = int(sys.argv[1])
first = sqlite3.connect(sys.argv[2]).execute("SELECT min(round) FROM rounds WHERE run = (SELECT max(id) FROM runs)").fetchone()[0]
assert first in (last + 1, last + 2), (last, first) # or the one that was closed while it was killed
ROUNDS

# ---- stopped, and continued ----------------------------------------------------------------------------------------------

both=()
until [ "${#both[@]}" = 2 ]; do # the replica and its server
	leader
	second=$lead
	read -ra both <<<"$(processes "$second")"
done
kill -STOP "${both[@]}"
sleep 2 # so long is the lease at most, whatever the others do
kill -CONT "${both[1]}"
check 'a server that was stopped ends' until_said "r$second/err" 'this server has ended: it was stopped, or no majority'
kill -CONT "${both[0]}"
leader
check 'one leads' test -n "$lead"
check 'and the run goes on from there' goes_on

# ---- a minority ----------------------------------------------------------------------------------------------------------

: >"r$lead/err" # where it may have said so before, when it was alone
for n in 1 2 3; do
	[ "$n" = "$lead" ] && continue
	# shellcheck disable=SC2046
	kill -KILL $(processes "$n") 2>/dev/null
done
check 'a minority says what it is' until_said "r$lead/err" 'hears no majority of the replicas: it serves no one until it does'
check 'and serves no one' test -z "$(ss -tlnH "sport = :${ports[lead - 1]}")"
last=$lead
for n in 1 2 3; do
	[ "$n" = "$last" ] || begin "$n"
done

# ---- to the end ------------------------------------------------------------------------------------------------------------

for n in 1 2 3; do
	ends "replica $n ends well" 0 "${replica[$n]}"
done
for n in 0 1; do
	ends "and so does guest $n" 0 "${joined[$n]}"
done
cat r?/out >served.out
accepts 'the same without a loss' sim job.yaml --json
check 'all rounds are made, with the same loss' python3 -c '
import json, sys
real, sim = json.load(open("served.out")), json.load(open(sys.argv[1]))
assert real["lost"] == 0 and real["counted"] == real["issued"] == real["steps"] * 16 * 2, real
assert abs(real["final_loss"] / sim["final_loss"] - 1) < 0.01, (real["final_loss"], sim["final_loss"])' "$out"
check 'the last one has made the last of them' python3 -c '
import glob, json, sqlite3
steps = json.load(open("served.out"))["steps"]
last = max(sqlite3.connect(name).execute("SELECT max(round) FROM rounds").fetchone()[0] or 0 for name in glob.glob("r?/skep.db"))
assert last == 59 and steps <= 60, (last, steps)'
check 'nothing is left of the group' test -z "$(find . -name '*.replica' -o -name '*.serve')"
wait

# ---- another file --------------------------------------------------------------------------------------------------------

for n in 1 2 3; do
	mkdir "d$n"
	cp -R job.yaml place-2.yaml gpus "d$n"
done
echo '# measured again' >>d3/place-2.yaml
begin 1 d1
check 'a group begins anew' until_said d1/err 'is the key that each of them needs'
cp -p d1/skep.db-*.serve d2
cp -p d1/skep.db-*.serve d3
begin 2 d2
begin 3 d3
wait "${replica[3]}"
check 'one that has read another file than most ends' test $? = 2
check 'and names it' grep -qE 'most replicas read other files than this one: place-2.yaml differs \([0-9]+ and [0-9]+ bytes\)' d3/err
check 'the others say so' until_said d1/err 'replica 3 at .* do not read the same, so they do not work together: place-2.yaml differs'
check 'and go on without it' until_said d1/err 'stands by: replica 2 leads|skep join'
kill -TERM "${replica[1]}" "${replica[2]}" 2>/dev/null
wait
plan
