#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# sweep.sh - all combinations of some values: what is refused before anything starts, what is in the database afterwards, and
# what is left of a sweep whose processes, or which itself, is killed: no half run, none lost, none twice.
set -u
. tests/cli/lib.sh
needs python3

query() { # query FILE SQL: the first value
	python3 -c 'import sqlite3, sys
print(sqlite3.connect("file:" + sys.argv[1] + "?mode=rw", uri=True, timeout=20).execute(sys.argv[2]).fetchone()[0])' "$1" "$2"
}

equals() { # equals EXPECTED SEEN
	[ "$1" = "$2" ] || { echo "expected $1, saw $2"; return 1; }
}

rows() { # rows SEEDS VALUE...: the object of --json has a row for each value, in this order, of so many runs that are done
	python3 - "$out" "$@" <<-'END'
	import json, sys
	text = open(sys.argv[1]).read()
	assert text.count("\n") == 1, text
	def refuse(word): raise ValueError(word)
	seen, seeds, values = json.loads(text, parse_constant=refuse), int(sys.argv[2]), sys.argv[3:]
	assert seen["runs"] == seen["done"] == seeds * len(values) and seen["failed"] == seen["missing"] == 0, seen
	assert [" ".join(row["values"].values()) for row in seen["rows"]] == values, seen["rows"]
	assert all(row["done"] == row["throughput_samples_per_s"]["runs"] == seeds for row in seen["rows"]), seen["rows"]
	assert all(row["time_s"]["mean"] > 0 for row in seen["rows"]), seen["rows"]
	assert all((row["time_s"]["sd"] is None) == (seeds == 1) for row in seen["rows"]), seen["rows"]
	END
}

# Rounds of unequal length (3, 3 and 4 steps) are counted one by one: 40 steps are 40 with two fragments, three or four.
uneven=("$root/scenarios/two-datacentres.yaml" --set train.arithmetic=none --set 'sync={method: streaming, every: 10}')
accepts 'rounds of unequal length' sweep "${uneven[@]}" --vary sync.fragments=2,3,4 --set train.until.steps=40 --db uneven.db
check 'which do as much' sh -c '! grep "different amounts" "$1"' - "$err"
accepts 'and steps that are no whole rounds of all' sweep "${uneven[@]}" --vary sync.fragments=2,3,4 --set train.until.steps=36 --db uneven.db
check 'of which some do more' grep -q 'of 36 steps that were asked for some do 36 and some 40; all .* multiple of 10, .*steps=40$' "$err"
each=("$root/scenarios/two-datacentres.yaml" --set train.arithmetic=none --set sync.method=diloco --vary 'sync.every=8,[8, 16, 16, 8]')
accepts 'periods of stages' sweep "${each[@]}" --set train.until.steps=24 --db uneven.db
check 'of which the longest is what to take' grep -q 'of 24 steps that were asked for some do 24 and some 32; all .* multiple of 16, .*steps=32$' "$err"
accepts 'which is taken' sweep "${each[@]}" --set train.until.steps=32 --db uneven.db
check 'and all do as much' sh -c '! grep "different amounts" "$1"' - "$err"

# ---- refused before anything starts ---------------------------------------------------------------------------------

small=("$root/scenarios/two-datacentres.yaml" --set train.arithmetic=none --set train.until.steps=3)
refuses 'nothing varies' '^skep: sweep needs something to vary: --vary' sweep "${small[@]}"
refuses 'no scenario' '^skep: sweep takes SCENARIO' sweep --seeds 1..2
refuses 'no such scenario' 'nothing.yaml: error: ' sweep nothing.yaml --seeds 1..2
refuses 'no value' '^skep: --vary schedule.in_flight: expected KEY=A,B,C' sweep "${small[@]}" --vary schedule.in_flight
refuses 'nothing behind the sign' '^skep: --vary schedule.in_flight=: expected KEY=A,B,C' sweep "${small[@]}" --vary schedule.in_flight=
refuses 'an empty value' '^skep: --vary schedule.in_flight: value 2 is empty' sweep "${small[@]}" --vary schedule.in_flight=2,,4
refuses 'a value twice' '^skep: --vary schedule.in_flight: the value 2 is there twice' sweep "${small[@]}" --vary schedule.in_flight=2,4,2
refuses 'a key twice' '^skep: --vary schedule.in_flight is there twice' \
	sweep "${small[@]}" --vary schedule.in_flight=2 --vary schedule.in_flight=4
