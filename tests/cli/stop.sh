#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# stop.sh - commands that are told to end: what is finished is written, the run says so and goes on no more, the exit status is
# that of the signal, no process and no other file is left; and who says it twice does not wait.
set -u
. tests/cli/lib.sh
needs python3

query() { # query FILE SQL: the first row, its values one after the other
	python3 -c 'import sqlite3, sys
print(*sqlite3.connect("file:" + sys.argv[1] + "?mode=rw", uri=True, timeout=10).execute(sys.argv[2]).fetchone())' "$1" "$2"
}

begin() { # begin FILE SQL COMMAND...: until the query gives more than 0; its process is $running
	local file=$1 sql=$2
	shift 2
	# A script's background process does not hear SIGINT unless it is told to.
	env --default-signal=INT "$skep" "$@" --db "$file" >"$out" 2>"$err" </dev/null &
	running=$!
	for _ in {1..600}; do
		[ "$(query "$file" "$sql" 2>/dev/null || echo 0)" -gt 0 ] && return 0
		kill -0 "$running" 2>/dev/null || return 1
		sleep 0.05
	done
	return 1
}

stopped() { # stopped NAME STATUS PATTERN: what ended so, and said so in one line
	status=0
	wait "$running" || status=$?
	if [ "$status" = "$2" ] && [ "$(wc -l <"$err")" = 1 ] && grep -qE "$3" "$err"; then
		pass "$1"
	else
		fail "$1" "$(seen)"
	fi
}

long=("$root/scenarios/two-datacentres.yaml" --set train.until.steps=1000000 --set train.arithmetic=none -q)
rounds='SELECT count(*) FROM rounds'

# ---- a simulation ---------------------------------------------------------------------------------------------------

for signal in INT:130 TERM:143 HUP:129; do
	name=${signal%:*} file=${signal%:*}.db
	begin "$file" "$rounds" sim "${long[@]}" --json || fail "a run for SIG$name" "$(cat "$err")"
	kill -s "$name" "$running"
	stopped "SIG$name" "${signal#*:}" "^skep: run 1 was ended by SIG$name after [0-9]+ steps, which are in $file\$"
	check "SIG$name: the run goes on no more, all its rounds are there" grep -qx 'failed 1 1' \
		<(query "$file" 'SELECT status, steps = (SELECT count(*) FROM rounds), steps > 0 FROM runs')
	check "SIG$name: each of them whole" grep -qx '0 ok' \
		<(query "$file" "SELECT (SELECT count(*) FROM v_ledger WHERE verdict <> 'kept'), integrity_check FROM pragma_integrity_check")
	check "SIG$name: the result says why" grep -q "\"failure\":\"ended by SIG$name\"" "$out"
done
left='' # by then the last query has closed the database, too, which grep -q has not waited for
for _ in {1..100}; do
	left=$(echo *)
	[ "$left" = 'HUP.db INT.db TERM.db' ] && break
	sleep 0.05
done
if [ "$left" = 'HUP.db INT.db TERM.db' ]; then pass 'nothing else is left'; else fail 'nothing else is left' "$left"; fi

# With arithmetic: between two operations.
begin real.db "$rounds" sim "$root/scenarios/two-datacentres.yaml" --set train.until.steps=1000000 -q || fail 'a run with arithmetic' "$(cat "$err")"
kill -INT "$running"
stopped 'with arithmetic' 130 '^skep: run 1 was ended by SIGINT after'
check 'with arithmetic: its losses are there' grep -qx 'failed 1' <(query real.db 'SELECT status, final_loss IS NOT NULL FROM runs')

# timeout(1) tells the process, and at once its group: that is one word, not two.
for seconds in 2 8 32; do # a busy machine may not have begun with it by then
	status=0
	timeout $seconds "$skep" sim "${long[@]}" --db timeout.db >"$out" 2>"$err" </dev/null || status=$?
	[ "$(query timeout.db 'SELECT count(*) FROM runs' 2>/dev/null || echo 0)" = 0 ] || break
done
if [ "$status" = 124 ] && [ "$(query timeout.db 'SELECT status FROM runs')" = failed ]; then
	pass 'timeout'
else
	fail 'timeout' "$(seen)"
fi

