/* SPDX-License-Identifier: Apache-2.0
 *
 * directory.c - the directory's machine: set-up, dispatch, and the roster.
 *
 * Every incarnation of a worker has its own epoch. To fence a worker is to end its epoch for good: it is struck from
 * the round, its neighbours give up what it had, and should it still live it hears that it is out and joins again as a
 * newcomer. Only those whose microbatches may go to a worker choose it, and only they and those whose microbatches come
 * from it hold work with it (route.h), so only they are told of changes.
 */
#include "core/directory/directory.h"
#include "core/directory/ends.h"

#include <assert.h>
#include <string.h>

#include "core/bits.h"
#include "core/collective/collective.h"
#include "core/directory/rebalance.h"
#include "core/route/route.h"
#include "core/schedule/order.h"
#include "core/worker/inflight.h"

#define FENCES_PER_STEP 4u /* bounds the actions of a step; the rest follows at once */
#define ANNOUNCEMENTS_PER_STEP 16u

/* ---- set-up --------------------------------------------------------------------------------------------------- */

static size_t lay_out(struct directory *d, const struct skep_plan *plan, const struct skep_methods *how)
{
	d->counted_rounds = how->directory->counted_rounds;
	d->capacity = skep_round_capacity(plan);
	size_t at = skep_align(sizeof *d);
	d->row_at = at;
	at += skep_align(plan->workers * sizeof(struct row));
	d->stage_at = at;
	at += skep_align(plan->stages * sizeof(struct stage_state));
	d->owner_at = at;
	at += skep_align(d->capacity * sizeof(uint32_t));
	d->counter_at = at;
	at += skep_align(d->counted_rounds * (size_t)skep_plan_vstages(plan) * d->capacity * sizeof(uint32_t));
	d->order_at = at;
	at += skep_align(plan->workers * sizeof(uint32_t));
	d->load_at = at;
	at += skep_align(plan->workers * sizeof(struct skep_load));
	d->stage_load_at = at;
	at += skep_align(plan->stages * sizeof(struct skep_stage_load));
	for (uint32_t i = 0; i < how->features; i++)
		at = how->feature[i]->lay_out(d, plan, at);
	d->pipeline_at = at;
	if (skep_plan_fixed(plan))
		at += skep_align(skep_plan_pipelines(plan) * sizeof(struct pipeline));
	at = skep_validate_lay_out(d, plan, at);
	at = how->scaling->lay_out(d, plan, at);
	return how->directory->lay_out(d, plan, at);
}

size_t skep_directory_size(const struct skep_plan *plan, const struct skep_methods *how)
{
	struct directory d;
	return lay_out(&d, plan, how);
}

uint32_t skep_directory_actions_limit(const struct skep_plan *plan, const struct skep_methods *how)
{
	/* Announcements and fences reach two neighbour stages each, or all others; a commit names every member and opens a
	 * round. */
	uint32_t per_worker = ANNOUNCEMENTS_PER_STEP + 4 * FENCES_PER_STEP + 12 +
	                      how->directory->actions(plan, FENCES_PER_STEP) + plan->barrier +
	                      2 * (skep_plan_model_chunks(plan) - 1) + 2 * (plan->validation.every > 0);
	for (uint32_t i = 0; i < how->features; i++)
		per_worker += how->feature[i]->actions(plan, FENCES_PER_STEP);
	if (skep_collective_has_roster(
		    plan->reduction.collective)) /* a reduction of each stage, and anew for each that is fenced */
		per_worker += (FENCES_PER_STEP + 1 + plan->eager) * (skep_stage_size_max(plan) / SKEP_ROSTER_PART + 1);
	return 256 + how->scaling->actions + per_worker * plan->workers +
	       (FENCES_PER_STEP + 1) * how->directory->refills * GRANTS_PER_REFILL +
	       (how->losses->voids || plan->together ? skep_plan_vstages(plan) : skep_plan_model_chunks(plan)) *
	               skep_bits_words(skep_round_capacity(plan));
}

