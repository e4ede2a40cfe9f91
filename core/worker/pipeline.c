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

#include "core/schedule/order.h"
#include "core/worker/worker.h"

static void release_legs(struct worker *w, struct step *step, const struct skep_work *work)
{
	assert(w->state == WORKER_SERVING);
	assert(work->microbatch < w->numbers);
	for (uint32_t stage = 1; stage <= work->leg; stage++) {
		struct skep_leg *leg = worker_leg(w, step->plan, work, stage);
		skep_emit_release(step, leg->in);
		leg->in = (struct skep_buf){0, 0};
	}
}

void skep_pipeline_release(struct worker *w, struct step *step, const struct skep_work *work)
{
	assert(w->state == WORKER_SERVING);
	assert(work->microbatch < w->numbers);
	skep_emit_release(step, work->in);
	skep_emit_release(step, work->stash);
	skep_emit_release(step, work->gradient);
	if (work->owned && step->plan->routing == SKEP_ROUTING_TRAINER)
		release_legs(w, step, work);
}

/* RECOMPUTE runs for a microbatch that waits for its gradient, or has got it since. */
bool skep_pipeline_recomputing(struct worker *w, const struct skep_work *work)
{
	assert(work->microbatch < w->numbers);
	return w->compute_op >= w->op_floor && w->compute_kind == SKEP_OP_RECOMPUTE &&
	       work == &worker_inflight(w)->work[w->compute_slot];
}

void skep_pipeline_drop(struct worker *w, struct step *step, struct skep_work *work)
{
	assert(w->state == WORKER_SERVING);
	assert(work->microbatch < w->numbers);
	if (skep_pipeline_recomputing(w, work)) {
		skep_work_unqueue(worker_inflight(w), work);
		skep_emit_release(step, work->gradient);
		work->gradient = (struct skep_buf){0, 0};
		work->state = SKEP_WORK_RUNNING_FORWARD;
		work->doomed = true;
		return;
	}
	skep_pipeline_release(w, step, work);
	skep_inflight_remove(worker_inflight(w), work);
}

/* ---- microbatches --------------------------------------------------------------------------------------------- */

static void report_finished(struct worker *w, struct step *step, const struct skep_work *work, bool ok)
{
	assert(w->state == WORKER_SERVING);
	assert(work->microbatch < w->numbers);
	struct skep_message message = skep_message_to(&w->node, SKEP_MESSAGE_FINISHED, skep_directory_peer(step->plan));
	message.round = work->round;
	message.microbatch = work->microbatch;
	message.attempt = work->attempt;
	message.u.finished.ok = ok;
	message.u.finished.needed_ns = work->state == SKEP_WORK_RUNNING_BACKWARD ? work->needed_ns : 0;
	message.u.finished.loss_nano = ok && worker_validates(w, work->microbatch) ? work->loss_nano : 0;
	w->issued_in_flight -= worker_works_on(w, work->round); /* of a sealed round nothing is in flight */
	skep_worker_send(w, step, &message);
}

static void send_abandon(struct worker *w, struct step *step, const struct skep_work *work)
{
	assert(w->state == WORKER_SERVING);
	assert(work->microbatch < w->numbers);
	struct skep_message message = skep_message_to(&w->node, SKEP_MESSAGE_ABANDON, work->up);
	message.stage = (uint16_t)worker_vstage(w, work);
	message.round = work->round;
	message.microbatch = work->microbatch;
	message.attempt = work->attempt;
	skep_worker_send(w, step, &message);
}

void skep_pipeline_give_up(struct worker *w, struct step *step, struct skep_work *work)
{
	assert(w->state == WORKER_SERVING);
	assert(work->microbatch < w->numbers);
	if (work->owned)
		report_finished(w, step, work, false);
	else if (work->up.index != SKEP_NO_INDEX)
		send_abandon(w, step, work);
	skep_pipeline_drop(w, step, work);
}

struct skep_message skep_pipeline_tensor(struct worker *w, struct step *step, const struct skep_work *work,
	enum skep_message_kind kind, struct skep_peer to, uint32_t stage, struct skep_buf payload)
{
	assert(w->state == WORKER_SERVING);
	assert(work->microbatch < w->numbers);
	struct skep_message message = skep_message_to(&w->node, kind, to);
	message.stage = (uint16_t)stage;
	message.round = work->round;
	message.microbatch = work->microbatch;
	message.attempt = work->attempt;
	message.span = work->span;
	message.payload = payload;
	message.payload_bytes = kind == SKEP_MESSAGE_BACKWARD ? skep_plan_gradient_bytes(step->plan, stage - 1)
	                                                      : skep_plan_vstage_bytes(step->plan, stage);
	return message;
}

