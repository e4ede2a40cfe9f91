/* SPDX-License-Identifier: Apache-2.0
 *
 * reissue.c - see reissue.h. Microbatches that have waited too long are found by a look at the whole table, about once
 * in each timeout.
 */
#include "core/worker/reissue.h"

#include <assert.h>

#include "core/worker/worker.h"

/* ---- who waits ------------------------------------------------------------------------------------------------ */

static bool waits(const struct skep_work *work)
{
	return work->state == SKEP_WORK_WAIT_GRADIENT || work->state == SKEP_WORK_WAIT_OUTPUT;
}

static void set_due(struct worker *w, const struct skep_plan *plan, struct skep_work *work)
{
	assert(w->state == WORKER_SERVING);
	assert(work->microbatch < w->numbers);
	work->due_ns = w->node.now + plan->liveness.reissue_after_ns;
	if (work->due_ns < w->reissue_due_ns)
		w->reissue_due_ns = work->due_ns;
	if (w->reissue_due_ns < w->node.deadline)
		w->node.deadline = w->reissue_due_ns;
}

void skep_reissue_begin(struct worker *w, struct step *step, struct skep_work *work, uint8_t state)
{
	assert(w->state == WORKER_SERVING);
	assert(work->microbatch < w->numbers);
	work->state = state;
	work->sent_ns = w->node.now;
	work->kept = false;
	if (step->plan->liveness.reissue_after_ns > 0)
		set_due(w, step->plan, work);
}

struct skep_peer skep_reissue_choose(
	struct worker *w, struct step *step, struct skep_work *work, uint32_t stage, bool *ret_hopeless)
{
	assert(w->state == WORKER_SERVING);
	assert(work->microbatch < w->numbers);
	struct skep_view *view = worker_view(w, step->plan, stage);
	struct skep_peer chosen =
		skep_view_choose_other(view, step->plan, w->node.self, work->returned, &w->node.random);
	bool banned = w->banned_ns != SKEP_TIME_NEVER || w->ban_asked; /* one that may come back */
	*ret_hopeless = chosen.index == SKEP_NO_INDEX && view->count > 0 && !banned;
	return chosen;
}

/* ---- who has waited too long ---------------------------------------------------------------------------------- */

static bool may_ask(struct worker *w, const struct step *step, const struct skep_work *work)
{
	assert(w->state == WORKER_SERVING);
	const struct skep_plan *plan = step->plan;
	return !work->kept && work->returned.index == SKEP_NO_INDEX && step->how.route->outward(plan, work) &&
	       skep_view_has_other(worker_view(w, plan, work->leg), work->down);
}

static void run_out(struct worker *w, struct step *step, struct skep_work *work)
{
	assert(w->state == WORKER_SERVING);
	assert(work->microbatch < w->numbers);
	skep_view_silent(worker_view(w, step->plan, work->leg), work->down, w->node.now - work->sent_ns);
	skep_reissue_ban(w, step->plan, work->down);
	if (!may_ask(w, step, work))
		return;
	struct skep_message message = skep_message_to(&w->node, SKEP_MESSAGE_CANCEL, work->down);
	message.round = work->round;
	message.microbatch = work->microbatch;
	message.attempt = work->attempt;
	skep_worker_send(w, step, &message);
}

void skep_reissue_pass(struct worker *w, struct step *step)
{
	assert(w->state != WORKER_STOPPED);
	struct skep_inflight *table = worker_inflight(w);
	w->reissue_due_ns = SKEP_TIME_NEVER;
	for (uint32_t i = 0; i < table->capacity; i++) {
		struct skep_work *work = &table->work[i];
		if (!waits(work))
			continue;
		if (work->due_ns <= w->node.now) {
			run_out(w, step, work);
			work->due_ns = w->node.now + step->plan->liveness.reissue_after_ns;
		}
		if (work->due_ns < w->reissue_due_ns)
			w->reissue_due_ns = work->due_ns;
	}
}

/* ---- who is banned -------------------------------------------------------------------------------------------- */

