/* SPDX-License-Identifier: Apache-2.0
 *
 * validation.c - the directory's validations: when one is due after a round has closed (skep_plan_validation_due()), the
 * next round waits, and microbatches are granted that go forwards only (skep.h has what becomes of them).
 *
 *     last COMMIT of round r - 1 ──► GRANT .. FINISHED with a loss ──► note VALIDATED, round r opens, or the run ends
 *
 * Microbatch i of M is granted as number skep_round_capacity() + t M + i in its try number t, counted from 0; so a worker
 * that has seen it before does not take the next try for a duplicate, and its samples are the same. Who may have how many is
 * as in a round. One whose owner says that it did not come back, or is fenced, is granted again, until it has been tried
 * SKEP_VALIDATION_TRIES times; then it is left out.
 *
 * Kept true: every microbatch has at most one owner; its loss enters the sum once, when it is done; the validation ends
 * when all are done, or, with delayed updates, when a stage has only newcomers left, which work from a commit on, and
 * no commit will come before the next round: then with what has been heard. The sum is over integers, so the order in
 * which losses come does not show.
 *
 * Where a stage has lost its last worker everything waits for its restorer, as in an open round. Workers leave and move
 * when it is over, just before the next round.
 *
 * With `async` no worker waits for a round boundary: all but the one after the last round go beside the round that is
 * open, whose number they have, before its own microbatches, and it is complete only when they are over. A worker
 * judges the parameters of its stage (never its inner ones) as they are then, whatever has been merged by that time; so
 * what is judged is a model that moves while it is judged, by as many outer updates as there are meanwhile.
 */
#include <assert.h>

#include "core/directory/directory.h"
#include "core/directory/ends.h"

static bool under_way(const struct directory *d)
{
	return d->phase == PHASE_VALIDATING || (d->validation.beside && d->phase == PHASE_OPEN);
}

static struct judged *judged(struct directory *d)
{
	return skep_at(d, d->validation.judged_at);
}

size_t skep_validate_lay_out(struct directory *d, const struct skep_plan *plan, size_t at)
{
	d->validation.judged_at = at;
	if (plan->validation.every > 0)
		at += skep_align(plan->validation.microbatches * sizeof(struct judged));
	return at;
}

/* The next round, or the end of the run if that was the last one, or the loss is low enough. */
static void go_on(struct directory *d, struct step *step)
{
	assert(d->phase != PHASE_STOPPED);
	if (d->validation.beside) {
		d->validation.beside = false;
		if (skep_ends_reached(d, step->plan))
			skep_rounds_end(d, step);
		else
			step->how.directory->resume(d, step); /* the round may have waited for this alone */
		return;
	}
	skep_directory_enter(d, PHASE_REDUCING);
	d->round--; /* the one that closed last */
	if (d->validation.last || skep_ends_reached(d, step->plan))
		skep_rounds_end(d, step);
	else
		skep_rounds_next(d, step);
}

static void end(struct directory *d, struct step *step)
{
	assert(d->phase != PHASE_STOPPED);
	const struct validation *v = &d->validation;
	int64_t mean = v->heard == 0 ? 0 : v->loss_nano_sum == INT64_MAX ? INT64_MAX : v->loss_nano_sum / v->heard;
	if (v->heard > 0)
		d->loss_nano = mean;
	skep_emit_note(step, &d->node,
		(struct skep_note){
			.kind = SKEP_NOTE_VALIDATED, .round = d->round, .judged = v->heard, .loss_nano = mean});
	go_on(d, step);
}

/* The first microbatch that no worker has and that is not done; validation.microbatches: there is none. */
static uint32_t next_to_grant(struct directory *d, const struct skep_plan *plan)
{
	assert(d->phase != PHASE_STOPPED);
	uint32_t *i = &d->validation.from;
	while (*i < plan->validation.microbatches && (judged(d)[*i].resolved || judged(d)[*i].owner != SKEP_NO_INDEX))
		++*i;
	return *i;
}

/* Those that no worker has and that are not done. */
static uint32_t left_to_grant(const struct directory *d, uint32_t all)
{
	const struct validation *v = &d->validation;
	return all - v->resolved - (v->beside ? v->outstanding : d->outstanding);
}

