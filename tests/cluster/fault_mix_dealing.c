/* SPDX-License-Identifier: Apache-2.0
 *
 * fault_mix_dealing.c - decides what owners of a seed's swarm are dealt by: how many microbatches a fast one may have in flight,
 * in half of the swarms more than the mean, some by a little and some by more than all others would ever leave them; and in half
 * how fast they are expected to be, which has nothing to do with how fast they are. And in an eighth of all, in which order
 * the members of a stage follow each other when they sum.
 */
#include "tests/cluster/fault_mix.h"

#define DEALING_SALT UINT64_C(0x6465616c)
#define RING_SALT UINT64_C(0x72696e67)
#define ORDERED 4u /* of 8, what none of the pinned seeds draws */

static void draw_ring(struct weather *w)
{
	uint64_t random = mix64(w->seed ^ RING_SALT);
	if (random % 8 != ORDERED)
		return;
	for (uint32_t stage = 0; stage < w->plan.stages; stage++) {
		uint32_t *order = &w->ring_order[stage * w->plan.workers];
		for (uint32_t i = 0; i < w->plan.workers; i++) {
			uint32_t j = (uint32_t)(mix64(++random) % (i + 1));
			order[i] = order[j];
			order[j] = i;
		}
	}
	w->plan.reduction.order = w->ring_order;
}

void weather_limits(struct weather *w)
{
	draw_ring(w);
	uint64_t random = mix64(w->seed ^ DEALING_SALT);
	for (uint32_t i = 0; i < w->plan.workers; i++)
		w->speed[i] = 1 + (uint32_t)(mix64(~random + i) >> 32) % (random >> 9 & 1 ? 4 : SKEP_SPEED_MAX);
	w->plan.speed = random >> 10 & 1 ? w->speed : NULL;
	if (random % 2 == 0 || skep_plan_fixed(&w->plan))
		return;
	for (uint32_t i = 0; i < w->plan.workers; i++) {
		uint32_t more = (uint32_t)(mix64(random + i) % (random >> 8 & 1 ? 3 : 17));
		w->in_flight_limit[i] = w->plan.in_flight + more;
		if (w->in_flight_limit[i] > w->plan.in_flight_most)
			w->plan.in_flight_most = w->in_flight_limit[i];
	}
	w->plan.in_flight_limit = w->in_flight_limit;
}
