/* SPDX-License-Identifier: Apache-2.0
 *
 * head.c - the last layer of a transformer: a norm, the product with a table of the vocabulary, and the loss, the mean
 * cross-entropy of the next token in nats. The table has a row for each token; a tied head takes the embedding's, or in another
 * stage a copy of it (core/methods/tied_embeddings.c). Kept: what the norm keeps, and the gradient at the product.
 *
 * Of a shard, the table is split by its rows, and the norm is of the rank's own part of the tokens. All tokens are gathered for
 * the product, and each rank has their scores of its own rows. The loss of a token needs three numbers of each rank (Shoeybi et
 * al. 2019, section 3, has as many in three all-reduces): the largest score m, the sum s of exp(score - m), and the score of
 * the target, which one rank has. With M the largest m and S the sum of s exp(m - M), which all ranks add up in the same order,
 * the loss is log S + M - target's score: the same bits everywhere.
 */
#include <assert.h>

#include "models/corpus/data.h"
#include "models/layers/layer.h"
#include "models/layers/norm.h"
#include "models/layers/spread.h"
#include "models/tensor/ranks.h"

static bool is_llama(const struct skep_layer *layer)
{
	return layer->model->architecture == SKEP_ARCHITECTURE_LLAMA;
}

static uint32_t own_vocabulary(const struct skep_layer *layer)
{
	return skep_model_own_rows(layer->model, layer->model->vocabulary).count;
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
		.rows = skep_model_own_rows(m, m->vocabulary).places,
		.columns = m->hidden,
		.draw = SKEP_DRAW_NORMAL,
		.size = 0.02f,
		.role = SKEP_TENSOR_TABLE,
		.decays = true,
		.cut = SKEP_TENSOR_BY_ROWS,
		.copied = m->copied};
	uint32_t count = skep_tensor_add(ret, 0, &norm);
	if (!llama)
		count = skep_tensor_add(ret, count, &bias);
	return m->tied ? count : skep_tensor_add(ret, count, &table);
}

static size_t between(const struct skep_layer *layer)
{
	return layer->model->sequence / skep_model_ranks(layer->model) * SKEP_NORM_KEPT;
}

static size_t inside(const struct skep_layer *layer)
{
	return between(layer) + (size_t)layer->model->sequence * own_vocabulary(layer);
}

enum { PER_LOSS = sizeof(double) / sizeof(skep_real), PER_PART = 3 };

struct room {         /* within `work` */
	double *loss; /* [tokens] */
	skep_real *
		normed; /* [tokens][hidden]; in the forward pass of a shard also parts of sums, [ranks][tokens][PER_PART] */
	int32_t *target; /* [samples][sequence + 1] */
	skep_real *sums; /* of a shard: gradients of the norm's weight and bias */
	size_t all;      /* numbers that these take */
};

static size_t norm_numbers(const struct skep_layer *layer)
{
	return (size_t)layer->model->hidden * (is_llama(layer) ? 1 : 2);
}

static struct room room_of(const struct skep_layer *layer, uint32_t samples, skep_real *work)
{
	const struct skep_model *m = layer->model;
	const size_t tokens = (size_t)samples * m->sequence, ranks = skep_model_ranks(m);
	const size_t parts = ranks > 1 ? ranks * PER_PART : 0, row = m->hidden > parts ? m->hidden : parts;
	const size_t normed = tokens * PER_LOSS, target = normed + tokens * row, sums = target + tokens + samples;
	return (struct room){.loss = (double *)(void *)work,
		.normed = work + normed,
		.target = (int32_t *)(void *)(work + target),
		.sums = work + sums,
		.all = sums + skep_ranks_room(m, norm_numbers(layer))};
}

static size_t work(const struct skep_layer *layer, uint32_t samples)
{
	skep_real none[1];
	return room_of(layer, samples, none).all;
}

static uint64_t flop(const struct skep_layer *layer, uint64_t *ret_attention)
{
	const struct skep_model *m = layer->model;
	*ret_attention = 0;
	return 2 * (uint64_t)m->sequence * m->hidden * own_vocabulary(layer);
}

