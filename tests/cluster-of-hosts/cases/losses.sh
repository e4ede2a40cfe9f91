# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: Apache-2.0
#
# losses.sh - machines drawn at random are lost in ways drawn at random, and others join.

lose_one() { # lose_one NUMBER
	local all=("${!joiner[@]}") name host=${names[RANDOM % 6]}
	name=${all[RANDOM % ${#all[@]}]}
	case $((RANDOM % 3)) in
	0) kills KILL "$name" ;;
	1) kills TERM "$name" ;;
	2) kill -STOP "${joiner[$name]}" && stopped+=("${joiner[$name]}") ;;
	esac
	echo "# loss $1: $name; another one on $host"
	unset "joiner[$name]"
	joins "n$1" "$host"
}

random_losses() { # random_losses NAME LOSSES ROUNDS-BETWEEN
	local i
	RANDOM=${SEED:-$(date +%s)}
	stopped=()
	echo "# $1: SEED=${SEED:-$(date +%s)}"
	serves "$1" --set train.until.steps=$((($2 + 2) * ($3 + 4)))
	join_all
	awaits "$1: the run begins" rounds 1
	for ((i = 0; i < $2; i++)); do
		lose_one "$i"
		goes_on "$1: loss $i" "$3" || break
	done
	ends "$1"
	for i in "${stopped[@]}"; do
		kill -CONT "$i" 2>/dev/null
	done
	gather
	whole "$1"
}
SEED=${SEED:-$((RANDOM + 1))}
random_losses losses 15 3
