/* SPDX-License-Identifier: Apache-2.0
 *
 * sharded.c - steps in shards (plan->sharded), for devices and for the books.
 *
 * A device that has stepped knows its shard of the new parameters, and nothing else of them but what is not trained, until it
 * has stored what others have made; what it gives away it must know. The books demand (I26) that each element is stepped once in
 * a step, by the worker that has stepped it ever since the run began, and that all members end with all of the last step; and
 * that a run in which a worker is fenced that has a shard fails, for no other reason than that.
 */
#include "tests/cluster/ledger_internal.h"

#include <string.h>

/* ---- devices ------------------------------------------------------------------------------------------------------ */

static uint32_t trained(const struct skep_plan *plan, uint32_t stage)
{
	return device_trained_mask(plan, stage) & device_chunk_mask(plan, stage, 0, 1);
}

uint32_t device_known_after_step(const struct skep_plan *plan, const struct skep_op *op, uint32_t known)
{
	return known & ~(trained(plan, op->stage % plan->stages) & ~device_shard_mask(plan, op, op->rank));
}

static uint32_t range_of(const struct skep_op *op)
{
	return ((1u << op->count) - 1) << op->first;
}

const char *device_give_shard(
	const struct device *device, const struct skep_plan *plan, const struct skep_op *op, uint64_t *ret)
{
	uint32_t at = device_place(plan, op->stage, op->round + 1);
	if (device->version[at] != op->round + 1)
		return "it gives parameters of a step that it has not made";
	if (range_of(op) & ~device->known[at])
		return "it gives parameters that it does not have";
	memcpy(ret, device->parameter[at], CLUSTER_ELEMENTS * sizeof(*ret));
	return NULL;
}

const char *device_take_shard(struct device *device, const struct skep_plan *plan, const struct skep_op *op,
	const struct tensor *in, struct effect *effect)
{
	uint32_t at = device_place(plan, op->stage, op->round + 1);
	if (in->stage != op->stage || in->round != op->round || in->first != op->first || in->count != op->count)
		return "the shard is of another step, or of other elements";
	if (device->version[at] != op->round + 1)
		return "it takes parameters of a step of which it has not made its own";
	if (range_of(op) & device->known[at])
		return "it takes parameters that it has already";
	for (uint64_t e = op->first; e < op->first + op->count; e++)
		device->parameter[at][e] = in->value[e];
	device->known[at] |= range_of(op);
	memcpy(effect->parameter, device->parameter[at], sizeof(effect->parameter));
	effect->known = device->known[at];
	return NULL;
}

/* ---- the books ---------------------------------------------------------------------------------------------------- */

static void stepped(struct ledger *ledger, struct skep_peer who, const struct skep_op *op)
{
	struct cell *cell = &ledger->round[op->round].cell[op->stage];
	uint32_t mask = device_shard_mask(ledger->plan, op, op->rank) & trained(ledger->plan, op->stage);
	for (uint32_t e = 0; e < CLUSTER_ELEMENTS; e++) {
		uint32_t *owner = &ledger->shard_owner[op->stage][e];
		if (!(mask >> e & 1))
			continue;
		if (cell->stepped >> e & 1 || (*owner != 0 && *owner != who.index + 1))
			verdict_break(ledger->verdict, "I26", op->round, op->stage, ANY,
				"worker %u steps element %u, which %s", who.index, e,
				cell->stepped >> e & 1 ? "is stepped already" : "is another worker's");
		*owner = who.index + 1;
	}
	cell->stepped |= mask;
}

void sharded_did(struct ledger *ledger, struct skep_peer who, const struct skep_op *op, const struct effect *effect)
{
	if (op->kind == SKEP_OP_STEP && ledger->plan->sharded)
		stepped(ledger, who, op);
	if (op->kind != SKEP_OP_COPY_SHARD && op->kind != SKEP_OP_STORE_SHARD)
		return;
	struct cell *cell = &ledger->round[op->round].cell[op->stage];
	if (!cell->committed || !books_holder(ledger, cell, who)->stepped)
		verdict_break(ledger->verdict, "I26", op->round, op->stage, ANY,
			"worker %u gathers parameters of a step that it has not made", who.index);
	if (op->kind == SKEP_OP_STORE_SHARD)
		books_check_parameters(ledger, who, op->round + 1, op->stage, effect);
}

void sharded_lost(struct ledger *ledger, const struct skep_note *note)
{
	const struct membership *gone = &ledger->membership[note->peer.index];
	if (!ledger->plan->sharded || gone->in || ledger->plan->first_stage_of[note->peer.index] != note->stage)
		verdict_break(ledger->verdict, "I26", note->round, note->stage, ANY,
			"worker %u is said to have taken a shard along, and it had none, or it is there",
			note->peer.index);
	ledger->shard_lost = true;
}

/* All members have all of the last step, of which each element was stepped, as those of all steps before. */
void sharded_end(struct ledger *ledger, const uint32_t *epoch)
{
	const struct skep_plan *plan = ledger->plan;
	for (uint32_t s = 0; plan->sharded && s < plan->stages; s++) {
		for (uint32_t r = plan->first_round; r < ledger->rounds_closed; r++)
			if (trained(plan, s) & ~ledger->round[r].cell[s].stepped)
				verdict_break(ledger->verdict, "I26", r, s, ANY,
					"no worker has stepped some elements of stage %u in round %u", s, r);
		for (uint32_t w = 0; w < plan->workers; w++) {
			const struct membership *m = &ledger->membership[w];
			uint32_t all = device_chunk_mask(plan, s, 0, 1);
			if (plan->first_stage_of[w] != s)
				continue;
			if (!m->in)
				verdict_break(ledger->verdict, "I26", ANY, s, ANY,
					"the run ends well, and worker %u was fenced with its shard", w);
			else if (epoch[w] == m->peer.epoch && (m->known & all) != all)
				verdict_break(ledger->verdict, "I26", ANY, s, ANY,
					"worker %u ends the run without all of the parameters", w);
		}
	}
}

double sharded_squares(const struct skep_plan *plan, uint32_t stage, uint32_t members, const uint64_t *sum)
{
	struct skep_op op = {.stage = (uint16_t)stage, .members = members};
	double squares = 0;
	for (uint32_t rank = 0; rank < (members > 1 && plan->sharded ? members : 1); rank++)
		squares += symbol_squares(plan, stage, device_shard_mask(plan, &op, rank), sum);
	return squares;
}
