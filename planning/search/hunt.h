/* SPDX-License-Identifier: Apache-2.0
 *
 * hunt.h - what all searches have in common: the current allocation and its changes, the best so far, and what was spent.
 *
 * Private to planning/search/. A hunt's current allocation is always allowed by the problem, and the cost's current one is the
 * same. Every number that a cost says passes through here, is counted, and if it is the best so far is remembered.
 */
#pragma once

#include "core/random.h"
#include "planning/search/methods.h"

/* Workers from which on a search makes fewer tries: each takes as many steps as there are pairs of workers. */
#define SKEP_SEARCH_MANY 256u

/* ---- memory: what is carved from nothing measures how much it takes ----------------------------------------------- */

struct skep_search_carve {
	char *mem; /* NULL: only measure */
	size_t used;
};

void *skep_search_carve(struct skep_search_carve *c, size_t count, size_t size);

/* ---- the bounds of a problem, filled in ----------------------------------------------------------------------------- */

struct bounds {
	const struct skep_problem *problem;
	uint32_t workers, stages;
	uint32_t *least, *most; /* [stages] */
	uint32_t spares_most;
	bool rigid;      /* sizes cannot change: only swaps are allowed */
	uint32_t *order; /* [workers] by memory, the smallest first */
	uint32_t *steep; /* [stages] by need, the largest first */
};

void skep_bounds_init(struct bounds *b, struct skep_search_carve *c, const struct skep_problem *problem);
/* May this worker serve this stage, SKEP_SPARE included, whatever others do? */
bool skep_bounds_may(const struct bounds *b, uint32_t worker, uint32_t stage);
/* The nearest allowed allocation, more or less: who may not be where it is, or is one too many there, goes elsewhere. */
void skep_bounds_repair(const struct bounds *b, uint32_t *stage_of, uint32_t *count);

/* ---- the hunt ------------------------------------------------------------------------------------------------------- */

struct hunt {
	const struct skep_search *search;
	const struct skep_objective *cost;
	struct bounds bounds;
	uint32_t workers, stages, kinds;
	uint32_t *kind; /* [workers] */
	uint64_t random;
	uint64_t evaluations, allowance;
	uint64_t *steps;                    /* of a hunt on a sketch: where the one it serves counts; else NULL */
	uint64_t sketched;                  /* what those came to */
	bool alike;                         /* nothing tells the stages apart, neither cost nor problem */
	bool inside;                        /* two workers of one stage may change places too: the cost can tell */
	double best, now;                   /* now: of the current one */
	uint32_t *best_of, *now_of, *count; /* [workers], [workers], [stages] */
	uint32_t spares;
	enum skep_method method, by; /* who hunts now, and who found the best */
};

void skep_search_state_init(struct hunt *h, struct skep_search_carve *c, const struct skep_search *search);
/* A second hunt, on the sketch, that shares bounds and kinds with the first. */
void skep_search_state_init_sketch(struct hunt *h, struct skep_search_carve *c, struct hunt *other);

uint64_t skep_search_state_left(const struct hunt *h); /* evaluations, by allowance and budget */
bool skep_search_state_over(const struct hunt *h);     /* nothing is left of allowance, budget or time */

double skep_search_state_begin(struct hunt *h, const uint32_t *stage_of); /* makes it current */
bool skep_search_state_draw(
	struct hunt *h, struct skep_change *ret); /* an allowed one; false: there seems to be none */
double skep_search_state_ask(struct hunt *h, struct skep_change change); /* what it would cost */
void skep_search_state_take(
	struct hunt *h, struct skep_change change, double cost); /* the change that was asked about last */

/* Repeats the best change of each worker in turn until there is none, or nothing is left. True: a local optimum. */
bool skep_search_state_descend(struct hunt *h);
/* Metropolis walk (anneal.c) for so many evaluations; the temperature begins at `first` times the mean change and falls by
 * exp(-fall). */
void skep_search_state_walk(struct hunt *h, uint64_t evaluations, double first, double fall);

void skep_search_state_random(struct hunt *h, uint32_t *ret_stage_of);
void skep_search_state_contiguous(struct hunt *h, uint32_t *ret_stage_of);
/* Allocations of few kinds alone, where machines may be left out (orders.c); at most three more than so many evaluations. */
void skep_search_few_kinds(struct hunt *h, struct skep_search_carve *c, uint64_t evaluations);

/* ---- the methods: each takes what it needs from `c`; run with c->mem NULL they only measure ------------------------- */

void skep_search_random(struct hunt *h, struct skep_search_carve *c);
void skep_search_contiguous(struct hunt *h, struct skep_search_carve *c);
void skep_search_strided(struct hunt *h, struct skep_search_carve *c);
void skep_search_greedy(struct hunt *h, struct skep_search_carve *c);
void skep_search_exact(struct hunt *h, struct skep_search_carve *c, struct skep_found *ret);
void skep_search_genetic(struct hunt *h, struct skep_search_carve *c);
void skep_search_anneal(struct hunt *h, struct skep_search_carve *c);
void skep_search_relaxed(struct hunt *h, struct skep_search_carve *c);
void skep_search_portfolio(struct hunt *h, struct skep_search_carve *c, struct skep_found *ret);

/* Allocations that there are, about, kinds and likeness of stages left out of account. */
double skep_search_exact_count(const struct hunt *h);
