/* SPDX-License-Identifier: Apache-2.0
 *
 * validation.c - the ledger's view of validations: when one is due, what is judged in it and on which parameters, that its mean
 * is that of what came back, and that nothing of it is counted. (It cannot be: numbers from the capacity on are outside of the
 * plan for everything but FORWARD, its messages and FINISHED.)
 */
#include "tests/cluster/ledger_internal.h"

static bool enabled(const struct ledger *ledger)
{
	return ledger->plan->validation.every > 0;
}

static bool is_due(const struct ledger *ledger)
{
	uint32_t closed = ledger->rounds_closed;
	return enabled(ledger) && closed > ledger->plan->first_round && closed >= ledger->plan->candidates.rounds &&
	       (closed % ledger->plan->validation.every == 0 || closed == ledger->plan->rounds);
}

bool validation_missing(const struct ledger *ledger)
{
	const struct validation *v = &ledger->validation;
	return v->open || (is_due(ledger) && v->round != ledger->rounds_closed);
}

/* Without waiting it goes beside the round that opens when it is due, and the next one waits for it. */
bool validation_blocks(const struct ledger *ledger, uint32_t round)
{
	bool beside = ledger->plan->async.on && round == ledger->rounds_closed;
	return beside ? ledger->validation.open : validation_missing(ledger);
}

bool validation_target_reached(const struct ledger *ledger)
{
	const struct validation *v = &ledger->validation;
	return v->heard > 0 && !v->open && v->mean_nano <= ledger->plan->until.target_loss_nano;
}

/* Which microbatch of the validation under way the number is a try of; ANY: of none. */
static uint32_t which(const struct ledger *ledger, uint32_t round, uint32_t microbatch)
{
	const struct validation *v = &ledger->validation;
	uint32_t all = ledger->plan->validation.microbatches, number = microbatch - ledger->capacity;
	return v->open && round == v->round && number / all < SKEP_VALIDATION_TRIES ? number % all : ANY;
}

bool validation_names(const struct ledger *ledger, uint32_t microbatch)
{
	return enabled(ledger) && microbatch >= ledger->capacity && microbatch != ANY;
}

/* Those of all steps so far; without waiting the newest that its worker has of its stage. */
static uint32_t wanted_version(const struct ledger *ledger, struct skep_peer who, const struct skep_op *op)
{
	return ledger->plan->async.on ? ledger->membership[who.index].version : op->round;
}

/* What a fenced worker does for a validation that is over is not checked. */
void validation_op(struct ledger *ledger, struct skep_peer who, const struct skep_op *op, const struct effect *effect)
{
	struct validation *v = &ledger->validation;
	uint32_t i = which(ledger, op->round, op->microbatch);
	if (op->kind != SKEP_OP_FORWARD) {
		verdict_break(ledger->verdict, "I16", op->round, op->stage, op->microbatch,
			"worker %u does %s of microbatch %u, which is for validation", who.index,
			skep_op_name(op->kind), op->microbatch);
		return;
	}
	if (i == ANY)
		return;
	uint32_t wanted = wanted_version(ledger, who, op);
	if (books_seated(ledger, who, op->stage % ledger->plan->stages, op->round) &&
		(effect->version != wanted || op->version != wanted))
		verdict_break(ledger->verdict, "I11", op->round, op->stage, op->microbatch,
			"worker %u validates version %u of the parameters, not %u", who.index, effect->version, wanted);
	if (op->stage + 1u < skep_plan_vstages(ledger->plan))
		return;
	v->loss_nano[i] = effect->loss_nano;
	v->judged[i] = true;
}

static void finished(struct ledger *ledger, struct skep_peer who, const struct skep_message *m)
{
	struct validation *v = &ledger->validation;
	uint32_t i = which(ledger, m->round, m->microbatch);
	if (!m->u.finished.ok || i == ANY)
		return;
	if (!v->judged[i] || m->u.finished.loss_nano != v->loss_nano[i])
		verdict_break(ledger->verdict, "I16", m->round, ANY, m->microbatch,
			"worker %u says that microbatch %u of the validation has loss %lld; the last stage said %lld",
			who.index, m->microbatch, (long long)m->u.finished.loss_nano, (long long)v->loss_nano[i]);
	v->back[i] = true;
}

