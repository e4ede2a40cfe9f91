/* SPDX-License-Identifier: Apache-2.0
 *
 * member.c - a worker's standing in the swarm: it joins, serves, is fenced, comes back as a newcomer, stops.
 *
 * A newcomer is given a stage (ASSIGN), makes room for it on its device (ENTER) and says so (ENTERED). From then on it
 * is a member of the stage's reductions: ADMIT names the first one, and whom to download the state from (download.c).
 * It steps like everyone, with an empty accumulator, for as long as the download takes. When it holds all chunks it
 * says READY, and gets work from the next round on. If no worker is left to download from, ADMIT makes it the restorer:
 * it restores a checkpoint, or begins anew, and works as soon as it can.
 */
#include <assert.h>

#include "core/worker/worker.h"

static void ask_to_join(struct worker *w, struct step *step)
{
	assert(w->state == WORKER_OUT);
	struct skep_message message = skep_message_to(&w->node, SKEP_MESSAGE_JOIN, skep_directory_peer(step->plan));
	message.u.join.started_ns = w->started_ns;
	skep_worker_send(w, step, &message);
}

static void join(struct worker *w, struct step *step)
{
	assert(w->state != WORKER_STOPPED);
	w->state = WORKER_OUT;
	w->node.stage = SKEP_NO_STAGE;
	if (w->leaving)
		skep_member_stop(w, step, true);
	else
		ask_to_join(w, step);
}

static void set_deadline(struct worker *w)
{
	w->node.deadline = w->heartbeat_due_ns < w->load_due_ns ? w->heartbeat_due_ns : w->load_due_ns;
	if (w->reissue_due_ns < w->node.deadline)
		w->node.deadline = w->reissue_due_ns;
}

void skep_member_start(struct worker *w, struct step *step)
{
	w->started_ns = w->sent_to_directory_ns = w->node.now;
	w->open_ns = 0;
	w->banned_ns = SKEP_TIME_NEVER;
	w->ban_asked = false;
	w->heartbeat_due_ns = w->node.now + step->plan->liveness.heartbeat_ns;
	w->load_due_ns =
		step->plan->rebalance.period_ns > 0 ? w->node.now + step->plan->rebalance.period_ns : SKEP_TIME_NEVER;
	set_deadline(w);
	if (w->state == WORKER_OUT)
		join(w, step);
}

void skep_member_suspect(struct worker *w, struct step *step, struct skep_peer who, bool asking)
{
	if (w->state == WORKER_STOPPED || who.index >= step->plan->workers || who.index == w->node.self.index)
		return;
	struct skep_message message = skep_message_to(&w->node, SKEP_MESSAGE_SUSPECT, skep_directory_peer(step->plan));
	message.u.peer.who = who;
	message.u.peer.alive = asking;
	skep_worker_send(w, step, &message);
}

/* News of a fenced worker may overtake the news that it joined; then work goes to it and no message tells. So ask about
 * those that have been silent for long. */
static bool silent(const struct worker *w, const struct step *step, const struct skep_work *work)
{
	assert(w->state == WORKER_SERVING);
	bool waits = work->state == SKEP_WORK_WAIT_GRADIENT || work->state == SKEP_WORK_WAIT_OUTPUT;
	return waits && w->node.now - work->sent_ns >= step->plan->liveness.fence_after_ns;
}

static void ask_about_silent(struct worker *w, struct step *step)
{
	assert(w->state != WORKER_STOPPED);
	struct skep_inflight *table = worker_inflight(w);
	uint32_t left = table->used; /* they lie in the first slots, mostly */
	for (uint32_t i = 0; left > 0; i++) {
		left -= table->work[i].state != SKEP_WORK_FREE;
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
		skep_member_suspect(w, step, who, true);
	}
}

