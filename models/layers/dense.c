/* SPDX-License-Identifier: Apache-2.0
 *
 * dense.c - the layers of a multi-layer perceptron: Y[B][out] = f(X[B][in] W[in][out] + b), and the last one, without f, whose
 * loss is the mean squared error against the corpus's targets. Kept: the slopes f'(...), or in the last layer the
 * gradient of the loss.
 */
#include "models/corpus/data.h"
#include "models/layers/feed.h"
#include "models/layers/layer.h"
#include "models/layers/spread.h"

/* What an activation takes away from the size of a signal, to be made up for by the weights before it: He et al., arXiv
 * 1502.01852, for relu and its like; 5/3 is the usual figure for tanh. The last layer has no activation. */
static float gain(const struct skep_layer *layer)
{
	if (layer->type == &skep_layer_squares)
		return 1.0f;
	return layer->model->activation == SKEP_ACTIVATION_TANH ? 5.0f / 3.0f : 1.41421356f;
}

/* Weights and biases uniform on [-limit, limit): weights of variance gain^2 / in. Biases as large as the weights spread the
 * bends of a layer over the range of its inputs, which is what a model of one input learns from first. */
static uint32_t tensors(const struct skep_layer *layer, struct skep_tensor ret[SKEP_TENSORS_MAX])
{
	float limit = gain(layer) * sqrtf(3.0f / (float)layer->in);
	struct skep_tensor weight = {.name = "weight",
		.rows = layer->in,
		.columns = layer->out,
		.draw = SKEP_DRAW_UNIFORM,
		.size = limit,
		.role = SKEP_TENSOR_MATRIX,
		.decays = true};
	struct skep_tensor bias = weight;
	bias.name = "bias";
	bias.rows = 1;
	bias.role = SKEP_TENSOR_VECTOR;
	uint32_t count = skep_tensor_add(ret, 0, &weight);
	return skep_tensor_add(ret, count, &bias);
}

static size_t inside(const struct skep_layer *layer)
{
	return layer->out;
}

static uint64_t flop(const struct skep_layer *layer, uint64_t *ret_attention)
{
	*ret_attention = 0;
	return 2 * (uint64_t)layer->in * layer->out;
}

static size_t bias_offset(const struct skep_layer *layer)
{
	return (size_t)layer->in * layer->out;
}

struct bend {
	enum skep_activation activation;
	uint32_t width;
	const skep_real *bias;
	skep_real *value, *slope;
};

static void bend_rows(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct bend *b = context;
	const size_t at = first * b->width;
	(void)member;
	skep_activation_apply(b->activation, (uint32_t)(end - first), b->width, b->bias, b->value + at, b->slope + at);
}

static double forward(const struct skep_layer *layer, const struct skep_pass *pass, const void *in, skep_real *ret_out,
	skep_real *ret_inside)
{
	uint32_t samples = pass->training->samples;
	const struct bend bend = {.activation = layer->model->activation,
		.width = layer->out,
		.bias = pass->parameter + bias_offset(layer),
		.value = ret_out,
		.slope = ret_inside};
	skep_spread_product(pass->thread_pool, CblasNoTrans, CblasNoTrans, samples, layer->out, layer->in, in,
		pass->parameter, 0, ret_out);
	skep_thread_pool_for(pass->thread_pool, samples, skep_spread_rows(layer->out), bend_rows, &bend);
	return 0;
}

/* Mean of (prediction - target)^2 over n elements; *prediction becomes the gradient of that mean. */
static double squared_error(size_t n, const skep_real *target, skep_real *prediction)
{
	double sum = 0.0;
	for (size_t i = 0; i < n; i++) {
		skep_real error = prediction[i] - target[i];
		sum += (double)error * (double)error;
		prediction[i] = 2 * error / (skep_real)n;
	}
	return sum / (double)n;
}

static double forward_last(const struct skep_layer *layer, const struct skep_pass *pass, const void *in,
	skep_real *ret_out, skep_real *ret_inside)
{
	(void)ret_out;
	uint32_t samples = pass->training->samples;
	const skep_real *bias = pass->parameter + bias_offset(layer);
	skep_spread_product(pass->thread_pool, CblasNoTrans, CblasNoTrans, samples, layer->out, layer->in, in,
		pass->parameter, 0, ret_inside);
	for (uint32_t i = 0; i < samples; i++)
		for (uint32_t j = 0; j < layer->out; j++)
			ret_inside[(size_t)i * layer->out + j] += bias[j];
	skep_corpus_microbatch(pass->training, pass->op->round, pass->op->microbatch, NULL, pass->work);
	return squared_error((size_t)samples * layer->out, pass->work, ret_inside);
}

/* The gradient at the sum that a layer's activation was applied to is called its delta. */
static void backward_delta(const struct skep_layer *layer, const struct skep_pass *pass, const void *in,
	const skep_real *delta, skep_real *ret)
{
	uint32_t samples = pass->training->samples;
	if (pass->gradient) {
		skep_spread_add_rows(
			pass->thread_pool, samples, layer->out, delta, pass->gradient + bias_offset(layer));
		skep_spread_product(pass->thread_pool, CblasTrans, CblasNoTrans, layer->in, layer->out, samples, in,
			delta, 1, pass->gradient);
	}
	if (ret)
		skep_spread_product(pass->thread_pool, CblasNoTrans, CblasTrans, samples, layer->in, layer->out, delta,
			pass->parameter, 0, ret);
}

struct bent {
	const skep_real *slope;
	skep_real *gradient;
};

static void unbend(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct bent *b = context;
	(void)member;
	for (size_t i = first; i < end; i++)
		b->gradient[i] *= b->slope[i];
}

static void backward(const struct skep_layer *layer, const struct skep_pass *pass, const void *in,
	const skep_real *slope, skep_real *gradient, skep_real *ret)
{
	const struct bent bent = {slope, gradient};
	skep_thread_pool_for(
		pass->thread_pool, (size_t)pass->training->samples * layer->out, SKEP_SPREAD_NUMBERS, unbend, &bent);
	backward_delta(layer, pass, in, gradient, ret);
}

static void backward_last(const struct skep_layer *layer, const struct skep_pass *pass, const void *in,
	const skep_real *delta, skep_real *gradient, skep_real *ret)
{
	(void)gradient;
	backward_delta(layer, pass, in, delta, ret);
}

const struct skep_layer_type skep_layer_dense = {
	.name = "dense", .tensors = tensors, .inside = inside, .flop = flop, .forward = forward, .backward = backward};

const struct skep_layer_type skep_layer_squares = {.name = "squares",
	.tensors = tensors,
	.inside = inside,
	.flop = flop,
	.forward = forward_last,
	.backward = backward_last};