refuses 'an open brace' '^skep: --vary schedule.rebalance: a brace' sweep "${small[@]}" --vary 'schedule.rebalance={period: 60 s'
refuses 'an unknown key' '^--vary schedule.in_fligt=2: error: unknown key .schedule.in_fligt., did you mean .in_flight.' \
	sweep "${small[@]}" --vary schedule.in_fligt=2,4
refuses 'a combination that cannot be' 'combination 3 of 4 cannot be: schedule.microbatch=7, seed 1$' \
	sweep "${small[@]}" --vary schedule.microbatch=64,7 --seeds 1..2
check 'with the place in the file' grep -q 'two-datacentres.yaml:[0-9:]* error: schedule.global_batch: 2048 is not a multiple' "$err"
refuses 'set and varied' '^skep: both --set and --vary give train.until.steps' sweep "${small[@]}" --vary train.until.steps=3,4
refuses 'the seed as a key' '^skep: --vary seed: take --seeds' sweep "${small[@]}" --vary seed=1,2
refuses 'seed and seeds' '^skep: both --seed and --seeds' sweep "${small[@]}" --seed 1 --seeds 1..2
refuses 'seeds that are none' '^skep: --seeds 1..x: expected whole numbers' sweep "${small[@]}" --seeds 1..x
refuses 'seeds backwards' '^skep: --seeds 3..1: 3 comes after 1' sweep "${small[@]}" --seeds 3..1
refuses 'a seed twice' '^skep: --seeds: 2 is there twice' sweep "${small[@]}" --seeds 1..3,2
refuses 'no processes' '^skep: --jobs 0: expected a number of processes' sweep "${small[@]}" --seeds 1..2 --jobs 0
refuses 'too many combinations' '^skep: more than 100000 combinations' sweep "${small[@]}" --seeds 1..50001 --vary schedule.in_flight=2,4
refuses 'the same run twice' '^skep: these two are the same run: schedule.rebalance=.period: 60 s., schedule.rebalance.period=9 s; and' \
	sweep "${small[@]}" --vary 'schedule.rebalance={period: 60 s},{period: 30 s}' --vary 'schedule.rebalance.period=9 s'
refuses 'no such folder for the database' '^skep: none/a.db: cannot be created' sweep "${small[@]}" --seeds 1..2 --db none/a.db

# ---- what it does ---------------------------------------------------------------------------------------------------

two=("${small[@]}" --vary schedule.wiring=uniform,throughput)
accepts 'two values, three seeds' sweep "${two[@]}" --seeds 1..3 --db a.db --json -q
check 'a row for each value' rows 3 uniform throughput
check 'quiet on stderr' test ! -s "$err"
check 'six runs are there' equals "6 6" "$(query a.db "SELECT count(*) || ' ' || sum(status = 'done') FROM runs")"
check 'each of another combination' equals '6 6' "$(query a.db "SELECT count(*) || ' ' || count(DISTINCT run) FROM sweep_runs")"
check 'that of its seed and value' equals 6 \
	"$(query a.db "SELECT count(*) FROM v_sweep JOIN runs ON id = run WHERE runs.seed = v_sweep.seed AND instr(text, 'wiring: ' || value)")"
check 'with its rounds' equals 18 "$(query a.db 'SELECT count(*) FROM rounds JOIN runs ON id = run')"
check 'and kept ledgers' equals 0 "$(query a.db "SELECT count(*) FROM v_ledger WHERE verdict <> 'kept'")"
accepts 'one of them by hand' sim "${small[@]}" --set schedule.wiring=throughput --seed 2 --db a.db --json
check 'is the same run' equals 2 "$(query a.db "SELECT count(*) FROM runs WHERE digest = (SELECT digest FROM runs WHERE id = 7)")"

