/* SPDX-License-Identifier: Apache-2.0
 *
 * layer_block.c - blocks of a transformer: models/layers/block.c on the GPU, whose parameters lie in the same order.
 *
 * The residual stream is fp32, and so are sums into it; what the products read is bf16. Biases, GELU and residual sums are
 * part of the products. Kept for the way back is what the products and attention made; outputs of norms are made again.
 */
#include "models/cuda/lane.h"
#include "models/layers/norm.h"

/* Each followed by its bias. */
enum { NORM_1, QKV = 2, OUT = 4, NORM_2 = 6, UP = 8, DOWN = 10, PARTS = 12 };

struct block {
	size_t tokens, hidden, feed, qkv, up;
	size_t at[PARTS]; /* in the parameters */
	bool biases;
	float epsilon;
	struct skep_cuda_attention attention;
	const struct skep_cuda_pass *pass;
};

struct kept { /* of one block, in the order in which they lie */
	skep_bf16 *qkv, *out, *up, *bent;
	float *mid, *log_sums, *norm_1, *norm_2;
	float *next; /* the block's output, where another one follows */
};

/* ---- measures ------------------------------------------------------------------------------------------------------------ */

static void place_parts(struct block *b)
{
	const size_t h = b->hidden;
	const size_t matrix[PARTS / 2] = {h, h * b->qkv, h * h, h, h * b->up, b->feed * h};
	const size_t bias[PARTS / 2] = {h, b->qkv, h, h, b->up, h};
	size_t at = 0;
	for (uint32_t part = 0; part < PARTS; part++) {
		b->at[part] = at;
		at += part % 2 == 0 ? matrix[part / 2] : b->biases ? bias[part / 2] : 0;
	}
}

static struct block block_of(const struct skep_layer *layer, uint32_t samples)
{
	const struct skep_model *m = layer->model;
	const bool llama = m->architecture == SKEP_ARCHITECTURE_LLAMA;
	struct block b = {.tokens = (size_t)samples * m->sequence,
		.hidden = m->hidden,
		.feed = m->feed_forward,
		.up = (llama ? 2 : 1) * (size_t)m->feed_forward,
		.biases = !llama,
		.epsilon = (float)m->norm_epsilon,
		.attention = {.samples = samples,
			.sequence = m->sequence,
			.heads = m->heads,
			.kv_heads = m->kv_heads,
			.width = m->hidden / m->heads}};
	b.qkv = (size_t)(m->heads + 2 * m->kv_heads) * b.attention.width;
	place_parts(&b);
	return b;
}

/* The next block's. */
static struct kept carve_kept(const struct block *b, float **rest)
{
	struct kept k;
	k.qkv = skep_cuda_carve_halves(rest, b->tokens * b->qkv);
	k.out = skep_cuda_carve_halves(rest, b->tokens * b->hidden);
	k.up = skep_cuda_carve_halves(rest, b->tokens * b->up);
	k.bent = skep_cuda_carve_halves(rest, b->tokens * b->feed);
	k.mid = skep_cuda_carve(rest, b->tokens * b->hidden);
	k.log_sums = skep_cuda_carve(rest, b->tokens * b->attention.heads);
	k.norm_1 = skep_cuda_carve(rest, b->tokens * SKEP_NORM_KEPT);
	k.norm_2 = skep_cuda_carve(rest, b->tokens * SKEP_NORM_KEPT);
	k.next = skep_cuda_carve(rest, b->tokens * b->hidden);
	return k;
}

static struct kept kept_of(const struct block *b, uint32_t block, const float *inside)
{
	float *rest = (float *)(uintptr_t)inside; /* what is only read is not written through */
	struct kept k = carve_kept(b, &rest);
	for (uint32_t i = 0; i < block; i++)
		k = carve_kept(b, &rest);
	return k;
}

/* As carve_kept() takes them. */
static size_t kept_floats(const struct block *b)
{
	const size_t t = b->tokens;
	return skep_cuda_halves(t * b->qkv) + skep_cuda_halves(t * b->hidden) + skep_cuda_halves(t * b->up) +
	       skep_cuda_halves(t * b->feed) + 2 * skep_cuda_floats(t * b->hidden) +
	       skep_cuda_floats(t * b->attention.heads) + 2 * skep_cuda_floats(t * SKEP_NORM_KEPT);
}

/* Nothing follows the last one. */
static size_t inside(const struct skep_layer *layer, uint32_t samples)
{
	const struct block b = block_of(layer, samples);
	return layer->model->shared * kept_floats(&b) - skep_cuda_floats(b.tokens * b.hidden);
}

