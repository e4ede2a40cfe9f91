/* SPDX-License-Identifier: Apache-2.0
 *
 * route_trainer.c - through the first-stage owner of the microbatch, as in the code that SWARM was released with.
 *
 *     owner ──FORWARD──► stage 1 ──OUTPUT──► owner ──FORWARD──► stage 2 ──OUTPUT──► owner ..
 *     owner ──FORWARD──► last stage ──BACKWARD──► owner                   both passes in one visit
 *     owner ──INPUT, BACKWARD──► stage 2 ──BACKWARD──► owner ──INPUT, BACKWARD──► stage 1 ..
 *
 * For each later stage, a leg, the owner keeps what went in and who did the forward pass. On the way back it hands the input
 * over together with the gradient. No other worker keeps anything between the two visits: BACKWARD does the forward
 * pass again.
 *
 * A worker that is fenced while it does a FORWARD of a stage before the last has not counted the microbatch, and no
 * more has one that is fenced between its visits: the owner chooses another one. One that was sent the gradient, or the last
 * stage's input, may have counted; then the microbatch is given up, as with peer routing. So a microbatch is counted
 * by at most one worker per stage.
 */
#include <assert.h>

#include "core/worker/worker.h"

static const struct skep_buf none = {0, 0};

/* ---- the owner ------------------------------------------------------------------------------------------------ */

static void send_forwards(struct worker *w, struct step *step, struct skep_work *work)
{
	assert(w->state == WORKER_SERVING);
	assert(work->microbatch < w->numbers);
	struct skep_leg *leg = worker_leg(w, step->plan, work, work->leg);
	struct skep_message message =
		skep_pipeline_tensor(w, step, work, SKEP_MESSAGE_FORWARD, leg->peer, (uint32_t)work->leg - 1, leg->in);
	bool twice = skep_plan_visits_twice(step->plan, work->leg);
	if (twice || step->plan->liveness.reissue_after_ns > 0) { /* it will be wanted, or may be */
		skep_emit_send_copy(step, &w->node, &message);
	} else {
		skep_worker_send(w, step, &message);
		leg->in = none;
	}
	skep_reissue_begin(w, step, work, twice ? SKEP_WORK_WAIT_OUTPUT : SKEP_WORK_WAIT_GRADIENT);
}

static void send_backwards(struct worker *w, struct step *step, struct skep_work *work)
{
	assert(w->state == WORKER_SERVING);
	assert(work->microbatch < w->numbers);
	struct skep_leg *leg = worker_leg(w, step->plan, work, work->leg);
	struct skep_message input =
		skep_pipeline_tensor(w, step, work, SKEP_MESSAGE_INPUT, leg->peer, (uint32_t)work->leg - 1, leg->in);
	struct skep_message gradient = skep_pipeline_tensor(
		w, step, work, SKEP_MESSAGE_BACKWARD, leg->peer, (uint32_t)work->leg + 1, work->gradient);
	skep_worker_send(w, step, &input);
	skep_worker_send(w, step, &gradient);
	leg->in = work->gradient = none;
	skep_reissue_begin(w, step, work, SKEP_WORK_WAIT_GRADIENT);
}

/* The next visit, forwards if no gradient is in hand. Who did the forward pass does the backward pass, if it is still there. */
static void go_on(struct worker *w, struct step *step, struct skep_work *work)
{
	assert(w->state == WORKER_SERVING);
	assert(work->microbatch < w->numbers);
	struct skep_leg *leg = worker_leg(w, step->plan, work, work->leg);
	bool hopeless = false;
	if (leg->peer.index == SKEP_NO_INDEX) {
		leg->needed_ns = leg->line_ns = 0;
		leg->peer = skep_reissue_choose(w, step, work, work->leg, &hopeless);
	}
	work->down = leg->peer;
	if (hopeless)
		skep_pipeline_give_up(w, step, work);
	else if (work->down.index == SKEP_NO_INDEX)
		work->state = SKEP_WORK_WAIT_PEER;
	else if (skep_buf_none(work->gradient))
		send_forwards(w, step, work);
	else
		send_backwards(w, step, work);
}

static void begin_leg(struct worker *w, struct step *step, struct skep_work *work, uint32_t stage, struct skep_buf in)
{
	assert(w->state == WORKER_SERVING);
	assert(work->microbatch < w->numbers);
	work->leg = (uint16_t)stage;
	work->returned.index = SKEP_NO_INDEX;
	*worker_leg(w, step->plan, work, stage) = (struct skep_leg){.in = in, .peer = {SKEP_NO_INDEX, 0}};
	go_on(w, step, work);
}

