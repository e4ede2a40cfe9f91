/* SPDX-License-Identifier: Apache-2.0
 *
 * hunt.c - the current allocation, its changes, and what they cost (hunt.h).
 */
#include "planning/search/hunt.h"

#include <assert.h>
#include <string.h>

void *skep_search_carve(struct skep_search_carve *c, size_t count, size_t size)
{
	void *at = c->mem ? c->mem + c->used : NULL;
	c->used += (count * size + 63) & ~(size_t)63;
	return at;
}

/* ---- beginning ------------------------------------------------------------------------------------------------------ */

static bool stages_alike(const struct bounds *b)
{
	const struct skep_problem *p = b->problem;
	for (uint32_t s = 1; s < b->stages; s++)
		if (b->least[s] != b->least[0] || b->most[s] != b->most[0] ||
			(p->need_bytes && p->need_bytes[s] != p->need_bytes[0]))
			return false;
	for (uint32_t i = 0; p->fixed && i < b->workers; i++)
		if (p->fixed[i] != SKEP_ANY_STAGE)
			return false;
	return true;
}

static void init_state(struct hunt *h, struct skep_search_carve *c)
{
	h->best = SKEP_NEVER;
	h->now = SKEP_NEVER;
	h->best_of = skep_search_carve(c, h->workers, sizeof *h->best_of);
	h->now_of = skep_search_carve(c, h->workers, sizeof *h->now_of);
	h->count = skep_search_carve(c, h->stages, sizeof *h->count);
}

void skep_search_state_init(struct hunt *h, struct skep_search_carve *c, const struct skep_search *search)
{
	const struct skep_problem *p = search->problem;
	*h = (struct hunt){.search = search, .cost = search->cost, .workers = p->workers, .stages = p->stages};
	h->random = skep_mix(search->seed ^ UINT64_C(0x616c6c6f63617465));
	h->allowance = UINT64_MAX;
	h->method = h->by = search->method;
	skep_bounds_init(&h->bounds, c, p);
	h->kind = skep_search_carve(c, h->workers, sizeof *h->kind);
	init_state(h, c);
	for (uint32_t i = 0; h->kind && i < h->workers; i++) {
		h->kind[i] = p->kind ? p->kind[i] : i;
		h->kinds = h->kind[i] >= h->kinds ? h->kind[i] + 1 : h->kinds;
	}
	assert(h->kinds <= h->workers);
	h->alike = h->kind && h->cost->alike && stages_alike(&h->bounds);
}

void skep_search_state_init_sketch(struct hunt *h, struct skep_search_carve *c, struct hunt *other)
{
	*h = *other;
	h->cost = other->cost->sketch;
	h->evaluations = 0;
	h->steps = &other->sketched;
	h->inside = true;
	init_state(h, c);
}

bool skep_search_state_over(const struct hunt *h)
{
	const struct skep_budget *budget = &h->search->budget;
	if (h->evaluations >= h->allowance)
		return true;
	if (!h->steps && h->evaluations >= budget->evaluations)
		return true;
	return budget->over && *budget->over;
}

uint64_t skep_search_state_left(const struct hunt *h)
{
	uint64_t most = h->search->budget.evaluations < h->allowance ? h->search->budget.evaluations : h->allowance;
	return h->evaluations < most ? most - h->evaluations : 0;
}

/* ---- the best so far ------------------------------------------------------------------------------------------------ */

static void note_trail(const struct hunt *h)
{
	struct skep_trail *trail = h->search->trail;
	if (!trail || h->steps || trail->room == 0)
		return;
	if (trail->points < trail->room)
		trail->points++;
	trail->point[trail->points - 1] = (struct skep_trail_point){h->evaluations, h->sketched, h->best};
}

static bool better(struct hunt *h, double cost)
{
	assert(cost == cost);
	h->evaluations++;
	if (h->steps)
		++*h->steps;
	if (!(cost < h->best) && (h->evaluations > 1 || h->steps))
		return false;
	h->best = cost;
	h->by = h->method;
	note_trail(h);
	return true;
}

static void apply(uint32_t *stage_of, struct skep_change change)
{
	uint32_t from = stage_of[change.worker];
	if (change.other == SKEP_NO_WORKER) {
		stage_of[change.worker] = change.to;
	} else {
		stage_of[change.worker] = stage_of[change.other];
		stage_of[change.other] = from;
	}
}

/* ---- the current one ------------------------------------------------------------------------------------------------ */

double skep_search_state_begin(struct hunt *h, const uint32_t *stage_of)
{
	if (stage_of != h->now_of)
		memcpy(h->now_of, stage_of, h->workers * sizeof *stage_of);
	memset(h->count, 0, h->stages * sizeof *h->count);
	h->spares = 0;
	for (uint32_t i = 0; i < h->workers; i++)
		if (h->now_of[i] == SKEP_SPARE)
			h->spares++;
		else
			h->count[h->now_of[i]]++;
	h->now = h->cost->whole(h->cost->self, h->now_of);
	if (better(h, h->now))
		memcpy(h->best_of, h->now_of, h->workers * sizeof *h->best_of);
	return h->now;
}

