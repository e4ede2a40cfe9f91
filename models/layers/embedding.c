/* SPDX-License-Identifier: Apache-2.0
 *
 * embedding.c - the first layer of a transformer: each token's row of a table and, with learned positions (gpt2, bert), the row
 * of its place. Its input is what a stage draws: ids[samples][sequence + 1], of which the last of each sample is passed over.
 *
 * A bert adds a row for the segment that a token is in, of which samples have one, the first, and ends with a LayerNorm of the
 * sum, which is kept. Its table of segments has two rows, as the files of such models do, and the second one stays as it is.
 *
 * Of a shard, the table is split by its rows, and positions are on every rank. Each rank looks up those tokens of the microbatch
 * that it has rows of, the sum over the ranks has them all, and each keeps its own part of the tokens (a reduce-scatter);
 * backwards an all-gather brings the gradients of all tokens to all.
 */
#include "models/layers/layer.h"
#include "models/layers/norm.h"
#include "models/layers/spread.h"
#include "models/tensor/ranks.h"

enum { SEGMENTS = 2 };

static bool is_bert(const struct skep_model *m)
{
	return m->architecture == SKEP_ARCHITECTURE_BERT;
}

/* Behind the positions. */
static uint32_t add_segments(struct skep_tensor *list, uint32_t count)
{
	struct skep_tensor segments = list[count - 1], norm = segments;
	segments.name = "embeddings.token_type_embeddings.weight";
	segments.rows = SEGMENTS;
	norm.name = "embeddings.LayerNorm.weight";
	norm.rows = 1;
	norm.draw = SKEP_DRAW_CONSTANT;
	norm.size = 1;
	norm.role = SKEP_TENSOR_VECTOR;
	norm.decays = false;
	count = skep_tensor_add(list, skep_tensor_add(list, count, &segments), &norm);
	norm.name = "embeddings.LayerNorm.bias";
	norm.size = 0;
	return skep_tensor_add(list, count, &norm);
}

static uint32_t tensors(const struct skep_layer *layer, struct skep_tensor ret[SKEP_TENSORS_MAX])
{
	const struct skep_model *m = layer->model;
	const bool llama = m->architecture == SKEP_ARCHITECTURE_LLAMA, bert = is_bert(m);
	struct skep_tensor table = {.name = llama  ? "embed_tokens.weight"
	                                    : bert ? "embeddings.word_embeddings.weight"
	                                           : "wte.weight",
		.rows = skep_model_own_rows(m, m->vocabulary).places,
		.columns = m->hidden,
		.draw = SKEP_DRAW_NORMAL,
		.size = 0.02f,
		.role = SKEP_TENSOR_TABLE,
		.cut = SKEP_TENSOR_BY_ROWS,
		.decays = true};
	uint32_t count = skep_tensor_add(ret, 0, &table);
	if (llama)
		return count;
	table.name = bert ? "embeddings.position_embeddings.weight" : "wpe.weight";
	table.cut = SKEP_TENSOR_REPLICATED;
	table.rows = m->context > 0 ? m->context : m->sequence;
	count = skep_tensor_add(ret, count, &table);
	return bert ? add_segments(ret, count) : count;
}

/* Of a bert the sum, and what its norm keeps. */
static size_t inside(const struct skep_layer *layer)
{
	const struct skep_model *m = layer->model;
	return is_bert(m) ? (size_t)m->sequence * (m->hidden + SKEP_NORM_KEPT) : 0;
}

/* Of a shard, all tokens; of a bert, the gradient at the sum. */
static size_t work(const struct skep_layer *layer, uint32_t samples)
{
	const struct skep_model *m = layer->model;
	return skep_model_ranks(m) > 1 || is_bert(m) ? (size_t)samples * m->sequence * m->hidden : 0;
}

static uint64_t flop(const struct skep_layer *layer, uint64_t *ret_attention)
{
	(void)layer;
	*ret_attention = 0;
	return 0;
}

