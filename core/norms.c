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
 * A tied table (tie.c) counts once, by the sum of the two means, so the first member of the first stage tells their products too.
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

/* [2] of a tied table, behind those of the slices: what the products of the two sums come to above 0, and below. */
static uint64_t *products(struct directory *d, const struct skep_plan *plan)
{
	return squares(d) + skep_plan_slices(plan);
}

uint32_t norms_begin(struct directory *d, const struct skep_plan *plan, uint32_t stage)
{
	if (!plan->clip)
		return 0;
	for (uint32_t slice = stage; slice < skep_plan_slices(plan); slice += plan->stages)
		squares(d)[slice] = SKEP_SQUARE_UNKNOWN;
	if (plan->tied == 0 || stage > 0)
		return skep_plan_laps(plan);
	products(d, plan)[0] = products(d, plan)[1] = SKEP_SQUARE_UNKNOWN;
	return skep_plan_laps(plan) + 2;
}

/* Where what is told belongs; NULL: nowhere. */
static uint64_t *place_of(struct directory *d, const struct skep_plan *plan, const struct skep_message *message)
{
	uint32_t slice = message->stage, part = message->u.norm.part;
	if (slice >= skep_plan_slices(plan) || part > 2 || (part > 0 && (plan->tied == 0 || slice > 0)))
		return NULL;
	return part > 0 ? &products(d, plan)[part - 1] : &squares(d)[slice];
}

void norms_on_norm(struct directory *d, struct step *step, const struct skep_message *message)
{
	const struct skep_plan *plan = step->plan;
	const struct row *row = directory_row(d, message->from.index);
	struct stage_state *stage = directory_stage(d, row->stage);
	uint64_t *place = plan->clip ? place_of(d, plan, message) : NULL;
	if (!place || (!d->reduced.on && !d->promised) || message->round != d->reduced.round || stage->committed ||
		!row->member || message->attempt != stage->attempt || message->stage % plan->stages != row->stage ||
		*place != SKEP_SQUARE_UNKNOWN)
		return;
	*place = message->u.norm.square;
	assert(stage->pending > 0);
	if (--stage->pending == 0 && !d->promised)
		rounds_all_told(d, step);
}

uint32_t norms_counted(struct directory *d, const struct skep_plan *plan, uint32_t slice)
{
	uint32_t total = 0;
	for (uint32_t i = 0; i < plan->workers; i++)
		if (directory_row(d, i)->member && directory_row(d, i)->stage == slice % plan->stages)
			total += rounds_counted_by(d, plan, slice, i);
	return total;
}

/* The table counts once, by the sum of the two means: |a + b|^2 = |a|^2 + |b|^2 + 2ab. */
static uint64_t with_products(struct directory *d, const struct skep_plan *plan, uint64_t total)
{
	uint32_t first = norms_counted(d, plan, 0), last = norms_counted(d, plan, skep_plan_slices(plan) - 1);
	uint64_t mean[2];
	if (first == 0 || last == 0 || products(d, plan)[0] == SKEP_SQUARE_UNKNOWN)
		return total;
	for (uint32_t i = 0; i < 2; i++) {
		mean[i] = skep_square_divide(skep_square_divide(products(d, plan)[i], first), last);
		mean[i] = skep_square_add(mean[i], mean[i]);
	}
	return skep_square_subtract(skep_square_add(total, mean[0]), mean[1]);
}

uint64_t norms_total(struct directory *d, const struct skep_plan *plan)
{
	uint64_t total = 0;
	for (uint32_t slice = 0; slice < skep_plan_slices(plan); slice++) {
		uint32_t counted = norms_counted(d, plan, slice);
		if (counted == 0 || squares(d)[slice] == SKEP_SQUARE_UNKNOWN)
			continue;
		uint64_t mean = skep_square_divide(squares(d)[slice], counted);
		total = skep_square_add(total, skep_square_divide(mean, counted));
	}
	return plan->tied > 0 ? with_products(d, plan, total) : total;
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
