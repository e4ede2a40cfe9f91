/* SPDX-License-Identifier: Apache-2.0
 *
 * layer_bert.c - blocks of a BERT and its head: models/layers/post_block.c and masked_head.c on the GPU, whose parameters lie in
 * the same order. The embedding is in layer_ends.c.
 *
 * A norm stands behind each residual sum, so what goes from block to block is what a norm made: fp32, and rounded for the
 * products that read it. Sums, and gradients through norms, are fp32. Kept for the way back are the sums and what the products
 * and attention made. The head works on the predicted tokens alone, and is fp32 but for what its products read.
 */
#include <assert.h>

#include "models/corpus/data.h"
#include "models/cuda/lane.h"
#include "models/layers/norm.h"

/* Each followed by its bias. */
enum { QKV, OUT = 2, NORM_1 = 4, UP = 6, DOWN = 8, NORM_2 = 10, PARTS = 12 };

struct block {
	size_t tokens, hidden, feed, qkv;
	size_t at[PARTS]; /* in the parameters */
	float epsilon;
	struct skep_cuda_attention attention;
	const struct skep_cuda_pass *pass;
};

struct kept { /* of one block, in the order in which they lie */
	skep_bf16 *qkv, *out, *up, *bent;
	float *sum_1, *sum_2, *log_sums, *norm_1, *norm_2;
	float *next; /* the block's output, where another one follows */
};

/* ---- measures ------------------------------------------------------------------------------------------------------------ */

static struct block block_of(const struct skep_layer *layer, uint32_t samples)
{
	const struct skep_model *m = layer->model;
	struct block b = {.tokens = (size_t)samples * m->sequence,
		.hidden = m->hidden,
		.feed = m->feed_forward,
		.qkv = 3 * (size_t)m->hidden,
		.epsilon = (float)m->norm_epsilon,
		.attention = {.samples = samples,
			.sequence = m->sequence,
			.heads = m->heads,
			.kv_heads = m->heads,
			.width = m->hidden / m->heads,
			.bidirectional = true}};
	const size_t h = b.hidden;
	const size_t weight[PARTS / 2] = {h * b.qkv, h * h, h, h * b.feed, b.feed * h, h};
	const size_t bias[PARTS / 2] = {b.qkv, h, h, b.feed, h, h};
	size_t at = 0;
	for (uint32_t part = 0; part < PARTS; part++) {
		b.at[part] = at;
		at += (part % 2 == 0 ? weight : bias)[part / 2];
	}
	return b;
}

