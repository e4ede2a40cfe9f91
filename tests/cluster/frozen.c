/* SPDX-License-Identifier: Apache-2.0
 *
 * frozen.c - what is not trained, for devices and for the books: which elements of a stage are, and what is neither changed,
 * nor summed, nor sent. It is worked out from the elements of the stages alone (frozen, frozen_end), not from what the plan
 * says of virtual stages.
 */
#include "tests/cluster/ledger_internal.h"

static uint32_t not_trained(const struct skep_plan *plan, uint32_t stage)
{
	const struct skep_stage_plan *s = &plan->stage[stage];
	uint32_t all = (1u << s->parameters) - 1;
	return ((1u << s->frozen) - 1) | (all & ~(all >> s->frozen_end));
}

uint32_t device_trained_mask(const struct skep_plan *plan, uint32_t stage)
{
	return ALL_KNOWN & ~not_trained(plan, stage);
}

/* Has the virtual stage, or one before it, an element that is trained? */
bool device_goes_back(const struct skep_plan *plan, uint32_t vstage)
{
	for (uint32_t v = 0; v <= vstage; v++)
		if (device_vstage_mask(plan, v) & device_chunk_mask(plan, v % plan->stages, 0, 1))
			return true;
	return false;
}

/* ---- the books --------------------------------------------------------------------------------------------------- */

/* What a pass through here needs to go backwards is nothing. */
static void check_pass(
	struct ledger *ledger, struct skep_peer who, const struct skep_op *op, const struct effect *effect)
{
	bool keeps = op->kind == SKEP_OP_FORWARD ? !buf_none(effect->stash)
	                                         : !buf_none(op->stash) || !buf_none(op->gradient);
	if (op->kind == SKEP_OP_RECOMPUTE || keeps)
		verdict_break(ledger->verdict, "I24", op->round, op->stage, op->microbatch,
			"worker %u, %s: it is for a gradient, and nothing is trained up to virtual stage %u", who.index,
			skep_op_name(op->kind), op->stage);
}

/* Sums, and parts of BACKWARD, are of elements that are trained; where none is there is no sum. */
static void check_range(struct ledger *ledger, struct skep_peer who, const struct skep_op *op)
{
	const struct skep_stage_plan *s = &ledger->plan->stage[op->stage % ledger->plan->stages];
	uint64_t end = s->parameters - s->frozen_end;
	bool sums = op->kind != SKEP_OP_BACKWARD;
	if (op->first < s->frozen || op->first + op->count > end || (sums && s->frozen == end))
		verdict_break(ledger->verdict, "I24", op->round, op->stage, ANY,
			"worker %u, %s: elements %u..%u, and of stage %u those of %u..%u are trained", who.index,
			skep_op_name(op->kind), (unsigned)op->first, (unsigned)(op->first + op->count), op->stage,
			(unsigned)s->frozen, (unsigned)end);
}

void frozen_did(struct ledger *ledger, struct skep_peer who, const struct skep_op *op, const struct effect *effect)
{
	const struct skep_plan *plan = ledger->plan;
	bool pass = op->kind == SKEP_OP_FORWARD || op->kind == SKEP_OP_BACKWARD || op->kind == SKEP_OP_RECOMPUTE;
	uint32_t stage = op->stage % plan->stages, frozen = not_trained(plan, stage) & effect->known;
	if (pass && !device_goes_back(plan, op->stage))
		check_pass(ledger, who, op, effect);
	if ((op->kind == SKEP_OP_BACKWARD && op->parts > 0) ||
		(skep_op_reduces(op->kind) && op->kind != SKEP_OP_NORM && plan->tied == 0))
		check_range(ledger, who, op);
	for (uint32_t e = 0; e < plan->stage[stage].parameters; e++)
		if (frozen >> e & 1 && effect->parameter[e] != books_drawn(ledger, stage, e))
			verdict_break(ledger->verdict, "I24", op->round, op->stage, ANY,
				"worker %u, %s: element %u of stage %u is not what it was, and it is not trained",
				who.index, skep_op_name(op->kind), e, stage);
}

/* Word that a microbatch is done goes back all the way; a gradient goes with it as long as something before is trained. */
void frozen_sent(struct ledger *ledger, struct skep_peer who, const struct skep_message *m)
{
	const struct skep_plan *plan = ledger->plan;
	bool back = m->kind == SKEP_MESSAGE_BACKWARD && m->stage > 0 && m->stage < skep_plan_vstages(plan);
	bool sum = m->kind == SKEP_MESSAGE_CHUNK && m->stage < plan->stages;
	uint32_t all = sum ? device_chunk_mask(plan, m->stage, 0, 1) : 0;
	bool gradient = !buf_none(m->payload) || m->payload_bytes > 0;
	if (back && gradient != device_goes_back(plan, m->stage - 1u))
		verdict_break(ledger->verdict, "I24", m->round, m->stage, m->microbatch,
			"worker %u sends virtual stage %u %s gradient", who.index, m->stage - 1u,
			gradient ? "a" : "no");
	if (sum && !(device_trained_mask(plan, m->stage) & all))
		verdict_break(ledger->verdict, "I24", m->round, m->stage, ANY,
			"worker %u sends a part of a sum of stage %u, of which nothing is trained", who.index,
			m->stage);
}
