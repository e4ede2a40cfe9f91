/* SPDX-License-Identifier: Apache-2.0
 *
 * messages.c - what messages tell the books: what went where, what has come back, and when a reduction may begin.
 */
#include "tests/cluster/ledger_internal.h"

/* One reduction at a time. */
static void check_order(struct ledger *ledger, const struct skep_message *m)
{
	if (pipes_stream(ledger)) {
		stream_told(ledger, m);
		return;
	}
	if (m->kind != SKEP_MESSAGE_FINISHED && m->round != ledger->rounds_closed && !ledger->round[m->round].reducing)
		verdict_break(ledger->verdict, "I9", m->round, m->stage, ANY,
			"the reduction of round %u starts after %u closed rounds", m->round, ledger->rounds_closed);
}

/* Is it no reduction but a word that the round is void, or a REDUCE or FINISHED of before that? These may be sent again. */
static bool is_void(struct round *round, const struct skep_message *m)
{
	if (m->kind != SKEP_MESSAGE_REDUCE)
		return m->kind == SKEP_MESSAGE_FINISHED && bit(round->voided, m->microbatch);
	if (m->attempt > round->attempt)
		round->attempt = m->attempt;
	return m->u.reduce.discard || m->attempt <= round->void_attempt;
}

static void ends_or_comes_back(struct ledger *ledger, const struct skep_message *m, bool finished)
{
	struct round *round = &ledger->round[m->round];
	bool begins = !finished && !round->reducing; /* else it begins anew, without a member that was fenced */
	round->reducing |= !finished;
	if (finished)
		set_bit(round->finished, m->microbatch);
	else if (begins && !pipes_stream(ledger) &&
		 ledger->plan->on_loss != SKEP_ON_LOSS_RERUN && /* there audit.c demands that nothing is lost */
		 books_bits(ledger, round->finished) < inner_quota(ledger->plan, m->round) &&
		 round->issued_count < ledger->capacity &&
		 !(ledger->plan->delayed && books_round_stuck(ledger, m->round)))
		verdict_break(ledger->verdict, "I9", m->round, m->stage, ANY,
			"the reduction starts after %u of %u microbatches, though more could be granted",
			books_bits(ledger, round->finished), inner_quota(ledger->plan, m->round));
}

void books_sent(struct ledger *ledger, struct skep_peer who, const struct skep_message *m)
{
	if (m->to.index > ledger->plan->workers) {
		verdict_break(ledger->verdict, "I6", m->round, m->stage, m->microbatch,
			"machine %u sends to machine %u, which does not exist", who.index, m->to.index);
		return;
	}
	frozen_sent(ledger, who, m);
	scale_sent(ledger, m);
	if (m->kind == SKEP_MESSAGE_ASSIGN)
		membership_assigned(ledger, m);
	if ((m->kind <= SKEP_MESSAGE_BACKWARD || m->kind == SKEP_MESSAGE_OUTPUT || m->kind == SKEP_MESSAGE_INPUT ||
		    m->kind == SKEP_MESSAGE_GRANT || m->kind == SKEP_MESSAGE_FINISHED ||
		    m->kind == SKEP_MESSAGE_CANCELLED) &&
		validation_names(ledger, m->microbatch)) {
		validation_sent(ledger, who, m);
		pipes_sent(ledger, who, m);
		return;
	}
	bool made = m->kind == SKEP_MESSAGE_OUTPUT ||
	            (m->kind == SKEP_MESSAGE_FORWARD &&
			    m->stage % ledger->plan->stages == ledger->membership[who.index].stage);
	if (made)
		sound_passed_on(ledger, who, m->round, m->stage, m->microbatch);
	if (m->kind == SKEP_MESSAGE_FORWARD && m->to.index < ledger->plan->workers &&
		books_valid(ledger, "a message", m->round, m->stage, m->microbatch)) {
		uint64_t *sent_on = ledger->round[m->round].cell[m->stage].sent_on;
		if (!bit(sent_on, m->microbatch)) /* what came back to its sender is no new work */
			membership_forward(ledger, who, m);
		set_bit(sent_on, m->microbatch);
	}
	bool tensor = m->kind == SKEP_MESSAGE_FORWARD || m->kind == SKEP_MESSAGE_BACKWARD ||
	              m->kind == SKEP_MESSAGE_OUTPUT || m->kind == SKEP_MESSAGE_INPUT;
	if (tensor && books_valid(ledger, "a message", m->round, m->stage, m->microbatch))
		travel_sent(ledger, who, m);
	pipes_sent(ledger, who, m);
	if (m->kind == SKEP_MESSAGE_CANCELLED && m->u.cancelled.dropped &&
		books_valid(ledger, "a message", m->round, m->stage, m->microbatch))
		travel_dropped(ledger, who, m);
	if (ledger->plan->async.on && m->kind == SKEP_MESSAGE_COMMIT)
		merge_committed(ledger, m);
	bool finished = m->kind == SKEP_MESSAGE_FINISHED && m->u.finished.ok;
	bool ends = m->kind == (ledger->plan->async.on ? SKEP_MESSAGE_CLOSE_ROUND : SKEP_MESSAGE_REDUCE); /* a round */
	if (!finished && !ends)
		return;
	if (!books_valid(ledger, "a message", m->round, m->stage, finished ? m->microbatch : 0))
		return;
	struct round *round = &ledger->round[m->round];
	if (ledger->plan->gossip && !finished)
		gossip_told(ledger, m);
	if (m->kind == SKEP_MESSAGE_REDUCE && m->u.reduce.eager) {
		pipes_eager(ledger, m);
		return;
	}
	check_order(ledger, m);
	if (!is_void(round, m))
		ends_or_comes_back(ledger, m, finished);
}