/* The next block's. */
static struct kept carve_kept(const struct block *b, float **rest)
{
	struct kept k;
	k.qkv = skep_cuda_carve_halves(rest, b->tokens * b->qkv);
	k.out = skep_cuda_carve_halves(rest, b->tokens * b->hidden);
	k.up = skep_cuda_carve_halves(rest, b->tokens * b->feed);
	k.bent = skep_cuda_carve_halves(rest, b->tokens * b->feed);
	k.sum_1 = skep_cuda_carve(rest, b->tokens * b->hidden);
	k.sum_2 = skep_cuda_carve(rest, b->tokens * b->hidden);
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

/* As carve_kept() takes them; nothing follows the last one. */
static size_t inside(const struct skep_layer *layer, uint32_t samples)
{
	const struct block b = block_of(layer, samples);
	const size_t t = b.tokens, row = skep_cuda_floats(t * b.hidden);
	const size_t one = skep_cuda_halves(t * b.qkv) + skep_cuda_halves(t * b.hidden) +
	                   2 * skep_cuda_halves(t * b.feed) + 3 * row + skep_cuda_floats(t * b.attention.heads) +
	                   2 * skep_cuda_floats(t * SKEP_NORM_KEPT);
	return layer->model->shared * one - row;
}

static struct skep_cuda_norm norm_of(const struct block *b, uint32_t part)
{
	const float *parameter = b->pass->of.parameter;
	return (struct skep_cuda_norm){.rows = b->tokens,
		.width = b->hidden,
		.weight = parameter + b->at[part],
		.bias = parameter + b->at[part + 1],
		.epsilon = b->epsilon};
}

/* ---- forwards ------------------------------------------------------------------------------------------------------------ */

/* ret = x[tokens][in] W + bias. */
static void project(const struct block *b, uint32_t part, size_t out, const skep_bf16 *x, skep_bf16 *ret)
{
	skep_cuda_multiply(b->pass->queue, &(struct skep_cuda_product){.rows = b->tokens,
						   .columns = out,
						   .inner = b->hidden,
						   .a = x,
						   .b = b->pass->narrowed + b->at[part],
						   .c = ret,
						   .bias = b->pass->narrowed + b->at[part + 1]});
}

/* ret = residual + x[tokens][in] W + bias, in fp32. */
static void project_onto(
	const struct block *b, uint32_t part, size_t in, const skep_bf16 *x, const float *residual, float *ret)
{
	skep_cuda_multiply(b->pass->queue, &(struct skep_cuda_product){.rows = b->tokens,
						   .columns = b->hidden,
						   .inner = in,
						   .a = x,
						   .b = b->pass->narrowed + b->at[part],
						   .wide = true,
						   .c = ret,
						   .bias = b->pass->of.parameter + b->at[part + 1],
						   .add = residual});
}

/* `ret` has what the first norm makes until the second one makes the block's output. */
static void forward_one(const struct block *b, const float *x, const struct kept *k, float *ret)
{
	struct skep_cuda_queue *queue = b->pass->queue;
	skep_bf16 *narrowed = b->pass->own->normed;
	const struct skep_cuda_norm norm_1 = norm_of(b, NORM_1), norm_2 = norm_of(b, NORM_2);
	skep_cuda_narrow(queue, b->tokens * b->hidden, x, narrowed);
	project(b, QKV, b->qkv, narrowed, k->qkv);
	skep_cuda_attention_forward(queue, &b->attention, k->qkv, k->out, k->log_sums);
	project_onto(b, OUT, b->hidden, k->out, x, k->sum_1);
	skep_cuda_norm_forward_wide(queue, &norm_1, k->sum_1, k->norm_1, narrowed, ret);
	project(b, UP, b->feed, narrowed, k->up);
	skep_cuda_gelu_erf_forward(queue, b->tokens * b->feed, k->up, k->bent);
	project_onto(b, DOWN, b->feed, k->bent, ret, k->sum_2);
	skep_cuda_norm_forward_wide(queue, &norm_2, k->sum_2, k->norm_2, NULL, ret);
}

static void forward(const struct skep_layer *layer, const struct skep_cuda_pass *pass, const float *in, float *ret_out,
	float *ret_inside)
{
	struct block b = block_of(layer, pass->of.training->samples);
	const float *x = in;
	b.pass = pass;
	for (uint32_t block = 0; block < layer->model->shared; block++) {
		const struct kept k = kept_of(&b, block, ret_inside);
		float *out = block + 1 < layer->model->shared ? k.next : ret_out;
		forward_one(&b, x, &k, out);
		x = out;
	}
}

/* ---- backwards ----------------------------------------------------------------------------------------------------------- */

static float *gradient_of(const struct block *b, uint32_t part)
{
	return b->pass->of.gradient ? b->pass->of.gradient + b->at[part] : NULL;
}

/* Adds to the gradients of weight and bias, given x and the gradient at what the product made of it. */
static void project_parameters(
	const struct block *b, uint32_t part, size_t in, size_t out, const skep_bf16 *x, const skep_bf16 *gradient)
{
	float *weight = gradient_of(b, part);
	if (!weight)
		return;
	skep_cuda_add_rows(b->pass->queue, b->tokens, out, gradient, gradient_of(b, part + 1));
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

/* The gradient at x, in bf16 or, where there is a `sum`, added to that. */
static void project_back(const struct block *b, uint32_t part, size_t in, size_t out, const skep_bf16 *gradient,
	skep_bf16 *ret, float *sum)
{
	skep_cuda_multiply(b->pass->queue, &(struct skep_cuda_product){.rows = b->tokens,
						   .columns = in,
						   .inner = out,
						   .a = gradient,
						   .b = b->pass->narrowed + b->at[part],
						   .transpose_b = true,
						   .wide = sum != NULL,
						   .c = sum ? (void *)sum : (void *)ret,
						   .add = sum});
}

/* `gradient`: at what the norm made, becomes that at its sum, and is rounded in own->narrow_gradient. */
static void norm_back(const struct block *b, uint32_t part, const float *sum, const float *kept, float *gradient)
{
	const struct skep_cuda_norm norm = norm_of(b, part);
	skep_cuda_norm_backward_wide(b->pass->queue, &norm, sum, kept, gradient, gradient_of(b, part),
		gradient_of(b, part + 1), b->pass->own->narrow_gradient);
}

/* `gradient`: at the block's output, becomes that at the first sum. */
static void backward_feed(const struct block *b, const struct kept *k, float *gradient)
{
	const struct skep_cuda_own *own = b->pass->own;
	struct skep_cuda_queue *queue = b->pass->queue;
	const struct skep_cuda_norm norm_1 = norm_of(b, NORM_1);
	norm_back(b, NORM_2, k->sum_2, k->norm_2, gradient);
	project_parameters(b, DOWN, b->feed, b->hidden, k->bent, own->narrow_gradient);
	project_back(b, DOWN, b->feed, b->hidden, own->narrow_gradient, own->at_bent, NULL);
	skep_cuda_gelu_erf_backward(queue, b->tokens * b->feed, k->up, own->at_bent, own->at_up);
	if (b->pass->of.gradient)
		skep_cuda_norm_apply(queue, &norm_1, k->sum_1, k->norm_1, own->normed);
	project_parameters(b, UP, b->hidden, b->feed, own->normed, own->at_up);
	project_back(b, UP, b->hidden, b->feed, own->at_up, NULL, gradient);
	norm_back(b, NORM_1, k->sum_1, k->norm_1, gradient);
}

/* `gradient`: at the first sum, becomes that at the block's input x. */
static void backward_attention(const struct block *b, const float *x, const struct kept *k, float *gradient)
{
	const struct skep_cuda_own *own = b->pass->own;
	struct skep_cuda_queue *queue = b->pass->queue;
	const size_t numbers = b->tokens * b->hidden;
	project_parameters(b, OUT, b->hidden, b->hidden, k->out, own->narrow_gradient);
	project_back(b, OUT, b->hidden, b->hidden, own->narrow_gradient, own->at_out, NULL);
	skep_cuda_attention_backward(
		queue, &b->attention, k->qkv, k->out, k->log_sums, own->at_out, own->at_qkv, own->along);
	if (b->pass->of.gradient)
		skep_cuda_narrow(queue, numbers, x, own->normed);
	project_parameters(b, QKV, b->hidden, b->qkv, own->normed, own->at_qkv);
	project_back(b, QKV, b->hidden, b->qkv, own->at_qkv, NULL, gradient);
	skep_cuda_narrow(queue, numbers, gradient, own->narrow_gradient);
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

const struct skep_cuda_layer_type skep_cuda_post_blocks = {
	.type = &skep_layer_post_blocks, .inside = inside, .forward = forward, .backward = backward};

/* ---- head ---------------------------------------------------------------------------------------------------------------- */

enum { DENSE, NORM = 2, BIAS = 4, TABLE, HEAD_PARTS };

struct head {
	const struct skep_model *model;
	const struct skep_cuda_pass *pass;
	size_t rows, hidden, vocabulary,
		stride; /* rows: tokens that are predicted; from one row's scores to the next */
	size_t at[HEAD_PARTS];
	float *dense, *bent, *norm; /* what is kept: before and behind the bend, of the norm, ... */
	skep_bf16 *score;           /* ... and the gradient at the scores */
	const int32_t *place;       /* of each row, among all tokens */
	const skep_bf16 *table;
	float *gradient, *table_gradient; /* NULL: not counted */
};

/* So many columns that products are fast: layer_ends.c. */
static size_t stride_of(const struct skep_model *m)
{
	return ((size_t)m->vocabulary + SKEP_CUDA_ROWS_BEHIND) / 8 * 8;
}

static size_t head_inside(const struct skep_layer *layer, uint32_t samples)
{
	const struct skep_model *m = layer->model;
	const size_t rows = (size_t)samples * m->predicted;
	return 2 * skep_cuda_floats(rows * m->hidden) + skep_cuda_floats(rows * SKEP_NORM_KEPT) +
	       skep_cuda_halves(rows * stride_of(m));
}

static struct head head_of(const struct skep_layer *layer, const struct skep_cuda_pass *pass, const float *inside_)
{
	const struct skep_model *m = layer->model;
	float *rest = (float *)(uintptr_t)inside_; /* what is only read is not written through */
	struct head h = {.model = m,
		.pass = pass,
		.rows = (size_t)pass->of.training->samples * m->predicted,
		.hidden = m->hidden,
		.vocabulary = m->vocabulary,
		.stride = stride_of(m),
		.gradient = pass->of.gradient};
	const size_t size[HEAD_PARTS] = {h.hidden * h.hidden, h.hidden, h.hidden, h.hidden, h.vocabulary, 0};
	for (uint32_t part = 0; part + 1 < HEAD_PARTS; part++)
		h.at[part + 1] = h.at[part] + size[part];
	h.dense = skep_cuda_carve(&rest, h.rows * h.hidden);
	h.bent = skep_cuda_carve(&rest, h.rows * h.hidden);
	h.norm = skep_cuda_carve(&rest, h.rows * SKEP_NORM_KEPT);
	h.score = skep_cuda_carve_halves(&rest, h.rows * h.stride);
	h.place = pass->own->targets + h.rows + 1;
	h.table = pass->shared ? pass->shared : pass->narrowed + h.at[TABLE];
	if (h.gradient)
		h.table_gradient = pass->of.shared ? pass->of.shared_gradient : h.gradient + h.at[TABLE];
	return h;
}

static struct skep_cuda_norm head_norm_of(const struct head *h)
{
	const float *weight = h->pass->of.parameter + h->at[NORM];
	return (struct skep_cuda_norm){.rows = h->rows,
		.width = h->hidden,
		.weight = weight,
		.bias = weight + h->hidden,
		.epsilon = (float)h->model->norm_epsilon};
}

/* To the device: a place that is not used, targets, and places among all tokens. */
static void bring_targets(const struct head *h)
{
	const struct skep_cuda_pass *pass = h->pass;
	struct skep_diag diag = {0};
	int32_t *target = pass->lane->targets, *place = target + h->rows + 1, *id = place + h->rows;
	/* The worker of the first stage drew the same for this microbatch. */
	bool drawn = skep_corpus_masked(pass->of.training, pass->of.op->round, pass->of.op->microbatch, id,
		(uint32_t *)place, target + 1, &diag);
	assert(drawn);
	(void)drawn;
	target[0] = 0;
	for (size_t i = 0; i < h->rows; i++)
		place[i] += (int32_t)(i / h->model->predicted * h->model->sequence);
	skep_cuda_copy(pass->queue, pass->own->targets, target, (2 * h->rows + 1) * sizeof *target);
}

static void head(const struct skep_layer *layer, const struct skep_cuda_pass *pass, const float *in, float *ret_out,
	float *ret_inside)
{
	const struct head h = head_of(layer, pass, ret_inside);
	const struct skep_cuda_norm norm = head_norm_of(&h);
	skep_bf16 *narrowed = pass->own->normed;
	(void)ret_out;
	bring_targets(&h);
	skep_cuda_gather(pass->queue, h.rows, h.hidden, h.place, in, narrowed);
	skep_cuda_multiply(pass->queue, &(struct skep_cuda_product){.rows = h.rows,
						.columns = h.hidden,
						.inner = h.hidden,
						.a = narrowed,
						.b = pass->narrowed + h.at[DENSE],
						.wide = true,
						.c = h.dense,
						.bias = pass->of.parameter + h.at[DENSE + 1]});
	skep_cuda_wide_gelu_erf_forward(pass->queue, h.rows * h.hidden, h.dense, h.bent);
	skep_cuda_norm_forward(pass->queue, &norm, h.bent, h.norm, narrowed);
	skep_cuda_multiply(pass->queue, &(struct skep_cuda_product){.rows = h.rows,
						.columns = h.stride,
						.inner = h.hidden,
						.a = narrowed,
						.b = h.table,
						.transpose_b = true,
						.c = h.score,
						.bias = pass->narrowed + h.at[BIAS]});
	/* As one sequence, in which the target of each token is the one that follows. */
	skep_cuda_surprise(pass->queue, 1, (uint32_t)h.rows, (uint32_t)h.vocabulary, h.stride, pass->own->targets,
		h.score, pass->own->losses);
	skep_cuda_copy(pass->queue, pass->lane->losses, pass->own->losses, h.rows * sizeof(float));
}

/* weight[rows][columns] += x^T gradient, over the predicted tokens. */
static void add_weights(const struct head *h, size_t rows, size_t columns, const skep_bf16 *x, size_t x_row,
	const skep_bf16 *gradient, float *weight)
{
	skep_cuda_multiply(h->pass->queue, &(struct skep_cuda_product){.rows = rows,
						   .columns = columns,
						   .inner = h->rows,
						   .a = x,
						   .a_row = x_row,
						   .transpose_a = true,
						   .b = gradient,
						   .wide = true,
						   .c = weight,
						   .add = weight});
}

/* Through the dense layer: at_head has the gradient at what its bend made, and then that at what the layer read. */
static void backward_dense(const struct head *h, const float *in)
{
	const struct skep_cuda_own *own = h->pass->own;
	struct skep_cuda_queue *queue = h->pass->queue;
	const size_t numbers = h->rows * h->hidden;
	skep_cuda_wide_gelu_erf_backward(queue, numbers, h->dense, own->at_head, own->at_head);
	skep_cuda_narrow(queue, numbers, own->at_head, own->at_out);
	if (h->gradient) {
		skep_cuda_gather(queue, h->rows, h->hidden, h->place, in, own->normed);
		skep_cuda_add_wide_rows(queue, h->rows, h->hidden, own->at_head, h->gradient + h->at[DENSE + 1]);
		add_weights(h, h->hidden, h->hidden, own->normed, 0, own->at_out, h->gradient + h->at[DENSE]);
	}
	skep_cuda_multiply(queue, &(struct skep_cuda_product){.rows = h->rows,
					  .columns = h->hidden,
					  .inner = h->hidden,
					  .a = own->at_out,
					  .b = h->pass->narrowed + h->at[DENSE],
					  .transpose_b = true,
					  .wide = true,
					  .c = own->at_head});
}

static void head_backward(const struct skep_layer *layer, const struct skep_cuda_pass *pass, const float *in,
	const float *inside_, float *gradient)
{
	const struct head h = head_of(layer, pass, inside_);
	const struct skep_cuda_own *own = pass->own;
	const struct skep_cuda_norm norm = head_norm_of(&h);
	const size_t numbers = (size_t)pass->of.training->samples * h.model->sequence * h.hidden;
	float *weight = h.gradient ? h.gradient + h.at[NORM] : NULL;
	if (h.gradient) {
		skep_cuda_norm_apply(pass->queue, &norm, h.bent, h.norm, own->normed);
		skep_cuda_add_strided_rows(
			pass->queue, h.rows, h.vocabulary, h.stride, h.score, h.gradient + h.at[BIAS]);
		if (!skep_model_table_is_frozen(h.model))
			add_weights(&h, h.vocabulary, h.hidden, h.score, h.stride, own->normed, h.table_gradient);
	}
	skep_cuda_multiply(pass->queue, &(struct skep_cuda_product){.rows = h.rows,
						.columns = h.hidden,
						.inner = h.stride,
						.a = h.score,
						.b = h.table,
						.c = own->normed});
	skep_cuda_norm_backward(pass->queue, &norm, h.bent, h.norm, own->normed, weight,
		weight ? weight + h.hidden : NULL, true, own->at_head, own->narrow_gradient);
	backward_dense(&h, in);
	skep_cuda_clear(pass->queue, gradient, numbers * sizeof *gradient);
	skep_cuda_scatter(pass->queue, h.rows, h.hidden, h.place, own->at_head, gradient);
	skep_cuda_narrow(pass->queue, numbers, gradient, own->narrow_gradient);
}

const struct skep_cuda_layer_type skep_cuda_masked_head = {
	.type = &skep_layer_masked_head, .inside = head_inside, .forward = head, .backward = head_backward};
