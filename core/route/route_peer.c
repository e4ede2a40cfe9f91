/* SPDX-License-Identifier: Apache-2.0
 *
 * route_peer.c - work goes from worker to worker: each chooses the worker of the next stage that gets its output, keeps
 * input and stash, and waits for the gradient, which comes back the way that the activations went. After the last stage
 * comes the first one again, where a microbatch passes the pipeline several times (interleaved.c).
 *
 * When the next one is fenced the gradient will not come back, and this stage, and those before it, have not counted
 * the microbatch: it is given up back to its owner. With fixed pipelines so is a microbatch that no worker can take:
 * the one partner may not come back within the round.
 */
#include "core/schedule/pipelines.h"
#include "core/worker/worker.h"

#include <assert.h>

/* The one worker of the next stage in its pipeline, which may not come back within the round. */
static struct skep_peer partner(
	struct worker *w, const struct skep_plan *plan, const struct skep_work *work, bool *ret_gone)
{
	assert(skep_plan_fixed(plan));
	uint32_t index = w->place.uneven ? skep_plan_place(plan, work->pipeline, work->leg) : w->place.partner;
	struct skep_peer peer = skep_view_find(worker_view(w, plan, work->leg), index);
	*ret_gone = peer.index == SKEP_NO_INDEX;
	return peer;
}

static void go_on(struct worker *w, struct step *step, struct skep_work *work)
{
	assert(w->state == WORKER_SERVING);
	assert(work->microbatch < w->numbers);
	work->leg = (uint16_t)((w->node.stage + 1) % step->plan->stages);
	bool hopeless;
	if (skep_plan_fixed(step->plan))
		work->down = partner(w, step->plan, work, &hopeless);
	else
		work->down = skep_reissue_choose(w, step, work, work->leg, &hopeless);
	if (hopeless) {
		skep_pipeline_give_up(w, step, work);
		return;
	}
	if (work->down.index == SKEP_NO_INDEX) {
		work->state = SKEP_WORK_WAIT_PEER;
		return;
	}
	skep_reissue_begin(w, step, work, SKEP_WORK_WAIT_GRADIENT);
	struct skep_message message = skep_pipeline_tensor(
		w, step, work, SKEP_MESSAGE_FORWARD, work->down, worker_vstage(w, work), work->gradient);
	message.u.forward.pipeline = work->pipeline;
	skep_worker_send(w, step, &message);
	work->gradient = (struct skep_buf){0, 0};
}

static void refuse(struct worker *w, struct step *step, const struct skep_message *message)
{
	(void)w;
	skep_emit_release(step, message->payload);
}

static void on_backward(struct worker *w, struct step *step, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_BACKWARD);
	assert(message->from.index < step->plan->workers);
	struct skep_work *work = skep_pipeline_awaited(w, message);
	if (!work) {
		skep_emit_release(step, message->payload);
		return;
	}
	if (step->plan->wiring != SKEP_WIRING_UNIFORM)
		skep_view_update(worker_view(w, step->plan, work->leg), step->plan, message->from,
			message->u.backward.needed_ns, worker_line_ns(w, work, message->u.backward.held_ns));
	skep_pipeline_ready_backward(w, work, message->payload);
}

static void gone(struct worker *w, struct step *step, struct skep_work *work, struct skep_peer gone)
{
	assert(w->state == WORKER_SERVING);
	assert(work->microbatch < w->numbers);
	if (skep_peer_covers(gone, work->up)) {
		work->up.index = SKEP_NO_INDEX;
		if (work->state == SKEP_WORK_READY_FORWARD) { /* nothing was done for it yet: spare the device */
			skep_pipeline_give_up(w, step, work);
			return;
		}
	}
	if (work->state == SKEP_WORK_WAIT_GRADIENT && skep_peer_covers(gone, work->down))
		skep_pipeline_give_up(w, step, work);
}

static bool outward(const struct skep_plan *plan, const struct skep_work *work)
{
	(void)plan;
	return work->state == SKEP_WORK_WAIT_GRADIENT;
}

/* The activations went with the message: the forward pass makes them anew. */
static void take_back(struct worker *w, struct step *step, struct skep_work *work)
{
	assert(work->state == SKEP_WORK_WAIT_GRADIENT);
	assert(w->state == WORKER_SERVING);
	skep_emit_release(step, work->stash);
	work->stash = (struct skep_buf){0, 0};
	work->state = SKEP_WORK_READY_FORWARD;
	skep_work_push(worker_inflight(w), &worker_inflight(w)->forward[work->round & 1], work);
}

static void send_elsewhere(struct worker *w, struct step *step, struct skep_work *work, struct skep_buf payload)
{
	assert(work->state == SKEP_WORK_WAIT_GRADIENT);
	work->gradient = payload;
	go_on(w, step, work);
}

static bool wants(struct worker *w, const struct step *step, const struct skep_message *message)
{
	assert(message->from.index < step->plan->workers);
	if (message->kind == SKEP_MESSAGE_BACKWARD)
		return step->how.worker->wants_gradient(w, message);
	uint32_t item =
		worker_item(w, message->microbatch, message->stage / w->model_chunks.stages); /* sent by this worker */
	struct skep_work *work = skep_inflight_find(worker_inflight(w), message->round, item);
	return work && work->state == SKEP_WORK_WAIT_GRADIENT && skep_peer_same(work->down, message->to) &&
	       work->attempt == message->attempt;
}

const struct route skep_route_peer = {
	.forwarded = go_on,
	.go_on = go_on,
	.on_output = refuse,
	.on_input = refuse,
	.on_backward = on_backward,
	.gone = gone,
	.outward = outward,
	.take_back = take_back,
	.send_elsewhere = send_elsewhere,
	.wants = wants,
};
