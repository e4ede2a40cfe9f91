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

bool device_run_step(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	const struct skep_training *training = device->training;
	const struct skep_stage part = device_part(device, op);
	const struct skep_optimizer *stepper = skep_training_stepper(training);
	const float *sum = sum_of(device, op);
	if (!sum)
		return false;
	ret->layer = op->microbatches > 0 ? skep_squares_backward_layer(&part, sum) : 0;
	ret->fault = ret->layer > 0 ? SKEP_FAULT_GRADIENT : SKEP_FAULT_NONE;
	const struct skep_turn turn = {.nth = op->stage / training->plan->stages,
		.round = op->round,
		.microbatches = ret->fault ? 0 : op->microbatches,
		.scale = training->plan->clip ? skep_squares_scale((double)stepper->clip_norm, op->square) : 1};
	struct skep_op good = *op;
	good.microbatches = turn.microbatches;
	if (!device->backend->periodic(device_queue(device, op), &device->stage, training, &good, sum))
		device->backend->step(device_queue(device, op), &device->stage, stepper, &turn, sum);
	return true;
}

bool device_run_norm(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	const struct skep_stage part = device_part(device, op);
	const struct skep_slice *slice = &device->stage.slice[op->stage / device->training->plan->stages];
	const float *sum = sum_of(device, op);
	if (!sum)
		return false;
	double squares = part.arrays->squares(part.queue, slice->parameters, sum + slice->parameter);
	ret->square = skep_squares_encode(squares);
	if (isfinite(squares))
		return true;
	ret->fault = SKEP_FAULT_GRADIENT;
	ret->layer = skep_squares_backward_layer(&part, sum);
	return true;
}
