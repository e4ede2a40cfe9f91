#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# moves.sh - a real run that rebalances by queue: the first to move is whom Algorithm 2 of SWARM names, from queues that moves.py finds in
# the passes that the run has recorded. cli/moves.sh has the same of simulated pools.
set -u
. tests/cli/lib.sh
needs python3 sqlite3 mpirun

mpi_environment

# By the passes that it has recorded itself. Where queues are so alike that a message's time decides, another run does.
queue= wanted= clear=
paced() {
	local seed
	for seed in 1 2 3 4 5; do
		rm -f runs.db
		"$skep" run job.yaml --seed $seed -q --pace --db runs.db >"$out" 2>"$err" || { cat "$err" >&2; return 1; }
		wanted=$(python3 "$root/tests/cli/moves.py" runs.db 0.37 2>clear)
		queue=$(sqlite3 -separator ' ' runs.db "SELECT peer, stage FROM notes WHERE kind = 'migrated' AND round = 1")
		clear=$(cat clear)
		awk "BEGIN { exit !($clear > 0.05) }" </dev/null && break
	done
	[ "$queue" = "$wanted" ]
}
job job.yaml 1 2 4 2
sed -i 's/allocation:/compute_scale: 20000, allocation:/
	s/^schedule: .*/schedule: {global_batch: 64, microbatch: 1, rebalance: {period: 0.37 s, by: queue}}/' job.yaml
paced
verdict=$?
[ $verdict -eq 0 ] || echo "# moved: $queue; by hand: $wanted, clear by $clear"
check 'it moves whom its own passes name' test $verdict -eq 0

plan
