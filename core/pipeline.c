/* SPDX-License-Identifier: Apache-2.0
 *
 * pipeline.c - what becomes of a microbatch on a worker.
 *
 * It comes forwards (or is issued here, in the first stage), goes on to one worker of the next stage, and its gradient
 * comes back; whether from worker to worker or through its owner is for route.h. It is counted here when BACKWARD has added
 * to the accumulator, before its gradient leaves; so a microbatch that came back to its owner was counted by all.
 */
#include <assert.h>
#include <string.h>

#include "core/worker.h"

static void release_legs(struct worker *w, struct step *step, const struct skep_work *work)
{
	for (uint32_t stage = 1; stage <= work->leg; stage++) {
		struct skep_leg *leg = worker_leg(w, step->plan, work, stage);
		skep_emit_release(step, leg->in);
		leg->in = (struct skep_buf){0, 0};
	}
}

void pipeline_release(struct worker *w, struct step *step, const struct skep_work *work)
{
	skep_emit_release(step, work->in);
	skep_emit_release(step, work->stash);
	skep_emit_release(step, work->gradient);
	if (work->owned && step->plan->routing == SKEP_ROUTING_TRAINER)
		release_legs(w, step, work);
}

/* RECOMPUTE runs for a microbatch that waits for its gradient, or has got it since. */
bool pipeline_recomputing(struct worker *w, const struct skep_work *work)
{
	return w->compute_op >= w->op_floor && w->compute_kind == SKEP_OP_RECOMPUTE &&
	       work == &worker_inflight(w)->work[w->compute_slot];
}

void pipeline_drop(struct worker *w, struct step *step, struct skep_work *work)
{
	if (pipeline_recomputing(w, work)) {
		skep_work_unqueue(worker_inflight(w), work);
		skep_emit_release(step, work->gradient);
		work->gradient = (struct skep_buf){0, 0};
		work->state = SKEP_WORK_RUNNING_FORWARD;
		work->doomed = true;
		return;
	}
	pipeline_release(w, step, work);
	skep_inflight_remove(worker_inflight(w), work);
}

/* ---- microbatches --------------------------------------------------------------------------------------------- */

static void report_finished(struct worker *w, struct step *step, const struct skep_work *work, bool ok)
{
	struct skep_message message = skep_message_to(&w->node, SKEP_MESSAGE_FINISHED, skep_directory_peer(step->plan));
	message.round = work->round;
	message.microbatch = work->microbatch;
	message.attempt = work->attempt;
	message.u.finished.ok = ok;
	message.u.finished.loss_nano = ok && worker_validates(w, work->microbatch) ? work->loss_nano : 0;
	w->issued_in_flight -=
		!w->streams && worker_works_on(w, work->round); /* of a sealed round nothing is in flight */
	worker_send(w, step, &message);
}

static void send_abandon(struct worker *w, struct step *step, const struct skep_work *work)
{
	struct skep_message message = skep_message_to(&w->node, SKEP_MESSAGE_ABANDON, work->up);
	message.stage = (uint16_t)worker_slice(w, work);
	message.round = work->round;
	message.microbatch = work->microbatch;
	message.attempt = work->attempt;
	worker_send(w, step, &message);
}

void pipeline_give_up(struct worker *w, struct step *step, struct skep_work *work)
{
	if (work->owned)
		report_finished(w, step, work, false);
	else if (work->up.index != SKEP_NO_INDEX)
		send_abandon(w, step, work);
	pipeline_drop(w, step, work);
}

struct skep_message pipeline_tensor(struct worker *w, struct step *step, const struct skep_work *work,
	enum skep_message_kind kind, struct skep_peer to, uint32_t stage, struct skep_buf payload)
{
	uint32_t boundary = kind == SKEP_MESSAGE_BACKWARD ? stage - 1 : stage;
	struct skep_message message = skep_message_to(&w->node, kind, to);
	message.stage = (uint16_t)stage;
	message.round = work->round;
	message.microbatch = work->microbatch;
	message.attempt = work->attempt;
	message.span = work->span;
	message.payload = payload;
	message.payload_bytes = skep_plan_slice_bytes(step->plan, boundary);
	return message;
}

/* Is the slice that it is in here among those that are to count it? */
static bool counts(const struct worker *w, const struct skep_work *work)
{
	uint32_t slice = worker_slice(w, work);
	return slice >= work->span.first && slice <= work->span.last;
}

