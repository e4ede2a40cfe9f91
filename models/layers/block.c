/* SPDX-License-Identifier: Apache-2.0
 *
 * block.c - a group of `shared` transformer blocks that have the same parameters, one after the other. A block is
 *
 *     mid = x + attention(norm(x)),  out = mid + down(bend(up(norm(mid))))
 *
 * gpt2: LayerNorm, biases, GELU. llama: RMSNorm, no biases, rotary positions, SwiGLU: `up` makes gates and values side by side.
 * Where the model has experts the feed-forward part is a mixture of them (mixture.h), whose matrices lie one behind the other.
 * What it needs for the way back it keeps, but for what is cheap to make again: the outputs of the norms and of the bend.
 * Products are Y = X W with W[in][out]. Queries, keys and values are one product. Residual sums and biases are where the
 * product that ends them begins.
 *
 * Of a shard (Shoeybi et al. 2019, section 3; Korthikanti et al. 2022, section 4.2.2) the products of queries, keys and values
 * and of `up` are split by columns, whole heads of each, and those that follow them by rows. A rank has all tokens inside of
 * the two parts, and its own ones outside, where norms, residual sums and the biases behind the second products are. With N
 * tokens of h numbers on T ranks, a block's forward pass has two all-gathers, of what the norms make, and two reduce-scatters,
 * of what the second products make; its backward pass two reduce-scatters, of the gradients at what the norms made, and four
 * all-gathers, of the gradients at the second products and once more of what the norms make, which is not kept: the last two
 * only where gradients are counted. In each of them a rank sends (T - 1) N / T h numbers. The gradients of tensors that are on
 * every rank, 6 h numbers of gpt2 and 2 h of llama, are summed once in the backward pass of a group of blocks, n of them in a
 * reduce-scatter and an all-gather of (T - 1) ceil(n / T) numbers each.
 */
#include "models/layers/attention.h"
#include "models/layers/feed.h"
#include "models/layers/layer.h"
#include "models/layers/mixture.h"
#include "models/layers/norm.h"
#include "models/layers/spread.h"
#include "models/tensor/ranks.h"

/* Each followed by its bias. */
enum { NORM_1, QKV = 2, OUT = 4, NORM_2 = 6, UP = 8, DOWN = 10, ROUTER = 12, PARTS = 14 };

struct block {                               /* the group's measures, and of one pass */
	size_t tokens, rows;                 /* of all samples, and those that the rank has between the two parts */
	size_t hidden, heads, feed, qkv, up; /* widths; of a shard its own */
	size_t at[PARTS];                    /* in the parameters */
	size_t sum_at[PARTS], sum;           /* of what is on every rank: in `sums`; and numbers of all that */
	skep_real *sums;                     /* of a shard: gradients of these, until they are summed */
	struct skep_ranks ranks;
	bool biases;
	const struct skep_experts *experts; /* NULL: there are none */
	struct skep_attention attention;
	const struct skep_pass *pass;
};

struct kept { /* of one block, in the order in which they lie */
	skep_real *qkv, *out, *mid, *up, *log_sums, *norm_1, *norm_2;
	skep_real *next; /* the block's output, where another one follows */
};

/* ---- measures --------------------------------------------------------------------------------------------------- */

/* Columns of the whole tensor that the ranks share group by group. */
static void group_columns(const struct block *b, uint32_t part, struct skep_tensor *ret)
{
	const uint32_t kv = (uint32_t)(b->qkv - b->heads) / 2, bends = (uint32_t)(b->up / b->feed);
	const uint32_t own[][SKEP_TENSOR_GROUPS_MAX] = {
		{(uint32_t)b->heads, kv, kv}, {(uint32_t)b->feed, bends > 1 ? (uint32_t)b->feed : 0}};
	ret->cut = SKEP_TENSOR_BY_COLUMNS;
	for (uint32_t g = 0; g < SKEP_TENSOR_GROUPS_MAX; g++)
		ret->group[g] = own[part == UP][g] * b->ranks.count;
}

