/* SPDX-License-Identifier: Apache-2.0
 *
 * directory.c - the directory's machine: set-up, dispatch, and the roster.
 *
 * Every life of a worker has its own epoch. To fence a worker is to end its epoch for good: it is struck from the round, its
 * neighbours give up what it had, and should it still live it hears that it is out and joins again as a newcomer.
 * Only those whose microbatches may go to a worker choose it, and only they and those whose microbatches come from it
 * hold work with it (route.h), so only they are told of changes.
 */
#include "core/directory.h"

#include <assert.h>
#include <string.h>

#include "core/bits.h"
#include "core/collective.h"
#include "core/inflight.h"
#include "core/random.h"
#include "core/rebalance.h"
#include "core/route.h"

#define FENCES_PER_STEP 4u /* bounds the actions of a step; the rest follows at once */
#define ANNOUNCEMENTS_PER_STEP 16u

/* ---- set-up --------------------------------------------------------------------------------------------------- */

static size_t lay_out(struct directory *d, const struct skep_plan *plan)
{
	d->capacity = skep_round_capacity(plan);
	size_t at = skep_align(sizeof *d);
	d->row_at = at;
	at += skep_align(plan->workers * sizeof(struct row));
	d->stage_at = at;
	at += skep_align(plan->stages * sizeof(struct stage_state));
	d->owner_at = at;
	at += skep_align(d->capacity * sizeof(uint32_t));
	d->counter_at = at;
	at += skep_align((plan->async ? 2 : 1) * (size_t)skep_plan_slices(plan) * d->capacity * sizeof(uint32_t));
	d->order_at = at;
	at += skep_align(plan->workers * sizeof(uint32_t));
	d->load_at = at;
	at += skep_align(plan->workers * sizeof(struct skep_load));
	d->stage_load_at = at;
	at += skep_align(plan->stages * sizeof(struct skep_stage_load));
	d->square_at = at;
	at += skep_align(plan->clip ? (skep_plan_slices(plan) + 2) * sizeof(uint64_t) : 0);
	d->pipeline_at = at;
	if (skep_plan_fixed(plan))
		at += skep_align(skep_plan_pipelines(plan) * sizeof(struct pipeline));
	at = validate_lay_out(d, plan, at);
	if (plan->async)
		at = merges_lay_out(d, plan, at);
	return skep_plan_streams(plan) ? stream_lay_out(d, plan, at) : at;
}

size_t skep_directory_size(const struct skep_plan *plan)
{
	struct directory d;
	return lay_out(&d, plan);
}

uint32_t skep_directory_actions_limit(const struct skep_plan *plan)
{
	/* Announcements and fences reach two neighbour stages each, or all others; a commit names every member and opens a
	 * round. */
	uint32_t per_worker = ANNOUNCEMENTS_PER_STEP + 4 * FENCES_PER_STEP + 12 + (plan->delayed ? 4 : 0) +
	                      plan->promise + plan->barrier + 2 * (skep_plan_laps(plan) - 1) +
	                      2 * (plan->validate_every > 0) + ties_actions(plan, FENCES_PER_STEP);
	if (skep_plan_streams(plan)) /* all that may be open opens; is summed anew for each that is fenced; ends */
		per_worker += (FENCES_PER_STEP + 6) * skep_plan_window(plan);
	if (plan->async) /* SETTLE, COMMIT, REDUCE; anew for each that is fenced; KEEP */
		per_worker += 4 * FENCES_PER_STEP + 12 + 4 * skep_bits_words(skep_round_capacity(plan));
	if (skep_collective_has_roster(
		    plan->collective)) /* a reduction of each stage, and anew for each that is fenced */
		per_worker +=
			(FENCES_PER_STEP + 1 + plan->promise) * (skep_stage_size_max(plan) / SKEP_ROSTER_PART + 1);
	return 256 + per_worker * plan->workers + (FENCES_PER_STEP + 1) * (2 + plan->async) * GRANTS_PER_REFILL +
	       skep_plan_laps(plan) * skep_bits_words(skep_round_capacity(plan));
}

