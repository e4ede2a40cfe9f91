/* SPDX-License-Identifier: Apache-2.0
 *
 * member.c - a worker's standing in the swarm: it joins, serves, is fenced, comes back as a newcomer, stops.
 *
 * A newcomer is given a stage and a source (ASSIGN), fetches the state as of the start of the open round, and says READY.
 * If that comes before the round is sealed it takes part in the round's reduction with an empty accumulator, steps like
 * everyone, and serves from the next round on. If it comes too late the directory assigns it anew.
 */
#include "core/worker.h"

static void ask_to_join(struct worker *w, struct step *step)
{
	struct skep_message message = skep_message_to(&w->node, SKEP_MESSAGE_JOIN, skep_directory_peer(step->plan));
	message.u.join.born_ns = w->born_ns;
	worker_send(w, step, &message);
}

static void join(struct worker *w, struct step *step)
{
	w->state = WORKER_OUT;
	w->node.stage = SKEP_NO_STAGE;
	if (w->leaving)
		member_stop(w, step, true);
	else
		ask_to_join(w, step);
}

static void set_deadline(struct worker *w)
{
	w->node.deadline = w->heartbeat_due_ns < w->load_due_ns ? w->heartbeat_due_ns : w->load_due_ns;
	if (w->patience_due_ns < w->node.deadline)
		w->node.deadline = w->patience_due_ns;
}

void member_start(struct worker *w, struct step *step)
{
	w->born_ns = w->sent_to_directory_ns = w->node.now;
	w->open_ns = 0;
	w->heartbeat_due_ns = w->node.now + step->plan->heartbeat_ns;
	w->load_due_ns = step->plan->rebalance_ns > 0 ? w->node.now + step->plan->rebalance_ns : SKEP_TIME_NEVER;
	set_deadline(w);
	if (w->state == WORKER_OUT)
		join(w, step);
}

void member_suspect(struct worker *w, struct step *step, struct skep_peer who, bool asking)
{
	if (w->state == WORKER_STOPPED || who.index >= step->plan->workers || who.index == w->node.self.index)
		return;
	struct skep_message message = skep_message_to(&w->node, SKEP_MESSAGE_SUSPECT, skep_directory_peer(step->plan));
	message.u.peer.who = who;
	message.u.peer.alive = asking;
	worker_send(w, step, &message);
}

/* News of a fenced worker may overtake the news that it joined; then work goes to it and nobody tells. So ask about those
 * that have been silent for long. */
static bool silent(const struct worker *w, const struct step *step, const struct skep_work *work)
{
	bool waits = work->state == SKEP_WORK_WAIT_GRADIENT || work->state == SKEP_WORK_WAIT_OUTPUT;
	return waits && w->node.now - work->sent_ns >= step->plan->fence_after_ns;
}

static void ask_about_silent(struct worker *w, struct step *step)
{
	struct skep_inflight *table = worker_inflight(w);
	for (uint32_t i = 0; i < table->capacity; i++) {
		if (!silent(w, step, &table->work[i]))
			continue;
		uint32_t first = 0; /* ask once for each of them */
		while (!silent(w, step, &table->work[first]) ||
			!skep_peer_same(table->work[first].down, table->work[i].down))
			first++;
		if (first < i)
			continue;
		struct skep_peer who = table->work[i].down;
		skep_view_silent(
			worker_view(w, step->plan, table->work[i].leg), who, w->node.now - table->work[i].sent_ns);
		member_suspect(w, step, who, true);
	}
}

static void heartbeat(struct worker *w, struct step *step)
{
	bool thin = false;
	for (uint32_t stage = 1; stage < step->plan->stages; stage++)
		thin |= route_leads(step->plan, w->node.stage, stage) &&
		        skep_view_thin(worker_view(w, step->plan, stage), skep_view_capacity(step->plan));
	if (thin) {
		struct skep_message ask = skep_message_to(&w->node, SKEP_MESSAGE_WHO, skep_directory_peer(step->plan));
		worker_send(w, step, &ask);
	}
	ask_about_silent(w, step);
	if (w->state == WORKER_OUT) { /* it has no epoch that the directory would listen to */
		ask_to_join(w, step);
	} else if (w->node.now - w->sent_to_directory_ns >= step->plan->heartbeat_ns / 2) {
		struct skep_message message =
			skep_message_to(&w->node, SKEP_MESSAGE_HEARTBEAT, skep_directory_peer(step->plan));
		worker_send(w, step, &message);
	}
	w->heartbeat_due_ns = w->node.now + step->plan->heartbeat_ns;
}

static void report_load(struct worker *w, struct step *step)
{
	struct skep_message message = skep_message_to(&w->node, SKEP_MESSAGE_LOAD, skep_directory_peer(step->plan));
	message.u.load.queue_milli = w->queue_area / (w->open_ns / 1000 + 1);
	if (w->open_ns > 0)
		worker_send(w, step, &message);
	w->queue_area = w->open_ns = 0;
	w->load_due_ns = w->node.now + step->plan->rebalance_ns;
}

void member_timer(struct worker *w, struct step *step)
{
	if (w->state == WORKER_STOPPED)
		return;
	if (w->node.now >= w->heartbeat_due_ns)
		heartbeat(w, step);
	if (w->node.now >= w->load_due_ns)
		report_load(w, step);
	if (w->node.now >= w->patience_due_ns)
		patience_pass(w, step);
	set_deadline(w);
}

/* ---- leaving -------------------------------------------------------------------------------------------------- */

static void ask_to_leave(struct worker *w, struct step *step)
{
	struct skep_message message = skep_message_to(&w->node, SKEP_MESSAGE_LEAVE, skep_directory_peer(step->plan));
	worker_send(w, step, &message);
}