static bool has_room(const struct hunt *h, uint32_t stage)
{
	return stage == SKEP_SPARE ? h->spares < h->bounds.spares_most : h->count[stage] < h->bounds.most[stage];
}

static bool can_give(const struct hunt *h, uint32_t stage)
{
	return stage == SKEP_SPARE || h->count[stage] > h->bounds.least[stage];
}

/* Is it a change, and an allowed one? */
static bool allows(const struct hunt *h, struct skep_change change)
{
	const struct bounds *b = &h->bounds;
	uint32_t from = h->now_of[change.worker];
	if (change.other == SKEP_NO_WORKER)
		return change.to != from && can_give(h, from) && has_room(h, change.to) &&
		       skep_bounds_may(b, change.worker, change.to);
	uint32_t to = h->now_of[change.other];
	if (change.other == change.worker || h->kind[change.worker] == h->kind[change.other])
		return false;
	if (from == to)
		return h->inside && from != SKEP_SPARE;
	return skep_bounds_may(b, change.worker, to) && skep_bounds_may(b, change.other, from);
}

bool skep_search_state_draw(struct hunt *h, struct skep_change *ret)
{
	for (int tries = 0; tries < 256; tries++) {
		struct skep_change change = {skep_random_below(&h->random, h->workers), SKEP_NO_WORKER, SKEP_SPARE};
		if (h->bounds.rigid || skep_random_below(&h->random, 2) == 0) {
			change.other = skep_random_below(&h->random, h->workers);
		} else {
			uint32_t to = skep_random_below(&h->random, h->stages + (h->bounds.spares_most > 0));
			change.to = to == h->stages ? SKEP_SPARE : to;
		}
		if (!allows(h, change))
			continue;
		*ret = change;
		return true;
	}
	return false;
}

double skep_search_state_ask(struct hunt *h, struct skep_change change)
{
	double cost;
	if (h->cost->change) {
		cost = h->cost->change(h->cost->self, &change);
	} else {
		uint32_t from = h->now_of[change.worker];
		apply(h->now_of, change);
		cost = h->cost->whole(h->cost->self, h->now_of);
		apply(h->now_of, (struct skep_change){change.worker, change.other, from});
	}
	if (better(h, cost)) {
		memcpy(h->best_of, h->now_of, h->workers * sizeof *h->best_of);
		apply(h->best_of, change);
	}
	return cost;
}

static void recount(struct hunt *h, uint32_t stage, uint32_t by)
{
	if (stage == SKEP_SPARE)
		h->spares += by;
	else
		h->count[stage] += by;
}

void skep_search_state_take(struct hunt *h, struct skep_change change, double cost)
{
	if (change.other == SKEP_NO_WORKER) {
		recount(h, h->now_of[change.worker], UINT32_MAX);
		recount(h, change.to, 1);
	}
	apply(h->now_of, change);
	if (h->cost->keep)
		h->cost->keep(h->cost->self);
	h->now = cost;
}

/* ---- descent -------------------------------------------------------------------------------------------------------- */

/* Takes the best change of this worker that is an improvement; of a stage's workers of one kind only the first is asked. */
static bool improve(struct hunt *h, uint32_t worker)
{
	struct skep_change best_change = {worker, SKEP_NO_WORKER, SKEP_SPARE}, last = best_change;
	double least = h->now;
	for (uint32_t i = 0; i < h->workers + h->stages + 1 && !skep_search_state_over(h); i++) {
		struct skep_change change = {worker, SKEP_NO_WORKER, SKEP_SPARE};
		if (i < h->workers)
			change.other = i;
		else
			change.to = i - h->workers < h->stages ? i - h->workers : SKEP_SPARE;
		if (!allows(h, change))
			continue;
		bool same = false; /* the same as a worker just before; kinds tend to be neighbours */
		for (uint32_t j = i; !h->inside && i < h->workers && j > 0 && i - j < 8 && !same; j--)
			same = h->kind[j - 1] == h->kind[i] && h->now_of[j - 1] == h->now_of[i] && j - 1 != worker;
		if (same)
			continue;
		double cost = skep_search_state_ask(h, change);
		last = change;
		if (cost < least) {
			least = cost;
			best_change = change;
		}
	}
	if (!(least < h->now))
		return false;
	if (memcmp(&last, &best_change, sizeof last) != 0) { /* asked again, so that keep() means this one */
		if (skep_search_state_over(h))
			return false; /* it is remembered as the best anyway */
		least = skep_search_state_ask(h, best_change);
	}
	skep_search_state_take(h, best_change, least);
	return true;
}

bool skep_search_state_descend(struct hunt *h)
{
	uint32_t idle = 0;
	for (uint32_t i = 0; idle < h->workers; i = (i + 1) % h->workers) {
		if (skep_search_state_over(h))
			return false;
		idle = improve(h, i) ? 0 : idle + 1;
	}
	return true;
}
