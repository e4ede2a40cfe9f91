/* SPDX-License-Identifier: Apache-2.0
 *
 * masked_head.c - the last layer of a masked language model, BERT's (Devlin et al. 2018, arXiv 1810.04805): of the tokens that
 * are predicted alone (corpus/masking.h), which it gathers, a dense layer with GELU by erf, a LayerNorm, and the product with a
 * table of the vocabulary, to which a bias of each token is added. The loss is the mean cross-entropy of these tokens in nats.
 * A tied head takes the embedding's table, or in another stage a copy of it (core/methods/tied_embeddings.c), which therefore
 * lies behind the other tensors.
 *
 * Kept, of the predicted tokens: what the dense layer makes before it bends, what the norm keeps, and the gradient at the scores.
 */
#include <assert.h>

#include "models/corpus/data.h"
#include "models/layers/feed.h"
#include "models/layers/layer.h"
#include "models/layers/norm.h"
#include "models/layers/spread.h"

enum { DENSE, NORM = 2, BIAS = 4, TABLE, PARTS };

static void shape_of(const struct skep_model *m, uint32_t part, struct skep_tensor *ret)
{
	static const char *const names[PARTS] = {"cls.predictions.transform.dense.weight",
		"cls.predictions.transform.dense.bias", "cls.predictions.transform.LayerNorm.weight",
		"cls.predictions.transform.LayerNorm.bias", "cls.predictions.bias", "cls.predictions.decoder.weight"};
	const bool decays = part == DENSE || part == TABLE;
	*ret = (struct skep_tensor){.name = names[part],
		.rows = part == TABLE   ? m->vocabulary
	                : part == DENSE ? m->hidden
	                                : 1,
		.columns = part == BIAS ? m->vocabulary : m->hidden,
		.draw = decays ? SKEP_DRAW_NORMAL : SKEP_DRAW_CONSTANT,
		.size = decays         ? 0.02f
	                : part == NORM ? 1.0f
	                               : 0.0f,
		.role = part == TABLE   ? SKEP_TENSOR_TABLE
	                : part == DENSE ? SKEP_TENSOR_MATRIX
	                                : SKEP_TENSOR_VECTOR,
		.cut = part == TABLE  ? SKEP_TENSOR_BY_ROWS
	               : part == BIAS ? SKEP_TENSOR_BY_COLUMNS
	                              : SKEP_TENSOR_REPLICATED,
		.decays = decays,
		.copied = part == TABLE && m->copied};
}

static uint32_t tensors(const struct skep_layer *layer, struct skep_tensor ret[SKEP_TENSORS_MAX])
{
	const uint32_t parts = layer->model->tied ? TABLE : PARTS;
	uint32_t count = 0;
	assert(skep_model_ranks(layer->model) == 1);
	for (uint32_t part = 0; part < parts; part++) {
		struct skep_tensor tensor;
		shape_of(layer->model, part, &tensor);
		count = skep_tensor_add(ret, count, &tensor);
	}
	return count;
}

static size_t between(const struct skep_layer *layer)
{
	return (size_t)layer->model->predicted * (layer->model->hidden + SKEP_NORM_KEPT);
}

static size_t inside(const struct skep_layer *layer)
{
	return between(layer) + (size_t)layer->model->predicted * layer->model->vocabulary;
}

enum { PER_LOSS = sizeof(double) / sizeof(skep_real) };

struct head { /* of one pass */
	const struct skep_model *model;
	const struct skep_pass *pass;
	size_t at[PARTS];                         /* in the parameters */
	size_t samples, rows, hidden, vocabulary; /* `rows`: tokens that are predicted, of all samples */
	double *loss;                             /* [rows]; what follows is within `work` too, but for `kept`: */
	skep_real *a, *b, *c;                     /* [rows][hidden] */
	int32_t *target;                          /* [rows] */
	uint32_t *place;                          /* [rows] in its sequence */
	int32_t *id;                              /* [samples][sequence + 1] */
	size_t all;                               /* numbers that these take */
};

struct kept {
	skep_real *dense, *norm, *score; /* [rows][hidden], [rows][2], [rows][vocabulary] */
};

