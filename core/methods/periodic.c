/* SPDX-License-Identifier: Apache-2.0
 *
 * periodic.c - periodic sync, DiLoCo (Douillard et al. 2023): a worker's steps of its own within a round. The worker
 * decides by what it has counted, without a message and without waiting for others.
 *
 * The device holds inner parameters. Passes read them; INNER_STEP makes a step on what the accumulator holds. When the round is
 * sealed the rest makes one more, and PSEUDO_GRAD writes into the accumulator how far the worker has come from the stage's
 * parameters, times what it has counted in the round. From there on the round ends as any other: the members sum, the
 * tallies say what is in the sum, COMMIT names what all have counted together, so the mean is weighted by what each has
 * counted, and STEP is the outer optimizer's, after which the inner parameters are the stage's again. Who has counted
 * nothing (a newcomer) weighs nothing: its accumulator is empty, and it needs neither operation.
 *
 * When to step. A round has the microbatches of `inner.steps` steps, and microbatches are granted in the order of their
 * numbers, so the number of one that comes says how far the round has got (skep_plan_inner_step()). A worker that is about
 * to go backwards with one of a later step than it has counted for first makes its step. So each makes as many as the round
 * has, or fewer by those of which it was sent nothing, each on what it was sent. With `inner.by_share` it steps whenever it
 * has counted its part of a step, by the members that its stage had when it last heard of them: equal batches, and the
 * faster a worker is the more of them, which with wiring by throughput lets all end a round at the same time.
 *
 * A step may come between the two passes of a microbatch, so its gradient is of newer parameters than its activations: by no
 * more steps than microbatches that the worker holds. That is SWARM with local steps; nothing is stashed.
 *
 * Kept true: PSEUDO_GRAD runs after the last BACKWARD and INNER_STEP of the round, and before its sum begins. If the round
 * is opened once more after that, to run again what was lost, INNER_STEP without microbatches clears the accumulator, when
 * nothing of a void attempt reads it any more; the inner parameters are where they were, and PSEUDO_GRAD writes all of it anew.
 * With delayed updates both come before any pass of the next round, which goes on with the inner parameters as they are.
 *
 * In fixed pipelines a step is a flush, or several (plan->accumulate): each worker makes it when it has counted as many
 * microbatches as its pipeline has in one, and no pass of the next step has come by then. What a lost pipeline leaves to
 * others is one more step of theirs, before the sum. With `eager` nothing is sealed when a worker has counted its share: it
 * makes the last step, writes the pseudo-gradient and begins to sum. With buckets (eager.c) both follow each part of the
 * last BACKWARD on its own elements, in the same operation, as an optimizer that is fused into the backward pass: so a sum
 * of DiLoCo begins as early as one of gradients, and with one inner step takes as long. Should more than the share come,
 * the pseudo-gradient is cleared, as above.
 *
 * Stages may sum in one of so many rounds alone (plan->inner.sum_every). In the others a worker makes the same steps and no
 * pseudo-gradient, so the next one has what was learnt in all rounds since the last sum; its weight is what is counted in the
 * round of the sum, as with fragments.
 *
 * Overlap of N steps (Streaming DiLoCo, Douillard et al. 2025): STEP waits until the worker has made N inner steps of the next
 * round. With a deadline it is made then and not later: a worker that has nothing left but passes of later steps makes none until
 * STEP is done, for which it needs no pass of any worker. It first waits for gradients of earlier steps that are under way, and
 * makes the inner step that they are counted for. What makes this end: in the last stage no gradient is under way, so there STEP
 * is not put off for longer, and passes go on when it is done; then gradients come back to the stage before, and so on. A
 * round that is complete ends it too; and a worker that is to keep its state, with which the run may end, makes STEP when it
 * has nothing else to do.
 */
#include <assert.h>

#include "core/methods/method.h"
#include "core/sums.h"
#include "core/worker/worker.h"

void skep_periodic_init(struct worker *w, const struct skep_plan *plan)
{
	assert(w->state == WORKER_SERVING);
	for (uint32_t i = 0; i < plan->workers; i++)
		w->inner.members += plan->first_stage_of[i] == w->node.stage;
}

