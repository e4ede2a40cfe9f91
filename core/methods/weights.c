/* SPDX-License-Identifier: Apache-2.0
 *
 * weights.c - which parameters the passes of a microbatch read without a flush, by no_flush.weights: a table with a rule for
 * each of the two passes. Round r, version v at hand, FORWARD on version f:
 *
 *                    FORWARD                     BACKWARD
 *   stashed          v                           f                         PipeDream, weight stashing (Narayanan et al.
 *                                                                          2019, section 3.3)
 *   newest           v                           v                         what that section calls invalid
 *   vertical-sync    v of the first stage        f                         PipeDream, vertical sync
 *   predicted        v, moved to r               v, moved to r             SpecTrain (Chen et al. 2018) in the order of
 *                                                                          1F1B: PipeOptim (Guan et al. 2023)
 *   corrected        v                           v, moved back to f        PipeMare, technique 2 (Yang et al. 2021)
 *   waves            v, moved by what is counted the same                  HetPipe (Park et al. 2020): wsp.c
 *                    here alone
 *
 * Vertical sync needs no word from the first stage: full, that begins round r with what the round so many steps before has left,
 * skep_plan_oldest(), and each stage takes that one whether it is full or not. A worker that began later than that with its
 * stage has nothing older than what it began with.
 */
#include <assert.h>

#include "core/methods/method.h"
#include "core/schedule/pipelines.h"
#include "core/worker/worker.h"

/* ---- how old ----------------------------------------------------------------------------------------------------- */

uint32_t skep_plan_staleness(const struct skep_plan *plan, uint32_t stage)
{
	if (!skep_plan_no_flush(plan))
		return plan->delayed;
	return skep_plan_ahead(plan, plan->no_flush.weights == SKEP_WEIGHTS_VERTICAL_SYNC ? 0 : stage);
}

uint32_t skep_plan_ahead(const struct skep_plan *plan, uint32_t stage)
{
	assert(skep_plan_no_flush(plan));
	if (skep_plan_waves(plan))
		return plan->no_flush.distance + 1;
	return plan->stages - 1 - stage + (skep_plan_pipelines(plan) > 1);
}

uint32_t skep_plan_wave(const struct skep_plan *plan)
{
	assert(skep_plan_no_flush(plan));
	uint32_t pipelines = skep_plan_pipelines(plan);
	assert(pipelines > 0 && plan->microbatches % pipelines == 0);
	return plan->microbatches / pipelines;
}

uint32_t skep_plan_oldest(const struct skep_plan *plan, uint32_t round, uint32_t staleness)
{
	assert(skep_plan_no_flush(plan));
	if (round < plan->no_flush.synchronous)
		return round;
	uint32_t least = plan->no_flush.synchronous > 0 ? plan->no_flush.synchronous - 1 : 0,
		 oldest = round - staleness;
	return round < staleness || oldest < least ? least : oldest;
}

bool skep_plan_moves_weights(const struct skep_plan *plan)
{
	return plan->no_flush.weights == SKEP_WEIGHTS_PREDICTED || plan->no_flush.weights == SKEP_WEIGHTS_CORRECTED ||
	       skep_plan_waves(plan);
}

/* ---- which ------------------------------------------------------------------------------------------------------- */

typedef void rule(
	const struct worker *w, const struct skep_plan *plan, const struct skep_work *work, struct skep_op *op);

static void newest(
	const struct worker *w, const struct skep_plan *plan, const struct skep_work *work, struct skep_op *op)
{
	(void)plan, (void)work;
	op->version = w->version;
}

static void same(const struct worker *w, const struct skep_plan *plan, const struct skep_work *work, struct skep_op *op)
{
	(void)w, (void)plan;
	op->version = work->version;
}

static void first_stages(
	const struct worker *w, const struct skep_plan *plan, const struct skep_work *work, struct skep_op *op)
{
	uint32_t version = skep_plan_oldest(plan, work->round, w->staleness);
	op->version = version > w->oldest ? version : w->oldest;
	assert(op->version <= w->version);
}

static void predicted(
	const struct worker *w, const struct skep_plan *plan, const struct skep_work *work, struct skep_op *op)
{
	(void)plan;
	op->version = w->version;
	op->moved = work->round - w->version;
}

static void corrected(
	const struct worker *w, const struct skep_plan *plan, const struct skep_work *work, struct skep_op *op)
{
	(void)plan;
	op->version = w->version;
	op->moved = w->version - work->version;
}

static const struct {
	rule *forward, *backward;
} RULES[] = {
	[SKEP_WEIGHTS_STASHED] = {newest, same},
	[SKEP_WEIGHTS_NEWEST] = {newest, newest},
	[SKEP_WEIGHTS_VERTICAL_SYNC] = {first_stages, same},
	[SKEP_WEIGHTS_PREDICTED] = {predicted, predicted},
	[SKEP_WEIGHTS_CORRECTED] = {newest, corrected},
	[SKEP_WEIGHTS_WAVES] = {skep_wsp_forward, skep_wsp_backward},
};

void skep_weights_reads(
	const struct worker *w, const struct skep_plan *plan, struct skep_work *work, struct skep_op *op)
{
	assert(w->state == WORKER_SERVING);
	assert(work->round >= w->version);
	if (op->kind == SKEP_OP_FORWARD) {
		RULES[plan->no_flush.weights].forward(w, plan, work, op);
		work->version = op->version;
		if (w->wave > 0)
			skep_wsp_began(w, work);
	} else {
		RULES[plan->no_flush.weights].backward(w, plan, work, op);
	}
}
