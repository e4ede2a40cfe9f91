/* SPDX-License-Identifier: Apache-2.0
 *
 * fault_mix_flushes.c - decides in how many flushes the fixed pipelines of a seed do a round: in a third of those that flush,
 * two to four, with as many microbatches as make them equal. Not with a barrier.
 */
#include "tests/cluster/fault_mix.h"

#define FLUSHES_SALT UINT64_C(0x666c757368)

void weather_flushes(struct weather *w)
{
	struct skep_plan *plan = &w->plan;
	uint64_t random = mix64(w->seed ^ FLUSHES_SALT);
	if (random % 3 == 0 && !plan->barrier && !skep_plan_no_flush(plan)) {
		plan->accumulate = 2 + (uint32_t)(random >> 32) % 3;
		uint32_t groups = plan->pipeline == SKEP_PIPELINE_INTERLEAVED ? plan->stages : 1;
		uint32_t unit = skep_plan_pipelines(plan) * groups * plan->accumulate, before = plan->microbatches;
		plan->microbatches += (unit - before % unit) % unit;
		w->bound_ns += (w->bound_ns - w->abuse_ns) * plan->accumulate * (plan->microbatches / before + 1);
	}
	plan->in_flight = skep_plan_fixed_in_flight(plan);
}
