/* SPDX-License-Identifier: Apache-2.0
 *
 * portfolio.c - the best of the other searches within one budget (Huberman, Lukose, Hogg: An Economics Approach to Hard
 * Computational Problems. Science 1997), each where it is good.
 *
 *   1. If there are few allocations: all of them. The result is proved.
 *   2. Constructions, an evaluation each: what was given to begin from; contiguous, strided and what lies between (blocks
 *      of stages, strided in each), both in the workers' order and in one in which each next worker is the nearest to those
 *      before (Prim 1957), so that clusters of a network stay together.
 *   3. Where the cost has a sketch: walks on it from the best of these, from random ones and from the best so far, an
 *      evaluation of the cost for where each ends.
 *   4. Else a part each for relaxation and the genetic search.
 *   5. With what is left: annealing of the cost itself from the best, then descent.
 *
 * All parts are counted in evaluations and steps, none in time, so the result depends on the seed alone unless the cost ends it.
 */
#include <string.h>

#include "planning/search/hunt.h"

#define FEW 20000.0        /* allocations */
#define LONG_WALKS 8u      /* on the sketch: from the best constructions and random ones in turn ... */
#define LONG_STEPS 1500u   /* a worker */
#define SHORT_WALKS 100u   /* ... and from the best so far */
#define SHORT_PART 10u     /* each so much shorter */
#define LONG_WORK 8000000u /* ... but no more than so many, divided by the workers of a stage: a step costs as many */
#define FALL 5.5           /* the temperature ends at exp(-5.5) of where it began */
#define ORDERS 2u
#define SEEDS 64u /* constructions */

struct methods {
	struct hunt *h, sketch;
	uint32_t *stage_of;
	uint32_t *order; /* [workers] each next to those before */
	double *nearest; /* [workers] scratch of that */
	uint32_t *seed;  /* [SEEDS * workers] constructions ... */
	double cost[SEEDS];
	uint32_t seeds;
};

/* ---- constructions -------------------------------------------------------------------------------------------------- */

static void order_by_nearness(struct methods *t)
{
	uint32_t n = t->h->workers, last = 0;
	const struct skep_search *s = t->h->search;
	const double *matrix = s->together_s ? s->together_s : s->along_s;
	for (uint32_t i = 0; i < n; i++) {
		t->order[i] = i;
		t->nearest[i] = SKEP_NEVER;
	}
	for (uint32_t i = 1; i < n && matrix; i++) {
		uint32_t best = i;
		for (uint32_t j = i; j < n; j++) {
			uint32_t worker = t->order[j];
			double there = matrix[(size_t)t->order[last] * n + worker];
			t->nearest[worker] = there < t->nearest[worker] ? there : t->nearest[worker];
			if (t->nearest[worker] < t->nearest[t->order[best]] ||
				(t->nearest[worker] <= t->nearest[t->order[best]] && worker < t->order[best]))
				best = j;
		}
		uint32_t swapped = t->order[i];
		t->order[i] = t->order[best];
		t->order[best] = swapped;
		last = i;
	}
}

static void offer(struct methods *t, const uint32_t *stage_of)
{
	struct hunt *h = t->h;
	if (h->evaluations > 0 && skep_search_state_over(h))
		return;
	double cost = skep_search_state_begin(h, stage_of);
	uint32_t at = t->seeds < SEEDS ? t->seeds++ : SEEDS - 1;
	memcpy(t->seed + (size_t)at * h->workers, stage_of, h->workers * sizeof *stage_of);
	t->cost[at] = cost;
}

/* `base` gives the place of each worker: the stages in blocks of `block`, contiguous blocks, strided within. */
static void deal(struct methods *t, const uint32_t *order, uint32_t block)
{
	struct hunt *h = t->h;
	uint32_t *size = h->count, first = 0, at = 0;
	skep_search_state_contiguous(h, t->stage_of); /* its sizes are the even ones; h->count has them */
	for (uint32_t i = 0; i < h->workers; i++)
		t->stage_of[i] = SKEP_UNDECIDED;
	for (; first < h->stages; first += block) {
		uint32_t end = first + block < h->stages ? first + block : h->stages, left = 1;
		while (left > 0 && at < h->workers) {
			left = 0;
			for (uint32_t s = first; s < end && at < h->workers; s++) {
				if (size[s] == 0)
					continue;
				size[s]--;
				left++;
				t->stage_of[order ? order[at] : at] = s;
				at++;
			}
		}
	}
	for (; at < h->workers; at++)
		t->stage_of[order ? order[at] : at] = SKEP_SPARE;
	skep_bounds_repair(&h->bounds, t->stage_of, h->count);
	offer(t, t->stage_of);
}

static void construct(struct methods *t)
{
	struct hunt *h = t->h;
	h->method = SKEP_METHOD_CONTIGUOUS;
	if (h->search->start)
		offer(t, h->search->start);
	order_by_nearness(t);
	for (uint32_t o = 0; o < ORDERS; o++)
		for (uint32_t block = 1; block <= h->stages; block++) {
			h->method = block == 1 ? SKEP_METHOD_CONTIGUOUS : SKEP_METHOD_STRIDED;
			if (h->stages % block == 0 && t->seeds < SEEDS)
				deal(t, o == 0 ? NULL : t->order, block);
		}
}

/* ---- walks on the sketch -------------------------------------------------------------------------------------------- */

