/* SPDX-License-Identifier: Apache-2.0
 *
 * resnet_head.c - the last layer of a residual network: the mean over each plane, a dense layer, and the loss, the mean over
 * the samples of the cross-entropy of their class in nats. Kept: the means, and the gradient at the scores.
 */
#include <assert.h>

#include "models/corpus/data.h"
#include "models/layers/layer.h"
#include "models/layers/spread.h"
#include "models/vision/shape.h"

static size_t channels_of(const struct skep_layer *layer)
{
	const struct skep_model *m = layer->model;
	return skep_resnet_layer_of(m, layer->number - 1).out;
}

static uint32_t tensors(const struct skep_layer *layer, struct skep_tensor ret[SKEP_TENSORS_MAX])
{
	const uint32_t channels = (uint32_t)channels_of(layer);
	struct skep_tensor weight = {.name = "fc.weight",
		.rows = channels,
		.columns = layer->model->resnet.classes,
		.draw = SKEP_DRAW_NORMAL,
		.size = sqrtf(1.0f / (float)channels),
		.role = SKEP_TENSOR_MATRIX,
		.decays = true};
	struct skep_tensor bias = {
		.name = "fc.bias", .rows = 1, .columns = layer->model->resnet.classes, .draw = SKEP_DRAW_CONSTANT};
	const uint32_t count = skep_tensor_add(ret, 0, &weight);
	return skep_tensor_add(ret, count, &bias);
}

static size_t inside(const struct skep_layer *layer)
{
	return channels_of(layer) + layer->model->resnet.classes;
}

/* Gradients at the means, and the classes that are right. */
static size_t work(const struct skep_layer *layer, uint32_t samples)
{
	return samples * (channels_of(layer) + 1);
}

static uint64_t flop(const struct skep_layer *layer, uint64_t *ret_attention)
{
	*ret_attention = 0;
	return 2 * (uint64_t)channels_of(layer) * layer->model->resnet.classes;
}

static double forward(const struct skep_layer *layer, const struct skep_pass *pass, const void *in, skep_real *ret_out,
	skep_real *ret_inside)
{
	const size_t channels = channels_of(layer), pixels = layer->in / channels, samples = pass->training->samples;
	const uint32_t classes = layer->model->resnet.classes;
	int32_t *label = (int32_t *)(void *)(pass->work + samples * channels);
	skep_real *score = ret_inside + samples * channels;
	double sum = 0;
	(void)ret_out;
	for (size_t i = 0; i < samples * channels; i++)
		ret_inside[i] = skep_real_sum(pixels, (const skep_real *)in + i * pixels) / (skep_real)pixels;
	skep_spread_begin(pass->thread_pool, samples, classes, NULL, pass->parameter + channels * classes, score);
	skep_spread_product(pass->thread_pool, CblasNoTrans, CblasNoTrans, samples, classes, channels, ret_inside,
		pass->parameter, 1, score);
	skep_corpus_images(pass->training, pass->op->round, pass->op->microbatch, NULL, label);
	for (size_t i = 0; i < samples; i++)
		sum += skep_token_loss(classes, label[i], (skep_real)samples, score + i * classes);
	return sum / (double)samples;
}

static void backward(const struct skep_layer *layer, const struct skep_pass *pass, const void *in,
	const skep_real *inside, skep_real *gradient, skep_real *ret)
{
	const size_t channels = channels_of(layer), pixels = layer->in / channels, samples = pass->training->samples;
	const size_t classes = layer->model->resnet.classes;
	const skep_real *at_score = inside + samples * channels;
	(void)in, (void)gradient;
	if (pass->gradient) {
		skep_spread_product(pass->thread_pool, CblasTrans, CblasNoTrans, channels, classes, samples, inside,
			at_score, 1, pass->gradient);
		skep_spread_add_rows(
			pass->thread_pool, samples, classes, at_score, pass->gradient + channels * classes);
	}
	if (!ret)
		return;
	skep_spread_product(pass->thread_pool, CblasNoTrans, CblasTrans, samples, channels, classes, at_score,
		pass->parameter, 0, pass->work);
	for (size_t i = 0; i < samples * channels * pixels; i++)
		ret[i] = pass->work[i / pixels] / (skep_real)pixels;
}

const struct skep_layer_type skep_layer_resnet_head = {.name = "head",
	.tensors = tensors,
	.inside = inside,
	.work = work,
	.flop = flop,
	.forward = forward,
	.backward = backward};
