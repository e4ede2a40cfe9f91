/* SPDX-License-Identifier: Apache-2.0
 *
 * worker.c - a worker's machine: set-up, dispatch of events, and the pipeline.
 *
 * The pipeline: a microbatch comes forwards from a worker of the stage before (or is issued here, in the first stage),
 * goes on to one worker of the next stage, and its gradient comes back the same way. It is counted here when BACKWARD has
 * added to the accumulator, before its gradient leaves; so a microbatch that came back to its owner was counted by all.
 */
#include "core/worker.h"

#include <assert.h>
#include <string.h>

#include "core/bits.h"
#include "core/random.h"

#define STAGES_COUNTED 256 /* on the stack; with more stages the bound is a loose one */

/* ---- set-up --------------------------------------------------------------------------------------------------- */

/* Most members that a reduction may have. Without rebalancing, joins go to the smallest stage, so only the first allocation
 * can make a stage larger than the average. */
static uint32_t ring_max(const struct skep_plan *plan)
{
	uint32_t size[STAGES_COUNTED] = {0}, most = plan->workers / plan->stages + 1;
	if (plan->stages > STAGES_COUNTED || plan->rebalance_ns > 0)
		return plan->workers;
	for (uint32_t i = 0; i < plan->workers; i++) {
		uint32_t stage = plan->first_stage_of[i];
		if (stage != SKEP_NO_STAGE && ++size[stage] > most)
			most = size[stage];
	}
	return most;
}

static uint32_t chunks_max(const struct skep_plan *plan)
{
	uint32_t most = 1;
	for (uint32_t i = 0; i < plan->stages; i++)
		most = skep_state_chunks(plan, i) > most ? skep_state_chunks(plan, i) : most;
	return most;
}

static size_t lay_out(struct worker *w, const struct skep_plan *plan)
{
	w->words = skep_bits_words(skep_round_capacity(plan));
	w->grant_capacity = 2 * plan->in_flight + 8;
	w->early_capacity = ring_max(plan);
	w->gone_capacity = plan->workers < GONE_MAX ? plan->workers : GONE_MAX;
	size_t at = skep_align(sizeof *w);
	w->view_at = at;
	at += skep_align(sizeof(struct skep_view) + skep_view_capacity(plan) * sizeof(struct skep_choice));
	w->inflight_at = at;
	at += skep_align(skep_inflight_size(skep_inflight_capacity(plan)));
	w->grant_at = at;
	at += skep_align(w->grant_capacity * sizeof(struct grant));
	w->early_at = at;
	at += skep_align(w->early_capacity * sizeof(struct early_chunk));
	w->seen_at = at;
	at += skep_align(2 * w->words * sizeof(uint64_t));
	w->tally_at = at;
	at += skep_align(w->words * sizeof(uint64_t));
	w->hops_at = at;
	at += skep_align(skep_bits_words(2 * w->early_capacity) * sizeof(uint64_t));
	w->loaded_at = at;
	at += skep_align(skep_bits_words(chunks_max(plan)) * sizeof(uint64_t));
	w->gone_at = at;
	at += skep_align(w->gone_capacity * sizeof(struct skep_peer));
	return at;
}

size_t skep_worker_size(const struct skep_plan *plan)
{
	struct worker w;
	return lay_out(&w, plan);
}

uint32_t skep_worker_actions_limit(const struct skep_plan *plan)
{
	/* The worst step gives up all that is held: per microbatch two messages and three releases. */
	return 64 + 5 * skep_inflight_capacity(plan) + ring_max(plan) + skep_round_capacity(plan) / SKEP_TALLY_PART;
}

