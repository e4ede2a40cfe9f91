/* SPDX-License-Identifier: Apache-2.0
 *
 * inner.c - periodic sync on a device: the step of the inner optimizer, the pseudo-gradient, and how inner parameters follow
 * those of the stage (DiLoCo, Douillard et al. 2023, algorithm 1).
 *
 * With outer parameters w, inner ones v_i of worker i, which has counted c_i microbatches of a round's C, the members sum
 * c_i (w - v_i), and STEP is the outer optimizer's on the sum divided by C. So one inner step of plain descent from w at rate r,
 * with a sum of gradients G_i, v_i = w - r G_i / c_i, and an outer step of rate 1 make w - r (G_1 + G_2 + ..) / C: what a
 * synchronous step makes. With delayed updates the worker has gone on when STEP comes, and v becomes mixing v + (1 - mixing) w,
 * alpha of Streaming DiLoCo (Douillard et al. 2025, algorithm 2) for the whole vector.
 */
#include "core/sums.h"
#include "models/corpus/data.h"
#include "models/update/squares.h"

/* The worker knows no other stage's gradients, so it clips by the norm of its own. */
static double scale_of(const struct skep_stage *stage, const struct skep_training *training, uint32_t microbatches,
	const skep_real *sum)
{
	const struct skep_optimizer *optimizer = &training->optimizer;
	if (optimizer->clip_norm <= 0)
		return 1;
	double squares = skep_squares_of_group(training, skep_squares_own(stage, stage->trained, sum));
	return skep_squares_scale(
		(double)optimizer->clip_norm, skep_squares_encode(squares / ((double)microbatches * microbatches)));
}

/* What follows a part of BACKWARD is the last step of its round. */
static uint32_t nth_of(const struct skep_training *training, const struct skep_op *op)
{
	return op->kind == SKEP_OP_BACKWARD ? skep_plan_steps(training->plan, op->round) - 1 : op->nth;
}

/* Rates go by the steps of the run; when one comes more often than the plan has steps, the last ones share a rate. But warm-up is
 * for moments of which little is known, and those are the worker's own: a newcomer's warm-up begins with its first round. */
static float rate_of(const struct skep_stage *stage, const struct skep_training *training, const struct skep_op *op)
{
	const struct skep_optimizer *optimizer = &training->optimizer;
	uint32_t warmup = optimizer->rates.warmup, nth = nth_of(training, op);
	uint32_t step = (uint32_t)skep_plan_steps_before(training->plan, op->round) + nth;
	float rate = skep_optimizer_rate(optimizer, step);
	uint32_t own = step - stage->inner_began;
	if (own == step || own >= warmup)
		return rate;
	return rate * (float)(own + 1) / (float)(step < warmup ? step + 1 : warmup);
}

static void clear(const struct skep_stage *stage, skep_real *sum)
{
	stage->arrays->clear(stage->queue, sum + stage->trained.first, stage->trained.count * sizeof *sum);
}

static void step(struct skep_stage *stage, const struct skep_training *training, const struct skep_op *op)
{
	const struct skep_optimizer *optimizer = &training->optimizer;
	skep_real *sum = skep_stage_sum(stage, op->round);
	if (op->microbatches > 0 && stage->inner_steps == 0)
		stage->inner_began = (uint32_t)skep_plan_steps_before(training->plan, op->round);
	if (op->microbatches > 0)
		skep_stage_descend(stage, (struct skep_layers){0, stage->layers},
			&(struct skep_descent){.optimizer = optimizer,
				.rate = rate_of(stage, training, op),
				.steps = stage->inner_steps + 1,
				.microbatches = op->microbatches,
				.scale = scale_of(stage, training, op->microbatches, sum),
				.sum = sum,
				.w = stage->inner,
				.moment = {stage->inner_moment[0], stage->inner_moment[1]}});
	stage->inner_steps += op->microbatches > 0;
	clear(stage, sum);
}

/* All that is trained, unless the operation names a part of it. */
static struct skep_range range_of(const struct skep_stage *stage, const struct skep_op *op)
{
	return op->count > 0 ? (struct skep_range){op->first, op->count} : stage->trained;
}

