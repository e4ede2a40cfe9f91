/* SPDX-License-Identifier: Apache-2.0
 *
 * fault_mix_losses.c - decides whether the rounds of a seed's swarm are void when a worker is lost, or wait for another one.
 * From a draw of its own: all else stays as it is, but what does not go together with it.
 */
#include "tests/cluster/fault_mix.h"

#define LOSSES_SALT UINT64_C(0x766f6964)
#define VOIDED 11u /* of 24, what none of the pinned seeds draws */
#define WAITING 19u

static bool may_void(const struct skep_plan *plan)
{
	return !plan->delayed && !skep_plan_no_flush(plan) && plan->inner.steps == 0 && plan->candidates.count == 0;
}

static bool may_wait(const struct skep_plan *plan)
{
	return !plan->delayed && !skep_plan_no_flush(plan) && !plan->gossip && plan->candidates.count == 0;
}

void weather_losses(struct weather *w, enum weather_kind kind)
{
	struct skep_plan *plan = &w->plan;
	uint64_t random = mix64(w->seed ^ LOSSES_SALT);
	bool free = kind == WEATHER_ANY || kind == WEATHER_FIXED, report = plan->on_loss == SKEP_ON_LOSS_REPORT;
	if ((kind == WEATHER_VOID || (free && report && random % 24 == VOIDED)) && may_void(plan))
		plan->on_loss = SKEP_ON_LOSS_VOID;
	if ((kind != WEATHER_WAIT && !(free && report && random % 24 == WAITING)) || !may_wait(plan))
		return;
	plan->on_loss = SKEP_ON_LOSS_WAIT;
	plan->rebalance.period_ns = 0;
	if (plan->liveness.wait_for_join_ns > 0)
		return;
	plan->liveness.wait_for_join_ns = plan->liveness.fence_after_ns * (1 + random / 24 % 40);
	w->bound_ns += plan->liveness.wait_for_join_ns;
}
