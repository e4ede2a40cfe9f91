/* SPDX-License-Identifier: Apache-2.0
 *
 * genetic.c - a genetic search over partitions of given sizes, whose children are improved by cycles of moves.
 *
 * Yuan, He, Davis et al.: Decentralized Training of Foundation Models in Heterogeneous Environments. NeurIPS 2022, section 4,
 * which takes its frame from Moraglio, Kim, Yoon, Moon (geometric crossover for partitions, 2007). A child is one parent with
 * some workers where the other parent has them; sizes are repaired; then workers move from stage to stage in cycles, so that
 * sizes stay, and the part of the cycle with the largest gain is kept (Kernighan, Lin 1970, with cycles for swaps). It takes
 * the place of the worst in the population if it is better and not there yet. When that leads nowhere for long, the best
 * descends by single changes of the cost itself, and all are drawn anew, every second time but for the best.
 *
 * A gain is counted in `together_s`, what two workers cost each other in one stage, which needs no evaluation. Whether
 * neighbours should share a stage or stand along the chain depends on what dominates, so each child draws a weight from -1 to 1
 * for it: below 0 they are driven apart. Where stages are alike their numbers mean nothing, and the other parent's are matched
 * to the first one's by overlap before they cross.
 */
#include <string.h>

#include "planning/search/hunt.h"

#define POPULATION 24u
#define POINTS 5u
#define CYCLE_MOST 16u
#define VAIN 120u /* children in a row, and 8 more for each worker */
#define FLOODS_IN_VAIN 60u

struct breed {
	struct hunt *h;
	uint32_t *member; /* [POPULATION * workers] */
	double cost[POPULATION];
	uint32_t *child, *count, *overlap; /* [workers], [stages], [stages * stages] */
	uint32_t *renamed;                 /* [stages] */
	double *near;                      /* [workers * stages] sum of together_s to who is there */
	bool *moved;                       /* [workers] in this cycle */
};

struct hop {
	uint32_t worker, from, to;
};

static uint32_t *member(const struct breed *b, uint32_t i)
{
	return b->member + (size_t)i * b->h->workers;
}

static uint32_t tournament(struct breed *b)
{
	uint32_t i = skep_random_below(&b->h->random, POPULATION), j = skep_random_below(&b->h->random, POPULATION);
	return b->cost[j] < b->cost[i] ? j : i;
}

/* ---- crossing ------------------------------------------------------------------------------------------------------- */

/* renamed[s]: the stage of `a` that has most in common with stage s of `b`, each taken once. */
static void match_stages(struct breed *b, const uint32_t *a, const uint32_t *other)
{
	uint32_t stages = b->h->stages;
	memset(b->overlap, 0, (size_t)stages * stages * sizeof *b->overlap);
	for (uint32_t i = 0; i < b->h->workers; i++)
		if (a[i] < stages && other[i] < stages)
			b->overlap[(size_t)other[i] * stages + a[i]]++;
	for (uint32_t s = 0; s < stages; s++) {
		b->renamed[s] = s;
		b->count[s] = 0; /* taken */
	}
	for (uint32_t s = 0; s < stages && b->h->alike; s++) {
		uint32_t best = SKEP_NO_WORKER;
		for (uint32_t t = 0; t < stages; t++) {
			uint32_t common = b->overlap[(size_t)s * stages + t];
			if (b->count[t] == 0 &&
				(best == SKEP_NO_WORKER || common > b->overlap[(size_t)s * stages + best]))
				best = t;
		}
		b->renamed[s] = best;
		b->count[best] = 1;
	}
}

static void cross(struct breed *b, const uint32_t *a, const uint32_t *other)
{
	uint32_t workers = b->h->workers, points = workers / 8 > POINTS ? workers / 8 : POINTS;
	match_stages(b, a, other);
	memcpy(b->child, a, workers * sizeof *a);
	for (uint32_t p = 0; p < points; p++) {
		uint32_t i = skep_random_below(&b->h->random, workers);
		b->child[i] = other[i] < b->h->stages ? b->renamed[other[i]] : other[i];
	}
	skep_bounds_repair(&b->h->bounds, b->child, b->count);
}

/* ---- cycles of moves ------------------------------------------------------------------------------------------------ */

static double pair_s(const struct breed *b, uint32_t i, uint32_t j)
{
	const double *together = b->h->search->together_s;
	uint32_t n = b->h->workers;
	double s = together[(size_t)i * n + j] + together[(size_t)j * n + i];
	return s < 1e12 ? s : 1e12;
}

