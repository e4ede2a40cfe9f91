/* SPDX-License-Identifier: Apache-2.0
 *
 * inner.c - periodic sync, for devices and for the books: inner steps, the pseudo-gradient, and when it has to be there.
 *
 * A device moves what its accumulator holds aside with each INNER_STEP, and PSEUDO_GRAD puts all of that back. So what the
 * members sum is right exactly if each has made a step on everything that it has counted, and has said how much that was.
 */
#include "tests/cluster/ledger_internal.h"

#include <string.h>

/* ---- devices ----------------------------------------------------------------------------------------------------- */

static const char *step(struct device *d, const struct skep_op *op)
{
	uint32_t r = op->round;
	if (op->microbatches == 0 && (!d->pseudo[r] || d->inner_counted[r] > 0))
		return "it clears what is no pseudo-gradient";
	if (op->microbatches > 0 && (d->pseudo[r] || op->microbatches != d->inner_counted[r]))
		return "an inner step is of another number of microbatches than the accumulator holds";
	for (uint32_t e = 0; e < CLUSTER_ELEMENTS; e++) {
		d->inner[r][e] += op->microbatches > 0 ? d->accumulator[r][e] : 0;
		d->accumulator[r][e] = 0;
	}
	d->inner_total[r] += d->inner_counted[r];
	d->inner_counted[r] = d->pseudo_from[r] = 0;
	d->pseudo[r] = false;
	return NULL;
}

/* Elements from the last to the first; the last part has stepped on all. */
static const char *part(struct device *d, const struct skep_op *op)
{
	uint32_t r = op->round;
	if (op->inner != d->inner_counted[r] || op->microbatches != d->inner_counted[r] + d->inner_total[r])
		return "a part steps on another number of microbatches than the accumulator holds, or weighs another one";
	for (uint64_t e = op->first; e < op->first + op->count; e++) {
		d->inner[r][e] += d->accumulator[r][e];
		d->accumulator[r][e] = d->inner[r][e];
	}
	d->pseudo_from[r] = (uint32_t)op->first;
	d->pseudo[r] = op->part + 1 == op->parts;
	d->inner_total[r] += d->pseudo[r] ? d->inner_counted[r] : 0;
	d->inner_counted[r] = d->pseudo[r] ? 0 : d->inner_counted[r];
	return NULL;
}

static const char *pseudo(struct device *d, const struct skep_op *op)
{
	uint32_t r = op->round;
	if (d->pseudo[r] || d->inner_counted[r] > 0 || d->inner_total[r] == 0)
		return "it has a pseudo-gradient already, or nothing to make one of, or has not stepped on the rest";
	if (op->microbatches != d->inner_total[r])
		return "its pseudo-gradient has another weight than what it has counted";
	memcpy(d->accumulator[r], d->inner[r], sizeof(d->accumulator[r]));
	d->pseudo[r] = true;
	return NULL;
}

const char *device_inner_part(struct device *d, const struct skep_op *op)
{
	return op->inner > 0 ? part(d, op) : NULL;
}

/* Of a round in which the stage does not sum: what it has counted is stepped on, and no more than that. */
static const char *without_sum(const struct device *d, const struct skep_op *op)
{
	if (op->kind != SKEP_OP_STEP)
		return "it sums, or writes a pseudo-gradient, in a round in which its stage does not sum";
	return d->inner_counted[op->round] > 0 ? "the round ends, and it has not stepped on the rest" : NULL;
}

const char *device_inner(struct device *d, const struct skep_plan *plan, const struct skep_op *op)
{
	uint32_t r = op->round;
	if (op->kind != SKEP_OP_INNER_STEP && op->kind != SKEP_OP_BACKWARD && !inner_sums(plan, op->stage, r))
		return without_sum(d, op);
	if (op->kind == SKEP_OP_INNER_STEP)
		return step(d, op);
	if (op->kind == SKEP_OP_PSEUDO_GRAD)
		return pseudo(d, op);
	if (op->kind == SKEP_OP_BACKWARD) {
		d->inner_counted[r] += !op->uncounted && op->part == 0;
		return d->pseudo[r] && !op->uncounted ? "it adds to a pseudo-gradient" : NULL;
	}
	bool has = d->inner_counted[r] + d->inner_total[r] > 0; /* STEP, and what reads the accumulator for a sum */
	if (op->kind != SKEP_OP_STEP && op->first >= d->pseudo_from[r] && d->pseudo_from[r] > 0)
		return NULL; /* whose part of BACKWARD is done */
	return has && !d->pseudo[r] ? "what it has counted is no pseudo-gradient yet" : NULL;
}

/* ---- the books --------------------------------------------------------------------------------------------------- */

/* Steps of a worker's own share are equal, but for the last one before the sum; those by the round's progress are no more than
 * the round has. What is run again is another matter; and with delayed updates a worker may hear of other members in between. */