/* Microbatches of a step of a fixed pipeline, in each of its workers. */
static uint32_t fixed_batch(const struct worker *w, const struct skep_plan *plan)
{
	return w->share / plan->inner.steps;
}

/* The step of what it has just counted: what takes the place of others belongs to the last one. */
static uint32_t fixed_nth(const struct worker *w, const struct skep_plan *plan, uint32_t round)
{
	uint32_t nth = (w->counted[round & 1] - 1) / fixed_batch(w, plan);
	return nth < plan->inner.steps ? nth : plan->inner.steps - 1;
}

void skep_periodic_counted(struct worker *w, const struct skep_plan *plan, uint32_t round, uint32_t microbatch)
{
	assert(w->state == WORKER_SERVING);
	uint32_t nth =
		skep_plan_fixed(plan) ? fixed_nth(w, plan, round) : skep_plan_inner_step(plan, round, microbatch);
	if (nth > w->inner.nth && round == worker_round(w))
		w->inner.nth = nth;
	w->inner.counted++;
	if (w->parts > 0) { /* each has made the step on its elements, and has written their pseudo-gradient */
		w->inner.counted = 0;
		w->inner.written = true;
	}
}

static void part(const struct worker *w, struct skep_op *op)
{
	assert(w->parts > 0);
	op->inner = w->inner.counted + 1; /* with the one that it is of */
	op->microbatches = w->counted[w->version & 1] + 1;
}

/* Where the stage does not sum, the last step is all that there is to wait for. */
static bool unwritten(const struct worker *w, const struct skep_plan *plan)
{
	bool in_parts = w->parts > 0; /* those that are done are written */
	if (!skep_plan_sums(plan, w->node.stage, w->version))
		return w->reduction.size > 0 && w->inner.counted > 0;
	return w->reduction.size > 0 && !w->inner.written && !in_parts && w->counted[w->version & 1] > 0;
}

uint32_t skep_periodic_share(const struct worker *w, const struct skep_plan *plan)
{
	assert(w->state == WORKER_SERVING);
	uint32_t members = w->inner.members > 0 ? w->inner.members : 1;
	uint32_t share = (skep_plan_inner_batch(plan) + members / 2) / members;
	return share > 0 ? share : 1;
}

/* ---- the deadline ------------------------------------------------------------------------------------------------- */

/* Has the worker nothing to do next but what is of a step that comes after STEP? */
static bool later_steps_next(struct worker *w, const struct skep_plan *plan)
{
	assert(w->state == WORKER_SERVING);
	const struct skep_inflight *table = worker_inflight(w);
	uint32_t round = worker_round(w), next;
	uint16_t backward = table->backward[round & 1].head, forward = table->forward[round & 1].head;
	if (backward != SKEP_NO_WORK)
		next = table->work[backward].microbatch;
	else if (forward != SKEP_NO_WORK)
		next = table->work[forward].microbatch;
	else if (w->grants > 0 && worker_grants(w)->round == round)
		next = worker_grants(w)->first;
	else
		return false;
	return skep_plan_inner_step(plan, round, next) >= plan->inner.overlap;
}

/* Is a gradient of a step before STEP under way? Not of what waits for a worker that may never come. */
static bool earlier_steps_away(struct worker *w, const struct skep_plan *plan)
{
	assert(w->state == WORKER_SERVING);
	const struct skep_inflight *table = worker_inflight(w);
	uint32_t left = table->used, round = worker_round(w);
	for (uint32_t i = 0; left > 0; i++) {
		const struct skep_work *work = &table->work[i];
		left -= work->state != SKEP_WORK_FREE;
		bool away = work->state >= SKEP_WORK_RUNNING_FORWARD && work->state != SKEP_WORK_WAIT_PEER;
		if (away && work->round == round &&
			skep_plan_inner_step(plan, round, work->microbatch) < plan->inner.overlap)
			return true;
	}
	return false;
}

/* The next round is over before STEP: its passes are of no use any more. */
static bool next_round_over(struct worker *w)
{
	assert(w->state == WORKER_SERVING);
	return w->reduction.committed && worker_pending(w, w->version + 1)->kind != 0;
}

