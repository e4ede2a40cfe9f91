/* SPDX-License-Identifier: Apache-2.0
 *
 * sums.c - see sums.h.
 */
#include "planning/problem/sums.h"

#include <assert.h>
#include <math.h>

#include "core/collective/collective.h"

uint64_t skep_sum_elements(const struct skep_planning *p, uint32_t stage)
{
	const struct skep_plan *plan = &p->scenario->plan;
	return skep_plan_trained(plan, stage) / skep_plan_fragments(plan);
}

static uint32_t members_max(const struct skep_planning *p)
{
	return skep_collective_has_roster(p->scenario->plan.collective) ? SKEP_ROSTER_MAX : UINT32_MAX;
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
	skep_carry_sum *carry;
	void *context;
};

static void carry_message(void *context, uint32_t from, uint32_t to, uint64_t bytes)
{
	const struct carried *c = context;
	if (bytes > 0)
		c->carry(c->context, c->member[from], c->member[to], (double)bytes);
}

/* Vectors that an edge of a circle of all members carries; 0: they are no circle. */
static double around(const struct skep_plan *plan, uint32_t members)
{
	double n = members, group = plan->group_size > 1 ? plan->group_size : 1;
	if (plan->collective == SKEP_COLLECTIVE_BROADCAST)
		return ceil(n / group) * (n - 1) / n;
	return plan->collective == SKEP_COLLECTIVE_RING || plan->collective == SKEP_COLLECTIVE_FUSED ? 2 * (n - 1) / n
	                                                                                             : 0;
}

void skep_sum_bytes(const struct skep_planning *p, uint32_t stage, const uint32_t *member, uint32_t members,
	skep_carry_sum *carry, void *context)
{
	struct carried carried = {member, carry, context};
	struct skep_plan whole = p->scenario->plan;
	double vectors = around(&whole, members);
	whole.sync_chunks = 1;                       /* in how many messages it travels changes no byte but headers */
	if (members < 2 || members > members_max(p)) /* with more it is not read */
		return;
	if (vectors == 0)
		tell(p, &whole, stage, member, members, carry_message, &carried);
	for (uint32_t rank = 0; vectors > 0 && rank < members; rank++)
		carry(context, member[rank], member[rank + 1 < members ? rank + 1 : 0],
			vectors * p->reduced_bytes[stage]);
}