static void check_step(struct ledger *ledger, struct holder *holder, const struct skep_op *op)
{
	const struct skep_plan *plan = ledger->plan;
	bool late = plan->on_loss == SKEP_ON_LOSS_REPORT && holder->inner_short;
	bool often = plan->on_loss == SKEP_ON_LOSS_REPORT && !plan->inner.by_share && !skep_plan_fixed(plan) &&
	             holder->inner_steps > inner_round_steps(plan, op->round);
	if (holder->inner_share > 0 && op->microbatches != holder->inner_share)
		holder->inner_short = true; /* nothing may come after it */
	if (holder->inner_share == 0)
		holder->inner_share = op->microbatches;
	if ((late && plan->inner.by_share && !plan->delayed) || often)
		verdict_break(ledger->verdict, "I15", op->round, op->stage, ANY,
			"worker %u makes inner step %u of round %u, of %u microbatches after steps of %u; the round has %u",
			holder->peer.index, holder->inner_steps, op->round, op->microbatches, holder->inner_share,
			inner_round_steps(plan, op->round));
}

/* Step s of a cycle of H is of the turn in which its end, as a part of the cycle, lies. */
uint32_t inner_round_steps(const struct skep_plan *plan, uint32_t round)
{
	uint32_t steps = 0;
	if (plan->inner.cycle == 0)
		return plan->inner.steps;
	for (uint32_t s = 0; s < plan->inner.cycle; s++)
		steps += ((s + 1) * plan->inner.fragments + plan->inner.cycle - 1) / plan->inner.cycle - 1 ==
		         round % plan->inner.fragments;
	return steps;
}

uint32_t inner_quota(const struct skep_plan *plan, uint32_t round)
{
	uint32_t batch = plan->inner.steps > 0 ? plan->microbatches / plan->inner.steps : 0;
	uint32_t missing = plan->inner.steps - inner_round_steps(plan, round);
	return missing == 0 ? plan->microbatches : batch * (plan->inner.steps - missing);
}

bool inner_sums(const struct skep_plan *plan, uint32_t stage, uint32_t round)
{
	for (uint32_t r = 0, since = 0; plan->inner.sum_every; r++) {
		since = since == plan->inner.sum_every[stage] ? 1 : since + 1;
		if (r == round)
			return since == plan->inner.sum_every[stage];
	}
	return true;
}

/* A round sums and steps its fragment, in turn, and nothing else. */
void inner_of_fragment(struct ledger *ledger, struct skep_peer who, const struct skep_op *op)
{
	const struct skep_plan *plan = ledger->plan;
	uint64_t first, count;
	if (plan->inner.fragments <= 1)
		return;
	const struct skep_stage_plan *s = &plan->stage[op->stage];
	skep_chunk_range(s->parameters - s->frozen - s->frozen_end, op->round % plan->inner.fragments,
		plan->inner.fragments, &first, &count);
	first += s->frozen;
	if (op->first != first || op->count != count)
		verdict_break(ledger->verdict, "I15", op->round, op->stage, ANY,
			"worker %u, %s of round %u: elements %u..%u, and its fragment is %u..%u", who.index,
			skep_op_name(op->kind), op->round, (unsigned)op->first, (unsigned)(op->first + op->count),
			(unsigned)first, (unsigned)(first + count));
}

void inner_did(struct ledger *ledger, struct skep_peer who, const struct skep_op *op)
{
	struct holder *holder = books_holder(ledger, &ledger->round[op->round].cell[op->stage], who);
	if (op->kind == SKEP_OP_BACKWARD) {
		holder->inner += op->inner;
		holder->inner_steps++;
		holder->pseudo = op->microbatches;
		return;
	}
	if (op->kind == SKEP_OP_PSEUDO_GRAD) {
		inner_of_fragment(ledger, who, op);
		holder->pseudo = op->microbatches;
		return;
	}
	holder->inner += op->microbatches;
	holder->inner_steps += op->microbatches > 0;
	holder->pseudo = 0;
	if (op->microbatches > 0)
		check_step(ledger, holder, op);
}

/* A member has stepped on all that it added, and its pseudo-gradient weighs so much. */
void inner_summed(struct ledger *ledger, const struct holder *holder, const struct skep_op *op)
{
	uint32_t added = books_bits(ledger, holder->added);
	if (ledger->plan->inner.steps == 0)
		return;
	inner_of_fragment(ledger, holder->peer, op);
	uint32_t weight = inner_sums(ledger->plan, op->stage, op->round) ? added : 0;
	if (holder->inner != added || holder->pseudo != weight)
		verdict_break(ledger->verdict, "I15", op->round, op->stage, ANY,
			"worker %u has added %u microbatches, stepped on %u, and its pseudo-gradient weighs %u",
			holder->peer.index, added, holder->inner, holder->pseudo);
}

/* A pass reads what the newest step has left, no older than rounds may be, and a step may come between the two passes. */
void inner_read(struct ledger *ledger, struct skep_peer who, const struct skep_op *op, const struct effect *effect)
{
	struct holder *holder = books_holder(ledger, &ledger->round[op->round].cell[op->stage], who);
	uint32_t most = ledger->plan->delayed && op->round > 0;
	if (op->kind == SKEP_OP_BACKWARD)
		holder->version[op->microbatch] = effect->version;
	if (effect->version > op->round || op->round - effect->version > most)
		verdict_break(ledger->verdict, "I11", op->round, op->stage, op->microbatch,
			"worker %u, %s of round %u, on what version %u has become, and %u may be lacking", who.index,
			skep_op_name(op->kind), op->round, effect->version, most);
}