void skep_worker_init(void *mem, const struct skep_plan *plan)
{
	struct worker *w = mem;
	lay_out(w, plan);
	skep_inflight_init(worker_inflight(w), skep_inflight_capacity(plan));
	w->op_floor = 1;
	uint32_t stage = plan->first_stage_of[w->node.self.index];
	if (w->node.self.epoch == 0 || stage == SKEP_NO_STAGE)
		return;
	w->state = WORKER_SERVING;
	w->node.stage = stage;
	for (uint32_t i = 0; i < plan->workers; i++) {
		if (plan->first_stage_of[i] == stage + 1)
			skep_view_add(
				worker_view(w), skep_view_capacity(plan), (struct skep_peer){i, 1}, &w->node.random);
	}
}

/* ---- helpers -------------------------------------------------------------------------------------------------- */

void worker_send(struct worker *w, struct step *step, struct skep_message *message)
{
	if (message->to.index == step->plan->workers)
		w->sent_to_directory_ns = w->node.now;
	skep_emit_send(step, &w->node, message);
}

static void release_work(struct step *step, const struct skep_work *work)
{
	skep_emit_release(step, work->in);
	skep_emit_release(step, work->stash);
	skep_emit_release(step, work->gradient);
}

static bool running(const struct skep_work *work)
{
	return work->state == SKEP_WORK_RUNNING_FORWARD || work->state == SKEP_WORK_RUNNING_BACKWARD;
}

void worker_forget(struct worker *w, struct step *step)
{
	struct skep_inflight *table = worker_inflight(w);
	for (uint32_t i = 0; i < table->capacity; i++) {
		struct skep_work *work = &table->work[i];
		if (work->state != SKEP_WORK_FREE && !running(work)) /* what runs is released when its operation ends */
			release_work(step, work);
	}
	skep_inflight_init(table, table->capacity);
	download_forget(w, step);
	w->entered = w->admitted = w->saved = w->restore = w->checkpoint = false;
	w->issued_in_flight = w->grants = 0;
	w->queue_area = w->open_ns = 0;
	w->op_floor = w->node.next_op;
	w->counted = 0;
	w->loss_nano_sum = 0;
	skep_bits_clear(worker_tally(w), w->words);
	skep_bits_clear(worker_seen(w, 0), 2 * w->words);
	reduce_forget(w, step);
}

/* ---- microbatches --------------------------------------------------------------------------------------------- */

static void report_finished(struct worker *w, struct step *step, const struct skep_work *work, bool ok)
{
	struct skep_message message = skep_message_to(&w->node, SKEP_MESSAGE_FINISHED, skep_directory_peer(step->plan));
	message.round = work->round;
	message.microbatch = work->microbatch;
	message.u.finished.ok = ok;
	w->issued_in_flight--;
	worker_send(w, step, &message);
}

static void send_abandon(struct worker *w, struct step *step, uint32_t round, uint32_t microbatch, struct skep_peer up)
{
	struct skep_message message = skep_message_to(&w->node, SKEP_MESSAGE_ABANDON, up);
	message.round = round;
	message.microbatch = microbatch;
	worker_send(w, step, &message);
}

/* The gradient will not come back: say so to where the microbatch came from, and forget it. */
static void give_up(struct worker *w, struct step *step, struct skep_work *work)
{
	if (work->owned)
		report_finished(w, step, work, false);
	else if (work->up.index != SKEP_NO_INDEX)
		send_abandon(w, step, work->round, work->microbatch, work->up);
	release_work(step, work);
	skep_inflight_remove(worker_inflight(w), work);
}

static void send_tensor(struct worker *w, struct step *step, const struct skep_work *work, enum skep_message_kind kind,
	struct skep_peer to, struct skep_buf payload)
{
	uint32_t boundary = kind == SKEP_MESSAGE_FORWARD ? w->node.stage : w->node.stage - 1;
	struct skep_message message = skep_message_to(&w->node, kind, to);
	message.round = work->round;
	message.microbatch = work->microbatch;
	message.u.backward.needed_ns = kind == SKEP_MESSAGE_BACKWARD ? work->needed_ns : 0;
	message.payload = payload;
	message.payload_bytes = step->plan->stage[boundary].activation_bytes;
	worker_send(w, step, &message);
}

