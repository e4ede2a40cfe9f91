/* SPDX-License-Identifier: Apache-2.0
 *
 * gossip.c - periodic sync in pairs, for devices and for the books: what a member brings, who sums with whom, and what each
 * holds, since no two need hold the same.
 *
 * A member brings its parameters times what it has counted, and what its inner steps have come to. Sums wrap, so the sum of a
 * pair is right exactly if it has the parameters of both as they are before the step, each with its weight, and the
 * microbatches that both have counted.
 */
#include "tests/cluster/fault_mix.h"
#include "tests/cluster/ledger_internal.h"

#include <string.h>

/* ---- devices ----------------------------------------------------------------------------------------------------- */

/* Beside what PSEUDO_GRAD of other methods makes of the inner steps. */
void device_pair(struct device *device, const struct skep_op *op)
{
	for (uint32_t e = 0; e < CLUSTER_ELEMENTS && op->kind == SKEP_OP_PSEUDO_GRAD; e++)
		device->accumulator[op->round][e] += op->microbatches * device->parameter[0][e];
}

/* ---- the weather ------------------------------------------------------------------------------------------------- */

/* What does not go with it scenarios refuse. */
void weather_pairs(struct skep_plan *plan)
{
	plan->gossip = true;
	plan->delayed = plan->inner.by_share = plan->reduction.gather = plan->clip = false;
	plan->on_loss = SKEP_ON_LOSS_REPORT;
	plan->inner.deadline = false;
	plan->inner.fragments = plan->inner.cycle = plan->inner.overlap = plan->candidates.count =
		plan->candidates.rounds = 0;
}

/* ---- the books --------------------------------------------------------------------------------------------------- */

/* A chunk may still be on its way when the worker that held it lives again. */
static struct replica *replica_at(struct ledger *ledger, struct skep_peer who, uint32_t version)
{
	return &ledger->replica[who.index][version][who.epoch % REPLICAS_KEPT];
}

static bool kept_of(const struct replica *replica, uint32_t stage)
{
	return replica->epoch > 0 && replica->stage == stage;
}

/* What a worker holds from now on. */
static void hold(
	struct ledger *ledger, struct skep_peer who, uint32_t version, uint32_t stage, const struct effect *effect)
{
	struct replica *replica = replica_at(ledger, who, version);
	struct membership *membership = &ledger->membership[who.index];
	*replica = (struct replica){.epoch = who.epoch, .stage = stage, .known = effect->known};
	memcpy(replica->parameter, effect->parameter, sizeof replica->parameter);
	if (membership->peer.epoch == who.epoch)
		membership->known = effect->known;
}

/* All of the first allocation begin the run with the same. */
static uint64_t held(struct ledger *ledger, struct skep_peer who, uint32_t version, uint32_t stage, uint32_t e)
{
	const struct replica *replica = replica_at(ledger, who, version);
	bool kept = kept_of(replica, stage) && replica->epoch == who.epoch;
	return kept ? replica->parameter[e] : books_drawn(ledger, stage, e);
}

/* The group is of those that REDUCE has given the same attempt: one or two. */
void gossip_told(struct ledger *ledger, const struct skep_message *m)
{
	struct cell *cell = &ledger->round[m->round].cell[m->stage];
	struct holder *holder = books_holder(ledger, cell, m->to);
	holder->attempt =
		m->attempt > holder->attempt ? m->attempt : holder->attempt; /* what came back is sent again */
	if (m->u.reduce.size < 1 || m->u.reduce.size > 2)
		verdict_break(
			ledger->verdict, "I15", m->round, m->stage, ANY, "a group of %u members", m->u.reduce.size);
}

/* The members that were told of the same sum. */
static uint32_t group_of(struct ledger *ledger, const struct cell *cell, uint32_t attempt, const struct holder **ret)
{
	uint32_t members = 0;
	for (uint32_t h = cell->first_holder; h != 0; h = ledger->holder[h].next)
		if (ledger->holder[h].member && ledger->holder[h].attempt == attempt && members < 2)
			ret[members++] = &ledger->holder[h];
	return members;
}