/* The n-th best construction; SKEP_NO_WORKER: there are fewer. */
static uint32_t ranked(const struct methods *t, uint32_t n)
{
	for (uint32_t i = 0; i < t->seeds; i++) {
		uint32_t better = 0;
		for (uint32_t j = 0; j < t->seeds; j++)
			better += t->cost[j] < t->cost[i] || (t->cost[j] <= t->cost[i] && j < i);
		if (better == n)
			return i;
	}
	return SKEP_NO_WORKER;
}

static void walk_once(struct methods *t, const uint32_t *from, double heat, uint64_t steps)
{
	struct hunt *s = &t->sketch, *h = t->h;
	s->random = skep_random_next(&h->random);
	s->evaluations = 0;
	s->best = SKEP_NEVER;
	skep_search_state_begin(s, from);
	skep_search_state_walk(s, steps, heat, FALL);
	skep_search_state_begin(h, s->best_of);
}

static uint64_t long_steps(const struct hunt *h)
{
	uint64_t steps = LONG_STEPS * (uint64_t)h->workers, most = LONG_WORK * (uint64_t)h->stages / h->workers;
	return steps < most ? steps : most;
}

static void walk(struct methods *t)
{
	static const double heat[] = {0.2, 0.1, 0.05, 0.03};
	struct hunt *h = t->h;
	h->method = SKEP_METHOD_ANNEAL;
	for (uint32_t i = 0; i < LONG_WALKS && !skep_search_state_over(h); i++) {
		uint32_t seed = i % 2 == 0 ? ranked(t, i / 2) : SKEP_NO_WORKER;
		if (seed == SKEP_NO_WORKER)
			skep_search_state_random(h, t->stage_of);
		else
			memcpy(t->stage_of, t->seed + (size_t)seed * h->workers, h->workers * sizeof *t->stage_of);
		walk_once(t, t->stage_of, seed == SKEP_NO_WORKER ? 1.0 : 0.3, long_steps(h));
	}
	for (uint32_t i = 0; i < SHORT_WALKS && !skep_search_state_over(h); i++) {
		memcpy(t->stage_of, h->best_of, h->workers * sizeof *t->stage_of);
		walk_once(t, t->stage_of, heat[i % 4], long_steps(h) / SHORT_PART);
	}
}

/* ---- the whole ------------------------------------------------------------------------------------------------------ */

static uint64_t left(const struct hunt *h)
{
	uint64_t all = h->search->budget.evaluations;
	return all > h->evaluations ? all - h->evaluations : 0;
}

static void with_part(struct hunt *h, uint64_t evaluations, enum skep_method method, struct skep_search_carve *c,
	void (*search)(struct hunt *, struct skep_search_carve *))
{
	h->method = method;
	h->allowance = h->evaluations + evaluations;
	if (!skep_search_state_over(h))
		search(h, c);
	h->allowance = UINT64_MAX;
}

/* What a budget without an end of its own is taken for. */
static uint64_t unit(const struct hunt *h)
{
	uint64_t most = 1000000;
	return left(h) < most ? left(h) : most;
}

/* From the best, ever cooler. A tenth is for the descent at the end. */
static void finish(struct hunt *h)
{
	static const double heat[] = {0.1, 0.05, 0.02, 0.01, 0.005};
	const uint32_t walks = sizeof heat / sizeof *heat;
	uint64_t evaluations = unit(h);
	h->method = SKEP_METHOD_ANNEAL;
	for (uint32_t i = 0; i < walks && !skep_search_state_over(h); i++) {
		skep_search_state_begin(h, h->best_of);
		skep_search_state_walk(h, evaluations * 9 / 10 / walks, heat[i], FALL);
	}
	if (skep_search_state_over(h))
		return;
	h->method = SKEP_METHOD_GREEDY;
	skep_search_state_begin(h, h->best_of);
	skep_search_state_descend(h);
}

void skep_search_portfolio(struct hunt *h, struct skep_search_carve *c, struct skep_found *ret)
{
	struct methods t = {.h = h};
	t.stage_of = skep_search_carve(c, h->workers, sizeof *t.stage_of);
	t.order = skep_search_carve(c, h->workers, sizeof *t.order);
	t.nearest = skep_search_carve(c, h->workers, sizeof *t.nearest);
	t.seed = skep_search_carve(c, (size_t)SEEDS * h->workers, sizeof *t.seed);
	if (h->cost->sketch)
		skep_search_state_init_sketch(&t.sketch, c, h);
	if (!c->mem) { /* the largest of what follows; each could be the only one */
		struct skep_search_carve part[4] = {*c, *c, *c, *c};
		skep_search_exact(h, &part[0], ret);
		skep_search_genetic(h, &part[1]);
		skep_search_relaxed(h, &part[2]);
		skep_search_anneal(h, &part[3]);
		for (uint32_t i = 0; i < 4; i++)
			c->used = part[i].used > c->used ? part[i].used : c->used;
		return;
	}
	size_t used = c->used;
	if (skep_search_exact_count(h) <= FEW && skep_search_exact_count(h) <= (double)h->search->budget.evaluations) {
		h->method = SKEP_METHOD_EXACT;
		skep_search_exact(h, c, ret);
		if (ret->optimal)
			return;
	}
	construct(&t);
	if (h->cost->sketch) {
		walk(&t);
	} else {
		c->used = used;
		with_part(h, 2 * unit(h) / 5, SKEP_METHOD_RELAXED, c, skep_search_relaxed);
		c->used = used;
		if (h->workers <= SKEP_SEARCH_MANY)
			with_part(h, unit(h) / 8, SKEP_METHOD_GENETIC, c, skep_search_genetic);
		c->used = used;
		with_part(h, unit(h) / 4, SKEP_METHOD_ANNEAL, c, skep_search_anneal);
	}
	finish(h);
}