static void heartbeat(struct worker *w, struct step *step)
{
	bool thin = false;
	for (uint32_t stage = 1; stage < step->plan->stages; stage++)
		thin |= route_leads(step->plan, w->node.stage, stage) &&
		        skep_view_thin(worker_view(w, step->plan, stage), w->view_capacity);
	if (skep_reissue_ban_is_old(w, step) || thin) {
		struct skep_message ask =
			skep_message_to(&w->node, SKEP_MESSAGE_LIST_PEERS, skep_directory_peer(step->plan));
		skep_worker_send(w, step, &ask);
	}
	ask_about_silent(w, step);
	if (w->state == WORKER_JOINING)
		skep_download_heartbeat(w, step);
	if (w->state == WORKER_OUT) { /* it has no epoch that the directory would listen to */
		ask_to_join(w, step);
	} else if (w->node.now - w->sent_to_directory_ns >= step->plan->liveness.heartbeat_ns / 2) {
		struct skep_message message =
			skep_message_to(&w->node, SKEP_MESSAGE_HEARTBEAT, skep_directory_peer(step->plan));
		skep_worker_send(w, step, &message);
	}
	w->heartbeat_due_ns = w->node.now + step->plan->liveness.heartbeat_ns;
}

/* Microbatches that wait here for the device. In the first stage what was granted and is not begun waits too: in SWARM the
 * trainers have sent it by then. By rate, where queues only choose among the workers of a stage, it does not matter. */
static uint32_t waiting(struct worker *w, const struct skep_plan *plan)
{
	assert(w->grants <= w->grant_capacity);
	uint32_t count = worker_inflight(w)->ready;
	for (uint32_t i = 0; plan->rebalance.by == SKEP_REBALANCE_BY_QUEUE && i < w->grants; i++)
		count += worker_grants(w)[i].end - worker_grants(w)[i].first;
	return count;
}

void skep_member_measure(struct worker *w, const struct skep_plan *plan)
{
	skep_time passed_ns = w->node.now - w->queue_since_ns;
	w->queue_since_ns = w->node.now;
	if (w->state != WORKER_SERVING || worker_sealed(w))
		return;
	w->open_ns += passed_ns;
	w->queue_area += waiting(w, plan) * passed_ns;
}

static void report_load(struct worker *w, struct step *step)
{
	assert(w->state != WORKER_STOPPED);
	struct skep_message message = skep_message_to(&w->node, SKEP_MESSAGE_LOAD, skep_directory_peer(step->plan));
	message.u.load.queue_milli = w->queue_area / (w->open_ns / 1000 + 1);
	message.u.load.needed_ns = w->passed > 0 ? w->passes_ns / w->passed : 0;
	if (w->open_ns > 0)
		skep_worker_send(w, step, &message);
	w->queue_area = w->open_ns = 0;
	if (w->passed > 0)
		w->passes_ns = w->passed = 0;
	w->load_due_ns = w->node.now + step->plan->rebalance.period_ns;
}

void skep_member_timer(struct worker *w, struct step *step)
{
	if (w->state == WORKER_STOPPED)
		return;
	if (w->node.now >= w->heartbeat_due_ns)
		heartbeat(w, step);
	if (w->node.now >= w->load_due_ns)
		report_load(w, step);
	if (w->node.now >= w->reissue_due_ns)
		skep_reissue_pass(w, step);
	set_deadline(w);
}

/* ---- leaving -------------------------------------------------------------------------------------------------- */

static void ask_to_leave(struct worker *w, struct step *step)
{
	struct skep_message message = skep_message_to(&w->node, SKEP_MESSAGE_LEAVE, skep_directory_peer(step->plan));
	skep_worker_send(w, step, &message);
}

/* What is granted from now on was under way, or there is no other worker to do it: so it is done. */
void skep_member_notice(struct worker *w, struct step *step)
{
	if (w->leaving || w->state == WORKER_STOPPED)
		return;
	w->leaving = true;
	ask_to_leave(w, step); /* first, lest what is handed back be granted to this worker again */
	step->how.worker->notice(w, step);
	if (w->state == WORKER_OUT)
		skep_member_stop(w, step, true);
}

/* ---- joining -------------------------------------------------------------------------------------------------- */

void skep_member_on_assign(struct worker *w, struct step *step, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_ASSIGN);
	assert(message->from.index == step->plan->workers);
	assert(message->to.epoch > w->node.self.epoch);
	skep_worker_forget(w, step);
	w->assigned = 0;
	w->state = WORKER_JOINING;
	w->node.self.epoch = message->to.epoch;
	w->node.stage = message->stage;
	w->candidate = message->candidate;
	skep_worker_clear_views(w, step->plan);
	if (w->leaving) /* it was moved before its notice was heard */
		ask_to_leave(w, step);
}

