/* SPDX-License-Identifier: Apache-2.0
 *
 * device_sound.c - numbers as such: what a device makes is finite, or it says which layer made it so; steps that are clipped; and
 * the squares for the norm that says by how much. A step on a gradient that is not finite changes no parameter.
 */
#include <math.h>

#include "models/device_inside.h"
#include "models/squares.h"

void device_judge(const struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	const struct skep_doubt *doubt = &device->doubt[op->lane];
	if (doubt->fault == SKEP_FAULT_NONE)
		return;
	if (isfinite(device->loss[op->lane]) &&
		(!doubt->made || device->stage.arrays->finite(device_queue(device, op), doubt->n, doubt->made)))
		return;
	const struct skep_stage part = device_part(device, op);
	ret->fault = doubt->fault;
	ret->layer = doubt->stash ? skep_squares_forward_layer(&part, device->training->samples, doubt->stash)
	                          : skep_squares_backward_layer(&part, skep_stage_sum(&device->stage, op->round));
}

bool device_is_spoilt(const struct skep_device *device, const struct skep_op *op, uint16_t *ret_layer)
{
	struct skep_stage stage = device->stage;
	stage.queue = device_queue(device, op);
	*ret_layer = skep_squares_backward_layer(&stage, skep_stage_parameters(&stage, stage.version));
	for (uint32_t m = 0; m < stage.moments && *ret_layer == 0; m++)
		*ret_layer = skep_squares_backward_layer(&stage, stage.moment[m]);
	return *ret_layer > 0;
}

/* The whole stage's; NULL: no memory. */
static const float *sum_of(struct skep_device *device, const struct skep_op *op)
{
	struct skep_stage *stage = &device->stage;
	return op->size == 1 ? skep_device_own(device, op, 0, stage->parameters) : stage->result;
}

static bool ties(const struct skep_device *device, const struct skep_op *op)
{
	return skep_plan_ties_slice(device->training->plan, op->stage);
}

/* The gradient of a tied table: the mean of the first stage and that of the last one, added, in this order in both. */
static const float *blend(struct skep_device *device, const struct skep_op *op)
{
	const struct skep_stage *stage = &device->stage;
	const float *own = stage->result + stage->tied.first, *twin = stage->twin;
	bool first = op->stage == 0;
	stage->arrays->blend(device_queue(device, op), stage->tied.count, first ? own : twin,
		first ? op->microbatches : op->tied, first ? twin : own, first ? op->tied : op->microbatches,
		stage->twin);
	return stage->twin;
}

/* Where nothing was counted the sum is 0, whatever it is divided by; what the other stage has counted is stepped on. */
static uint32_t divisor_of(const struct skep_op *op, bool tied)
{
	return op->microbatches == 0 && tied && op->tied > 0 ? 1 : op->microbatches;
}

bool device_run_step(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	const struct skep_training *training = device->training;
	const struct skep_stage part = device_part(device, op);
	const struct skep_optimizer *stepper = skep_training_stepper(training);
	const float *sum = sum_of(device, op);
	if (!sum)
		return false;
	const bool tied = ties(device, op);
	const uint32_t microbatches = divisor_of(op, tied);
	ret->layer = op->microbatches > 0 ? skep_squares_backward_layer(&part, sum) : 0;
	if (tied && ret->layer == 0 && !part.arrays->finite(part.queue, part.tied.count, part.twin))
		ret->layer = (uint16_t)(op->stage == 0 ? 1 : training->model->layers);
	ret->fault = ret->layer > 0 ? SKEP_FAULT_GRADIENT : SKEP_FAULT_NONE;
	const struct skep_turn turn = {.nth = op->stage / training->plan->stages,
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

/* Of a slice with a copy of a tied table, which begins it or ends it; what is told of the table is in the result, also where that
 * is not the sum of the rest. Chunks 1 and 2: of the products of the two stages' sums. */
static double tied_squares(
	const struct skep_stage *part, const struct skep_op *op, const struct skep_slice *slice, const float *sum)
{
	const struct skep_tied *tied = &part->tied;
	const float *own = part->result + tied->first;
	if (op->chunk > 0)
		return part->arrays->products(part->queue, tied->count, own, part->twin, op->chunk == 1);
	size_t rest = tied->first == slice->parameter ? slice->parameter + tied->count : slice->parameter;
	return part->arrays->squares(part->queue, slice->parameters - tied->count, sum + rest) +
	       part->arrays->squares(part->queue, tied->count, own);
}

bool device_run_norm(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	const struct skep_stage part = device_part(device, op);
	const struct skep_slice *slice = &device->stage.slice[op->stage / device->training->plan->stages];
	const float *sum = sum_of(device, op);
	if (!sum)
		return false;
	double squares = ties(device, op) ? tied_squares(&part, op, slice, sum)
	                                  : part.arrays->squares(part.queue, slice->parameters, sum + slice->parameter);
	ret->square = skep_squares_encode(squares);
	if (isfinite(squares))
		return true;
	ret->fault = SKEP_FAULT_GRADIENT;
	ret->layer = skep_squares_backward_layer(&part, sum);
	return true;
}
