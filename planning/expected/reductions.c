/* SPDX-License-Identifier: Apache-2.0
 *
 * reductions.c - see loads.h.
 */
#include "planning/expected/loads.h"

#include <math.h>

#include "core/sums.h"
#include "planning/problem/forecast.h"
#include "planning/problem/sums.h"
#include "topologies/read/path.h"

/* The ring of a stage, into l->next. */
static void find_ring(struct skep_loads *l, uint32_t stage)
{
	uint32_t members = skep_sum_members(l->p, l->stage_of, stage, l->ring);
	skep_sum_order(l->p, stage, l->ring, members);
	for (uint32_t rank = 0; rank < members; rank++)
		l->next[l->ring[rank]] = l->ring[rank + 1 < members ? rank + 1 : 0];
}

/* What the stage sums when it does; planning knows the mean of all rounds. */
static double summed_bytes(const struct skep_loads *l, uint32_t stage)
{
	return l->p->reduced_bytes[stage] * skep_plan_sum_every(&l->p->scenario->plan, stage);
}

/* Bytes of a segment of a chunk of the stage's ring. */
static double segment_bytes(const struct skep_loads *l, uint32_t stage)
{
	const double chunk = summed_bytes(l, stage) / l->count[stage];
	return chunk / skep_throughput_ring_segments(&l->p->throughput[0], chunk);
}

static double hop_s(const struct skep_loads *l, uint32_t worker, double segment)
{
	const uint32_t next = l->next[worker], *machine = l->p->machine;
	return l->p->delay_s[(size_t)worker * l->p->workers + next] +
	       skep_path_relay_s(&l->p->scenario->topology, machine[worker], machine[next], segment);
}

double skep_loads_ring_hop_s(const struct skep_loads *l, uint32_t worker)
{
	return hop_s(l, worker, segment_bytes(l, l->stage_of[worker]));
}

struct skep_ring_hops skep_loads_ring_hops(const struct skep_loads *l, uint32_t stage)
{
	struct skep_ring_hops hops = {0, INFINITY};
	const double segment = segment_bytes(l, stage);
	for (uint32_t i = 0; i < l->p->workers; i++) {
		if (l->stage_of[i] != stage)
			continue;
		const double one_s = hop_s(l, i, segment);
		hops.sum_s += one_s;
		hops.shortest_s = fmin(hops.shortest_s, one_s);
	}
	return hops;
}

/* Each edge of the stage's ring carries so many bytes. */
static void carry_ring(struct skep_loads *l, uint32_t stage, double bytes)
{
	for (uint32_t i = 0; i < l->p->workers; i++)
		if (l->stage_of[i] == stage)
			skep_loads_carry(l, i, l->next[i], bytes, 1);
}

static double busiest_s(struct skep_loads *l)
{
	skep_loads_list_stations(l, false, SKEP_WAY_BOTH);
	const struct skep_station *most = skep_loads_busiest(l);
	return most ? most->load_s : 0;
}

/* Of n members, with chunks of so many bytes. A chunk goes all but twice round, past each hop nearly as often; in half of that
 * once past all hops but one, and the slowest chunk leaves out the shortest. */
static double ring_s(struct skep_loads *l, uint32_t stage, double n, double bytes)
{
	const struct skep_throughput *t = &l->p->throughput[0];
	struct skep_ring_hops hops = {0, 0};
	if (n > 1) {
		carry_ring(l, stage, bytes);
		hops = skep_loads_ring_hops(l, stage);
	}
	const double busy_s = busiest_s(l);
	if (l->p->scenario->plan.sharded)
		return skep_throughput_half_ring_s(
			t, n, bytes, busy_s, n > 1 ? (hops.sum_s - hops.shortest_s) / (n - 1) : 0);
	return skep_throughput_ring_s(t, n, bytes, busy_s, hops.sum_s / n);
}

/* Each stage's by itself, and all of them no sooner than what they share is done. Of a step in shards the halves of a ring. */
static void rings_s(struct skep_loads *l)
{
	double longest_s = 0;
	bool halves = l->p->scenario->plan.sharded;
	for (uint32_t s = 0; s < l->p->stages; s++) {
		double n = skep_loads_sums(l, s) ? l->count[s] : 1;
		skep_loads_clear(l);
		find_ring(l, s);
		l->reduce_s[s] = ring_s(l, s, n, summed_bytes(l, s) / n);
		longest_s = fmax(longest_s, l->reduce_s[s]);
	}
	skep_loads_clear(l);
	for (uint32_t s = 0; s < l->p->stages; s++)
		if (l->count[s] > 1 && skep_loads_sums(l, s))
			carry_ring(l, s, (halves ? 1 : 2) * (l->count[s] - 1.0) / l->count[s] * summed_bytes(l, s));
	double all_s = busiest_s(l);
	for (uint32_t s = 0; s < l->p->stages && all_s > longest_s; s++)
		l->reduce_s[s] = l->count[s] > 1 && skep_loads_sums(l, s) ? all_s : 0;
	for (uint32_t s = 0; s < l->p->stages; s++)
		l->gather_s[s] = halves ? l->reduce_s[s] : 0;
}

/* ---- tied embeddings ------------------------------------------------------------------------------------------------ */

struct tables {
	struct skep_loads *l;
	double delay_s; /* the longest */
};

