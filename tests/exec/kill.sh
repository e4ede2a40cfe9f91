#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# kill.sh [RUNS [KILLS]] - real runs whose worker processes get SIGKILL at random moments, KILLS (10) in each of RUNS (10); ends with
# "100 SIGKILLs, 100 survived ..." if all goes well. Where skep was built with an MPI that survives this, with that one;
# else in a Debian 13 (chroot.sh), if that can be had here.
#
#     tests/exec/kill.sh          a hundred, some four minutes
#     tests/exec/kill.sh 1 10     as in the tests of a build
set -u
[ -f tests/tap.sh ] || cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
. tests/cli/lib.sh
needs python3 mpirun

mpi_environment
runs=${1:-10} kills=${2:-10}
name="$((runs * kills)) SIGKILLs in $runs runs"

# A run without a trace: who dies is replaced at once. Small gradients, so that 15 s hold some 340 rounds.
scenario() { # scenario ROOT
	sed "/trace:/d; s,file: models/,file: $1/models/,; s,topology: ,topology: $1/," "$root/scenarios/churn.yaml" |
		sed 's/compute_scale: .*/compute_scale: 500/; s/microbatch: 64/microbatch: 128/; s/steps: .*}/steps: 340}/'
}

verdict() { # verdict STATUS OUTPUT
	grep '^#' <<<"$2"
	if [ "$1" = 77 ]; then
		skip "$name" "${2##*$'\n'}"
	elif [ "$1" = 0 ]; then
		pass "$name"
	else
		fail "$name" "$2"
	fi
	tail -n 1 <<<"$2" | sed 's/^/# /'
}

run_skep run "${quick[@]}" --spares 0 -q --json
if [ "$status" = 0 ]; then
	scenario "$root" >kill.yaml
	output=$(python3 "$root/tests/exec/torment.py" kill "$skep" kill.yaml "$runs" "$kills" 2>&1)
else
	hard=("$root/tests/exec/chroot.sh" env SKEP=/build/skep bash)
	scenario /src >kill.yaml
	output=$("$root/tests/exec/chroot.sh" sh -c "cd /tmp && cat >kill.yaml &&
		python3 /src/tests/exec/torment.py kill /build/skep kill.yaml $runs $kills" <kill.yaml 2>&1)
fi
verdict $? "$output"

# What the real runs of these show there, with hard kills; where MPI survives them here, those tests do so by themselves.
hard() { # hard TEST NAME
	output=$("${hard[@]}" "tests/exec/$1.sh" 2>&1)
	result=$?
	[ $result != 0 ] || ! grep -q '^not ok' <<<"$output" || result=1
	name=$2 verdict $result "$output"
}
if [ "${hard+set}" ]; then
	hard recover 'a stage restored after a SIGKILL'
	hard candidates 'SIGKILLs in a trial of candidates'
	hard silent 'the directory killed, and others at the start'
fi
plan
