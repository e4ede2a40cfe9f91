/* SPDX-License-Identifier: Apache-2.0
 *
 * links.c - see links.h. In a ring the members at the start are ordered by topologies/ring/. Each other worker, which may come
 * to the stage later, has its place between those two of them where it slows the ring down least, several of them by index.
 *
 * So a member that leaves closes the gap, and the order of the others stays. It is part of the plan and not made anew in a run:
 * then the directory would have to know the links.
 */
#include "scenarios/plan/links.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/units.h"
#include "core/record.h"
#include "core/sums.h"
#include "topologies/read/path.h"
#include "topologies/ring/ring.h"

/* ---- rings ------------------------------------------------------------------------------------------------------ */

double skep_ring_order_bytes(const struct skep_scenario *s, uint32_t stage, uint32_t members)
{
	assert(members > 0);
	uint64_t first, elements, count;
	skep_plan_range(&s->plan, stage, skep_plan_first_sum(&s->plan, stage), 0, &first, &elements);
	skep_chunk_range(elements, 0, members, &first, &count);
	return (double)(skep_plan_encoded_bytes(&s->plan, stage, count) + SKEP_HEADER_BYTES);
}

uint32_t skep_ring_order_members(const struct skep_scenario *s, uint32_t stage, uint32_t *ret_worker)
{
	assert(stage < s->plan.stages);
	uint32_t members = 0;
	for (uint32_t nth = 0; nth < s->plan.workers; nth++) {
		uint32_t worker = skep_plan_in_ring(&s->plan, stage, nth);
		if (s->first_stage_of[worker] == stage)
			ret_worker[members++] = worker;
	}
	return members;
}

/* The rank of the member behind which the worker's place is. */
static uint32_t place_of(
	const struct skep_scenario *s, const uint32_t *member, uint32_t members, uint32_t worker, double bytes)
{
	uint64_t best_worse = UINT64_MAX, best_sum = UINT64_MAX;
	uint32_t best = 0;
	for (uint32_t rank = 0; rank < members; rank++) {
		uint32_t next = member[rank + 1 < members ? rank + 1 : 0];
		uint64_t to = skep_ring_alone_ns(&s->topology, member[rank], worker, bytes);
		uint64_t on = skep_ring_alone_ns(&s->topology, worker, next, bytes), worse = to > on ? to : on;
		if (worse > best_worse || (worse == best_worse && to + on >= best_sum))
			continue;
		best_worse = worse;
		best_sum = to + on;
		best = rank;
	}
	return best;
}

struct scratch {
	uint32_t *member; /* [workers] */
	uint32_t *behind; /* [workers] of the others, by worker: the rank of the member before it */
	uint32_t *begin;  /* [workers + 1] where in the order each member's part begins */
};

/* Each member, and behind it the others that have their places there. */
static void spread(
	const struct skep_scenario *s, uint32_t stage, const struct scratch *x, uint32_t members, uint32_t *ret)
{
	uint32_t workers = s->plan.workers;
	for (uint32_t rank = 0; rank <= members; rank++)
		x->begin[rank] = 0;
	for (uint32_t i = 0; i < workers; i++)
		if (s->first_stage_of[i] != stage)
			x->begin[x->behind[i] + 1]++;
	for (uint32_t rank = 0; rank < members; rank++) {
		x->begin[rank + 1] += x->begin[rank] + 1;
		ret[x->begin[rank]++] = x->member[rank];
	}
	for (uint32_t i = 0; i < workers; i++)
		if (s->first_stage_of[i] != stage)
			ret[x->begin[x->behind[i]]++] = i;
}

static bool order_stage(struct skep_scenario *s, uint32_t stage, const struct scratch *x)
{
	uint32_t workers = s->plan.workers, *order = &s->ring_order[(size_t)stage * workers];
	uint32_t members = skep_ring_order_members(s, stage, x->member);
	s->ring_exact[stage] = true;
	for (uint32_t i = 0; i < workers; i++)
		order[i] = i;
	if (members < 2)
		return true;
	double bytes = skep_ring_order_bytes(s, stage, members);
	if (!skep_ring_arrange(&s->topology, x->member, members, bytes, &s->ring_exact[stage]))
		return false;
	for (uint32_t i = 0; i < workers; i++)
		if (s->first_stage_of[i] != stage)
			x->behind[i] = place_of(s, x->member, members, i, bytes);
	spread(s, stage, x, members, order);
	return true;
}

static bool make_ring_order(struct skep_scenario *s)
{
	size_t workers = s->plan.workers;
	if (!s->ring_by_links || s->unresolved)
		return true;
	assert(workers <= SKEP_RING_MEMBERS_MAX);
	struct scratch x = {.member = malloc(workers * sizeof *x.member),
		.behind = malloc(workers * sizeof *x.behind),
		.begin = malloc((workers + 1) * sizeof *x.begin)};
	s->ring_order = malloc(s->plan.stages * workers * sizeof *s->ring_order);
	s->ring_exact = malloc(s->plan.stages * sizeof *s->ring_exact);
	bool made = x.member && x.behind && x.begin && s->ring_order && s->ring_exact;
	for (uint32_t stage = 0; made && stage < s->plan.stages; stage++)
		made = order_stage(s, stage, &x);
	s->plan.reduction.order = made ? s->ring_order : NULL;
	free(x.member);
	free(x.behind);
	free(x.begin);
	return made;
}

/* ---- other collectives, and wiring ------------------------------------------------------------------------------------ */

/* How long the activations of a microbatch take over an idle link, for every ordered pair of places. The largest boundary
 * stands for all: what counts is the difference between links. */
