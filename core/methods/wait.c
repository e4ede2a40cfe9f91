/* SPDX-License-Identifier: Apache-2.0
 *
 * wait.c - all wait for a replacement (SKEP_ON_LOSS_WAIT), as gangs do that are scheduled as a whole: while a stage has fewer
 * workers than at the start nothing is granted, and no round opens. What is under way goes on to its end, and what is lost is
 * reported, as in flush.c.
 *
 * A newcomer goes to a stage that lacks one. When it holds all of the state it takes the place at once, also in the middle of a
 * round, since the round may not come to its end before. If a stage is short for wait_for_join the run fails, as it does for a
 * stage that no worker comes back to; but not when all rounds have closed.
 *
 * A worker that leaves after a notice is missed like one that is lost. Workers that a stage has beyond those of the start are
 * not missed.
 */
#include <assert.h>

#include "core/directory/directory.h"
#include "core/methods/flush.h"

static bool lacks(struct directory *d, uint32_t stage)
{
	return directory_stage(d, stage)->serving < directory_stage(d, stage)->began;
}

static bool holds(struct directory *d, const struct skep_plan *plan)
{
	assert(d->phase != PHASE_STOPPED);
	for (uint32_t stage = 0; stage < plan->stages; stage++)
		if (lacks(d, stage))
			return true;
	return false;
}

/* In the open round: the workers that hold the state of a stage that lacks one. */
static void take_places(struct directory *d, const struct skep_plan *plan)
{
	assert(d->phase == PHASE_OPEN);
	for (uint32_t i = 0; i < plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		if (row->standing == STANDING_READY && lacks(d, row->stage))
			skep_directory_serve(d, i);
	}
}

static void gone(struct directory *d, struct step *step, bool served)
{
	assert(d->phase == PHASE_OPEN);
	(void)served;
	take_places(d, step->plan);
	step->how.directory->refill(d, step, SKEP_NO_INDEX);
}

/* One that holds all of the state will serve soon. */
static bool is_short(struct directory *d, const struct skep_plan *plan, uint32_t stage)
{
	uint32_t present = 0;
	for (uint32_t i = 0; i < plan->workers; i++)
		present += directory_row(d, i)->standing >= STANDING_READY && directory_row(d, i)->stage == stage;
	return present < directory_stage(d, stage)->began;
}

/* Since when each stage has been short. */
static void watch(struct directory *d, const struct skep_plan *plan)
{
	assert(d->phase != PHASE_STOPPED);
	for (uint32_t stage = 0; stage < plan->stages; stage++) {
		struct stage_state *state = directory_stage(d, stage);
		bool waits = !d->ending && is_short(d, plan, stage);
		if (!waits || state->short_since_ns == SKEP_TIME_NEVER)
			state->short_since_ns = waits ? d->node.now : SKEP_TIME_NEVER;
	}
}

/* Between two rounds that is what the next one waits for; while one is summed it serves when that is committed. */
static void joined(struct directory *d, struct step *step, uint32_t worker)
{
	assert(d->phase != PHASE_STOPPED);
	(void)worker;
	watch(d, step->plan); /* another one may leave as soon as this one is there */
	if (d->phase == PHASE_OPEN) {
		take_places(d, step->plan);
		step->how.directory->resume(d, step);
	} else if (d->phase == PHASE_REDUCING && !d->reduced.on && !d->ending) {
		skep_rounds_next(d, step);
	}
}

static void timer(struct directory *d, struct step *step)
{
	if (d->phase == PHASE_STOPPED)
		return;
	watch(d, step->plan);
	if (skep_restore_short(d, step->plan) != SKEP_NO_STAGE)
		skep_directory_stop(d, step, false);
}

const struct skep_losses skep_losses_wait = {
	SKEP_LOSSES_REPORTED,
	.in_shards = false,
	.gone = gone,
	.fenced = skep_losses_ignore,
	.joined = joined,
	.holds = holds,
	.timer = timer,
};
