/* SPDX-License-Identifier: Apache-2.0
 *
 * optimizer.c - the step that ends a round: SGD with momentum, the same after Nesterov, AdamW (Loshchilov and Hutter, arXiv
 * 1711.05101, algorithm 2, with the learning rate as the schedule's multiplier of the decay) and LAMB (You et al., arXiv
 * 1904.00962, algorithm 2).
 *
 * Delayed Nesterov (Liu et al., arXiv 2401.09135, algorithm 3 with c = 0) is that after Nesterov spread over N turns: each one
 * goes an N-th of its gradient at once, and the last one moves the momentum by the mean of all N and goes by that.
 *
 * All but LAMB go element by element, which is what lets a newcomer step along on parts of a state (docs/protocol.md). LAMB
 * scales the step of each tensor by the norm of its parameters over that of the step. Tensors that do not decay (norms and
 * biases of transformers; a perceptron has none) are left out of weight decay and of that scale.
 *
 * Running averages of batch norms have no gradient, and no optimizer sees them: from what stands in its place
 * (vision/batch_norm.h), the sum of a round over its microbatches, they go the norm's momentum of the way to the mean. By the
 * differences that local steps have made they go all of the way: to the mean over the workers. So they do with outer
 * turns, each of which is of one worker, an N-th of it. Clipping leaves them alone.
 */
#include <math.h>
#include <string.h>

#include "models/layers/tensor_group.h"
#include "models/stage/stage.h"

/* base^n by squaring: a written order of roundings, which pow() of a library is not. */
static double power(double base, uint64_t n)
{
	double result = 1.0;
	for (; n; n >>= 1, base *= base)
		if (n & 1)
			result *= base;
	return result;
}

float skep_optimizer_rate(const struct skep_optimizer *optimizer, uint32_t round)
{
	const struct skep_rates *rates = &optimizer->rates;
	if (round < rates->warmup)
		return optimizer->learning_rate * (float)(round + 1) / (float)rates->warmup;
	if (rates->decay == SKEP_RATE_CONSTANT)
		return optimizer->learning_rate;
	double done = 1, left;
	if (round < rates->steps)
		done = (double)(round - rates->warmup) / (double)(rates->steps - rates->warmup);
	left = rates->decay == SKEP_RATE_COSINE ? 0.5 * (1 + cos(done * 3.14159265358979323846)) : 1 - done;
	return (float)((double)optimizer->learning_rate * ((double)rates->least + (1 - (double)rates->least) * left));
}

SKEP_ANY_WIDTH static void step_sgd(const struct skep_tensor_step *s)
{
	const skep_real momentum = s->o->momentum, rate = s->rate, decay = s->decay, divisor = s->divisor;
	const skep_real *restrict sum = s->sum;
	skep_real *restrict w = s->w, *restrict velocity = s->moment[0];
	for (size_t i = 0; i < s->n; i++) {
		velocity[i] = momentum * velocity[i] + sum[i] / divisor;
		w[i] -= rate * (velocity[i] + decay * w[i]);
	}
}

SKEP_ANY_WIDTH static void step_averages(const struct skep_tensor_step *s)
{
	const skep_real rate = s->rate, divisor = s->divisor;
	const skep_real *restrict sum = s->sum;
	skep_real *restrict w = s->w;
	if (s->differences)
		for (size_t i = 0; i < s->n; i++)
			w[i] -= rate * (sum[i] / divisor);
	else
		for (size_t i = 0; i < s->n; i++)
			w[i] -= rate * (w[i] + sum[i] / divisor);
}

SKEP_ANY_WIDTH static void step_nesterov(const struct skep_tensor_step *s)
{
	const skep_real momentum = s->o->momentum, rate = s->rate, decay = s->decay, divisor = s->divisor;
	const skep_real *restrict sum = s->sum;
	skep_real *restrict w = s->w, *restrict velocity = s->moment[0];
	for (size_t i = 0; i < s->n; i++) {
		skep_real g = sum[i] / divisor;
		velocity[i] = momentum * velocity[i] + g;
		w[i] -= rate * (g + momentum * velocity[i] + decay * w[i]);
	}
}

SKEP_ANY_WIDTH static void step_delayed_nesterov(const struct skep_tensor_step *s)
{
	const skep_real momentum = s->o->momentum, rate = s->rate, divisor = s->divisor, turns = (skep_real)s->o->turns;
	const skep_real *restrict sum = s->sum;
	skep_real *restrict w = s->w, *restrict velocity = s->moment[0], *restrict buffer = s->moment[1];
	for (size_t i = 0; i < s->n; i++) {
		skep_real g = sum[i] / divisor;
		buffer[i] += g;
		w[i] -= rate * (g / turns);
	}
	for (size_t i = 0; i < s->n && s->last; i++) {
		velocity[i] = momentum * velocity[i] + buffer[i] / turns;
		w[i] -= rate * (momentum * velocity[i]);
		buffer[i] = 0;
	}
}