static void on_output(struct worker *w, struct step *step, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_OUTPUT);
	assert(message->from.index < step->plan->workers);
	struct skep_work *work = skep_pipeline_awaited(w, message);
	if (!work || work->state != SKEP_WORK_WAIT_OUTPUT || message->stage != work->leg) {
		skep_emit_release(step, message->payload);
		return;
	}
	struct skep_leg *leg = worker_leg(w, step->plan, work, work->leg);
	leg->needed_ns = message->u.output.needed_ns;
	leg->line_ns = worker_line_ns(w, work, message->u.output.held_ns);
	begin_leg(w, step, work, work->leg + 1u, message->payload);
}

static void gradient_came_back(struct worker *w, struct step *step, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_BACKWARD);
	assert(message->from.index < step->plan->workers);
	struct skep_work *work = skep_pipeline_awaited(w, message);
	if (!work || work->state != SKEP_WORK_WAIT_GRADIENT || message->stage != work->leg) {
		skep_emit_release(step, message->payload);
		return;
	}
	struct skep_leg *leg = worker_leg(w, step->plan, work, work->leg);
	if (step->plan->wiring != SKEP_WIRING_UNIFORM)
		skep_view_update(worker_view(w, step->plan, work->leg), step->plan, message->from,
			leg->needed_ns + message->u.backward.needed_ns,
			leg->line_ns + worker_line_ns(w, work, message->u.backward.held_ns));
	skep_emit_release(step, leg->in); /* of the last stage, kept in case that it was given back */
	leg->in = none;
	work->leg--;
	if (work->leg == 0) {
		skep_pipeline_ready_backward(w, work, message->payload);
		return;
	}
	work->gradient = message->payload;
	go_on(w, step, work);
}

static void owner_loses(struct worker *w, struct step *step, struct skep_work *work, struct skep_peer gone)
{
	assert(w->state == WORKER_SERVING);
	assert(work->microbatch < w->numbers);
	if (work->leg == 0)
		return;
	for (uint32_t stage = 1; stage < work->leg; stage++) {
		struct skep_leg *leg = worker_leg(w, step->plan, work, stage);
		if (skep_peer_covers(gone, leg->peer))
			leg->peer.index = SKEP_NO_INDEX;
	}
	bool waits = work->state == SKEP_WORK_WAIT_OUTPUT || work->state == SKEP_WORK_WAIT_GRADIENT;
	if (!waits || !skep_peer_covers(gone, work->down))
		return;
	if (work->state == SKEP_WORK_WAIT_GRADIENT) { /* it may have counted */
		skep_pipeline_give_up(w, step, work);
		return;
	}
	worker_leg(w, step->plan, work, work->leg)->peer.index = SKEP_NO_INDEX;
	go_on(w, step, work);
}

static bool outward(const struct skep_plan *plan, const struct skep_work *work)
{
	return work->state == SKEP_WORK_WAIT_OUTPUT ||
	       (work->state == SKEP_WORK_WAIT_GRADIENT && !skep_plan_visits_twice(plan, work->leg));
}

static void take_back(struct worker *w, struct step *step, struct skep_work *work)
{
	assert(w->state == WORKER_SERVING);
	worker_leg(w, step->plan, work, work->leg)->peer.index = SKEP_NO_INDEX;
	go_on(w, step, work);
}

/* A copy of the payload was kept. */
static void send_elsewhere(struct worker *w, struct step *step, struct skep_work *work, struct skep_buf payload)
{
	assert(!skep_buf_none(worker_leg(w, step->plan, work, work->leg)->in));
	skep_emit_release(step, payload);
	take_back(w, step, work);
}

/* ---- the others ----------------------------------------------------------------------------------------------- */

static void send_output(struct worker *w, struct step *step, struct skep_work *work)
{
	assert(work->state == SKEP_WORK_RUNNING_FORWARD);
	assert(w->state == WORKER_SERVING);
	if (work->up.index != SKEP_NO_INDEX) {
		struct skep_message message = skep_pipeline_tensor(
			w, step, work, SKEP_MESSAGE_OUTPUT, work->up, w->node.stage, work->gradient);
		message.u.output.needed_ns = work->needed_ns;
		message.u.output.held_ns = w->node.now - work->came_ns;
		skep_worker_send(w, step, &message);
		work->gradient = none;
	}
	skep_pipeline_drop(w, step, work);
}

