/* SPDX-License-Identifier: Apache-2.0
 *
 * sums.c - see sums.h.
 */
#include "planning/problem/sums.h"

#include <assert.h>
#include <math.h>

#include "core/collective/collective.h"
#include "core/sums.h"
#include "scenarios/plan/links.h"
#include "scenarios/plan/split.h"
#include "topologies/ring/ring.h"

uint64_t skep_sum_elements(const struct skep_planning *p, uint32_t stage)
{
	const struct skep_plan *plan = &p->scenario->plan;
	return skep_plan_trained(plan, stage) / skep_plan_fragments(plan);
}

static uint32_t members_max(const struct skep_planning *p)
{
	return skep_collective_has_roster(p->scenario->plan.reduction.collective) ? SKEP_ROSTER_MAX : UINT32_MAX;
}

/* What one rank sends. */
static void tell_rank(const struct skep_plan *plan, uint32_t stage, const struct skep_scheme *scheme,
	const uint64_t *fact, skep_sum_hear *hear, void *context)
{
	for (uint32_t m = 0; m < skep_scheme_transfers(scheme); m++) {
		struct skep_scheme_transfer transfer = skep_scheme_transfer_at(scheme, fact, m);
		uint64_t bytes = skep_scheme_payload_bytes(plan, stage, &transfer);
		for (uint32_t nth = 0; nth < transfer.hops; nth++) {
			struct skep_hop hop = skep_scheme_hop(scheme, fact, m, nth);
			if (hop.to != scheme->rank)
				hear(context, scheme->rank, hop.to, hop.taken ? 0 : bytes);
		}
	}
}

static void tell(const struct skep_planning *p, const struct skep_plan *plan, uint32_t stage, const uint32_t *member,
	uint32_t members, skep_sum_hear *hear, void *context)
{
	struct skep_peer roster[SKEP_ROSTER_MAX];
	uint64_t fact[SKEP_ROSTER_MAX + 1], elements = skep_sum_elements(p, stage);
	assert(members <= members_max(p));
	for (uint32_t rank = 0; rank < members && rank < SKEP_ROSTER_MAX; rank++)
		roster[rank] = (struct skep_peer){p->machine[member[rank]], 1};
	for (uint32_t rank = 0; members > 1 && elements > 0 && rank < members; rank++) {
		struct skep_scheme scheme;
		skep_scheme_init(&scheme, plan, stage, elements, rank, members, roster, fact);
		tell_rank(plan, stage, &scheme, fact, hear, context);
	}
}

void skep_sum_messages(const struct skep_planning *p, uint32_t stage, const uint32_t *member, uint32_t members,
	skep_sum_hear *hear, void *context)
{
	tell(p, &p->scenario->plan, stage, member, members, hear, context);
}

/* ---- bytes ---------------------------------------------------------------------------------------------------------- */

struct carried {
	const uint32_t *member;
	double rounds; /* in one of how many it sums: what is carried is the mean */
	skep_carry_sum *carry;
	void *context;
};

static void carry_message(void *context, uint32_t from, uint32_t to, uint64_t bytes)
{
	const struct carried *c = context;
	if (bytes > 0)
		c->carry(c->context, c->member[from], c->member[to], (double)bytes / c->rounds);
}

/* Vectors that an edge of a circle of all members carries; 0: they are no circle. */
static double around(const struct skep_plan *plan, uint32_t members)
{
	double n = members, group = plan->async.group_size > 1 ? plan->async.group_size : 1;
	if (plan->reduction.collective == SKEP_COLLECTIVE_BROADCAST)
		return ceil(n / group) * (n - 1) / n;
	return plan->reduction.collective == SKEP_COLLECTIVE_RING || plan->reduction.collective == SKEP_COLLECTIVE_FUSED
	               ? 2 * (n - 1) / n
	               : 0;
}

static void group_bytes(const struct skep_planning *p, uint32_t stage, const uint32_t *member, uint32_t members,
	skep_carry_sum *carry, void *context)
{
	struct skep_plan whole = p->scenario->plan;
	struct carried carried = {member, skep_plan_sum_every(&whole, stage), carry, context};
	double vectors = around(&whole, members);
	whole.reduction.chunks = 1; /* in how many messages it travels changes no byte but headers */
	if (vectors == 0)
		tell(p, &whole, stage, member, members, carry_message, &carried);
	for (uint32_t rank = 0; vectors > 0 && rank < members; rank++)
		carry(context, member[rank], member[rank + 1 < members ? rank + 1 : 0],
			vectors * p->reduced_bytes[stage]);
}

struct part { /* of what one of several groups is told to carry */
	double times;
	skep_carry_sum *carry;
	void *context;
};

static void carry_part(void *context, uint32_t from, uint32_t to, double bytes)
{
	const struct part *part = context;
	part->carry(part->context, from, to, part->times * bytes);
}

