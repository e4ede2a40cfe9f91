/* SPDX-License-Identifier: Apache-2.0
 *
 * outer_step.c - asynchronous periodic sync on a device (Liu et al. 2024, algorithms 1 and 3): the pseudo-gradient, and
 * what an outer update, this worker's or another's, does to the parameters of the stage and to the inner ones.
 *
 * Beside the parameters w and the inner ones v the device keeps b, where v started: w as it was in this worker's last
 * outer update. PSEUDO_GRAD writes (b - v) c, where c counts microbatches, and sets b to v. A STEP takes the outer
 * optimizer's step on the sum over c, whichever worker the sum is from. After an update of this worker's own, v becomes
 * w + (v - b), that is the new parameters and what was done since PSEUDO_GRAD; and b becomes w. So if the worker waits
 * for its update, v is w, as published; what it counts meanwhile is in the next pseudo-gradient, b - v. A worker that
 * has done nothing sets v to w whenever w changes.
 *
 * Where parts are gathered (robust.h), c is what all workers with a part in the update have counted, and the sum is c
 * times the aggregate of their means. Each of these workers then goes on as after an update of its own. An update of
 * fewer parts than plan->group_size, in a stage that has that many workers, is 0 (device_gather.c).
 *
 * Passes add to the first accumulator; the pseudo-gradient is in the second.
 */
#include "models/stage/stage.h"

void skep_stage_settle(struct skep_stage *stage)
{
	const skep_real *w = skep_stage_parameters(stage, stage->version);
	stage->arrays->copy(stage->queue, stage->inner, w, stage->parameters * sizeof *w);
	stage->arrays->copy(stage->queue, stage->base, w, stage->parameters * sizeof *w);
}

static void pseudo(struct skep_stage *stage, const struct skep_op *op)
{
	const struct skep_range t = stage->trained;
	stage->arrays->weigh(stage->queue, t.count, stage->base + t.first, stage->inner + t.first,
		(skep_real)op->microbatches, stage->accumulator[1] + t.first);
	stage->arrays->copy(stage->queue, stage->base + t.first, stage->inner + t.first, t.count * sizeof *stage->base);
}

/* Where the scenario does not say, as many turns as it takes until each of the workers that the stage has at the start has
 * merged: of merges of several parts each as many fewer. */
static struct skep_optimizer outer_of(const struct skep_stage *stage, const struct skep_training *training)
{
	struct skep_optimizer outer = training->outer;
	uint32_t workers = 0, parts = training->plan->async.group_size > 1 ? training->plan->async.group_size : 1;
	for (uint32_t i = 0; i < training->plan->workers && outer.turns == 0; i++)
		workers += training->plan->first_stage_of[i] == stage->index;
	if (outer.turns == 0)
		outer.turns = (workers + parts - 1) / parts;
	return outer;
}

static void step(
	struct skep_stage *stage, const struct skep_training *training, const struct skep_op *op, const skep_real *sum)
{
	skep_real *w = skep_stage_parameters(stage, op->round + 1);
	const struct skep_optimizer outer = outer_of(stage, training);
	const struct skep_range t = stage->trained;
	if (op->microbatches > 0)
		skep_stage_descend(stage, (struct skep_layers){0, stage->layers},
			&(struct skep_descent){.optimizer = &outer,
				.rate = skep_optimizer_rate(&outer, op->round),
				.steps = ++stage->steps,
				.microbatches = op->microbatches,
				.scale = 1,
				.outer = true,
				.sum = sum,
				.w = w,
				.moment = {stage->moment[0], stage->moment[1]}});
	stage->version = op->round + 1;
	if (op->update == SKEP_OUTER_UPDATE_OWN) {
		stage->arrays->shift(stage->queue, t.count, stage->base + t.first, w + t.first, stage->inner + t.first);
		stage->arrays->copy(stage->queue, stage->base + t.first, w + t.first, t.count * sizeof *w);
	} else if (op->update == SKEP_OUTER_UPDATE_FRESH) {
		skep_stage_settle(stage);
	}
}

void skep_stage_merge(
	struct skep_stage *stage, const struct skep_training *training, const struct skep_op *op, const skep_real *sum)
{
	if (op->kind == SKEP_OP_PSEUDO_GRAD)
		pseudo(stage, op);
	else
		step(stage, training, op, sum);
}
