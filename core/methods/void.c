/* SPDX-License-Identifier: Apache-2.0
 *
 * void.c - a failure voids the step (SKEP_ON_LOSS_VOID), as in torchft: when a worker that serves is fenced while its round is
 * open, or a member while it is summed, all members throw away what they have counted of the round, and those who are left
 * begin it again.
 *
 * Every member is told so (a REDUCE of size 0 with `discard`), drops what it holds, empties its accumulator (DISCARD) and says
 * that it has. So after the answers nothing is under way and all accumulators are empty. What is granted then carries the
 * attempt of that question, so that nothing of before is taken for it. Newcomers that hold all of the state by then take part.
 * No stage commits before all have their sums (agreement.c): none has stepped when another one has to throw its sum away.
 *
 * torchft does not train again on the batch of a step that is not committed: its loop takes the next one from the data loader.
 * So the round begins again with microbatches that are new, and those of before are reported lost. After
 * SKEP_VOIDS_WITH_OTHERS times in one round it has no more numbers, and begins again with the newest that it has granted,
 * which are noted as run again.
 *
 * Cost: what was computed of the round, a message to and from every worker, and the time in which each empties its accumulator.
 */
#include <assert.h>

#include "core/directory/directory.h"
#include "core/methods/flush.h"

static void throw_away(struct directory *d, struct step *step)
{
	assert(d->phase != PHASE_STOPPED && d->issued <= d->capacity);
	if (d->phase != PHASE_COUNTING)
		skep_emit_note(step, &d->node,
			(struct skep_note){.kind = SKEP_NOTE_ROUND_VOIDED, .round = d->round, .issued = d->issued});
	d->discards = true;
	skep_attempt_ask_all(d, step);
}

static void counted(struct directory *d, struct step *step)
{
	assert(d->phase == PHASE_COUNTING && d->discards);
	const struct skep_plan *plan = step->plan;
	bool numbers = d->capacity - d->issued >= plan->microbatches;
	uint32_t newest = d->issued < plan->microbatches ? d->issued : plan->microbatches;
	d->rerun_end = d->issued;
	d->rerun_microbatch = numbers ? d->issued : d->issued - newest;
	d->discards = false;
	d->finished = 0;
	skep_rounds_reopen(d, step);
	skep_fixed_serve_ready(d, plan);
	step->how.directory->resume(d, step);
}

/* A restorer that is ready while the others throw away may have work before they have, so it is told as well. */
static void complete(struct directory *d, struct step *step)
{
	assert(d->phase == PHASE_OPEN || d->phase == PHASE_COUNTING);
	if (d->phase == PHASE_COUNTING)
		throw_away(d, step);
	else
		step->how.directory->reduce(d, step);
}

static uint32_t left_of_newest(const struct directory *d)
{
	return d->pass > 0 ? d->rerun_end - d->rerun_microbatch : 0;
}

static bool again(
	struct directory *d, const struct skep_plan *plan, uint32_t *ret_microbatch, struct skep_span *ret_span)
{
	assert(d->phase == PHASE_OPEN);
	*ret_microbatch = d->rerun_microbatch;
	*ret_span = (struct skep_span){0, (uint16_t)(skep_plan_vstages(plan) - 1)};
	return left_of_newest(d) > 0;
}

static uint32_t wanted(struct directory *d, const struct skep_plan *plan)
{
	assert(d->phase == PHASE_OPEN);
	uint32_t taken = d->finished + d->outstanding - d->validation.outstanding + left_of_newest(d);
	uint32_t quota = skep_plan_quota(plan, d->round), numbers = skep_round_capacity(plan) - d->issued;
	if (d->cut || taken >= quota)
		return 0;
	return quota - taken < numbers ? quota - taken : numbers;
}

static void member_gone(struct directory *d, struct step *step, uint32_t stage)
{
	assert(d->reduced.on);
	(void)stage;
	throw_away(d, step);
}

static void gone(struct directory *d, struct step *step, bool served)
{
	assert(d->phase == PHASE_OPEN);
	if (served)
		throw_away(d, step);
	else
		step->how.directory->refill(d, step, SKEP_NO_INDEX);
}

const struct skep_losses skep_losses_void = {
	.voids = true,
	.in_shards = false,
	.wanted = wanted,
	.again = again,
	.complete = complete,
	.counted = counted,
	.member_gone = member_gone,
	.gone = gone,
	.fenced = skep_losses_ignore,
	SKEP_LOSSES_WITHOUT_WAIT,
};