/* Of a matrix, and of the bias behind it; of a norm. */
static size_t out_of(const struct block *b, uint32_t part)
{
	switch (part & ~1u) {
	case QKV:
		return b->qkv;
	case UP:
		return b->up;
	case ROUTER:
		return b->experts ? b->experts->count : 0;
	default:
		return b->hidden;
	}
}

static void shape_of(const struct block *b, uint32_t part, struct skep_tensor *ret)
{
	static const uint32_t norm = 1u << NORM_1 | 1u << NORM_2;
	bool matrix = part % 2 == 0 && !(norm >> part & 1);
	const size_t in = part == DOWN ? b->feed : part == OUT ? b->heads : b->hidden;
	*ret = (struct skep_tensor){.rows = matrix ? (uint32_t)in : 1,
		.columns = (uint32_t)out_of(b, part),
		.role = matrix ? SKEP_TENSOR_MATRIX : SKEP_TENSOR_VECTOR,
		.cut = part == OUT || part == DOWN ? SKEP_TENSOR_BY_ROWS : SKEP_TENSOR_REPLICATED,
		.decays = matrix};
	if ((part & ~1u) == QKV || (part & ~1u) == UP)
		group_columns(b, part & ~1u, ret);
	if ((part % 2 == 1 && !b->biases) || (part >= ROUTER && !b->experts))
		ret->rows = 0;
	if (b->experts && (part == UP || part == DOWN)) {
		ret->stacked = b->experts->count;
		ret->rows *= ret->stacked;
	}
}

static struct block block_of(const struct skep_layer *layer, uint32_t samples)
{
	const struct skep_model *m = layer->model;
	bool llama = m->architecture == SKEP_ARCHITECTURE_LLAMA;
	const uint32_t ranks = skep_model_ranks(m);
	struct block b = {.tokens = (size_t)samples * m->sequence,
		.rows = (size_t)samples * m->sequence / ranks,
		.hidden = m->hidden,
		.heads = (size_t)(m->heads / ranks) * (m->hidden / m->heads),
		.feed = m->feed_forward / ranks,
		.up = (llama ? 2 : 1) * (size_t)(m->feed_forward / ranks),
		.ranks = {.count = ranks},
		.biases = !llama,
		.experts = m->experts.count > 0 ? &m->experts : NULL,
		.attention = {.samples = samples,
			.sequence = m->sequence,
			.heads = m->heads / ranks,
			.kv_heads = m->kv_heads / ranks,
			.width = m->hidden / m->heads}};
	b.qkv = (size_t)(b.attention.heads + 2 * b.attention.kv_heads) * b.attention.width;
	size_t at = 0;
	for (uint32_t part = 0; part < PARTS; part++) {
		struct skep_tensor tensor;
		shape_of(&b, part, &tensor);
		b.at[part] = at;
		at += (size_t)tensor.rows * tensor.columns;
		b.sum_at[part] = b.sum;
		b.sum += tensor.cut == SKEP_TENSOR_REPLICATED ? (size_t)tensor.rows * tensor.columns : 0;
	}
	return b;
}

/* Weights of deviation 0.02, those that end at a residual sum smaller by the root of how many there are (Radford et al. 2019,
 * as GPT-2 is). */
