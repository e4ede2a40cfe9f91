/* SPDX-License-Identifier: Apache-2.0
 *
 * fault_mix_periods.c - gives a seed's stages periods of their own (plan->sum_every), where it has periodic sync, in runs that
 * are asked to have them (chaos --periods). Drawn after all else and from a draw of its own.
 */
#include "tests/cluster/fault_mix.h"

#define PERIODS_SALT UINT64_C(0x706572696f6473)

/* What goes with one period for all alone. */
static void leave_out(struct weather *w)
{
	struct skep_plan *plan = &w->plan;
	plan->delayed = plan->inner.deadline = plan->eager = plan->clip = false;
	plan->inner.fragments = plan->inner.cycle = plan->inner.overlap = 0;
	plan->tied = 0;
	for (uint32_t s = 0; s < plan->stages; s++) {
		w->stage[s].buckets = 0;
		w->stage[s].bucket_first = NULL;
	}
}

/* One, two or four rounds each, so that of two stages the longer has the shorter for a divisor. */
void weather_periods(struct weather *w)
{
	uint64_t random = mix64(w->seed ^ PERIODS_SALT);
	if (w->plan.inner.steps == 0 || w->plan.async.on || w->plan.gossip || w->plan.candidates.count > 1)
		return;
	leave_out(w);
	for (uint32_t s = 0; s < w->plan.stages; s++)
		w->sum_every[s] = 1u << (random >> 2 * s & 3) % 3;
	w->plan.inner.sum_every = w->sum_every;
}