/* Activations wait in work->gradient: choose who gets them. */
static void send_on(struct worker *w, struct step *step, struct skep_work *work)
{
	work->down = skep_view_choose(worker_view(w), step->plan, w->node.self, &w->node.random);
	if (work->down.index == SKEP_NO_INDEX) {
		work->state = SKEP_WORK_WAIT_PEER;
		return;
	}
	work->state = SKEP_WORK_WAIT_GRADIENT;
	work->sent_ns = w->node.now;
	send_tensor(w, step, work, SKEP_MESSAGE_FORWARD, work->down, work->gradient);
	work->gradient = (struct skep_buf){0, 0};
}

void pipeline_run(struct worker *w, struct step *step, struct skep_work *work, enum skep_op_kind kind)
{
	struct skep_op op = {.kind = (uint8_t)kind, .stage = (uint16_t)w->node.stage};
	op.round = work->round;
	op.microbatch = work->microbatch;
	op.in = work->in;
	op.stash = work->stash;
	op.gradient = work->gradient;
	work->state = kind == SKEP_OP_FORWARD ? SKEP_WORK_RUNNING_FORWARD : SKEP_WORK_RUNNING_BACKWARD;
	w->compute_slot = (uint32_t)(work - worker_inflight(w)->work);
	w->compute_op = skep_emit_run(step, &w->node, &op);
}

void pipeline_issue(struct worker *w, struct step *step)
{
	struct grant *grant = worker_grants(w);
	struct skep_work *work = skep_inflight_add(worker_inflight(w), grant->round, grant->first);
	assert(work); /* in_flight is at most the table's capacity, and an owner holds nothing but its own */
	work->owned = true;
	w->issued_in_flight++;
	if (++grant->first == grant->end) {
		w->grants--;
		memmove(grant, grant + 1, w->grants * sizeof *grant);
	}
	pipeline_run(w, step, work, SKEP_OP_FORWARD);
}

static void forward_done(struct worker *w, struct step *step, struct skep_work *work, const struct skep_event *event)
{
	work->stash = event->u.done.stash;
	work->needed_ns = event->u.done.elapsed_ns;
	work->gradient = event->u.done.out;
	if (work->doomed) {
		release_work(step, work);
		skep_inflight_remove(worker_inflight(w), work);
	} else if (w->node.stage + 1 < step->plan->stages) {
		send_on(w, step, work);
	} else {
		assert(skep_buf_none(work->gradient));
		work->loss_nano = event->u.done.loss_nano;
		work->state = SKEP_WORK_READY_BACKWARD;
		skep_work_push(worker_inflight(w), &worker_inflight(w)->backward, work);
	}
}

static int64_t add_saturating(int64_t a, int64_t b)
{
	if (b > 0 && a > INT64_MAX - b)
		return INT64_MAX;
	return b < 0 && a < INT64_MIN - b ? INT64_MIN : a + b;
}

static void backward_done(struct worker *w, struct step *step, struct skep_work *work, const struct skep_event *event)
{
	struct skep_buf out = event->u.done.out;
	work->needed_ns += event->u.done.elapsed_ns;
	assert(work->round == w->version);
	skep_bits_add(worker_tally(w), work->microbatch);
	w->counted++;
	w->loss_nano_sum = add_saturating(w->loss_nano_sum, work->loss_nano);
	skep_emit_note(step, &w->node,
		(struct skep_note){.kind = SKEP_NOTE_COUNTED,
			.stage = (uint16_t)w->node.stage,
			.round = work->round,
			.microbatch = work->microbatch,
			.peer = w->node.self});
	if (work->owned)
		report_finished(w, step, work, true);
	if (work->up.index != SKEP_NO_INDEX && !worker_sealed(w)) /* once sealed, so is the sender: spare the link */
		send_tensor(w, step, work, SKEP_MESSAGE_BACKWARD, work->up, out);
	else
		skep_emit_release(step, out);
	release_work(step, work);
	skep_inflight_remove(worker_inflight(w), work);
	if (worker_sealed(w))
		reduce_backward_ended(w, step);
}

