#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# usage.sh - the command line itself: help, unknown words, where output goes, and what --json prints.
set -u
. tests/cli/lib.sh

keys=(run_id scenario world seed digest steps samples tokens time_s throughput_samples_per_s utilisation bytes_pipeline
	bytes_sync issued counted lost preemptions joins migrations checkpoints restarts final_loss time_to_target_s cost_usd events wall_s)

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

for command in check sim run compare plot; do
	accepts "skep $command --help" "$command" --help
	check "skep $command --help tells of $command" grep -q "skep $command" "$out"
	check "skep $command --help is quiet on stderr" silent "$err"
done
accepts 'skep --help' --help
for command in check sim run compare plot; do
	check "skep --help lists $command" grep -qw "$command" "$out"
done
accepts 'skep --version' --version
check 'skep --version says it' grep -qE '^skep [0-9a-z]' "$out"
check 'help and version make no files' test -z "$(ls -A)"

refuses 'no command' 'usage|command'
refuses 'unknown command' 'simm' simm "${quick[@]}"
refuses 'unknown option' 'frobnicate' sim "${quick[@]}" --frobnicate
refuses 'unknown short option' 'Z' sim "${quick[@]}" -Z
refuses 'no scenario' 'scenario|SCENARIO' sim
refuses 'two scenarios' 'scenario|SCENARIO|argument' sim "${quick[@]}" "$root/scenarios/two-datacentres.yaml"
refuses 'an option without its value' 'db' sim "${quick[@]}" --db
refuses 'a seed that is no number' 'seed' sim "${quick[@]}" --seed seven
refuses 'a negative seed' 'seed' sim "${quick[@]}" --seed -1
refuses 'a seed of 65 bits' 'seed' sim "${quick[@]}" --seed 18446744073709551616
refuses 'an empty seed' 'seed' sim "${quick[@]}" --seed ''
refuses '--set without a value' 'set' sim "${quick[@]}" --set train.until.steps
refuses '--set of an unknown key' 'trian' sim "${quick[@]}" --set trian.until.steps=3
refuses '--set of a wrong value' 'steps' sim "${quick[@]}" --set train.until.steps=none
refuses 'ranks that are no number' 'n' run "${quick[@]}" -n two
refuses 'compare with one run' 'run' compare 1
refuses 'compare with a word' 'run' compare one two
refuses 'plot without a kind' 'accuracy' plot -o a.png
refuses 'plot without a target' '-o' plot accuracy

accepts 'skep check' check "${quick[@]}"
check 'skep check makes no database' test -z "$(ls -A)"
check 'skep check is silent on what is usual' sh -c '! grep -q delayed "$1"' - "$out"
refuses 'delayed updates that are neither on nor off' 'sync.delayed: .*(true|false)' sim "${quick[@]}" --set sync.delayed=perhaps
accepts 'skep check of delayed updates' check "${quick[@]}" --set sync.delayed=true
check 'skep check tells of delayed updates' grep -q 'updates  *delayed' "$out"

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

for command in sim check; do
	status=0
	timeout 60 "$skep" "$command" "${quick[@]}" >/dev/full 2>"$err" </dev/null || status=$?
	check "skep $command with its results on a full disk ends in order" test "$status" -le 2
done
plan
