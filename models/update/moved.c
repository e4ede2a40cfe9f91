/* SPDX-License-Identifier: Apache-2.0
 *
 * moved.c - what stages that step without waiting for each other do about their stale gradients, in arithmetic (which of it is
 * on: core/plan.h, enum skep_weights; which pass reads what: core/methods/weights.c).
 *
 * Predicted. Of the newest parameters w, those of s steps later are
 *     SGD     w - s lr v             SpecTrain (Chen et al. 2018, arXiv 1809.02839, section 3.2), v: the velocity
 *     AdamW   w - s lr m^ / (sqrt(v^) + epsilon)           XPipe (Guan et al. 2019, arXiv 1911.04610), m^ and v^: the
 *                                                          moments without bias, as of the last step
 * lr is the rate of the step that is next here. Weight decay is left out, as published.
 *
 * Corrected, PipeMare (Yang et al. 2021, arXiv 1910.05124), technique 2. What changes in a step is smoothed,
 *     d = g d + (1 - g) (w(t + 1) - w(t)),      g = exp(-2 / staleness),
 * and the parameters of s steps earlier are w - s d.
 *
 * Waves (HetPipe; core/methods/wsp.c): w less what the steps would have changed that a worker had made by itself of what it has
 * counted and all have not summed yet.
 *
 * Technique 1 of PipeMare's paper: in step t of the first T, the rate of a stage is lr / staleness^(1 - t / T). Steps are counted
 * from where rounds stop being synchronous, and a stage that lacks one step or none has the whole rate.
 */
#include <math.h>

#include "models/stage/stage.h"

float skep_stage_rate(const struct skep_stage *stage, const struct skep_optimizer *optimizer, uint32_t round)
{
	const float rate = skep_optimizer_rate(optimizer, round);
	const uint32_t all = optimizer->rates.by_staleness, since = round - stage->synchronous;
	if (stage->staleness < 2 || round < stage->synchronous || since >= all)
		return rate;
	return (float)((double)rate / pow(stage->staleness, 1 - (double)since / all));
}

static void predict_sgd(const struct skep_tensor_step *s, skep_real weight)
{
	for (size_t i = 0; i < s->n; i++)
		s->w[i] -= weight * s->moment[0][i];
}

static void predict_adamw(const struct skep_tensor_step *s, skep_real weight)
{
	for (size_t i = 0; i < s->n; i++) {
		skep_real root = skep_real_root(s->moment[1][i] * s->unbias_square) + s->o->epsilon;
		s->w[i] -= weight * (s->moment[0][i] * s->unbias_mean / root);
	}
}

/* Without a step there is nothing to go by. */
static void predict(const struct skep_stage *stage, const struct skep_optimizer *optimizer, const struct skep_op *op)
{
	static void (*const predictions[])(const struct skep_tensor_step *, skep_real) = {
		[SKEP_OPTIMIZER_SGD] = predict_sgd, [SKEP_OPTIMIZER_ADAMW] = predict_adamw};
	const struct skep_range trained = stage->trained;
	struct skep_tensor_step s = {.o = optimizer, .n = trained.count, .w = stage->moved + trained.first};
	if (stage->steps == 0)
		return;
	for (uint32_t m = 0; m < stage->moments; m++)
		s.moment[m] = stage->moment[m] + trained.first;
	s.unbias_mean = (skep_real)(1.0 / (1.0 - pow((double)optimizer->beta1, (double)stage->steps)));
	s.unbias_square = (skep_real)(1.0 / (1.0 - pow((double)optimizer->beta2, (double)stage->steps)));
	predictions[optimizer->kind](&s, (skep_real)op->moved * skep_stage_rate(stage, optimizer, op->version));
}

static void correct(const struct skep_stage *stage, const struct skep_op *op)
{
	const size_t end = stage->trained.first + stage->trained.count;
	for (size_t i = stage->trained.first; i < end; i++)
		stage->moved[i] -= (skep_real)op->moved * stage->drift[i];
}

void skep_stage_move(const struct skep_stage *stage, const struct skep_optimizer *optimizer, const struct skep_op *op)
{
	if (!stage->moved || op->moved == 0)
		return;
	const skep_real *w = skep_stage_parameters(stage, op->version);
	stage->arrays->copy(stage->queue, stage->moved, w, stage->parameters * sizeof *w);
	if (stage->drift)
		correct(stage, op);
	else
		predict(stage, optimizer, op);
}

/* Steps are plain descent, so those that it would have made of what it counted make one for each accumulator, with the divisor
 * that the step of all has when nothing is lost. Without momentum what lies in the velocity's place is written before it is
 * read. Running averages stay as all have stepped them: to them the divisor has to be what was counted. */
void skep_stage_step_alone(
	const struct skep_stage *stage, const struct skep_training *training, const struct skep_op *op, skep_real *ret)
{
	const skep_real *w = skep_stage_parameters(stage, op->version);
	stage->arrays->copy(stage->queue, ret, w, stage->parameters * sizeof *w);
	for (uint32_t round = op->version; round <= op->round && op->moved > 0; round++)
		skep_stage_descend(stage, (struct skep_layers){0, stage->layers},
			&(struct skep_descent){.optimizer = &training->optimizer,
				.rate = skep_stage_rate(stage, &training->optimizer, round),
				.steps = stage->steps + 1,
				.microbatches = training->plan->microbatches,
				.scale = 1,
				.stays = true,
				.sum = skep_stage_sum(stage, round),
				.w = ret,
				.moment = {stage->moment[0], NULL}});
}

/* No pass runs now, so what they read is free. */
void skep_stage_before_step(const struct skep_stage *stage, uint32_t round)
{
	const skep_real *w = skep_stage_parameters(stage, round);
	if (stage->drift && stage->staleness > 0)
		stage->arrays->copy(stage->queue, stage->moved, w, stage->parameters * sizeof *w);
}

void skep_stage_after_step(const struct skep_stage *stage, uint32_t round)
{
	const skep_real *w = skep_stage_parameters(stage, round + 1);
	const size_t end = stage->trained.first + stage->trained.count;
	const skep_real one = 1;
	if (!stage->drift || stage->staleness == 0)
		return;
	const skep_real kept = (skep_real)exp(-2.0 / stage->staleness);
	for (size_t i = stage->trained.first; i < end; i++)
		stage->drift[i] = kept * stage->drift[i] + (one - kept) * (w[i] - stage->moved[i]);
}