static void pseudo(struct skep_stage *stage, const struct skep_op *op)
{
	const skep_real *w = skep_stage_parameters(stage, stage->version), *v = stage->inner;
	const struct skep_range r = range_of(stage, op);
	skep_real *sum = stage->accumulator[op->round & 1];
	clear(stage, sum);
	stage->arrays->weigh(
		stage->queue, r.count, w + r.first, v + r.first, (skep_real)op->microbatches, sum + r.first);
}

void skep_stage_follow(struct skep_stage *stage, skep_real mixing, size_t first, size_t count)
{
	const skep_real *w = skep_stage_parameters(stage, stage->version) + first;
	skep_real *v = stage->inner + first;
	if (mixing > 0)
		stage->arrays->mix(stage->queue, count, mixing, w, v);
	else /* whatever is there: a newcomer has numbers that mean nothing, and 0 times these may be one of them */
		stage->arrays->copy(stage->queue, v, w, count * sizeof *v);
}

const skep_real *skep_stage_read(
	const struct skep_stage *stage, const struct skep_training *training, const struct skep_op *op)
{
	bool inner = stage->inner && !skep_training_holds_out(training, op->microbatch);
	if (stage->local)
		return stage->local;
	if (stage->moved && op->moved > 0)
		return stage->moved;
	return inner ? stage->inner : skep_stage_parameters(stage, op->version);
}

/* What is not of the round's fragment stays, outer moments included; and all of it in a round in which the stage does not sum. */
void skep_stage_outer(
	struct skep_stage *stage, const struct skep_training *training, const struct skep_op *op, const skep_real *sum)
{
	const struct skep_range r = range_of(stage, op);
	if (!skep_plan_sums(training->plan, stage->index, op->round)) {
		stage->version = op->round + 1;
		return;
	}
	if (op->microbatches > 0)
		skep_stage_descend(stage, (struct skep_layers){0, stage->layers},
			&(struct skep_descent){.optimizer = &training->outer,
				.rate = skep_optimizer_rate(&training->outer, op->round),
				.steps = ++stage->steps,
				.microbatches = op->microbatches,
				.scale = 1,
				.first = op->first,
				.count = op->count,
				.outer = true,
				.sum = sum,
				.tied = stage->tied_peer,
				.w = skep_stage_parameters(stage, op->round + 1),
				.moment = {stage->moment[0], stage->moment[1]}});
	clear(stage, stage->accumulator[op->round & 1]);
	stage->version = op->round + 1;
	skep_stage_follow(stage, training->plan->delayed ? training->mixing : 0, r.first, r.count);
}

/* Behind a part of BACKWARD, on its elements: the step on what the accumulator holds, and how far they have come then. */
static void step_part(struct skep_stage *stage, const struct skep_training *training, const struct skep_op *op)
{
	const skep_real *w = skep_stage_parameters(stage, stage->version) + op->first;
	skep_real *sum = skep_stage_sum(stage, op->round);
	if (op->part == 0 && stage->inner_steps == 0)
		stage->inner_began = (uint32_t)skep_plan_steps_before(training->plan, op->round);
	skep_stage_descend(stage, (struct skep_layers){0, stage->layers},
		&(struct skep_descent){.optimizer = &training->optimizer,
			.rate = rate_of(stage, training, op),
			.steps = stage->inner_steps + 1,
			.microbatches = op->inner,
			.scale = 1,
			.first = op->first,
			.count = op->count,
			.sum = sum,
			.w = stage->inner,
			.moment = {stage->inner_moment[0], stage->inner_moment[1]}});
	stage->inner_steps += op->part + 1 == op->parts;
	stage->arrays->clear(stage->queue, sum + op->first, op->count * sizeof *sum);
	stage->arrays->weigh(
		stage->queue, op->count, w, stage->inner + op->first, (skep_real)op->microbatches, sum + op->first);
}

bool skep_stage_periodic(
	struct skep_stage *stage, const struct skep_training *training, const struct skep_op *op, const skep_real *sum)
{
	if (!stage->inner)
		return false;
	if (op->kind == SKEP_OP_INNER_STEP)
		step(stage, training, op);
	else if (op->kind == SKEP_OP_BACKWARD)
		step_part(stage, training, op);
	else if (stage->base)
		skep_stage_merge(stage, training, op, sum);
	else if (training->plan->gossip)
		skep_stage_gossip(stage, training, op, sum);
	else if (op->kind == SKEP_OP_PSEUDO_GRAD)
		pseudo(stage, op);
	else
		skep_stage_outer(stage, training, op, sum);
	return true;
}
