#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# bad.sh - files that are wrong: each line of tests/bad/CASES, and what is too big or too odd to keep in the tree.
set -u
. tests/cli/lib.sh

# FILE <tab> OPTIONS <tab> what stderr must contain, from the last part of the path on
while IFS=$'\t' read -r file options expected; do
	[[ $file =~ ^(#|$) ]] && continue
	read -ra words <<<"$options"
	name="$file ${options#-q}"
	refuses "$name" '.' sim "$root/$file" "${words[@]}"
	if ! grep -qF -- "$expected" "$err"; then
		fail "$name: message" "expected $expected"$'\n'"$(seen)"
	elif [[ $expected =~ :[0-9]+:[0-9]+: ]] && ! grep -qE '^ *\^' "$err"; then
		fail "$name: caret" "$(seen)"
	else
		pass "$name: message"
	fi
done <"$root/tests/bad/CASES"

check_good=("$root/scenarios/one-worker.yaml")
accepts 'while a good file is read' check "${check_good[@]}"

head -c 10000000 /dev/urandom >noise.yaml
refuses '10 MB of noise' 'noise.yaml' sim noise.yaml
head -c 7500000 /dev/urandom | base64 -w 70 >letters.yaml
refuses '10 MB of letters' 'letters.yaml' sim letters.yaml
head -c 10000000 /dev/zero | tr '\0' '[' >brackets.yaml
refuses '10 MB of brackets' 'brackets.yaml' sim brackets.yaml
head -c 1000000 /dev/zero | tr '\0' '[' >fewer.yaml
refuses '1 MB of brackets' 'fewer.yaml:1:' sim fewer.yaml
printf 'seed: %s\n' "$(head -c 3000000 /dev/zero | tr '\0' '7')" >seven.yaml
refuses 'a number of 3 million digits' 'seven.yaml' sim seven.yaml
cp "$skep" program.yaml
refuses 'a program' 'program.yaml' sim program.yaml
printf 'name: a\0b\n' >nul.yaml
refuses 'a NUL in the text' 'nul.yaml' sim nul.yaml
mkfifo pipe.yaml
refuses 'a pipe' 'pipe.yaml.*not a regular file' sim pipe.yaml
ln -s loop.yaml loop.yaml
refuses 'a link to itself' 'loop.yaml' sim loop.yaml
refuses 'an endless device' '/dev/zero' sim /dev/zero
refuses 'the empty name' 'error' sim ''
refuses 'a name of 5,000 letters' 'too long|cannot' sim "$(head -c 5000 /dev/zero | tr '\0' 'a')"
{
	echo 'a0: &a0 [x, x, x, x, x, x, x, x, x]'
	for i in {1..30}; do echo "a$i: &a$i [*a$((i - 1)), *a$((i - 1)), *a$((i - 1)), *a$((i - 1)), *a$((i - 1))]"; done
} >bomb.yaml
refuses_at 'a bomb of anchors' 'bomb.yaml:1:5' 'anchor' sim bomb.yaml

refuses 'a type without prices' 'aws-v100-2020.csv: no row of type .p9.huge.' sim "$root/scenarios/one-worker.yaml" \
	--set "cluster.topology=$root/tests/bad/topology-prices-type.yaml"

for command in check sim run; do
	refuses "$command: no such file" 'nowhere.yaml' "$command" nowhere.yaml
	refuses "$command: bad file" 'unknown-key.yaml:3:1: error' "$command" "$root/tests/bad/unknown-key.yaml"
done
refuses 'a bad file with --json' 'unknown-key.yaml:3:1: error' sim "$root/tests/bad/unknown-key.yaml" --json
plan
