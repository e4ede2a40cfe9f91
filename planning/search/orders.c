/* SPDX-License-Identifier: Apache-2.0
 *
 * orders.c - allocations that follow from the workers' order alone, and those that follow from chance.
 *
 *   contiguous  the first workers serve the first stage, and so on
 *   strided     workers are dealt to the stages in turn
 *   random      what a swarm begins with (Ryabinin, Dettmers, Diskin, Borzunov: SWARM Parallelism. ICML 2023), without
 *               a look at the network. A shuffle; where sizes may differ each stage has its least and the rest goes
 *               where there is room, all with equal chances
 *
 *   few kinds   where machines may be left out: those of few kinds alone, which often means of one place. A walk that leaves
 *               out one worker after the other does not come there, since a step takes no less time until the last one behind
 *               a thin line is gone. All pairs of kinds, then one kind more as long as that gains
 *
 * Who may not be where that puts it is moved as little as skep_bounds_repair() can.
 */
#include <string.h>

#include "planning/search/hunt.h"

/* How large the stages are without preferences: as even as bounds allow. */
static void even_sizes(const struct hunt *h, uint32_t *ret_size)
{
	uint32_t left = h->workers;
	for (uint32_t s = 0; s < h->stages; s++) {
		ret_size[s] = h->bounds.least[s];
		left -= ret_size[s];
	}
	while (left > 0) {
		uint32_t smallest = SKEP_SPARE;
		for (uint32_t s = 0; s < h->stages; s++)
			if (ret_size[s] < h->bounds.most[s] &&
				(smallest == SKEP_SPARE || ret_size[s] < ret_size[smallest]))
				smallest = s;
		if (smallest == SKEP_SPARE)
			return;
		ret_size[smallest]++;
		left--;
	}
}

void skep_search_state_contiguous(struct hunt *h, uint32_t *ret_stage_of)
{
	uint32_t stage = 0, *size = h->count;
	even_sizes(h, size);
	for (uint32_t i = 0; i < h->workers; i++) {
		while (stage < h->stages && size[stage] == 0)
			stage++;
		ret_stage_of[i] = stage < h->stages ? stage : SKEP_SPARE;
		if (stage < h->stages)
			size[stage]--;
	}
	skep_bounds_repair(&h->bounds, ret_stage_of, h->count);
}

static void strided_order(struct hunt *h, uint32_t *ret_stage_of)
{
	uint32_t stage = 0, *size = h->count;
	even_sizes(h, size);
	for (uint32_t i = 0; i < h->workers; i++) {
		uint32_t tries = 0;
		while (tries < h->stages && size[stage] == 0) {
			stage = (stage + 1) % h->stages;
			tries++;
		}
		ret_stage_of[i] = tries < h->stages ? stage : SKEP_SPARE;
		if (tries < h->stages)
			size[stage]--;
		stage = (stage + 1) % h->stages;
	}
	skep_bounds_repair(&h->bounds, ret_stage_of, h->count);
}

static void random_sizes(struct hunt *h, uint32_t *ret_size)
{
	uint32_t left = h->workers;
	for (uint32_t s = 0; s < h->stages; s++) {
		ret_size[s] = h->bounds.least[s];
		left -= ret_size[s];
	}
	for (uint32_t tries = 64 * h->workers; left > 0 && tries > 0; tries--) {
		uint32_t s = skep_random_below(&h->random, h->stages + (h->bounds.spares_most > 0));
		if (s < h->stages && ret_size[s] >= h->bounds.most[s])
			continue;
		left--;
		if (s < h->stages)
			ret_size[s]++;
	}
}

void skep_search_state_random(struct hunt *h, uint32_t *ret_stage_of)
{
	uint32_t at = 0, *size = h->count;
	random_sizes(h, size);
	for (uint32_t s = 0; s < h->stages; s++)
		for (uint32_t i = 0; i < size[s] && at < h->workers; i++)
			ret_stage_of[at++] = s;
	while (at < h->workers)
		ret_stage_of[at++] = SKEP_SPARE;
	skep_random_shuffle(&h->random, ret_stage_of, h->workers);
	skep_bounds_repair(&h->bounds, ret_stage_of, h->count);
}

void skep_search_random(struct hunt *h, struct skep_search_carve *c)
{
	uint32_t *stage_of = skep_search_carve(c, h->workers, sizeof *stage_of);
	if (!c->mem)
		return;
	do {
		skep_search_state_random(h, stage_of);
		skep_search_state_begin(h, stage_of);
	} while (!skep_search_state_over(h));
}

