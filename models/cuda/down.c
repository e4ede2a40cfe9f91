/* SPDX-License-Identifier: Apache-2.0
 *
 * down.c - copies gradients to the host's memory (train.optimizer.offload: gradients). The gradients of a layer are
 * made in one of two arrays on the device, in turn, and added to the host's accumulator on a queue of their own, while
 * the next layer's are made in the other array. Without offload the backward pass adds to the accumulator on the
 * device.
 */
#include "models/cuda/lane.h"

static bool ties(const struct skep_stage *stage, const struct skep_layer *layer)
{
	return stage->shared != SIZE_MAX && layer->number + 1 == layer->model->layers;
}

static size_t table_floats(const struct skep_layer *layer)
{
	return (size_t)layer->model->vocabulary * layer->model->hidden;
}

size_t skep_cuda_down_floats(const struct skep_stage *stage, const struct skep_layer *layer)
{
	return skep_cuda_floats(layer->parameters) + (ties(stage, layer) ? skep_cuda_floats(table_floats(layer)) : 0);
}

/* Adds what layer l makes in its turn to the accumulator, when it has made it. */
static void send(struct skep_cuda_lane *lane, const struct skep_stage *stage, const struct skep_op *op, uint32_t l,
	uint32_t turn)
{
	const struct skep_cuda_own *own = stage->own;
	const struct skep_layer *layer = &stage->layer[l];
	const float *made = own->down[turn % 2];
	float *sum = skep_stage_sum(stage, op->round);
	skep_cuda_follow(lane->down, lane->queue);
	skep_cuda_accumulate(lane->down, layer->parameters, made, sum + layer->parameter);
	if (ties(stage, layer))
		skep_cuda_accumulate(lane->down, table_floats(layer), made + skep_cuda_floats(layer->parameters),
			sum + stage->shared);
}

void skep_cuda_down_next(struct skep_cuda_lane *lane, const struct skep_stage *stage, const struct skep_op *op,
	uint32_t l, uint32_t turn, struct skep_pass *pass)
{
	const struct skep_cuda_own *own = stage->own;
	const struct skep_layer *layer = &stage->layer[l];
	float *sum = skep_stage_sum(stage, op->round), *made = own->down[turn % 2];
	pass->gradient = made ? made : sum + layer->parameter;
	if (pass->shared)
		pass->shared_gradient = made ? made + skep_cuda_floats(layer->parameters) : sum + stage->shared;
	if (!made)
		return;
	skep_cuda_follow(lane->queue, lane->down); /* what was here two turns ago, but not what comes now */
	if (turn > 0)
		send(lane, stage, op, l + 1, turn - 1);
	skep_cuda_clear(lane->queue, made, skep_cuda_down_floats(stage, layer) * sizeof *made);
}

void skep_cuda_down_last(struct skep_cuda_lane *lane, const struct skep_stage *stage, const struct skep_op *op,
	uint32_t l, uint32_t turn)
{
	const struct skep_cuda_own *own = stage->own;
	if (!own->down[0])
		return;
	send(lane, stage, op, l, turn);
	skep_cuda_follow(lane->queue, lane->down);
}
