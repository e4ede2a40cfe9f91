/* SPDX-License-Identifier: Apache-2.0
 *
 * restore.c - what the directory does when a stage has lost its last worker.
 *
 * Newcomers that hold all of its state carry on. Else no worker holds what the stage has learnt: it waits for a worker,
 * and the first one restores it, from the newest checkpoint or as at the start of the run. Meanwhile microbatches that
 * reach the stage wait before it, and rounds whose reduction had begun close without it. The run fails when the wait
 * has been too long.
 *
 * What is kept true: a stage has one restorer at a time. Others of the stage wait until it is ready and download from
 * it: so no worker steps before the state is restored, and all hold the same. What newcomers had downloaded of the lost
 * state is of no use, so they are fenced and join again.
 */
#include "core/directory/directory.h"
#include "core/directory/ends.h"

#include <assert.h>

/* Members of the reduction serve when that is committed, unless it is void now. Any other newcomer can do so at once, if it can
 * work on the open round. */
static void carry_on(struct directory *d, struct step *step, uint32_t worker)
{
	assert(worker < step->plan->workers);
	if (!d->reduced.on || !directory_row(d, worker)->member || step->how.losses->voids)
		step->how.directory->carry_on(d, step, worker);
}

void skep_restore_stage(struct directory *d, struct step *step, uint32_t stage)
{
	assert(stage < step->plan->stages);
	struct stage_state *state = directory_stage(d, stage);
	bool alive = false;
	for (uint32_t i = 0; i < step->plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		if (row->standing != STANDING_READY || row->stage != stage)
			continue;
		alive = true;
		carry_on(d, step, i);
	}
	if (alive)
		return;
	if (step->how.scope->stage_empty(d, step, stage))
		return;
	skep_emit_note(step, &d->node,
		(struct skep_note){.kind = SKEP_NOTE_STAGE_EMPTY, .stage = (uint16_t)stage, .round = d->round});
	state->waiting = true;
	state->waiting_since_ns = d->node.now;
	state->restorer = (struct skep_peer){0, 0};
	if (step->plan->liveness.wait_for_join_ns == 0 || skep_plan_is_tied(step->plan, stage))
		skep_directory_stop(d, step, false);
	for (uint32_t i = 0; i < step->plan->workers && d->phase != PHASE_STOPPED; i++) {
		struct row *row = directory_row(d, i);
		if (row->standing != STANDING_JOINING || row->stage != stage)
			continue;
		skep_ends_pay(d, step->plan, i);
		skep_directory_stand(row, STANDING_ABSENT); /* the caller begins the reduction anew */
		skep_emit_note(step, &d->node,
			(struct skep_note){
				.kind = SKEP_NOTE_FENCED, .stage = (uint16_t)stage, .peer = directory_worker(d, i)});
		skep_directory_send_fenced(d, step, directory_worker(d, i));
	}
}

void skep_restore_entered(struct directory *d, struct step *step, uint32_t stage)
{
	assert(stage < step->plan->stages);
	struct stage_state *state = directory_stage(d, stage);
	for (uint32_t i = 0; i < step->plan->workers && state->waiting && state->restorer.epoch == 0; i++) {
		const struct row *row = directory_row(d, i);
		if (row->standing != STANDING_ENTERED || row->stage != stage)
			continue;
		state->restorer = directory_worker(d, i);
		skep_directory_admit(d, step, i, (struct skep_peer){SKEP_NO_INDEX, 0});
	}
}

void skep_restore_gone(struct directory *d, struct step *step, struct skep_peer gone, uint32_t stage)
{
	assert(gone.index < step->plan->workers);
	assert(stage < step->plan->stages);
	struct stage_state *state = directory_stage(d, stage);
	if (d->phase == PHASE_STOPPED || !state->waiting || !skep_peer_same(state->restorer, gone))
		return;
	state->restorer = (struct skep_peer){0, 0};
	skep_restore_entered(d, step, stage);
}

/* The restorer works at once, and those that have waited download from it. */
void skep_restore_ready(struct directory *d, struct step *step, uint32_t worker)
{
	assert(directory_row(d, worker)->standing != STANDING_ABSENT);
	assert(worker < step->plan->workers);
	struct row *row = directory_row(d, worker);
	struct stage_state *state = directory_stage(d, row->stage);
	if (!state->waiting || !skep_peer_same(state->restorer, directory_worker(d, worker)))
		return;
	state->waiting = false;
	skep_emit_note(step, &d->node,
		(struct skep_note){.kind = SKEP_NOTE_STAGE_RESTARTED,
			.stage = (uint16_t)row->stage,
			.round = step->how.directory->next_reduction(d, row),
			.peer = directory_worker(d, worker),
			.version = state->checkpoint});
	if (step->plan->checkpoint_every > 0 && !step->plan->async.on &&
		!row->leaving) /* it may keep that from now on (worker/orphan.c) */
		skep_directory_send_peer(d, step, worker, directory_worker(d, worker), row->stage, true);
	for (uint32_t i = 0; i < step->plan->workers; i++) {
		const struct row *other = directory_row(d, i);
		if (other->standing == STANDING_ENTERED && other->stage == row->stage)
			skep_directory_admit(d, step, i, directory_worker(d, worker));
	}
	if (d->ending)
		skep_rounds_end(d, step);
	if (d->phase == PHASE_STOPPED)
		return;
	if (d->phase == PHASE_REDUCING)
		return; /* it serves from the next round on */
	skep_directory_serve(d, worker);
	if (d->phase == PHASE_COUNTING) /* it may be sent work before the others have told, so it must tell as well */
		step->how.losses->complete(d, step);
	step->how.directory->resume(d, step);
}

void skep_restore_timer(struct directory *d, struct step *step)
{
	for (uint32_t i = 0; i < step->plan->stages && d->phase != PHASE_STOPPED; i++) {
		const struct stage_state *state = directory_stage(d, i);
		if (state->waiting && d->node.now - state->waiting_since_ns >= step->plan->liveness.wait_for_join_ns)
			skep_directory_stop(d, step, false);
	}
}

uint32_t skep_restore_waiting(struct directory *d, const struct skep_plan *plan)
{
	uint32_t longest = SKEP_NO_STAGE;
	skep_time since_ns = SKEP_TIME_NEVER;
	for (uint32_t i = 0; i < plan->stages; i++) {
		const struct stage_state *state = directory_stage(d, i);
		if (state->waiting && skep_plan_is_tied(plan, i)) /* it does not wait */
			return i;
		if (!state->waiting || state->waiting_since_ns >= since_ns)
			continue;
		longest = i;
		since_ns = state->waiting_since_ns;
	}
	return longest;
}

uint32_t skep_restore_short(struct directory *d, const struct skep_plan *plan)
{
	uint32_t longest = SKEP_NO_STAGE;
	skep_time since_ns = SKEP_TIME_NEVER;
	for (uint32_t i = 0; i < plan->stages; i++) {
		const struct stage_state *state = directory_stage(d, i);
		if (state->short_since_ns >= since_ns ||
			d->node.now - state->short_since_ns < plan->liveness.wait_for_join_ns)
			continue;
		longest = i;
		since_ns = state->short_since_ns;
	}
	return longest;
}

/* A run is not done while what a stage has learnt is lost, or not kept. */
void skep_rounds_end(struct directory *d, struct step *step)
{
	assert(d->phase != PHASE_STOPPED);
	bool kept = skep_checkpoints_last(d, step);
	d->ending = skep_restore_waiting(d, step->plan) != SKEP_NO_STAGE || !kept;
	if (!d->ending)
		skep_directory_stop(d, step, true);
}
