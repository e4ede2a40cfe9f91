#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# usage.sh - the command line itself: help, unknown words, where output goes, and what --json prints.
set -u
. tests/cli/lib.sh
needs python3

keys=(run_id scenario world seed digest number_format steps ended_by samples tokens time_s throughput_samples_per_s throughput_tokens_per_s utilisation passes_s reduction_s global_staleness local_staleness bytes_pipeline
	bytes_sync issued counted lost preemptions joins migrations scalings returned checkpoints restarts outages rounds_again rounds_unrecorded damaged expert_imbalance expert_dropped expert_balance final_loss final_validation_loss time_to_target_s
	cost_to_target_usd cost_usd egress_usd events wall_s extrapolated failure candidate)

one_object() { # stdout is one JSON object, on one line, with these keys in this order
	python3 - "$out" "${keys[@]}" <<-'END'
	import json, sys
	text = open(sys.argv[1]).read()
	assert text.count("\n") == 1 and text.endswith("\n"), text
	def refuse(word): raise ValueError(word)
	seen = json.loads(text, parse_constant=refuse)
	assert list(seen) == sys.argv[2:], list(seen)
	assert seen["issued"] == seen["counted"] + seen["lost"], seen
	assert seen["steps"] == 3 and seen["run_id"] >= 1, seen
	END
}

silent() { # silent FILE
	[ ! -s "$1" ]
}

for command in check sim run plan sweep jobs slurm export compare fit plot replay probe calibrate published bench help; do
	accepts "skep $command --help" "$command" --help
	check "skep $command --help tells of $command" grep -q "skep $command" "$out"
	check "skep $command --help is quiet on stderr" silent "$err"
	check "skep $command --help says what -o writes" bash -c \
		"! grep -q -e ' -o F' '$out' || grep -q -e '^  -o, --output F[A-Z]* ' '$out'"
done
accepts 'skep --help' --help
for command in check sim run plan sweep jobs export compare fit plot replay probe calibrate published bench trace topology help; do
	check "skep --help lists $command" grep -qw "$command" "$out"
done
accepts 'skep --version' --version
check 'skep --version says it' grep -qE '^skep [0-9a-z]' "$out"
check 'help and version make no files' test -z "$(ls -A)"

# All that the tree ships can be read. A scenario names files from the root of the tree, which is found above it.
for file in "$root"/scenarios/*.yaml "$root"/scenarios/{baselines,papers}/*.yaml; do
	accepts "skep check ${file#"$root/"}" check "$file"
done
for file in "$root"/topologies/*.yaml "$root"/scenarios/papers/topologies/*.yaml; do
	accepts "skep topology stats ${file#"$root/"}" topology stats "$file"
done

refuses 'no command' '^usage: skep COMMAND'
refuses 'unknown command' "^skep: there is no command 'simm', did you mean sim\?; see skep --help$" simm "${quick[@]}"
check 'in one line' test "$(wc -l <"$err")" = 1
refuses 'a command like none' "^skep: there is no command 'frobnicate'; see skep --help$" frobnicate
refuses 'probe without a file' '^skep: expected -o NAME.yaml, the topology that is written$' probe
refuses 'unknown option' "^skep: unrecognized option '--frobnicate'" sim "${quick[@]}" --frobnicate
refuses 'unknown short option' "^skep: invalid option -- 'Z'" sim "${quick[@]}" -Z
refuses 'a longer word' "^skep: there is no command 'simulate', did you mean sim\?; see skep --help$" simulate
refuses 'a typo, in one line' "^skep: unrecognized option '--jsn', did you mean --json\?; see skep sim --help$" sim --jsn x
check 'and no more' test "$(wc -l <"$err")" = 1
refuses 'an option without its value' "^skep: option '--set' requires an argument; see skep sim --help" sim x --set
refuses 'a switch with a value' "^skep: option '--json=1' takes no value" sim x --json=1
refuses 'a letter that is none' "^skep: invalid option -- 'z'; see skep sim --help" sim x -z
refuses 'a trace of no speed' '^skep: --time-scale 0: expected a number from 1e-6 to 1e6' sim "${quick[@]}" --time-scale 0
refuses 'of one that is no number' '^skep: --time-scale x: expected a number' sim "${quick[@]}" --time-scale x
refuses 'a scenario of nearly that name' 'No such file or directory; did you mean .*/scenarios/two-datacentres.yaml' check \
	"$root/scenarios/two-datacenters.yaml"