void skep_directory_init(void *mem, const struct skep_plan *plan)
{
	struct directory *d = mem;
	lay_out(d, plan);
	d->inflight_capacity = skep_inflight_capacity(plan);
	d->loss_nano = INT64_MAX;
	d->mover.index = SKEP_NO_INDEX;
	d->stages = plan->stages;
	d->async = plan->async;
	keep_begin(d, plan);
	for (uint32_t i = 0; i < plan->workers; i++) {
		struct row *row = directory_row(d, i);
		row->stage = plan->first_stage_of[i];
		if (row->stage == SKEP_NO_STAGE)
			continue;
		row->epoch = 1;
		row->standing = STANDING_SERVING;
		row->announced = true;
		if (!skep_plan_fixed(plan))
			directory_count_in(d, row);
	}
	if (skep_plan_fixed(plan))
		fixed_init(d, plan);
}

void directory_count_in(struct directory *d, const struct row *row)
{
	directory_stage(d, row->stage)->serving++;
	directory_stage(d, row->stage)->leaving += row->leaving;
	if (d->pipelines > 0)
		fixed_count_in(d, row);
}

void directory_count_out(struct directory *d, const struct row *row)
{
	directory_stage(d, row->stage)->serving--;
	directory_stage(d, row->stage)->leaving -= row->leaving;
	if (d->pipelines > 0)
		fixed_count_out(d, row);
}

/* ---- telling -------------------------------------------------------------------------------------------------- */

void directory_tell(
	struct directory *d, struct step *step, uint32_t to, struct skep_peer who, uint32_t stage, bool alive)
{
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
	for (uint32_t i = 0; i < step->plan->workers; i++) {
		const struct row *other = directory_row(d, i);
		if (other->standing == STANDING_SERVING && directory_leads(step->plan, directory_row(d, to), other))
			directory_tell(d, step, to, directory_worker(d, i), other->stage, true);
	}
}

/* A life that has ended still speaks: the news of its end may have overtaken its assignment. */
void directory_tell_fenced(struct directory *d, struct step *step, struct skep_peer fenced)
{
	struct skep_message message = skep_message_to(&d->node, SKEP_MESSAGE_PEER, fenced);
	message.u.peer.who = fenced;
	skep_emit_send(step, &d->node, &message);
}

static void announce(struct directory *d, struct step *step)
{
	uint32_t left = ANNOUNCEMENTS_PER_STEP;
	for (uint32_t i = 0; i < step->plan->workers && d->unannounced > 0 && left > 0; i++) {
		struct row *row = directory_row(d, i);
		if (row->standing != STANDING_SERVING || row->announced)
			continue;
		for (uint32_t to = 0; to < step->plan->workers && (row->stage > 0 || step->plan->laps > 1); to++) {
			const struct row *other = directory_row(d, to);
			if (directory_has_stage(other) && directory_leads(step->plan, other, row))
				directory_tell(d, step, to, directory_worker(d, i), row->stage, true);
		}
		row->announced = true;
		d->unannounced--;
		left--;
	}
}

static void tell_gone(struct directory *d, struct step *step, struct skep_peer gone)
{
	const struct row *row = directory_row(d, gone.index);
	for (uint32_t to = 0; to < step->plan->workers; to++) {
		const struct row *other = directory_row(d, to);
		if (directory_has_stage(other) &&
			(directory_leads(step->plan, other, row) || directory_leads(step->plan, row, other)))
			directory_tell(d, step, to, gone, row->stage, false);
	}
}

