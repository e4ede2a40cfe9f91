/* SPDX-License-Identifier: Apache-2.0
 *
 * member.c - a worker's standing in the swarm: it joins, serves, is fenced, comes back as a newcomer, stops.
 *
 * A newcomer is given a stage (ASSIGN), makes room for it on its device (ENTER) and says so (ENTERED). From then on it is a
 * member of the stage's reductions: ADMIT names the first one, and whom to download the state from (download.c). It steps
 * like everyone, with an empty accumulator, for as long as the download takes. When it holds all chunks it says READY, and
 * gets work from the next round on. If nobody is left to download from, ADMIT makes it the founder: it restores a
 * checkpoint, or begins anew, and works as soon as it can.
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
	if (w->state == WORKER_JOINING)
		download_heartbeat(w, step);
	if (w->state == WORKER_OUT) { /* it has no epoch that the directory would listen to */
		ask_to_join(w, step);
	} else if (w->node.now - w->sent_to_directory_ns >= step->plan->heartbeat_ns / 2) {
		struct skep_message message =
			skep_message_to(&w->node, SKEP_MESSAGE_HEARTBEAT, skep_directory_peer(step->plan));
		worker_send(w, step, &message);
	}
	w->heartbeat_due_ns = w->node.now + step->plan->heartbeat_ns;
}

void member_measure(struct worker *w)
{
	skep_time passed_ns = w->node.now - w->queue_since_ns;
	w->queue_since_ns = w->node.now;
	if (w->state != WORKER_SERVING || worker_sealed(w))
		return;
	w->open_ns += passed_ns;
	w->queue_area += worker_inflight(w)->ready * passed_ns;
}

static void report_load(struct worker *w, struct step *step)
{
	struct skep_message message = skep_message_to(&w->node, SKEP_MESSAGE_LOAD, skep_directory_peer(step->plan));
	message.u.load.queue_milli = w->queue_area / (w->open_ns / 1000 + 1);
	message.u.load.needed_ns = w->passed > 0 ? w->passes_ns / w->passed : 0;
	if (w->open_ns > 0)
		worker_send(w, step, &message);
	w->queue_area = w->open_ns = 0;
	if (w->passed > 0)
		w->passes_ns = w->passed = 0;
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
	if (!w->streams)       /* there the few that are granted are done */
		pipeline_hand_back(w, step);
	if (w->state == WORKER_OUT)
		member_stop(w, step, true);
}

/* ---- joining -------------------------------------------------------------------------------------------------- */

void member_on_assign(struct worker *w, struct step *step, const struct skep_message *message)
{
	if (message->to.epoch == w->node.self.epoch)
		return; /* a duplicate, or of a life that has ended */
	worker_forget(w, step);
	w->assigned = 0;
	w->state = WORKER_JOINING;
	w->node.self.epoch = message->to.epoch;
	w->node.stage = message->stage;
	w->candidate = message->microbatch;
	worker_clear_views(w, step->plan);
	if (w->leaving) /* it was moved before its notice was heard */
		ask_to_leave(w, step);
}

bool member_enter(struct worker *w, struct step *step)
{
	if (w->state != WORKER_JOINING || w->leaving || w->reduce_ops > 0)
		return false;
	struct skep_op op = {.kind = SKEP_OP_ENTER, .stage = (uint16_t)w->node.stage};
	op.version = w->version;
	worker_compute(w, step, &op);
	return true;
}

void member_entered(struct worker *w, struct step *step)
{
	struct skep_message message = skep_message_to(&w->node, SKEP_MESSAGE_ENTERED, skep_directory_peer(step->plan));
	w->entered = true;
	worker_send(w, step, &message);
}

void member_admit(struct worker *w, const struct skep_plan *plan, uint32_t round)
{
	w->admitted = true;
	w->version = round;
	download_begin(w, plan);
}