void skep_member_enter(struct worker *w, struct step *step)
{
	if (w->state != WORKER_JOINING || w->leaving || w->reduce_ops > 0)
		return;
	struct skep_op op = {.kind = SKEP_OP_ENTER, .stage = (uint16_t)w->node.stage};
	op.version = w->version;
	skep_worker_compute(w, step, &op);
}

void skep_member_entered(struct worker *w, struct step *step)
{
	assert(w->state == WORKER_JOINING);
	struct skep_message message = skep_message_to(&w->node, SKEP_MESSAGE_ENTERED, skep_directory_peer(step->plan));
	w->entered = true;
	skep_worker_send(w, step, &message);
}

void skep_member_admit(struct worker *w, struct step *step, uint32_t round)
{
	assert(w->state != WORKER_STOPPED);
	assert(w->state == WORKER_JOINING && !w->admitted);
	w->admitted = true;
	w->version = w->oldest = round;
	step->how.worker->derive(w);
	skep_download_begin(w, step->plan);
}

void skep_member_on_admit(struct worker *w, struct step *step, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_ADMIT);
	assert(message->from.index == step->plan->workers);
	if (w->state != WORKER_JOINING || !w->entered || message->admission <= w->assigned)
		return; /* a duplicate, or it holds all already */
	w->assigned = message->admission;
	if (!w->admitted)
		skep_member_admit(w, step, message->round);
	w->restore = message->u.admit.source.index == SKEP_NO_INDEX;
	w->restore_version = message->u.admit.checkpoint;
	if (message->serving > 0)
		w->inner.members = message->serving;
	if (!w->restore)
		skep_download_from(w, step, message->u.admit.source);
}

bool skep_member_restore(struct worker *w, struct step *step)
{
	if (w->state != WORKER_JOINING || !w->restore)
		return false;
	struct skep_op op = {.kind = SKEP_OP_RESTORE, .stage = (uint16_t)w->node.stage, .round = w->version};
	op.checkpoint = w->restore_version;
	op.candidate = w->candidate;
	w->restore = false;
	op.version = w->version;
	skep_worker_compute(w, step, &op);
	return true;
}

static void tell_kept(struct worker *w, struct step *step, enum skep_message_kind kind, uint32_t version)
{
	assert(w->state == WORKER_SERVING);
	struct skep_message message = skep_message_to(&w->node, kind, skep_directory_peer(step->plan));
	message.round = version;
	skep_worker_send(w, step, &message);
}

bool skep_member_checkpoint(struct worker *w, struct step *step)
{
	if (w->state != WORKER_SERVING || !w->checkpoint)
		return false;
	if (step->plan->checkpoint_every == 0) { /* asked for word that it holds all of this version */
		w->checkpoint = false;
		tell_kept(w, step, SKEP_MESSAGE_CHECKPOINTED, w->version);
		return false;
	}
	struct skep_op op = {.kind = SKEP_OP_CHECKPOINT, .stage = (uint16_t)w->node.stage};
	op.round = step->how.worker->kept_as(w);
	w->checkpoint = false;
	op.version = w->version;
	skep_worker_compute(w, step, &op);
	return true;
}

void skep_member_checkpointed(struct worker *w, struct step *step, const struct skep_event *event)
{
	assert(event->kind == SKEP_EVENT_OP_DONE);
	assert(w->state == WORKER_SERVING);
	bool kept = event->fault == SKEP_FAULT_NONE;
	if (event->fault == SKEP_FAULT_STATE) /* as FAULT has said, and this must not overtake it */
		return;
	tell_kept(w, step, kept ? SKEP_MESSAGE_CHECKPOINTED : SKEP_MESSAGE_CHECKPOINT_FAILED, event->u.done.op.round);
}

/* Under this number, when it has come to this version. */
void skep_member_keep(struct worker *w, uint32_t version, uint32_t number)
{
	assert(w->state == WORKER_SERVING);
	assert(number > w->keep);
	w->keep = number;
	w->keep_version = version;
}

