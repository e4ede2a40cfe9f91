/* SPDX-License-Identifier: Apache-2.0
 *
 * dealing.c - see plan.h.
 */
#include "scenarios/plan/plan.h"

#include <stdlib.h>

#include "scenarios/plan/memory.h"

#define IN_FLIGHT_TIMES 8u

/* Forward and backward of a microbatch in the first stage. */
static uint64_t pass_ns(const struct skep_scenario *s, uint32_t gpu)
{
	const struct skep_op_time *time = &s->op_time[(size_t)gpu * skep_plan_vstages(&s->plan)];
	uint64_t ns = time->forward_ns + time->backward_ns;
	return ns > 0 ? ns : 1;
}

static bool make_speeds(struct skep_scenario *s)
{
	uint64_t fastest_ns = UINT64_MAX;
	s->speed = calloc(s->plan.workers, sizeof *s->speed);
	for (uint32_t i = 0; s->speed && i < s->plan.workers; i++) {
		uint64_t ns = pass_ns(s, s->topology.machine[i].gpu);
		fastest_ns = ns < fastest_ns ? ns : fastest_ns;
	}
	for (uint32_t i = 0; s->speed && i < s->plan.workers; i++) {
		double part = (double)fastest_ns / (double)pass_ns(s, s->topology.machine[i].gpu);
		s->speed[i] = (uint32_t)(SKEP_SPEED_MAX * part);
		s->speed[i] += s->speed[i] == 0;
	}
	s->plan.speed = s->speed;
	return s->speed != NULL;
}

/* At least the mean: that it does not fit is for skep_memory_check() to say. */
static uint32_t most_in_flight(const struct skep_scenario *s, uint32_t gpu)
{
	struct skep_memory_terms terms = skep_memory_terms_of(s);
	uint32_t fits = s->plan.in_flight, fails = IN_FLIGHT_TIMES * fits + 1;
	while (fits + 1 < fails) {
		terms.in_flight = fits + (fails - fits) / 2;
		struct skep_memory m = skep_memory_of(s, &terms, 0, gpu);
		if (skep_memory_fits(s, &m, gpu))
			fits = terms.in_flight;
		else
			fails = terms.in_flight;
	}
	return fits;
}

static bool make_limits(struct skep_scenario *s)
{
	uint32_t *most = calloc(s->topology.gpus, sizeof *most);
	s->in_flight_limit = calloc(s->plan.workers, sizeof *s->in_flight_limit);
	if (!most || !s->in_flight_limit) {
		free(most);
		return false;
	}
	for (uint32_t gpu = 0; gpu < s->topology.gpus; gpu++)
		most[gpu] = most_in_flight(s, gpu);
	for (uint32_t i = 0; i < s->plan.workers; i++) {
		s->in_flight_limit[i] = most[s->topology.machine[i].gpu];
		if (s->in_flight_limit[i] > s->plan.in_flight_most)
			s->plan.in_flight_most = s->in_flight_limit[i];
	}
	s->plan.in_flight_limit = s->in_flight_limit;
	free(most);
	return true;
}

bool skep_dealing_make(struct skep_scenario *s)
{
	if (s->topology.gpus < 2 || skep_plan_fixed(&s->plan))
		return true;
	return make_speeds(s) && (s->plan.wiring == SKEP_WIRING_UNIFORM || make_limits(s));
}