void skep_directory_init(void *mem, const struct skep_plan *plan, const struct skep_methods *how)
{
	struct directory *d = mem;
	lay_out(d, plan, how);
	d->inflight_capacity = skep_inflight_capacity(plan);
	d->loss_nano = INT64_MAX;
	d->mover.index = SKEP_NO_INDEX;
	d->workers = plan->workers;
	d->stages = plan->stages;
	skep_checkpoints_begin(d, plan);
	for (uint32_t i = 0; i < plan->stages; i++)
		directory_stage(d, i)->short_since_ns = SKEP_TIME_NEVER;
	for (uint32_t i = 0; i < plan->workers; i++) {
		struct row *row = directory_row(d, i);
		row->stage = plan->first_stage_of[i];
		if (row->stage == SKEP_NO_STAGE)
			continue;
		directory_stage(d, row->stage)->began++;
		row->epoch = 1;
		row->standing = STANDING_SERVING;
		row->announced = true;
		if (!skep_plan_fixed(plan))
			skep_directory_count_in(d, row);
	}
	if (skep_plan_fixed(plan))
		skep_fixed_init(d, plan);
}

void skep_directory_count_in(struct directory *d, const struct row *row)
{
	assert(row->standing == STANDING_SERVING);
	directory_stage(d, row->stage)->serving++;
	directory_stage(d, row->stage)->leaving += row->leaving;
	if (d->pipelines > 0)
		skep_fixed_count_in(d, row);
}

void skep_directory_count_out(struct directory *d, const struct row *row)
{
	assert(directory_stage(d, row->stage)->serving > 0);
	assert(d->phase != PHASE_STOPPED);
	directory_stage(d, row->stage)->serving--;
	directory_stage(d, row->stage)->leaving -= row->leaving;
	if (d->pipelines > 0)
		skep_fixed_count_out(d, row);
}

void skep_directory_enter(struct directory *d, enum phase to)
{
	static const uint8_t next_of[] = {
		[PHASE_OPEN] = 1 << PHASE_OPEN | 1 << PHASE_COUNTING | 1 << PHASE_REDUCING | 1 << PHASE_STOPPED,
		[PHASE_COUNTING] = 1 << PHASE_OPEN | 1 << PHASE_COUNTING | 1 << PHASE_REDUCING | 1 << PHASE_STOPPED,
		[PHASE_REDUCING] = 1 << PHASE_OPEN | 1 << PHASE_COUNTING | 1 << PHASE_VALIDATING | 1 << PHASE_STOPPED,
		[PHASE_VALIDATING] = 1 << PHASE_REDUCING | 1 << PHASE_STOPPED,
		[PHASE_STOPPED] = 0,
	};
	assert(next_of[d->phase] >> to & 1);
	d->phase = (uint8_t)to;
}

/* ---- telling -------------------------------------------------------------------------------------------------- */

void skep_directory_send_peer(
	struct directory *d, struct step *step, uint32_t to, struct skep_peer who, uint32_t stage, bool alive)
{
	assert(to < step->plan->workers);
	struct skep_message message = skep_message_to(&d->node, SKEP_MESSAGE_PEER, directory_worker(d, to));
	message.stage = (uint16_t)stage;
	message.u.peer.who = who;
	message.u.peer.alive = alive;
	message.u.peer.leaving = alive && directory_row(d, who.index)->leaving;
	skep_emit_send(step, &d->node, &message);
}

/* Whom the receiver may send microbatches to. */
static void tell_choices(struct directory *d, struct step *step, uint32_t to)
{
	assert(to < step->plan->workers);
	for (uint32_t i = 0; i < step->plan->workers; i++) {
		const struct row *other = directory_row(d, i);
		if (other->standing == STANDING_SERVING && directory_leads(step->plan, directory_row(d, to), other))
			skep_directory_send_peer(d, step, to, directory_worker(d, i), other->stage, true);
	}
}

/* An incarnation that has ended still speaks: the news of its end may have overtaken its assignment. */
void skep_directory_send_fenced(struct directory *d, struct step *step, struct skep_peer fenced)
{
	assert(fenced.index < step->plan->workers);
	struct skep_message message = skep_message_to(&d->node, SKEP_MESSAGE_PEER, fenced);
	message.u.peer.who = fenced;
	skep_emit_send(step, &d->node, &message);
}

static void announce(struct directory *d, struct step *step)
{
	assert(d->phase != PHASE_STOPPED);
	uint32_t left = ANNOUNCEMENTS_PER_STEP;
	for (uint32_t i = 0; i < step->plan->workers && d->unannounced > 0 && left > 0; i++) {
		struct row *row = directory_row(d, i);
		if (row->standing != STANDING_SERVING || row->announced)
			continue;
		bool chosen = row->stage > 0 || route_leads(step->plan, step->plan->stages - 1, row->stage);
		for (uint32_t to = 0; chosen && to < step->plan->workers; to++) {
			const struct row *other = directory_row(d, to);
			if (directory_has_stage(other) && directory_leads(step->plan, other, row))
				skep_directory_send_peer(d, step, to, directory_worker(d, i), row->stage, true);
		}
		row->announced = true;
		d->unannounced--;
		left--;
	}
}

