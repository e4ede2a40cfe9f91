/* SPDX-License-Identifier: Apache-2.0
 *
 * layer.c - which kind the layers of a model are, and their first parameters. A number of a tensor is a pure function of (seed,
 * layer, its place in the layer): of a shard, its place in the whole layer.
 */
#include "models/layers/layer.h"

#include <assert.h>

#include "models/layers/random.h"
#include "models/tensor/runs.h"

static const struct skep_layer_type *type_of(const struct skep_model *model, uint32_t number)
{
	bool last = number + 1 == model->layers;
	if (model->kind == SKEP_MODEL_MLP)
		return last ? &skep_layer_squares : &skep_layer_dense;
	if (model->kind == SKEP_MODEL_RESNET)
		return last ? &skep_layer_resnet_head : &skep_layer_resnet_block;
	assert(model->architecture != SKEP_ARCHITECTURE_NONE);
	if (model->architecture == SKEP_ARCHITECTURE_BERT && number > 0)
		return last ? &skep_layer_masked_head : &skep_layer_post_blocks;
	return last ? &skep_layer_head : number == 0 ? &skep_layer_embedding : &skep_layer_blocks;
}

struct skep_layer skep_layer_of(const struct skep_model *model, uint32_t number)
{
	assert(number < model->layers);
	struct skep_tensor tensor[SKEP_TENSORS_MAX];
	struct skep_layer layer = {.type = type_of(model, number),
		.model = model,
		.number = number,
		.in = model->width[number],
		.out = model->width[number + 1]};
	uint32_t tensors = layer.type->tensors(&layer, tensor);
	for (uint32_t t = 0; t < tensors; t++)
		layer.parameters += (size_t)tensor[t].rows * tensor[t].columns;
	return layer;
}

uint32_t skep_tensor_add(struct skep_tensor *list, uint32_t count, const struct skep_tensor *tensor)
{
	assert(count < SKEP_TENSORS_MAX);
	const struct skep_tensor *before = &list[count - 1];
	list[count] = *tensor;
	list[count].offset = count ? before->offset + (size_t)before->rows * before->columns : 0;
	return count + 1;
}

/* The sum of twelve numbers uniform on [0, 1) has variance 1 and is within 6 of its mean: whole numbers until the last product,
 * so equal on every machine. */
static float normal(uint64_t key, uint64_t counter)
{
	int64_t sum = 0;
	for (uint64_t i = 0; i < 3; i++) {
		uint64_t bits = skep_mix(key + (3 * counter + i) * 0x9e3779b97f4a7c15u);
		for (unsigned piece = 0; piece < 4; piece++)
			sum += (int64_t)(bits >> (16 * piece) & 0xffff);
	}
	return (float)(2 * (sum - 6 * 65536) + 12) * 0x1p-17f; /* each piece stands for the middle of its interval */
}

static float value_of(const struct skep_tensor *tensor, uint64_t key, uint64_t counter)
{
	if (tensor->draw == SKEP_DRAW_CONSTANT)
		return tensor->size;
	return tensor->size *
	       (tensor->draw == SKEP_DRAW_NORMAL ? normal(key, counter) : skep_random_signed(key, counter));
}

struct drawing {
	const struct skep_layer *layer;
	uint64_t seed;
	skep_real *ret;
};

static void draw_run(void *context, const struct skep_run *run)
{
	const struct drawing *drawing = context;
	struct skep_tensor tensor = *run->tensor;
	skep_tensor_init(drawing->layer->model, &tensor);
	const uint32_t number = tensor.copied ? 0 : drawing->layer->number;
	const uint64_t key = skep_random_key(drawing->seed, SKEP_STREAM_LAYER + number);
	const size_t at = run->at + (tensor.copied ? 0 : tensor.offset);
	for (size_t i = 0; i < run->count; i++)
		drawing->ret[run->own + i] = value_of(&tensor, key, at + i);
}

void skep_layer_draw(const struct skep_layer *layer, uint64_t seed, skep_real *ret_parameters)
{
	skep_layer_runs(layer, draw_run, &(struct drawing){layer, seed, ret_parameters});
}
