/* SPDX-License-Identifier: Apache-2.0
 *
 * microbatches.c - the ledger's view of a microbatch under way: which machines its tensors may pass, how often it may go
 * through a stage, who may give it back, and what starts over when it is granted again.
 */
#include "tests/cluster/ledger_internal.h"

/* Work of an earlier pass may end after the microbatch was granted again: no worker waits for it. */
static bool earlier_pass(const struct ledger *ledger, uint32_t round, uint32_t microbatch, uint32_t attempt)
{
	return attempt < ledger->round[round].rerun[microbatch] >> 32;
}

static bool of_earlier_pass(const struct ledger *ledger, const struct skep_op *op)
{
	return earlier_pass(ledger, op->round, op->microbatch, op->attempt);
}

/* Is the stage among those that are to count the microbatch in this pass? */
static bool to_count(const struct ledger *ledger, const struct skep_op *op)
{
	uint64_t rerun = ledger->round[op->round].rerun[op->microbatch];
	return rerun == 0 || (op->stage >= (rerun >> 16 & 0xffff) && op->stage <= (rerun & 0xffff));
}

static bool visited_twice(const struct ledger *ledger, uint32_t stage)
{
	return ledger->plan->routing == SKEP_ROUTING_TRAINER && stage > 0 && stage + 1u < ledger->plan->stages;
}

/* Of the worker's stage, in the virtual stage that the operation is about. */
static bool seated_for(const struct ledger *ledger, struct skep_peer peer, const struct skep_op *op)
{
	return books_seated(ledger, peer, op->stage % ledger->plan->stages, op->round);
}

/* With peer routing the sender of what was dropped makes it once more: the same worker, and once. */
static bool repeats(const struct ledger *ledger, struct cell *cell, struct skep_peer who, const struct skep_op *op)
{
	const struct skep_peer *before = &cell->forwarder[op->microbatch];
	bool given_back = op->stage + 1u < ledger->plan->stages &&
	                  bit(ledger->round[op->round].cell[op->stage + 1].dropped, op->microbatch);
	if (ledger->plan->routing == SKEP_ROUTING_TRAINER || !given_back || bit(cell->again, op->microbatch) ||
		before->index != who.index || before->epoch != who.epoch)
		return false;
	set_bit(cell->again, op->microbatch);
	return true;
}

static void check_kept_word(struct ledger *ledger, struct skep_peer who, const struct skep_op *op)
{
	const struct cell *cell = &ledger->round[op->round].cell[op->stage];
	const struct skep_peer *dropper = &cell->dropper[op->microbatch];
	if (bit(cell->dropped, op->microbatch) && dropper->index == who.index && dropper->epoch == who.epoch)
		verdict_break(ledger->verdict, "I1", op->round, op->stage, op->microbatch,
			"worker %u works on microbatch %u, which it said it had dropped", who.index, op->microbatch);
}

/* Who gives a microbatch back has not begun it, and is the only one in office of the stage to do so. The word may be sent
 * again, even when the microbatch has been granted again. */
void travel_dropped(struct ledger *ledger, struct skep_peer who, const struct skep_message *m)
{
	struct cell *cell = &ledger->round[m->round].cell[m->stage];
	const struct skep_peer *forwarder = &cell->forwarder[m->microbatch], *dropper = &cell->dropper[m->microbatch];
	bool seated = books_seated(ledger, who, m->stage, m->round), known = bit(cell->dropped, m->microbatch);
	bool repeated = known && dropper->index == who.index && dropper->epoch == who.epoch;
	if (repeated || earlier_pass(ledger, m->round, m->microbatch, m->attempt))
		return;
	if (bit(cell->forwarded, m->microbatch) && forwarder->index == who.index && forwarder->epoch == who.epoch)
		verdict_break(ledger->verdict, "I1", m->round, m->stage, m->microbatch,
			"worker %u gives back microbatch %u, which it has worked on", who.index, m->microbatch);
	if (known && seated && books_seated(ledger, *dropper, m->stage, m->round))
		verdict_break(ledger->verdict, "I1", m->round, m->stage, m->microbatch,
			"microbatch %u was given back by worker %u, and now by worker %u", m->microbatch,
			dropper->index, who.index);
	if (seated || !known)
		cell->dropper[m->microbatch] = who;
	set_bit(cell->dropped, m->microbatch);
	ledger->given_back++;
}

/* A second forward pass: only where it counts nothing, and only if one of the two who did it is out of office. */
static bool may_go_again(const struct ledger *ledger, const struct cell *cell, const struct skep_op *op, bool seated)
{
	return visited_twice(ledger, op->stage) &&
	       (!seated || !seated_for(ledger, cell->forwarder[op->microbatch], op));
}