/* A worker that holds its stage's whole state is to make the last step first, so that all leave with the same parameters. */
static void send_stop(struct directory *d, struct step *step, uint32_t to)
{
	struct skep_message message = skep_message_to(&d->node, SKEP_MESSAGE_STOP, directory_worker(d, to));
	const struct row *row = directory_row(d, to);
	bool apart = skep_plan_streams(step->plan) || step->plan->async;
	uint32_t behind = apart && row->standing >= STANDING_READY ? directory_stage(d, row->stage)->behind : d->closed;
	message.round = row->standing >= STANDING_READY ? behind : 0;
	message.u.stop.ok = d->node.outcome == SKEP_DONE;
	skep_emit_send(step, &d->node, &message);
}

void directory_stop(struct directory *d, struct step *step, bool ok)
{
	d->phase = PHASE_STOPPED;
	d->tried.fell = d->tried.on;
	if (d->tried.fell)
		return; /* there are others */
	d->node.outcome = ok ? SKEP_DONE : SKEP_FAILED;
	for (uint32_t i = 0; i < step->plan->workers; i++)
		send_stop(d, step, i);
	uint32_t waits = ok ? 0 : d->diverged ? SKEP_NO_STAGE : refound_waiting(d, step->plan);
	if (waits == SKEP_NO_STAGE && !d->diverged) /* no stage is empty, and no pipeline whole */
		waits = fixed_missing_stage(d, step->plan);
	skep_emit_note(step, &d->node,
		(struct skep_note){
			.kind = SKEP_NOTE_STOPPED, .stage = (uint16_t)waits, .round = d->closed, .value = ok});
}

/* ---- joining -------------------------------------------------------------------------------------------------- */

void directory_serve(struct directory *d, uint32_t worker)
{
	struct row *row = directory_row(d, worker);
	row->standing = STANDING_SERVING;
	row->announced = false;
	d->full = false;
	d->unannounced++;
	if (d->async)
		merges_serve(d, worker);
	directory_count_in(d, row);
}

static bool holds_state(const struct row *row, uint32_t stage)
{
	return row->standing >= STANDING_READY && row->stage == stage;
}

/* One of those that stay, or of all if nobody does. */
static struct skep_peer pick_source(struct directory *d, const struct skep_plan *plan, uint32_t stage)
{
	uint32_t all = 0, stay = 0;
	for (uint32_t i = 0; i < plan->workers; i++) {
		all += holds_state(directory_row(d, i), stage);
		stay += holds_state(directory_row(d, i), stage) && !directory_row(d, i)->leaving;
	}
	uint32_t nth = skep_random_below(&d->node.random, stay > 0 ? stay : all);
	for (uint32_t i = 0; i < plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		if (holds_state(row, stage) && !(stay > 0 && row->leaving) && nth-- == 0)
			return directory_worker(d, i);
	}
	assert(false);
	return (struct skep_peer){SKEP_NO_INDEX, 0};
}

void directory_assign(struct directory *d, struct step *step, uint32_t worker, uint32_t stage)
{
	struct row *row = directory_row(d, worker);
	row->stage = stage;
	row->standing = STANDING_ASSIGNED;
	struct skep_message message = skep_message_to(&d->node, SKEP_MESSAGE_ASSIGN, directory_worker(d, worker));
	message.stage = (uint16_t)stage;
	message.microbatch = d->tried.candidate;
	skep_emit_send(step, &d->node, &message);
}

static void admit(struct directory *d, struct step *step, uint32_t worker, struct skep_peer source)
{
	struct row *row = directory_row(d, worker);
	row->source = source;
	struct skep_message message = skep_message_to(&d->node, SKEP_MESSAGE_ADMIT, directory_worker(d, worker));
	message.stage = (uint16_t)row->stage;
	message.round = row->since;
	message.attempt = ++row->assigned;
	message.u.admit.source = row->source;
	message.u.admit.checkpoint = directory_stage(d, row->stage)->checkpoint;
	if (d->async)
		message.microbatch = directory_stage(d, row->stage)->serving + 1;
	skep_emit_send(step, &d->node, &message);
}

