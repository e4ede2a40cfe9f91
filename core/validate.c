/* SPDX-License-Identifier: Apache-2.0
 *
 * validate.c - the directory's validations: when one is due after a round has closed (skep_plan_validation_due()), the next round
 * waits, and microbatches are granted that go forwards only (skep.h has what becomes of them).
 *
 *     last COMMIT of round r - 1 ──► GRANT .. FINISHED with a loss ──► note VALIDATED, round r opens, or the run ends
 *
 * Microbatch i of M is granted as number skep_round_capacity() + t M + i in its try number t, counted from 0; so a worker that
 * has seen it before does not take the next try for a duplicate, and its samples are the same. Who may have how many is as in a
 * round. One whose owner says that it did not come back, or is fenced, is granted again, until it has been tried
 * SKEP_VALIDATION_TRIES times; then it is left out.
 *
 * Kept true: every microbatch has at most one owner; its loss enters the sum once, when it is settled; the validation ends when
 * all are settled, or, with delayed updates, when a stage has nobody left but newcomers, who work from a commit on, and no
 * commit will come before the next round: then with what has been heard. The sum is over integers, so the order in which
 * losses come does not show.
 *
 * Where a stage has lost its last worker everything waits for its founder, as in an open round. Workers leave and move when
 * it is over, just before the next round.
 *
 * With `async` nobody waits for an edge: all but the one after the last round go beside the round that is open, whose number
 * they have, before its own microbatches, and it is complete only when they are over. A worker judges the parameters of its
 * stage (never its inner ones) as they are then, whatever has been merged by that time; so what is judged is a model that
 * moves while it is judged, by as many merges as there are meanwhile.
 */
#include <assert.h>

#include "core/directory.h"

static bool under_way(const struct directory *d)
{
	return d->phase == PHASE_VALIDATING || (d->validation.beside && d->phase == PHASE_OPEN);
}

static struct judged *judged(struct directory *d)
{
	return skep_at(d, d->validation.judged_at);
}

size_t validate_lay_out(struct directory *d, const struct skep_plan *plan, size_t at)
{
	d->validation.judged_at = at;
	if (plan->validate_every > 0)
		at += skep_align(plan->validate_microbatches * sizeof(struct judged));
	return at;
}

/* The next round, or the end of the run if that was the last one, or the loss is low enough. */
static void go_on(struct directory *d, struct step *step)
{
	if (d->validation.beside) {
		d->validation.beside = false;
		if (d->loss_nano <= step->plan->target_loss_nano)
			rounds_end(d, step);
		else
			rounds_refill(d, step); /* the round may have waited for this alone */
		return;
	}
	d->phase = PHASE_REDUCING;
	d->round--; /* the one that closed last */
	if (d->validation.last || d->loss_nano <= step->plan->target_loss_nano)
		rounds_end(d, step);
	else
		rounds_next(d, step);
}

static void end(struct directory *d, struct step *step)
{
	const struct validation *v = &d->validation;
	int64_t mean = v->heard == 0 ? 0 : v->loss_nano_sum == INT64_MAX ? INT64_MAX : v->loss_nano_sum / v->heard;
	if (v->heard > 0)
		d->loss_nano = mean;
	skep_emit_note(step, &d->node,
		(struct skep_note){
			.kind = SKEP_NOTE_VALIDATED, .round = d->round, .microbatch = v->heard, .value = mean});
	go_on(d, step);
}

/* The first one that is with nobody and not settled; validate_microbatches: there is none. */
static uint32_t next_to_grant(struct directory *d, const struct skep_plan *plan)
{
	uint32_t *i = &d->validation.from;
	while (*i < plan->validate_microbatches && (judged(d)[*i].settled || judged(d)[*i].owner != SKEP_NO_INDEX))
		++*i;
	return *i;
}