static void carry_table(void *context, uint32_t from, uint32_t to, double bytes)
{
	struct tables *t = context;
	skep_loads_carry(t->l, from, to, bytes, 1);
	t->delay_s = fmax(t->delay_s, t->l->p->delay_s[(size_t)from * t->l->p->workers + to]);
}

/* From one stage to the other. The longest delay. */
static double carry_tables(struct skep_loads *l, uint32_t from, uint32_t to)
{
	struct tables tables = {.l = l};
	uint32_t froms = skep_sum_members(l->p, l->stage_of, from, l->ring),
		 tos = skep_sum_members(l->p, l->stage_of, to, l->ring + froms);
	skep_tied_across(l->p, l->ring, froms, l->ring + froms, tos, carry_table, &tables);
	return tables.delay_s;
}

static double across_s(struct skep_loads *l, uint32_t from, uint32_t to)
{
	skep_loads_clear(l);
	double delay_s = carry_tables(l, from, to);
	return busiest_s(l) + delay_s;
}

/* What both ways share: where the directory passes them on, its lines. */
static double crossing_s(struct skep_loads *l, uint32_t a, uint32_t b)
{
	skep_loads_clear(l);
	carry_tables(l, a, b);
	carry_tables(l, b, a);
	return busiest_s(l);
}

/* Ranks that only one of the stages has get both tables from an earlier one of their own. */
static double along_s(struct skep_loads *l, uint32_t last)
{
	uint32_t wide = l->count[0] > l->count[last] ? 0 : last;
	struct tables tables = {.l = l};
	skep_loads_clear(l);
	skep_tied_along(l->p, l->ring, skep_sum_members(l->p, l->stage_of, wide, l->ring), l->count[last - wide],
		carry_table, &tables);
	return busiest_s(l);
}

/* How long the links of a stage's ring are busy with it and with the other stage's tables. */
static double beside_tables_s(struct skep_loads *l, uint32_t stage, uint32_t other)
{
	double longest_s = 0, n = l->count[stage];
	if (n < 2 || l->p->scenario->plan.reduction.collective != SKEP_COLLECTIVE_RING)
		return 0;
	skep_loads_clear(l);
	carry_ring(l, stage, 2 * (n - 1) / n * l->p->reduced_bytes[stage]);
	carry_tables(l, other, stage);
	for (uint32_t i = 0; i < l->p->workers; i++) {
		if (l->stage_of[i] != stage)
			continue;
		uint32_t from = skep_loads_place(l, i), to = skep_loads_place(l, l->next[i]);
		double ends_s = fmax(l->load.up[i], l->load.down[l->next[i]]);
		longest_s = fmax(longest_s, fmax(ends_s, skep_loads_line_s(l, from, to)));
	}
	return longest_s;
}

/* Until both stages have both tables. Who has summed first sends at once; what is left of the other's ring goes on beside that,
 * one message among so many that share a link, until the tables are there. */
static double until_tied_s(struct skep_loads *l)
{
	uint32_t last = l->p->stages - 1, first = l->reduce_s[0] > l->reduce_s[last] ? last : 0, other = last - first;
	double tables = l->count[0] < l->count[last] ? l->count[0] : l->count[last], ring_s = l->reduce_s[other];
	double slow_s = ring_s + (ring_s - l->reduce_s[first]) * tables;
	double summed_s = fmax(ring_s, fmin(slow_s, beside_tables_s(l, other, first)));
	double until_s = fmax(l->reduce_s[first] + across_s(l, first, other), summed_s + across_s(l, other, first));
	until_s = fmax(until_s, l->reduce_s[first] + crossing_s(l, first, other));
	return until_s + along_s(l, last);
}

/* ---- other collectives ---------------------------------------------------------------------------------------------- */

static void carry_sum(void *loads, uint32_t from, uint32_t to, double bytes)
{
	skep_loads_carry(loads, from, to, bytes, 1);
}

/* As its closed form has it with empty lines, and no sooner than the lines have carried what its members send each other. */
static double other_s(struct skep_loads *l, uint32_t stage)
{
	if (l->count[stage] < 2)
		return 0;
	if (l->p->scenario->plan.async.on)
		return skep_forecast_reduction_s(l->p, SKEP_CONTENDED, l->stage_of, stage);
	skep_loads_clear(l);
	skep_sum_bytes(l->p, stage, l->ring, skep_sum_members(l->p, l->stage_of, stage, l->ring), carry_sum, l);
	return fmax(busiest_s(l), skep_forecast_reduction_s(l->p, SKEP_UNCONTENDED, l->stage_of, stage));
}

/* Message by message, or in a search, and where that would take too long, by closed forms. */
static void others_s(struct skep_loads *l)
{
	if (!l->quick && skep_rehearsal_short(l->p) && skep_rehearsal_reduce(l))
		return;
	for (uint32_t s = 0; s < l->p->stages; s++)
		l->reduce_s[s] = other_s(l, s);
}

double skep_reductions_s(struct skep_loads *l)
{
	double longest_s = 0;
	uint32_t last = l->p->stages - 1;
	if (l->p->scenario->plan.reduction.collective == SKEP_COLLECTIVE_RING)
		rings_s(l);
	else
		others_s(l);
	if (l->p->scenario->plan.tied > 0 && last > 0)
		l->reduce_s[0] = l->reduce_s[last] = until_tied_s(l);
	for (uint32_t s = 0; s < l->p->stages; s++)
		longest_s = fmax(longest_s, l->reduce_s[s]);
	return longest_s;
}
