/* SPDX-License-Identifier: Apache-2.0
 *
 * worker.c - a worker's machine: set-up, and dispatch of events to those who know what they mean.
 */
#include "core/worker/worker.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "core/bits.h"
#include "core/record.h"

/* ---- set-up --------------------------------------------------------------------------------------------------- */

/* Any worker may come to the first stage. */
static size_t legs(const struct skep_plan *plan)
{
	return plan->routing == SKEP_ROUTING_TRAINER ? (size_t)skep_plan_in_flight_most(plan) * (plan->stages - 1) : 0;
}

static uint32_t chunks_max(const struct skep_plan *plan)
{
	uint32_t most = 1;
	for (uint32_t i = 0; i < plan->stages; i++)
		most = skep_state_chunks(plan, i) > most ? skep_state_chunks(plan, i) : most;
	return most;
}

/* What a reduction needs beyond a ring's. */
static size_t lay_out_transfers(struct worker *w, const struct skep_plan *plan, size_t at)
{
	uint32_t members = w->members_max;
	w->transfers_capacity = 0;
	w->transferred_at = w->held_at = w->roster_at = w->fact_at = at;
	if (!skep_collective_has_roster(plan->reduction.collective))
		return at;
	w->transfers_capacity = skep_scheme_transfers_max(plan, members);
	at += skep_align(skep_bits_words(w->transfers_capacity) * sizeof(uint64_t));
	w->held_at = at;
	at += skep_align(w->transfers_capacity * sizeof(struct skep_buf));
	w->roster_at = at;
	at += skep_align(members * sizeof(struct skep_peer));
	w->fact_at = at;
	return at + skep_align((members + 1) * sizeof(uint64_t));
}

static size_t lay_out(struct worker *w, const struct skep_plan *plan, const struct skep_methods *how)
{
	w->members_max = skep_stage_size_max(plan);
	w->accumulators = skep_plan_accumulators(plan);
	w->gone_capacity = plan->workers < GONE_MAX ? plan->workers : GONE_MAX;
	size_t at = how->worker->lay_out(w, plan, skep_align(sizeof *w));
	w->view_at = at;
	w->view_capacity = skep_view_capacity(plan);
	w->view_bytes = skep_align(sizeof(struct skep_view) + w->view_capacity * sizeof(struct skep_choice));
	at += route_views(plan) * w->view_bytes;
	w->leg_at = at;
	at += skep_align(legs(plan) * sizeof(struct skep_leg));
	w->inflight_at = at;
	at += skep_align(skep_inflight_size(skep_inflight_capacity(plan)));
	w->grant_at = at;
	at += skep_align(w->grant_capacity * sizeof(struct grant));
	w->pending_at = at;
	at += skep_align((w->slots - 1) * sizeof(struct skep_message));
	w->hops_at = at;
	at += skep_align(skep_bits_words(skep_scheme_transfers_max(plan, w->members_max)) * sizeof(uint64_t));
	w->loaded_at = at;
	at += skep_align(skep_bits_words(chunks_max(plan)) * sizeof(uint64_t));
	w->gone_at = at;
	at += skep_align(w->gone_capacity * sizeof(struct skep_peer));
	w->divisor_at = at;
	at += skep_align(skep_plan_model_chunks(plan) * sizeof(uint32_t));
	return skep_arena_lay_out(w, plan, how, lay_out_transfers(w, plan, at));
}

size_t skep_worker_size(const struct skep_plan *plan, const struct skep_methods *how)
{
	struct worker w;
	return lay_out(&w, plan, how);
}

uint32_t skep_worker_actions_limit(const struct skep_plan *plan, const struct skep_methods *how)
{
	/* The worst step gives up all that is held: per microbatch two messages, three releases and its legs. */
	uint32_t members =
		skep_stage_size_max(plan); /* a reduction releases what a void one held, and does all it can */
	bool ring = plan->reduction.collective ==
	            SKEP_COLLECTIVE_RING; /* whose transfers but the first are begun by messages */
	uint32_t early = ring ? skep_scheme_early_max(plan, members) + SKEP_SYNC_CHUNKS_MAX : 0;
	uint32_t transfers = !ring ? how->worker->fragments * skep_scheme_transfers_max(plan, members) : 0;
	return 64 + 5 * skep_inflight_capacity(plan) + (uint32_t)legs(plan) + members + early + 4 * transfers +
	       2 * (transfers > 0) * members +
	       skep_plan_model_chunks(plan) * skep_round_capacity(plan) / SKEP_TALLY_PART;
}

