/* SPDX-License-Identifier: Apache-2.0
 *
 * even_groups.c - see searches.h. DT-FM has one size of gradients and of activations for all stages: here the largest.
 */
#include "planning/plan/searches.h"

#include <math.h>
#include <stdlib.h>

#include "planning/problem/run_search.h"
#include "planning/search/published/dtfm.h"
#include "planning/trial/trial.h"

#define EVALUATIONS 2000.0 /* of each search: one takes as long as matchings of all pairs of groups */

static const enum skep_method methods[] = {SKEP_METHOD_CONTIGUOUS, SKEP_METHOD_STRIDED, SKEP_METHOD_GREEDY,
	SKEP_METHOD_GENETIC, SKEP_METHOD_ANNEAL, SKEP_METHOD_PORTFOLIO};

static struct skep_problem problem_of(const struct skep_planner *w)
{
	struct skep_problem problem = w->planning.problem;
	problem.least = problem.most = NULL;
	problem.spares = 0;
	return problem;
}

bool skep_even_groups_possible(struct skep_planner *w)
{
	const struct skep_problem problem = problem_of(w);
	if (problem.workers % problem.stages != 0) {
		skep_planner_refuse(w,
			"plan.objective: dt-fm has as many workers in each stage, and %u workers cannot be shared out over "
			"%u stages; take `throughput`, or another model.stages",
			problem.workers, problem.stages);
		return false;
	}
	void *scratch = malloc(skep_problem_scratch_size(&problem) + 1);
	bool fine = scratch && skep_problem_check(&problem, scratch).fault == SKEP_PROBLEM_FINE;
	free(scratch);
	if (!fine)
		skep_planner_refuse(w, "plan.objective: dt-fm has as many workers in each stage, and that way they do "
				       "not all have the memory; take `throughput`");
	return fine;
}

static struct skep_dtfm dtfm_of(const struct skep_planning *p)
{
	struct skep_dtfm dtfm = {.links = &p->links[SKEP_UNCONTENDED], .stages = p->stages};
	for (uint32_t s = 0; s < p->stages; s++) {
		dtfm.gradient_bytes = fmax(dtfm.gradient_bytes, p->reduced_bytes[s]);
		if (s + 1 < p->stages)
			dtfm.activation_bytes = fmax(dtfm.activation_bytes, p->forward_bytes[s]);
	}
	return dtfm;
}

/* The candidate's figures are those of any; its value is this cost alone. */
static bool search_with(struct skep_planner *w, const struct skep_objective *cost, enum skep_method method)
{
	const struct skep_problem problem = problem_of(w);
	struct skep_search search = {.method = method,
		.problem = &problem,
		.cost = cost,
		.budget = {.evaluations = skep_planning_evaluations(method, problem.workers, EVALUATIONS)},
		.seed = w->scenario.seed,
		.together_s = skep_dtfm_together(cost),
		.along_s = skep_dtfm_along(cost)};
	struct skep_candidate *c = skep_planner_add(w, skep_method_name(method));
	void *mem = c ? malloc(skep_search_size(&search)) : NULL;
	if (!mem)
		return false;
	struct skep_found found = skep_search_run(&search, mem, c->stage_of);
	free(mem);
	c->view = SKEP_UNCONTENDED;
	c->evaluations = found.evaluations;
	skep_planner_expect(w, c);
	c->cost_s[c->view] = found.cost;
	if (skep_trial_run(w, c))
		c->value = found.cost;
	return true;
}

/* For comparison: it is not chosen, as it was not searched for. */
static void cost_of_start(struct skep_planner *w, const struct skep_objective *cost)
{
	struct skep_candidate *c = &w->candidate[0];
	const struct skep_problem problem = problem_of(w);
	uint32_t *count = calloc(problem.stages, sizeof *count);
	bool even = count && skep_problem_allows(&problem, c->stage_of, count);
	c->cost_s[c->view] = even ? cost->whole(cost->self, c->stage_of) : SKEP_NEVER;
	c->value = INFINITY;
	free(count);
}

bool skep_even_groups_search(struct skep_planner *w)
{
	const struct skep_dtfm dtfm = dtfm_of(&w->planning);
	void *mem = malloc(skep_dtfm_size(&dtfm));
	bool ok = mem != NULL;
	const struct skep_objective *cost = ok ? skep_dtfm_init(mem, &dtfm) : NULL;
	if (ok)
		cost_of_start(w, cost);
	for (size_t i = 0; ok && i < sizeof methods / sizeof *methods && !(i > 0 && skep_planner_is_late(w)); i++)
		ok = search_with(w, cost, methods[i]);
	free(mem);
	return ok;
}
