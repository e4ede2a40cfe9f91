/* SPDX-License-Identifier: Apache-2.0
 *
 * member.c - a worker's standing in the swarm: it joins, serves, is fenced, comes back as a newcomer, stops.
 *
 * A newcomer is given a stage and a source (ASSIGN), fetches the state as of the start of the open round, and says READY.
 * If that comes before the round is sealed it takes part in the round's reduction with an empty accumulator, steps like
 * everyone, and serves from the next round on. If it comes too late the directory assigns it anew.
 */
#include "core/worker.h"

static void join(struct worker *w, struct step *step)
{
	w->state = WORKER_OUT;
	w->node.stage = SKEP_NO_STAGE;
	struct skep_message message = skep_message_to(&w->node, SKEP_MESSAGE_JOIN, skep_directory_peer(step->plan));
	message.u.join.born_ns = w->born_ns;
	worker_send(w, step, &message);
}

void member_start(struct worker *w, struct step *step)
{
	w->born_ns = w->sent_to_directory_ns = w->node.now;
	w->node.deadline = w->node.now + step->plan->heartbeat_ns;
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
	return work->state == SKEP_WORK_WAIT_GRADIENT && w->node.now - work->sent_ns >= step->plan->fence_after_ns;
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
		if (first == i)
			member_suspect(w, step, table->work[i].down, true);
	}
}

void member_timer(struct worker *w, struct step *step)
{
	if (w->state == WORKER_STOPPED || w->node.now < w->node.deadline)
		return;
	ask_about_silent(w, step);
	if (w->node.now - w->sent_to_directory_ns >= step->plan->heartbeat_ns / 2) {
		struct skep_message message =
			skep_message_to(&w->node, SKEP_MESSAGE_HEARTBEAT, skep_directory_peer(step->plan));
		worker_send(w, step, &message);
	}
	w->node.deadline = w->node.now + step->plan->heartbeat_ns;
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
		skep_view_clear(worker_view(w));
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
	skep_view_clear(worker_view(w));
	join(w, step);
}

void member_on_peer(struct worker *w, struct step *step, const struct skep_message *message)
{
	struct skep_peer who = message->u.peer.who;
	if (who.index == w->node.self.index) {
		if (!message->u.peer.alive && skep_peer_covers(who, w->node.self))
			fenced(w, step);
		return;
	}
	struct skep_view *view = worker_view(w);
	uint32_t capacity = skep_view_capacity(step->plan);
	if (!message->u.peer.alive) {
		if (skep_view_remove(view, capacity, who)) {
			struct skep_message ask =
				skep_message_to(&w->node, SKEP_MESSAGE_WHO, skep_directory_peer(step->plan));
			worker_send(w, step, &ask);
		}
		pipeline_peer_gone(w, step, who);
	} else if (message->stage == w->node.stage + 1) {
		skep_view_add(view, capacity, who, &w->node.random);
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
