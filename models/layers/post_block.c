/* SPDX-License-Identifier: Apache-2.0
 *
 * post_block.c - a group of `shared` transformer blocks that have the same parameters, one after the other, whose norms stand
 * behind the residual sums: those of BERT (Devlin et al. 2018, arXiv 1810.04805; Vaswani et al. 2017). A block is
 *
 *     mid = norm_1(x + attention(x)),  out = norm_2(mid + down(gelu(up(mid))))
 *
 * with LayerNorm, biases, GELU by erf, and attention in which each token sees all of its sequence. Kept for the way back are
 * both sums and what is inside of the two parts; `mid` and the output of the bend are made again. Products are Y = X W with
 * W[in][out]. Queries, keys and values are one product. Such a model is not split among ranks (read/shard.c).
 */
#include <assert.h>

#include "models/layers/attention.h"
#include "models/layers/feed.h"
#include "models/layers/layer.h"
#include "models/layers/norm.h"
#include "models/layers/spread.h"

/* Each followed by its bias. */
enum { QKV, OUT = 2, NORM_1 = 4, UP = 6, DOWN = 8, NORM_2 = 10, PARTS = 12 };

struct block {                            /* the group's measures, and of one pass */
	size_t tokens, hidden, qkv, feed; /* of all samples; widths */
	size_t at[PARTS];                 /* in the parameters */
	struct skep_attention attention;
	const struct skep_model *model;
	const struct skep_pass *pass;
};

struct kept { /* of one block, in the order in which they lie */
	skep_real *qkv, *out, *sum_1, *up, *sum_2, *log_sums, *norm_1, *norm_2;
	skep_real *next; /* the block's output, where another one follows */
};

/* ---- measures --------------------------------------------------------------------------------------------------- */

/* Weights of deviation 0.02, as BERT begins with. */
static void shape_of(const struct block *b, uint32_t part, struct skep_tensor *ret)
{
	static const char *const names[PARTS] = {"attention.self.qkv.weight", "attention.self.qkv.bias",
		"attention.output.dense.weight", "attention.output.dense.bias", "attention.output.LayerNorm.weight",
		"attention.output.LayerNorm.bias", "intermediate.dense.weight", "intermediate.dense.bias",
		"output.dense.weight", "output.dense.bias", "output.LayerNorm.weight", "output.LayerNorm.bias"};
	const bool norm = part == NORM_1 || part == NORM_2, matrix = part % 2 == 0 && !norm;
	const uint32_t of = part & ~1u;
	*ret = (struct skep_tensor){.name = names[part],
		.rows = !matrix ? 1 : (uint32_t)(part == DOWN ? b->feed : b->hidden),
		.columns = (uint32_t)(of == QKV  ? b->qkv
				      : of == UP ? b->feed
						 : b->hidden),
		.draw = matrix ? SKEP_DRAW_NORMAL : SKEP_DRAW_CONSTANT,
		.size = matrix ? 0.02f
	                : norm ? 1.0f
	                       : 0.0f,
		.role = matrix ? SKEP_TENSOR_MATRIX : SKEP_TENSOR_VECTOR,
		.cut = of == QKV || of == UP         ? SKEP_TENSOR_BY_COLUMNS
	               : part == OUT || part == DOWN ? SKEP_TENSOR_BY_ROWS
	                                             : SKEP_TENSOR_REPLICATED,
		.decays = matrix};
}

static struct block block_of(const struct skep_layer *layer, uint32_t samples)
{
	const struct skep_model *m = layer->model;
	struct block b = {.tokens = (size_t)samples * m->sequence,
		.hidden = m->hidden,
		.qkv = 3 * (size_t)m->hidden,
		.feed = m->feed_forward,
		.attention = {.samples = samples,
			.sequence = m->sequence,
			.heads = m->heads,
			.kv_heads = m->heads,
			.width = m->hidden / m->heads,
			.bidirectional = true},
		.model = m};
	size_t at = 0;
	assert(skep_model_ranks(m) == 1 && m->kv_heads == m->heads);
	for (uint32_t part = 0; part < PARTS; part++) {
		struct skep_tensor tensor;
		shape_of(&b, part, &tensor);
		b.at[part] = at;
		at += (size_t)tensor.rows * tensor.columns;
	}
	return b;
}

