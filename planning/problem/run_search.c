/* SPDX-License-Identifier: Apache-2.0
 *
 * run_search.c - see run_search.h.
 */
#include "planning/problem/run_search.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"

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

/* ---- a limit of time --------------------------------------------------------------------------------------------- */

struct timed { /* a cost that looks at the clock whenever it is asked */
	struct skep_objective objective;
	const struct skep_objective *cost;
	uint64_t until_ns;
	bool over;
};

static double whole(void *self, const uint32_t *stage_of)
{
	struct timed *t = self;
	t->over = skep_monotonic_ns() >= t->until_ns;
	return t->cost->whole(t->cost->self, stage_of);
}

static double change(void *self, const struct skep_change *to)
{
	struct timed *t = self;
	t->over = skep_monotonic_ns() >= t->until_ns;
	return t->cost->change(t->cost->self, to);
}

static void keep(void *self)
{
	struct timed *t = self;
	t->cost->keep(t->cost->self);
}

static void limit(struct skep_search *search, uint64_t until_ns, struct timed *ret)
{
	const struct skep_objective *cost = search->cost;
	assert(cost->change && cost->keep && !cost->bound && !cost->alike && !cost->sketch);
	*ret = (struct timed){.objective = {.self = ret, .whole = whole, .change = change, .keep = keep},
		.cost = cost,
		.until_ns = until_ns,
		.over = skep_monotonic_ns() >= until_ns};
	search->cost = &ret->objective;
	search->budget.over = &ret->over;
}

/* ---- a search ---------------------------------------------------------------------------------------------------- */

static bool run(const struct skep_planning *p, const struct skep_planning_search *q, const struct skep_objective *cost,
	uint32_t *ret_stage_of, struct skep_found *ret)
{
	uint64_t usual = skep_planning_evaluations(q->method, p->workers, SKEP_PLANNING_EVALUATIONS);
	const struct skep_objective *quick = q->quick ? q->quick : cost;
	struct timed timed;
	struct skep_search search = {.method = q->method,
		.problem = q->problem ? q->problem : &p->problem,
		.cost = cost,
		.budget = {.evaluations = q->evaluations > 0 ? q->evaluations : usual},
		.seed = q->seed,
		.together_s = skep_throughput_together(quick),
		.along_s = skep_throughput_along(quick),
		.alone_s = skep_throughput_alone(quick),
		.start = q->start,
		.trail = q->trail};
	if (q->until_ns > 0)
		limit(&search, q->until_ns, &timed);
	void *memory = malloc(skep_search_size(&search));
	if (memory)
		*ret = skep_search_run(&search, memory, ret_stage_of);
	free(memory);
	return memory != NULL;
}

bool skep_planning_search(const struct skep_planning *p, const struct skep_planning_search *q, uint32_t *ret_stage_of,
	struct skep_found *ret)
{
	const struct skep_throughput *throughput = &p->throughput[q->view];
	if (q->cost)
		return run(p, q, q->cost, ret_stage_of, ret);
	void *memory = malloc(skep_throughput_size(throughput));
	bool done = memory && run(p, q, skep_throughput_init(memory, throughput), ret_stage_of, ret);
	free(memory);
	return done;
}