static uint32_t tensors(const struct skep_layer *layer, struct skep_tensor ret[SKEP_TENSORS_MAX])
{
	static const char *const gpt2[PARTS] = {"ln_1.weight", "ln_1.bias", "attn.c_attn.weight", "attn.c_attn.bias",
		"attn.c_proj.weight", "attn.c_proj.bias", "ln_2.weight", "ln_2.bias", "mlp.c_fc.weight",
		"mlp.c_fc.bias", "mlp.c_proj.weight", "mlp.c_proj.bias"};
	static const char *const llama[PARTS] = {[NORM_1] = "input_layernorm.weight",
		[QKV] = "self_attn.qkv_proj.weight",
		[OUT] = "self_attn.o_proj.weight",
		[NORM_2] = "post_attention_layernorm.weight",
		[UP] = "mlp.gate_up_proj.weight",
		[DOWN] = "mlp.down_proj.weight"};
	static const char *const mixture[PARTS] = {[UP] = "block_sparse_moe.experts.w13.weight",
		[DOWN] = "block_sparse_moe.experts.w2.weight",
		[ROUTER] = "block_sparse_moe.gate.weight"};
	struct block b = block_of(layer, 1);
	uint32_t count = 0, blocks = (layer->model->layers - 2) * layer->model->shared;
	for (uint32_t part = 0; part < PARTS; part++) {
		struct skep_tensor tensor;
		shape_of(&b, part, &tensor);
		if (tensor.rows == 0)
			continue;
		tensor.name = (b.biases ? gpt2 : b.experts && mixture[part] ? mixture : llama)[part];
		tensor.draw = tensor.decays ? SKEP_DRAW_NORMAL : SKEP_DRAW_CONSTANT;
		tensor.size = tensor.decays ? 0.02f : part % 2 == 0 ? 1.0f : 0.0f;
		if (part == OUT || part == DOWN)
			tensor.size = 0.02f / sqrtf(2.0f * (float)blocks);
		count = skep_tensor_add(ret, count, &tensor);
	}
	return count;
}

/* Per token: of the feed-forward part, and of all. */
static size_t kept_up(const struct block *b)
{
	return b->experts ? skep_mixture_kept(b->experts, b->feed) : b->up;
}

/* Of one block's rows, between its two parts. */
static size_t kept_between(const struct block *b)
{
	return b->rows * (b->hidden + 2 * SKEP_NORM_KEPT);
}

/* Of one block's tokens, its output left out. */
static size_t kept_numbers(const struct block *b)
{
	return b->tokens * (b->qkv + b->heads + kept_up(b) + b->attention.heads) + kept_between(b);
}

static size_t inside(const struct skep_layer *layer)
{
	struct block b = block_of(layer, 1);
	size_t n = layer->model->shared;
	return n * kept_numbers(&b) + (n - 1) * b.rows * b.hidden;
}

static size_t between(const struct skep_layer *layer)
{
	struct block b = block_of(layer, 1);
	size_t n = layer->model->shared;
	return n * kept_between(&b) + (n - 1) * b.rows * b.hidden;
}

static struct kept kept_of(const struct block *b, uint32_t block, skep_real *inside)
{
	struct kept k = {.qkv = inside + block * (kept_numbers(b) + b->rows * b->hidden)};
	k.out = k.qkv + b->tokens * b->qkv;
	k.mid = k.out + b->tokens * b->heads;
	k.up = k.mid + b->rows * b->hidden;
	k.log_sums = k.up + b->tokens * kept_up(b);
	k.norm_1 = k.log_sums + b->tokens * b->attention.heads;
	k.norm_2 = k.norm_1 + b->rows * SKEP_NORM_KEPT;
	k.next = k.norm_2 + b->rows * SKEP_NORM_KEPT;
	return k;
}

/* The output of a norm, and beside it either what the feed-forward part needs backwards or what attention does. */
static size_t work_before_sums(const struct block *b)
{
	size_t feed = b->experts ? skep_mixture_work(b->experts, b->tokens, b->hidden, b->feed)
	                         : b->tokens * (2 * b->feed + b->up);
	size_t attention = b->tokens * (b->qkv + b->heads);
	return b->tokens * b->hidden + (feed > attention ? feed : attention);
}

/* Of a shard, behind these, gradients of what is on every rank. */
static size_t work(const struct skep_layer *layer, uint32_t samples)
{
	struct block b = block_of(layer, samples);
	return work_before_sums(&b) + skep_ranks_room(layer->model, b.sum);
}