void skep_member_fault(struct worker *w, struct step *step, const struct skep_event *event)
{
	const struct skep_op *op = &event->u.done.op;
	struct skep_message message = skep_message_to(&w->node, SKEP_MESSAGE_FAULT, skep_directory_peer(step->plan));
	if (event->fault == SKEP_FAULT_CHECKPOINT_FAILED)
		return;
	message.stage = op->stage;
	message.round = op->round;
	message.microbatch = op->microbatch;
	message.u.fault.kind = event->fault;
	message.u.fault.layer = event->layer;
	skep_worker_send(w, step, &message);
}

void skep_member_ready(struct worker *w, struct step *step)
{
	assert(w->state == WORKER_JOINING && w->entered && w->admitted);
	assert(w->state == WORKER_JOINING);
	w->state = WORKER_SERVING;
	step->how.local->serves(w);
	struct skep_message message = skep_message_to(&w->node, SKEP_MESSAGE_READY, skep_directory_peer(step->plan));
	message.round = w->version;
	skep_worker_send(w, step, &message);
}

/* ---- news ----------------------------------------------------------------------------------------------------- */

static void fenced(struct worker *w, struct step *step)
{
	assert(w->state != WORKER_STOPPED);
	skep_worker_forget(w, step);
	w->stop_when_stepped = false;
	skep_worker_clear_views(w, step->plan);
	join(w, step);
}

/* From the view of the stage that it served, or from another one, if news of its move came in another order. */
static void forget_peer(struct worker *w, struct step *step, struct skep_peer who, uint32_t stage)
{
	assert(who.index < step->plan->workers);
	assert(w->state != WORKER_STOPPED);
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

/* True if the end of this incarnation is known. News of its beginning may come after that of its end. */
static bool known_gone(struct worker *w, struct skep_peer who)
{
	return skep_peer_covers(worker_gone(w)[who.index % w->gone_capacity], who);
}

static void note_gone(struct worker *w, struct skep_peer who)
{
	if (!known_gone(w, who))
		worker_gone(w)[who.index % w->gone_capacity] = who;
}

void skep_member_on_peer(struct worker *w, struct step *step, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_PEER);
	assert(message->from.index == step->plan->workers);
	struct skep_peer who = message->u.peer.who;
	if (who.index == w->node.self.index) {
		if (!message->u.peer.alive && skep_peer_covers(who, w->node.self))
			fenced(w, step);
		else if (message->u.peer.leaving && skep_peer_same(who, w->node.self)) { /* its machine is given back */
			w->returned = true;
			skep_member_notice(w, step);
		} else if (message->u.peer.alive && skep_peer_same(who, w->node.self)) {
			w->restored = false;
		}
		return;
	}
	if (!message->u.peer.alive) {
		note_gone(w, who);
		forget_peer(w, step, who, message->stage);
		skep_pipeline_peer_gone(w, step, who);
	} else if (route_leads(step->plan, w->node.stage, message->stage) && !known_gone(w, who)) {
		struct skep_view *view = worker_view(w, step->plan, message->stage);
		skep_view_add(view, step->plan, w->view_capacity, who, &w->node.random);
		if (message->u.peer.leaving) /* no new work, but what it has may come back */
			skep_view_leaving(view, who);
		skep_pipeline_peer_new(w, step);
	}
}

/* ---- the end -------------------------------------------------------------------------------------------------- */

void skep_member_stop(struct worker *w, struct step *step, bool ok)
{
	assert(w->state != WORKER_STOPPED);
	skep_worker_forget(w, step);
	assert(w->state != WORKER_STOPPED);
	w->state = WORKER_STOPPED;
	w->node.outcome = ok ? SKEP_DONE : SKEP_FAILED;
	w->node.deadline = SKEP_TIME_NEVER;
}

/* message->round: the version that this worker is to reach first, so that all leave with the same parameters. */
void skep_member_on_stop(struct worker *w, struct step *step, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_STOP);
	assert(message->from.index == step->plan->workers);
	if (message->u.stop.ok && w->state == WORKER_SERVING && w->version < message->round) {
		w->stop_when_stepped = true;
		w->stop_version = message->round;
	} else {
		skep_member_stop(w, step, message->u.stop.ok);
	}
}