/* Of the parameters that a pass of it reads now. */
static uint32_t version_of(const struct worker *w, const struct skep_plan *plan, const struct skep_work *work)
{
	if (w->periodic)
		return w->version;
	return w->streams ? work->version : skep_plan_version(plan, work->round);
}

void pipeline_run(struct worker *w, struct step *step, struct skep_work *work, enum skep_op_kind kind)
{
	struct skep_op op = {.kind = (uint8_t)kind, .stage = (uint16_t)worker_slice(w, work)};
	op.round = work->round;
	op.microbatch = work->microbatch;
	op.attempt = work->attempt;
	if (w->streams && kind == SKEP_OP_FORWARD)
		work->version = w->version;
	bool edge = worker_validates(w, work->microbatch) && !w->async;
	op.version = edge ? work->round : version_of(w, step->plan, work);
	op.in = work->in;
	op.stash = work->stash;
	op.gradient = work->gradient;
	op.uncounted = kind == SKEP_OP_BACKWARD && !counts(w, work);
	if (kind == SKEP_OP_BACKWARD && w->part == 0)
		w->parts = op.uncounted ? 0 : promised_parts(w, step->plan);
	if (kind == SKEP_OP_BACKWARD && w->parts > 0) {
		op.chunk = w->part;
		op.size = w->parts;
		skep_plan_bucket(step->plan, w->node.stage, w->part, &op.first, &op.count);
	}
	work->state = kind == SKEP_OP_FORWARD ? SKEP_WORK_RUNNING_FORWARD : SKEP_WORK_RUNNING_BACKWARD;
	uint32_t slot = (uint32_t)(work - worker_inflight(w)->work);
	op.recomputed = kind == SKEP_OP_BACKWARD && w->compute_kind == SKEP_OP_RECOMPUTE && w->compute_slot == slot;
	w->compute_slot = slot;
	w->backwards = kind == SKEP_OP_BACKWARD;
	worker_compute(w, step, &op);
}

void pipeline_recompute(struct worker *w, struct step *step, struct skep_work *work)
{
	struct skep_op op = {.kind = SKEP_OP_RECOMPUTE, .stage = (uint16_t)w->node.stage};
	op.round = work->round;
	op.microbatch = work->microbatch;
	op.attempt = work->attempt;
	op.version = skep_plan_version(step->plan, work->round);
	op.in = work->in;
	w->compute_slot = (uint32_t)(work - worker_inflight(w)->work);
	worker_compute(w, step, &op);
}

void pipeline_recompute_done(struct worker *w, struct step *step, struct skep_work *work, skep_time elapsed_ns)
{
	work->needed_ns += elapsed_ns;
	w->passes_ns += elapsed_ns;
	if (work->doomed)
		pipeline_drop(w, step, work);
}

void pipeline_issue(struct worker *w, struct step *step)
{
	struct grant *grant = worker_grants(w);
	struct skep_work *work = skep_inflight_add(worker_inflight(w), grant->round, worker_item(w, grant->first, 0));
	assert(work); /* in_flight is at most the table's capacity, and an owner holds nothing but its own */
	work->owned = true;
	work->microbatch = grant->first;
	work->attempt = grant->attempt;
	work->span = grant->span;
	w->issued_in_flight++;
	if (++grant->first == grant->end) {
		w->grants--;
		memmove(grant, grant + 1, w->grants * sizeof *grant);
	}
	pipeline_run(w, step, work, SKEP_OP_FORWARD);
}

/* The last stage has judged it: back to the owner with that, and nothing else. */
static void judged(struct worker *w, struct step *step, struct skep_work *work, int64_t loss_nano)
{
	work->loss_nano = loss_nano;
	if (work->owned) {
		report_finished(w, step, work, true);
	} else if (work->up.index != SKEP_NO_INDEX) {
		struct skep_message message = skep_message_to(&w->node, SKEP_MESSAGE_VALIDATED, work->up);
		message.stage = (uint16_t)worker_slice(w, work);
		message.round = work->round;
		message.microbatch = work->microbatch;
		message.attempt = work->attempt;
		message.u.validated.loss_nano = loss_nano;
		worker_send(w, step, &message);
	}
	pipeline_drop(w, step, work);
}

