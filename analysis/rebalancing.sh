#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes the runs behind the figure of rebalancing and draws it: newcomers that go anywhere and nobody who moves; newcomers that
# go where they are needed; and moves every T = 300 s and T = 60 s besides. SEEDS seeds of STEPS rounds each, JOBS at a time.
#
#     analysis/rebalancing.sh [PICTURE]        SKEP=build/skep SEEDS=10 STEPS=500 JOBS=2 DB=rebalancing.db
set -euo pipefail
cd "$(dirname "$0")/.."
picture=${1:-rebalancing.png}
export SKEP=${SKEP:-build/skep} DB=${DB:-rebalancing.db} STEPS=${STEPS:-500}

run() { # seed [setting]
	"$SKEP" sim scenarios/rebalancing.yaml --db "$DB" -q --seed "$1" --set "train.until.steps=$STEPS" ${2:+--set "$2"} \
		> /dev/null
}
export -f run

for seed in $(seq "${SEEDS:-10}"); do
	printf '%s\0%s\0' "$seed" schedule.joins=random "$seed" schedule.joins=needed \
		"$seed" 'schedule.rebalance.period=300 s' "$seed" 'schedule.rebalance.period=60 s'
done | xargs -0 -n 2 -P "${JOBS:-2}" bash -c 'run "$0" "$1"'
"$SKEP" plot throughput -o "$picture" --db "$DB"