void skep_validate_grant(struct directory *d, struct step *step, uint32_t preferred)
{
	assert(d->phase != PHASE_STOPPED);
	uint32_t all = step->plan->validation.microbatches;
	if (!under_way(d))
		return;
	uint64_t limit = skep_rounds_limit(d, step->plan);
	for (uint32_t left = GRANTS_PER_REFILL; left > 0 && d->outstanding < limit && !d->cut; left--) {
		uint32_t i = next_to_grant(d, step->plan);
		uint32_t worker =
			i < all ? skep_dealing_choose(d, step->plan, preferred, left_to_grant(d, all)) : SKEP_NO_INDEX;
		if (worker == SKEP_NO_INDEX)
			break;
		struct judged *j = &judged(d)[i];
		j->owner = worker;
		d->validation.outstanding += d->validation.beside;
		skep_rounds_send_grant(d, step, worker, d->capacity + j->tries++ * all + i, 1,
			(struct skep_span){0, (uint16_t)(skep_plan_vstages(step->plan) - 1)});
	}
}

void skep_validate_refill(struct directory *d, struct step *step, uint32_t preferred)
{
	assert(d->phase != PHASE_STOPPED);
	if (!under_way(d))
		return;
	skep_validate_grant(d, step, preferred);
	if (d->validation.resolved == step->plan->validation.microbatches || d->cut)
		end(d, step);
}

static void begin(struct directory *d, struct step *step, struct validation validation)
{
	assert(d->phase != PHASE_STOPPED);
	uint32_t all = step->plan->validation.microbatches;
	validation.judged_at = d->validation.judged_at;
	d->validation = validation;
	for (uint32_t i = 0; i < all; i++)
		judged(d)[i] = (struct judged){.owner = SKEP_NO_INDEX};
	skep_emit_note(
		step, &d->node, (struct skep_note){.kind = SKEP_NOTE_VALIDATING, .round = d->round, .asked = all});
	skep_validate_refill(d, step, SKEP_NO_INDEX);
}

void skep_validate_begin(struct directory *d, struct step *step, bool last)
{
	assert(step->plan->validation.microbatches > 0 && d->phase == PHASE_REDUCING);
	skep_boundary_serve_late(d, step);
	skep_directory_enter(d, PHASE_VALIDATING);
	d->round++;
	d->full = false;
	d->cut = step->how.directory->none_can(d, step->plan);
	d->outstanding = d->pass = 0;
	for (uint32_t i = 0; i < step->plan->workers; i++)
		directory_row(d, i)->outstanding = 0;
	begin(d, step, (struct validation){.last = last});
}

void skep_validate_beside(struct directory *d, struct step *step)
{
	assert(d->phase == PHASE_OPEN && d->round == d->closed && !d->validation.beside);
	begin(d, step, (struct validation){.beside = true});
}

/* No worker has the microbatch any more: it is tried again, or left out. */
static void give_back(struct directory *d, uint32_t i)
{
	assert(d->outstanding > 0 && judged(d)[i].owner != SKEP_NO_INDEX);
	assert(d->outstanding > 0);
	assert(d->phase != PHASE_STOPPED);
	struct judged *j = &judged(d)[i];
	d->outstanding--;
	d->validation.outstanding -= d->validation.beside;
	d->full = d->full && !d->validation.beside; /* what is trained on beside it may have the room */
	directory_row(d, j->owner)->outstanding--;
	j->owner = SKEP_NO_INDEX;
	j->resolved = j->tries == SKEP_VALIDATION_TRIES;
	d->validation.resolved += j->resolved;
	d->validation.from = i < d->validation.from ? i : d->validation.from;
}

static void add(struct validation *v, int64_t loss_nano)
{
	bool overflow = loss_nano > 0 && v->loss_nano_sum > INT64_MAX - loss_nano;
	v->loss_nano_sum = overflow ? INT64_MAX : v->loss_nano_sum + loss_nano;
	v->heard++;
}

void skep_validate_on_finished(struct directory *d, struct step *step, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_FINISHED);
	assert(message->from.index < step->plan->workers);
	uint32_t all = step->plan->validation.microbatches, number = message->microbatch - d->capacity;
	if (!under_way(d) || message->round != d->round || number / all >= SKEP_VALIDATION_TRIES)
		return;
	struct judged *j = &judged(d)[number % all];
	if (j->owner != message->from.index || j->tries != number / all + 1)
		return; /* a duplicate, or too late */
	give_back(d, number % all);
	if (message->u.finished.ok) {
		d->validation.resolved += !j->resolved;
		j->resolved = true;
		add(&d->validation, message->u.finished.loss_nano);
	}
	skep_validate_refill(d, step, message->from.index);
}

void skep_validate_worker_gone(struct directory *d, struct step *step, uint32_t worker)
{
	assert(worker < step->plan->workers);
	assert(directory_row(d, worker)->stage < step->plan->stages);
	const struct row *row = directory_row(d, worker);
	if (!under_way(d))
		return;
	for (uint32_t i = 0; i < step->plan->validation.microbatches && row->outstanding > 0; i++) {
		if (judged(d)[i].owner == worker)
			give_back(d, i);
	}
	skep_validate_refill(d, step, SKEP_NO_INDEX);
}