static struct skep_cuda_norm norm_of(const struct block *b, uint32_t part)
{
	const float *parameter = b->pass->of.parameter;
	return (struct skep_cuda_norm){.rows = b->tokens,
		.width = b->hidden,
		.weight = parameter + b->at[part],
		.bias = b->biases ? parameter + b->at[part + 1] : NULL,
		.epsilon = b->epsilon};
}

/* ---- forwards ------------------------------------------------------------------------------------------------------------ */

/* x[tokens][in] W + bias. */
static struct skep_cuda_product project(
	const struct block *b, uint32_t part, size_t in, size_t out, const skep_bf16 *x, skep_bf16 *ret)
{
	return (struct skep_cuda_product){.rows = b->tokens,
		.columns = out,
		.inner = in,
		.a = x,
		.b = b->pass->narrowed + b->at[part],
		.c = ret,
		.bias = b->biases ? b->pass->narrowed + b->at[part + 1] : NULL};
}

/* residual + x[tokens][in] W + bias, in fp32. */
static void project_onto(
	const struct block *b, uint32_t part, size_t in, const skep_bf16 *x, const float *residual, float *ret)
{
	struct skep_cuda_product p = project(b, part, in, b->hidden, x, NULL);
	p.wide = true;
	p.c = ret;
	p.add = residual;
	p.bias = b->biases ? b->pass->of.parameter + b->at[part + 1] : NULL;
	skep_cuda_multiply(b->pass->queue, &p);
}

static void forward_one(const struct block *b, const float *x, const struct kept *k, float *ret)
{
	struct skep_cuda_queue *queue = b->pass->queue;
	skep_bf16 *normed = b->pass->own->normed;
	struct skep_cuda_norm norm = norm_of(b, NORM_1);
	skep_cuda_norm_forward(queue, &norm, x, k->norm_1, normed);
	struct skep_cuda_product p = project(b, QKV, b->hidden, b->qkv, normed, k->qkv);
	skep_cuda_multiply(queue, &p);
	if (b->pass->of.rotation)
		skep_cuda_rotate(queue, &b->attention, b->pass->of.rotation, false, k->qkv);
	skep_cuda_attention_forward(queue, &b->attention, k->qkv, k->out, k->log_sums);
	project_onto(b, OUT, b->hidden, k->out, x, k->mid);
	norm = norm_of(b, NORM_2);
	skep_cuda_norm_forward(queue, &norm, k->mid, k->norm_2, normed);
	p = project(b, UP, b->hidden, b->up, normed, b->biases ? k->bent : k->up);
	if (b->biases) {
		p.bend = SKEP_CUDA_GELU;
		p.aux = k->up;
	}
	skep_cuda_multiply(queue, &p);
	if (!b->biases)
		skep_cuda_swiglu_forward(queue, b->tokens, b->feed, k->up, k->bent);
	project_onto(b, DOWN, b->feed, k->bent, k->mid, ret);
}

static void forward(const struct skep_layer *layer, const struct skep_cuda_pass *pass, const float *in, float *ret_out,
	float *ret_inside)
{
	struct block b = block_of(layer, pass->of.training->samples);
	const float *x = in;
	b.pass = pass;
	for (uint32_t block = 0; block < layer->model->shared; block++) {
		struct kept k = kept_of(&b, block, ret_inside);
		float *out = block + 1 < layer->model->shared ? k.next : ret_out;
		forward_one(&b, x, &k, out);
		x = out;
	}
}

/* ---- backwards ----------------------------------------------------------------------------------------------------------- */

static float *gradient_of(const struct block *b, uint32_t part)
{
	float *gradient = b->pass->of.gradient;
	return gradient && (b->biases || part % 2 == 0) ? gradient + b->at[part] : NULL;
}

/* Adds to the gradients of weight and bias, given x and the gradient at what project() made of it. */
static void project_weights(
	const struct block *b, uint32_t part, size_t in, size_t out, const skep_bf16 *x, const skep_bf16 *gradient)
{
	float *weight = gradient_of(b, part), *bias = gradient_of(b, part + 1);
	if (bias)
		skep_cuda_add_rows(b->pass->queue, b->tokens, out, gradient, bias);
	if (weight)
		skep_cuda_multiply(b->pass->queue, &(struct skep_cuda_product){.rows = in,
							   .columns = out,
							   .inner = b->tokens,
							   .a = x,
							   .transpose_a = true,
							   .b = gradient,
							   .wide = true,
							   .c = weight,
							   .add = weight});
}

