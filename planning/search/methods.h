/* SPDX-License-Identifier: Apache-2.0
 *
 * methods.h - the searches, each in a file with its method's paper in its head, behind one call.
 *
 *   random      uniform among the allowed, over and over: SWARM's start, and what all others must beat
 *   contiguous  workers in their order, one stage after the other
 *   strided     workers in their order, dealt to the stages in turn
 *   greedy      one worker after the other, each where it costs least just then
 *   exact       all of them, or branch and bound; also mean and worst. For small pools
 *   genetic     balanced partitions that cross and improve by cyclic moves (Yuan et al. 2022)
 *   anneal      Markov chain Monte Carlo over single changes, with restarts (Jia et al. 2019)
 *   relaxed     softmax over stages, temperature to zero, descent of the gradient, rounding and repair (Liu et al. 2019)
 *   portfolio   the best of these: constructions, walks on the cost's sketch, annealing of what is best with what is left
 *
 * Each is a function of problem, cost, budget and seed alone, unless the cost ends it early (skep_budget.over).
 */
#pragma once

#include "planning/search/allocation.h"

enum skep_method {
	SKEP_METHOD_RANDOM,
	SKEP_METHOD_CONTIGUOUS,
	SKEP_METHOD_STRIDED,
	SKEP_METHOD_GREEDY,
	SKEP_METHOD_EXACT,
	SKEP_METHOD_GENETIC,
	SKEP_METHOD_ANNEAL,
	SKEP_METHOD_RELAXED,
	SKEP_METHOD_PORTFOLIO,
	SKEP_METHODS,
};

const char *skep_method_name(enum skep_method method);
enum skep_method skep_method_named(const char *name); /* SKEP_METHODS: there is none of that name */

struct skep_trail_point {
	uint64_t evaluations, steps; /* done so far */
	double cost;                 /* best so far */
};

struct skep_trail { /* each improvement, for a plot of convergence */
	struct skep_trail_point *point;
	uint32_t points, room; /* when it is full the last point is overwritten */
};

struct skep_search {
	enum skep_method method;
	const struct skep_problem *problem;
	const struct skep_objective *cost;
	struct skep_budget budget;
	uint64_t seed;
	/* Smooth stand-ins for `relaxed`, `genetic` and `greedy`: seconds, NULL: as if 0. A cost's own file fills them. */
	const double *together_s; /* [workers * workers] two workers in one stage */
	const double *along_s;    /* [workers * workers] row in a stage, column in the next one */
	const double *alone_s;    /* [workers * stages] a worker at a stage */
	const uint32_t *start;    /* an allocation to begin from; NULL: the method's own */
	struct skep_trail *trail; /* NULL: not wanted */
};

struct skep_found {
	double cost;          /* SKEP_NEVER: no allocation that was tried is possible */
	uint64_t evaluations; /* calls of cost->whole() and cost->change() */
	uint64_t steps;       /* the same of its sketch */
	bool optimal;         /* proved: no allowed allocation costs less */
	double mean, worst;   /* over all allocations that can be, where `exact` saw all; NaN else */
	enum skep_method by;  /* of a portfolio: who found it */
};

/* Bytes of memory that skep_search_run() needs. */
size_t skep_search_size(const struct skep_search *search);

/* How many allocations `exact` looks at, at most, if it leaves out none but those that others stand for: of n[k] workers of
 * kind k the product over k of (n[k] + S - 1)! / (n[k]! (S - 1)!), the ways to deal them to S stages (one more for spares).
 * Above 1e300 it counts no further. */
double skep_exact_count(const struct skep_problem *problem);

/* The problem has been checked. ret_stage_of [workers] is allowed in any case, arranged where the cost can. */
struct skep_found skep_search_run(const struct skep_search *search, void *mem, uint32_t *ret_stage_of);