static size_t strips(const struct skep_layer *layer)
{
	struct block b = block_of(layer, 1);
	return skep_attention_work(&b.attention);
}

/* Weights, of experts those of a token's, and the pairs of tokens that the causal mask leaves. */
static uint64_t flop(const struct skep_layer *layer, uint64_t *ret_attention)
{
	struct block b = block_of(layer, 1);
	uint64_t feed = b.hidden * b.up + b.feed * b.hidden, n = layer->model->shared;
	if (b.experts)
		feed = b.experts->per_token * feed + b.hidden * b.experts->count;
	uint64_t weights = b.hidden * (b.qkv + b.heads) + feed;
	*ret_attention = n * 2 * b.tokens * (b.tokens + 1) * b.heads;
	return n * 2 * b.tokens * weights + *ret_attention;
}

/* ---- forwards --------------------------------------------------------------------------------------------------- */

static struct block block_for(const struct skep_layer *layer, const struct skep_pass *pass)
{
	struct block b = block_of(layer, pass->training->samples);
	b.pass = pass;
	b.ranks = skep_ranks_of(layer, pass);
	b.sums = b.ranks.group ? pass->work + work_before_sums(&b) : NULL;
	b.attention.thread_pool = pass->thread_pool;
	return b;
}

static const skep_real *bias_of(const struct block *b, uint32_t part)
{
	return b->biases ? b->pass->parameter + b->at[part + 1] : NULL;
}

static struct skep_norm norm_of(const struct block *b, uint32_t part, const struct skep_layer *layer)
{
	return (struct skep_norm){.rows = b->rows,
		.width = b->hidden,
		.weight = b->pass->parameter + b->at[part],
		.bias = bias_of(b, part),
		.epsilon = (skep_real)layer->model->norm_epsilon,
		.thread_pool = b->pass->thread_pool};
}

/* ret[tokens][out] = residual + bias + x[tokens][in] W; the first two may be NULL. */
static void project(const struct block *b, uint32_t part, size_t in, size_t out, const skep_real *x,
	const skep_real *residual, skep_real *ret)
{
	const skep_real *bias = bias_of(b, part);
	const bool adds = residual || bias;
	if (adds)
		skep_spread_begin(b->pass->thread_pool, b->tokens, out, residual, bias, ret);
	skep_spread_product(b->pass->thread_pool, CblasNoTrans, CblasNoTrans, b->tokens, out, in, x,
		b->pass->parameter + b->at[part], adds ? 1 : 0, ret);
}

struct ending { /* of a product that something is added to */
	const skep_real *residual, *bias;
	skep_real *ret;
	size_t width;
};

static void end_rows(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct ending *b = context;
	(void)member;
	for (size_t i = first; i < end; i++) {
		skep_real *row = b->ret + i * b->width;
		skep_real_add_rows(1, b->width, b->residual + i * b->width, row);
		if (b->bias)
			skep_real_add_rows(1, b->width, b->bias, row);
	}
}

/* The second product of a part, in all rows, and behind it its residual sum, in the own ones. Of a shard each rank makes a
 * term of the product, in `room`. */
static void project_down(const struct block *b, uint32_t part, size_t in, const skep_real *x, const skep_real *residual,
	skep_real *room, skep_real *ret)
{
	const struct ending sum = {residual, bias_of(b, part), ret, b->hidden};
	if (!b->ranks.group) {
		project(b, part, in, b->hidden, x, residual, ret);
		return;
	}
	skep_spread_product(b->pass->thread_pool, CblasNoTrans, CblasNoTrans, b->tokens, b->hidden, in, x,
		b->pass->parameter + b->at[part], 0, room);
	skep_ranks_reduce(&b->ranks, room, ret);
	skep_thread_pool_for(b->pass->thread_pool, b->rows, skep_spread_rows(b->hidden), end_rows, &sum);
}

