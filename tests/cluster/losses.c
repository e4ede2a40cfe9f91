/* SPDX-License-Identifier: Apache-2.0
 *
 * losses.c - the referee on what follows the loss of a worker: a round that is void, a stage that waits for a replacement, and
 * one that is empty.
 *
 * Void (I22): when a worker that can do the open round's work is fenced, the round is void before anything else is granted or
 * committed; it is void for no other reason than a fence. What was counted before that is in no sum unless it was granted
 * again, and none of what came back before counts as come back. Waiting (I23): nothing is granted and no round opens while a
 * stage has fewer workers than at the start; and the run fails for that alone only after the stage has lacked one for as long
 * as the plan says.
 */
#include "tests/cluster/ledger_internal.h"

#include <string.h>

/* ---- void -------------------------------------------------------------------------------------------------------- */

static bool voids(const struct ledger *ledger)
{
	return ledger->plan->on_loss == SKEP_ON_LOSS_VOID;
}

/* The news is not in the books yet. */
static void void_fenced(struct ledger *ledger, const struct skep_note *note)
{
	const struct membership *gone = &ledger->membership[note->peer.index];
	uint32_t r = ledger->rounds_closed;
	bool open = r < ledger->plan->rounds && ledger->round[r].open;
	bool counts = gone->peer.epoch == note->peer.epoch && gone->in && books_able(ledger, gone, r);
	ledger->fenced = true;
	ledger->void_due = ledger->void_due || (open && counts && !ledger->voiding);
}

void losses_voided(struct ledger *ledger, const struct skep_note *note)
{
	struct round *round = note->round < ledger->plan->rounds ? &ledger->round[note->round] : NULL;
	if (!voids(ledger) || !round || !round->open || round->closed || !ledger->fenced ||
		note->issued != round->issued_count)
		verdict_break(ledger->verdict, "I22", note->round, ANY, ANY,
			"round %u is void: it is not open, or %u microbatches were granted and not %u, or no worker was fenced",
			note->round, round ? round->issued_count : 0, note->issued);
	if (ledger->verdict->broken)
		return;
	ledger->fenced = ledger->void_due = false;
	ledger->voiding = true;
	ledger->voids++;
	memset(round->finished, 0, ledger->words * sizeof(*round->finished));
	round->reducing = false;
	round->void_attempt = round->attempt;
	memcpy(round->voided, round->issued, ledger->words * sizeof(*round->voided));
}

void losses_discarded(struct ledger *ledger, struct skep_peer who, const struct skep_op *op)
{
	for (uint32_t s = op->stage; s < skep_plan_vstages(ledger->plan); s += ledger->plan->stages) {
		struct holder *holder = books_holder(ledger, &ledger->round[op->round].cell[s], who);
		memset(holder->added, 0, ledger->words * sizeof(*holder->added));
		memset(holder->noted, 0, ledger->words * sizeof(*holder->noted));
	}
}

void losses_member(struct ledger *ledger, const struct holder *holder, uint32_t round, uint32_t stage)
{
	for (uint32_t w = 0; w < ledger->words; w++)
		if (holder->added[w] & ledger->round[round].voided[w])
			verdict_break(ledger->verdict, "I22", round, stage, ANY,
				"member %u brings what it had counted before the round was void", holder->peer.index);
}

/* ---- waiting ------------------------------------------------------------------------------------------------------ */

static bool is_short(const struct ledger *ledger, uint32_t stage)
{
	uint32_t began = 0, now = 0;
	for (uint32_t w = 0; w < ledger->plan->workers; w++) {
		began += ledger->plan->first_stage_of[w] == stage;
		now += ledger->membership[w].in && ledger->membership[w].stage == stage;
	}
	return ledger->plan->on_loss == SKEP_ON_LOSS_WAIT && now < began;
}

bool losses_any_short(const struct ledger *ledger)
{
	for (uint32_t s = 0; s < ledger->plan->stages; s++)
		if (is_short(ledger, s))
			return true;
	return false;
}

bool losses_waited(const struct ledger *ledger, uint32_t stage)
{
	return is_short(ledger, stage) &&
	       ledger->now - ledger->short_ns[stage] >= ledger->plan->liveness.wait_for_join_ns;
}

/* ---- a stage without workers --------------------------------------------------------------------------------------- */

void losses_emptied(struct ledger *ledger, const struct skep_note *note)
{
	if (books_stage_has_worker(ledger, note->stage) || ledger->empty[note->stage])
		verdict_break(ledger->verdict, "I7", ANY, note->stage, ANY,
			"stage %u is called empty, but is not, or was before", note->stage);
	ledger->empty[note->stage] = true;
	ledger->empty_ns[note->stage] = ledger->now;
	ledger->restored[note->stage] = 0;
}

/* From the newest checkpoint, by one that holds it and is the only one that serves. */
void losses_restarted(struct ledger *ledger, const struct skep_note *note)
{
	uint32_t stage = note->stage;
	if (!ledger->empty[stage] || ledger->restored[stage] != (uint32_t)note->version + 1 ||
		!books_seated(ledger, note->peer, stage, note->round))
		verdict_break(ledger->verdict, "I13", note->round, stage, ANY,
			"stage %u is restarted from version %lld by worker %u, which did not restore that, or it was "
			"not empty",
			stage, (long long)note->version, note->peer.index);
	ledger->empty[stage] = false;
	ledger->restarted[stage] = true;
	merge_restarted(ledger, stage);
	ledger->membership[note->peer.index].restorer = true; /* it can do the open round */
	for (uint32_t r = note->round > 0 ? note->round - 1 : 0; r < ledger->plan->rounds; r++)
		ledger->round[r].cell[stage].known = 0; /* from here on all hold what the restorer holds */
}

/* ---- both --------------------------------------------------------------------------------------------------------- */

void losses_fenced(struct ledger *ledger, const struct skep_note *note)
{
	if (voids(ledger))
		void_fenced(ledger, note);
}

/* Who is there has changed. */
void losses_changed(struct ledger *ledger)
{
	for (uint32_t s = 0; s < ledger->plan->stages; s++) {
		bool is = is_short(ledger, s);
		if (is && !ledger->is_short[s])
			ledger->short_ns[s] = ledger->now;
		ledger->is_short[s] = is;
	}
}

/* The directory goes on with the round, or opens one. */
void losses_goes_on(struct ledger *ledger, const struct skep_note *note)
{
	bool opens = note->kind == SKEP_NOTE_ROUND_OPENED;
	if (ledger->void_due)
		verdict_break(ledger->verdict, "I22", note->round, ANY, note->microbatch,
			"round %u goes on as if no worker had been lost that had work of it", note->round);
	if ((opens || note->kind == SKEP_NOTE_ISSUED || note->kind == SKEP_NOTE_RERUN) && losses_any_short(ledger))
		verdict_break(ledger->verdict, "I23", note->round, ANY, note->microbatch,
			"round %u goes on though a stage has fewer workers than at the start", note->round);
	ledger->voiding = ledger->voiding && note->kind != SKEP_NOTE_ISSUED && note->kind != SKEP_NOTE_RERUN;
	ledger->fenced = ledger->fenced && !opens;
}
