/* SPDX-License-Identifier: Apache-2.0
 *
 * gpipe.c - GPipe (Huang et al. 2019): forwards first; the last stage goes backwards when the whole share of its pipeline
 * has gone forwards. That is enough for all: a gradient comes to a stage only after the last one has turned round, and by
 * then everything has passed by. If something of the share will not come the directory says so (DRAIN), and no worker waits
 * any more; nor in a round that is being run again, of which it is not known how much will come. So the gate opens in the
 * end. With several flushes (plan->accumulate) the same holds of each of them: the first stage issues the next one when all
 * of this one has come back. With a barrier the last stage says so (FORWARDS_DONE), and waits until all pipelines have
 * (BARRIER_LIFTED).
 *
 * Where FORWARD keeps nothing and all of the flush has passed, an idle device does it again ahead for the microbatch that
 * was sent on first: its gradient comes next. One at a time, so it takes no memory beside that of a BACKWARD.
 */
#include "core/schedule/order.h"

#include "core/worker/worker.h"
#include <assert.h>

/* All of a flush has gone forwards here, or all of the share. */
static bool flush_has_passed(const struct worker *w)
{
	assert(w->state == WORKER_SERVING);
	assert(w->flush > 0 && w->flush <= w->share);
	return w->forwarded >= w->share || (w->forwarded > 0 && w->forwarded % w->flush == 0);
}

static bool turns_round(const struct worker *w, const struct skep_plan *plan)
{
	assert(w->state == WORKER_SERVING);
	uint32_t round = worker_round(w);
	bool all_have = flush_has_passed(w) && (!plan->barrier || w->barrier_lifted > round);
	return w->node.stage + 1 < plan->stages || all_have || w->drained > round || worker_pass(w, round) > 0;
}

static void pick_recompute(struct worker *w, struct step *step)
{
	assert(w->state == WORKER_SERVING);
	struct skep_inflight *table = worker_inflight(w);
	struct skep_work *first = NULL;
	uint32_t left = table->used;
	if (!flush_has_passed(w) || w->compute_kind == SKEP_OP_RECOMPUTE)
		return;
	for (uint32_t i = 0; left > 0; i++) {
		struct skep_work *work = &table->work[i];
		left -= work->state != SKEP_WORK_FREE;
		bool waits = work->state == SKEP_WORK_WAIT_GRADIENT && work->round == worker_round(w) &&
		             !worker_validates(w, work->microbatch);
		if (waits && (!first || work->sent_ns < first->sent_ns))
			first = work;
	}
	if (first)
		skep_pipeline_recompute(w, step, first);
}

static void forwarded(struct worker *w, struct step *step)
{
	assert(w->state == WORKER_SERVING);
	uint32_t round = worker_round(w);
	if (!step->plan->barrier || w->forwarded != w->share || worker_pass(w, round) > 0)
		return;
	struct skep_message message =
		skep_message_to(&w->node, SKEP_MESSAGE_FORWARDS_DONE, skep_directory_peer(step->plan));
	message.round = round;
	skep_worker_send(w, step, &message);
}

static void pick(struct worker *w, struct step *step)
{
	assert(w->state == WORKER_SERVING);
	skep_schedule_forward(w, step);
	if (w->compute_op == 0 && turns_round(w, step->plan))
		skep_schedule_backward(w, step);
	if (w->compute_op == 0 && step->plan->recompute && !skep_plan_is_frozen(step->plan, w->node.stage))
		pick_recompute(w, step);
}

const struct skep_order skep_order_gpipe = {.pick = pick, .forwarded = forwarded, .drains = SKEP_DRAINS_LAST};