/* True if the virtual stage that the microbatch is in here is to count it. */
static bool counts(const struct worker *w, const struct skep_work *work)
{
	assert(w->state == WORKER_SERVING);
	uint32_t vstage = worker_vstage(w, work);
	return vstage >= work->span.first && vstage <= work->span.last;
}

void skep_pipeline_run(struct worker *w, struct step *step, struct skep_work *work, enum skep_op_kind kind)
{
	assert(!work->doomed && w->compute_op == 0);
	assert(w->state == WORKER_SERVING);
	assert(work->microbatch < w->numbers);
	struct skep_op op = {.kind = (uint8_t)kind, .stage = (uint16_t)worker_vstage(w, work)};
	op.round = work->round;
	op.microbatch = work->microbatch;
	op.attempt = work->attempt;
	step->how.worker->reads(w, step->plan, work, &op);
	op.in = work->in;
	op.stash = work->stash;
	op.gradient = work->gradient;
	op.uncounted = kind == SKEP_OP_BACKWARD && !counts(w, work);
	if (kind == SKEP_OP_BACKWARD && w->part == 0)
		w->parts = op.uncounted ? 0 : step->how.worker->parts(w, step->plan);
	if (kind == SKEP_OP_BACKWARD && w->parts > 0) {
		op.part = w->part;
		op.parts = w->parts;
		skep_plan_bucket(step->plan, w->node.stage, w->part, &op.first, &op.count);
		step->how.local->part(w, &op);
	}
	work->state = kind == SKEP_OP_FORWARD ? SKEP_WORK_RUNNING_FORWARD : SKEP_WORK_RUNNING_BACKWARD;
	uint32_t slot = (uint32_t)(work - worker_inflight(w)->work);
	op.recomputed = kind == SKEP_OP_BACKWARD && w->compute_kind == SKEP_OP_RECOMPUTE && w->compute_slot == slot;
	w->compute_slot = slot;
	w->backwards = kind == SKEP_OP_BACKWARD;
	skep_worker_compute(w, step, &op);
}

void skep_pipeline_recompute(struct worker *w, struct step *step, struct skep_work *work)
{
	assert(work->state == SKEP_WORK_WAIT_GRADIENT);
	assert(w->state == WORKER_SERVING);
	struct skep_op op = {.kind = SKEP_OP_RECOMPUTE, .stage = (uint16_t)w->node.stage};
	op.round = work->round;
	op.microbatch = work->microbatch;
	op.attempt = work->attempt;
	op.version = skep_plan_version(step->plan, work->round);
	op.in = work->in;
	w->compute_slot = (uint32_t)(work - worker_inflight(w)->work);
	skep_worker_compute(w, step, &op);
}

void skep_pipeline_recompute_done(struct worker *w, struct step *step, struct skep_work *work, skep_time elapsed_ns)
{
	assert(w->state == WORKER_SERVING);
	assert(work->microbatch < w->numbers);
	work->needed_ns += elapsed_ns;
	w->passes_ns += elapsed_ns;
	if (work->doomed)
		skep_pipeline_drop(w, step, work);
}

void skep_pipeline_issue(struct worker *w, struct step *step)
{
	assert(w->state == WORKER_SERVING);
	assert(w->grants <= w->grant_capacity);
	struct grant *grant = worker_grants(w);
	struct skep_work *work = skep_inflight_add(worker_inflight(w), grant->round, worker_item(w, grant->first, 0));
	assert(work); /* in_flight is at most the table's capacity, and an owner holds nothing but its own */
	work->owned = true;
	work->microbatch = grant->first;
	work->attempt = grant->attempt;
	work->span = grant->span;
	work->pipeline = grant->pipeline;
	grant->pipeline = worker_next_pipeline(w, grant->pipeline);
	w->issued_in_flight++;
	w->issued += !worker_validates(w, work->microbatch);
	if (++grant->first == grant->end) {
		w->grants--;
		memmove(grant, grant + 1, w->grants * sizeof *grant);
	}
	skep_pipeline_run(w, step, work, SKEP_OP_FORWARD);
}

/* The last stage has judged it: back to the owner with that, and nothing else. */
static void judged(struct worker *w, struct step *step, struct skep_work *work, int64_t loss_nano)
{
	assert(w->state == WORKER_SERVING);
	assert(work->microbatch < w->numbers);
	work->loss_nano = loss_nano;
	if (work->owned) {
		report_finished(w, step, work, true);
	} else if (work->up.index != SKEP_NO_INDEX) {
		struct skep_message message = skep_message_to(&w->node, SKEP_MESSAGE_VALIDATED, work->up);
		message.stage = (uint16_t)worker_vstage(w, work);
		message.round = work->round;
		message.microbatch = work->microbatch;
		message.attempt = work->attempt;
		message.u.validated.loss_nano = loss_nano;
		skep_worker_send(w, step, &message);
	}
	skep_pipeline_drop(w, step, work);
}