/* ret[tokens][hidden]: what the norm makes of x[rows][hidden]. */
static void norm_all(
	const struct block *b, const struct skep_norm *norm, const skep_real *x, const skep_real *kept, skep_real *ret)
{
	skep_norm_apply(norm, x, kept, skep_ranks_own(&b->ranks, ret));
	skep_ranks_gather(&b->ranks, ret);
}

struct bend {
	bool swiglu;
	size_t width;
	const skep_real *in, *gradient;
	skep_real *ret_value, *ret_gradient; /* NULL: forwards */
};

static void bend_rows(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct bend *b = context;
	const size_t rows = end - first, at = first * b->width, at_in = b->swiglu ? 2 * at : at;
	(void)member;
	if (b->ret_gradient)
		(b->swiglu ? skep_swiglu_backward : skep_gelu_backward)(
			rows, b->width, b->in + at_in, b->gradient + at, b->ret_value + at, b->ret_gradient + at_in);
	else
		(b->swiglu ? skep_swiglu_forward : skep_gelu_forward)(rows, b->width, b->in + at_in, b->ret_value + at);
}

/* Of all tokens. */
static void bend(const struct block *b, const struct bend *bend)
{
	skep_thread_pool_for(b->pass->thread_pool, b->tokens, skep_spread_rows(bend->width), bend_rows, bend);
}

static bool is_on_every_rank(uint32_t part)
{
	return part == NORM_1 || part == NORM_2 || (part % 2 == 1 && part != QKV + 1 && part != UP + 1);
}

static skep_real *gradient_of(const struct block *b, uint32_t part)
{
	if (!b->pass->gradient || (!b->biases && part % 2 == 1))
		return NULL;
	return b->ranks.group && is_on_every_rank(part) ? b->sums + b->sum_at[part] : b->pass->gradient + b->at[part];
}

static struct skep_mixture mixture_of(const struct block *b, const struct kept *k)
{
	return (struct skep_mixture){.experts = b->experts,
		.tokens = b->tokens,
		.hidden = b->hidden,
		.feed = b->feed,
		.router = b->pass->parameter + b->at[ROUTER],
		.up = b->pass->parameter + b->at[UP],
		.down = b->pass->parameter + b->at[DOWN],
		.router_gradient = gradient_of(b, ROUTER),
		.up_gradient = gradient_of(b, UP),
		.down_gradient = gradient_of(b, DOWN),
		.kept = k->up,
		.work = b->pass->work + b->tokens * b->hidden,
		.thread_pool = b->pass->thread_pool,
		.use = b->pass->experts};
}

static void forward_one(
	const struct skep_layer *layer, const struct block *b, const skep_real *x, const struct kept *k, skep_real *ret)
{
	skep_real *normed = b->pass->work, *bent = normed + b->tokens * b->hidden;
	struct skep_norm norm = norm_of(b, NORM_1, layer);
	skep_norm_measure(&norm, x, k->norm_1);
	norm_all(b, &norm, x, k->norm_1, normed);
	project(b, QKV, b->hidden, b->qkv, normed, NULL, k->qkv);
	if (b->pass->rotation)
		skep_rotation_apply(&b->attention, b->pass->rotation, 0, k->qkv);
	skep_attention_forward(&b->attention, k->qkv, k->out, k->log_sums, b->pass->strips);
	project_down(b, OUT, b->heads, k->out, x, normed, k->mid);
	norm = norm_of(b, NORM_2, layer);
	skep_norm_measure(&norm, k->mid, k->norm_2);
	norm_all(b, &norm, k->mid, k->norm_2, normed);
	if (b->experts) {
		struct skep_mixture mixture = mixture_of(b, k);
		skep_mixture_forward(&mixture, normed, k->mid, ret);
		return;
	}
	project(b, UP, b->hidden, b->up, normed, NULL, k->up);
	bend(b, &(struct bend){.swiglu = !b->biases, .width = b->feed, .in = k->up, .ret_value = bent});
	project_down(b, DOWN, b->feed, bent, k->mid, normed, ret);
}