/* Input or gradient of a second visit, in any order. Of rounds that are over, or what was counted already: a duplicate. */
static void on_part(struct worker *w, struct step *step, const struct skep_message *message)
{
	assert(message->from.index < step->plan->workers);
	bool late = !skep_pipeline_round_open(w, step, message) ||
	            skep_marks_has(worker_done(w, message->round), message->microbatch);
	struct skep_inflight *table = worker_inflight(w);
	struct skep_work *work = late ? NULL : skep_inflight_find(table, message->round, message->microbatch);
	if (!late && !work) {
		work = skep_pipeline_take_in(w, step, message);
		if (work)
			work->state = SKEP_WORK_WAIT_PARTS;
	}
	bool input = message->kind == SKEP_MESSAGE_INPUT;
	if (!work || work->state != SKEP_WORK_WAIT_PARTS || !skep_peer_same(work->up, message->from) ||
		!skep_buf_none(input ? work->in : work->gradient)) {
		skep_emit_release(step, message->payload);
		return;
	}
	if (input)
		work->in = message->payload;
	else
		work->gradient = message->payload;
	work->came_ns = w->node.now;
	if (!skep_buf_none(work->in) && !skep_buf_none(work->gradient))
		skep_pipeline_ready_backward(w, work, work->gradient);
}

static void visited_loses(struct worker *w, struct step *step, struct skep_work *work, struct skep_peer gone)
{
	assert(work->microbatch < w->numbers);
	assert(gone.index < step->plan->workers);
	if (!skep_peer_covers(gone, work->up))
		return;
	work->up.index = SKEP_NO_INDEX;
	if (work->state == SKEP_WORK_READY_FORWARD || work->state == SKEP_WORK_WAIT_PARTS)
		skep_pipeline_drop(w, step, work);
}

/* ---- either --------------------------------------------------------------------------------------------------- */

static void forwarded(struct worker *w, struct step *step, struct skep_work *work)
{
	assert(work->state == SKEP_WORK_RUNNING_FORWARD);
	assert(w->state == WORKER_SERVING);
	if (!work->owned) {
		send_output(w, step, work);
		return;
	}
	struct skep_buf out = work->gradient;
	work->gradient = none;
	begin_leg(w, step, work, 1, out);
}

static void on_input(struct worker *w, struct step *step, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_INPUT);
	assert(message->from.index < step->plan->workers);
	if (skep_plan_visits_twice(step->plan, w->node.stage))
		on_part(w, step, message);
	else
		skep_emit_release(step, message->payload);
}

static void on_backward(struct worker *w, struct step *step, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_BACKWARD);
	assert(message->from.index < step->plan->workers);
	if (skep_plan_visits_twice(step->plan, w->node.stage))
		on_part(w, step, message);
	else
		gradient_came_back(w, step, message);
}

static void gone(struct worker *w, struct step *step, struct skep_work *work, struct skep_peer gone)
{
	assert(w->state == WORKER_SERVING);
	assert(work->microbatch < w->numbers);
	if (work->owned)
		owner_loses(w, step, work, gone);
	else
		visited_loses(w, step, work, gone);
}

/* Of a visit that its owner still waits for; what goes back to the owner: of a round that is still open. */
static bool wants(struct worker *w, const struct step *step, const struct skep_message *message)
{
	assert(message->from.index < step->plan->workers);
	(void)step;
	if (w->node.stage > 0)
		return worker_works_on(w, message->round) && message->attempt == worker_pass(w, message->round);
	struct skep_work *work = skep_inflight_find(worker_inflight(w), message->round, message->microbatch);
	bool forwards = message->kind == SKEP_MESSAGE_FORWARD;
	uint32_t stage = message->kind == SKEP_MESSAGE_BACKWARD ? message->stage - 1u : message->stage + 1u;
	bool waits =
		work && (work->state == SKEP_WORK_WAIT_GRADIENT || (forwards && work->state == SKEP_WORK_WAIT_OUTPUT));
	return waits && work->leg == stage && skep_peer_same(work->down, message->to) &&
	       work->attempt == message->attempt;
}

const struct route skep_route_trainer = {
	.forwarded = forwarded,
	.go_on = go_on,
	.on_output = on_output,
	.on_input = on_input,
	.on_backward = on_backward,
	.gone = gone,
	.outward = outward,
	.take_back = take_back,
	.send_elsewhere = send_elsewhere,
	.wants = wants,
};