/* Drops what is left of the round. Only a BACKWARD that runs right now may still be counted. */
void pipeline_seal(struct worker *w, struct step *step)
{
	struct skep_inflight *table = worker_inflight(w);
	for (uint32_t i = 0; i < table->capacity; i++) {
		struct skep_work *work = &table->work[i];
		if (work->state == SKEP_WORK_FREE || work->round != w->version ||
			work->state == SKEP_WORK_RUNNING_BACKWARD)
			continue;
		if (work->state == SKEP_WORK_RUNNING_FORWARD) {
			work->doomed = true;
			continue;
		}
		release_work(step, work);
		skep_inflight_remove(table, work);
	}
	struct grant *grant = worker_grants(w);
	uint32_t kept = 0;
	for (uint32_t i = 0; i < w->grants; i++) {
		if (grant[i].round > w->version)
			grant[kept++] = grant[i];
	}
	w->grants = kept;
}

void pipeline_peer_gone(struct worker *w, struct step *step, struct skep_peer gone)
{
	struct skep_inflight *table = worker_inflight(w);
	for (uint32_t i = 0; i < table->capacity; i++) {
		struct skep_work *work = &table->work[i];
		if (work->state == SKEP_WORK_FREE)
			continue;
		if (skep_peer_covers(gone, work->up)) {
			work->up.index = SKEP_NO_INDEX;
			if (work->state ==
				SKEP_WORK_READY_FORWARD) { /* nothing was done for it yet: spare the device */
				give_up(w, step, work);
				continue;
			}
		}
		if (work->state == SKEP_WORK_WAIT_GRADIENT && skep_peer_covers(gone, work->down))
			give_up(w, step, work);
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
			worker_send(w, step, &message);
		}
	}
	w->grants = 0;
}

void pipeline_peer_new(struct worker *w, struct step *step)
{
	struct skep_inflight *table = worker_inflight(w);
	for (uint32_t i = 0; i < table->capacity; i++) {
		struct skep_work *work = &table->work[i];
		if (work->state == SKEP_WORK_WAIT_PEER)
			send_on(w, step, work);
	}
}

/* ---- messages of the pipeline --------------------------------------------------------------------------------- */

/* Is work of this round still, or already, of use here? */
static bool round_open(const struct worker *w, const struct skep_message *message)
{
	if (w->state != WORKER_SERVING || message->microbatch >= w->words * 64)
		return false;
	return message->round == w->version ? !worker_sealed(w) : message->round == w->version + 1;
}

static void on_forward(struct worker *w, struct step *step, const struct skep_message *message)
{
	if (!round_open(w, message) || skep_bits_has(worker_seen(w, message->round), message->microbatch)) {
		skep_emit_release(step, message->payload);
		return;
	}
	skep_bits_add(worker_seen(w, message->round), message->microbatch);
	struct skep_inflight *table = worker_inflight(w);
	struct skep_work *work = skep_inflight_add(table, message->round, message->microbatch);
	if (!work) {
		skep_emit_note(step, &w->node,
			(struct skep_note){.kind = SKEP_NOTE_OVERFLOW,
				.stage = (uint16_t)w->node.stage,
				.round = message->round,
				.microbatch = message->microbatch});
		send_abandon(w, step, message->round, message->microbatch, message->from);
		skep_emit_release(step, message->payload);
		return;
	}
	work->up = message->from;
	work->in = message->payload;
	work->state = SKEP_WORK_READY_FORWARD;
	skep_work_push(table, &table->forward[message->round & 1], work);
}

