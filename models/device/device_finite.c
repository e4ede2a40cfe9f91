/* SPDX-License-Identifier: Apache-2.0
 *
 * device_finite.c - decides whether what a device made is finite, and which layer made a number that is not; clips
 * steps, and computes the sums of squares from which the clipping factor is found. A step on a gradient that is not
 * finite changes no parameter.
 */
#include <math.h>

#include "core/sums.h"
#include "models/device/device_internal.h"
#include "models/update/squares.h"

/* Ranks that share a stage by tensor parallelism go on alike: what one finds is true for all. */
static bool is_so_on_a_rank(const struct skep_device *device, bool here)
{
	return skep_squares_of_group(device->training, here ? 1 : 0) > 0;
}

static bool is_finite(const struct skep_device *device, const struct skep_op *op)
{
	const struct skep_finite_check *finite_check = &device->finite_check[op->lane];
	return isfinite(device->loss[op->lane]) &&
	       (!finite_check->made ||
		       device->stage.arrays->finite(device_queue(device, op), finite_check->n, finite_check->made));
}

void skep_device_check_finite(
	const struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	const struct skep_finite_check *finite_check = &device->finite_check[op->lane];
	if (finite_check->fault == SKEP_FAULT_NONE)
		return;
	if (!is_so_on_a_rank(device, !is_finite(device, op)))
		return;
	const struct skep_stage part = skep_device_part(device, op);
	ret->fault = finite_check->fault;
	ret->layer = finite_check->stash
	                     ? skep_squares_forward_layer(&part, device->training->samples, finite_check->stash)
	                     : skep_squares_backward_layer(&part, skep_stage_sum(&device->stage, op->round));
}

bool skep_device_is_tainted(const struct skep_device *device, const struct skep_op *op, uint16_t *ret_layer)
{
	struct skep_stage stage = device->stage;
	stage.queue = device_queue(device, op);
	*ret_layer = skep_squares_backward_layer(&stage, skep_stage_parameters(&stage, stage.version));
	for (uint32_t m = 0; m < stage.moments && *ret_layer == 0; m++)
		*ret_layer = skep_squares_backward_layer(&stage, stage.moment[m]);
	return *ret_layer > 0;
}

/* The whole stage's, of what is trained; NULL: no memory. */
static const float *sum_of(struct skep_device *device, const struct skep_op *op)
{
	struct skep_stage *stage = &device->stage;
	return op->members == 1 ? skep_device_own_all(device, op) : stage->result;
}

static bool ties(const struct skep_device *device, const struct skep_op *op)
{
	return skep_plan_is_tied_vstage(device->training->plan, op->stage);
}

/* The gradient of a tied table: the mean of the first stage and that of the last one, added, in this order in both. */
static const float *blend(struct skep_device *device, const struct skep_op *op)
{
	const struct skep_stage *stage = &device->stage;
	const float *own = stage->result + stage->tied.first, *tied_peer = stage->tied_peer;
	bool first = op->stage == 0;
	stage->arrays->blend(device_queue(device, op), stage->tied.count, first ? own : tied_peer,
		first ? op->microbatches : op->tied, first ? tied_peer : own, first ? op->tied : op->microbatches,
		stage->tied_peer);
	return stage->tied_peer;
}

/* Where nothing was counted the sum is 0, whatever it is divided by; what the other stage has counted is stepped on. */
static uint32_t divisor_of(const struct skep_op *op, bool tied)
{
	return op->microbatches == 0 && tied && op->tied > 0 ? 1 : op->microbatches;
}

bool skep_device_run_step(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	const struct skep_training *training = device->training;
	if (!skep_device_name_shard(device, op))
		return false;
	struct skep_stage part = skep_device_part(device, op);
	part.trained = part.shard; /* the sum is there of that alone */
	const struct skep_optimizer *stepper = skep_training_stepper(training);
	const bool sums = skep_plan_sums(training->plan, op->stage, op->round);
	const float *sum = sums ? sum_of(device, op) : NULL;
	if (sums && !sum)
		return false;
	const bool tied = ties(device, op);
	const uint32_t microbatches = divisor_of(op, tied);
	ret->layer = sums && op->microbatches > 0 ? skep_squares_backward_layer(&part, sum) : 0;
	if (tied && ret->layer == 0 && !part.arrays->finite(part.queue, part.tied.count, part.tied_peer))
		ret->layer = (uint16_t)(op->stage == 0 ? 1 : training->model->layers);
	ret->fault = is_so_on_a_rank(device, ret->layer > 0) ? SKEP_FAULT_GRADIENT : SKEP_FAULT_NONE;
	const struct skep_vstage_step turn = {.nth = op->stage / training->plan->stages,
		.round = op->round,
		.microbatches = ret->fault ? 0 : microbatches,
		.scale = training->plan->clip ? skep_squares_scale((double)stepper->clip_norm, op->square) : 1,
		.tied = tied ? blend(device, op) : NULL};
	struct skep_op good = *op;
	good.microbatches = turn.microbatches;
	if (!device->backend->periodic(device_queue(device, op), &device->stage, training, &good, sum))
		device->backend->step(device_queue(device, op), &device->stage, stepper, &turn, sum);
	return true;
}

/* Of a virtual stage with a copy of a tied table, which begins it or ends it; what is told of the table is in the result, also
 * where that is not the sum of the rest. Else of the products of the two stages' sums. */
static double tied_squares(
	const struct skep_stage *part, const struct skep_op *op, const struct skep_vstage *vstage, const float *sum)
{
	const struct skep_tied *tied = &part->tied;
	const float *own = part->result + tied->first;
	if (op->term != SKEP_NORM_SQUARES)
		return part->arrays->products(
			part->queue, tied->count, own, part->tied_peer, op->term == SKEP_NORM_POSITIVE);
	size_t rest = tied->first == vstage->parameter ? vstage->parameter + tied->count : vstage->parameter;
	return skep_squares_own(part, (struct skep_range){rest, vstage->parameters - tied->count}, sum) +
	       part->arrays->squares(part->queue, tied->count, own);
}

bool skep_device_run_norm(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	const struct skep_stage part = skep_device_part(device, op);
	const struct skep_vstage *vstage = &device->stage.vstage[op->stage / device->training->plan->stages];
	const float *sum = sum_of(device, op);
	if (!sum)
		return false;
	const bool shard = device->training->plan->sharded;
	const struct skep_range all = shard ? (struct skep_range){op->first, op->count}
	                                    : skep_stage_trained_of(&part, vstage->parameter, vstage->parameters);
	const double own = ties(device, op) ? tied_squares(&part, op, vstage, sum) : skep_squares_own(&part, all, sum);
	const double squares = skep_squares_of_group(device->training, own);
	ret->square = skep_squares_encode(squares);
	if (isfinite(squares))
		return true;
	ret->fault = SKEP_FAULT_GRADIENT;
	ret->layer = skep_squares_backward_layer(&part, sum);
	return true;
}
