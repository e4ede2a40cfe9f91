/* SPDX-License-Identifier: Apache-2.0
 *
 * greedy.c - places one worker after the other, each where it costs least at that point.
 *
 * First by proxies of the cost, since half an allocation has no cost: a worker goes where its mean distance to the
 * workers of the stage, and of the stages before and behind, is least. Then by the cost itself: each worker in turn
 * takes its best change, until no single change helps. So the result is a local optimum, if the budget lasts.
 */
#include "planning/search/hunt.h"

static double pair_s(const double *matrix, uint32_t workers, uint32_t a, uint32_t b)
{
	return matrix ? matrix[(size_t)a * workers + b] : 0;
}

/* The worker at this stage, beside those who have one already: means, so that a full stage is not a dear one. */
static double price(const struct hunt *h, const uint32_t *stage_of, uint32_t worker, uint32_t stage)
{
	const struct skep_search *s = h->search;
	double together = 0, along = 0;
	uint32_t near = 0, next = 0;
	for (uint32_t i = 0; i < h->workers; i++) {
		if (stage_of[i] == stage) {
			together += pair_s(s->together_s, h->workers, worker, i);
			near++;
		} else if (stage_of[i] + 1 == stage || (stage_of[i] == stage + 1 && stage_of[i] < h->stages)) {
			along += pair_s(s->along_s, h->workers, worker, i);
			next++;
		}
	}
	double alone = s->alone_s ? s->alone_s[(size_t)worker * h->stages + stage] : 0;
	return alone + (near > 0 ? together / near : 0) + (next > 0 ? along / next : 0);
}

static void construct(struct hunt *h, uint32_t *stage_of)
{
	uint32_t *count = h->count;
	uint32_t even = (h->workers + h->stages - 1) / h->stages;
	for (uint32_t s = 0; s < h->stages; s++)
		count[s] = 0;
	for (uint32_t i = 0; i < h->workers; i++)
		stage_of[i] = SKEP_UNDECIDED;
	for (uint32_t i = 0; i < h->workers; i++) {
		uint32_t best = SKEP_UNDECIDED;
		double least = SKEP_NEVER;
		for (uint32_t s = 0; s < h->stages; s++) {
			uint32_t most = h->bounds.most[s] < even ? h->bounds.most[s] : even;
			if (count[s] >= most || !skep_bounds_may(&h->bounds, i, s))
				continue;
			double here = price(h, stage_of, i, s);
			if (here < least) {
				least = here;
				best = s;
			}
		}
		stage_of[i] = best;
		if (best != SKEP_UNDECIDED)
			count[best]++;
	}
	skep_bounds_repair(&h->bounds, stage_of, count);
}

void skep_search_greedy(struct hunt *h, struct skep_search_carve *c)
{
	uint32_t *stage_of = skep_search_carve(c, h->workers, sizeof *stage_of);
	if (!c->mem)
		return;
	if (h->search->together_s || h->search->along_s || h->search->alone_s)
		construct(h, stage_of);
	else
		skep_search_state_contiguous(h, stage_of);
	skep_search_state_begin(h, stage_of);
	skep_search_state_descend(h);
}
