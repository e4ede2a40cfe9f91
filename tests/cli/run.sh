#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh - what `skep run` refuses before it starts anything.
set -u
. tests/cli/lib.sh

if [ "${SKEP_HAS_MPI:-yes}" = no ]; then
	refuses 'a build without MPI' 'MPI' run "${quick[@]}"
	accepts 'which still simulates' sim "${quick[@]}"
	plan
	exit
fi

refuses 'too few ranks' '[^0-9]2[^0-9]' run "${quick[@]}" -n 1
refuses 'too many ranks' '[^0-9]2[^0-9]' run "${quick[@]}" -n 3
refuses 'no ranks' 'n' run "${quick[@]}" -n 0
refuses 'negative ranks' 'n' run "${quick[@]}" -n -2
refuses 'an unknown device' 'cpu' run "${quick[@]}" --device tpu
refuses 'a missing scenario' 'none.yaml' run none.yaml
mkdir bin
plain=$skep
printf '#!/bin/sh\nPATH=%s exec %s "$@"\n' "$PWD/bin" "$plain" >"$scratch/poor"
chmod +x "$scratch/poor"
skep=$scratch/poor
refuses 'no mpirun' 'mpirun.*(install|openmpi)|openmpi-bin' run "${quick[@]}"
skep=$plain
refuses 'a database in no folder' 'none/a.db' run "${quick[@]}" --db none/a.db
printf 'no database at all\n%s' "$(seq 1 2000)" >list.db
refuses 'a database that is none' 'list.db' run "${quick[@]}" --db list.db
plan
