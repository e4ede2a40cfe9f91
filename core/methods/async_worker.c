/* SPDX-License-Identifier: Apache-2.0
 *
 * async_worker.c - asynchronous periodic sync (Liu et al. 2024), a worker's part: when its pseudo-gradient becomes an
 * outer update, what it tells of it, and what an outer update of another worker means to it. async.c is the directory's
 * part.
 *
 * A worker makes INNER_STEP steps by share (periodic.c). When it has made as many as the plan says, or with
 * `inner.by_share` when a round's microbatches have gone by since its last merge, PSEUDO_GRAD writes how far it has
 * come into a place of its own, and OUTER_UPDATE tells the directory which microbatches are in it. From there on the
 * worker counts anew and goes on with its passes; it waits for no other worker. When it is the turn of its update, a
 * reduction of the stage brings it to all members (REDUCE, with this worker as rank 0, or where parts are gathered as
 * one of those that bring some), and COMMIT makes all of them do the same outer step. The worker whose update it is
 * goes on from the new parameters by what it has done since PSEUDO_GRAD; others go on undisturbed, but for those that
 * have done nothing since their last update, which take the new parameters for theirs.
 *
 * With `plan->async.waits` it makes no pass from PSEUDO_GRAD until the STEP of that merge, as published: so it begins
 * each time where the stage is. Everything else goes on, above all what an outer update may wait for: its transfers, other
 * updates, states for newcomers. So it waits for a time only that does not hang on its passes.
 *
 * `version` counts the outer updates of the stage; the round whose work it does is `update.open`. CLOSE_ROUND says that
 * a round is complete, so what is left of it here is of no use: the worker drops it and works on the next one. It owes
 * the directory word when all that it has counted of that round is told: OUTER_UPDATE names the round before which
 * nothing is left. Should that take too long CLOSE_ROUND comes again, with `now`, and the next update begins at once,
 * with fewer steps. Where parts are gathered it comes to all, and a worker that has counted anything, of whichever
 * round, tells it at once, so that what is left of the round is not an update of its own.
 *
 * Kept true: what is counted is in exactly one tally that is told, or in none if the worker is lost before that. There
 * is one PSEUDO_GRAD at a time. After it has said that it has closed a round, a worker counts nothing of that round.
 */
#include <assert.h>

#include "core/methods/flush.h"
#include "core/methods/method.h"
#include "core/worker/worker.h"

/* The round whose work it does is the open one; versions count outer updates. */
static void derive(struct worker *w)
{
	assert(w->early <= w->early_capacity);
	uint32_t round = w->update.open;
	w->work = (struct worker_work){.round = round, .first = round, .count = 1, .early = 1};
}

static uint32_t counted(const struct worker *w)
{
	return w->counted[0] + w->counted[1];
}

/* The first ones are spread over a round, or all would come at once, again and again. */
static uint64_t first_due(const struct worker *w, const struct skep_plan *plan)
{
	assert(w->state == WORKER_SERVING);
	uint32_t members = w->inner.members > 0 ? w->inner.members : 1;
	uint64_t turn = 1 + w->node.self.index % members;
	return w->update.position + turn * plan->microbatches / members;
}

static void note_counted(struct worker *w, const struct skep_plan *plan, uint32_t round, uint32_t microbatch)
{
	assert(w->state == WORKER_SERVING);
	uint32_t within = microbatch < plan->microbatches ? microbatch : plan->microbatches - 1;
	uint64_t position = (uint64_t)round * plan->microbatches + within;
	w->update.position = position > w->update.position ? position : w->update.position;
	if (w->update.due == 0)
		w->update.due = first_due(w, plan);
	skep_periodic_counted(w, plan, round, microbatch);
}

/* Something of a round that is over, which the directory waits for. */
static bool pressed(const struct worker *w)
{
	assert(w->state == WORKER_SERVING);
	const struct outer_update *m = &w->update;
	return m->forced >= m->open && m->open > 0 && w->counted[(m->open - 1) & 1] > 0;
}

static bool due(const struct worker *w, const struct skep_plan *plan)
{
	assert(w->state == WORKER_SERVING);
	const struct outer_update *m = &w->update;
	if (m->told || counted(w) == 0)
		return false;
	return m->called || pressed(w) ||
	       (plan->inner.by_share ? m->position >= m->due : m->steps >= plan->inner.steps);
}