/* A member of the open round's reduction, or if that has begun of the next one's. */
void directory_let_in(struct directory *d, struct step *step, uint32_t worker, struct skep_peer source)
{
	struct row *row = directory_row(d, worker);
	row->standing = STANDING_JOINING;
	bool over = d->ending && !skep_plan_streams(step->plan); /* else rounds that are open still may be committed */
	row->since = over ? d->closed : d->round + (d->phase == PHASE_REDUCING);
	if (d->async)
		row->since = merges_let_in(d, worker);
	skep_emit_note(step, &d->node,
		(struct skep_note){.kind = SKEP_NOTE_ADMITTED,
			.stage = (uint16_t)row->stage,
			.round = d->async ? directory_next_reduction(d, step->plan, row) : row->since,
			.peer = directory_worker(d, worker)});
	admit(d, step, worker, source);
}

void directory_let_in_from_any(struct directory *d, struct step *step, uint32_t worker)
{
	directory_let_in(d, step, worker, pick_source(d, step->plan, directory_row(d, worker)->stage));
}

void directory_new_sources(struct directory *d, struct step *step)
{
	for (uint32_t i = 0; i < step->plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		if (row->standing != STANDING_JOINING || row->source.index == SKEP_NO_INDEX)
			continue;
		const struct row *source = directory_row(d, row->source.index);
		if (source->standing < STANDING_READY || source->epoch != row->source.epoch)
			admit(d, step, i, pick_source(d, step->plan, row->stage));
	}
}

/* ---- fencing -------------------------------------------------------------------------------------------------- */

void directory_fence(struct directory *d, struct step *step, uint32_t worker)
{
	struct row *row = directory_row(d, worker);
	struct skep_peer gone = directory_worker(d, worker);
	uint8_t was = row->standing;
	if (was == STANDING_ABSENT || d->phase == PHASE_STOPPED)
		return;
	row->standing = STANDING_ABSENT;
	skep_emit_note(step, &d->node,
		(struct skep_note){.kind = SKEP_NOTE_FENCED, .stage = (uint16_t)row->stage, .peer = gone});
	directory_tell_fenced(d, step, gone);
	if (was == STANDING_SERVING) {
		directory_count_out(d, row);
		d->unannounced -= !row->announced;
		tell_gone(d, step, gone);
		if (directory_stage(d, row->stage)->serving == 0)
			refound_stage(d, step, row->stage);
	} else if (was == STANDING_READY && directory_stage(d, row->stage)->serving == 0) {
		refound_stage(d, step, row->stage);
	}
	if (d->phase == PHASE_STOPPED)
		return;
	rounds_worker_gone(d, step, worker);
	if (d->ending && d->phase != PHASE_STOPPED) /* it may have been asked to keep its state */
		rounds_end(d, step);
	if (was == STANDING_JOINING)
		refound_gone(d, step, gone, row->stage);
	if (was >= STANDING_READY && d->phase != PHASE_STOPPED)
		directory_new_sources(d, step);
}

void directory_retire(struct directory *d, struct step *step, uint32_t worker)
{
	struct row *row = directory_row(d, worker);
	assert(row->standing == STANDING_SERVING);
	row->standing = STANDING_ABSENT;
	directory_count_out(d, row);
	row->leaving = false;
	d->unannounced -= !row->announced;
	tell_gone(d, step, directory_worker(d, worker));
}

static void fence_silent(struct directory *d, struct step *step)
{
	uint32_t left = FENCES_PER_STEP;
	skep_time limit = step->plan->fence_after_ns;
	for (uint32_t i = 0; i < step->plan->workers && d->phase != PHASE_STOPPED; i++) {
		const struct row *row = directory_row(d, i);
		if (row->standing == STANDING_ABSENT || row->heard_ns + limit > d->node.now)
			continue;
		if (left-- == 0)
			return; /* scan_ns stays in the past: the next step goes on */
		directory_fence(d, step, i);
	}
	d->scan_ns = d->node.now + step->plan->heartbeat_ns;
}

