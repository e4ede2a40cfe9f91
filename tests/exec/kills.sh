#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# kills.sh [MS] - real runs in each of which one process is killed, within the first 3 s, at every MS of them (700): skep, who tidies up
# after it, mpirun or a rank. By hand all of them, which takes 20 minutes: tests/exec/kills.sh 10
set -u
. tests/cli/lib.sh
needs python3 mpirun

mpi_environment
job kills.yaml 3 250 1 1
status=0
output=$(python3 "$root/tests/exec/kills.py" "$skep" kills.yaml 250 --every "${1:-700}" --from "${1:-400}" 2>&1) || status=$?
if [ "$status" = 0 ]; then pass 'a process killed at any moment'; else fail 'a process killed at any moment' "$output"; fi
printf '%s\n' "$output" | sed 's/^/# /'
plan
