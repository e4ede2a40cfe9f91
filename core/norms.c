/* SPDX-License-Identifier: Apache-2.0
 *
 * norms.c - the norm of all gradients together (plan->clip), which every stage has to know before it steps.
 *
 * The members of a stage hold the same sum, so one of them, the first, tells the sum of its squares for each slice (NORM) beside
 * its tally. No stage commits before all have told, as with SKEP_ON_LOSS_RERUN: then the directory knows what each slice has
 * counted, and COMMIT says
 *
 *     square = sum over slices of (squares of the slice / counted^2),
 *
 * the square of the norm of what the optimizers step by. Slices are added in their order, in integers (square.h), so all
 * compilers agree. A slice that nobody serves, or that has counted nothing, adds nothing: it makes no step. If a member is fenced
 * meanwhile its stage sums and tells anew, and the others wait.
 *
 * And what becomes of numbers that are not finite: the run stops where one is told of (FAULT).
 */
#include <assert.h>

#include "core/directory.h"
#include "core/square.h"

static uint64_t *squares(struct directory *d)
{
	return skep_at(d, d->square_at);
}

uint32_t norms_begin(struct directory *d, const struct skep_plan *plan, uint32_t stage)
{
	if (!plan->clip)
		return 0;
	for (uint32_t slice = stage; slice < skep_plan_slices(plan); slice += plan->stages)
		squares(d)[slice] = SKEP_SQUARE_UNKNOWN;
	return skep_plan_laps(plan);
}

void norms_on_norm(struct directory *d, struct step *step, const struct skep_message *message)
{
	const struct skep_plan *plan = step->plan;
	const struct row *row = directory_row(d, message->from.index);
	struct stage_state *stage = directory_stage(d, row->stage);
	uint32_t slice = message->stage;
	if (!plan->clip || (!d->reduced.on && !d->promised) || message->round != d->reduced.round || stage->committed ||
		!row->member || message->attempt != stage->attempt || slice >= skep_plan_slices(plan) ||
		slice % plan->stages != row->stage || squares(d)[slice] != SKEP_SQUARE_UNKNOWN)
		return;
	squares(d)[slice] = message->u.norm.square;
	assert(stage->pending > 0);
	if (--stage->pending == 0 && !d->promised)
		rounds_all_told(d, step);
}

static uint32_t counted_of(struct directory *d, const struct skep_plan *plan, uint32_t slice)
{
	uint32_t total = 0;
	for (uint32_t i = 0; i < plan->workers; i++)
		if (directory_row(d, i)->member && directory_row(d, i)->stage == slice % plan->stages)
			total += rounds_counted_by(d, plan, slice, i);
	return total;
}

uint64_t norms_total(struct directory *d, const struct skep_plan *plan)
{
	uint64_t total = 0;
	for (uint32_t slice = 0; slice < skep_plan_slices(plan); slice++) {
		uint32_t counted = counted_of(d, plan, slice);
		if (counted == 0 || squares(d)[slice] == SKEP_SQUARE_UNKNOWN)
			continue;
		uint64_t mean = skep_square_divide(squares(d)[slice], counted);
		total = skep_square_add(total, skep_square_divide(mean, counted));
	}
	return total;
}

/* What is not finite stays so: nobody is to learn from it. One of several candidates is out. */
void norms_on_fault(struct directory *d, struct step *step, const struct skep_message *message)
{
	int64_t what = (int64_t)message->u.fault.kind << 16 | message->u.fault.layer;
	if (d->tried.on) {
		d->tried.fault = what;
		directory_stop(d, step, false);
		return;
	}
	d->diverged = true;
	skep_emit_note(step, &d->node,
		(struct skep_note){.kind = SKEP_NOTE_DIVERGED,
			.stage = message->stage,
			.round = message->round,
			.microbatch = message->microbatch,
			.peer = message->from,
			.value = what});
	directory_stop(d, step, false);
}