void travel_forward(struct ledger *ledger, struct skep_peer who, const struct skep_op *op, int64_t loss_nano)
{
	struct round *round = &ledger->round[op->round];
	struct cell *cell = &round->cell[op->stage];
	if (of_earlier_pass(ledger, op))
		return;
	if (!bit(round->issued, op->microbatch))
		verdict_break(ledger->verdict, "I5", op->round, op->stage, op->microbatch,
			"worker %u ran microbatch %u, which the directory never granted", who.index, op->microbatch);
	else if (op->stage == 0 &&
		 (round->owner[op->microbatch].index != who.index || round->owner[op->microbatch].epoch != who.epoch))
		verdict_break(ledger->verdict, "I4", op->round, 0, op->microbatch,
			"worker %u (epoch %u) issued microbatch %u, granted to worker %u (epoch %u)", who.index,
			who.epoch, op->microbatch, round->owner[op->microbatch].index,
			round->owner[op->microbatch].epoch);
	bool seated = seated_for(ledger, who, op);
	check_kept_word(ledger, who, op);
	if (bit(cell->forwarded, op->microbatch) && !may_go_again(ledger, cell, op, seated) &&
		!repeats(ledger, cell, who, op))
		verdict_break(ledger->verdict, "I1", op->round, op->stage, op->microbatch,
			"microbatch %u went forward through stage %u a second time, at worker %u", op->microbatch,
			op->stage, who.index);
	if (seated || !bit(cell->forwarded, op->microbatch))
		cell->forwarder[op->microbatch] = who;
	set_bit(cell->forwarded, op->microbatch);
	if (op->stage + 1u == skep_plan_vstages(ledger->plan))
		round->loss[op->microbatch] = loss_nano;
}

void travel_backward(struct ledger *ledger, struct skep_peer who, const struct skep_op *op)
{
	struct cell *cell = &ledger->round[op->round].cell[op->stage];
	struct holder *holder = books_holder(ledger, cell, who);
	if (of_earlier_pass(ledger, op) && !seated_for(ledger, who, op)) {
		set_bit(holder->added, op->microbatch); /* it is fenced and has not heard: a sum that is never used */
		return;
	}
	if (of_earlier_pass(ledger, op) || op->uncounted == to_count(ledger, op))
		verdict_break(ledger->verdict, "I12", op->round, op->stage, op->microbatch,
			"worker %u, pass %u: microbatch %u is %scounted in stage %u, but its last grant says otherwise",
			who.index, op->attempt, op->microbatch, op->uncounted ? "not " : "", op->stage);
	if (!visited_twice(ledger, op->stage)) /* else the gradient is another visit, to any worker of that stage */
		check_kept_word(ledger, who, op);
	if (bit(cell->backwarded, op->microbatch))
		verdict_break(ledger->verdict, "I1", op->round, op->stage, op->microbatch,
			"microbatch %u went backward through stage %u a second time, at worker %u", op->microbatch,
			op->stage, who.index);
	if (holder->member)
		verdict_break(ledger->verdict, "I1", op->round, op->stage, op->microbatch,
			"worker %u added microbatch %u after the reduction it belongs to was committed", who.index,
			op->microbatch);
	set_bit(cell->backwarded, op->microbatch);
	if (op->uncounted)
		return;
	if (bit(holder->added, op->microbatch))
		verdict_break(ledger->verdict, "I12", op->round, op->stage, op->microbatch,
			"worker %u adds microbatch %u a second time", who.index, op->microbatch);
	set_bit(holder->added, op->microbatch);
}

static void clear_bit(uint64_t *map, uint32_t at)
{
	map[at / 64] &= ~(UINT64_C(1) << at % 64);
}

/* The microbatch starts over: it may go through every stage again. */
void travel_rerun(struct ledger *ledger, const struct skep_note *note)
{
	struct round *round = &ledger->round[note->round];
	uint32_t m = note->microbatch;
	uint64_t value = (uint64_t)skep_note_value(note);
	bool good = m < ledger->capacity && bit(round->issued, m) && value >> 32 > round->rerun[m] >> 32 &&
	            (value >> 16 & 0xffff) <= (value & 0xffff) && (value & 0xffff) < skep_plan_vstages(ledger->plan);
	bool may = ledger->plan->on_loss == SKEP_ON_LOSS_RERUN ||
	           (ledger->plan->on_loss == SKEP_ON_LOSS_VOID && m < ledger->capacity && bit(round->voided, m));
	if (!good || !may || !books_seated(ledger, note->peer, 0, note->round)) {
		verdict_break(ledger->verdict, "I12", note->round, 0, m,
			"microbatch %u is granted again to worker %u: never issued, no later attempt, no such stages, "
			"or "
			"not its stage",
			m, note->peer.index);
		return;
	}
	membership_granted(ledger, note);
	round->rerun[m] = value;
	clear_bit(round->voided, m);
	round->owner[m] = note->peer;
	for (uint32_t s = 0; s < skep_plan_vstages(ledger->plan); s++) {
		clear_bit(round->cell[s].forwarded, m);
		clear_bit(round->cell[s].backwarded, m);
		clear_bit(round->cell[s].dropped, m);
		clear_bit(round->cell[s].again, m);
	}
}

/* Tensors of a microbatch travel as the plan says: only to and from its owner, or only between neighbours, as far as the
 * seats are known. (Who owned it in an earlier pass, and has not heard that it was fenced, may still send it on.) */
void travel_sent(struct ledger *ledger, struct skep_peer who, const struct skep_message *m)
{
	bool relayed = m->kind == SKEP_MESSAGE_OUTPUT || m->kind == SKEP_MESSAGE_INPUT;
	bool trainer = ledger->plan->routing == SKEP_ROUTING_TRAINER;
	const struct skep_peer *owner = &ledger->round[m->round].owner[m->microbatch];
	if (earlier_pass(ledger, m->round, m->microbatch, m->attempt))
		return;
	if (trainer ? owner->index != who.index && owner->index != m->to.index : relayed)
		verdict_break(ledger->verdict, "I4", m->round, m->stage, m->microbatch,
			"worker %u sends a tensor of microbatch %u to worker %u, which is not the way to go", who.index,
			m->microbatch, m->to.index);
}