/* After the last one the first, if another model chunk follows. */
static uint32_t next_stage(const struct skep_plan *plan, uint32_t stage)
{
	return route_leads(plan, stage, 0) ? 0 : stage + 1;
}

static void take_place(struct worker *w, const struct skep_plan *plan, uint32_t stage)
{
	w->share = skep_plan_share(plan, stage);
	w->flush = skep_plan_flush_share(plan, stage);
	w->held = skep_plan_held(plan, stage);
	w->staleness = skep_plan_staleness(plan, stage);
	w->ahead = skep_plan_no_flush(plan) ? skep_plan_ahead(plan, stage) : 0;
	w->wave = skep_plan_waves(plan) ? skep_plan_wave(plan) : 0;
	w->place = (struct place){.uneven = skep_plan_uneven(plan),
		.nth = skep_plan_pipeline_of(plan, w->node.self.index),
		.of = skep_plan_replicas(plan, stage),
		.owners = skep_plan_replicas(plan, 0),
		.pipelines = skep_plan_pipelines(plan)};
	w->place.partner = skep_plan_place(plan, w->place.nth, next_stage(plan, stage));
}

/* Do the worker and the nth one of another stage share a pipeline? Else they have nothing to do with each other. */
static bool shares_pipeline(const struct worker *w, const struct skep_plan *plan, uint32_t nth, uint32_t replicas)
{
	return !skep_plan_fixed(plan) || skep_pipeline_joins(w->place.nth, w->place.of, nth, replicas);
}

/* Whom it may send microbatches to. */
static void meet_all(struct worker *w, const struct skep_plan *plan, uint32_t stage)
{
	uint32_t replicas = skep_plan_fixed(plan) ? skep_plan_replicas(plan, next_stage(plan, stage)) : 0, nth = 0;
	for (uint32_t i = 0; i < plan->workers; i++) {
		uint32_t other = plan->first_stage_of[i];
		bool together = skep_plan_candidate_of(plan, i) == w->candidate;
		if (together && route_leads(plan, stage, other) && shares_pipeline(w, plan, nth++, replicas))
			skep_view_meet(worker_view(w, plan, other), plan, w->view_capacity, (struct skep_peer){i, 1},
				&w->node.random);
	}
	for (uint32_t view = 0; view < route_views(plan); view++)
		skep_view_met(skep_at(w, w->view_at + view * w->view_bytes));
}

void skep_worker_init(void *mem, const struct skep_plan *plan, const struct skep_methods *how)
{
	struct worker *w = mem;
	lay_out(w, plan, how);
	skep_arena_init(w);
	skep_inflight_init(worker_inflight(w), skep_inflight_capacity(plan));
	skep_interleaved_init(w, plan);
	w->op_floor = 1;
	w->in_flight = plan->in_flight;
	w->reissue_due_ns = SKEP_TIME_NEVER;
	uint32_t stage = plan->first_stage_of[w->node.self.index];
	if (skep_plan_fixed(plan)) /* it never serves another stage */
		take_place(w, plan, stage);
	how->worker->derive(w);
	if (w->node.self.epoch == 0 || stage == SKEP_NO_STAGE)
		return;
	w->state = WORKER_SERVING;
	w->node.stage = stage;
	w->version = w->oldest = skep_plan_first_version(plan);
	w->update.open = w->update.resolved = plan->first_round;
	w->candidate = skep_plan_candidate_of(plan, w->node.self.index);
	how->local->init(w, plan);
	how->worker->derive(w);
	meet_all(w, plan, stage);
}

/* ---- helpers -------------------------------------------------------------------------------------------------- */