# A SIGHUP that was to be ignored is.
nohup "$skep" sim "${long[@]}" --db nohup.db >"$out" 2>"$err" </dev/null &
running=$!
until [ "$(query nohup.db "$rounds" 2>/dev/null || echo 0)" -gt 0 ]; do sleep 0.05; done
kill -HUP "$running"
sleep 0.5
check 'nohup' kill -0 "$running"
kill -TERM "$running"
wait "$running"

# Again: while it waits to write its end, which it would do for ten minutes.
begin again.db "$rounds" sim "${long[@]}" || fail 'a run that will wait' "$(cat "$err")"
exec 5< <(exec python3 -c 'import sqlite3, time
d = sqlite3.connect("again.db", isolation_level=None, timeout=60); d.execute("BEGIN IMMEDIATE"); print("held", flush=True); time.sleep(60)')
holder=$!
read -r _ <&5
kill -INT "$running"
sleep 2
check 'it waits to write its end' kill -0 "$running"
kill -INT "$running"
status=0
wait "$running" || status=$?
check 'unless it is told again' [ "$status" = 130 ]
check 'at once' kill -0 "$holder"
kill "$holder"
exec 5<&-

# ---- a plan (sweeps: sweep.sh) --------------------------------------------------------------------------------------

begin plan.db 'SELECT count(*) FROM runs' plan "$root/scenarios/two-datacentres.yaml" --set train.arithmetic=none --confirm 1000 --jobs 1 -q || fail 'a plan' "$(cat "$err")"
kill -TERM "$running"
status=0
wait "$running" || status=$?
check 'a plan' [ "$status" = 143 ]
check 'a plan: says so' grep -qx 'skep: ended by SIGTERM before it was known how good the plan is' "$err"
check 'a plan: what is there is whole' grep -qx '1 1' <(query plan.db "SELECT count(*) = sum(status = 'done'), count(*) > 0 FROM runs")
env --default-signal=INT "$skep" plan "$root/scenarios/two-datacentres.yaml" --set train.arithmetic=none --confirm 1000 --jobs 2 --db plans.db >"$out" 2>"$err" </dev/null &
running=$!
at_work() { # at_work PID: has it computed for a second?
	awk '{ exit !($14 + $15 >= 100) }' "/proc/$1/stat" 2>/dev/null
}
for _ in {1..600}; do
	read -r -d '' one other < <(children "$running")
	[ -n "$other" ] && at_work "$one" && at_work "$other" && break
	sleep 0.1
done
kill -INT "$running"
status=0
wait "$running" || status=$?
if [ "$status" = 130 ] && grep -q '^skep: ended by SIGINT before it was known how good the plan is' "$err"; then
	pass 'a plan in processes'
else
	fail 'a plan in processes' "$(seen)"
fi
check 'a plan in processes: what was done is kept' grep -qx '1 1' \
	<(query plans.db "SELECT count(*) = sum(status = 'done'), count(*) > 0 FROM runs")

# Commands that write nothing before their end say so, too, in one process or several, and leave nothing.
listens() { # listens PID: would SIGINT end it in order?
	awk -v name="$(basename "$skep")" '/^Name:/ { own = $2 == name } /^Sig(Blk|Cgt):/ && own && $2 ~ /[2367abef]$/ { found = 1 }
		END { exit !found }' "/proc/$1/status"
}

while_at_work() { # while_at_work NAME PATTERN COMMAND...: SIGINT a second after it has begun; no file is left
	local name=$1 pattern=$2
	shift 2
	env --default-signal=INT "$skep" "$@" >"$out" 2>"$err" </dev/null &
	running=$!
	for _ in {1..600}; do
		listens "$running" && break
		sleep 0.05
	done
	sleep 1
	kill -INT "$running"
	stopped "$name" 130 "$pattern"
}
while_at_work 'a plan in one process' '^skep: ended by SIGINT before anything was chosen$' plan "$root/scenarios/plan-world.yaml" --jobs 1
for jobs in 1 2; do
	while_at_work "an answer in $jobs" '^skep: ended by SIGINT before ' ask --gpus 8xl4 --model 350M --spot -o asked --jobs "$jobs"
	check "an answer in $jobs: no folder is left" test ! -e asked
done
ln -s "$root/scenarios" "$root/models" "$root/topologies" .
while_at_work 'what others have published' '^skep: ended by SIGINT before all was simulated$' published --all

plan
