/* SPDX-License-Identifier: Apache-2.0
 *
 * rehearsal.c - see loads.h. A transfer's number is its own over all members; with it its message is named.
 */
#include "planning/expected/loads.h"

#include <stdlib.h>
#include <string.h>

#include "core/collective/collective.h"
#include "core/record.h"
#include "planning/problem/sums.h"
#include "topologies/network/network.h"

/* Messages of all stages times the pairs that may share lines: what the network costs to solve. Some 50 ms. */
#define LONGEST 8e6

struct party { /* a member of a stage's sum */
	struct skep_scheme scheme;
	uint64_t *fact;    /* [size + 1] */
	uint32_t others;   /* the first party of its stage */
	uint32_t transfer; /* its first one, over all */
	uint32_t stage;
};

struct rehearsal {
	struct skep_loads *l;
	struct skep_network *network;
	struct party *party;
	uint32_t *machine; /* [parties] */
	uint32_t *of;      /* [transfers] the party */
	bool *arrived, *done;
	uint32_t parties, transfers;
	skep_time now;
	bool no_memory;
};

/* ---- before -------------------------------------------------------------------------------------------------------- */

static void begin_stage(struct rehearsal *r, uint32_t stage, uint64_t **fact)
{
	const struct skep_planning *p = r->l->p;
	struct skep_peer roster[SKEP_ROSTER_MAX];
	uint32_t first = r->parties, size = 0;
	for (uint32_t i = 0; i < p->workers; i++)
		if (r->l->stage_of[i] == stage) {
			r->machine[first + size] = p->machine[i];
			roster[size++] = (struct skep_peer){p->machine[i], 1};
		}
	for (uint32_t rank = 0; size > 1 && rank < size; rank++) {
		struct party *party = &r->party[r->parties++];
		*party = (struct party){.fact = *fact, .others = first, .transfer = r->transfers, .stage = stage};
		skep_scheme_init(&party->scheme, &p->scenario->plan, stage, skep_sum_elements(p, stage), rank, size,
			roster, *fact);
		r->transfers += skep_scheme_transfers(&party->scheme);
		*fact += size + 1;
	}
}

static bool begin(struct rehearsal *r)
{
	for (uint32_t i = 0; i < r->parties; i++)
		for (uint32_t n = 0; n < skep_scheme_transfers(&r->party[i].scheme); n++)
			r->of[r->party[i].transfer + n] = i;
	return (r->network = skep_network_create(&r->l->p->scenario->topology)) != NULL;
}

/* ---- transfer by transfer ------------------------------------------------------------------------------------------ */

static struct skep_scheme_transfer transfer_at(const struct party *party, uint32_t number)
{
	return skep_scheme_transfer_at(&party->scheme, party->fact, number);
}

static void arrive(struct rehearsal *r, uint32_t transfer);

static void send_on(struct rehearsal *r, const struct party *party, uint32_t number)
{
	struct skep_scheme_transfer transfer = transfer_at(party, number);
	uint64_t bytes = skep_scheme_payload_bytes(&r->l->p->scenario->plan, party->stage, &transfer);
	for (uint32_t nth = 0; nth < transfer.hops; nth++) {
		struct skep_hop hop = skep_scheme_hop(&party->scheme, party->fact, number, nth);
		uint32_t to = party->others + hop.to;
		uint64_t sent = SKEP_HEADER_BYTES + (hop.taken ? 0 : bytes), tag = r->party[to].transfer + hop.number;
		if (hop.to == party->scheme.rank)
			arrive(r, (uint32_t)tag);
		else if (!skep_network_start(
				 r->network, r->now, r->machine[party - r->party], r->machine[to], sent, tag))
			r->no_memory = true;
	}
}

/* It is done, and with it what follows and need not wait. */
static void finish(struct rehearsal *r, const struct party *party, uint32_t number)
{
	uint32_t transfers = skep_scheme_transfers(&party->scheme);
	for (;;) {
		send_on(r, party, number);
		r->done[party->transfer + number] = true;
		r->l->reduce_s[party->stage] = 1e-9 * (double)r->now;
		if (++number == transfers)
			return;
		struct skep_scheme_transfer next = transfer_at(party, number);
		if (!next.follows || (next.arrives && !r->arrived[party->transfer + number]))
			return;
	}
}