bool skep_plan_make_transfers(struct skep_scenario *s)
{
	const struct skep_topology *t = &s->topology;
	double bytes = SKEP_HEADER_BYTES;
	s->place_of = calloc(s->plan.workers, sizeof *s->place_of);
	s->transfer_ns = calloc((size_t)t->places * t->places, sizeof *s->transfer_ns);
	if (!s->place_of || !s->transfer_ns)
		return false;
	for (uint32_t stage = 0; stage < s->plan.stages; stage++)
		bytes = fmax(bytes, (double)s->stage[stage].activation_bytes);
	for (uint32_t i = 0; i < t->places; i++)
		for (uint32_t j = 0; j < t->places; j++) {
			double Bps = fmin(skep_path_least_Bps(t, i, j), skep_path_cap_Bps(t, i, j));
			double way_s = skep_path_mean_s(t, i, j) + skep_path_overhead_s(t, i, j);
			s->transfer_ns[(size_t)i * t->places + j] = skep_ns_clamp(1e9 * (way_s + bytes / Bps));
		}
	for (uint32_t i = 0; i < s->plan.workers; i++)
		s->place_of[i] = t->machine[i].place;
	s->plan.places.count = t->places;
	s->plan.places.of = s->place_of;
	s->plan.places.transfer_ns = s->transfer_ns;
	return true;
}

static bool make_sites(struct skep_scenario *s)
{
	s->site_of = calloc(s->plan.workers, sizeof *s->site_of);
	for (uint32_t i = 0; s->site_of && i < s->plan.workers; i++)
		s->site_of[i] = skep_machine_site(&s->topology.machine[i]);
	s->plan.reduction.site_of = s->site_of;
	return s->site_of != NULL;
}

/* Machines at a place. */
static uint32_t machines_at(const struct skep_scenario *s, uint32_t place)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < s->plan.workers; i++)
		count += s->topology.machine[i].place == place;
	return count;
}

/* What can leave and reach a machine that sends as much to each of the others: by its own limits, by those of its paths to all of
 * them together, and by its part of what its site shares, through which only what is for other sites goes. */
static double link_of(const struct skep_scenario *s, uint32_t worker)
{
	const struct skep_topology *t = &s->topology;
	const struct skep_machine *m = &t->machine[worker];
	double up = 0, down = 0;
	for (uint32_t i = 0; i < s->plan.workers; i++) {
		up += i == worker ? 0 : skep_path_lone_Bps(t, worker, i);
		down += i == worker ? 0 : skep_path_lone_Bps(t, i, worker);
	}
	double link = fmin(fmin(up, down), fmin(m->up_Bps, m->down_Bps));
	uint32_t here = t->site_link ? machines_at(s, m->place) : 0, away = s->plan.workers - here;
	if (!t->site_link || away == 0)
		return link;
	double spread = (s->plan.workers - 1.0) / away / here;
	return fmin(link, spread * fmin(t->site_link[m->place].up_Bps, t->site_link[m->place].down_Bps));
}

/* A link without a limit counts as one of 1 EB/s. */
static bool make_links(struct skep_scenario *s)
{
	s->link_Bps = calloc(s->plan.workers, sizeof *s->link_Bps);
	for (uint32_t i = 0; s->link_Bps && i < s->plan.workers; i++)
		s->link_Bps[i] = (uint64_t)fmin(fmax(1, link_of(s, i)), 1e18);
	s->plan.reduction.link_Bps = s->link_Bps;
	return s->link_Bps != NULL;
}

/* The most bytes that a link from one machine to another carries during its latency. Paths without a limit have none to hide. */
static bool make_ring_latency(struct skep_scenario *s)
{
	const struct skep_topology *t = &s->topology;
	struct {
		double up_Bps, down_Bps;
		uint32_t machines;
	} *best = calloc(t->places, sizeof *best);
	double most = 0;
	for (uint32_t i = 0; best && i < s->plan.workers; i++) {
		const struct skep_machine *m = &t->machine[i];
		best[m->place].up_Bps = fmax(best[m->place].up_Bps, m->up_Bps);
		best[m->place].down_Bps = fmax(best[m->place].down_Bps, m->down_Bps);
		best[m->place].machines++;
	}
	for (uint32_t from = 0; best && from < t->places; from++)
		for (uint32_t to = 0; to < t->places; to++) {
			double path = fmin(skep_path_least_Bps(t, from, to), skep_path_cap_Bps(t, from, to));
			double rate_Bps = fmin(path, fmin(best[from].up_Bps, best[to].down_Bps));
			bool used = best[from].machines > 0 && best[to].machines > (from == to);
			if (used && isfinite(rate_Bps))
				most = fmax(most, rate_Bps * skep_path_late_s(t, from, to));
		}
	s->plan.reduction.latency_bytes = (uint64_t)fmin(ceil(most), 1e18);
	bool made = best != NULL;
	free(best);
	return made;
}

/* What the members of a reduction need to know of each other, or of what is between them. */
bool skep_plan_make_collective(struct skep_scenario *s)
{
	if (s->plan.reduction.collective == SKEP_COLLECTIVE_RING)
		return make_ring_latency(s) && make_ring_order(s);
	if (s->plan.reduction.collective == SKEP_COLLECTIVE_HIERARCHICAL)
		return make_sites(s);
	return s->plan.reduction.collective != SKEP_COLLECTIVE_BUTTERFLY || make_links(s);
}

double skep_links_to_directory_s(const struct skep_scenario *s)
{
	double longest_s = 0;
	for (uint32_t i = 0; i < s->topology.machines; i++)
		longest_s = fmax(longest_s, skep_path_late_s(&s->topology, s->topology.machine[i].place,
						    s->topology.machine[s->topology.machines].place));
	return longest_s;
}
