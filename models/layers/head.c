/* SPDX-License-Identifier: Apache-2.0
 *
 * head.c - the last layer of a transformer: a norm, the product with a table of the vocabulary, and the loss, the mean
 * cross-entropy of the next token in nats. The table has a row for each token; a tied head takes the embedding's, or in another
 * stage a copy of it (core/methods/tied_embeddings.c). Kept: what the norm keeps, and the gradient at the product.
 */
#include <assert.h>

#include "models/corpus/data.h"
#include "models/layers/layer.h"
#include "models/layers/norm.h"
#include "models/layers/spread.h"

static bool is_llama(const struct skep_layer *layer)
{
	return layer->model->architecture == SKEP_ARCHITECTURE_LLAMA;
}

static uint32_t tensors(const struct skep_layer *layer, struct skep_tensor ret[SKEP_TENSORS_MAX])
{
	const struct skep_model *m = layer->model;
	bool llama = is_llama(layer);
	struct skep_tensor norm = {.name = llama ? "norm.weight" : "ln_f.weight",
		.rows = 1,
		.columns = m->hidden,
		.draw = SKEP_DRAW_CONSTANT,
		.size = 1};
	struct skep_tensor bias = norm, table = norm;
	bias.name = "ln_f.bias";
	bias.size = 0;
	table = (struct skep_tensor){.name = "lm_head.weight",
		.rows = m->vocabulary,
		.columns = m->hidden,
		.draw = SKEP_DRAW_NORMAL,
		.size = 0.02f,
		.role = SKEP_TENSOR_TABLE,
		.decays = true,
		.copied = m->copied};
	uint32_t count = skep_tensor_add(ret, 0, &norm);
	if (!llama)
		count = skep_tensor_add(ret, count, &bias);
	return m->tied ? count : skep_tensor_add(ret, count, &table);
}

static size_t inside(const struct skep_layer *layer)
{
	return (size_t)layer->model->sequence * (SKEP_NORM_KEPT + layer->model->vocabulary);
}

enum { PER_LOSS = sizeof(double) / sizeof(skep_real) };

/* Losses of tokens, outputs of the norm, and targets. */
static size_t work(const struct skep_layer *layer, uint32_t samples)
{
	const size_t sequence = layer->model->sequence;
	return samples * (sequence * PER_LOSS + sequence * layer->model->hidden + sequence + 1);
}

static uint64_t flop(const struct skep_layer *layer, uint64_t *ret_attention)
{
	const struct skep_model *m = layer->model;
	*ret_attention = 0;
	return 2 * (uint64_t)m->sequence * m->hidden * m->vocabulary;
}

static struct skep_norm norm_of(const struct skep_layer *layer, const struct skep_pass *pass)
{
	return (struct skep_norm){.rows = (size_t)pass->training->samples * layer->model->sequence,
		.width = layer->model->hidden,
		.weight = pass->parameter,
		.bias = is_llama(layer) ? NULL : pass->parameter + layer->model->hidden,
		.epsilon = (skep_real)layer->model->norm_epsilon,
		.thread_pool = pass->thread_pool};
}

static size_t table_offset(const struct skep_layer *layer)
{
	return (size_t)layer->model->hidden * (is_llama(layer) ? 1 : 2);
}

/* The loss of one token in nats; its scores become their gradient, over `tokens`. */
SKEP_ANY_WIDTH static double surprise(uint32_t vocabulary, int32_t target, skep_real tokens, skep_real *score)
{
	skep_real most = skep_real_most(vocabulary, score), wanted = score[target];
	for (uint32_t j = 0; j < vocabulary; j++)
		score[j] = skep_real_exp(score[j] - most);
	skep_real sum = skep_real_sum(vocabulary, score), part = 1 / (sum * tokens);
	for (uint32_t j = 0; j < vocabulary; j++)
		score[j] *= part;
	score[target] -= 1 / tokens;
	return log((double)sum) + ((double)most - (double)wanted);
}

struct losses {
	uint32_t vocabulary;
	size_t sequence, tokens;
	const int32_t *target;
	skep_real *score;
	double *ret;
};

