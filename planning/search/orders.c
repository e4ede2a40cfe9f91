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

static void shuffle(struct hunt *h, uint32_t *item, uint32_t count)
{
	for (uint32_t i = count; i > 1; i--) {
		uint32_t j = skep_random_below(&h->random, i), swapped = item[i - 1];
		item[i - 1] = item[j];
		item[j] = swapped;
	}
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
	shuffle(h, ret_stage_of, h->workers);
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
