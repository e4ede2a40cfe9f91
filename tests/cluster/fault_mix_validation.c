/* SPDX-License-Identifier: Apache-2.0
 *
 * fault_mix_validation.c - decides whether a seed's swarm validates: a quarter does, after every one to three rounds, with few
 * microbatches or many. From a draw of its own: all else stays as it is.
 */
#include "tests/cluster/fault_mix.h"

#define VALIDATION_SALT UINT64_C(0x76616c697b)
#define VALIDATED 1u /* of 4, what none of the pinned seeds draws */

void weather_validation(struct weather *w)
{
	struct skep_plan *plan = &w->plan;
	uint64_t random = mix64(w->seed ^ VALIDATION_SALT);
	if (random % 4 != VALIDATED || skep_plan_no_flush(plan))
		return;
	plan->validation.every = (uint32_t)(1 + (random >> 8) % 3);
	plan->validation.microbatches = (uint32_t)(1 + (random >> 16) % (random >> 32 & 1 ? 4 : WEATHER_VALIDATED));
	w->bound_ns += (w->bound_ns - w->abuse_ns) * (plan->validation.microbatches / plan->microbatches + 1);
}
