/* SPDX-License-Identifier: Apache-2.0
 *
 * fault_mix_waves.c - waves (core/methods/wsp.c) in place of rounds of one microbatch, where a seed has even pipelines that are
 * never flushed, in runs that are asked to have them (chaos --waves). Drawn after all else and from a draw of its own.
 */
#include "core/schedule/pipelines.h"
#include "tests/cluster/fault_mix.h"

#define WAVES_SALT UINT64_C(0x7761766573)

void weather_waves(struct weather *w)
{
	struct skep_plan *plan = &w->plan;
	uint64_t random = mix64(w->seed ^ WAVES_SALT);
	if (!skep_plan_no_flush(plan) || skep_plan_uneven(plan))
		return;
	plan->no_flush.weights = SKEP_WEIGHTS_WAVES;
	plan->no_flush.synchronous = 0;
	plan->no_flush.distance = (uint32_t)(random % (SKEP_DISTANCE_MAX + 1));
	plan->microbatches = skep_plan_pipelines(plan) * (uint32_t)(2 + (random >> 8) % 4);
	plan->in_flight = skep_plan_fixed_in_flight(plan);
}