void skep_pipeline_on_validated(struct worker *w, struct step *step, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_VALIDATED);
	struct skep_work *work = skep_pipeline_awaited(w, message);
	if (work && worker_validates(w, message->microbatch))
		judged(w, step, work, message->u.validated.loss_nano);
}

/* There will be no BACKWARD. What went in is kept, in case that the next one gives it back. */
static void validated(struct worker *w, struct step *step, struct skep_work *work, const struct skep_event *event)
{
	assert(event->kind == SKEP_EVENT_OP_DONE);
	assert(work->state == SKEP_WORK_RUNNING_FORWARD);
	skep_emit_release(step, event->u.done.stash);
	work->gradient = event->u.done.out;
	if (work->doomed)
		skep_pipeline_drop(w, step, work);
	else if (worker_vstage(w, work) + 1 < skep_plan_vstages(step->plan))
		step->how.route->forwarded(w, step, work);
	else
		judged(w, step, work, event->u.done.loss_nano);
}

void skep_pipeline_forward_done(
	struct worker *w, struct step *step, struct skep_work *work, const struct skep_event *event)
{
	assert(event->kind == SKEP_EVENT_OP_DONE);
	assert(work->state == SKEP_WORK_RUNNING_FORWARD);
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
		skep_pipeline_drop(w, step, work);
	} else if (event->fault) { /* no other worker is to see it */
		skep_pipeline_give_up(w, step, work);
	} else if (worker_vstage(w, work) + 1 < skep_plan_vstages(step->plan)) {
		step->how.route->forwarded(w, step, work);
	} else {
		assert(skep_buf_none(work->gradient));
		work->loss_nano = event->u.done.loss_nano;
		work->state = SKEP_WORK_READY_BACKWARD;
		skep_work_push(worker_inflight(w), &worker_inflight(w)->backward[work->round & 1], work);
		step->how.order->forwarded(w, step);
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
	assert(work->state == SKEP_WORK_RUNNING_BACKWARD);
	assert(w->state == WORKER_SERVING);
	w->met = true;
	skep_tally_add(worker_tally(w, work->round), work->item);
	w->counted[worker_sum(w, work->round)]++;
	step->how.local->counted(w, step->plan, work->round, work->microbatch);
	int64_t *loss_nano = &w->loss_nano[worker_sum(w, work->round)];
	*loss_nano = add_saturating(*loss_nano, work->loss_nano);
	skep_emit_note(step, &w->node,
		(struct skep_note){.kind = SKEP_NOTE_COUNTED,
			.stage = (uint16_t)worker_vstage(w, work),
			.round = work->round,
			.microbatch = work->microbatch,
			.peer = w->node.self,
			.staleness = step->how.worker->staleness(w, step->plan, work)});
}

/* Some layers are done: on with those before them, and with the sum of what is ready. */
static void part_done(struct worker *w, struct step *step, struct skep_work *work, struct skep_buf out)
{
	assert(work->microbatch < w->numbers);
	skep_emit_release(step, work->gradient);
	work->gradient = out;
	w->part++;
	skep_pipeline_run(w, step, work, SKEP_OP_BACKWARD);
	step->how.worker->part_ended(w, step);
}

void skep_pipeline_backward_done(
	struct worker *w, struct step *step, struct skep_work *work, const struct skep_event *event)
{
	assert(event->kind == SKEP_EVENT_OP_DONE);
	assert(work->state == SKEP_WORK_RUNNING_BACKWARD);
	struct skep_buf out = event->u.done.out;
	work->needed_ns += event->u.done.elapsed_ns;
	w->passes_ns += event->u.done.elapsed_ns;
	if (w->part + 1 < w->parts) {
		part_done(w, step, work, out);
		return;
	}
	w->passed++;
	bool open = worker_works_on(w, work->round); /* else it is the last one of a round that is sealed */
	if (counts(w, work))
		count(w, step, work);
	w->part = w->parts = 0;
	if (step->plan->routing == SKEP_ROUTING_TRAINER && open) {
		w->met = true;
		skep_marks_add(worker_done(w, work->round), work->microbatch);
	}
	if (work->owned)
		report_finished(w, step, work, true);
	if (work->up.index != SKEP_NO_INDEX && open) { /* once sealed, so is the sender: spare the link */
		struct skep_message message = skep_pipeline_tensor(
			w, step, work, SKEP_MESSAGE_BACKWARD, work->up, worker_vstage(w, work), out);
		message.u.backward.needed_ns = work->needed_ns;
		message.u.backward.held_ns = w->node.now - work->came_ns;
		skep_worker_send(w, step, &message);
	} else {
		skep_emit_release(step, out);
	}
	skep_pipeline_drop(w, step, work);
	step->how.worker->backward_ended(w, step, open);
}