static void stepped(struct ledger *ledger, struct skep_peer who, const struct skep_op *op, const struct effect *effect)
{
	struct cell *cell = &ledger->round[op->round].cell[op->stage];
	struct holder *holder = books_holder(ledger, cell, who);
	const struct holder *group[2] = {NULL};
	if (!holder->member || holder->stepped)
		verdict_break(ledger->verdict, "I1b", op->round, op->stage, ANY,
			"worker %u (epoch %u) steps twice, or is no member of a committed reduction", who.index,
			who.epoch);
	holder->stepped = true;
	inner_summed(ledger, holder, op);
	uint32_t members = group_of(ledger, cell, op->attempt, group), counted = 0;
	uint64_t sum[CLUSTER_ELEMENTS] = {0};
	for (uint32_t i = 0; i < members; i++) {
		uint32_t own = books_bits(ledger, group[i]->added);
		books_add_own(ledger, group[i], op->round, op->stage, sum);
		for (uint32_t e = 0; e < CLUSTER_ELEMENTS && own > 0; e++)
			sum[e] += own * held(ledger, group[i]->peer, op->round, op->stage, e);
		counted += own;
	}
	if (op->members != members || op->microbatches != counted)
		verdict_break(ledger->verdict, "I1b", op->round, op->stage, ANY,
			"worker %u steps with %u members and divisor %u; %u members of its pair counted %u", who.index,
			op->members, op->microbatches, members, counted);
	for (uint32_t e = 0; e < ledger->plan->stage[op->stage].parameters && counted > 0; e++)
		if (device_trained_mask(ledger->plan, op->stage) >> e & 1 && sum[e] != effect->applied[e])
			verdict_break(ledger->verdict, "I1b", op->round, op->stage, ANY,
				"worker %u applies another element %u than the sum of what its pair holds and has counted",
				who.index, e);
	hold(ledger, who, op->round + 1, op->stage, effect);
}

static bool same_chunk(const struct ledger *ledger, const struct replica *replica, const struct skep_op *op,
	const struct effect *effect)
{
	uint32_t mask = device_chunk_mask(ledger->plan, op->stage, op->chunk, op->chunks);
	bool same = !replica || (kept_of(replica, op->stage) && (replica->known & mask) == mask);
	for (uint32_t e = 0; e < ledger->plan->stage[op->stage].parameters && same; e++)
		if (mask >> e & 1)
			same = effect->parameter[e] ==
			       (replica ? replica->parameter[e] : books_drawn(ledger, op->stage, e));
	return same;
}

/* What is loaded is what another one of the stage has held at that version. */
static void loaded(struct ledger *ledger, struct skep_peer who, const struct skep_op *op, const struct effect *effect)
{
	bool same = effect->version == ledger->plan->first_round && same_chunk(ledger, NULL, op, effect);
	for (uint32_t at = 0; at < ledger->plan->workers * REPLICAS_KEPT; at++) {
		uint32_t w = at / REPLICAS_KEPT, life = at % REPLICAS_KEPT;
		const struct replica *replica = &ledger->replica[w][effect->version][life];
		same |= (w != who.index || replica->epoch != who.epoch) && same_chunk(ledger, replica, op, effect);
	}
	if (!same)
		verdict_break(ledger->verdict, "I3", effect->version, op->stage, ANY,
			"worker %u loads chunk %u of stage %u, version %u, which no other worker has held", who.index,
			op->chunk, op->stage, effect->version);
	hold(ledger, who, effect->version, op->stage, effect);
}

/* What a worker keeps is its own. */
static void kept(struct ledger *ledger, struct skep_peer who, const struct skep_op *op, const struct effect *effect)
{
	struct kept *kept = &ledger->checkpoint[op->stage][op->round];
	for (uint32_t e = 0; e < ledger->plan->stage[op->stage].parameters; e++)
		if (held(ledger, who, op->round, op->stage, e) != effect->parameter[e])
			verdict_break(ledger->verdict, "I3", op->round, op->stage, ANY,
				"worker %u keeps another element %u of stage %u, version %u, than it holds", who.index,
				e, op->stage, op->round);
	kept->is = true;
	memcpy(kept->parameter, effect->parameter, sizeof kept->parameter);
}

bool gossip_did(struct ledger *ledger, struct skep_peer who, const struct skep_op *op, const struct effect *effect)
{
	switch (op->kind) {
	case SKEP_OP_STEP:
		if (books_valid(ledger, "an operation", op->round, op->stage, 0))
			stepped(ledger, who, op, effect);
		return true;
	case SKEP_OP_LOAD:
		loaded(ledger, who, op, effect);
		return true;
	case SKEP_OP_CHECKPOINT:
		kept(ledger, who, op, effect);
		return true;
	case SKEP_OP_RESTORE: /* ledger.c looks at what it restores */
		hold(ledger, who, op->version, op->stage, effect);
		return false;
	default:
		return false;
	}
}