static void tell_gone(struct directory *d, struct step *step, struct skep_peer gone)
{
	assert(gone.index < step->plan->workers);
	const struct row *row = directory_row(d, gone.index);
	for (uint32_t to = 0; to < step->plan->workers; to++) {
		const struct row *other = directory_row(d, to);
		if (directory_has_stage(other) &&
			(directory_leads(step->plan, other, row) || directory_leads(step->plan, row, other)))
			skep_directory_send_peer(d, step, to, gone, row->stage, false);
	}
}

/* A worker that holds its stage's whole state is to make the last step first, so that all leave with the same parameters. */
static void send_stop(struct directory *d, struct step *step, uint32_t to)
{
	assert(d->phase == PHASE_STOPPED);
	struct skep_message message = skep_message_to(&d->node, SKEP_MESSAGE_STOP, directory_worker(d, to));
	const struct row *row = directory_row(d, to);
	message.round = row->standing >= STANDING_READY ? step->how.directory->stop_version(d, row) : 0;
	message.u.stop.ok = d->node.outcome == SKEP_DONE;
	skep_emit_send(step, &d->node, &message);
}

void skep_directory_stop(struct directory *d, struct step *step, bool ok)
{
	assert(d->phase != PHASE_STOPPED);
	skep_directory_enter(d, PHASE_STOPPED);
	if (step->how.scope->falls(d))
		return; /* there are others */
	d->node.outcome = ok ? SKEP_DONE : SKEP_FAILED;
	for (uint32_t i = 0; i < step->plan->workers; i++)
		send_stop(d, step, i);
	uint32_t waits = ok ? 0 : d->diverged ? SKEP_NO_STAGE : skep_restore_waiting(d, step->plan);
	uint32_t lacks = ok || d->diverged ? SKEP_NO_STAGE : skep_restore_short(d, step->plan);
	waits = lacks != SKEP_NO_STAGE ? lacks : waits;
	if (waits == SKEP_NO_STAGE && !d->diverged) /* no stage is empty, and no pipeline whole */
		waits = skep_fixed_missing_stage(d, step->plan);
	skep_emit_note(step, &d->node,
		(struct skep_note){.kind = SKEP_NOTE_STOPPED, .stage = (uint16_t)waits, .round = d->closed, .ok = ok});
}

/* ---- fencing -------------------------------------------------------------------------------------------------- */

void skep_directory_fence(struct directory *d, struct step *step, uint32_t worker)
{
	assert(worker < step->plan->workers);
	struct row *row = directory_row(d, worker);
	struct skep_peer gone = directory_worker(d, worker);
	uint8_t was = row->standing;
	if (was == STANDING_ABSENT || d->phase == PHASE_STOPPED)
		return;
	skep_ends_pay(d, step->plan, worker);
	skep_directory_stand(row, STANDING_ABSENT);
	skep_emit_note(step, &d->node,
		(struct skep_note){.kind = SKEP_NOTE_FENCED, .stage = (uint16_t)row->stage, .peer = gone});
	skep_directory_send_fenced(d, step, gone);
	step->how.losses->fenced(d, step, worker);
	if (d->phase == PHASE_STOPPED)
		return;
	if (was == STANDING_SERVING) {
		skep_directory_count_out(d, row);
		d->unannounced -= !row->announced;
		tell_gone(d, step, gone);
		if (directory_stage(d, row->stage)->serving == 0)
			skep_restore_stage(d, step, row->stage);
	} else if (was == STANDING_READY && directory_stage(d, row->stage)->serving == 0) {
		skep_restore_stage(d, step, row->stage);
	}
	if (d->phase == PHASE_STOPPED)
		return;
	step->how.directory->worker_gone(d, step, worker, was == STANDING_SERVING);
	if (d->ending && d->phase != PHASE_STOPPED) /* it may have been asked to keep its state */
		skep_rounds_end(d, step);
	if (was == STANDING_JOINING)
		skep_restore_gone(d, step, gone, row->stage);
	if (was >= STANDING_READY && d->phase != PHASE_STOPPED)
		skep_directory_new_sources(d, step);
}