static uint32_t tensors(const struct skep_layer *layer, struct skep_tensor ret[SKEP_TENSORS_MAX])
{
	const struct block b = block_of(layer, 1);
	uint32_t count = 0;
	for (uint32_t part = 0; part < PARTS; part++) {
		struct skep_tensor tensor;
		shape_of(&b, part, &tensor);
		count = skep_tensor_add(ret, count, &tensor);
	}
	return count;
}

/* Of one block the sums before its norms, and what these keep. */
static size_t kept_between(const struct block *b)
{
	return b->tokens * (2 * b->hidden + 2 * SKEP_NORM_KEPT);
}

static size_t between(const struct skep_layer *layer)
{
	const struct block b = block_of(layer, 1);
	const size_t n = layer->model->shared;
	return n * kept_between(&b) + (n - 1) * b.tokens * b.hidden;
}

/* Of one block, its output left out. */
static size_t kept_numbers(const struct block *b)
{
	return b->tokens * (b->qkv + b->hidden + b->feed + b->attention.heads) + kept_between(b);
}

static size_t inside(const struct skep_layer *layer)
{
	const struct block b = block_of(layer, 1);
	const size_t n = layer->model->shared;
	return n * kept_numbers(&b) + (n - 1) * b.tokens * b.hidden;
}

static struct kept kept_of(const struct block *b, uint32_t block, skep_real *inside)
{
	const size_t rows = b->tokens * b->hidden;
	struct kept k = {.qkv = inside + block * (kept_numbers(b) + rows)};
	k.out = k.qkv + b->tokens * b->qkv;
	k.sum_1 = k.out + rows;
	k.up = k.sum_1 + rows;
	k.sum_2 = k.up + b->tokens * b->feed;
	k.log_sums = k.sum_2 + rows;
	k.norm_1 = k.log_sums + b->tokens * b->attention.heads;
	k.norm_2 = k.norm_1 + b->tokens * SKEP_NORM_KEPT;
	k.next = k.norm_2 + b->tokens * SKEP_NORM_KEPT;
	return k;
}

/* Backwards, of the feed-forward part the gradients at its sum, at its bend and at what bends, and the value of the bend; of
 * attention the gradients at its output and at queries, keys and values. */
static size_t work(const struct skep_layer *layer, uint32_t samples)
{
	const struct block b = block_of(layer, samples);
	const size_t feed = b.hidden + 3 * b.feed, attention = b.hidden + b.qkv;
	return b.tokens * (feed > attention ? feed : attention);
}

static size_t strips(const struct skep_layer *layer)
{
	const struct block b = block_of(layer, 1);
	return skep_attention_work(&b.attention);
}

/* Weights, and all pairs of tokens. */
static uint64_t flop(const struct skep_layer *layer, uint64_t *ret_attention)
{
	const struct block b = block_of(layer, 1);
	const uint64_t n = layer->model->shared, weights = b.hidden * (b.qkv + b.hidden) + 2 * b.hidden * b.feed;
	*ret_attention = n * 4 * b.tokens * b.tokens * b.hidden;
	return n * 2 * b.tokens * weights + *ret_attention;
}

/* ---- forwards --------------------------------------------------------------------------------------------------- */

static struct block block_for(const struct skep_layer *layer, const struct skep_pass *pass)
{
	struct block b = block_of(layer, pass->training->samples);
	b.pass = pass;
	b.attention.thread_pool = pass->thread_pool;
	return b;
}

static const skep_real *parameter_of(const struct block *b, uint32_t part)
{
	return b->pass->parameter + b->at[part];
}