void skep_worker_send(struct worker *w, struct step *step, struct skep_message *message)
{
	assert(message->from.index < step->plan->workers);
	if (message->to.index == step->plan->workers)
		w->sent_to_directory_ns = w->node.now;
	skep_emit_send(step, &w->node, message);
}

void skep_worker_compute(struct worker *w, struct step *step, struct skep_op *op)
{
	assert(w->compute_op == 0);
	w->compute_kind = op->kind;
	w->compute_op = skep_emit_run(step, &w->node, op);
}

void skep_worker_clear_views(struct worker *w, const struct skep_plan *plan)
{
	for (uint32_t nth = 0; nth < route_views(plan); nth++)
		skep_view_clear(skep_at(w, w->view_at + nth * w->view_bytes));
}

static bool running(const struct skep_work *work)
{
	return work->state == SKEP_WORK_RUNNING_FORWARD || work->state == SKEP_WORK_RUNNING_BACKWARD;
}

void skep_worker_forget(struct worker *w, struct step *step)
{
	assert(w->grants <= w->grant_capacity);
	assert(w->state != WORKER_STOPPED);
	struct skep_inflight *table = worker_inflight(w);
	for (uint32_t i = 0; i < table->capacity; i++) {
		struct skep_work *work = &table->work[i];
		if (skep_pipeline_recomputing(w, work)) /* what runs is released when its operation ends */
			skep_emit_release(step, work->gradient);
		else if (work->state != SKEP_WORK_FREE && !running(work))
			skep_pipeline_release(w, step, work);
	}
	skep_inflight_init(table, table->capacity);
	skep_download_forget(w, step);
	w->entered = w->admitted = w->saved = w->restore = w->restored = w->checkpoint = false;
	w->orphan = ORPHAN_NO;
	w->keep = w->keep_version = 0;
	w->issued_in_flight = w->issued = w->grants = 0;
	w->forwarded = w->drained = w->barrier_lifted = w->part = w->parts = 0;
	skep_interleaved_begin(w);
	w->inner = (struct inner){0};
	w->update = (struct outer_update){.open = w->update.open};
	w->queue_area = w->open_ns = w->passes_ns = w->passed = 0;
	w->op_floor = w->node.next_op;
	for (uint32_t round = 0; round < w->accumulators; round++) {
		w->counted[round] = 0;
		w->loss_nano[round] = 0;
		worker_tally(w, round)->count = 0;
		skep_marks_clear(worker_seen(w, round));
		skep_marks_clear(worker_done(w, round));
	}
	step->how.worker->forget(w);
	skep_reduce_forget(w, step);
}

/* ---- dispatch ------------------------------------------------------------------------------------------------- */

static bool for_me(const struct worker *w, const struct skep_message *message)
{
	if (message->kind == SKEP_MESSAGE_STOP)
		return true;
	if (message->kind == SKEP_MESSAGE_ASSIGN) /* a duplicate, or of an incarnation that has ended, is not */
		return message->to.epoch > w->node.self.epoch;
	return w->state != WORKER_OUT && message->to.epoch == w->node.self.epoch;
}

/* About one microbatch; false: the message is about something else. */
static bool on_microbatch(struct worker *w, struct step *step, const struct skep_message *message)
{
	switch (message->kind) {
	case SKEP_MESSAGE_FORWARD:
		skep_pipeline_on_forward(w, step, message);
		break;
	case SKEP_MESSAGE_BACKWARD:
		step->how.route->on_backward(w, step, message);
		break;
	case SKEP_MESSAGE_OUTPUT:
		step->how.route->on_output(w, step, message);
		break;
	case SKEP_MESSAGE_INPUT:
		step->how.route->on_input(w, step, message);
		break;
	case SKEP_MESSAGE_CANCEL:
		skep_reissue_on_cancel(w, step, message);
		break;
	case SKEP_MESSAGE_CANCELLED:
		skep_reissue_on_cancelled(w, step, message);
		break;
	case SKEP_MESSAGE_ABANDON:
		skep_pipeline_on_abandon(w, step, message);
		break;
	case SKEP_MESSAGE_VALIDATED:
		skep_pipeline_on_validated(w, step, message);
		break;
	case SKEP_MESSAGE_GRANT:
		skep_pipeline_on_grant(w, step, message);
		break;
	default:
		return false;
	}
	return true;
}