/* The microbatch that waits for word from this very sender, or NULL. */
static struct skep_work *awaited(struct worker *w, const struct skep_message *message)
{
	struct skep_work *work = skep_inflight_find(worker_inflight(w), message->round, message->microbatch);
	bool waits = work && work->state == SKEP_WORK_WAIT_GRADIENT && skep_peer_same(work->down, message->from);
	return waits ? work : NULL;
}

static void on_backward(struct worker *w, struct step *step, const struct skep_message *message)
{
	struct skep_work *work = awaited(w, message);
	if (!work) {
		skep_emit_release(step, message->payload);
		return;
	}
	if (step->plan->wiring != SKEP_WIRING_UNIFORM)
		skep_view_update(worker_view(w), message->from, message->u.backward.needed_ns, step->plan->samples);
	work->gradient = message->payload;
	work->state = SKEP_WORK_READY_BACKWARD;
	skep_work_push(worker_inflight(w), &worker_inflight(w)->backward, work);
}

static void on_abandon(struct worker *w, struct step *step, const struct skep_message *message)
{
	struct skep_work *work = awaited(w, message);
	if (work)
		give_up(w, step, work);
}

static void on_grant(struct worker *w, const struct skep_message *message)
{
	uint32_t first = message->microbatch, end = first + message->u.grant.count;
	if (w->node.stage != 0 || !round_open(w, message) || first >= end || end > w->words * 64)
		return;
	if (skep_bits_has(worker_seen(w, message->round), first)) /* a duplicate */
		return;
	for (uint32_t i = first; i < end; i++)
		skep_bits_add(worker_seen(w, message->round), i);
	assert(w->grants < w->grant_capacity); /* the directory never has more outstanding */
	worker_grants(w)[w->grants++] = (struct grant){message->round, first, end};
}

/* ---- dispatch ------------------------------------------------------------------------------------------------- */

static bool for_me(const struct worker *w, const struct skep_message *message)
{
	if (message->kind == SKEP_MESSAGE_STOP)
		return true;
	if (message->kind == SKEP_MESSAGE_ASSIGN)
		return message->to.epoch >= w->node.self.epoch;
	return w->state != WORKER_OUT && message->to.epoch == w->node.self.epoch;
}

static void on_message(struct worker *w, struct step *step, const struct skep_message *message)
{
	if (w->state == WORKER_STOPPED || !for_me(w, message)) {
		skep_emit_release(step, message->payload);
		return;
	}
	switch (message->kind) {
	case SKEP_MESSAGE_FORWARD:
		on_forward(w, step, message);
		break;
	case SKEP_MESSAGE_BACKWARD:
		on_backward(w, step, message);
		break;
	case SKEP_MESSAGE_ABANDON:
		on_abandon(w, step, message);
		break;
	case SKEP_MESSAGE_GRANT:
		on_grant(w, message);
		break;
	case SKEP_MESSAGE_CHUNK:
		reduce_on_chunk(w, step, message);
		break;
	case SKEP_MESSAGE_REDUCE:
		reduce_on_reduce(w, step, message);
		break;
	case SKEP_MESSAGE_COMMIT:
		reduce_on_commit(w, message);
		break;
	case SKEP_MESSAGE_FETCH:
		download_on_fetch(w, step->plan, message);
		break;
	case SKEP_MESSAGE_STATE:
		download_on_state(w, step, message);
		break;
	case SKEP_MESSAGE_PEER:
		member_on_peer(w, step, message);
		break;
	case SKEP_MESSAGE_ASSIGN:
		member_on_assign(w, step, message);
		break;
	case SKEP_MESSAGE_ADMIT:
		member_on_admit(w, step, message);
		break;
	case SKEP_MESSAGE_STOP:
		member_on_stop(w, step, message);
		break;
	default: /* meant for the directory */
		skep_emit_release(step, message->payload);
	}
}