/* A directory that was itself held up must not take the messages that it has not read yet for silence. */
static void forgive_lateness(struct directory *d, const struct skep_plan *plan)
{
	if (d->node.now < d->scan_ns + plan->heartbeat_ns)
		return;
	for (uint32_t i = 0; i < plan->workers; i++)
		directory_row(d, i)->heard_ns = d->node.now;
}

/* ---- messages ------------------------------------------------------------------------------------------------- */

/* From the process that joined last, not older than that JOIN: it waits for its assignment and asks again. */
static bool asks_again(const struct row *row, const struct skep_message *message)
{
	return row->has_joined && message->u.join.born_ns == row->born_ns && message->from.epoch >= row->join_epoch;
}

/* Is this JOIN news? A process that starts has epoch 0 and a birth later than any we knew in its place. One that we fenced
 * joins with the epoch that it lost; if that place is taken already, its assignment is on the way. */
static bool join_is_news(const struct row *row, const struct skep_message *message)
{
	if (message->from.epoch == 0 && (!row->has_joined || message->u.join.born_ns > row->born_ns))
		return true;
	return row->standing == STANDING_ABSENT && (!row->has_joined || asks_again(row, message));
}

static void on_join(struct directory *d, struct step *step, const struct skep_message *message)
{
	uint32_t worker = message->from.index;
	struct row *row = directory_row(d, worker);
	if (!join_is_news(row, message)) {
		if (asks_again(row, message))
			row->heard_ns = d->node.now;
		return;
	}
	directory_fence(d, step, worker); /* the process that we knew is gone: this one holds nothing */
	if (d->phase == PHASE_STOPPED || !edge_wants(d, step->plan, worker)) /* it asks again with its next heartbeat */
		return;
	row->has_joined = true;
	row->born_ns = message->u.join.born_ns;
	row->join_epoch = message->from.epoch;
	row->epoch++;
	row->assigned = 0;
	row->heard_ns = d->node.now;
	row->outstanding = 0;
	row->member = row->leaving = false;
	edge_forget_load(d, worker);
	directory_assign(d, step, worker, edge_needy_stage(d, step->plan, worker));
}

/* Its device has room for the stage: whatever comes, it can take part. */
static void on_entered(struct directory *d, struct step *step, const struct skep_message *message)
{
	struct row *row = directory_row(d, message->from.index);
	if (row->standing != STANDING_ASSIGNED)
		return;
	row->standing = STANDING_ENTERED;
	if (directory_stage(d, row->stage)->waiting)
		refound_entered(d, step, row->stage);
	else if (skep_plan_streams(step->plan))
		stream_fill(d, step); /* when no round is open */
	else if (d->async)
		merges_go_on(d, step, row->stage); /* when no merge is under way */
	else
		directory_let_in_from_any(d, step, message->from.index);
}

static void on_ready(struct directory *d, struct step *step, const struct skep_message *message)
{
	struct row *row = directory_row(d, message->from.index);
	if (row->standing != STANDING_JOINING)
		return; /* a duplicate */
	row->standing = STANDING_READY;
	skep_emit_note(step, &d->node,
		(struct skep_note){.kind = SKEP_NOTE_JOINED,
			.stage = (uint16_t)row->stage,
			.round = directory_next_reduction(d, step->plan, row),
			.peer = directory_worker(d, message->from.index)});
	tell_choices(d, step, message->from.index);
	refound_ready(d, step, message->from.index);
	if (d->async)
		merges_ready(d, step, message->from.index);
	if (skep_plan_fixed(step->plan) && d->phase != PHASE_STOPPED)
		fixed_ready(d, step, message->from.index);
}