static size_t table_numbers(const struct skep_model *m)
{
	return (size_t)skep_model_own_rows(m, m->vocabulary).places * m->hidden;
}

static bool has_positions(const struct skep_model *m)
{
	return m->architecture == SKEP_ARCHITECTURE_GPT2 || is_bert(m);
}

/* Where in the layer's parameters: behind table and positions the segments, and behind these the norm. */
static size_t segments_at(const struct skep_model *m)
{
	return table_numbers(m) + (size_t)(m->context > 0 ? m->context : m->sequence) * m->hidden;
}

static size_t norm_at(const struct skep_model *m)
{
	return segments_at(m) + (size_t)SEGMENTS * m->hidden;
}

struct job {
	const int32_t *id;
	size_t h, sequence, tokens;
	size_t first, rows; /* of the table, which the rank has */
	size_t begin;       /* the first token of `ret`; of the positions alone */
	const skep_real *table, *positions, *segment, *gradient;
	skep_real *ret, *table_gradient, *positions_gradient, *segment_gradient;
};

static struct job job_of(const struct skep_layer *layer, const struct skep_pass *pass, const void *in)
{
	const struct skep_model *m = layer->model;
	return (struct job){.id = in,
		.h = m->hidden,
		.sequence = m->sequence,
		.tokens = (size_t)pass->training->samples * m->sequence,
		.first = skep_model_own_rows(m, m->vocabulary).first,
		.rows = skep_model_own_rows(m, m->vocabulary).count,
		.table = pass->parameter,
		.positions = has_positions(m) ? pass->parameter + table_numbers(m) : NULL,
		.segment = is_bert(m) ? pass->parameter + segments_at(m) : NULL};
}

/* The row of the table that is the token's; `rows` or more: another rank's. */
static size_t row_of(const struct job *job, size_t token)
{
	return (size_t)job->id[token / job->sequence * (job->sequence + 1) + token % job->sequence] - job->first;
}

static void add_position(const struct job *job, size_t token, skep_real *row)
{
	for (size_t j = 0; j < job->h; j++)
		row[j] += job->positions[token % job->sequence * job->h + j];
}

static void look_up(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct job *job = context;
	(void)member;
	for (size_t t = first; t < end; t++) {
		skep_real *row = job->ret + t * job->h;
		memcpy(row, job->table + row_of(job, t) * job->h, job->h * sizeof *row);
		if (job->positions)
			add_position(job, t, row);
		if (job->segment)
			skep_real_add_rows(1, job->h, job->segment, row);
	}
}

/* The same of a shard: rows of other ranks are 0 here, and positions are still to be added. */
static void look_up_own(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct job *job = context;
	const size_t bytes = job->h * sizeof *job->ret;
	(void)member;
	for (size_t t = first; t < end; t++) {
		const size_t row = row_of(job, t);
		if (row < job->rows)
			memcpy(job->ret + t * job->h, job->table + row * job->h, bytes);
		else
			memset(job->ret + t * job->h, 0, bytes);
	}
}

static void add_positions(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct job *job = context;
	(void)member;
	for (size_t t = first; t < end; t++)
		add_position(job, job->begin + t, job->ret + t * job->h);
}

static struct skep_norm norm_of(const struct skep_layer *layer, const struct skep_pass *pass)
{
	const struct skep_model *m = layer->model;
	return (struct skep_norm){.rows = (size_t)pass->training->samples * m->sequence,
		.width = m->hidden,
		.weight = pass->parameter + norm_at(m),
		.bias = pass->parameter + norm_at(m) + m->hidden,
		.epsilon = (skep_real)m->norm_epsilon,
		.thread_pool = pass->thread_pool};
}