SKEP_ANY_WIDTH static void step_adamw(const struct skep_tensor_step *s)
{
	const skep_real beta1 = s->o->beta1, beta2 = s->o->beta2, epsilon = s->o->epsilon, one = 1;
	const skep_real rate = s->rate, decay = s->decay, divisor = s->divisor;
	const skep_real unbias_mean = s->unbias_mean, unbias_square = s->unbias_square;
	const skep_real *restrict sum = s->sum;
	skep_real *restrict w = s->w, *restrict mean = s->moment[0], *restrict square = s->moment[1];
	for (size_t i = 0; i < s->n; i++) {
		skep_real g = sum[i] / divisor;
		mean[i] = beta1 * mean[i] + (one - beta1) * g;
		square[i] = beta2 * square[i] + (one - beta2) * (g * g);
		skep_real root = skep_real_root(square[i] * unbias_square) + epsilon;
		w[i] -= rate * (mean[i] * unbias_mean / root + decay * w[i]);
	}
}

/* The norm of the parameters over that of the step; 1 where one of them is 0. Moves the moments on. */
static skep_real measure_lamb(const struct skep_tensor_step *s)
{
	const skep_real beta1 = s->o->beta1, beta2 = s->o->beta2, one = 1;
	double parameters = 0, steps = 0;
	for (size_t i = 0; i < s->n; i++) {
		skep_real g = s->sum[i] / s->divisor, *mean = s->moment[0] + i, *square = s->moment[1] + i;
		*mean = beta1 * *mean + (one - beta1) * g;
		*square = beta2 * *square + (one - beta2) * (g * g);
		skep_real root = skep_real_root(*square * s->unbias_square) + s->o->epsilon;
		skep_real step = *mean * s->unbias_mean / root + s->decay * s->w[i];
		parameters += (double)s->w[i] * (double)s->w[i];
		steps += (double)step * (double)step;
	}
	if (s->tensor_group) {
		parameters = s->tensor_group->sum(s->tensor_group->context, parameters);
		steps = s->tensor_group->sum(s->tensor_group->context, steps);
	}
	return parameters > 0 && steps > 0 ? (skep_real)sqrt(parameters / steps) : one;
}

static void step_lamb(const struct skep_tensor_step *s)
{
	skep_real rate = s->rate * measure_lamb(s);
	for (size_t i = 0; i < s->n; i++) {
		skep_real root = skep_real_root(s->moment[1][i] * s->unbias_square) + s->o->epsilon;
		s->w[i] -= rate * (s->moment[0][i] * s->unbias_mean / root + s->decay * s->w[i]);
	}
}

void skep_step_tensor(const struct skep_tensor_step *s)
{
	static void (*const steps[])(const struct skep_tensor_step *) = {
		[SKEP_OPTIMIZER_SGD] = step_sgd,
		[SKEP_OPTIMIZER_ADAMW] = step_adamw,
		[SKEP_OPTIMIZER_NESTEROV] = step_nesterov,
		[SKEP_OPTIMIZER_LAMB] = step_lamb,
		[SKEP_OPTIMIZER_DELAYED_NESTEROV] = step_delayed_nesterov,
	};
	bool plain = s->o->kind == SKEP_OPTIMIZER_LAMB && !s->scales;
	if (s->averages) {
		step_averages(s);
		return;
	}
	steps[plain ? SKEP_OPTIMIZER_ADAMW : s->o->kind](s);
}

static skep_real rate_of_averages(const struct skep_model *model, const struct skep_descent *descent)
{
	const uint32_t turns = descent->optimizer->turns;
	return descent->outer ? 1 / (skep_real)(turns > 0 ? turns : 1) : (skep_real)model->resnet.momentum;
}

/* Of a descent on some elements those that are in the range. */
static struct skep_range part_of(const struct skep_descent *descent, struct skep_range range)
{
	return descent->count > 0 ? skep_range_meet(range, descent->first, descent->count) : range;
}

