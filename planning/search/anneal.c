/* SPDX-License-Identifier: Apache-2.0
 *
 * anneal.c - simulated annealing: Markov chain Monte Carlo over single changes, with restarts.
 *
 * Jia, Zaharia, Aiken: Beyond Data and Model Parallelism for Deep Neural Networks (FlexFlow). MLSys 2019, section 6: propose a
 * random change, accept it with probability min(1, exp(-change / temperature)) (Metropolis et al. 1953), begin anew when it
 * leads nowhere. Here the temperature falls geometrically during a walk, from one that the first changes set, and each walk
 * is twice as long as the one before it: short ones are lucky in small pools, long ones needed in large ones. Walks begin in
 * turn at random and at the best so far. Where machines may be left out it looks at a few kinds alone before that (orders.c).
 */
#include "planning/search/exponential.h"
#include "planning/search/hunt.h"

#define SAMPLES 24u
#define WALKS_IN_VAIN 10u

/* The mean of what changes change, those that change nothing left out; the current allocation stays. None counts for more than
 * the current cost: by a few dear ones, as when a machine behind a thin line comes in, a walk would begin so hot that it leaves
 * what it begins with. */
static double mean_change(struct hunt *h)
{
	double sum = 0;
	uint32_t seen = 0;
	struct skep_change change;
	for (uint32_t i = 0; i < SAMPLES && !skep_search_state_over(h) && skep_search_state_draw(h, &change); i++) {
		double cost = skep_search_state_ask(h, change), by = cost > h->now ? cost - h->now : h->now - cost;
		if (!(by > 0) || !(by < SKEP_NEVER))
			continue;
		sum += by < h->now ? by : h->now;
		seen++;
	}
	return seen > 0 ? sum / seen : 0;
}

void skep_search_state_walk(struct hunt *h, uint64_t evaluations, double first, double fall)
{
	uint64_t begin = h->evaluations;
	double mean = mean_change(h), temperature = mean * first;
	struct skep_change change;
	for (uint64_t i = h->evaluations - begin; i < evaluations && !skep_search_state_over(h); i++) {
		if ((i & 15) == 0)
			temperature = mean * first * skep_exp_minus(fall * (double)i / (double)evaluations);
		if (!skep_search_state_draw(h, &change))
			return;
		double cost = skep_search_state_ask(h, change);
		bool taken = cost <= h->now;
		if (!taken && cost < SKEP_NEVER && temperature > 0)
			taken = skep_random_unit(&h->random) < skep_exp_minus((cost - h->now) / temperature);
		if (taken)
			skep_search_state_take(h, change, cost);
	}
}

void skep_search_anneal(struct hunt *h, struct skep_search_carve *c)
{
	uint32_t *stage_of = skep_search_carve(c, h->workers, sizeof *stage_of), vain = 0;
	uint64_t length = 12 * (uint64_t)h->workers;
	if (h->search->start && c->mem)
		skep_search_state_begin(h, h->search->start);
	skep_search_few_kinds(h, c, skep_search_state_left(h) / 4);
	if (!c->mem)
		return;
	for (uint32_t walk = 0; h->evaluations == 0 || (!skep_search_state_over(h) && vain < WALKS_IN_VAIN); walk++) {
		double before = h->best;
		if (walk % 2 == 0) {
			skep_search_state_random(h, stage_of);
			skep_search_state_begin(h, stage_of);
		} else {
			skep_search_state_begin(h, h->best_of);
		}
		skep_search_state_walk(h, length, walk % 2 == 0 ? 1.0 : 0.3, 4.6);
		length *= walk % 2 == 1 ? 2 : 1;
		vain = h->best < before ? 0 : vain + 1;
	}
}