static void on_message(struct worker *w, struct step *step, const struct skep_message *message)
{
	if (w->state == WORKER_STOPPED || !for_me(w, message)) {
		skep_emit_release(step, message->payload);
		return;
	}
	if (on_microbatch(w, step, message))
		return;
	switch (message->kind) {
	case SKEP_MESSAGE_CHUNK:
	case SKEP_MESSAGE_CHUNK_ACK:
		skep_reduce_on_chunk(w, step, message);
		break;
	case SKEP_MESSAGE_ROSTER:
		skep_roster_on_roster(w, step, message);
		break;
	case SKEP_MESSAGE_REDUCE:
		skep_reduce_on_reduce(w, step, message);
		break;
	case SKEP_MESSAGE_COMMIT:
		skep_reduce_on_commit(w, step, message);
		break;
	case SKEP_MESSAGE_FETCH:
		skep_download_on_fetch(w, step->plan, message);
		break;
	case SKEP_MESSAGE_STATE:
		skep_download_on_state(w, step, message);
		break;
	case SKEP_MESSAGE_PEER:
		skep_member_on_peer(w, step, message);
		break;
	case SKEP_MESSAGE_ASSIGN:
		skep_member_on_assign(w, step, message);
		break;
	case SKEP_MESSAGE_ADMIT:
		skep_member_on_admit(w, step, message);
		break;
	case SKEP_MESSAGE_DRAIN:
	case SKEP_MESSAGE_BARRIER_LIFTED:
		skep_schedule_on_barrier_lifted(w, step, message);
		break;
	case SKEP_MESSAGE_CLOSE_ROUND:
		step->how.local->on_close_round(w, step, message);
		break;
	case SKEP_MESSAGE_CHECKPOINT:
		step->how.worker->on_checkpoint(w, message);
		break;
	case SKEP_MESSAGE_STOP:
		skep_member_on_stop(w, step, message);
		break;
	default: /* meant for the directory */
		skep_emit_release(step, message->payload);
	}
}

/* An operation of an earlier incarnation: its inputs were left alone while it ran. */
static void discard_result(struct step *step, const struct skep_event *event)
{
	assert(event->kind == SKEP_EVENT_OP_DONE);
	const struct skep_op *op = &event->u.done.op;
	if (op->lane == SKEP_LANE_COMPUTE) {
		skep_emit_release(step, op->in);
		skep_emit_release(step, op->stash);
		skep_emit_release(step, op->gradient);
	}
	skep_emit_release(step, event->u.done.out);
	skep_emit_release(step, event->u.done.stash);
}

/* In 32 bits, with the bit that names the arithmetic. */
static uint32_t sum_of(uint64_t parameters)
{
	return ((uint32_t)(parameters >> 32 ^ parameters) & ~1u) | (uint32_t)(parameters & 1);
}

static void on_op_done(struct worker *w, struct step *step, const struct skep_event *event)
{
	assert(event->kind == SKEP_EVENT_OP_DONE);
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
	if (event->fault) {
		skep_member_fault(w, step, event);
		skep_orphan_failed(w, op);
	}
	if (op->kind == SKEP_OP_ENTER || op->kind == SKEP_OP_RESTORE || op->kind == SKEP_OP_LOAD)
		w->parameters = 0;
	switch (op->kind) {
	case SKEP_OP_FORWARD:
		skep_pipeline_forward_done(w, step, work, event);
		break;
	case SKEP_OP_BACKWARD:
		skep_pipeline_backward_done(w, step, work, event);
		break;
	case SKEP_OP_RECOMPUTE:
		skep_pipeline_recompute_done(w, step, work, event->u.done.elapsed_ns);
		break;
	case SKEP_OP_STEP:
		w->parameters = sum_of(event->u.done.parameters);
		skep_reduce_stepped(w, step, event->fault);
		break;
	case SKEP_OP_INNER_STEP:
	case SKEP_OP_PSEUDO_GRAD:
		step->how.local->done(w, step, op);
		break;
	case SKEP_OP_ENTER:
		skep_member_entered(w, step);
		break;
	case SKEP_OP_RESTORE:
		w->restored = true;
		skep_member_ready(w, step);
		break;
	case SKEP_OP_CHECKPOINT:
		skep_member_checkpointed(w, step, event);
		break;
	case SKEP_OP_SAVE:
		skep_download_saved(w, step, op, event->u.done.out);
		break;
	case SKEP_OP_LOAD:
		skep_download_loaded(w, step, op);
		break;
	case SKEP_OP_DISCARD:
		skep_reduce_discarded(w, step, op);
		break;
	case SKEP_OP_NORM:
	case SKEP_OP_COPY_TIED:
	case SKEP_OP_STORE_TIED:
		skep_reduce_on_feature_done(w, step, event);
		break;
	default:
		skep_reduce_on_op_done(w, step, op, event->u.done.out);
	}
}