static struct head head_of(const struct skep_layer *layer, uint32_t samples, skep_real *work)
{
	const struct skep_model *m = layer->model;
	struct head h = {.model = m,
		.samples = samples,
		.rows = (size_t)samples * m->predicted,
		.hidden = m->hidden,
		.vocabulary = m->vocabulary};
	size_t at = 0;
	for (uint32_t part = 0; part < PARTS; part++) {
		struct skep_tensor tensor;
		shape_of(m, part, &tensor);
		h.at[part] = at;
		at += (size_t)tensor.rows * tensor.columns;
	}
	const size_t a = h.rows * PER_LOSS, target = a + 3 * h.rows * h.hidden, place = target + h.rows;
	h.loss = (double *)(void *)work;
	h.a = work + a;
	h.b = h.a + h.rows * h.hidden;
	h.c = h.b + h.rows * h.hidden;
	h.target = (int32_t *)(void *)(work + target);
	h.place = (uint32_t *)(void *)(work + place);
	h.id = (int32_t *)(void *)(work + place + h.rows);
	h.all = place + h.rows + samples * ((size_t)m->sequence + 1);
	return h;
}

static struct head head_for(const struct skep_layer *layer, const struct skep_pass *pass)
{
	struct head h = head_of(layer, pass->training->samples, pass->work);
	struct skep_diag diag = {0};
	h.pass = pass;
	/* The worker of the first stage drew the same for this microbatch. */
	bool drawn = skep_corpus_masked(
		pass->training, pass->op->round, pass->op->microbatch, h.id, h.place, h.target, &diag);
	assert(drawn);
	(void)drawn;
	return h;
}

static size_t work(const struct skep_layer *layer, uint32_t samples)
{
	skep_real none[1];
	return head_of(layer, samples, none).all;
}

static uint64_t flop(const struct skep_layer *layer, uint64_t *ret_attention)
{
	const struct skep_model *m = layer->model;
	*ret_attention = 0;
	return 2 * (uint64_t)m->predicted * m->hidden * (m->hidden + m->vocabulary);
}

static struct kept kept_of(const struct head *h, skep_real *inside)
{
	return (struct kept){.dense = inside,
		.norm = inside + h->rows * h->hidden,
		.score = inside + h->rows * (h->hidden + SKEP_NORM_KEPT)};
}

static const skep_real *parameter_of(const struct head *h, uint32_t part)
{
	return part == TABLE && h->pass->shared ? h->pass->shared : h->pass->parameter + h->at[part];
}

static struct skep_norm norm_of(const struct head *h)
{
	return (struct skep_norm){.rows = h->rows,
		.width = h->hidden,
		.weight = parameter_of(h, NORM),
		.bias = parameter_of(h, NORM + 1),
		.epsilon = (skep_real)h->model->norm_epsilon,
		.thread_pool = h->pass->thread_pool};
}

/* Where row `row` of the predicted tokens lies among all tokens, in numbers. */
static size_t lies_at(const struct head *h, size_t row)
{
	return (row / h->model->predicted * h->model->sequence + h->place[row]) * h->hidden;
}

static void gather(const struct head *h, const skep_real *from, skep_real *ret)
{
	for (size_t row = 0; row < h->rows; row++)
		memcpy(ret + row * h->hidden, from + lies_at(h, row), h->hidden * sizeof *ret);
}

/* All other tokens get 0. */
static void scatter(const struct head *h, const skep_real *from, skep_real *ret)
{
	memset(ret, 0, h->samples * h->model->sequence * h->hidden * sizeof *ret);
	for (size_t row = 0; row < h->rows; row++)
		memcpy(ret + lies_at(h, row), from + row * h->hidden, h->hidden * sizeof *ret);
}

struct losses {
	const struct head *head;
	skep_real *score;
};

static void find_losses(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct losses *l = context;
	const struct head *h = l->head;
	(void)member;
	for (size_t i = first; i < end; i++)
		h->loss[i] = skep_token_loss(
			(uint32_t)h->vocabulary, h->target[i], (skep_real)h->rows, l->score + i * h->vocabulary);
}

/* The mean, added up in the order of the tokens; scores become their gradient. */
static double mean_loss(const struct head *h, skep_real *score)
{
	double sum = 0;
	skep_thread_pool_for(h->pass->thread_pool, h->rows, skep_spread_rows(h->vocabulary), find_losses,
		&(struct losses){h, score});
	for (size_t i = 0; i < h->rows; i++)
		sum += h->loss[i];
	return sum / (double)h->rows;
}

