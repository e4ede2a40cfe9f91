/* SPDX-License-Identifier: Apache-2.0
 *
 * refound.c - what the directory does when a stage has lost its last worker.
 *
 * Newcomers that hold all of its state carry on. Else nobody holds what the stage has learnt: it waits for a worker, and the
 * first one founds it anew, from the newest checkpoint or as at the start of the run. Meanwhile microbatches that reach the
 * stage wait before it, and rounds whose reduction had begun close without it. The run fails when the wait has been too long.
 *
 * What is kept true: a stage has one founder at a time. Others of the stage wait until it is ready and download from it: so
 * nobody steps before it has restored, and all hold the same. What newcomers had got of the lost state is of no use, so they
 * are fenced and join again.
 */
#include "core/directory.h"

/* Members of the reduction serve when that is committed, unless it is void now. Any other newcomer can do so at once, but with
 * delayed updates it cannot work on the open round. */
static void carry_on(struct directory *d, const struct skep_plan *plan, uint32_t worker)
{
	bool rerun = plan->on_loss == SKEP_ON_LOSS_RERUN;
	bool member = d->reduced.on && directory_row(d, worker)->member && !rerun;
	if (!member && plan->delayed)
		rounds_cut(d, plan);
	else if (!member && (d->phase != PHASE_REDUCING || rerun)) /* else when the round closes */
		directory_serve(d, worker);
}

/* Newcomers among the members serve when the stage commits. With `clip` one that has lost all of them waits for the others. */
static bool serves_soon(struct directory *d, const struct skep_plan *plan, uint32_t stage)
{
	for (uint32_t i = 0; i < plan->workers && d->reduced.on; i++) {
		const struct row *row = directory_row(d, i);
		if (row->member && row->stage == stage && row->standing == STANDING_READY)
			return true;
	}
	return false;
}

uint32_t directory_next_reduction(struct directory *d, const struct skep_plan *plan, const struct row *row)
{
	bool committed = directory_stage(d, row->stage)->committed;
	if (plan->async) /* its versions are not rounds, and it works at once; when all are closed, on none */
		return d->ending ? d->closed : d->round;
	uint32_t round = d->round;
	if (d->reduced.on && !committed)
		round = d->reduced.round;
	else if (d->reduced.on && plan->delayed && d->phase == PHASE_REDUCING)
		round++; /* without delay it works from the next round on all the same */
	return row->since > round ? row->since : round;
}

/* With delayed updates: has a stage nobody but newcomers, who cannot work on the round that opens? */
bool rounds_nobody_can(struct directory *d, const struct skep_plan *plan)
{
	for (uint32_t i = 0; i < plan->stages && plan->delayed; i++) {
		const struct stage_state *stage = directory_stage(d, i);
		if (stage->serving == 0 && !stage->waiting && !serves_soon(d, plan, i))
			return true;
	}
	return false;
}

void refound_stage(struct directory *d, struct step *step, uint32_t stage)
{
	struct stage_state *state = directory_stage(d, stage);
	bool alive = false;
	for (uint32_t i = 0; i < step->plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		if (row->standing != STANDING_READY || row->stage != stage)
			continue;
		alive = true;
		carry_on(d, step->plan, i);
	}
	if (alive)
		return;
	if (d->tried.on) { /* this candidate is out */
		d->tried.stage = stage;
		directory_stop(d, step, false);
		return;
	}
	skep_emit_note(step, &d->node,
		(struct skep_note){.kind = SKEP_NOTE_STAGE_EMPTY, .stage = (uint16_t)stage, .round = d->round});
	state->waiting = true;
	state->waiting_since_ns = d->node.now;
	state->founder = (struct skep_peer){0, 0};
	if (step->plan->wait_for_join_ns == 0 || skep_plan_ties(step->plan, stage))
		directory_stop(d, step, false);
	for (uint32_t i = 0; i < step->plan->workers && d->phase != PHASE_STOPPED; i++) {
		struct row *row = directory_row(d, i);
		if (row->standing != STANDING_JOINING || row->stage != stage)
			continue;
		row->standing = STANDING_ABSENT; /* whoever calls begins the reduction anew */
		skep_emit_note(step, &d->node,
			(struct skep_note){
				.kind = SKEP_NOTE_FENCED, .stage = (uint16_t)stage, .peer = directory_worker(d, i)});
		directory_tell_fenced(d, step, directory_worker(d, i));
	}
}