static void arrive(struct rehearsal *r, uint32_t transfer)
{
	const struct party *party = &r->party[r->of[transfer]];
	uint32_t number = transfer - party->transfer;
	r->arrived[transfer] = true;
	if (!transfer_at(party, number).follows || r->done[transfer - 1])
		finish(r, party, number);
}

static void play(struct rehearsal *r)
{
	uint64_t tag[SKEP_NETWORK_ARRIVALS];
	for (uint32_t i = 0; i < r->parties; i++) {
		const struct party *party = &r->party[i];
		uint32_t transfers = skep_scheme_transfers(&party->scheme);
		for (uint32_t n = skep_scheme_start(&party->scheme, party->fact, 0); n < transfers;
			n = skep_scheme_start(&party->scheme, party->fact, n + 1))
			finish(r, party, n);
	}
	for (skep_time next; !r->no_memory && (next = skep_network_next(r->network)) != SKEP_TIME_NEVER;) {
		uint32_t count = skep_network_advance(r->network, next, tag, SKEP_NETWORK_ARRIVALS);
		r->now = next;
		for (uint32_t i = 0; i < count; i++)
			arrive(r, (uint32_t)tag[i]);
	}
}

/* ---- the whole ----------------------------------------------------------------------------------------------------- */

static uint32_t members_of(const struct skep_loads *l, uint32_t stage)
{
	return l->count[stage] > 1 ? l->count[stage] : 0;
}

struct talk { /* of a sum */
	double messages, pairs;
	uint64_t heard[SKEP_ROSTER_MAX / 64 + 1]; /* by the rank that sends now */
	uint32_t from;
};

static void count_message(void *context, uint32_t from, uint32_t to, uint64_t bytes)
{
	struct talk *t = context;
	uint64_t bit = UINT64_C(1) << to % 64;
	(void)bytes;
	if (from != t->from)
		memset(t->heard, 0, sizeof t->heard);
	t->from = from;
	t->messages++;
	t->pairs += (t->heard[to / 64] & bit) == 0;
	t->heard[to / 64] |= bit;
}

bool skep_rehearsal_short(const struct skep_planning *p)
{
	const struct skep_plan *plan = &p->scenario->plan;
	uint32_t member[SKEP_ROSTER_MAX], even = (p->workers + p->stages - 1) / p->stages;
	double messages = 0, pairs = 0;
	if (plan->async.on || plan->gossip || plan->reduction.collective <= SKEP_COLLECTIVE_FUSED ||
		plan->reduction.collective >= SKEP_COLLECTIVES || p->workers > SKEP_ROSTER_MAX)
		return false;
	for (uint32_t i = 0; i < even; i++)
		member[i] = i;
	for (uint32_t s = 0; s < p->stages; s++) {
		struct talk talk = {.from = UINT32_MAX};
		if (skep_sum_elements(p, s) == 0)
			return false;
		skep_sum_messages(p, s, member, even, count_message, &talk);
		messages += talk.messages;
		pairs += talk.pairs;
	}
	return messages * pairs <= LONGEST;
}

bool skep_rehearsal_reduce(struct skep_loads *l)
{
	struct rehearsal r = {.l = l};
	size_t parties = 0, facts = 0;
	for (uint32_t s = 0; s < l->p->stages; s++) {
		parties += l->count[s];
		facts += (size_t)members_of(l, s) * (members_of(l, s) + 1);
		l->reduce_s[s] = 0;
	}
	uint64_t *fact = calloc(facts + 1, sizeof *fact), *free_fact = fact;
	r.party = calloc(parties + 1, sizeof *r.party);
	r.machine = calloc(parties + 1, sizeof *r.machine);
	bool fine = fact && r.party && r.machine;
	for (uint32_t s = 0; fine && s < l->p->stages; s++)
		begin_stage(&r, s, &free_fact);
	r.of = calloc(r.transfers + 1u, sizeof *r.of);
	r.arrived = calloc(r.transfers + 1u, sizeof *r.arrived);
	r.done = calloc(r.transfers + 1u, sizeof *r.done);
	fine = fine && r.of && r.arrived && r.done && begin(&r);
	if (fine)
		play(&r);
	skep_network_destroy(r.network);
	free(fact);
	free(r.party);
	free(r.machine);
	free(r.of);
	free(r.arrived);
	free(r.done);
	return fine && !r.no_memory;
}