static void find_losses(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct losses *l = context;
	(void)member;
	for (size_t i = first; i < end; i++)
		l->ret[i] =
			surprise(l->vocabulary, l->target[i / l->sequence * (l->sequence + 1) + i % l->sequence + 1],
				(skep_real)l->tokens, l->score + i * l->vocabulary);
}

/* The mean, added up in the order of the tokens. */
static double mean_loss(const struct skep_pass *pass, const struct losses *losses)
{
	double sum = 0;
	skep_thread_pool_for(
		pass->thread_pool, losses->tokens, skep_spread_rows(losses->vocabulary), find_losses, losses);
	for (size_t i = 0; i < losses->tokens; i++)
		sum += losses->ret[i];
	return sum / (double)losses->tokens;
}

static skep_real *normed_of(const struct skep_pass *pass, const struct skep_norm *norm)
{
	return pass->work + norm->rows * PER_LOSS;
}

static double forward(const struct skep_layer *layer, const struct skep_pass *pass, const void *in, skep_real *ret_out,
	skep_real *ret_inside)
{
	const struct skep_model *m = layer->model;
	struct skep_norm norm = norm_of(layer, pass);
	const size_t h = m->hidden, vocabulary = m->vocabulary;
	const skep_real *table = pass->shared ? pass->shared : pass->parameter + table_offset(layer);
	skep_real *normed = normed_of(pass, &norm), *score = ret_inside + norm.rows * SKEP_NORM_KEPT;
	int32_t *target = (int32_t *)(void *)(normed + norm.rows * h);
	struct skep_diag diag = {0};
	(void)ret_out;
	skep_norm_measure(&norm, in, ret_inside);
	skep_norm_apply(&norm, in, ret_inside, normed);
	skep_spread_product(
		pass->thread_pool, CblasNoTrans, CblasTrans, norm.rows, vocabulary, h, normed, table, 0, score);
	/* The worker of the first stage drew the same ids for this microbatch. */
	bool drawn = skep_corpus_tokens(pass->training, pass->op->round, pass->op->microbatch, target, &diag);
	assert(drawn);
	(void)drawn;
	return mean_loss(pass, &(struct losses){.vocabulary = m->vocabulary,
				       .sequence = m->sequence,
				       .tokens = norm.rows,
				       .target = target,
				       .score = score,
				       .ret = (double *)(void *)pass->work});
}

static void backward(const struct skep_layer *layer, const struct skep_pass *pass, const void *in,
	const skep_real *inside, skep_real *gradient, skep_real *ret)
{
	struct skep_norm norm = norm_of(layer, pass);
	const size_t h = layer->model->hidden, vocabulary = layer->model->vocabulary;
	const skep_real *table = pass->shared ? pass->shared : pass->parameter + table_offset(layer);
	const skep_real *at_score = inside + norm.rows * SKEP_NORM_KEPT;
	skep_real *normed = normed_of(pass, &norm), *bias = NULL;
	(void)gradient;
	if (pass->gradient) {
		skep_norm_apply(&norm, in, inside, normed);
		if (!skep_model_table_is_frozen(layer->model))
			skep_spread_product(pass->thread_pool, CblasTrans, CblasNoTrans, vocabulary, h, norm.rows,
				at_score, normed, 1,
				pass->shared ? pass->shared_gradient : pass->gradient + table_offset(layer));
		bias = norm.bias ? pass->gradient + h : NULL;
	}
	skep_spread_product(
		pass->thread_pool, CblasNoTrans, CblasNoTrans, norm.rows, h, vocabulary, at_score, table, 0, normed);
	if (ret)
		memset(ret, 0, norm.rows * h * sizeof *ret);
	skep_norm_backward(&norm, in, inside, normed, pass->gradient, bias, ret);
}

const struct skep_layer_type skep_layer_head = {.name = "head",
	.tensors = tensors,
	.inside = inside,
	.work = work,
	.flop = flop,
	.forward = forward,
	.backward = backward};