void pipeline_on_validated(struct worker *w, struct step *step, const struct skep_message *message)
{
	struct skep_work *work = pipeline_awaited(w, message);
	if (work && worker_validates(w, message->microbatch))
		judged(w, step, work, message->u.validated.loss_nano);
}

/* There will be no BACKWARD. What went in is kept, in case that the next one gives it back. */
static void validated(struct worker *w, struct step *step, struct skep_work *work, const struct skep_event *event)
{
	skep_emit_release(step, event->u.done.stash);
	work->gradient = event->u.done.out;
	if (work->doomed)
		pipeline_drop(w, step, work);
	else if (worker_slice(w, work) + 1 < skep_plan_slices(step->plan))
		route_of(step->plan)->forwarded(w, step, work);
	else
		judged(w, step, work, event->u.done.loss_nano);
}

void pipeline_forward_done(struct worker *w, struct step *step, struct skep_work *work, const struct skep_event *event)
{
	if (worker_validates(w, work->microbatch)) {
		validated(w, step, work, event);
		return;
	}
	work->stash = event->u.done.stash;
	work->needed_ns = event->u.done.elapsed_ns;
	w->passes_ns += event->u.done.elapsed_ns;
	work->gradient = event->u.done.out;
	w->forwarded += !work->doomed;
	if (work->doomed) {
		pipeline_drop(w, step, work);
	} else if (event->fault) { /* nobody else is to see it */
		pipeline_give_up(w, step, work);
	} else if (worker_slice(w, work) + 1 < skep_plan_slices(step->plan)) {
		route_of(step->plan)->forwarded(w, step, work);
	} else {
		assert(skep_buf_none(work->gradient));
		work->loss_nano = event->u.done.loss_nano;
		work->state = SKEP_WORK_READY_BACKWARD;
		skep_work_push(worker_inflight(w), &worker_inflight(w)->backward[work->round & 1], work);
		schedule_passed(w, step);
	}
}

static int64_t add_saturating(int64_t a, int64_t b)
{
	if (b > 0 && a > INT64_MAX - b)
		return INT64_MAX;
	return b < 0 && a < INT64_MIN - b ? INT64_MIN : a + b;
}

static void count(struct worker *w, struct step *step, const struct skep_work *work)
{
	uint32_t version = version_of(w, step->plan, work);
	w->met = true;
	skep_tally_add(worker_tally(w, work->round), work->item);
	w->counted[work->round & 1]++;
	if (w->periodic)
		inner_counted(w, step->plan, work->round, work->microbatch);
	int64_t *loss_nano = &w->loss_nano[work->round & 1];
	*loss_nano = add_saturating(*loss_nano, work->loss_nano);
	skep_emit_note(step, &w->node,
		(struct skep_note){.kind = SKEP_NOTE_COUNTED,
			.stage = (uint16_t)worker_slice(w, work),
			.round = work->round,
			.microbatch = work->microbatch,
			.peer = w->node.self,
			.value = w->async ? w->version - w->merge.base : work->round - version});
}

/* Some layers are done: on with those before them, and with the sum of what is ready. */
static void part_done(struct worker *w, struct step *step, struct skep_work *work, struct skep_buf out)
{
	skep_emit_release(step, work->gradient);
	work->gradient = out;
	w->part++;
	pipeline_run(w, step, work, SKEP_OP_BACKWARD);
	if (w->reduction.promised)
		promised_counted(w, step);
}

void pipeline_backward_done(struct worker *w, struct step *step, struct skep_work *work, const struct skep_event *event)
{
	struct skep_buf out = event->u.done.out;
	work->needed_ns += event->u.done.elapsed_ns;
	w->passes_ns += event->u.done.elapsed_ns;
	if (w->part + 1 < w->parts) {
		part_done(w, step, work, out);
		return;
	}
	w->part = w->parts = 0;
	w->passed++;
	bool open = worker_works_on(w, work->round); /* else it is the last one of a round that is sealed */
	assert(open || work->round == w->version || w->streams || w->async);
	if (counts(w, work))
		count(w, step, work);
	if (step->plan->routing == SKEP_ROUTING_TRAINER && open) {
		w->met = true;
		skep_marks_add(worker_done(w, work->round), work->microbatch);
	}
	if (work->owned)
		report_finished(w, step, work, true);
	if (work->up.index != SKEP_NO_INDEX && open) { /* once sealed, so is the sender: spare the link */
		struct skep_message message =
			pipeline_tensor(w, step, work, SKEP_MESSAGE_BACKWARD, work->up, worker_slice(w, work), out);
		message.u.backward.needed_ns = work->needed_ns;
		worker_send(w, step, &message);
	} else {
		skep_emit_release(step, out);
	}
	pipeline_drop(w, step, work);
	if (w->streams)
		reduce_settle(w, step);
	else if (!open && !w->async)
		reduce_backward_ended(w, step);
	else if (w->reduction.promised)
		promised_counted(w, step);
}

