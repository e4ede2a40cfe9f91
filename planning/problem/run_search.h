/* SPDX-License-Identifier: Apache-2.0
 *
 * run_search.h - one search for the allocation of a scenario: by the expected time of a step, or by another cost. The only
 * place that sets a search of planning/search up.
 *
 * Searches read no clock. Where there is a limit of time, the cost that they ask looks at it, and raises the flag that ends
 * the search.
 */
#pragma once

#include "planning/problem/problem.h"
#include "planning/search/methods.h"

#define SKEP_PLANNING_EVALUATIONS 20000.0 /* that a search may make without a limit of time, in a small pool */

/* Allocations that `exact` may have to look at; of a larger pool it is not asked. */
#define SKEP_PLANNING_EXACT_MOST 100000.0

/* Is the pool small enough for `exact`? *ret_count: how many there are, at most. */
bool skep_planning_exact(const struct skep_planning *planning, double *ret_count);

/* What a search of so many workers may ask, if in a pool of 64 it may ask `all` times. Making an allocation current takes
 * as long as the square of the pool, a change as long as the pool: random and genetic searches do the one, the portfolio both. */
uint64_t skep_planning_evaluations(enum skep_method method, uint32_t workers, double all);

struct skep_planning_search {
	enum skep_method method;
	enum skep_contention view;
	uint64_t seed;
	const uint32_t *start;              /* to begin from; NULL: the method's own */
	struct skep_trail *trail;           /* how it came down; NULL: not wanted */
	const struct skep_problem *problem; /* NULL: the planning's */
	const struct skep_objective *cost;  /* NULL: of skep_throughput_init() in this view */
	const struct skep_objective
		*quick;       /* of skep_throughput_init(), whose tables a search may begin by; NULL: `cost` is one */
	uint64_t evaluations; /* 0: those of SKEP_PLANNING_EVALUATIONS for this pool */
	uint64_t until_ns;    /* of skep_monotonic_ns(); 0: no limit of time */
};

/* ret_stage_of [workers] is allowed, whatever it costs. False: no memory. */
bool skep_planning_search(const struct skep_planning *planning, const struct skep_planning_search *search,
	uint32_t *ret_stage_of, struct skep_found *ret);