static void measure(struct breed *b)
{
	uint32_t workers = b->h->workers, stages = b->h->stages;
	memset(b->near, 0, (size_t)workers * stages * sizeof *b->near);
	for (uint32_t i = 0; i < workers; i++)
		for (uint32_t j = 0; j < workers; j++)
			if (j != i && b->child[j] < stages)
				b->near[(size_t)i * stages + b->child[j]] += pair_s(b, i, j);
}

static void move(struct breed *b, uint32_t worker, uint32_t to)
{
	uint32_t from = b->child[worker], stages = b->h->stages;
	for (uint32_t i = 0; i < b->h->workers; i++) {
		double s = pair_s(b, i, worker);
		if (i == worker)
			continue;
		b->near[(size_t)i * stages + from] -= s;
		b->near[(size_t)i * stages + to] += s;
	}
	b->child[worker] = to;
}

/* The best worker of this stage to go to that one, or, if it is SKEP_SPARE, to any other. */
static double best_hop(const struct breed *b, uint32_t from, uint32_t to, double sense, struct hop *ret)
{
	double best = -SKEP_NEVER;
	uint32_t stages = b->h->stages;
	for (uint32_t i = 0; i < b->h->workers; i++) {
		if (b->child[i] != from || b->moved[i])
			continue;
		for (uint32_t s = to == SKEP_SPARE ? 0 : to; s < stages && (to == SKEP_SPARE || s == to); s++) {
			const double *near = b->near + (size_t)i * stages;
			double gain = sense * (near[from] - near[s]);
			if (s == from || gain <= best || !skep_bounds_may(&b->h->bounds, i, s))
				continue;
			best = gain;
			*ret = (struct hop){i, from, s};
		}
	}
	return best;
}

/* One cycle from a random stage: on and on, and at each step what it would gain to close it. The best closing is done. */
static void cycle(struct breed *b, double sense)
{
	struct hop hop[CYCLE_MOST], closing[CYCLE_MOST];
	uint32_t hops = 0, best_hops = 0, home = skep_random_below(&b->h->random, b->h->stages), here = home;
	double gain = 0, best_gain = 0;
	memset(b->moved, 0, b->h->workers * sizeof *b->moved);
	while (hops + 1 < CYCLE_MOST) {
		double by = best_hop(b, here, SKEP_SPARE, sense, &hop[hops]);
		if (!(by > -SKEP_NEVER) || hop[hops].to == home)
			break;
		gain += by;
		b->moved[hop[hops].worker] = true;
		move(b, hop[hops].worker, hop[hops].to);
		here = hop[hops++].to;
		double closed = gain + best_hop(b, here, home, sense, &closing[hops - 1]);
		if (closed > best_gain * (1 + 1e-9) + 1e-12) {
			best_gain = closed;
			best_hops = hops;
		}
	}
	for (; hops > best_hops; hops--)
		move(b, hop[hops - 1].worker, hop[hops - 1].from);
	if (best_hops > 0)
		move(b, closing[best_hops - 1].worker, home);
}

static void improve(struct breed *b)
{
	double sense = 2 * skep_random_unit(&b->h->random) - 1;
	if (!b->h->search->together_s || b->h->stages < 2)
		return;
	measure(b);
	for (uint32_t i = 0; i < b->h->stages; i++)
		cycle(b, sense);
}

/* ---- generations ---------------------------------------------------------------------------------------------------- */

/* The same but for the names of workers of one kind: both then have the same numbers of each kind in each stage. */
static bool same(const struct breed *b, const uint32_t *a, const uint32_t *other)
{
	const struct hunt *h = b->h;
	for (uint32_t i = 0; i < h->workers; i++)
		if (a[i] != other[i] && h->kinds == h->workers)
			return false;
	for (uint32_t i = 0; i < h->workers && h->kinds < h->workers; i++) {
		uint32_t in_a = 0, in_other = 0;
		for (uint32_t j = 0; j < h->workers; j++)
			if (h->kind[j] == h->kind[i]) {
				in_a += a[j] == a[i];
				in_other += other[j] == a[i];
			}
		if (in_a != in_other)
			return false;
	}
	return true;
}

