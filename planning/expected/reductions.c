/* SPDX-License-Identifier: Apache-2.0
 *
 * reductions.c - see reductions.h.
 */
#include "planning/expected/reductions.h"

#include <math.h>

#include "planning/problem/forecast.h"
#include "scenarios/plan/links.h"
#include "topologies/ring/ring.h"

static uint32_t worker_of(const struct skep_loads *l, uint32_t machine)
{
	uint32_t low = 0, high = l->p->workers - 1; /* machines rise */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (l->p->machine[middle] < machine)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The ring of a stage, into l->next: by the numbers of its workers, or by their links, as scenarios/plan/links.c has it. */
static void find_ring(struct skep_loads *l, uint32_t stage)
{
	const struct skep_scenario *s = l->p->scenario;
	uint32_t members = 0;
	bool exact;
	for (uint32_t i = 0; i < l->p->workers; i++)
		if (l->stage_of[i] == stage)
			l->ring[members++] = l->p->machine[i];
	if (s->ring_by_links && members > 2)
		skep_ring_arrange(&s->topology, l->ring, members, skep_ring_order_bytes(s, stage, members), &exact);
	for (uint32_t rank = 0; rank < members; rank++)
		l->next[worker_of(l, l->ring[rank])] = worker_of(l, l->ring[rank + 1 < members ? rank + 1 : 0]);
}

/* Each edge of the stage's ring carries so many bytes. The sum of the delays of all edges. */
static double carry_ring(struct skep_loads *l, uint32_t stage, double bytes)
{
	double delay_s = 0;
	for (uint32_t i = 0; i < l->p->workers; i++) {
		if (l->stage_of[i] != stage)
			continue;
		uint32_t next = l->next[i];
		skep_loads_carry(l, i, next, bytes, 1);
		delay_s += l->p->delay_s[(size_t)i * l->p->workers + next];
	}
	return delay_s;
}

static double busiest_s(struct skep_loads *l)
{
	skep_loads_list_stations(l, false, SKEP_WAY_BOTH);
	const struct skep_station *most = skep_loads_busiest(l);
	return most ? most->load_s : 0;
}

/* Each stage's by itself, and all of them no sooner than what they share is done. */
static void rings_s(struct skep_loads *l)
{
	double longest_s = 0;
	for (uint32_t s = 0; s < l->p->stages; s++) {
		double n = l->count[s];
		skep_loads_clear(l);
		find_ring(l, s);
		double bytes = l->p->reduced_bytes[s] / n, delay_s = n > 1 ? carry_ring(l, s, bytes) : 0;
		l->reduce_s[s] = skep_throughput_ring_s(&l->p->throughput[0], n, bytes, busiest_s(l), delay_s / n);
		longest_s = fmax(longest_s, l->reduce_s[s]);
	}
	skep_loads_clear(l);
	for (uint32_t s = 0; s < l->p->stages; s++)
		if (l->count[s] > 1)
			carry_ring(l, s, 2 * (l->count[s] - 1.0) / l->count[s] * l->p->reduced_bytes[s]);
	double all_s = busiest_s(l);
	for (uint32_t s = 0; s < l->p->stages && all_s > longest_s; s++)
		l->reduce_s[s] = l->count[s] > 1 ? all_s : 0;
}

/* The nth worker of a stage. */
static uint32_t member(const struct skep_loads *l, uint32_t stage, uint32_t nth)
{
	uint32_t i = 0;
	while (l->stage_of[i] != stage || l->nth[i] != nth)
		i++;
	return i;
}

/* Tables of tied embeddings: each rank of the first stage and that of the last one exchange theirs, and ranks that only one
 * of the stages has get both from an earlier one of their own. */
static double tied_s(struct skep_loads *l)
{
	const struct skep_plan *plan = &l->p->scenario->plan;
	uint32_t last = l->p->stages - 1, wide = l->count[0] > l->count[last] ? 0 : last;
	uint32_t most = l->count[wide], least = l->count[last - wide];
	double bytes = (double)skep_plan_encoded_bytes(plan, plan->tied), across_s, delay_s = 0;
	skep_loads_clear(l);
	for (uint32_t i = 0; i < least; i++) {
		uint32_t a = member(l, 0, i), b = member(l, last, i);
		skep_loads_carry(l, a, b, bytes, 1);
		skep_loads_carry(l, b, a, bytes, 1);
		delay_s = fmax(delay_s, l->p->delay_s[(size_t)a * l->p->workers + b]);
	}
	across_s = busiest_s(l) + delay_s;
	skep_loads_clear(l);
	for (uint32_t i = least; i < most; i++)
		skep_loads_carry(l, member(l, wide, i - least), member(l, wide, i), bytes, 1);
	return across_s + busiest_s(l);
}

double skep_reductions_s(struct skep_loads *l)
{
	double longest_s = 0, tables_s = l->p->scenario->plan.tied > 0 ? tied_s(l) : 0;
	if (l->p->scenario->plan.collective == SKEP_COLLECTIVE_RING)
		rings_s(l);
	else
		for (uint32_t s = 0; s < l->p->stages; s++)
			l->reduce_s[s] = skep_forecast_reduction_s(l->p, SKEP_CONTENDED, l->stage_of, s);
	l->reduce_s[0] += tables_s;
	l->reduce_s[l->p->stages - 1] += l->p->stages > 1 ? tables_s : 0;
	for (uint32_t s = 0; s < l->p->stages; s++)
		longest_s = fmax(longest_s, l->reduce_s[s]);
	return longest_s;
}