static struct skep_norm norm_of(const struct block *b, uint32_t part)
{
	return (struct skep_norm){.rows = b->tokens,
		.width = b->hidden,
		.weight = parameter_of(b, part),
		.bias = parameter_of(b, part + 1),
		.epsilon = (skep_real)b->model->norm_epsilon,
		.thread_pool = b->pass->thread_pool};
}

/* ret[tokens][out] = residual + bias + x[tokens][in] W; the first may be NULL. */
static void project(const struct block *b, uint32_t part, size_t in, size_t out, const skep_real *x,
	const skep_real *residual, skep_real *ret)
{
	skep_spread_begin(b->pass->thread_pool, b->tokens, out, residual, parameter_of(b, part + 1), ret);
	skep_spread_product(
		b->pass->thread_pool, CblasNoTrans, CblasNoTrans, b->tokens, out, in, x, parameter_of(b, part), 1, ret);
}

struct bend {
	size_t width;
	const skep_real *in, *gradient;
	skep_real *ret_value, *ret_gradient; /* the last NULL: forwards */
};

static void bend_rows(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct bend *b = context;
	const size_t rows = end - first, at = first * b->width;
	(void)member;
	if (b->ret_gradient)
		skep_gelu_erf_backward(
			rows, b->width, b->in + at, b->gradient + at, b->ret_value + at, b->ret_gradient + at);
	else
		skep_gelu_erf_forward(rows, b->width, b->in + at, b->ret_value + at);
}

static void bend(const struct block *b, const struct bend *bend)
{
	skep_thread_pool_for(b->pass->thread_pool, b->tokens, skep_spread_rows(bend->width), bend_rows, bend);
}

static void forward_one(const struct block *b, const skep_real *x, const struct kept *k, skep_real *ret)
{
	const size_t h = b->hidden, f = b->feed;
	skep_real *mid = b->pass->work, *bent = mid + b->tokens * h;
	const struct skep_norm norm_1 = norm_of(b, NORM_1), norm_2 = norm_of(b, NORM_2);
	project(b, QKV, h, b->qkv, x, NULL, k->qkv);
	skep_attention_forward(&b->attention, k->qkv, k->out, k->log_sums, b->pass->strips);
	project(b, OUT, h, h, k->out, x, k->sum_1);
	skep_norm_measure(&norm_1, k->sum_1, k->norm_1);
	skep_norm_apply(&norm_1, k->sum_1, k->norm_1, mid);
	project(b, UP, h, f, mid, NULL, k->up);
	bend(b, &(struct bend){.width = f, .in = k->up, .ret_value = bent});
	project(b, DOWN, f, h, bent, mid, k->sum_2);
	skep_norm_measure(&norm_2, k->sum_2, k->norm_2);
	skep_norm_apply(&norm_2, k->sum_2, k->norm_2, ret);
}

static double forward(const struct skep_layer *layer, const struct skep_pass *pass, const void *in, skep_real *ret_out,
	skep_real *ret_inside)
{
	const struct block b = block_for(layer, pass);
	const skep_real *x = in;
	for (uint32_t block = 0; block < layer->model->shared; block++) {
		const struct kept k = kept_of(&b, block, ret_inside);
		skep_real *out = block + 1 < layer->model->shared ? k.next : ret_out;
		forward_one(&b, x, &k, out);
		x = out;
	}
	return 0;
}

/* ---- backwards -------------------------------------------------------------------------------------------------- */

static skep_real *gradient_of(const struct block *b, uint32_t part)
{
	return b->pass->gradient ? b->pass->gradient + b->at[part] : NULL;
}

/* Adds to the gradients of a product's weight and bias, given x and the gradient at what it made of that. */
static void project_parameters(
	const struct block *b, uint32_t part, size_t in, size_t out, const skep_real *x, const skep_real *gradient)
{
	if (!b->pass->gradient)
		return;
	skep_spread_add_rows(b->pass->thread_pool, b->tokens, out, gradient, gradient_of(b, part + 1));
	skep_spread_product(b->pass->thread_pool, CblasTrans, CblasNoTrans, in, out, b->tokens, x, gradient, 1,
		gradient_of(b, part));
}

