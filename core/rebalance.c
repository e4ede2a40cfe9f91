/* SPDX-License-Identifier: Apache-2.0
 *
 * rebalance.c - see rebalance.h. A pure function of what was reported.
 */
#include "core/rebalance.h"

#include <string.h>

static uint32_t extreme(const struct skep_stage_load *stage, uint32_t stages, bool largest)
{
	uint32_t best = 0;
	for (uint32_t i = 1; i < stages; i++) {
		bool more = stage[i].queue_milli > stage[best].queue_milli;
		bool less = stage[i].queue_milli < stage[best].queue_milli;
		if (largest ? more : less)
			best = i;
	}
	return best;
}

static bool pays(const struct skep_plan *plan, uint32_t to, uint32_t workers)
{
	return plan->rebalance_horizon_ns == 0 || plan->rebalance_horizon_ns / (workers + 1) > plan->stage[to].move_ns;
}

struct skep_move skep_rebalance(
	const struct skep_plan *plan, const struct skep_load *load, uint32_t loads, struct skep_stage_load *stage)
{
	struct skep_move move = {SKEP_NO_INDEX, 0};
	uint64_t shortest = UINT64_MAX;
	memset(stage, 0, plan->stages * sizeof *stage);
	for (uint32_t i = 0; i < loads; i++) {
		stage[load[i].stage].workers++;
		stage[load[i].stage].queue_milli += load[i].queue_milli;
	}
	uint32_t from = extreme(stage, plan->stages, false);
	move.to = extreme(stage, plan->stages, true);
	if (stage[from].queue_milli == stage[move.to].queue_milli || stage[from].workers < 2 ||
		!pays(plan, move.to, stage[move.to].workers))
		return move;
	for (uint32_t i = 0; i < loads; i++) {
		if (load[i].stage != from || load[i].queue_milli >= shortest)
			continue;
		shortest = load[i].queue_milli;
		move.worker = load[i].worker;
	}
	return move;
}