/* An operation of an earlier life: its inputs were left alone while it ran. */
static void discard_result(struct step *step, const struct skep_event *event)
{
	const struct skep_op *op = &event->u.done.op;
	if (op->lane == SKEP_LANE_COMPUTE) {
		skep_emit_release(step, op->in);
		skep_emit_release(step, op->stash);
		skep_emit_release(step, op->gradient);
	}
	skep_emit_release(step, event->u.done.out);
	skep_emit_release(step, event->u.done.stash);
}

static void on_op_done(struct worker *w, struct step *step, const struct skep_event *event)
{
	const struct skep_op *op = &event->u.done.op;
	if (op->id == w->compute_op)
		w->compute_op = 0;
	if (op->lane == SKEP_LANE_REDUCE)
		w->reduce_ops--;
	if (op->id < w->op_floor) {
		discard_result(step, event);
		return;
	}
	struct skep_work *work = &worker_inflight(w)->work[w->compute_slot];
	switch (op->kind) {
	case SKEP_OP_FORWARD:
		forward_done(w, step, work, event);
		break;
	case SKEP_OP_BACKWARD:
		backward_done(w, step, work, event);
		break;
	case SKEP_OP_STEP:
		reduce_stepped(w, step);
		break;
	case SKEP_OP_ENTER:
		member_entered(w, step);
		break;
	case SKEP_OP_RESTORE:
		member_ready(w, step);
		break;
	case SKEP_OP_CHECKPOINT:
		member_checkpointed(w, step, op);
		break;
	case SKEP_OP_SAVE:
		download_saved(w, step, op, event->u.done.out);
		break;
	case SKEP_OP_LOAD:
		download_loaded(w, step, op);
		break;
	default:
		reduce_on_op_done(w, step, op, event->u.done.out);
	}
}

/* Sends again what is still of use. A dead receiver's world loses it, so this ends. */
static void on_send_failed(struct worker *w, struct step *step, const struct skep_message *message)
{
	struct skep_message again = *message;
	bool useful = w->state != WORKER_STOPPED && message->from.epoch == w->node.self.epoch &&
	              message->kind != SKEP_MESSAGE_HEARTBEAT; /* the timer makes new ones */
	if (message->kind == SKEP_MESSAGE_FORWARD) {
		struct skep_work *work = skep_inflight_find(worker_inflight(w), message->round, message->microbatch);
		useful = useful && work && work->state == SKEP_WORK_WAIT_GRADIENT &&
		         skep_peer_same(work->down, message->to);
	} else if (message->kind == SKEP_MESSAGE_BACKWARD) {
		useful = useful && message->round == w->version && !worker_sealed(w);
	} else if (message->kind == SKEP_MESSAGE_CHUNK) {
		useful = useful && reduce_wants(w, message);
	} else if (message->kind == SKEP_MESSAGE_STATE) {
		useful = useful && download_state_failed(w, message);
	} else if (message->kind == SKEP_MESSAGE_FETCH) {
		useful = useful && download_wants(w, message);
	}
	if (useful)
		worker_send(w, step, &again);
	else
		skep_emit_release(step, message->payload);
}

void skep_worker_step(struct skep_node *node, struct step *step, const struct skep_event *event)
{
	struct worker *w = (struct worker *)node;
	member_measure(w);
	switch ((enum skep_event_kind)event->kind) {
	case SKEP_EVENT_START:
		member_start(w, step);
		break;
	case SKEP_EVENT_TIMER:
		member_timer(w, step);
		break;
	case SKEP_EVENT_MESSAGE:
		on_message(w, step, &event->u.message);
		break;
	case SKEP_EVENT_OP_DONE:
		on_op_done(w, step, event);
		break;
	case SKEP_EVENT_SEND_FAILED:
		on_send_failed(w, step, &event->u.message);
		break;
	case SKEP_EVENT_SUSPECT:
		member_suspect(w, step, event->u.peer, false);
		break;
	case SKEP_EVENT_PREEMPT_NOTICE:
		member_notice(w, step);
		break;
	}
	if (w->state != WORKER_STOPPED)
		schedule_next(w, step);
}
