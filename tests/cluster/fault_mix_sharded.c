/* SPDX-License-Identifier: Apache-2.0
 *
 * fault_mix_sharded.c - makes a seed's stages step in shards (plan->sharded), where all else that it has drawn can go with that,
 * in runs that are asked to have it (chaos --sharded). Drawn after all else and from a draw of its own.
 */
#include "tests/cluster/fault_mix.h"

#define SHARDED_SALT UINT64_C(0x736861726473)

static bool may_shard(const struct skep_plan *plan)
{
	return plan->inner.steps == 0 && plan->candidates.count < 2 && !skep_plan_no_flush(plan) &&
	       skep_plan_model_chunks(plan) == 1;
}

/* What goes with one ring, and with members that stay, alone. */
static void leave_out(struct weather *w)
{
	struct skep_plan *plan = &w->plan;
	plan->reduction.collective = SKEP_COLLECTIVE_RING;
	plan->reduction.gather = plan->eager = false;
	plan->tied = plan->rebalance.period_ns = 0;
	plan->on_loss = SKEP_ON_LOSS_REPORT;
	if (plan->frozen_vstages > 0)
		weather_thaw(w);
	for (uint32_t s = 0; s < plan->stages; s++) {
		w->stage[s].buckets = 0;
		w->stage[s].bucket_first = NULL;
	}
}

/* The first worker that is known to be gone ends the run: in three quarters no fault fences any but by chance, so that there is
 * something to go on with. */
void weather_shard(struct weather *w)
{
	uint64_t random = mix64(w->seed ^ SHARDED_SALT);
	if (!may_shard(&w->plan))
		return;
	leave_out(w);
	w->plan.sharded = true;
	if (random % 4 == 0)
		return;
	w->infinite = w->unkept = 0;
	w->rate[WEATHER_KILL] = w->rate[WEATHER_SUSPECT] = w->rate[WEATHER_NOTICE] = w->rate[WEATHER_PAUSE] = 0;
	w->plan.liveness.fence_after_ns *= 16; /* longer than what is late is under way */
	w->bound_ns += 16 * (w->bound_ns - w->abuse_ns);
}