/* Where stages are alike they are numbered as they appear, so that one partition has one name. */
static void rename_stages(struct breed *b, uint32_t *stage_of)
{
	uint32_t next = 0;
	if (!b->h->alike)
		return;
	for (uint32_t s = 0; s < b->h->stages; s++)
		b->renamed[s] = SKEP_NO_WORKER;
	for (uint32_t i = 0; i < b->h->workers; i++) {
		if (stage_of[i] >= b->h->stages)
			continue;
		if (b->renamed[stage_of[i]] == SKEP_NO_WORKER)
			b->renamed[stage_of[i]] = next++;
		stage_of[i] = b->renamed[stage_of[i]];
	}
}

static bool known(struct breed *b)
{
	rename_stages(b, b->child);
	for (uint32_t i = 0; i < POPULATION; i++)
		if (same(b, b->child, member(b, i)))
			return true;
	return false;
}

static void mutate(struct breed *b)
{
	uint32_t workers = b->h->workers;
	uint32_t i = skep_random_below(&b->h->random, workers), j = skep_random_below(&b->h->random, workers);
	uint32_t at = b->child[i];
	if (b->h->bounds.rigid || skep_random_below(&b->h->random, 2) == 0) {
		b->child[i] = b->child[j];
		b->child[j] = at;
	} else {
		b->child[i] = skep_random_below(&b->h->random, b->h->stages);
	}
	skep_bounds_repair(&b->h->bounds, b->child, b->count);
}

static void breed_one(struct breed *b)
{
	struct hunt *h = b->h;
	uint32_t first = tournament(b), second = tournament(b), worst = 0;
	cross(b, member(b, first), member(b, second));
	if (skep_random_below(&h->random, 2) == 0) /* or chance would have no say */
		improve(b);
	for (uint32_t i = 0; i < 8 && (i == 0 ? skep_random_below(&h->random, 2) == 0 : known(b)); i++)
		mutate(b);
	double cost = skep_search_state_begin(h, b->child);
	for (uint32_t i = 1; i < POPULATION; i++)
		worst = b->cost[i] > b->cost[worst] ? i : worst;
	if (!(cost < b->cost[worst]) || known(b))
		return;
	b->cost[worst] = cost;
	memcpy(member(b, worst), b->child, h->workers * sizeof *b->child);
}

/* All are drawn anew but the first. */
static void begin(struct breed *b, const uint32_t *first)
{
	struct hunt *h = b->h;
	for (uint32_t i = 0; i < POPULATION && (h->evaluations == 0 || !skep_search_state_over(h)); i++) {
		if (i == 0 && first)
			memcpy(member(b, i), first, h->workers * sizeof *first);
		else
			skep_search_state_random(h, member(b, i));
		rename_stages(b, member(b, i));
		b->cost[i] = skep_search_state_begin(h, member(b, i));
	}
}

static void descend_from_best(struct breed *b)
{
	uint32_t best = 0;
	for (uint32_t i = 1; i < POPULATION; i++)
		best = b->cost[i] < b->cost[best] ? i : best;
	if (skep_search_state_over(b->h))
		return;
	skep_search_state_begin(b->h, member(b, best));
	skep_search_state_descend(b->h);
}

void skep_search_genetic(struct hunt *h, struct skep_search_carve *c)
{
	struct breed b = {.h = h};
	b.member = skep_search_carve(c, (size_t)POPULATION * h->workers, sizeof *b.member);
	b.child = skep_search_carve(c, h->workers, sizeof *b.child);
	b.count = skep_search_carve(c, h->stages, sizeof *b.count);
	b.overlap = skep_search_carve(c, (size_t)h->stages * h->stages, sizeof *b.overlap);
	b.renamed = skep_search_carve(c, h->stages, sizeof *b.renamed);
	b.near = skep_search_carve(c, (size_t)h->workers * h->stages, sizeof *b.near);
	b.moved = skep_search_carve(c, h->workers, sizeof *b.moved);
	if (!c->mem)
		return;
	begin(&b, h->search->start);
	for (uint32_t floods = 0, vain = 0; floods < FLOODS_IN_VAIN && !skep_search_state_over(h); vain++) {
		double before = h->best;
		breed_one(&b);
		if (h->best < before)
			floods = vain = 0;
		if (vain < VAIN + 8 * h->workers)
			continue;
		descend_from_best(&b);
		if (h->best < before)
			floods = 0;
		begin(&b, floods % 2 == 0 ? NULL : h->best_of);
		vain = 0;
		floods++;
	}
}