static void drop_grants(struct worker *w, uint32_t end)
{
	struct grant *grant = worker_grants(w);
	uint32_t kept = 0;
	for (uint32_t i = 0; i < w->grants; i++) {
		if (grant[i].round >= end)
			grant[kept++] = grant[i];
	}
	w->grants = kept;
}

/* All but a BACKWARD that runs right now. */
static void drop_work(struct worker *w, struct step *step, struct skep_work *work)
{
	if (work->state == SKEP_WORK_FREE || work->state == SKEP_WORK_RUNNING_BACKWARD)
		return;
	if (work->state == SKEP_WORK_RUNNING_FORWARD)
		work->doomed = true;
	else
		pipeline_drop(w, step, work);
}

/* Drops what is left of the round. Only a BACKWARD that runs right now may still be counted. */
void pipeline_seal_round(struct worker *w, struct step *step, uint32_t round)
{
	struct skep_inflight *table = worker_inflight(w);
	for (uint32_t i = 0; i < table->capacity; i++) {
		if (table->work[i].round == round)
			drop_work(w, step, &table->work[i]);
	}
	skep_marks_clear(worker_seen(w, round));
	if (step->plan->routing == SKEP_ROUTING_TRAINER)
		skep_marks_clear(worker_done(w, round));
	w->issued_in_flight = w->forwarded = 0;
	laps_begin(w);
	drop_grants(w, round + 1);
}

void pipeline_seal(struct worker *w, struct step *step)
{
	pipeline_seal_round(w, step, w->version);
}

void pipeline_seal_given_up(struct worker *w, struct step *step)
{
	struct skep_inflight *table = worker_inflight(w);
	for (uint32_t i = 0; i < table->capacity; i++) {
		if (table->work[i].round < w->turn)
			drop_work(w, step, &table->work[i]);
	}
	drop_grants(w, w->turn);
}

void pipeline_peer_gone(struct worker *w, struct step *step, struct skep_peer gone)
{
	struct skep_inflight *table = worker_inflight(w);
	uint32_t left = table->used;
	for (uint32_t i = 0; left > 0; i++) {
		if (table->work[i].state == SKEP_WORK_FREE)
			continue;
		left--;
		route_of(step->plan)->gone(w, step, &table->work[i], gone);
	}
}

void pipeline_hand_back(struct worker *w, struct step *step)
{
	for (uint32_t i = 0; i < w->grants; i++) {
		struct grant *grant = &worker_grants(w)[i];
		for (; grant->first < grant->end; grant->first++) {
			struct skep_message message =
				skep_message_to(&w->node, SKEP_MESSAGE_FINISHED, skep_directory_peer(step->plan));
			message.round = grant->round;
			message.microbatch = grant->first;
			message.attempt = grant->attempt;
			worker_send(w, step, &message);
		}
	}
	w->grants = 0;
}

void pipeline_peer_new(struct worker *w, struct step *step)
{
	struct skep_inflight *table = worker_inflight(w);
	uint32_t left = table->used;
	for (uint32_t i = 0; left > 0; i++) {
		struct skep_work *work = &table->work[i];
		left -= work->state != SKEP_WORK_FREE;
		if (work->state == SKEP_WORK_WAIT_PEER)
			route_of(step->plan)->go_on(w, step, work);
	}
}

/* ---- messages of the pipeline --------------------------------------------------------------------------------- */

bool pipeline_round_open(struct worker *w, const struct skep_message *message)
{
	bool numbered = message->microbatch < w->numbers / w->laps.count && laps_of_message(w, message) < w->laps.count;
	if (w->state != WORKER_SERVING || !numbered)
		return false;
	bool newcomer = message->round == w->version && !worker_sealed(w) && w->counted[w->version & 1] == 0 &&
	                worker_inflight(w)->used == 0;
	if (w->merge.fresh)
		merge_first_work(w, message->round);
	if (newcomer && message->attempt > 0)
		reduce_catch_up(w, message->attempt);
	bool now = worker_works_on(w, message->round), next = !w->streams && message->round == worker_round(w) + 1;
	return (now || next) && message->attempt == worker_pass(w, message->round);
}