void validate_grant(struct directory *d, struct step *step, uint32_t preferred)
{
	uint32_t all = step->plan->validate_microbatches;
	if (!under_way(d))
		return;
	uint64_t limit = rounds_limit(d, step->plan);
	for (uint32_t left = GRANTS_PER_REFILL; left > 0 && d->outstanding < limit && !d->cut; left--) {
		uint32_t i = next_to_grant(d, step->plan);
		uint32_t worker = i < all ? rounds_choose_owner(d, step->plan, preferred) : SKEP_NO_INDEX;
		if (worker == SKEP_NO_INDEX)
			break;
		struct judged *j = &judged(d)[i];
		j->owner = worker;
		d->validation.outstanding += d->validation.beside;
		rounds_send_grant(d, step, worker, d->capacity + j->tries++ * all + i, 1,
			(struct skep_span){0, (uint16_t)(skep_plan_slices(step->plan) - 1)});
	}
}

void validate_refill(struct directory *d, struct step *step, uint32_t preferred)
{
	if (!under_way(d))
		return;
	validate_grant(d, step, preferred);
	if (d->validation.settled == step->plan->validate_microbatches || d->cut)
		end(d, step);
}

static void begin(struct directory *d, struct step *step, struct validation validation)
{
	uint32_t all = step->plan->validate_microbatches;
	validation.judged_at = d->validation.judged_at;
	d->validation = validation;
	for (uint32_t i = 0; i < all; i++)
		judged(d)[i] = (struct judged){.owner = SKEP_NO_INDEX};
	skep_emit_note(
		step, &d->node, (struct skep_note){.kind = SKEP_NOTE_VALIDATING, .round = d->round, .microbatch = all});
	validate_refill(d, step, SKEP_NO_INDEX);
}

void validate_begin(struct directory *d, struct step *step, bool last)
{
	assert(!skep_plan_streams(step->plan) && step->plan->validate_microbatches > 0 && d->phase == PHASE_REDUCING);
	edge_serve_late(d, step->plan);
	d->phase = PHASE_VALIDATING;
	d->round++;
	d->full = false;
	d->cut = rounds_nobody_can(d, step->plan);
	d->outstanding = d->pass = 0;
	for (uint32_t i = 0; i < step->plan->workers; i++)
		directory_row(d, i)->outstanding = 0;
	begin(d, step, (struct validation){.last = last});
}

void validate_beside(struct directory *d, struct step *step)
{
	assert(d->async && d->phase == PHASE_OPEN && d->round == d->closed && !d->validation.beside);
	begin(d, step, (struct validation){.beside = true});
}

/* It is with nobody any more: again, or not at all. */
static void give_back(struct directory *d, uint32_t i)
{
	struct judged *j = &judged(d)[i];
	d->outstanding--;
	d->validation.outstanding -= d->validation.beside;
	d->full = d->full && !d->validation.beside; /* what is trained on beside it may have the room */
	directory_row(d, j->owner)->outstanding--;
	j->owner = SKEP_NO_INDEX;
	j->settled = j->tries == SKEP_VALIDATION_TRIES;
	d->validation.settled += j->settled;
	d->validation.from = i < d->validation.from ? i : d->validation.from;
}

static void add(struct validation *v, int64_t loss_nano)
{
	bool overflow = loss_nano > 0 && v->loss_nano_sum > INT64_MAX - loss_nano;
	v->loss_nano_sum = overflow ? INT64_MAX : v->loss_nano_sum + loss_nano;
	v->heard++;
}

void validate_on_finished(struct directory *d, struct step *step, const struct skep_message *message)
{
	uint32_t all = step->plan->validate_microbatches, number = message->microbatch - d->capacity;
	if (!under_way(d) || message->round != d->round || number / all >= SKEP_VALIDATION_TRIES)
		return;
	struct judged *j = &judged(d)[number % all];
	if (j->owner != message->from.index || j->tries != number / all + 1)
		return; /* a duplicate, or too late */
	give_back(d, number % all);
	if (message->u.finished.ok) {
		d->validation.settled += !j->settled;
		j->settled = true;
		add(&d->validation, message->u.finished.loss_nano);
	}
	validate_refill(d, step, message->from.index);
}

void validate_worker_gone(struct directory *d, struct step *step, uint32_t worker)
{
	const struct row *row = directory_row(d, worker);
	if (!under_way(d))
		return;
	for (uint32_t i = 0; i < step->plan->validate_microbatches && row->outstanding > 0; i++) {
		if (judged(d)[i].owner == worker)
			give_back(d, i);
	}
	validate_refill(d, step, SKEP_NO_INDEX);
}