/* ret[tokens][in] = beta ret + the gradient at x. */
static void project_back(const struct block *b, uint32_t part, size_t in, size_t out, const skep_real *gradient,
	skep_real beta, skep_real *ret)
{
	skep_spread_product(b->pass->thread_pool, CblasNoTrans, CblasTrans, b->tokens, in, out, gradient,
		parameter_of(b, part), beta, ret);
}

/* `gradient`, at what a norm made of `sum`, is used up; ret: that at `sum`. */
static void norm_back(const struct block *b, uint32_t part, const skep_real *sum, const skep_real *kept,
	skep_real *gradient, skep_real *ret)
{
	const struct skep_norm norm = norm_of(b, part);
	memset(ret, 0, b->tokens * b->hidden * sizeof *ret);
	skep_norm_backward(&norm, sum, kept, gradient, gradient_of(b, part), gradient_of(b, part + 1), ret);
}

/* `gradient`: at the block's output, becomes that at the first sum. */
static void backward_feed(const struct block *b, const struct kept *k, skep_real *gradient)
{
	const size_t h = b->hidden, f = b->feed;
	skep_real *at_sum = b->pass->work, *bent = at_sum + b->tokens * h;
	skep_real *at_bent = bent + b->tokens * f, *at_up = at_bent + b->tokens * f, *mid = gradient;
	const struct skep_norm norm_1 = norm_of(b, NORM_1);
	norm_back(b, NORM_2, k->sum_2, k->norm_2, gradient, at_sum);
	project_back(b, DOWN, f, h, at_sum, 0, at_bent);
	bend(b, &(struct bend){.width = f, .in = k->up, .gradient = at_bent, .ret_value = bent, .ret_gradient = at_up});
	project_parameters(b, DOWN, f, h, bent, at_sum);
	if (b->pass->gradient)
		skep_norm_apply(&norm_1, k->sum_1, k->norm_1, mid);
	project_parameters(b, UP, h, f, mid, at_up);
	project_back(b, UP, h, f, at_up, 1, at_sum); /* now at `mid` */
	norm_back(b, NORM_1, k->sum_1, k->norm_1, at_sum, gradient);
}

/* `gradient`: at the first sum, becomes that at the block's input x, if that is `wanted`. */
static void backward_attention(
	const struct block *b, const skep_real *x, const struct kept *k, bool wanted, skep_real *gradient)
{
	const size_t h = b->hidden;
	skep_real *at_out = b->pass->work, *at_qkv = at_out + b->tokens * h;
	project_parameters(b, OUT, h, h, k->out, gradient);
	project_back(b, OUT, h, h, gradient, 0, at_out);
	skep_attention_backward(&b->attention, k->qkv, k->out, k->log_sums, at_out, at_qkv, b->pass->strips);
	project_parameters(b, QKV, h, b->qkv, x, at_qkv);
	if (wanted)
		project_back(b, QKV, h, b->qkv, at_qkv, 1, gradient);
}

static void backward(const struct skep_layer *layer, const struct skep_pass *pass, const void *in,
	const skep_real *inside, skep_real *gradient, skep_real *ret)
{
	const struct block b = block_for(layer, pass);
	for (uint32_t block = layer->model->shared; block-- > 0;) {
		/* The pointers are not written through. */
		const struct kept k = kept_of(&b, block, (skep_real *)inside);
		const skep_real *x = block > 0 ? kept_of(&b, block - 1, (skep_real *)inside).next : in;
		backward_feed(&b, &k, gradient);
		backward_attention(&b, x, &k, block > 0 || ret, gradient);
	}
	if (ret)
		memcpy(ret, gradient, b.tokens * b.hidden * sizeof *ret);
}

const struct skep_layer_type skep_layer_post_blocks = {.name = "blocks",
	.tensors = tensors,
	.inside = inside,
	.between = between,
	.work = work,
	.strips = strips,
	.flop = flop,
	.forward = forward,
	.backward = backward};