struct skep_work *pipeline_take_in(struct worker *w, struct step *step, const struct skep_message *message)
{
	uint32_t lap = laps_of_message(w, message);
	struct skep_work *work =
		skep_inflight_add(worker_inflight(w), message->round, worker_item(w, message->microbatch, lap));
	struct skep_work none = {.round = message->round, .lap = lap};
	struct skep_work *taken = work ? work : &none;
	taken->microbatch = message->microbatch;
	taken->lap = lap;
	taken->up = message->from;
	taken->attempt = message->attempt;
	taken->span = message->span;
	if (work)
		return work;
	skep_emit_note(step, &w->node,
		(struct skep_note){.kind = SKEP_NOTE_OVERFLOW,
			.stage = (uint16_t)worker_slice(w, &none),
			.round = message->round,
			.microbatch = message->microbatch});
	send_abandon(w, step, &none);
	return NULL;
}

/* Marks it as seen. */
static bool first_visit(struct worker *w, uint32_t round, uint32_t item)
{
	bool seen = w->streams ? *worker_came(w, round) == round + 1 : skep_marks_has(worker_seen(w, round), item);
	if (w->streams)
		*worker_came(w, round) = round + 1;
	else
		skep_marks_add(worker_seen(w, round), item);
	w->met = true;
	return !seen;
}

void pipeline_on_forward(struct worker *w, struct step *step, const struct skep_message *message)
{
	uint32_t item = worker_item(w, message->microbatch, laps_of_message(w, message));
	if (!pipeline_round_open(w, message) || !first_visit(w, message->round, item)) {
		skep_emit_release(step, message->payload);
		return;
	}
	struct skep_work *work = pipeline_take_in(w, step, message);
	if (!work) {
		skep_emit_release(step, message->payload);
		return;
	}
	if (worker_validates(w, message->microbatch))
		w->inner.judged = message->round;
	work->in = message->payload;
	work->state = SKEP_WORK_READY_FORWARD;
	skep_work_push(worker_inflight(w), &worker_inflight(w)->forward[message->round & 1], work);
}

struct skep_work *pipeline_awaited(struct worker *w, const struct skep_message *message)
{
	uint32_t item = worker_item(w, message->microbatch, laps_of_message(w, message));
	struct skep_work *work = skep_inflight_find(worker_inflight(w), message->round, item);
	bool waits = work && (work->state == SKEP_WORK_WAIT_GRADIENT || work->state == SKEP_WORK_WAIT_OUTPUT) &&
	             skep_peer_same(work->down, message->from) && work->attempt == message->attempt;
	return waits ? work : NULL;
}

void pipeline_ready_backward(struct worker *w, struct skep_work *work, struct skep_buf gradient)
{
	work->gradient = gradient;
	work->state = SKEP_WORK_READY_BACKWARD;
	skep_work_push(worker_inflight(w), &worker_inflight(w)->backward[work->round & 1], work);
}

void pipeline_on_abandon(struct worker *w, struct step *step, const struct skep_message *message)
{
	struct skep_work *work = pipeline_awaited(w, message);
	if (work)
		pipeline_give_up(w, step, work);
}

void pipeline_on_grant(struct worker *w, const struct skep_message *message)
{
	uint32_t first = message->microbatch, end = first + message->u.grant.count;
	if (w->node.stage != 0 || !pipeline_round_open(w, message) || first >= end || end > w->numbers / w->laps.count)
		return;
	if (!first_visit(w, message->round, worker_item(w, first, 0))) /* a duplicate */
		return;
	for (uint32_t i = first + 1; i < end; i++)
		first_visit(w, message->round, worker_item(w, i, 0));
	if (worker_validates(w, first))
		w->inner.judged = message->round;
	assert(w->grants < w->grant_capacity); /* the directory never has more outstanding */
	uint32_t at = w->grants++;             /* the oldest round first: several may be open */
	struct grant *grant = worker_grants(w);
	for (; at > 0 && grant[at - 1].round > message->round; at--)
		grant[at] = grant[at - 1];
	grant[at] = (struct grant){message->round, first, end, message->attempt, message->span};
}