mkdir scenarios
touch scenarios/mine.yaml
refuses 'one of the scenarios here' 'did you mean scenarios/mine.yaml' check mine.yml
refuses 'one that is like none' 'absent.yaml: error: cannot be opened: No such file or directory$' check absent.yaml
rm -r scenarios
refuses 'a folder as a model' 'model.file: .\.\.. is a directory: expected a file' check "${quick[@]}" --set model.file=..
printf 'name: x\nmodel: {file: .., stages: 1}\n' >folder.yaml
refuses_at 'a folder as a model, at its line' folder.yaml:2:15 'model.file: .\.\.. is a directory' check folder.yaml
for unit in us µs μs; do
	accepts "$unit" check "${quick[@]}" --set "cluster.extra_latency=5 $unit" --json
	cp "$out" "$unit.json"
done
check 'all of them are the same' cmp us.json µs.json
check 'with the Greek letter too' cmp us.json μs.json
rm -f ./*.json folder.yaml
refuses 'an option of another command' '^skep: check does not take the option --pace' check "${quick[@]}" --pace
refuses 'a short option of another command' '^skep: check does not take the option -o' check "${quick[@]}" -o a.png
refuses 'check with a database' '^skep: check does not take the option --db' check "${quick[@]}" --db a.db
refuses 'no scenario' '^skep: sim takes SCENARIO, or --graph FILE; see skep sim --help$' sim
refuses 'two scenarios' "^skep: sim takes SCENARIO; 'more.yaml' is one word too many" sim "${quick[@]}" more.yaml
refuses 'an option without its value' "^skep: option '--db' requires an argument" sim "${quick[@]}" --db
seeds='expected a whole number from 0 to 9223372036854775807'
refuses 'a seed that is no number' "^skep: --seed seven: $seeds" sim "${quick[@]}" --seed seven
refuses 'a negative seed' "^skep: --seed -1: $seeds" sim "${quick[@]}" --seed -1
refuses 'a seed of 64 bits' "^skep: --seed 9223372036854775808: $seeds" sim "${quick[@]}" --seed 9223372036854775808
refuses 'a seed of 65 bits' "^skep: --seed 18446744073709551616: $seeds" sim "${quick[@]}" --seed 18446744073709551616
refuses 'an empty seed' "^skep: --seed : $seeds" sim "${quick[@]}" --seed ''
refuses '--set without a value' 'error: expected --set key.path=value' sim "${quick[@]}" --set train.until.steps
refuses '--set of an unknown key' 'error: unknown key .trian., did you mean .train.' sim "${quick[@]}" --set trian.until.steps=3
refuses '--set of a wrong value' 'train.until.steps: expected a whole decimal number' sim "${quick[@]}" --set train.until.steps=none
refuses 'ranks that are no number' '^skep: -n two: expected a number of processes' run "${quick[@]}" -n two
refuses 'compare with one run' '^skep: compare takes two runs, or none' compare 1
refuses 'compare with a word' '^skep: one is not the number of a run' compare one two
refuses 'plot without a kind' '^skep: plot takes KIND .*-o FILE; see skep plot --help$' plot -o a.png
refuses 'plot without a target' '^skep: plot needs -o FILE' plot accuracy
refuses 'calibrate without a run' '^skep: calibrate takes RUN -o FOLDER; see skep calibrate --help$' calibrate
refuses 'calibrate without a folder' '^skep: calibrate: -o FOLDER: where to write' calibrate 1
refuses 'replay without a run' '^skep: replay takes RUN; see skep replay --help$' replay

for word in import stats generate; do
	accepts "skep trace $word --help" trace "$word" --help
	check "skep trace $word --help tells of $word alone" \
		sh -c 'grep -q "^usage: skep trace $2" "$1" && ! grep "skep trace" "$1" | grep -qv "skep trace $2"' - "$out" "$word"
done
accepts 'skep trace --help' trace --help
refuses 'trace without a word' '^skep: expected skep trace import, stats, generate or jobs$' trace
check 'behind its usage' sh -c 'grep -q "^usage: skep trace" "$1" && tail -n 1 "$1" | grep -q "^skep: expected"' - "$err"
refuses 'trace with another word' '^skep: expected skep trace import, stats, generate or jobs, not grow' trace grow
refuses 'an unknown option of trace' "^skep: unrecognized option '--frobnicate'" trace stats a.csv --frobnicate
refuses 'a seed of 64 bits for trace' '^skep: --seed 9223372036854775808: expected' trace stats a.csv --seed 9223372036854775808

accepts 'skep check' check "${quick[@]}"
check 'skep check makes no database' test -z "$(ls -A)"
check 'skep check is silent on what is usual' sh -c '! grep -q delayed "$1"' - "$out"
refuses 'delayed updates that are neither on nor off' 'sync.delayed: .*(true|false)' sim "${quick[@]}" --set sync.delayed=perhaps
accepts 'skep check of delayed updates' check "${quick[@]}" --set sync.delayed=true
check 'skep check tells of delayed updates' grep -q 'updates  *delayed' "$out"
accepts 'skep check of measured times' check "$root/scenarios/opt-350m.yaml"
check 'skep check says what is measured' grep -qE '^ +1 +A100-SXM4-40 .* measured +measured +measured$' "$out"
check 'skep check says how far a law is off' grep -qE 'law off by [0-9.]+ % \(median\), [0-9.]+ % \(p90\) on 83 points' "$out"
accepts 'skep check of fitted times' check "$root/scenarios/opt-350m.yaml" --set 'cluster.compute={predictor: analytic, noise: 0.05}'
check 'skep check says what is fitted' grep -qE '^ +4 +RTX-2080 .* fitted +fitted +memory$' "$out"
check 'skep check says the factor' grep -qE 'lambda 0\.[0-9]+' "$out"
check 'skep check says the noise' grep -q 'give or take 5 %' "$out"

accepts 'skep sim --json' sim "${quick[@]}" --json --seed 7
check '--json prints one object and nothing else' one_object
accepts 'skep sim -q' sim "${quick[@]}" -q
check 'sim -q is quiet on stderr' silent "$err"
accepts 'skep sim --json -q' sim "${quick[@]}" --json -q
check '--json -q prints the object' one_object
check '--json -q is quiet on stderr' silent "$err"
accepts 'skep sim to a named database' sim "${quick[@]}" --db other.db
check 'the named database is there' test -s other.db
check 'no progress bar where stderr is no terminal' sh -c '! grep -q "$(printf "\r")" "$1"' - "$err"

printf '# a trace\n5,join,a\n6,join,a\n9,leave,a\n20,end\n' >odd.csv
accepts 'skep trace --repair' trace stats odd.csv --repair
check 'trace --repair warns' grep -q 'odd.csv' "$err"
accepts 'skep trace --repair -q' trace stats odd.csv --repair -q
check 'trace -q is quiet on stderr' silent "$err"

# Nobody's file is in the way of a trace that is written, neither a user's nor that of another skep.
echo mine >same.csv.part
for i in 1 2 3 4; do
	"$skep" trace generate -o same.csv --machines 300 --duration '100 h' --scale '20 min' --seed "$i" >"$scratch/out.$i" 2>&1 &
	pids[i]=$!
done
for i in 1 2 3 4; do
	wait "${pids[i]}"
	check "trace writer $i of four at once" test $? = 0
done
accepts 'what they wrote is a trace' trace stats same.csv
check 'of one of them, and whole' grep -qE '^same.csv: own format, 4.167 d$' "$out"
check 'the file of another is untouched' grep -qx mine same.csv.part
check 'and nothing else is left' test "$(find . -name 'same.csv*' | wc -l)" = 2

# Results that do not arrive are a failure, and said to be one.
accepts 'a second run to compare with' sim "${quick[@]}" --seed 8
for words in "compare 1 2" "check ${quick[*]}" "sim ${quick[*]}" "sim ${quick[*]} --json" '--help' 'sim --help' \
	'trace stats odd.csv --repair'; do
	status=0
	# shellcheck disable=SC2086
	timeout 300 "$skep" $words >/dev/full 2>"$err" </dev/null || status=$?
	check "skep ${words%% *} on a full disk fails" test "$status" = 1
	check "skep ${words%% *} on a full disk says so" \
		grep -q '^skep: the results could not all be written to standard output: No space' "$err"
done
plan