void skep_directory_retire(struct directory *d, struct step *step, uint32_t worker)
{
	assert(worker < step->plan->workers);
	struct row *row = directory_row(d, worker);
	assert(row->standing == STANDING_SERVING);
	skep_ends_pay(d, step->plan, worker);
	skep_directory_stand(row, STANDING_ABSENT);
	skep_directory_count_out(d, row);
	row->leaving = false;
	d->unannounced -= !row->announced;
	tell_gone(d, step, directory_worker(d, worker));
}

static void fence_silent(struct directory *d, struct step *step)
{
	uint32_t left = FENCES_PER_STEP;
	skep_time limit = step->plan->liveness.fence_after_ns;
	for (uint32_t i = 0; i < step->plan->workers && d->phase != PHASE_STOPPED; i++) {
		const struct row *row = directory_row(d, i);
		if (row->standing == STANDING_ABSENT || row->heard_ns + limit > d->node.now)
			continue;
		if (left-- == 0)
			return; /* scan_ns stays in the past: the next step goes on */
		skep_directory_fence(d, step, i);
	}
	d->scan_ns = d->node.now + step->plan->liveness.heartbeat_ns;
}

/* A directory that was itself held up must not take the messages that it has not read yet for silence. */
static void forgive_lateness(struct directory *d, const struct skep_plan *plan)
{
	if (d->node.now < d->scan_ns + plan->liveness.heartbeat_ns)
		return;
	for (uint32_t i = 0; i < plan->workers; i++)
		directory_row(d, i)->heard_ns = d->node.now;
}

/* ---- messages ------------------------------------------------------------------------------------------------- */

/* From the process that joined last, not older than that JOIN: it waits for its assignment and asks again. */
static bool asks_again(const struct row *row, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_JOIN);
	return row->has_joined && message->u.join.started_ns == row->started_ns &&
	       message->from.epoch >= row->join_epoch;
}

/* Is this JOIN news? A process that starts has epoch 0 and a birth later than any we knew in its place. One that we fenced
 * joins with the epoch that it lost; if that place is taken already, its assignment is on the way. */
static bool join_is_news(const struct row *row, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_JOIN);
	if (message->from.epoch == 0 && (!row->has_joined || message->u.join.started_ns > row->started_ns))
		return true;
	return row->standing == STANDING_ABSENT && (!row->has_joined || asks_again(row, message));
}

static void on_join(struct directory *d, struct step *step, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_JOIN);
	uint32_t worker = message->from.index;
	struct row *row = directory_row(d, worker);
	if (!join_is_news(row, message)) {
		if (asks_again(row, message))
			row->heard_ns = d->node.now;
		return;
	}
	skep_directory_fence(d, step, worker); /* the process that we knew is gone: this one holds nothing */
	if (d->phase == PHASE_STOPPED ||
		!skep_boundary_wants(d, step, worker)) /* it asks again with its next heartbeat */
		return;
	row->has_joined = true;
	row->started_ns = message->u.join.started_ns;
	skep_ends_joined(d, step->plan, worker, row->started_ns);
	row->join_epoch = message->from.epoch;
	row->epoch++;
	row->assigned = 0;
	row->heard_ns = d->node.now;
	row->outstanding = 0;
	row->member = row->leaving = row->returned = row->summing = row->tallied = false;
	skep_boundary_forget_load(d, worker);
	skep_directory_assign(d, step, worker, skep_boundary_needy_stage(d, step, worker));
}

/* Its device has room for the stage: whatever comes, it can take part. */
static void on_entered(struct directory *d, struct step *step, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_ENTERED);
	struct row *row = directory_row(d, message->from.index);
	if (row->standing != STANDING_ASSIGNED)
		return;
	skep_directory_stand(row, STANDING_ENTERED);
	if (directory_stage(d, row->stage)->waiting)
		skep_restore_entered(d, step, row->stage);
	else
		step->how.directory->entered(d, step, message->from.index);
}