/* core/methods/gossip.c: a shuffle, so no pair is likelier than another. */
static void pairs_bytes(const struct skep_planning *p, uint32_t stage, const uint32_t *member, uint32_t members,
	skep_carry_sum *carry, void *context)
{
	double meet = members / 2, all = 0.5 * members * (members - 1);
	struct part part = {meet / all, carry, context};
	for (uint32_t i = 0; i < members; i++)
		for (uint32_t j = i + 1; j < members; j++) {
			const uint32_t pair[] = {member[i], member[j]};
			group_bytes(p, stage, pair, 2, carry_part, &part);
		}
}

void skep_sum_bytes(const struct skep_planning *p, uint32_t stage, const uint32_t *member, uint32_t members,
	skep_carry_sum *carry, void *context)
{
	bool pairs = p->scenario->plan.gossip;
	if (members >= 2 && members <= members_max(p)) /* with more it is not read */
		(pairs ? pairs_bytes : group_bytes)(p, stage, member, members, carry, context);
}

/* ---- who follows whom ----------------------------------------------------------------------------------------------- */

static uint32_t worker_of(const struct skep_planning *p, uint32_t machine)
{
	uint32_t low = 0, high = p->workers - 1; /* machines rise */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (p->machine[middle] < machine)
			low = middle + 1;
		else
			high = middle;
	}
	assert(p->machine[low] == machine);
	return low;
}

uint32_t skep_sum_members(const struct skep_planning *p, const uint32_t *stage_of, uint32_t stage, uint32_t *ret_member)
{
	uint32_t members = 0;
	for (uint32_t i = 0; i < p->workers; i++)
		if (stage_of[i] == stage)
			ret_member[members++] = i;
	return members;
}

bool skep_sum_order(const struct skep_planning *p, uint32_t stage, uint32_t *member, uint32_t members)
{
	const struct skep_scenario *s = p->scenario;
	bool exact, arranged;
	if (!s->ring_by_links || members < 3)
		return true;
	for (uint32_t rank = 0; rank < members; rank++)
		member[rank] = p->machine[member[rank]];
	double bytes = skep_ring_order_bytes(s, stage, members);
	arranged = skep_ring_arrange(&s->topology, member, members, bytes, &exact);
	for (uint32_t rank = 0; rank < members; rank++)
		member[rank] = worker_of(p, member[rank]);
	return arranged;
}

/* ---- beside the sums ------------------------------------------------------------------------------------------------ */

/* core/methods/tied_embeddings.c */
static double table_bytes(const struct skep_planning *p)
{
	return (double)skep_plan_encoded_bytes(&p->scenario->plan, 0, p->scenario->plan.tied);
}

void skep_tied_across(const struct skep_planning *p, const uint32_t *from, uint32_t froms, const uint32_t *to,
	uint32_t tos, skep_carry_sum *carry, void *context)
{
	for (uint32_t rank = 0; rank < froms && rank < tos; rank++)
		carry(context, from[rank], to[rank], table_bytes(p));
}

void skep_tied_along(const struct skep_planning *p, const uint32_t *member, uint32_t members, uint32_t others,
	skep_carry_sum *carry, void *context)
{
	for (uint32_t rank = others; others > 0 && rank < members; rank++)
		carry(context, member[rank - others], member[rank], table_bytes(p));
}

/* Each worker's passes gather and scatter for it, and it sends to the next one of its stage. */
static void gathered_bytes(const struct skep_planning *p, uint32_t stage, const double *share, const uint32_t *member,
	uint32_t members, skep_carry_sum *carry, void *context)
{
	double bytes = (double)skep_split_round_bytes(p->scenario, stage, members);
	for (uint32_t rank = 0; bytes > 0 && rank < members; rank++)
		carry(context, member[rank], member[rank + 1 < members ? rank + 1 : 0], share[member[rank]] * bytes);
}

/* By rank, as the ring has them. Without the memory to order them, by their numbers. */
static uint32_t list(const struct skep_planning *p, const uint32_t *stage_of, uint32_t stage, uint32_t *ret_member)
{
	uint32_t members = skep_sum_members(p, stage_of, stage, ret_member);
	skep_sum_order(p, stage, ret_member, members);
	return members;
}

void skep_round_bytes(const struct skep_planning *p, const uint32_t *stage_of, const double *share, uint32_t *scratch,
	skep_carry_sum *carry, void *context)
{
	uint32_t last = p->stages - 1;
	for (uint32_t stage = 0; stage < p->stages; stage++) {
		uint32_t members = list(p, stage_of, stage, scratch);
		skep_sum_bytes(p, stage, scratch, members, carry, context);
		gathered_bytes(p, stage, share, scratch, members, carry, context);
	}
	if (p->scenario->plan.tied == 0 || last == 0)
		return;
	uint32_t *first_ones = scratch, firsts = list(p, stage_of, 0, first_ones);
	uint32_t *last_ones = scratch + firsts, lasts = list(p, stage_of, last, last_ones);
	skep_tied_across(p, first_ones, firsts, last_ones, lasts, carry, context);
	skep_tied_across(p, last_ones, lasts, first_ones, firsts, carry, context);
	skep_tied_along(p, first_ones, firsts, lasts, carry, context);
	skep_tied_along(p, last_ones, lasts, firsts, carry, context);
}
