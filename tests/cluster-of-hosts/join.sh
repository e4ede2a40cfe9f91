#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# join.sh - runs that machines join and leave, on six hosts (up.sh): all by `skep serve` and `skep join`, over TCP and TLS. Whatever
# happens to a machine, the run goes on and ends well, its ledger is kept and its replay agrees. Operations are paced, so that two cores
# do for many processes that sleep most of the time; nothing is compared with a clock.
#
#     tests/cluster-of-hosts/join.sh [CASE...]        those that are named, or all but `long`, `replicas`, `every`, `flood` and `newcomer`
#
# $SEED: of the random losses; $LOSSES: how many of them `long` has. $KEEP: a folder that gets what the processes have said.
set -u
cd "$(dirname "$0")/../.." || exit 1
hosts=$PWD/tests/cluster-of-hosts
if [ "${1:-}" != --inside ]; then
	. tests/tap.sh
	needs python3
	status=0
	reason=$("$hosts/up.sh" true 2>&1) || status=$?
	if [ "$status" = 77 ]; then
		skip 'machines that come and go on six hosts' "$reason"
		plan
		exit
	fi
	HOST_RATE=${HOST_RATE:-10gbit} LINE_RATE=${LINE_RATE:-1gbit} exec "$hosts/up.sh" "$hosts/join.sh" --inside "$@"
fi
shift
asked=("$@")

. tests/cli/lib.sh
. "$hosts/faults.sh"
export TMPDIR=$scratch
names=(a1 a2 a3 b1 b2 b3)

# ---- a job for six workers in two stages ---------------------------------------------------------------------------------

mkdir gpus
cat >gpus/steady.yaml <<END
name: steady
source: assumed for this test
flops: 1000 TFLOP/s
efficiency: 1
memory_bandwidth: 1000 GB/s
memory: 16 GB
overhead: 8 ms
END
cat >six.yaml <<END
name: six hosts
source: assumed for this test
directory: here
sites:
  here:
    machines: [{count: 6, gpu: steady}]
    inside: {bandwidth: 1 Gbit/s, latency: 0.1 ms}
END
cat >job.yaml <<END
name: come and go
seed: 5
model: {file: $root/models/square-mlp.yaml, stages: 2}
cluster: {topology: six.yaml, allocation: {method: strided}}
schedule: {global_batch: 384, microbatch: 32}
train: {arithmetic: real, optimizer: {name: adamw, lr: 3.0e-3}, until: {steps: 40}}
END

# ---- processes on hosts ----------------------------------------------------------------------------------------------------

declare -A joiner=() # [name] the process id of `skep join`

serves() { # serves NAME ARGUMENT...: begins a run, whose files have this name; $ticket is of it, and $serve its process
	run=$1
	shift
	joiner=()
	: >"$run.err" # now: the process empties it later, and a run that is taken up again would find the ticket of the one before
	"$hosts/on.sh" a1 "$skep" serve job.yaml --pace --silence '2 s' --json --db "$run.db" "$@" >"$run.out" 2>"$run.err" </dev/null 9>&- &
	serve=$!
	awaits "$run: serve prints a ticket" grep -qs 'ticket skep1-' "$run.err"
	ticket=$(grep -o 'skep1-[0-9a-z]*' "$run.err")
}

joins() { # joins NAME HOST ARGUMENT...
	local name=$1 host=$2
	shift 2
	"$hosts/on.sh" "$host" "$skep" join a1:7337 --ticket "$ticket" --cache "$scratch/cache-$host" "$@" \
		>"$run-$name.out" 2>"$run-$name.err" </dev/null 9>&- &
	joiner[$name]=$!
}

join_all() { # join_all ARGUMENT...: one on each host, named like it
	local host
	for host in "${names[@]}"; do
		joins "$host" "$host" "$@"
	done
}

kills() { # kills SIGNAL NAME: the process and, where it watches over another one, that too
	local pid=${joiner[$2]}
	# shellcheck disable=SC2046
	kill -s "$1" $([ "$1" = TERM ] || children "$pid") "$pid" 2>/dev/null
	[ "$1" != KILL ] || wait "$pid" 2>/dev/null
}

awaits() { # awaits WHAT COMMAND...: until the command succeeds; two minutes are more than anything here takes
	local what=$1 i
	shift
	for ((i = 0; i < 2400; i++)); do
		"$@" && return
		sleep 0.05
	done
	fail "$what, within 2 minutes" "$(tail -n 5 "$run".err)"
	return 1
}

rounds() { # rounds N: have so many been closed?
	[ "$(sqlite "$run.db" 'SELECT count(*) FROM rounds')" -ge "$1" ] 2>/dev/null
}

goes_on() { # goes_on WHAT [ROUNDS]: so many rounds from now on are done
	local have
	have=$(sqlite "$run.db" 'SELECT count(*) FROM rounds') || have=0
	awaits "$1: the run goes on" rounds $((have + ${2:-4}))
}


ends() { # ends NAME [STATUS]: of serve; $status is what came
	status=0
	wait "$serve" || status=$?
	[ "$status" = "${2:-0}" ] && pass "$1: serve ends with status ${2:-0}" ||
		fail "$1: serve ends with status ${2:-0}" "status $status"$'\n'"$(tail -n 12 "$run.err")"
}

left() { # left NAME STATUS: of a joiner, which is over or about to be
	local code=0
	wait "${joiner[$1]}" || code=$?
	if [ "$code" = "$2" ]; then pass "$run: $1 ends with status $2"; else
		fail "$run: $1 ends with status $2" "status $code"$'\n'"$(tail -n 5 "$run-$1.err")"
	fi
}

gather() { # the joiners that are left end by themselves when serve has
	local name
	for name in "${!joiner[@]}"; do
		[ "$(cut -d ' ' -f 3 "/proc/${joiner[$name]}/stat" 2>/dev/null)" = T ] && kill -CONT "${joiner[$name]}"
		wait "${joiner[$name]}" 2>/dev/null
	done
}

agrees() {
	grep -q '"verdict":"agrees"' "$out" && return
	seen
	[ -z "${KEEP:-}" ] || cp "$run.db" "$KEEP"
	return 1
}

# The run that has ended: whole, recorded, learnt, and replayed.
whole() { # whole NAME
	check "$1: done, ledger kept, and the loss has fallen" python3 - "$run.db" <<-'END'
	import sqlite3, sys
	db = sqlite3.connect(sys.argv[1])
	one = lambda sql: db.execute(sql).fetchone()[0]
	assert one("SELECT status FROM runs") == "done", one("SELECT status FROM runs")
	assert one("SELECT count(*) FROM v_ledger WHERE verdict <> 'kept'") == 0
	assert one("SELECT count(*) FROM v_ledger") > 0
	assert one("SELECT count(*) FROM rounds") == one("SELECT rounds_planned FROM runs")
	loss = [l for l, in db.execute("SELECT loss FROM rounds ORDER BY round")]
	first, last = sum(loss[:5]) / 5, sum(loss[-5:]) / 5
	assert last < 0.7 * first, (first, last)
	END
	run_skep replay 1 --db "$run.db" --json
	check "$1: replay agrees" agrees
}

wanted() {
	[ ${#asked[@]} = 0 ] && [[ " long replicas every flood newcomer " != *" $1 "* ]] && return
	[[ " ${asked[*]} " == *" $1 "* ]]
}

for case in "$hosts"/cases/*.sh; do
	wanted "$(basename "$case" .sh)" || continue
	. "$case"
done
[ -z "${KEEP:-}" ] || cp -r "$scratch/here/." "$KEEP"
plan