static void drop_grants(struct worker *w, uint32_t end)
{
	assert(w->grants <= w->grant_capacity);
	assert(w->state != WORKER_STOPPED);
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
	assert(work->microbatch < w->numbers);
	assert(w->state != WORKER_STOPPED);
	if (work->state == SKEP_WORK_FREE || work->state == SKEP_WORK_RUNNING_BACKWARD)
		return;
	if (work->state == SKEP_WORK_RUNNING_FORWARD)
		work->doomed = true;
	else
		skep_pipeline_drop(w, step, work);
}

/* Drops what is left of the round. Only a BACKWARD that runs right now may still be counted. */
void skep_pipeline_seal_round(struct worker *w, struct step *step, uint32_t round)
{
	assert(w->grants <= w->grant_capacity);
	assert(w->state != WORKER_STOPPED);
	struct skep_inflight *table = worker_inflight(w);
	for (uint32_t i = 0; i < table->capacity; i++) {
		if (table->work[i].round == round)
			drop_work(w, step, &table->work[i]);
	}
	skep_marks_clear(worker_seen(w, round));
	if (step->plan->routing == SKEP_ROUTING_TRAINER)
		skep_marks_clear(worker_done(w, round));
	w->issued_in_flight = w->issued = w->forwarded = 0;
	skep_interleaved_begin(w);
	drop_grants(w, round + 1);
}

void skep_pipeline_seal(struct worker *w, struct step *step)
{
	skep_pipeline_seal_round(w, step, w->version);
}

void skep_pipeline_seal_given_up(struct worker *w, struct step *step)
{
	assert(w->grants <= w->grant_capacity);
	struct skep_inflight *table = worker_inflight(w);
	for (uint32_t i = 0; i < table->capacity; i++) {
		if (table->work[i].round < w->drained)
			drop_work(w, step, &table->work[i]);
	}
	drop_grants(w, w->drained);
}

void skep_pipeline_peer_gone(struct worker *w, struct step *step, struct skep_peer gone)
{
	assert(gone.index < step->plan->workers);
	assert(w->state != WORKER_STOPPED);
	struct skep_inflight *table = worker_inflight(w);
	uint32_t left = table->used;
	for (uint32_t i = 0; left > 0; i++) {
		if (table->work[i].state == SKEP_WORK_FREE)
			continue;
		left--;
		step->how.route->gone(w, step, &table->work[i], gone);
	}
}

void skep_pipeline_hand_back(struct worker *w, struct step *step)
{
	assert(w->grants <= w->grant_capacity);
	assert(w->state != WORKER_STOPPED);
	for (uint32_t i = 0; i < w->grants; i++) {
		struct grant *grant = &worker_grants(w)[i];
		for (; grant->first < grant->end; grant->first++) {
			struct skep_message message =
				skep_message_to(&w->node, SKEP_MESSAGE_FINISHED, skep_directory_peer(step->plan));
			message.round = grant->round;
			message.microbatch = grant->first;
			message.attempt = grant->attempt;
			skep_worker_send(w, step, &message);
		}
	}
	w->grants = 0;
}

void skep_pipeline_peer_new(struct worker *w, struct step *step)
{
	assert(w->state != WORKER_STOPPED);
	struct skep_inflight *table = worker_inflight(w);
	uint32_t left = table->used;
	for (uint32_t i = 0; left > 0; i++) {
		struct skep_work *work = &table->work[i];
		left -= work->state != SKEP_WORK_FREE;
		if (work->state == SKEP_WORK_WAIT_PEER)
			step->how.route->go_on(w, step, work);
	}
}

/* ---- messages of the pipeline --------------------------------------------------------------------------------- */

bool skep_pipeline_round_open(struct worker *w, struct step *step, const struct skep_message *message)
{
	bool numbered = message->microbatch < w->numbers / w->model_chunks.count &&
	                skep_interleaved_of_message(w, message) < w->model_chunks.count;
	if (w->state != WORKER_SERVING || !numbered)
		return false;
	bool newcomer = message->round == w->version && !worker_sealed(w) &&
	                w->counted[worker_sum(w, w->version)] == 0 && worker_inflight(w)->used == 0;
	if (w->fresh)
		step->how.local->first_work(w, message->round);
	if (newcomer && message->attempt > 0)
		skep_reduce_catch_up(w, step, message->attempt);
	bool now = worker_works_on(w, message->round), next = message->round - w->work.round - 1 < w->work.early;
	return (now || next) && message->attempt == worker_pass(w, message->round);
}

