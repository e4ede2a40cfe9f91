/* SPDX-License-Identifier: Apache-2.0
 *
 * fault_mix_standby.c - decides which spares of a seed's swarm stand by: in half of the swarms that have any, most of them. Not
 * with fixed pipelines, which have no spares.
 */
#include "tests/cluster/fault_mix.h"

#define STANDBY_SALT UINT64_C(0x7374616e64)

void weather_standby(struct weather *w)
{
	uint64_t random = mix64(w->seed ^ STANDBY_SALT);
	if (random % 2 == 0 || skep_plan_fixed(&w->plan))
		return;
	for (uint32_t i = 0; i < w->plan.workers; i++)
		w->stands_by[i] = w->plan.first_stage_of[i] == SKEP_NO_STAGE && (random >> (i % 32 + 8)) % 4 > 0;
	w->plan.stands_by = w->stands_by;
}