static void on_suspect(struct directory *d, struct step *step, const struct skep_message *message)
{
	struct skep_peer who = message->u.peer.who;
	if (who.index >= step->plan->workers)
		return;
	const struct row *row = directory_row(d, who.index);
	bool gone = row->epoch > who.epoch || row->standing == STANDING_ABSENT;
	if (gone)
		directory_tell(d, step, message->from.index, who, row->stage, false);
	else if (!message->u.peer.alive && row->epoch == who.epoch)
		directory_fence(d, step, who.index);
}

static void on_message(struct directory *d, struct step *step, const struct skep_message *message)
{
	skep_emit_release(step, message->payload); /* nothing for the directory has one */
	if (message->from.index >= step->plan->workers)
		return;
	if (d->phase == PHASE_STOPPED) { /* it has not heard yet, or came too late */
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
		directory_tell_fenced(d, step, message->from);
		return;
	}
	row->heard_ns = d->node.now;
	switch (message->kind) {
	case SKEP_MESSAGE_FINISHED:
		rounds_on_finished(d, step, message);
		break;
	case SKEP_MESSAGE_PASSED:
		fixed_on_passed(d, step, message);
		break;
	case SKEP_MESSAGE_TALLY:
		rounds_on_tally(d, step, message);
		break;
	case SKEP_MESSAGE_MERGE:
		merges_on_merge(d, step, message);
		break;
	case SKEP_MESSAGE_NORM:
		norms_on_norm(d, step, message);
		break;
	case SKEP_MESSAGE_FAULT:
		norms_on_fault(d, step, message);
		break;
	case SKEP_MESSAGE_CHECKPOINTED:
	case SKEP_MESSAGE_UNKEPT:
		keep_heard(d, step, message);
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
		edge_on_load(d, message->from.index, message->u.load.queue_milli, message->u.load.needed_ns);
		break;
	case SKEP_MESSAGE_LEAVE:
		edge_on_leave(d, step, message->from.index);
		break;
	case SKEP_MESSAGE_WHO:
		if (directory_row(d, message->from.index)->standing >= STANDING_READY)
			tell_choices(d, step, message->from.index);
		break;
	default:
		break; /* a heartbeat, or meant for a worker */
	}
}

static void on_send_failed(struct directory *d, struct step *step, const struct skep_message *message)
{
	bool current = message->to.epoch == directory_row(d, message->to.index)->epoch;
	bool gate = (message->kind == SKEP_MESSAGE_TURN && !skep_plan_streams(step->plan)) ||
	            message->kind == SKEP_MESSAGE_BACK;
	if (gate && (d->phase != PHASE_OPEN || message->round != d->round))
		current = false; /* nobody waits any more */
	if (current || message->kind == SKEP_MESSAGE_STOP || message->kind == SKEP_MESSAGE_PEER)
		skep_emit_send(step, &d->node, message);
}

static void on_start(struct directory *d, struct step *step)
{
	for (uint32_t i = 0; i < step->plan->workers; i++)
		directory_row(d, i)->heard_ns = d->node.now;
	d->scan_ns = d->node.now + step->plan->heartbeat_ns;
	d->rebalance_due_ns = d->node.now + step->plan->rebalance_ns;
	rounds_open(d, step);
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
		on_start(d, step);
		break;
	case SKEP_EVENT_TIMER:
		if (d->phase != PHASE_STOPPED && d->node.now >= d->scan_ns) {
			refound_timer(d, step);
			if (skep_plan_fixed(step->plan))
				fixed_timer(d, step);
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
			directory_fence(d, step, event->u.peer.index);
		break;
	case SKEP_EVENT_OP_DONE:
	case SKEP_EVENT_PREEMPT_NOTICE:
		break;
	}
	if (d->phase == PHASE_STOPPED) {
		d->node.deadline = SKEP_TIME_NEVER;
		return;
	}
	if (d->async)
		merges_ask_new(d, step);
	announce(d, step);
	d->node.deadline = d->unannounced > 0 ? d->node.now : d->scan_ns;
}