accepts 'the same again' sweep "${two[@]}" --seeds 1..3 --db a.db --json
check 'they are there' grep -qx 'skep: 6 of 6 are there' "$err"
check 'and no more' equals '7 1' "$(query a.db "SELECT count(*) || ' ' || (SELECT count(*) FROM sweeps) FROM runs")"
accepts 'one seed more' sweep "${two[@]}" --seeds 1..4 --db a.db --json
check 'six of eight were there' grep -qx 'skep: 6 of 8 are there' "$err"
check 'two came' equals 9 "$(query a.db 'SELECT count(*) FROM runs')"
check 'a row for each value again' rows 4 uniform throughput
query a.db "SELECT 1" >/dev/null
python3 -c 'import sqlite3; d = sqlite3.connect("a.db"); d.execute("DELETE FROM runs WHERE id = 1"); d.commit()'
accepts 'with a run deleted by hand' sweep "${two[@]}" --seeds 1..3 --db a.db
check 'it is made anew' grep -qx 'skep: 5 of 6 are there' "$err"
check 'and said in a line' grep -qE '^6 of 6: schedule.wiring=[a-z]*, seed [123]: [0-9.e+]* samples/s, ' "$err"
check 'a table for each figure says what and how many' grep -qE '^ +throughput +3 +[0-9.]+ +[0-9.e-]+ +[0-9.]+ +[0-9.]+( +<-.*)?$' "$out"
check 'that of the throughput and that of the time among them' equals 2 "$(grep -cE '^(samples/s|time \(s\))$' "$out")"
check 'a terminal holds them' test "$(wc -L <"$out")" -le 80
accepts 'the same as JSON' sweep "${two[@]}" --seeds 1..3 --db a.db --json -q
python3 -c 'import json, sys
for row in json.load(open(sys.argv[1]))["rows"]:
    f = row["throughput_samples_per_s"]
    print(row["values"]["schedule.wiring"], *("%.2f" % f[k] for k in ("mean", "p5", "p95")))' "$out" >json
accepts 'and as text' sweep "${two[@]}" --seeds 1..3 --db a.db -q
check 'says the same of the throughput' python3 -c 'import sys
lines = open(sys.argv[1]).read().split("\n")
at = lines.index("samples/s")
assert lines[at + 1].replace("%", "").split() == ["schedule.wiring", "runs", "mean", "deviation", "5", "95"], lines
for line, json in zip(lines[at + 2 : at + 4], open("json")):
    name, runs, mean, _, p5, p95 = line.split()[:6]
    other, *numbers = json.split()
    assert (name, runs) == (other, "3") and all(abs(float(a) / float(b) - 1) < 5e-3
        for a, b in zip((mean, p5, p95), numbers)), (line, json)' "$out"
accepts 'seeds alone' sim "${small[@]}" --seeds 1..6 --db s.db -q
check 'a row for each figure, with mean, deviation and quantiles' sh -c 'grep -qE "^  figure +runs +mean +deviation +5 % +95 %$" "$1" &&
	grep -qE "^  samples/s +6 +[0-9.]+ +[0-9.e-]+ +[0-9.]+ +[0-9.]+$" "$1" && [ "$(wc -L <"$1")" -le 80 ]' - "$out"

cp -r "$root/topologies" "$root/models" . 2>/dev/null
cp "$root/scenarios/two-datacentres.yaml" mine.yaml
mine=(mine.yaml --set train.arithmetic=none --set train.until.steps=3 --seeds 1..2 --db b.db)
accepts 'a scenario with files of its own' sweep "${mine[@]}"
printf '# another comment\n' >>topologies/two-datacentres.yaml
accepts 'and with one of them changed' sweep "${mine[@]}"
check 'it is another sweep' equals '4 2' "$(query b.db "SELECT count(*) || ' ' || (SELECT count(*) FROM sweeps) FROM runs")"