void member_on_admit(struct worker *w, struct step *step, const struct skep_message *message)
{
	if (w->state != WORKER_JOINING || !w->entered || message->attempt <= w->assigned)
		return; /* a duplicate, or it holds all already */
	w->assigned = message->attempt;
	if (!w->admitted)
		member_admit(w, step->plan, message->round);
	w->restore = message->u.admit.source.index == SKEP_NO_INDEX;
	w->restore_version = message->u.admit.checkpoint;
	if (w->async)
		w->inner.members = message->microbatch;
	if (!w->restore)
		download_from(w, step, message->u.admit.source);
}

bool member_restore(struct worker *w, struct step *step)
{
	if (w->state != WORKER_JOINING || !w->restore)
		return false;
	struct skep_op op = {.kind = SKEP_OP_RESTORE, .stage = (uint16_t)w->node.stage, .round = w->version};
	op.microbatch = w->restore_version;
	op.chunk = w->candidate;
	w->restore = false;
	op.version = w->version;
	worker_compute(w, step, &op);
	return true;
}

bool member_checkpoint(struct worker *w, struct step *step)
{
	if (w->state != WORKER_SERVING || !w->checkpoint)
		return false;
	struct skep_op op = {.kind = SKEP_OP_CHECKPOINT, .stage = (uint16_t)w->node.stage, .round = w->version};
	if (w->async)
		op.round = w->keep;
	w->checkpoint = false;
	op.version = w->version;
	worker_compute(w, step, &op);
	return true;
}

void member_checkpointed(struct worker *w, struct step *step, const struct skep_event *event)
{
	bool kept = event->fault == SKEP_FAULT_NONE;
	if (event->fault == SKEP_FAULT_STATE) /* as FAULT has said, and this must not overtake it */
		return;
	struct skep_message message = skep_message_to(
		&w->node, kept ? SKEP_MESSAGE_CHECKPOINTED : SKEP_MESSAGE_UNKEPT, skep_directory_peer(step->plan));
	message.round = event->u.done.op.round;
	worker_send(w, step, &message);
}

/* A duplicate, of what was asked for when the last round was committed too, comes to nothing. */
void member_on_keep(struct worker *w, const struct skep_message *message)
{
	uint32_t version = w->async ? message->attempt : message->round;
	if (w->state != WORKER_SERVING || message->round <= w->keep || (!w->async && version < w->version))
		return;
	w->keep = message->round;
	w->keep_version = version;
	w->checkpoint = version <= w->version || (w->checkpoint && !w->async); /* else it is of an earlier number */
}

void member_fault(struct worker *w, struct step *step, const struct skep_event *event)
{
	const struct skep_op *op = &event->u.done.op;
	struct skep_message message = skep_message_to(&w->node, SKEP_MESSAGE_FAULT, skep_directory_peer(step->plan));
	if (event->fault == SKEP_FAULT_UNKEPT)
		return;
	message.stage = op->stage;
	message.round = op->round;
	message.microbatch = op->microbatch;
	message.u.fault.kind = event->fault;
	message.u.fault.layer = event->layer;
	worker_send(w, step, &message);
}

void member_ready(struct worker *w, struct step *step)
{
	w->state = WORKER_SERVING;
	w->merge.fresh = w->async;
	w->merge.base = w->version;
	struct skep_message message = skep_message_to(&w->node, SKEP_MESSAGE_READY, skep_directory_peer(step->plan));
	message.round = w->version;
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

/* Is the end of this life known? News of its beginning may come after that of its end. */
static bool known_gone(struct worker *w, struct skep_peer who)
{
	return skep_peer_covers(worker_gone(w)[who.index % w->gone_capacity], who);
}

static void note_gone(struct worker *w, struct skep_peer who)
{
	if (!known_gone(w, who))
		worker_gone(w)[who.index % w->gone_capacity] = who;
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
		note_gone(w, who);
		forget_peer(w, step, who, message->stage);
		pipeline_peer_gone(w, step, who);
	} else if (route_leads(step->plan, w->node.stage, message->stage) && !known_gone(w, who)) {
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
	if (message->u.stop.ok && w->state == WORKER_SERVING && w->version < message->round) {
		w->stop_when_stepped = true;
		w->stop_version = w->streams || w->async ? message->round : 0;
	} else {
		member_stop(w, step, message->u.stop.ok);
	}
}
