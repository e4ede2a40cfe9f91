/* SPDX-License-Identifier: Apache-2.0
 *
 * fault_mix_tied.c - decides whether a seed's swarm has a tied table. Drawn last, from a draw of its own: all else stays as
 * it is.
 */
#include "tests/cluster/fault_mix.h"

#define TIED_SALT UINT64_C(0x7461626c65)
#define TIED 4u /* of 5, what none of the pinned seeds draws */

/* In a fifth of those that can: a part of the first virtual stage, or all of it, is a part of the last one too. */
void weather_tie(struct weather *w)
{
	struct skep_plan *plan = &w->plan;
	uint64_t random = mix64(w->seed ^ TIED_SALT), most = CLUSTER_ELEMENTS, first;
	bool whole = !skep_plan_no_flush(plan) && !plan->async.on && !plan->gossip && plan->inner.fragments <= 1;
	if (plan->stages < 2 || !whole || random % 5 != TIED)
		return;
	uint32_t ends[] = {0, plan->stages - 1};
	for (uint32_t i = 0; i < 2; i++) {
		uint64_t count, parameters = plan->stage[ends[i]].parameters;
		skep_chunk_range(parameters, i * (skep_plan_model_chunks(plan) - 1), skep_plan_model_chunks(plan),
			&first, &count);
		most = count < most ? count : most;
	}
	plan->tied = 1 + (random >> 8) % most;
}
