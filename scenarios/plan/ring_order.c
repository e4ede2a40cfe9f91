/* SPDX-License-Identifier: Apache-2.0
 *
 * ring_order.c - see ring_order.h. The members at the start are ordered by topologies/ring/. Each other worker, which may come
 * to the stage later, has its place between those two of them where it slows the ring down least, several of them by index.
 *
 * So a member that leaves closes the gap, and the order of the others stays. It is part of the plan and not made anew in a run:
 * then the directory would have to know the links.
 */
#include "scenarios/plan/ring_order.h"

#include <assert.h>
#include <stdlib.h>

#include "core/record.h"
#include "topologies/ring/ring.h"

double skep_ring_order_bytes(const struct skep_scenario *s, uint32_t stage, uint32_t members)
{
	assert(members > 0);
	uint64_t first, elements, count;
	skep_plan_range(&s->plan, stage, 0, 0, &first, &elements);
	skep_chunk_range(elements, 0, members, &first, &count);
	return (double)(skep_codec_bytes(s->plan.reduction_codec, s->plan.reduction_block, count) + SKEP_HEADER_BYTES);
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

bool skep_ring_order_make(struct skep_scenario *s)
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
	s->plan.ring_order = made ? s->ring_order : NULL;
	free(x.member);
	free(x.behind);
	free(x.begin);
	return made;
}
