#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes the runs behind the figure of rebalancing and draws it: newcomers that go anywhere and nobody who moves; newcomers that
# go where they are needed; and moves every T = 300 s and T = 60 s besides. SEEDS seeds of STEPS rounds each, JOBS at a time.
#
#     analysis/rebalancing.sh [PICTURE]        SKEP=build/skep SEEDS=10 STEPS=500 JOBS=2 DB=rebalancing.db
set -euo pipefail
cd "$(dirname "$0")/.."
skep=${SKEP:-build/skep} db=${DB:-rebalancing.db}

sweep() { # KEY=VALUES
	"$skep" sweep scenarios/rebalancing.yaml --db "$db" --seeds "1..${SEEDS:-10}" --jobs "${JOBS:-2}" \
		--set "train.until.steps=${STEPS:-500}" --vary "$1"
}

sweep schedule.joins=random,needed
sweep 'schedule.rebalance.period=300 s,60 s'
"$skep" plot throughput -o "${1:-rebalancing.png}" --db "$db"