static void step_layer(const struct skep_stage *stage, const struct skep_layer *layer, struct skep_tensor_step step,
	const struct skep_descent *descent)
{
	struct skep_tensor tensor[SKEP_TENSORS_MAX];
	const uint32_t tensors = layer->type->tensors(layer, tensor);
	for (uint32_t t = 0; t < tensors; t++) {
		struct skep_tensor_step one = step;
		const struct skep_range mine =
			part_of(descent, skep_stage_shard_of(stage, layer->parameter + tensor[t].offset,
						 (size_t)tensor[t].rows * tensor[t].columns));
		const size_t at = mine.first, moment = skep_stage_moment_at(stage, at);
		one.n = mine.count;
		/* Tensors are trained whole, or not at all; of one that is, a shard may have a part. */
		if (mine.count == 0)
			continue;
		one.decay = tensor[t].decays && descent->count == 0 ? step.decay : 0;
		one.scales = tensor[t].decays && descent->count == 0;
		one.averages = tensor[t].averaged;
		if (one.averages && descent->stays)
			continue;
		if (one.averages) {
			one.differences = descent->outer || stage->differs;
			one.rate = rate_of_averages(layer->model, descent);
			one.divisor = (skep_real)descent->microbatches;
		}
		one.tensor_group = tensor[t].cut != SKEP_TENSOR_REPLICATED ? stage->tensor_group : NULL;
		one.sum += at;
		one.w += at;
		one.moment[0] += moment;
		if (one.moment[1] != NULL)
			one.moment[1] += moment;
		if (descent->tied && at == stage->tied.first && one.n == stage->tied.count) {
			one.sum = descent->tied; /* a mean */
			one.divisor = (skep_real)(1 / descent->scale);
		}
		stage->arrays->step(stage->queue, &one);
	}
}

static void step_part(const struct skep_stage *stage, struct skep_tensor_step step, size_t first, size_t count)
{
	step.n = count;
	step.decay = 0;
	step.sum += first;
	step.w += first;
	step.moment[0] += first;
	if (step.moment[1] != NULL)
		step.moment[1] += first;
	stage->arrays->step(stage->queue, &step);
}

void skep_stage_descend(const struct skep_stage *stage, struct skep_layers layers, const struct skep_descent *descent)
{
	const struct skep_optimizer *o = descent->optimizer;
	struct skep_tensor_step step = {.o = o,
		.rate = descent->rate,
		.decay = o->weight_decay,
		.divisor = (skep_real)(descent->microbatches / descent->scale),
		.last = o->turns > 0 && descent->steps % o->turns == 0,
		.sum = descent->sum,
		.w = descent->w,
		.moment = {descent->moment[0], descent->moment[1]}};
	step.unbias_mean = (skep_real)(1.0 / (1.0 - power((double)o->beta1, descent->steps)));
	step.unbias_square = (skep_real)(1.0 / (1.0 - power((double)o->beta2, descent->steps)));
	const bool averages = stage->layers > 0 && stage->layer[0].model->kind == SKEP_MODEL_RESNET;
	const bool whole = descent->count == 0 || averages;
	if (!whole)
		step_part(stage, step, descent->first, descent->count);
	for (uint32_t l = layers.first; l < layers.end && whole; l++)
		step_layer(stage, &stage->layer[l], step, descent);
}

void skep_stage_step(struct skep_stage *stage, const struct skep_optimizer *optimizer,
	const struct skep_vstage_step *turn, const skep_real *sum)
{
	const uint32_t nth = turn->nth, round = turn->round, microbatches = turn->microbatches;
	const struct skep_vstage *vstage = &stage->vstage[nth];
	const skep_real *old = skep_stage_parameters(stage, round);
	skep_real *w = skep_stage_parameters(stage, round + 1);
	if (w != old)
		stage->arrays->copy(
			stage->queue, w + vstage->parameter, old + vstage->parameter, vstage->parameters * sizeof *w);
	skep_stage_before_step(stage, round);
	if (microbatches)
		skep_stage_descend(stage, (struct skep_layers){vstage->layer, vstage->layer + vstage->layers},
			&(struct skep_descent){.optimizer = optimizer,
				.rate = skep_stage_rate(stage, optimizer, round),
				.steps = stage->steps + 1,
				.microbatches = microbatches,
				.scale = turn->scale,
				.sum = sum,
				.tied = turn->tied,
				.w = w,
				.moment = {stage->moment[0], stage->moment[1]}});
	skep_stage_after_step(stage, round);
	const struct skep_range trained = skep_stage_trained_of(stage, vstage->parameter, vstage->parameters);
	skep_real *summed = skep_stage_sum(stage, round);
	stage->arrays->clear(stage->queue, summed + trained.first, trained.count * sizeof *w);
	stage->stepped = stage->stepped || microbatches > 0;
	if (nth + 1 < stage->vstages)
		return;
	stage->steps += stage->stepped;
	stage->stepped = false;
	stage->version = round + 1;
}

void skep_stage_discard(struct skep_stage *stage, uint32_t round)
{
	skep_real *sum = skep_stage_sum(stage, round);
	stage->arrays->clear(stage->queue, sum + stage->trained.first, stage->trained.count * sizeof *sum);
}