/* The inner steps that come before STEP are made but for the last one, which is due. */
static bool at_deadline(struct worker *w, const struct skep_plan *plan)
{
	assert(w->state == WORKER_SERVING);
	if (!plan->inner.deadline || !w->work.stepping)
		return false;
	return next_round_over(w) || (later_steps_next(w, plan) && !earlier_steps_away(w, plan));
}

static bool waits(struct worker *w, const struct skep_plan *plan)
{
	return plan->inner.deadline && w->work.stepping && (next_round_over(w) || later_steps_next(w, plan));
}

/* ---- a step ------------------------------------------------------------------------------------------------------- */

/* The next BACKWARD of the open round is of a later step than what is counted, or a part of a step is. */
static bool step_due(struct worker *w, const struct skep_plan *plan)
{
	assert(w->state == WORKER_SERVING);
	const struct skep_inflight *table = worker_inflight(w);
	uint32_t round = worker_round(w);
	uint16_t head = table->backward[round & 1].head;
	if (w->inner.counted == 0)
		return false;
	if (skep_plan_fixed(plan))
		return w->inner.counted >= fixed_batch(w, plan);
	if (plan->inner.by_share)
		return w->inner.counted >= skep_periodic_share(w, plan);
	if (waits(w, plan))
		return w->inner.nth < plan->inner.overlap && at_deadline(w, plan);
	return head != SKEP_NO_WORK && skep_plan_inner_step(plan, round, table->work[head].microbatch) > w->inner.nth;
}

void skep_periodic_do(
	struct worker *w, struct step *step, enum skep_op_kind kind, uint32_t round, uint32_t microbatches)
{
	assert(kind != SKEP_OP_PSEUDO_GRAD || microbatches > 0);
	assert(w->state == WORKER_SERVING);
	struct skep_op op = {.kind = (uint8_t)kind, .stage = (uint16_t)w->node.stage, .round = round};
	if (kind == SKEP_OP_PSEUDO_GRAD && skep_plan_fragments(step->plan) > 1)
		skep_plan_range(step->plan, w->node.stage, round, 0, &op.first, &op.count);
	op.version = w->version;
	op.nth = w->inner.nth;
	op.microbatches = microbatches;
	skep_worker_compute(w, step, &op);
}

static bool run(struct worker *w, struct step *step)
{
	assert(w->state == WORKER_SERVING);
	const struct reduction *r = &w->reduction;
	uint32_t round = worker_round(w);
	bool sums = r->attempt > 0 && (worker_sealed(w) || r->eager) && step->how.worker->may_begin(w);
	if (sums && !r->waiting && unwritten(w, step->plan)) {
		assert((w->reduce_ops == 0 || r->eager) && !r->begun);
		bool rest = w->inner.counted > 0;
		skep_periodic_do(w, step, rest ? SKEP_OP_INNER_STEP : SKEP_OP_PSEUDO_GRAD, w->version,
			rest ? w->inner.counted : w->counted[w->version & 1]);
	} else if ((worker_recounted(w) || r->given_up) && w->inner.written && w->reduce_ops == 0) {
		w->inner.written = false; /* from now on: the sum may be asked for while this runs */
		skep_periodic_do(w, step, SKEP_OP_INNER_STEP, w->version, 0);
	} else if (worker_works_on(w, round) && step_due(w, step->plan)) {
		skep_periodic_do(w, step, SKEP_OP_INNER_STEP, round, w->inner.counted);
		if (!step->plan->inner.by_share && at_deadline(w, step->plan) &&
			w->inner.nth < step->plan->inner.overlap)
			w->inner.nth = step->plan->inner.overlap; /* for which what comes late will count */
	}
	return w->compute_op != 0;
}

static void done(struct worker *w, struct step *step, const struct skep_op *op)
{
	assert(w->state == WORKER_SERVING);
	bool sums = skep_plan_sums(step->plan, w->node.stage, w->version);
	w->inner.counted = 0;
	if (op->kind != SKEP_OP_PSEUDO_GRAD && sums)
		return;
	w->inner.written = sums;
	if (w->work.stepping) /* it counts for the next round already */
		w->inner.nth = 0;
	skep_reduce_begin(w, step);
}