static double forward(const struct skep_layer *layer, const struct skep_pass *pass, const void *in, skep_real *ret_out,
	skep_real *ret_inside)
{
	struct block b = block_for(layer, pass);
	const skep_real *x = in;
	for (uint32_t block = 0; block < layer->model->shared; block++) {
		struct kept k = kept_of(&b, block, ret_inside);
		skep_real *out = block + 1 < layer->model->shared ? k.next : ret_out;
		forward_one(layer, &b, x, &k, out);
		x = out;
	}
	return 0;
}

/* ---- backwards -------------------------------------------------------------------------------------------------- */

/* Adds to the gradient of a bias, given that at what it is added to. */
static void project_bias(const struct block *b, uint32_t part, size_t rows, size_t out, const skep_real *gradient)
{
	skep_real *bias = gradient_of(b, part + 1);
	if (bias)
		skep_spread_add_rows(b->pass->thread_pool, rows, out, gradient, bias);
}

/* Adds to the gradient of a weight, given x and the gradient at what the product made of it. */
static void project_weights(
	const struct block *b, uint32_t part, size_t in, size_t out, const skep_real *x, const skep_real *gradient)
{
	skep_real *weight = gradient_of(b, part);
	if (weight)
		skep_spread_product(
			b->pass->thread_pool, CblasTrans, CblasNoTrans, in, out, b->tokens, x, gradient, 1, weight);
}

static void project_back(
	const struct block *b, uint32_t part, size_t in, size_t out, const skep_real *gradient, skep_real *ret)
{
	skep_spread_product(b->pass->thread_pool, CblasNoTrans, CblasTrans, b->tokens, in, out, gradient,
		b->pass->parameter + b->at[part], 0, ret);
}

/* The same as below, of experts. */
static void backward_mixture(
	const struct skep_layer *layer, const struct block *b, const struct kept *k, skep_real *gradient)
{
	skep_real *normed = b->pass->work;
	struct skep_norm norm = norm_of(b, NORM_2, layer);
	struct skep_mixture mixture = mixture_of(b, k);
	if (b->pass->gradient)
		skep_norm_apply(&norm, k->mid, k->norm_2, normed);
	skep_mixture_backward(&mixture, normed, gradient, normed);
	skep_norm_backward(&norm, k->mid, k->norm_2, normed, gradient_of(b, NORM_2), NULL, gradient);
}

/* `gradient`: at the own rows of the block's output, becomes that at `mid`. */
static void backward_feed(
	const struct skep_layer *layer, const struct block *b, const struct kept *k, skep_real *gradient)
{
	skep_real *normed = b->pass->work, *at_bent = normed + b->tokens * b->hidden;
	skep_real *bent = at_bent + b->tokens * b->feed, *at_up = bent + b->tokens * b->feed;
	skep_real *own = skep_ranks_own(&b->ranks, normed);
	struct skep_norm norm = norm_of(b, NORM_2, layer);
	const skep_real *all = skep_ranks_gathered(&b->ranks, gradient, normed);
	project_back(b, DOWN, b->feed, b->hidden, all, at_bent);
	bend(b, &(struct bend){.swiglu = !b->biases,
			.width = b->feed,
			.in = k->up,
			.gradient = at_bent,
			.ret_value = bent,
			.ret_gradient = at_up});
	project_bias(b, DOWN, b->rows, b->hidden, gradient);
	project_weights(b, DOWN, b->feed, b->hidden, bent, all);
	if (b->pass->gradient)
		norm_all(b, &norm, k->mid, k->norm_2, normed);
	project_bias(b, UP, b->tokens, b->up, at_up);
	project_weights(b, UP, b->hidden, b->up, normed, at_up);
	project_back(b, UP, b->hidden, b->up, at_up, normed);
	skep_ranks_reduce(&b->ranks, normed, own);
	skep_norm_backward(&norm, k->mid, k->norm_2, own, gradient_of(b, NORM_2), gradient_of(b, NORM_2 + 1), gradient);
}