accepts 'values with commas' sweep "${small[@]}" --vary 'schedule.rebalance={period: 1 s, horizon: 0 s}, {period: 2 s}' --db c.db --json -q
check 'are two values' rows 1 '{period: 1 s, horizon: 0 s}' '{period: 2 s}'
check 'little is kept of each run' equals 0 "$(query c.db "SELECT count(*) FROM notes WHERE kind = 'counted'")"
accepts 'with details' sweep "${small[@]}" --seeds 5 --db d.db --details -q
check 'all is kept' test "$(query d.db "SELECT count(*) FROM notes WHERE kind = 'counted'")" -gt 100
if command -v gnuplot >/dev/null; then
	accepts 'plot throughput of a sweep' plot throughput -o a.png --db a.db
else
	skip 'plot throughput of a sweep' 'gnuplot is not installed'
fi

# ---- killed ---------------------------------------------------------------------------------------------------------

long=("$root/scenarios/two-datacentres.yaml" --set train.until.steps=20 --seeds 1..8 --jobs 2)

begin() { # begin FILE RUNS ARGUMENT...: a sweep in the background, `sweep`, that has so many runs; its workers are `workers`
	local file=$1 runs=$2
	shift 2
	"$skep" sweep "$@" --db "$file" >"$out" 2>"$err" </dev/null &
	sweep=$!
	for _ in {1..600}; do
		[ "$(query "$file" 'SELECT count(*) FROM runs' 2>/dev/null || echo 0)" -lt "$runs" ] || break
		sleep 0.05
	done
	workers=$(children "$sweep")
}

whole() { # whole FILE: every run that is there has ended and has all its rounds
	equals '0 ok' "$(query "$1" "SELECT count(*) FROM runs WHERE status <> 'done' OR steps <> 20
		OR steps <> (SELECT count(*) FROM rounds WHERE run = id)") $(query "$1" 'PRAGMA integrity_check')"
}

ended() { # ended PID...: none of these is there any more
	for _ in {1..600}; do
		any_left "$@" || return 0
		sleep 0.05
	done
	echo "one of $* is still there"
	return 1
}

begin e.db 1 "${long[@]}"
check 'two workers' equals 2 "$(echo "$workers" | wc -w)"
# shellcheck disable=SC2086
kill -9 $(echo $workers | cut -d' ' -f1)
wait "$sweep"
check 'a worker is killed: exit status 1' equals 1 $?
check 'which is said, with the combination' sh -c \
	'grep -qE "^skep: combination [0-9] of 8 failed: seed [0-9]$" "$1" && grep -qE "^skep: process [0-9]+ was ended by SIGKILL" "$1"' - "$err"
check 'the others are there' equals 7 "$(query e.db 'SELECT count(*) FROM runs')"
check 'whole' whole e.db
accepts 'the same again' sweep "${long[@]}" --db e.db
check 'does the one' grep -qx 'skep: 7 of 8 are there' "$err"
check 'and all eight are there' equals '8 8' "$(query e.db "SELECT count(*) || ' ' || count(DISTINCT seed) FROM runs")"

begin f.db 2 "${long[@]}"
kill -9 "$sweep"
wait "$sweep" 2>/dev/null
# shellcheck disable=SC2086
check 'the sweep is killed: its workers end' ended $workers
there=$(query f.db 'SELECT count(*) FROM runs')
check 'its runs are there' test "$there" -ge 2 -a "$there" -lt 8
check 'and whole' whole f.db
accepts 'the same again, after that' sweep "${long[@]}" --db f.db
check 'does the others' grep -qx "skep: $there of 8 are there" "$err"
check 'and none twice' equals '8 8' "$(query f.db "SELECT count(*) || ' ' || count(DISTINCT seed) FROM runs")"