static void granted(struct ledger *ledger, const struct skep_message *m)
{
	struct validation *v = &ledger->validation;
	uint32_t i = which(ledger, m->round, m->microbatch);
	if (i == ANY) /* one that was returned is sent again, and comes too late */
		return;
	uint32_t tries = (m->microbatch - ledger->capacity) / ledger->plan->validation.microbatches + 1;
	if (tries > v->tries[i] && !books_seated(ledger, m->to, 0, m->round))
		verdict_break(ledger->verdict, "I4", m->round, 0, m->microbatch,
			"granted for validation to worker %u (epoch %u), which does not serve the first stage",
			m->to.index, m->to.epoch);
	v->tries[i] = tries > v->tries[i] ? tries : v->tries[i];
}

void validation_sent(struct ledger *ledger, struct skep_peer who, const struct skep_message *m)
{
	if (m->kind == SKEP_MESSAGE_GRANT)
		granted(ledger, m);
	else if (m->kind == SKEP_MESSAGE_FINISHED)
		finished(ledger, who, m);
	else if (m->kind == SKEP_MESSAGE_BACKWARD || m->kind == SKEP_MESSAGE_INPUT)
		verdict_break(ledger->verdict, "I16", m->round, m->stage, m->microbatch,
			"worker %u sends a gradient, or for one, of microbatch %u, which is for validation", who.index,
			m->microbatch);
}

/* All came back, or what did not has been tried as often as may be; or a stage has no worker that can. */
static bool may_lack(const struct ledger *ledger, uint32_t back)
{
	const struct validation *v = &ledger->validation;
	uint32_t worn_out = 0;
	for (uint32_t i = 0; i < ledger->plan->validation.microbatches; i++)
		worn_out += v->tries[i] == SKEP_VALIDATION_TRIES;
	return v->heard <= back && (v->heard + worn_out >= ledger->plan->validation.microbatches ||
					   (ledger->plan->delayed && books_round_stuck(ledger, v->round)));
}

static void ended(struct ledger *ledger, const struct skep_note *note)
{
	struct validation *v = &ledger->validation;
	uint32_t all = ledger->plan->validation.microbatches, back = 0;
	int64_t sum = 0;
	for (uint32_t i = 0; i < all; i++) {
		back += v->back[i];
		sum += v->loss_nano[i];
	}
	v->heard = note->judged;
	v->mean_nano = note->loss_nano;
	bool good = v->open && note->round == v->round && v->heard <= all;
	if (good && v->heard == all)
		good = back == all && note->loss_nano == sum / (int64_t)all;
	else if (good)
		good = may_lack(ledger, back);
	if (!good)
		verdict_break(ledger->verdict, "I16", note->round, ANY, ANY,
			"a validation of %u microbatches ends with %u and mean %lld; %u came back, with sum %lld", all,
			note->judged, (long long)note->loss_nano, back, (long long)sum);
	v->open = false;
}

static void begun(struct ledger *ledger, const struct skep_note *note)
{
	uint32_t closed = ledger->rounds_closed, all = ledger->plan->validation.microbatches;
	bool last = closed == ledger->plan->rounds, open = !last && ledger->round[closed].open;
	open = ledger->plan->async.on && !last ? !open && !ledger_is_late(ledger)
	                                       : open; /* then it is beside that one */
	if (!is_due(ledger) || !validation_missing(ledger) || ledger->validation.open || open ||
		note->round != closed || note->asked != all)
		verdict_break(ledger->verdict, "I16", note->round, ANY, ANY,
			"a validation of %u microbatches begins after %u of %u rounds, and is not due", note->asked,
			closed, ledger->plan->rounds);
	ledger->validation = (struct validation){.open = true, .round = note->round};
}

void validation_noted(struct ledger *ledger, const struct skep_note *note)
{
	if (note->kind == SKEP_NOTE_VALIDATING)
		begun(ledger, note);
	else
		ended(ledger, note);
}