static bool run(struct worker *w, struct step *step)
{
	assert(w->state == WORKER_SERVING);
	bool now = due(w, step->plan);
	if (w->inner.counted > 0 && (now || w->inner.counted >= skep_periodic_share(w, step->plan)))
		skep_periodic_do(w, step, SKEP_OP_INNER_STEP, w->update.open, w->inner.counted);
	else if (now)
		skep_periodic_do(w, step, SKEP_OP_PSEUDO_GRAD, w->update.open, counted(w));
	return w->compute_op != 0;
}

static struct skep_message message_of(struct worker *w, const struct skep_plan *plan, uint32_t round)
{
	assert(w->state == WORKER_SERVING);
	struct skep_message message = skep_message_to(&w->node, SKEP_MESSAGE_OUTER_UPDATE, skep_directory_peer(plan));
	message.round = round;
	message.update = w->update.number;
	message.open_round = w->update.open;
	return message;
}

/* What it has counted of one round, in parts of a few numbers each. */
static void tell(struct worker *w, struct step *step, uint32_t round)
{
	assert(w->state == WORKER_SERVING);
	struct skep_message message = message_of(w, step->plan, round);
	struct skep_tally *tally = worker_tally(w, round);
	message.u.tally.count = w->update.counted;
	message.u.tally.loss_nano = w->loss_nano[round & 1];
	assert(tally->count == w->counted[round & 1]);
	skep_tally_sort(tally);
	for (uint32_t told = 0; told < tally->count; told += message.u.tally.used) {
		message.u.tally.base = tally->number[told];
		message.u.tally.used = (uint16_t)skep_tally_part(tally, told, SKEP_TALLY_PART, message.u.tally.offset);
		skep_worker_send(w, step, &message);
	}
	tally->count = w->counted[round & 1] = 0;
	w->loss_nano[round & 1] = 0;
}

static void written(struct worker *w, struct step *step)
{
	assert(w->state == WORKER_SERVING);
	struct outer_update *m = &w->update;
	m->counted = counted(w);
	m->told = true;
	m->called = false;
	m->number++;
	m->steps = 0;
	m->due = m->position + step->plan->microbatches;
	m->resolved = m->open; /* the device was busy with PSEUDO_GRAD: no BACKWARD of an earlier round runs */
	if (m->open > 0)
		tell(w, step, m->open - 1);
	tell(w, step, m->open);
}

static void idle(struct worker *w, struct step *step)
{
	assert(w->state == WORKER_SERVING);
	struct outer_update *m = &w->update;
	if (m->resolved >= m->open || w->counted[(m->open - 1) & 1] > 0 || (m->called && counted(w) > 0))
		return;
	m->resolved = m->open;
	m->called = false;
	struct skep_message message = message_of(w, step->plan, m->open - 1);
	skep_worker_send(w, step, &message);
}

static void first_work(struct worker *w, uint32_t round)
{
	assert(w->state == WORKER_SERVING);
	assert(w->fresh);
	w->fresh = false;
	w->update.open = w->update.resolved = round;
	derive(w);
}

/* Again, if it has been answered: the directory asks those who serve anew, and may have asked before it heard. */
static void on_close_round(struct worker *w, struct step *step, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_CLOSE_ROUND);
	assert(message->from.index == step->plan->workers);
	struct outer_update *m = &w->update;
	uint32_t round = message->round;
	if (w->state != WORKER_SERVING)
		return;
	if (w->fresh)
		first_work(w, round);
	if (round >= m->open) {
		assert(round == m->open); /* the next one is complete only when all have told of this one */
		skep_pipeline_seal_round(w, step, round);
		w->inner.nth = 0;
		m->open = round + 1;
		derive(w);
	}
	if (message->u.close_round.now && m->forced <= round)
		m->forced = round + 1;
	if (message->u.close_round.now && round + 1 == m->open)
		m->called = step->plan->reduction.gather;
	m->resolved = m->resolved < round ? m->resolved : round;
}

static enum skep_outer_update skep_async_update_of_step(const struct worker *w)
{
	assert(w->reduction.attempt > 0);
	if (w->reduction.own)
		return SKEP_OUTER_UPDATE_OWN;
	return w->update.told || counted(w) > 0 ? SKEP_OUTER_UPDATE_OTHER : SKEP_OUTER_UPDATE_FRESH;
}

static bool waits(struct worker *w, const struct skep_plan *plan)
{
	return plan->async.waits && w->update.told;
}

/* The version is still that before the step. */
static void stepped(struct worker *w)
{
	assert(w->reduction.attempt > 0);
	assert(w->reduction.committed);
	bool own = w->reduction.own;
	if (own)
		w->update.told = false;
	if (own || !(w->update.told || counted(w) > 0))
		w->update.base = w->version + 1;
}