/* With an overlap of so many steps: until this worker has made them, or the directory asks for the sum of the next round, or
 * it is certain that it will not; and without a deadline only while it has work of that round to make them on. */
static bool puts_off(struct worker *w, const struct skep_plan *plan)
{
	assert(w->reduction.attempt > 0);
	assert(w->reduction.committed);
	bool idle = worker_inflight(w)->used + w->grants == 0;
	bool wanted =
		w->stop_when_stepped || w->orphan != ORPHAN_NO || w->inner.judged > w->version || w->keep > w->version;
	if (w->state != WORKER_SERVING || wanted || (idle && w->reduction.checkpoint))
		return false;
	if (plan->inner.deadline)
		return w->version + 1 < plan->rounds && (!at_deadline(w, plan) || step_due(w, plan));
	if (w->inner.nth >= plan->inner.overlap)
		return false;
	return worker_pending(w, w->version + 1)->kind == 0 && !idle;
}

static void stepped(struct worker *w)
{
	assert(w->reduction.attempt > 0);
	w->inner.written = false;
	if (!w->work.stepping)
		w->inner.nth = w->inner.counted = 0;
}

/* ---- no steps of its own ------------------------------------------------------------------------------------------ */

static void none_init(struct worker *w, const struct skep_plan *plan)
{
	(void)w, (void)plan;
}

static void none_serves(struct worker *w)
{
	(void)w;
}

static void none_first_work(struct worker *w, uint32_t round)
{
	(void)w, (void)round;
	assert(false); /* a newcomer knows which round is open */
}

static void none_counted(struct worker *w, const struct skep_plan *plan, uint32_t round, uint32_t microbatch)
{
	(void)w, (void)plan, (void)round, (void)microbatch;
}

void skep_local_part(const struct worker *w, struct skep_op *op)
{
	(void)w, (void)op;
}

static bool none_run(struct worker *w, struct step *step)
{
	assert(w->state == WORKER_SERVING);
	(void)w, (void)step;
	return false;
}

static void none_idle(struct worker *w, struct step *step)
{
	(void)w, (void)step;
}

static bool none_waits(struct worker *w, const struct skep_plan *plan)
{
	assert(w->state == WORKER_SERVING);
	(void)w, (void)plan;
	return false;
}

static void none_done(struct worker *w, struct step *step, const struct skep_op *op)
{
	(void)w, (void)step, (void)op;
	assert(false);
}

static bool none_unwritten(const struct worker *w, const struct skep_plan *plan)
{
	assert(w->reduction.attempt > 0);
	(void)w, (void)plan;
	return false;
}

static bool none_puts_off(struct worker *w, const struct skep_plan *plan)
{
	assert(w->reduction.attempt > 0);
	(void)w, (void)plan;
	return false;
}

static void none_step(const struct worker *w, struct skep_op *op)
{
	(void)w, (void)op;
}

static void none_stepped(struct worker *w)
{
	(void)w;
}

static void none_on_close_round(struct worker *w, struct step *step, const struct skep_message *message)
{
	(void)w, (void)step, (void)message;
}

/* ---- the tables -------------------------------------------------------------------------------------------------- */

const struct skep_local_steps skep_local_periodic = {
	.init = skep_periodic_init,
	.serves = none_serves,
	.first_work = none_first_work,
	.counted = skep_periodic_counted,
	.part = part,
	.run = run,
	.idle = none_idle,
	.waits = waits,
	.done = done,
	.unwritten = unwritten,
	.puts_off = puts_off,
	.step = none_step,
	.stepped = stepped,
	.on_close_round = none_on_close_round,
};

const struct skep_local_steps skep_local_none = {
	.init = none_init,
	.serves = none_serves,
	.first_work = none_first_work,
	.counted = none_counted,
	.part = skep_local_part,
	.run = none_run,
	.idle = none_idle,
	.waits = none_waits,
	.done = none_done,
	.unwritten = none_unwritten,
	.puts_off = none_puts_off,
	.step = none_step,
	.stepped = none_stepped,
	.on_close_round = none_on_close_round,
};