/* The gradient at x. */
static struct skep_cuda_product project_back(
	const struct block *b, uint32_t part, size_t in, size_t out, const skep_bf16 *gradient, skep_bf16 *ret)
{
	return (struct skep_cuda_product){.rows = b->tokens,
		.columns = in,
		.inner = out,
		.a = gradient,
		.b = b->pass->narrowed + b->at[part],
		.transpose_b = true,
		.c = ret};
}

/* Through a norm, onto the gradient of the residual stream; own->normed has what came to the norm's output. */
static void norm_back(const struct block *b, uint32_t part, const float *x, const float *kept, float *gradient)
{
	const struct skep_cuda_norm norm = norm_of(b, part);
	skep_cuda_norm_backward(b->pass->queue, &norm, x, kept, b->pass->own->normed, gradient_of(b, part),
		gradient_of(b, part + 1), false, gradient, b->pass->own->narrow_gradient);
}

static void norm_again(const struct block *b, uint32_t part, const float *x, const float *kept)
{
	const struct skep_cuda_norm norm = norm_of(b, part);
	if (b->pass->of.gradient)
		skep_cuda_norm_apply(b->pass->queue, &norm, x, kept, b->pass->own->normed);
}

/* `gradient`: at the block's output, becomes that at `mid`. */
static void backward_feed(const struct block *b, const struct kept *k, float *gradient)
{
	const struct skep_cuda_own *own = b->pass->own;
	struct skep_cuda_queue *queue = b->pass->queue;
	struct skep_cuda_product p =
		project_back(b, DOWN, b->feed, b->hidden, own->narrow_gradient, b->biases ? own->at_up : own->at_bent);
	project_weights(b, DOWN, b->feed, b->hidden, k->bent, own->narrow_gradient);
	if (b->biases) {
		p.bend = SKEP_CUDA_GELU_BACK;
		p.aux = k->up;
	}
	skep_cuda_multiply(queue, &p);
	if (!b->biases)
		skep_cuda_swiglu_backward(queue, b->tokens, b->feed, k->up, own->at_bent, own->at_up);
	norm_again(b, NORM_2, k->mid, k->norm_2);
	project_weights(b, UP, b->hidden, b->up, own->normed, own->at_up);
	p = project_back(b, UP, b->hidden, b->up, own->at_up, own->normed);
	skep_cuda_multiply(queue, &p);
	norm_back(b, NORM_2, k->mid, k->norm_2, gradient);
}

/* `gradient`: at `mid`, becomes that at the block's input x. */
static void backward_attention(const struct block *b, const float *x, const struct kept *k, float *gradient)
{
	const struct skep_cuda_own *own = b->pass->own;
	struct skep_cuda_queue *queue = b->pass->queue;
	struct skep_cuda_product p = project_back(b, OUT, b->hidden, b->hidden, own->narrow_gradient, own->at_out);
	project_weights(b, OUT, b->hidden, b->hidden, k->out, own->narrow_gradient);
	skep_cuda_multiply(queue, &p);
	skep_cuda_attention_backward(
		queue, &b->attention, k->qkv, k->out, k->log_sums, own->at_out, own->at_qkv, own->along);
	if (b->pass->of.rotation)
		skep_cuda_rotate(queue, &b->attention, b->pass->of.rotation, true, own->at_qkv);
	norm_again(b, NORM_1, x, k->norm_1);
	project_weights(b, QKV, b->hidden, b->qkv, own->normed, own->at_qkv);
	p = project_back(b, QKV, b->hidden, b->qkv, own->at_qkv, own->normed);
	skep_cuda_multiply(queue, &p);
	norm_back(b, NORM_1, x, k->norm_1, gradient);
}

static void backward(const struct skep_layer *layer, const struct skep_cuda_pass *pass, const float *in,
	const float *inside_, float *gradient)
{
	struct block b = block_of(layer, pass->of.training->samples);
	b.pass = pass;
	for (uint32_t block = layer->model->shared; block-- > 0;) {
		const struct kept k = kept_of(&b, block, inside_);
		const float *x = block > 0 ? kept_of(&b, block - 1, inside_).next : in;
		backward_feed(&b, &k, gradient);
		backward_attention(&b, x, &k, gradient);
	}
}

const struct skep_cuda_layer_type skep_cuda_blocks = {
	.type = &skep_layer_blocks, .inside = inside, .forward = forward, .backward = backward};