for signal in INT TERM HUP; do
	begin "$signal.db" 1 "${long[@]}"
	kill "-$signal" "$sweep"
	wait "$sweep"
	status=$?
	check "SIG$signal: exit status of the signal" equals "$signal" "$(kill -l "$status")"
	# shellcheck disable=SC2086
	check "SIG$signal: its workers end" ended $workers
	check "SIG$signal: it says how to go on" grep -qE \
		"^skep: ended by SIG$signal: [1-7] of 8 runs are in $signal.db; the same command again does the others" "$err"
	check "SIG$signal: what is there is whole" whole "$signal.db"
done
"$skep" sweep "${long[@]}" --db twice.db -q >"$out" 2>"$err" </dev/null &
other=$!
accepts 'two sweeps of the same words at once' sweep "${long[@]}" --db twice.db -q
wait "$other"
check 'the other one too' equals 0 $?
check 'no run is there twice' equals '8 8' "$(query twice.db "SELECT count(*) || ' ' || count(DISTINCT seed) FROM runs")"

# ---- the database is in the way -------------------------------------------------------------------------------------

begin g.db 1 "${long[@]}"
exec 5< <(exec python3 -c 'import sqlite3, time
d = sqlite3.connect("g.db", isolation_level=None, timeout=60); d.execute("BEGIN IMMEDIATE"); print("held", flush=True); time.sleep(120)')
holder=$!
read -r _ <&5
for _ in {1..400}; do
	grep -q 'is locked by another program' "$err" && break
	sleep 0.05
done
check 'a locked database: it says that it waits' grep -qx 'skep: g.db is locked by another program: the sweep waits until it is free' "$err"
kill "$holder"
exec 5<&-
wait "$sweep"
check 'and goes on' equals 0 $?
check 'with all runs' equals 8 "$(query g.db 'SELECT count(*) FROM runs')"

# Runs that fail say why, the first one for all; points of a front are named by quantities whole.
varied=(--vary train.optimizer.lr=0.004,100 --vary 'cluster.links.west-east.bandwidth=200 Mbit/s,1 Gbit/s')
"$skep" sweep "$root"/scenarios/two-datacentres.yaml --set train.until.steps=20 --set train.target_loss=null "${varied[@]}" --db diverged.db \
	>"$out" 2>"$err"
check 'runs that diverge: exit status 1' equals 1 $?
check 'it says why the first one failed' grep -q \
	'^skep: 2 runs failed; the first: train.optimizer.lr=100, cluster.links.west-east.bandwidth=200 Mbit/s: gradients became infinite' "$err"
accepts 'their front' plot pareto --db diverged.db -o front.svg
check 'values of settings keep their units' grep -q '>bandwidth 1 Gbit/s<' front.svg

mkdir small
if with_mounts sh -c 'mount -t tmpfs -o size=64k tmpfs small' 2>/dev/null; then
	with_mounts bash -c '
		mount -t tmpfs -o size=700k tmpfs small
		"$@" --db small/a.db >"$0.out" 2>"$0.err" </dev/null
		status=$?
		python3 -c "import sqlite3
d = sqlite3.connect(\"small/a.db\")
runs = d.execute(\"SELECT count(*) FROM runs\").fetchone()[0]
print(d.execute(\"PRAGMA integrity_check\").fetchone()[0], runs < 40, d.execute(\"SELECT count(*) FROM runs WHERE status <> \x27done\x27\").fetchone()[0])" >"$0.sound" 2>&1
		exit "$status"' "$scratch/full" timeout 300 "$skep" sweep "${small[@]}" --seeds 1..40
	check 'a full disk: exit status 1' equals 1 $?
	check 'each run that has no room is named' grep -qE '^skep: combination [0-9]+ of 40 failed: seed [0-9]+$' "$scratch/full.err"
	check 'with the reason' grep -qE '^skep: small/a.db: the disk.* full' "$scratch/full.err"
	check 'what is there is sound, and whole' equals 'ok True 0' "$(cat "$scratch/full.sound")"
else
	skip 'a full disk' 'this system does not let a test mount a small file system'
fi
plan
