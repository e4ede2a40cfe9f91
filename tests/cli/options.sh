#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# options.sh - the table of options: all of it is accepted, stands in the help and in the manual page, and is completed.
set -u
. tests/cli/lib.sh

accepts 'skep help --options' help --options
cp "$out" "$scratch/options"
check 'there are options of all commands' test "$(cut -f 1 "$scratch/options" | sort -u | wc -l)" -ge 17
accepts 'skep help --man' help --man
cp "$out" "$scratch/skep.1"

# Options are read in their order, so that --help at the end shows that the one before it was accepted.
while IFS=$'\t' read -r command option value example; do
	# shellcheck disable=SC2206
	words=($command "$option")
	[ "$value" = - ] || words+=("$example")
	accepts "skep $command $option" "${words[@]}" --help
	check "skep $command $option is in the help" grep -qE -- "(^  |, )    *$option([[ ]|\$)|^  -[a-z], $option([[ ]|\$)" "$out"
done <"$scratch/options"

# ---- help ------------------------------------------------------------------------------------------------------------

cut -f 1 "$scratch/options" | sort -u >"$scratch/commands"
while read -r command; do
	# shellcheck disable=SC2086
	run_skep $command --help
	check "skep $command --help keeps to 80 columns" awk 'length($0) > 80 { exit 1 }' "$out"
	check "skep $command --help shows examples" grep -q "^  .*skep ${command% *}" "$out"
	check "skep $command is in the manual page" grep -q "^\\.SS skep ${command/-/\\\\-} " "$scratch/skep.1"
done <"$scratch/commands"
accepts 'skep help topology import' help topology import
check 'skep help topology import explains it' grep -q '^usage: skep topology import' "$out"
refuses 'help of no command' "^skep: there is no command 'simulate'" help simulate
refuses 'completion for no shell' '--completion tcsh: expected one of bash, zsh' help --completion tcsh
refuses 'keys of no file' 'nothing.yaml: error: ' help --keys nothing.yaml

# ---- the environment -------------------------------------------------------------------------------------------------

SKEP_DB=elsewhere.db accepts 'a database from the environment' sim "${quick[@]}" -q
check 'the run went there' test -s elsewhere.db -a ! -e skep.db
SKEP_DB=elsewhere.db accepts 'an option replaces it' sim "${quick[@]}" -q --db here.db
check 'this run went where the option said' test -s here.db
rm -f ./*.db

# ---- the manual page -------------------------------------------------------------------------------------------------

if command -v groff >/dev/null; then
	groff -man -ww -z -Kutf8 "$scratch/skep.1" >"$scratch/groff" 2>&1
	check 'groff has nothing to say about the manual page' test ! -s "$scratch/groff"
	groff -man -Tascii -P-cbou -Kutf8 "$scratch/skep.1" >"$scratch/page" 2>/dev/null
	check 'the page has the options as they are typed' grep -q -- '--time-scale X' "$scratch/page"
else
	skip 'the manual page' 'groff is not installed'
fi
if command -v mandoc >/dev/null; then
	check 'mandoc has nothing to say about the manual page' mandoc -Tlint -Wwarning "$scratch/skep.1"
else
	skip 'the manual page by mandoc' 'mandoc is not installed'
fi

# ---- completion ------------------------------------------------------------------------------------------------------

accepts 'skep help --completion bash' help --completion bash
cp "$out" "$scratch/skep.bash"
check 'bash parses it' bash -n "$scratch/skep.bash"

completes() { # completes NAME EXPECTED WORD...: what is proposed for the last word, in one line
	local name=$1 expected=$2 got
	shift 2
	got=$(cd "$root" && bash -c '
		. "$1"; shift
		compopt() { :; }
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
		_skep_complete
		echo "${COMPREPLY[*]}"' - "$scratch/skep.bash" "$skep" "$@")
	if [ "$got" = "$expected" ]; then
		pass "$name"
	else
		fail "$name" "'$got' in place of '$expected'"
	fi
}

completes 'a command' 'sim' si
completes 'commands that begin alike' 'run runs report replay' r
completes 'a sub-command' 'generate' trace g
completes 'an option' '--time-scale' sim --ti
completes 'an option of a sub-command' '--provider' topology import --pr
completes 'no option of another command' '' check --pa
completes 'a choice' 'cuda' run x.yaml --device cu
completes 'a choice behind an equals sign' 'cuda' run x.yaml --device = cu
completes 'an axis' 'tokens' plot accuracy --x to
completes 'a kind of picture' 'timeline' plot time
completes 'a format' 'simgrid' topology import sim
completes 'a file' 'scenarios/two-datacentres.yaml' sim scenarios/two-d
completes 'a file behind an option' 'topologies/two-datacentres.yaml' probe -o topologies/two-datacentres.y
completes 'a key of the scenario' 'train.until.steps=' sim scenarios/one-worker.yaml --set train.until.s
completes 'a key to vary' 'train.until.steps=' sweep scenarios/one-worker.yaml --vary train.until.s
completes 'nothing for a number' '' sim x.yaml --seed 1

accepts 'skep help --completion zsh' help --completion zsh
check 'zsh finds the command on the first line' sh -c '[ "$(head -n 1 "$1")" = "#compdef skep" ]' - "$out"
plan