/* `gradient`: at the own rows of `mid`, becomes that at the block's input x, if that is `wanted`. */
static void backward_attention(const struct skep_layer *layer, const struct block *b, const skep_real *x,
	const struct kept *k, bool wanted, skep_real *gradient)
{
	skep_real *normed = b->pass->work, *at_qkv = normed + b->tokens * b->hidden;
	skep_real *at_out = at_qkv + b->tokens * b->qkv, *own = skep_ranks_own(&b->ranks, normed);
	struct skep_norm norm = norm_of(b, NORM_1, layer);
	const skep_real *all = skep_ranks_gathered(&b->ranks, gradient, normed);
	project_bias(b, OUT, b->rows, b->hidden, gradient);
	project_weights(b, OUT, b->heads, b->hidden, k->out, all);
	project_back(b, OUT, b->heads, b->hidden, all, at_out);
	skep_attention_backward(&b->attention, k->qkv, k->out, k->log_sums, at_out, at_qkv, b->pass->strips);
	if (b->pass->rotation)
		skep_rotation_apply(&b->attention, b->pass->rotation, 1, at_qkv);
	if (b->pass->gradient)
		norm_all(b, &norm, x, k->norm_1, normed);
	project_bias(b, QKV, b->tokens, b->qkv, at_qkv);
	project_weights(b, QKV, b->hidden, b->qkv, normed, at_qkv);
	project_back(b, QKV, b->hidden, b->qkv, at_qkv, normed);
	skep_ranks_reduce(&b->ranks, normed, own);
	skep_norm_backward(
		&norm, x, k->norm_1, own, gradient_of(b, NORM_1), gradient_of(b, NORM_1 + 1), wanted ? gradient : NULL);
}

/* Adds the gradients of what is on every rank, summed over the ranks. */
static void add_sums(const struct block *b)
{
	if (!b->ranks.group || !b->pass->gradient)
		return;
	skep_ranks_sum(&b->ranks, b->sum, b->sums);
	for (uint32_t part = 0; part < PARTS; part++) {
		struct skep_tensor tensor;
		shape_of(b, part, &tensor);
		if (tensor.rows > 0 && tensor.cut == SKEP_TENSOR_REPLICATED)
			skep_real_add_rows(
				1, tensor.columns, b->sums + b->sum_at[part], b->pass->gradient + b->at[part]);
	}
}

static void backward(const struct skep_layer *layer, const struct skep_pass *pass, const void *in,
	const skep_real *inside, skep_real *gradient, skep_real *ret)
{
	struct block b = block_for(layer, pass);
	if (b.sums)
		memset(b.sums, 0, b.sum * sizeof *b.sums);
	for (uint32_t block = layer->model->shared; block-- > 0;) {
		/* The pointers are not written through. */
		struct kept k = kept_of(&b, block, (skep_real *)inside);
		const skep_real *x = block > 0 ? kept_of(&b, block - 1, (skep_real *)inside).next : in;
		(b.experts ? backward_mixture : backward_feed)(layer, &b, &k, gradient);
		backward_attention(layer, &b, x, &k, block > 0 || ret, gradient);
	}
	add_sums(&b);
	if (ret)
		memcpy(ret, gradient, b.rows * b.hidden * sizeof *ret);
}

const struct skep_layer_type skep_layer_blocks = {.name = "blocks",
	.tensors = tensors,
	.inside = inside,
	.between = between,
	.work = work,
	.strips = strips,
	.flop = flop,
	.forward = forward,
	.backward = backward};