static double forward_bert(const struct skep_layer *layer, const struct skep_pass *pass, const void *in,
	skep_real *ret_out, skep_real *ret_inside)
{
	const struct skep_norm norm = norm_of(layer, pass);
	struct job job = job_of(layer, pass, in);
	skep_real *kept = ret_inside + norm.rows * norm.width;
	job.ret = ret_inside;
	skep_thread_pool_for(pass->thread_pool, job.tokens, skep_spread_rows(job.h), look_up, &job);
	skep_norm_measure(&norm, ret_inside, kept);
	skep_norm_apply(&norm, ret_inside, kept, ret_out);
	return 0;
}

static double forward(const struct skep_layer *layer, const struct skep_pass *pass, const void *in, skep_real *ret_out,
	skep_real *ret_inside)
{
	const struct skep_ranks ranks = skep_ranks_of(layer, pass);
	struct job job = job_of(layer, pass, in);
	const size_t grain = skep_spread_rows(job.h);
	if (is_bert(layer->model))
		return forward_bert(layer, pass, in, ret_out, ret_inside);
	job.ret = ranks.group ? pass->work : ret_out;
	skep_thread_pool_for(pass->thread_pool, job.tokens, grain, ranks.group ? look_up_own : look_up, &job);
	if (!ranks.group)
		return 0;
	skep_ranks_reduce(&ranks, pass->work, ret_out);
	job.ret = ret_out;
	job.begin = ranks.rank * ranks.own;
	if (job.positions)
		skep_thread_pool_for(pass->thread_pool, ranks.own, grain, add_positions, &job);
	return 0;
}

/* Columns first .. end - 1 of all tokens, in their order. */
static void add_up(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct job *job = context;
	const size_t h = job->h;
	(void)member;
	for (size_t t = 0; t < job->tokens; t++) {
		const skep_real *from = job->gradient + t * h + first;
		const size_t row = row_of(job, t);
		if (row < job->rows)
			skep_real_add_rows(1, end - first, from, job->table_gradient + row * h + first);
		if (job->positions_gradient)
			skep_real_add_rows(
				1, end - first, from, job->positions_gradient + t % job->sequence * h + first);
		if (job->segment_gradient)
			skep_real_add_rows(1, end - first, from, job->segment_gradient + first);
	}
}

/* The gradient at a bert's sum, in `work`. */
static const skep_real *through_norm(
	const struct skep_layer *layer, const struct skep_pass *pass, const skep_real *inside, skep_real *gradient)
{
	const struct skep_norm norm = norm_of(layer, pass);
	skep_real *weight = pass->gradient + norm_at(layer->model);
	memset(pass->work, 0, norm.rows * norm.width * sizeof *pass->work);
	skep_norm_backward(
		&norm, inside, inside + norm.rows * norm.width, gradient, weight, weight + norm.width, pass->work);
	return pass->work;
}

/* The gradient of positions is the sum over all tokens on every rank: these are gathered for the table, and no rank asks another
 * one for the sum. */
static void backward(const struct skep_layer *layer, const struct skep_pass *pass, const void *in,
	const skep_real *inside, skep_real *gradient, skep_real *ret)
{
	const struct skep_ranks ranks = skep_ranks_of(layer, pass);
	struct job job = job_of(layer, pass, in);
	(void)ret;
	if (!pass->gradient)
		return;
	job.gradient = is_bert(layer->model) ? through_norm(layer, pass, inside, gradient)
	                                     : skep_ranks_gathered(&ranks, gradient, pass->work);
	job.table_gradient = pass->gradient;
	job.positions_gradient = job.positions ? pass->gradient + table_numbers(layer->model) : NULL;
	job.segment_gradient = job.segment ? pass->gradient + segments_at(layer->model) : NULL;
	skep_thread_pool_for(pass->thread_pool, job.h, skep_spread_columns(job.tokens, job.h), add_up, &job);
}

const struct skep_layer_type skep_layer_embedding = {.name = "embedding",
	.tensors = tensors,
	.inside = inside,
	.between = inside,
	.work = work,
	.flop = flop,
	.forward = forward,
	.backward = backward};