static void on_ready(struct directory *d, struct step *step, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_READY);
	struct row *row = directory_row(d, message->from.index);
	if (row->standing != STANDING_JOINING)
		return; /* a duplicate */
	skep_directory_stand(row, STANDING_READY);
	skep_emit_note(step, &d->node,
		(struct skep_note){.kind = SKEP_NOTE_JOINED,
			.stage = (uint16_t)row->stage,
			.round = step->how.directory->next_reduction(d, row),
			.peer = directory_worker(d, message->from.index)});
	tell_choices(d, step, message->from.index);
	skep_restore_ready(d, step, message->from.index);
	step->how.directory->ready(d, step, message->from.index);
	if (skep_plan_fixed(step->plan) && d->phase != PHASE_STOPPED)
		skep_fixed_ready(d, step, message->from.index);
	if (d->phase != PHASE_STOPPED)
		step->how.losses->joined(d, step, message->from.index);
}

static void on_suspect(struct directory *d, struct step *step, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_SUSPECT);
	struct skep_peer who = message->u.peer.who;
	if (who.index >= step->plan->workers)
		return;
	const struct row *row = directory_row(d, who.index);
	bool gone = row->epoch > who.epoch || row->standing == STANDING_ABSENT;
	if (gone)
		skep_directory_send_peer(d, step, message->from.index, who, row->stage, false);
	else if (!message->u.peer.alive && row->epoch == who.epoch)
		skep_directory_fence(d, step, who.index);
}

static void on_norm(struct directory *d, struct step *step, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_NORM);
	for (uint32_t i = 0; i < step->how.features; i++)
		step->how.feature[i]->on_norm(d, step, message);
}

/* What is not finite stays so: nothing is to be learnt from it, and the run stops. */
static void on_fault(struct directory *d, struct step *step, const struct skep_message *message)
{
	if (step->how.scope->fault(d, step, message->u.fault))
		return;
	d->diverged = true;
	skep_emit_note(step, &d->node,
		(struct skep_note){.kind = SKEP_NOTE_DIVERGED,
			.stage = message->stage,
			.round = message->round,
			.microbatch = message->microbatch,
			.peer = message->from,
			.fault = message->u.fault});
	skep_directory_stop(d, step, false);
}

/* The worker that differs from its stage is fenced first: it may be the one that tells, and the run may end with it. */
static void on_tally(struct directory *d, struct step *step, const struct skep_message *message)
{
	uint32_t odd = skep_replicas_odd_one(d, step, message);
	assert(odd == SKEP_NO_INDEX || odd < step->plan->workers);
	if (odd != SKEP_NO_INDEX)
		skep_directory_fence(d, step, odd);
	if (odd != message->from.index && d->phase != PHASE_STOPPED)
		step->how.directory->on_tally(d, step, message);
}

static void on_message(struct directory *d, struct step *step, const struct skep_message *message)
{
	skep_emit_release(step, message->payload);         /* nothing for the directory has one */
	assert(message->from.index < step->plan->workers); /* skep_message_legal() says so */
	if (d->phase == PHASE_STOPPED) {                   /* it has not heard yet, or came too late */
		if (message->kind == SKEP_MESSAGE_JOIN || message->kind == SKEP_MESSAGE_HEARTBEAT)
			send_stop(d, step, message->from.index);
		return;
	}
	if (message->kind == SKEP_MESSAGE_JOIN) {
		on_join(d, step, message);
		return;
	}
	struct row *row = directory_row(d, message->from.index);
	if (row->standing == STANDING_ABSENT || row->epoch != message->from.epoch) {
		skep_directory_send_fenced(d, step, message->from);
		return;
	}
	row->heard_ns = d->node.now;
	switch (message->kind) {
	case SKEP_MESSAGE_FINISHED:
		step->how.directory->on_finished(d, step, message);
		break;
	case SKEP_MESSAGE_FORWARDS_DONE:
		skep_fixed_on_forwards_done(d, step, message);
		break;
	case SKEP_MESSAGE_TALLY:
		on_tally(d, step, message);
		break;
	case SKEP_MESSAGE_OUTER_UPDATE:
		step->how.directory->on_outer_update(d, step, message);
		break;
	case SKEP_MESSAGE_NORM:
		on_norm(d, step, message);
		break;
	case SKEP_MESSAGE_FAULT:
		on_fault(d, step, message);
		break;
	case SKEP_MESSAGE_CHECKPOINTED:
	case SKEP_MESSAGE_CHECKPOINT_FAILED:
		skep_checkpoints_heard(d, step, message);
		break;
	case SKEP_MESSAGE_ENTERED:
		on_entered(d, step, message);
		break;
	case SKEP_MESSAGE_READY:
		on_ready(d, step, message);
		break;
	case SKEP_MESSAGE_SUSPECT:
		on_suspect(d, step, message);
		break;
	case SKEP_MESSAGE_LOAD:
		skep_boundary_on_load(d, message->from.index, message->u.load.queue_milli, message->u.load.needed_ns);
		break;
	case SKEP_MESSAGE_LEAVE:
		skep_boundary_on_leave(d, step, message->from.index);
		break;
	case SKEP_MESSAGE_LIST_PEERS:
		if (directory_row(d, message->from.index)->standing >= STANDING_READY)
			tell_choices(d, step, message->from.index);
		break;
	default:
		break; /* a heartbeat, or meant for a worker */
	}
}