/* Of the own rows. */
static struct skep_norm norm_of(
	const struct skep_layer *layer, const struct skep_pass *pass, const struct skep_ranks *ranks)
{
	return (struct skep_norm){.rows = ranks->own,
		.width = layer->model->hidden,
		.weight = pass->parameter,
		.bias = is_llama(layer) ? NULL : pass->parameter + layer->model->hidden,
		.epsilon = (skep_real)layer->model->norm_epsilon,
		.thread_pool = pass->thread_pool};
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

double skep_token_loss(uint32_t vocabulary, int32_t target, skep_real tokens, skep_real *score)
{
	return surprise(vocabulary, target, tokens, score);
}

struct losses {
	uint32_t vocabulary; /* own rows of the table */
	uint32_t first;      /* of a shard: the token of the first one */
	uint32_t ranks, rank;
	size_t sequence, tokens;
	const int32_t *target;
	skep_real *score;
	skep_real *part; /* of a shard: [ranks][tokens][PER_PART] */
	double *ret;
};

static int32_t target_of(const struct losses *l, size_t token)
{
	return l->target[token / l->sequence * (l->sequence + 1) + token % l->sequence + 1];
}

static void find_losses(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct losses *l = context;
	(void)member;
	for (size_t i = first; i < end; i++)
		l->ret[i] =
			surprise(l->vocabulary, target_of(l, i), (skep_real)l->tokens, l->score + i * l->vocabulary);
}

/* The target's place in the own rows; as many as there are, or more: another rank has it. */
static uint32_t own_target(const struct losses *l, size_t token)
{
	return (uint32_t)target_of(l, token) - l->first;
}

/* Of a shard, in two halves: the scores of a token become exponentials, and part[] what their sum is made of; ... */
SKEP_ANY_WIDTH static void begin_surprise(uint32_t vocabulary, uint32_t target, skep_real *score, skep_real *part)
{
	const skep_real most = skep_real_most(vocabulary, score);
	part[2] = target < vocabulary ? score[target] : 0;
	for (uint32_t j = 0; j < vocabulary; j++)
		score[j] = skep_real_exp(score[j] - most);
	part[0] = most;
	part[1] = skep_real_sum(vocabulary, score);
}

static void begin_losses(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct losses *l = context;
	(void)member;
	for (size_t i = first; i < end; i++)
		begin_surprise(l->vocabulary, own_target(l, i), l->score + i * l->vocabulary,
			l->part + (l->rank * l->tokens + i) * PER_PART);
}

/* ... and, when the parts of all ranks are there, exponentials become the gradient. */
SKEP_ANY_WIDTH static void end_surprise(
	uint32_t vocabulary, uint32_t target, skep_real scale, skep_real tokens, skep_real *score)
{
	for (uint32_t j = 0; j < vocabulary; j++)
		score[j] *= scale;
	if (target < vocabulary)
		score[target] -= 1 / tokens;
}

static void end_losses(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct losses *l = context;
	const skep_real tokens = (skep_real)l->tokens;
	(void)member;
	for (size_t i = first; i < end; i++) {
		const skep_real *part = l->part + i * PER_PART;
		const size_t next = l->tokens * PER_PART;
		skep_real most = part[0], sum = 0, wanted = 0;
		for (uint32_t r = 1; r < l->ranks; r++)
			most = part[r * next] > most ? part[r * next] : most;
		for (uint32_t r = 0; r < l->ranks; r++) {
			sum += part[r * next + 1] * skep_real_exp(part[r * next] - most);
			wanted += part[r * next + 2];
		}
		l->ret[i] = log((double)sum) + ((double)most - (double)wanted);
		end_surprise(l->vocabulary, own_target(l, i),
			skep_real_exp(part[l->rank * next] - most) / (sum * tokens), tokens,
			l->score + i * l->vocabulary);
	}
}

/* The mean, added up in the order of the tokens. */
static double mean_loss(const struct skep_pass *pass, const struct skep_ranks *ranks, const struct losses *losses)
{
	const size_t grain = skep_spread_rows(losses->vocabulary), parts = losses->tokens * PER_PART;
	double sum = 0;
	if (ranks->group) {
		skep_thread_pool_for(pass->thread_pool, losses->tokens, grain, begin_losses, losses);
		ranks->group->all_gather(
			ranks->group->context, parts, losses->part + ranks->rank * parts, losses->part);
	}
	skep_thread_pool_for(pass->thread_pool, losses->tokens, grain, ranks->group ? end_losses : find_losses, losses);
	for (size_t i = 0; i < losses->tokens; i++)
		sum += losses->ret[i];
	return sum / (double)losses->tokens;
}

static double forward(const struct skep_layer *layer, const struct skep_pass *pass, const void *in, skep_real *ret_out,
	skep_real *ret_inside)
{
	const struct skep_model *m = layer->model;
	const struct skep_ranks ranks = skep_ranks_of(layer, pass);
	const struct room room = room_of(layer, pass->training->samples, pass->work);
	struct skep_norm norm = norm_of(layer, pass, &ranks);
	const size_t tokens = ranks.own * ranks.count, vocabulary = own_vocabulary(layer);
	const skep_real *table = pass->shared ? pass->shared : pass->parameter + norm_numbers(layer);
	skep_real *score = ret_inside + norm.rows * SKEP_NORM_KEPT;
	struct skep_diag diag = {0};
	(void)ret_out;
	skep_norm_measure(&norm, in, ret_inside);
	skep_norm_apply(&norm, in, ret_inside, skep_ranks_own(&ranks, room.normed));
	skep_ranks_gather(&ranks, room.normed);
	skep_spread_product(pass->thread_pool, CblasNoTrans, CblasTrans, tokens, vocabulary, m->hidden, room.normed,
		table, 0, score);
	/* The worker of the first stage drew the same ids for this microbatch. */
	bool drawn = skep_corpus_tokens(pass->training, pass->op->round, pass->op->microbatch, room.target, &diag);
	assert(drawn);
	(void)drawn;
	return mean_loss(pass, &ranks,
		&(struct losses){.vocabulary = (uint32_t)vocabulary,
			.first = skep_model_own_rows(m, m->vocabulary).first,
			.ranks = ranks.count,
			.rank = ranks.rank,
			.sequence = m->sequence,
			.tokens = tokens,
			.target = room.target,
			.score = score,
			.part = room.normed,
			.ret = room.loss});
}

static void backward_table(const struct skep_layer *layer, const struct skep_pass *pass, const struct skep_ranks *ranks,
	const skep_real *at_score, skep_real *normed)
{
	if (skep_model_table_is_frozen(layer->model))
		return;
	skep_ranks_gather(ranks, normed);
	skep_spread_product(pass->thread_pool, CblasTrans, CblasNoTrans, own_vocabulary(layer), layer->model->hidden,
		ranks->own * ranks->count, at_score, normed, 1,
		pass->shared ? pass->shared_gradient : pass->gradient + norm_numbers(layer));
}

static void backward(const struct skep_layer *layer, const struct skep_pass *pass, const void *in,
	const skep_real *inside, skep_real *gradient, skep_real *ret)
{
	const struct skep_ranks ranks = skep_ranks_of(layer, pass);
	const struct room room = room_of(layer, pass->training->samples, pass->work);
	struct skep_norm norm = norm_of(layer, pass, &ranks);
	const size_t h = layer->model->hidden, numbers = norm_numbers(layer);
	const skep_real *table = pass->shared ? pass->shared : pass->parameter + numbers;
	const skep_real *at_score = inside + norm.rows * SKEP_NORM_KEPT;
	skep_real *own = skep_ranks_own(&ranks, room.normed), *weight = ranks.group ? room.sums : pass->gradient;
	(void)gradient;
	if (pass->gradient) {
		skep_norm_apply(&norm, in, inside, own);
		backward_table(layer, pass, &ranks, at_score, room.normed);
	}
	skep_spread_product(pass->thread_pool, CblasNoTrans, CblasNoTrans, norm.rows * ranks.count, h,
		own_vocabulary(layer), at_score, table, 0, room.normed);
	skep_ranks_reduce(&ranks, room.normed, own);
	if (ret)
		memset(ret, 0, norm.rows * h * sizeof *ret);
	if (!pass->gradient)
		weight = NULL;
	else if (ranks.group)
		memset(weight, 0, numbers * sizeof *weight);
	skep_norm_backward(&norm, in, inside, own, weight, weight && norm.bias ? weight + h : NULL, ret);
	if (weight && ranks.group) {
		skep_ranks_sum(&ranks, numbers, weight);
		skep_real_add_rows(1, numbers, weight, pass->gradient);
	}
}

const struct skep_layer_type skep_layer_head = {.name = "head",
	.tensors = tensors,
	.inside = inside,
	.between = between,
	.work = work,
	.flop = flop,
	.forward = forward,
	.backward = backward};