void refound_entered(struct directory *d, struct step *step, uint32_t stage)
{
	struct stage_state *state = directory_stage(d, stage);
	for (uint32_t i = 0; i < step->plan->workers && state->waiting && state->founder.epoch == 0; i++) {
		const struct row *row = directory_row(d, i);
		if (row->standing != STANDING_ENTERED || row->stage != stage)
			continue;
		state->founder = directory_worker(d, i);
		directory_let_in(d, step, i, (struct skep_peer){SKEP_NO_INDEX, 0});
	}
}

void refound_gone(struct directory *d, struct step *step, struct skep_peer gone, uint32_t stage)
{
	struct stage_state *state = directory_stage(d, stage);
	if (d->phase == PHASE_STOPPED || !state->waiting || !skep_peer_same(state->founder, gone))
		return;
	state->founder = (struct skep_peer){0, 0};
	refound_entered(d, step, stage);
}

/* The founder works at once, and those that have waited download from it. */
void refound_ready(struct directory *d, struct step *step, uint32_t worker)
{
	struct row *row = directory_row(d, worker);
	struct stage_state *state = directory_stage(d, row->stage);
	if (!state->waiting || !skep_peer_same(state->founder, directory_worker(d, worker)))
		return;
	state->waiting = false;
	skep_emit_note(step, &d->node,
		(struct skep_note){.kind = SKEP_NOTE_STAGE_RESTARTED,
			.stage = (uint16_t)row->stage,
			.round = directory_next_reduction(d, step->plan, row),
			.peer = directory_worker(d, worker),
			.value = state->checkpoint});
	row->source = directory_worker(d, worker);
	for (uint32_t i = 0; i < step->plan->workers; i++) {
		const struct row *other = directory_row(d, i);
		if (other->standing == STANDING_ENTERED && other->stage == row->stage)
			directory_let_in(d, step, i, directory_worker(d, worker));
	}
	if (d->ending)
		rounds_end(d, step);
	if (d->phase == PHASE_STOPPED)
		return;
	if (d->phase == PHASE_REDUCING)
		return; /* it serves from the next round on */
	directory_serve(d, worker);
	if (d->phase == PHASE_COUNTING) /* it may be sent work before the others have told, so it must tell as well */
		rerun_count(d, step);
	rounds_refill(d, step);
}

void refound_timer(struct directory *d, struct step *step)
{
	for (uint32_t i = 0; i < step->plan->stages && d->phase != PHASE_STOPPED; i++) {
		const struct stage_state *state = directory_stage(d, i);
		if (state->waiting && d->node.now - state->waiting_since_ns >= step->plan->wait_for_join_ns)
			directory_stop(d, step, false);
	}
}

uint32_t refound_waiting(struct directory *d, const struct skep_plan *plan)
{
	uint32_t longest = SKEP_NO_STAGE;
	skep_time since_ns = SKEP_TIME_NEVER;
	for (uint32_t i = 0; i < plan->stages; i++) {
		const struct stage_state *state = directory_stage(d, i);
		if (state->waiting && skep_plan_ties(plan, i)) /* it does not wait */
			return i;
		if (!state->waiting || state->waiting_since_ns >= since_ns)
			continue;
		longest = i;
		since_ns = state->waiting_since_ns;
	}
	return longest;
}

/* A run is not done while what a stage has learnt is lost, or not kept. */
void rounds_end(struct directory *d, struct step *step)
{
	bool kept = keep_last(d, step);
	d->ending = refound_waiting(d, step->plan) != SKEP_NO_STAGE || !kept;
	if (!d->ending)
		directory_stop(d, step, true);
}