static void on_send_failed(struct directory *d, struct step *step, const struct skep_message *message)
{
	assert(message->from.index == step->plan->workers);
	bool current = message->to.epoch == directory_row(d, message->to.index)->epoch;
	bool gate = (message->kind == SKEP_MESSAGE_DRAIN && !step->how.order->drains_late) ||
	            message->kind == SKEP_MESSAGE_BARRIER_LIFTED;
	if (gate && (d->phase != PHASE_OPEN || message->round != d->round))
		current = false; /* no worker waits any more */
	if (current || message->kind == SKEP_MESSAGE_STOP || message->kind == SKEP_MESSAGE_PEER)
		skep_emit_send(step, &d->node, message);
}

static void on_start(struct directory *d, struct step *step, bool resumes)
{
	assert(d->phase == PHASE_OPEN);
	bool says = !d->candidacy.on || d->candidacy.candidate == 0; /* of several candidates one for all */
	if (resumes && says)
		skep_emit_note(step, &d->node, (struct skep_note){.kind = SKEP_NOTE_RESUMED, .round = d->round});
	if (resumes)
		skep_ends_resume(d, step->plan);
	if (d->closed == step->plan->rounds) { /* it was lost behind the last step: nothing is left to be made */
		skep_directory_stop(d, step, true);
		return;
	}
	for (uint32_t i = 0; i < step->plan->workers; i++)
		directory_row(d, i)->heard_ns = d->node.now;
	d->scan_ns = d->node.now + step->plan->liveness.heartbeat_ns;
	d->rebalance_due_ns = d->node.now + step->plan->rebalance.period_ns;
	step->how.scaling->begin(d, step->plan);
	step->how.directory->begin(d, step);
}

/* Who comes, goes or changes its stage may be an owner with room. */
static bool roster_stays(const struct skep_event *event)
{
	uint8_t kind = event->u.message.kind;
	return event->kind == SKEP_EVENT_MESSAGE && (kind == SKEP_MESSAGE_FINISHED || kind == SKEP_MESSAGE_HEARTBEAT);
}

void skep_directory_step(struct skep_node *node, struct step *step, const struct skep_event *event)
{
	struct directory *d = (struct directory *)node;
	d->full = d->full && roster_stays(event);
	switch ((enum skep_event_kind)event->kind) {
	case SKEP_EVENT_START:
		on_start(d, step, event->u.resumes);
		break;
	case SKEP_EVENT_TIMER:
		if (d->phase != PHASE_STOPPED && d->node.now >= d->scan_ns) {
			skep_restore_timer(d, step);
			step->how.losses->timer(d, step);
			if (skep_plan_fixed(step->plan))
				skep_fixed_timer(d, step);
			forgive_lateness(d, step->plan);
			fence_silent(d, step);
		}
		break;
	case SKEP_EVENT_MESSAGE:
		on_message(d, step, &event->u.message);
		break;
	case SKEP_EVENT_SEND_FAILED:
		on_send_failed(d, step, &event->u.message);
		break;
	case SKEP_EVENT_SUSPECT:
		if (event->u.peer.index < step->plan->workers &&
			directory_row(d, event->u.peer.index)->epoch == event->u.peer.epoch)
			skep_directory_fence(d, step, event->u.peer.index);
		break;
	case SKEP_EVENT_OP_DONE:
	case SKEP_EVENT_PREEMPT_NOTICE:
	case SKEP_EVENT_KINDS:
		break;
	case SKEP_EVENT_EGRESS:
		d->egress_microusd = event->u.egress_microusd;
		break;
	}
	if (d->phase == PHASE_STOPPED) {
		d->node.deadline = SKEP_TIME_NEVER;
		return;
	}
	step->how.directory->stepped(d, step);
	announce(d, step);
	d->node.deadline = d->unannounced > 0 ? d->node.now : d->scan_ns;
}