/* What is granted from now on was under way, or there is nobody else to do it: so it is done. */
void member_notice(struct worker *w, struct step *step)
{
	if (w->leaving || w->state == WORKER_STOPPED)
		return;
	w->leaving = true;
	ask_to_leave(w, step); /* first, lest what is handed back be granted to this worker again */
	pipeline_hand_back(w, step);
	if (w->state == WORKER_OUT)
		member_stop(w, step, true);
}

/* ---- joining -------------------------------------------------------------------------------------------------- */

void member_on_assign(struct worker *w, struct step *step, const struct skep_message *message)
{
	bool new_epoch = message->to.epoch > w->node.self.epoch;
	if (!new_epoch && (message->attempt <= w->assigned || w->state == WORKER_OUT))
		return; /* a duplicate, or of a life that has ended */
	worker_forget(w, step);
	w->assigned = message->attempt;
	w->fetched = false;
	w->state = WORKER_JOINING;
	w->node.self.epoch = message->to.epoch;
	w->node.stage = message->stage;
	w->join_round = w->version = message->round;
	w->source = message->u.assign.source;
	if (new_epoch)
		worker_clear_views(w, step->plan);
	if (w->leaving) { /* it was moved before its notice was heard */
		ask_to_leave(w, step);
		return;
	}
	struct skep_message fetch = skep_message_to(&w->node, SKEP_MESSAGE_FETCH, w->source);
	fetch.round = w->join_round;
	worker_send(w, step, &fetch);
}

void member_on_fetch(struct worker *w, const struct skep_message *message)
{
	bool wanted = w->state == WORKER_SERVING && message->round >= w->version && w->fetchers < FETCHERS_MAX;
	for (uint32_t i = 0; wanted && i < w->fetchers; i++)
		wanted = !skep_peer_same(w->fetcher[i], message->from) || w->fetch_round[i] != message->round;
	if (!wanted) /* too late or too many: the directory assigns the newcomer anew at the next round */
		return;
	w->fetcher[w->fetchers] = message->from;
	w->fetch_round[w->fetchers++] = message->round;
}

void member_saved(struct worker *w, struct step *step, const struct skep_op *op, struct skep_buf state)
{
	struct skep_message message =
		skep_message_to(&w->node, SKEP_MESSAGE_STATE, (struct skep_peer){op->microbatch, op->attempt});
	message.round = op->round;
	message.payload = state;
	message.payload_bytes = step->plan->stage[w->node.stage].state_bytes;
	worker_send(w, step, &message);
}

void member_on_state(struct worker *w, struct step *step, const struct skep_message *message)
{
	bool wanted = w->state == WORKER_JOINING && message->round == w->join_round &&
	              skep_peer_same(message->from, w->source) && !w->fetched;
	if (!wanted) {
		skep_emit_release(step, message->payload);
		return;
	}
	w->fetched = true;
	w->load = message->payload;
}

void member_loaded(struct worker *w, struct step *step, const struct skep_op *op)
{
	skep_emit_release(step, op->in);
	w->state = WORKER_SERVING;
	struct skep_message message = skep_message_to(&w->node, SKEP_MESSAGE_READY, skep_directory_peer(step->plan));
	message.round = w->version;
	message.attempt = w->assigned;
	worker_send(w, step, &message);
}

/* ---- news ----------------------------------------------------------------------------------------------------- */

static void fenced(struct worker *w, struct step *step)
{
	worker_forget(w, step);
	w->stop_when_stepped = false;
	worker_clear_views(w, step->plan);
	join(w, step);
}

/* From the view of the stage that it served, or from another one, if news of its move came in another order. */
static void forget_peer(struct worker *w, struct step *step, struct skep_peer who, uint32_t stage)
{
	if (step->plan->routing == SKEP_ROUTING_PEER) {
		skep_view_remove(worker_view(w, step->plan, stage), who);
		return;
	}
	for (uint32_t s = 1; s < step->plan->stages; s++) {
		struct skep_view *view = worker_view(w, step->plan, s);
		if (s == stage || skep_view_has(view, who.index))
			skep_view_remove(view, who);
	}
}

void member_on_peer(struct worker *w, struct step *step, const struct skep_message *message)
{
	struct skep_peer who = message->u.peer.who;
	if (who.index == w->node.self.index) {
		if (!message->u.peer.alive && skep_peer_covers(who, w->node.self))
			fenced(w, step);
		return;
	}
	if (!message->u.peer.alive) {
		forget_peer(w, step, who, message->stage);
		pipeline_peer_gone(w, step, who);
	} else if (route_leads(step->plan, w->node.stage, message->stage)) {
		struct skep_view *view = worker_view(w, step->plan, message->stage);
		skep_view_add(view, skep_view_capacity(step->plan), who, &w->node.random);
		if (message->u.peer.leaving) /* no new work, but what it has may come back */
			skep_view_leaving(view, who);
		pipeline_peer_new(w, step);
	}
}

/* ---- the end -------------------------------------------------------------------------------------------------- */

void member_stop(struct worker *w, struct step *step, bool ok)
{
	worker_forget(w, step);
	w->state = WORKER_STOPPED;
	w->node.outcome = ok ? SKEP_DONE : SKEP_FAILED;
	w->node.deadline = SKEP_TIME_NEVER;
}

/* message->round: the version that this worker is to reach first, so that all leave with the same parameters. */
void member_on_stop(struct worker *w, struct step *step, const struct skep_message *message)
{
	if (message->u.stop.ok && w->state == WORKER_SERVING && w->version < message->round)
		w->stop_when_stepped = true;
	else
		member_stop(w, step, message->u.stop.ok);
}