static double forward(const struct skep_layer *layer, const struct skep_pass *pass, const void *in, skep_real *ret_out,
	skep_real *ret_inside)
{
	const struct head h = head_for(layer, pass);
	const struct kept k = kept_of(&h, ret_inside);
	const struct skep_norm norm = norm_of(&h);
	(void)ret_out;
	gather(&h, in, h.a);
	skep_spread_begin(pass->thread_pool, h.rows, h.hidden, NULL, parameter_of(&h, DENSE + 1), k.dense);
	skep_spread_product(pass->thread_pool, CblasNoTrans, CblasNoTrans, h.rows, h.hidden, h.hidden, h.a,
		parameter_of(&h, DENSE), 1, k.dense);
	skep_gelu_erf_forward(h.rows, h.hidden, k.dense, h.b);
	skep_norm_measure(&norm, h.b, k.norm);
	skep_norm_apply(&norm, h.b, k.norm, h.a);
	skep_spread_begin(pass->thread_pool, h.rows, h.vocabulary, NULL, parameter_of(&h, BIAS), k.score);
	skep_spread_product(pass->thread_pool, CblasNoTrans, CblasTrans, h.rows, h.vocabulary, h.hidden, h.a,
		parameter_of(&h, TABLE), 1, k.score);
	return mean_loss(&h, k.score);
}

/* Adds to the gradients of the table and its bias, given what the norm has made and the gradient at the scores. */
static void backward_table(const struct head *h, const skep_real *normed, const skep_real *at_score)
{
	const struct skep_pass *pass = h->pass;
	skep_spread_add_rows(pass->thread_pool, h->rows, h->vocabulary, at_score, pass->gradient + h->at[BIAS]);
	if (skep_model_table_is_frozen(h->model))
		return;
	skep_spread_product(pass->thread_pool, CblasTrans, CblasNoTrans, h->vocabulary, h->hidden, h->rows, at_score,
		normed, 1, pass->shared ? pass->shared_gradient : pass->gradient + h->at[TABLE]);
}

/* The same of the dense layer, given the gradient at what it makes; `room` gets what it reads. */
static void backward_dense(const struct head *h, const void *in, const skep_real *at_dense, skep_real *room)
{
	const struct skep_pass *pass = h->pass;
	gather(h, in, room);
	skep_spread_add_rows(pass->thread_pool, h->rows, h->hidden, at_dense, pass->gradient + h->at[DENSE + 1]);
	skep_spread_product(pass->thread_pool, CblasTrans, CblasNoTrans, h->hidden, h->hidden, h->rows, room, at_dense,
		1, pass->gradient + h->at[DENSE]);
}

static void backward(const struct skep_layer *layer, const struct skep_pass *pass, const void *in,
	const skep_real *inside, skep_real *gradient, skep_real *ret)
{
	const struct head h = head_for(layer, pass);
	const struct kept k = kept_of(&h, (skep_real *)inside); /* not written through */
	const struct skep_norm norm = norm_of(&h);
	skep_real *bent = h.b, *weight = pass->gradient ? pass->gradient + h.at[NORM] : NULL;
	(void)gradient;
	skep_gelu_erf_forward(h.rows, h.hidden, k.dense, bent);
	if (pass->gradient) {
		skep_norm_apply(&norm, bent, k.norm, h.a);
		backward_table(&h, h.a, k.score);
	}
	skep_spread_product(pass->thread_pool, CblasNoTrans, CblasNoTrans, h.rows, h.hidden, h.vocabulary, k.score,
		parameter_of(&h, TABLE), 0, h.a);
	memset(h.c, 0, h.rows * h.hidden * sizeof *h.c);
	skep_norm_backward(&norm, bent, k.norm, h.a, weight, weight ? weight + h.hidden : NULL, h.c);
	skep_gelu_erf_backward(h.rows, h.hidden, k.dense, h.c, bent, h.a);
	if (pass->gradient)
		backward_dense(&h, in, h.a, h.b);
	if (!ret)
		return;
	skep_spread_product(pass->thread_pool, CblasNoTrans, CblasTrans, h.rows, h.hidden, h.hidden, h.a,
		parameter_of(&h, DENSE), 0, h.c);
	scatter(&h, h.c, ret);
}

const struct skep_layer_type skep_layer_masked_head = {.name = "head",
	.tensors = tensors,
	.inside = inside,
	.between = between,
	.work = work,
	.flop = flop,
	.forward = forward,
	.backward = backward};