struct skep_work *skep_pipeline_take_in(struct worker *w, struct step *step, const struct skep_message *message)
{
	assert(message->from.index < step->plan->workers);
	uint32_t model_chunk = skep_interleaved_of_message(w, message);
	struct skep_work *work =
		skep_inflight_add(worker_inflight(w), message->round, worker_item(w, message->microbatch, model_chunk));
	struct skep_work none = {.round = message->round, .model_chunk = model_chunk};
	struct skep_work *taken = work ? work : &none;
	taken->microbatch = message->microbatch;
	taken->model_chunk = model_chunk;
	taken->up = message->from;
	taken->came_ns = w->node.now;
	taken->attempt = message->attempt;
	taken->span = message->span;
	taken->pipeline = message->kind == SKEP_MESSAGE_FORWARD ? message->u.forward.pipeline : 0;
	if (work)
		return work;
	skep_emit_note(step, &w->node,
		(struct skep_note){.kind = SKEP_NOTE_OVERFLOW,
			.stage = (uint16_t)worker_vstage(w, &none),
			.round = message->round,
			.microbatch = message->microbatch});
	send_abandon(w, step, &none);
	return NULL;
}

static bool first_visit(struct worker *w, struct step *step, uint32_t round, uint32_t item)
{
	assert(w->state == WORKER_SERVING);
	w->met = true;
	return step->how.worker->first_visit(w, round, item);
}

void skep_pipeline_on_forward(struct worker *w, struct step *step, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_FORWARD);
	assert(message->from.index < step->plan->workers);
	uint32_t item = worker_item(w, message->microbatch, skep_interleaved_of_message(w, message));
	if (!skep_pipeline_round_open(w, step, message) || !first_visit(w, step, message->round, item)) {
		skep_emit_release(step, message->payload);
		return;
	}
	struct skep_work *work = skep_pipeline_take_in(w, step, message);
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

struct skep_work *skep_pipeline_awaited(struct worker *w, const struct skep_message *message)
{
	uint32_t item = worker_item(w, message->microbatch, skep_interleaved_of_message(w, message));
	struct skep_work *work = skep_inflight_find(worker_inflight(w), message->round, item);
	bool waits = work && (work->state == SKEP_WORK_WAIT_GRADIENT || work->state == SKEP_WORK_WAIT_OUTPUT) &&
	             skep_peer_same(work->down, message->from) && work->attempt == message->attempt;
	return waits ? work : NULL;
}

void skep_pipeline_ready_backward(struct worker *w, struct skep_work *work, struct skep_buf gradient)
{
	assert(w->state == WORKER_SERVING);
	work->gradient = gradient;
	work->state = SKEP_WORK_READY_BACKWARD;
	skep_work_push(worker_inflight(w), &worker_inflight(w)->backward[work->round & 1], work);
}

void skep_pipeline_on_abandon(struct worker *w, struct step *step, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_ABANDON);
	struct skep_work *work = skep_pipeline_awaited(w, message);
	if (work)
		skep_pipeline_give_up(w, step, work);
}

void skep_pipeline_on_grant(struct worker *w, struct step *step, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_GRANT);
	assert(message->from.index == step->plan->workers);
	uint32_t first = message->microbatch, end = first + message->u.grant.count;
	assert(first < end && end <= w->numbers / w->model_chunks.count); /* skep_message_legal() says so */
	if (w->node.stage != 0 || !skep_pipeline_round_open(w, step, message))
		return;
	if (!first_visit(w, step, message->round, worker_item(w, first, 0))) /* a duplicate */
		return;
	for (uint32_t i = first + 1; i < end; i++)
		first_visit(w, step, message->round, worker_item(w, i, 0));
	if (worker_validates(w, first))
		w->inner.judged = message->round;
	w->in_flight = message->u.grant.in_flight;
	assert(w->grants < w->grant_capacity); /* the directory never has more outstanding */
	uint32_t at = w->grants++;             /* the oldest round first: several may be open */
	struct grant *grant = worker_grants(w);
	for (; at > 0 && grant[at - 1].round > message->round; at--)
		grant[at] = grant[at - 1];
	grant[at] =
		(struct grant){message->round, first, end, message->attempt, message->u.grant.pipeline, message->span};
}