void skep_reissue_ban(struct worker *w, const struct skep_plan *plan, struct skep_peer who)
{
	assert(w->state != WORKER_STOPPED);
	if (plan->liveness.ban != SKEP_BAN_AT_ONCE)
		return;
	for (uint32_t stage = 1; stage < plan->stages; stage++) {
		if (!route_leads(plan, w->node.stage, stage) || !skep_view_has(worker_view(w, plan, stage), who.index))
			continue;
		skep_view_remove(worker_view(w, plan, stage), who);
		w->banned_ns = w->banned_ns < w->node.now ? w->banned_ns : w->node.now;
	}
}

bool skep_reissue_ban_is_old(struct worker *w, struct step *step)
{
	assert(w->state != WORKER_STOPPED);
	bool answered = w->ban_asked;
	w->ban_asked =
		w->banned_ns != SKEP_TIME_NEVER && w->node.now - w->banned_ns >= step->plan->liveness.heartbeat_ns;
	if (w->ban_asked)
		w->banned_ns = SKEP_TIME_NEVER;
	else if (answered && w->state == WORKER_SERVING)
		skep_pipeline_peer_new(w, step); /* what waits for one that did not come back may have to be given up */
	return w->ban_asked;
}

/* Once in a stage, as what is taken back: then it is sent again to the same one, which may have been asked to drop it. Nor what
 * this worker sent in another stage than it serves now: it holds no work for that. */
bool skep_reissue_elsewhere(struct worker *w, struct step *step, const struct skep_message *forward)
{
	assert(forward->kind == SKEP_MESSAGE_FORWARD);
	if (step->plan->liveness.ban != SKEP_BAN_AT_ONCE)
		return false;
	struct skep_work *work = skep_inflight_find(worker_inflight(w), forward->round, forward->microbatch);
	if (!work || !skep_peer_same(work->down, forward->to))
		return false;
	skep_reissue_ban(w, step->plan, forward->to);
	if (!may_ask(w, step, work))
		return false;
	work->returned = work->down;
	step->how.route->send_elsewhere(w, step, work, forward->payload);
	return true;
}

/* ---- who is asked --------------------------------------------------------------------------------------------- */

/* What was given back to this worker is ready for another forward pass, but it was begun. */
static bool not_begun(const struct skep_work *work)
{
	return work->state == SKEP_WORK_READY_FORWARD && work->returned.index == SKEP_NO_INDEX;
}

/* May overtake the activations that it is about: then they are ignored when they come. */
void skep_reissue_on_cancel(struct worker *w, struct step *step, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_CANCEL);
	assert(message->from.index < step->plan->workers);
	if (!skep_pipeline_round_open(w, step, message))
		return;
	struct skep_work *work = skep_inflight_find(worker_inflight(w), message->round, message->microbatch);
	struct skep_message reply = skep_message_to(&w->node, SKEP_MESSAGE_CANCELLED, message->from);
	reply.round = message->round;
	reply.microbatch = message->microbatch;
	reply.attempt = message->attempt;
	if (!skep_marks_has(worker_seen(w, message->round), message->microbatch)) {
		w->met = true;
		skep_marks_add(worker_seen(w, message->round), message->microbatch);
		reply.u.cancelled.dropped = true;
	} else if (work && not_begun(work) && skep_peer_same(work->up, message->from)) {
		skep_pipeline_drop(w, step, work);
		reply.u.cancelled.dropped = true;
	}
	skep_worker_send(w, step, &reply);
}

void skep_reissue_on_cancelled(struct worker *w, struct step *step, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_CANCELLED);
	assert(message->from.index < step->plan->workers);
	struct skep_work *work = skep_pipeline_awaited(w, message);
	if (!work || !step->how.route->outward(step->plan, work))
		return;
	if (!message->u.cancelled.dropped) {
		work->kept = true;
		return;
	}
	work->returned = work->down;
	step->how.route->take_back(w, step, work);
}

bool skep_reissue_wants(struct worker *w, const struct skep_message *cancel)
{
	assert(cancel->kind == SKEP_MESSAGE_CANCEL);
	struct skep_work *work = skep_inflight_find(worker_inflight(w), cancel->round, cancel->microbatch);
	return work && waits(work) && skep_peer_same(work->down, cancel->to) && work->attempt == cancel->attempt;
}