static void done(struct worker *w, struct step *step, const struct skep_op *op)
{
	assert(w->state == WORKER_SERVING);
	w->inner.counted = 0;
	w->update.steps += op->kind == SKEP_OP_INNER_STEP;
	if (op->kind == SKEP_OP_PSEUDO_GRAD)
		written(w, step);
}

static void serves(struct worker *w)
{
	assert(w->state == WORKER_SERVING);
	w->fresh = true;
	w->update.base = w->version;
}

/* A pseudo-gradient has a place of its own, which is written before the directory hears of it. */
static bool unwritten(const struct worker *w, const struct skep_plan *plan)
{
	assert(w->reduction.attempt > 0);
	(void)w, (void)plan;
	return false;
}

static bool puts_off(struct worker *w, const struct skep_plan *plan)
{
	assert(w->reduction.attempt > 0);
	(void)w, (void)plan;
	return false;
}

static void step_told(const struct worker *w, struct skep_op *op)
{
	op->update = (uint8_t)skep_async_update_of_step(w);
}

const struct skep_local_steps skep_local_async = {
	.init = skep_periodic_init,
	.serves = serves,
	.first_work = first_work,
	.counted = note_counted,
	.part = skep_local_part,
	.run = run,
	.idle = idle,
	.waits = waits,
	.done = done,
	.unwritten = unwritten,
	.puts_off = puts_off,
	.step = step_told,
	.stepped = stepped,
	.on_close_round = on_close_round,
};

/* ---- a reduction, which is one merge -------------------------------------------------------------------------------------- */

static void reads(const struct worker *w, const struct skep_plan *plan, struct skep_work *work, struct skep_op *op)
{
	assert(w->state == WORKER_SERVING);
	(void)plan, (void)work;
	op->version = w->version;
}

static uint64_t staleness(const struct worker *w, const struct skep_plan *plan, const struct skep_work *work)
{
	assert(work->state == SKEP_WORK_RUNNING_BACKWARD);
	(void)plan, (void)work;
	return w->version - w->update.base;
}

static void backward_ended(struct worker *w, struct step *step, bool open_round)
{
	(void)w, (void)step, (void)open_round;
}

static void take(struct worker *w, struct step *step, const struct skep_message *reduce)
{
	(void)w, (void)step, (void)reduce; /* nothing is sealed */
}

static void taken(struct worker *w, const struct skep_message *reduce)
{
	assert(reduce->kind == SKEP_MESSAGE_REDUCE);
	struct reduction *r = &w->reduction;
	r->share = reduce->u.reduce.merged;
	r->own = w->gathers ? r->share > 0 : r->rank == 0;
}

static uint32_t brought(const struct worker *w)
{
	return w->reduction.share;
}

/* The directory knows what is in it; this says that it is here. */
static void tell_here(struct worker *w, struct step *step)
{
	assert(w->reduction.attempt > 0);
	assert(w->state == WORKER_SERVING);
	struct skep_message message = skep_message_to(&w->node, SKEP_MESSAGE_TALLY, skep_directory_peer(step->plan));
	message.round = w->version;
	message.attempt = w->reduction.attempt;
	skep_worker_send(w, step, &message);
}

/* No COMMIT says that the state is to be kept; what is still to be kept stays so. */
static void merged(struct worker *w)
{
	assert(w->reduction.attempt > 0);
	(void)w;
}

static uint32_t kept_as(const struct worker *w)
{
	return w->keep;
}

/* Keeps the state under the number of a round, when so many outer updates are made. What was to be kept before is of an
 * earlier number. */
static void on_checkpoint(struct worker *w, const struct skep_message *keep)
{
	assert(keep->kind == SKEP_MESSAGE_CHECKPOINT);
	if (w->state != WORKER_SERVING || keep->round <= w->keep)
		return;
	skep_member_keep(w, keep->update, keep->round);
	w->checkpoint = w->keep_version <= w->version;
}

const struct skep_worker_method skep_async_worker = {
	SKEP_FLUSH_PASSES,
	.lay_out = skep_delayed_worker_lay_out,
	.fragments = 1,
	.derive = derive,
	.reads = reads,
	.staleness = staleness,
	.backward_ended = backward_ended,
	.take = take,
	.taken = taken,
	.may_begin = skep_flush_may_begin,
	.brought = brought,
	.tell = tell_here,
	.committed = skep_flush_step_committed,
	.may_step = skep_flush_may_step,
	.stepped = merged,
	.kept_as = kept_as,
	.on_checkpoint = on_checkpoint,
};
