/* SPDX-License-Identifier: Apache-2.0
 *
 * search.c - see search.h. A function of planning and search: there is no clock in it.
 */
#include "planning/search.h"

#include <math.h>
#include <stdlib.h>

#define SMALL_POOL 64.0 /* workers */

bool skep_planning_exact(const struct skep_planning *p, double *ret_count)
{
	*ret_count = skep_exact_count(&p->problem);
	return *ret_count <= SKEP_PLANNING_EXACT_MOST;
}

uint64_t skep_planning_evaluations(enum skep_method method, uint32_t workers, double all)
{
	double scale = fmax(1, workers / SMALL_POOL);
	if (method == SKEP_METHOD_EXACT)
		return UINT64_MAX; /* none is left out, so that mean and worst are known */
	if (method == SKEP_METHOD_GENETIC || method == SKEP_METHOD_RANDOM)
		return (uint64_t)fmax(200, all / (scale * scale));
	if (method == SKEP_METHOD_PORTFOLIO)
		return (uint64_t)fmax(2000, all / scale);
	return (uint64_t)all;
}

bool skep_planning_search(const struct skep_planning *p, const struct skep_planning_search *q, uint32_t *ret_stage_of,
	struct skep_found *ret)
{
	void *cost_memory = malloc(skep_throughput_size(&p->throughput[q->view])), *memory = NULL;
	if (cost_memory) {
		const struct skep_objective *cost = skep_throughput_init(cost_memory, &p->throughput[q->view]);
		const struct skep_search search = {.method = q->method,
			.problem = &p->problem,
			.cost = cost,
			.budget = {.evaluations =
					   skep_planning_evaluations(q->method, p->workers, SKEP_PLANNING_EVALUATIONS)},
			.seed = q->seed,
			.together_s = skep_throughput_together(cost),
			.along_s = skep_throughput_along(cost),
			.alone_s = skep_throughput_alone(cost),
			.start = q->start,
			.trail = q->trail};
		memory = malloc(skep_search_size(&search));
		if (memory)
			*ret = skep_search_run(&search, memory, ret_stage_of);
	}
	bool done = memory != NULL;
	free(memory);
	free(cost_memory);
	return done;
}