void skep_search_contiguous(struct hunt *h, struct skep_search_carve *c)
{
	uint32_t *stage_of = skep_search_carve(c, h->workers, sizeof *stage_of);
	if (!c->mem)
		return;
	skep_search_state_contiguous(h, stage_of);
	skep_search_state_begin(h, stage_of);
}

void skep_search_strided(struct hunt *h, struct skep_search_carve *c)
{
	uint32_t *stage_of = skep_search_carve(c, h->workers, sizeof *stage_of);
	if (!c->mem)
		return;
	strided_order(h, stage_of);
	skep_search_state_begin(h, stage_of);
}

/* ---- few kinds ------------------------------------------------------------------------------------------------------ */

struct few {
	struct hunt *h;
	uint32_t *stage_of; /* [workers] */
	bool *taken;        /* [kinds] */
	uint64_t until;     /* evaluations */
	uint32_t most;      /* workers of the kinds that were best, where none had enough for all stages */
	double least;
};

static uint32_t workers_taken(const struct few *f)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < f->h->workers; i++)
		count += f->taken[f->h->kind[i]];
	return count;
}

/* So many of them, one stage after the other or dealt to the stages in turn; all others are left out. */
static double lay_out(struct few *f, uint32_t count, bool dealt)
{
	struct hunt *h = f->h;
	uint32_t nth = 0;
	for (uint32_t i = 0; i < h->workers; i++) {
		bool in = f->taken[h->kind[i]] && nth < count;
		f->stage_of[i] = !in ? SKEP_SPARE : dealt ? nth % h->stages : nth * h->stages / count;
		nth += in;
	}
	skep_bounds_repair(&h->bounds, f->stage_of, h->count);
	return skep_search_state_begin(h, f->stage_of);
}

/* Are the kinds that are taken better than all before, with all of their workers, or one for each stage, which has nothing to
 * sum? With too few workers for the stages the most are. */
static bool gains(struct few *f)
{
	uint32_t count = workers_taken(f), stages = f->h->stages;
	double cost = SKEP_NEVER;
	if (count < stages) {
		bool more = f->least == SKEP_NEVER && count > f->most;
		f->most = more ? count : f->most;
		return more;
	}
	for (uint32_t way = 0; way < (stages > 1 ? 3 : 2); way++) {
		double of_way = lay_out(f, way == 0 ? stages : count, way == 2);
		cost = of_way < cost ? of_way : cost;
	}
	if (!(cost < f->least))
		return false;
	f->least = cost;
	return true;
}

static bool may_go_on(const struct few *f)
{
	return f->h->evaluations < f->until && !skep_search_state_over(f->h);
}

static void take_pair(struct few *f)
{
	uint32_t best[2] = {0, 0}, kinds = f->h->kinds;
	for (uint32_t apart = 0; apart < kinds; apart++) /* single ones first */
		for (uint32_t a = 0, b = apart; b < kinds && may_go_on(f); a++, b++) {
			f->taken[a] = f->taken[b] = true;
			if (gains(f)) {
				best[0] = a;
				best[1] = b;
			}
			f->taken[a] = f->taken[b] = false;
		}
	f->taken[best[0]] = f->taken[best[1]] = true;
}

static bool take_another(struct few *f)
{
	uint32_t best = f->h->kinds;
	for (uint32_t kind = 0; kind < f->h->kinds && may_go_on(f); kind++) {
		if (f->taken[kind])
			continue;
		f->taken[kind] = true;
		best = gains(f) ? kind : best;
		f->taken[kind] = false;
	}
	if (best == f->h->kinds)
		return false;
	f->taken[best] = true;
	return true;
}

void skep_search_few_kinds(struct hunt *h, struct skep_search_carve *c, uint64_t evaluations)
{
	struct few f = {.h = h, .until = h->evaluations + evaluations, .least = SKEP_NEVER};
	f.stage_of = skep_search_carve(c, h->workers, sizeof *f.stage_of);
	f.taken = skep_search_carve(c, h->workers, sizeof *f.taken);
	if (!c->mem || h->bounds.spares_most == 0 || h->kinds < 2)
		return;
	memset(f.taken, 0, h->kinds * sizeof *f.taken);
	take_pair(&f);
	while (may_go_on(&f) && take_another(&f))
		;
}
