# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: Apache-2.0
#
# lib_serve.sh - sourced by the tests of `skep serve`, behind lib.sh: a server on this host, and processes that join it.

needs_tls() { # needs_tls WHAT: a build without it skips that, and the script ends
	"$skep" serve --help | grep -q 'built without TLS' || return 0
	skip "$1" 'this build has no TLS'
	plan
	exit
}

# Begins to serve; $port and $ticket are what its guests need.
serve() { # serve ARGUMENT...
	rm -rf cache kept
	serve_on "$@" --listen 127.0.0.1:0
}

serve_on() { # the same with all that there is, and no address
	: >served.err
	"$skep" serve "$@" --json >served.out 2>served.err &
	server=$!
	local i
	for i in $(seq 1200); do
		ticket=$(sed -n 's/.*--ticket \(skep1-.*\)/\1/p' served.err)
		[ -z "$ticket" ] || break
		kill -0 "$server" 2>/dev/null || break
		sleep 0.05
	done
	port=$(sed -n 's/.* on port \([0-9]*\):.*/\1/p' served.err)
}

# With $folders each process has a folder of its own in there, as on another machine: states travel to the server or are nowhere else.
join() { # join NAME ARGUMENT...: in the background, its number in $!
	local name=$1 folder=. cache=cache/$1
	shift
	[ -z "${folders:-}" ] || folder=$folders/$name cache=cache
	mkdir -p "$folder"
	(
		cd "$folder" || exit 1
		exec timeout -k 5 "${SKEP_PATIENCE:-300}" "$skep" join "127.0.0.1:$port" --ticket "$ticket" --cache "$PWD/$cache" "$@"
	) >"$name.out" 2>"$name.err" &
}

until_round() { # until_round RUN N: the run has recorded so many
	local i
	for i in $(seq 1200); do
		[ "$(sqlite3 skep.db "SELECT coalesce(max(round), -1) FROM rounds WHERE run = $1" 2>/dev/null || echo -1)" -lt "$2" ] || return 0
		sleep 0.05
	done
	return 1
}

ends() { # ends NAME STATUS PROCESS
	local ended=0
	wait "$3" || ended=$?
	if [ "$ended" = "$2" ]; then
		pass "$1"
	else
		fail "$1" "exit status $ended"$'\n'"$(tail -n 5 ./*.err)"
	fi
}

served() { # served NAME: the server ends with 0
	ends "$1" 0 "$server"
}

until_said() { # until_said FILE REGEX
	local i
	for i in $(seq 1200); do
		! grep -qE -- "$2" "$1" || return 0
		sleep 0.05
	done
	return 1
}

run_is() { # run_is NAME PYTHON...: what holds of the server's JSON object
	check "$1" python3 -c '
import json, sys
run = json.load(open("served.out"))
for expression in sys.argv[1:]:
    assert eval(expression, {"run": run}), (expression, run)' "${@:2}"
}

kept() { # kept NAME: every gradient was counted once or reported lost, in the newest run
	check "$1" python3 -c '
import sqlite3
db = sqlite3.connect("skep.db")
run = db.execute("SELECT max(id) FROM runs").fetchone()[0]
assert db.execute("SELECT count(*) FROM v_ledger WHERE run = ?", (run,)).fetchone()[0] > 0
bad = db.execute("SELECT * FROM v_ledger WHERE run = ? AND verdict <> ?", (run, "kept")).fetchall()
assert not bad, bad'
}