/* Sends again what is still of use. A dead receiver's world loses it, so this ends. */
static void on_send_failed(struct worker *w, struct step *step, const struct skep_message *message)
{
	assert(message->from.index < step->plan->workers);
	struct skep_message again = *message;
	bool useful = w->state != WORKER_STOPPED && message->from.epoch == w->node.self.epoch &&
	              message->kind != SKEP_MESSAGE_HEARTBEAT; /* the timer makes new ones */
	if (skep_message_traffic(message) == SKEP_TRAFFIC_PIPELINE) {
		useful = useful && step->how.route->wants(w, step, message);
	} else if (message->kind == SKEP_MESSAGE_CANCEL) {
		useful = useful && skep_reissue_wants(w, message);
	} else if (message->kind == SKEP_MESSAGE_CHUNK || message->kind == SKEP_MESSAGE_CHUNK_ACK) {
		useful = useful && skep_reduce_wants(w, message);
	} else if (message->kind == SKEP_MESSAGE_STATE) {
		useful = useful && skep_download_state_failed(w, message);
	} else if (message->kind == SKEP_MESSAGE_FETCH) {
		useful = useful && skep_download_wants(w, message);
	}
	if (useful && message->kind == SKEP_MESSAGE_FORWARD && skep_reissue_elsewhere(w, step, message))
		return;
	if (useful)
		skep_worker_send(w, step, &again);
	else
		skep_emit_release(step, message->payload);
}

void skep_worker_step(struct skep_node *node, struct step *step, const struct skep_event *event)
{
	struct worker *w = (struct worker *)node;
	skep_member_measure(w, step->plan);
	switch ((enum skep_event_kind)event->kind) {
	case SKEP_EVENT_START:
		skep_member_start(w, step);
		break;
	case SKEP_EVENT_TIMER:
		skep_member_timer(w, step);
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
		if (event->u.peer.index == step->plan->workers)
			skep_orphan_begin(w, step);
		else if (w->state == WORKER_SERVING)
			skep_reissue_ban(w, step->plan, event->u.peer);
		skep_member_suspect(w, step, event->u.peer, false);
		break;
	case SKEP_EVENT_PREEMPT_NOTICE:
		skep_member_notice(w, step);
		break;
	case SKEP_EVENT_EGRESS:
	case SKEP_EVENT_KINDS:
		break;
	}
	if (w->state != WORKER_STOPPED)
		skep_schedule_next(w, step);
	node->wanted = w->met ? skep_arena_wanted(w) : 0;
	w->met = false;
}

bool skep_worker_returned(const struct skep_node *node)
{
	return ((const struct worker *)node)->returned;
}

/* Which microbatch comes is not known here: of the table those slots that are used most. */
void skep_worker_fetch(const struct skep_node *node, bool deep)
{
	const struct worker *w = (const struct worker *)node;
	const char *at = (const char *)node;
	size_t first = 0, end = offsetof(struct worker, roster);
	if (deep) {
		first = w->inflight_at;
		end = first + sizeof(struct skep_inflight) + 3 * sizeof(struct skep_work);
		__builtin_prefetch(at + w->marks_at);
	}
	for (size_t line = first; line < end; line += 64)
		__builtin_prefetch(at + line);
}
