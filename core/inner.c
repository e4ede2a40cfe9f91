/* SPDX-License-Identifier: Apache-2.0
 *
 * inner.c - periodic sync, DiLoCo (Douillard et al. 2023): a worker's steps of its own within a round. No message and nobody to
 * wait for: the worker decides by what it has counted.
 *
 * The device holds inner parameters. Passes read them; INNER makes a step on what the accumulator holds. When the round is sealed
 * the rest makes one more, and PSEUDO writes into the accumulator how far the worker has come from the stage's parameters,
 * times what it has counted in the round. From there on the round ends as any other: the members sum, the tallies say what
 * is in the sum, COMMIT names what all have counted together, so the mean is weighted by what each has counted, and STEP is
 * the outer optimizer's, after which the inner parameters are the stage's again. Who has counted nothing (a newcomer) weighs
 * nothing: its accumulator is empty, and it needs neither operation.
 *
 * When to step. A round has the microbatches of `inner_steps` steps, and microbatches are granted in the order of their numbers,
 * so the number of one that comes says how far the round has got (skep_plan_inner_step()). A worker that is about to go
 * backwards with one of a later step than it has counted for first makes its step. So each makes as many as the round has,
 * or fewer by those of which it was sent nothing, each on what it was sent. With `inner_by_share` it steps whenever it has
 * counted its part of a step, by the members that its stage had when it last heard of them: equal batches, and the faster
 * a worker is the more of them, which with wiring by throughput lets all end a round at the same time.
 *
 * A step may come between the two passes of a microbatch, so its gradient is of newer parameters than its activations: by no
 * more steps than microbatches that the worker holds. That is SWARM with local steps; nothing is stashed.
 *
 * Kept true: PSEUDO runs after the last BACKWARD and INNER of the round, and before its sum begins. If the round is opened
 * once more after that, to run again what was lost, INNER without microbatches clears the accumulator, when nothing of a void
 * attempt reads it any more; the inner parameters are where they were, and PSEUDO writes all of it anew.
 * With delayed updates both come before any pass of the next round, which goes on with the inner parameters as they are.
 */
#include <assert.h>

#include "core/worker.h"

void inner_init(struct worker *w, const struct skep_plan *plan)
{
	for (uint32_t i = 0; w->periodic && i < plan->workers; i++)
		w->inner.members += plan->first_stage_of[i] == w->node.stage;
}

void inner_counted(struct worker *w, const struct skep_plan *plan, uint32_t round, uint32_t microbatch)
{
	if (w->async)
		merge_counted(w, plan, round, microbatch);
	uint32_t nth = skep_plan_inner_step(plan, microbatch);
	if (nth > w->inner.nth && round == worker_round(w))
		w->inner.nth = nth;
	w->inner.counted++;
}

bool inner_unwritten(const struct worker *w)
{
	return !w->async && w->reduction.size > 0 && !w->inner.written && w->counted[w->version & 1] > 0;
}

uint32_t inner_share(const struct worker *w, const struct skep_plan *plan)
{
	uint32_t members = w->inner.members > 0 ? w->inner.members : 1;
	uint32_t share = (skep_plan_inner_batch(plan) + members / 2) / members;
	return share > 0 ? share : 1;
}

/* The next BACKWARD of the open round is of a later step than what is counted, or a part of a step is. */
static bool step_due(struct worker *w, const struct skep_plan *plan)
{
	const struct skep_inflight *table = worker_inflight(w);
	uint16_t head = table->backward[worker_round(w) & 1].head;
	if (w->inner.counted == 0)
		return false;
	if (plan->inner_by_share)
		return w->inner.counted >= inner_share(w, plan);
	return head != SKEP_NO_WORK && skep_plan_inner_step(plan, table->work[head].microbatch) > w->inner.nth;
}

void inner_do(struct worker *w, struct step *step, enum skep_op_kind kind, uint32_t round, uint32_t microbatches)
{
	struct skep_op op = {.kind = (uint8_t)kind, .stage = (uint16_t)w->node.stage, .round = round};
	if (kind == SKEP_OP_PSEUDO && skep_plan_fragments(step->plan) > 1)
		skep_plan_range(step->plan, w->node.stage, round, 0, &op.first, &op.count);
	op.version = w->version;
	op.chunk = w->inner.nth;
	op.microbatches = microbatches;
	worker_compute(w, step, &op);
}

bool inner_run(struct worker *w, struct step *step)
{
	const struct reduction *r = &w->reduction;
	uint32_t round = worker_round(w);
	if (w->async)
		return merge_run(w, step);
	if (worker_sealed(w) && !r->waiting && inner_unwritten(w)) {
		assert(w->reduce_ops == 0 && !r->begun);
		bool rest = w->inner.counted > 0;
		inner_do(w, step, rest ? SKEP_OP_INNER : SKEP_OP_PSEUDO, w->version,
			rest ? w->inner.counted : w->counted[w->version & 1]);
	} else if (worker_recounted(w) && w->inner.written && w->reduce_ops == 0) {
		w->inner.written = false; /* from now on: the sum may be asked for while this runs */
		inner_do(w, step, SKEP_OP_INNER, w->version, 0);
	} else if (worker_works_on(w, round) && step_due(w, step->plan)) {
		inner_do(w, step, SKEP_OP_INNER, round, w->inner.counted);
	}
	return w->compute_op != 0;
}

void inner_done(struct worker *w, struct step *step, const struct skep_op *op)
{
	w->inner.counted = 0;
	w->merge.steps += op->kind == SKEP_OP_INNER;
	if (op->kind != SKEP_OP_PSEUDO)
		return;
	if (w->async) {
		merge_written(w, step);
		return;
	}
	w->inner.written = true;
	if (w->delayed)
		w->inner.nth = 0;
	reduce_begin(w, step);
}

/* With an overlap of so many steps, while this worker has work of the next round to make them on: until it has made them, or the
 * directory asks for the sum of that round, or nobody will. */
bool inner_puts_off(struct worker *w, const struct skep_plan *plan)
{
	if (w->async || w->state != WORKER_SERVING || w->inner.nth >= plan->inner_overlap || w->stop_when_stepped ||
		w->inner.judged > w->version)
		return false;
	return worker_pending(w, w->version + 1)->kind == 0 && worker_inflight(w)->used + w->grants > 0;
}

void inner_stepped(struct worker *w)
{
	w->inner.written = false;
	if (w->async)
		merge_stepped(w);
	if (!w->delayed)
		w->inner.nth = w->inner.counted = 0;
}
