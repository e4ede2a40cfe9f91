/* SPDX-License-Identifier: Apache-2.0
 *
 * layer_ends.c - the embedding and the head of a transformer on the GPU, as models/layers/embedding.c and head.c have
 * them for the CPU. The host draws the samples and sorts the tokens of a microbatch by id, so that gradients of the
 * embedding's table are always added in the same order.
 */
#include <assert.h>
#include <string.h>

#include "models/corpus/data.h"
#include "models/cuda/lane.h"
#include "models/layers/norm.h"

static uint32_t samples_of(const struct skep_cuda_pass *pass)
{
	return pass->of.training->samples;
}

/* ---- inputs: ids[samples][sequence + 1], how many groups, their ids [tokens], starts [tokens + 1], tokens [tokens] ------ */

struct inputs {
	int32_t *id, *groups, *group, *start, *order;
};

static struct inputs inputs_of(uint32_t samples, uint32_t sequence, int32_t *inputs)
{
	const size_t tokens = (size_t)samples * sequence;
	struct inputs in = {.id = inputs};
	in.groups = in.id + tokens + samples;
	in.group = in.groups + 1;
	in.start = in.group + tokens;
	in.order = in.start + tokens + 1;
	return in;
}

size_t skep_cuda_inputs(uint32_t samples, uint32_t sequence)
{
	const size_t tokens = (size_t)samples * sequence;
	return 4 * tokens + samples + 2;
}

static int32_t id_of(const struct inputs *in, uint32_t sequence, size_t token)
{
	return in->id[token / sequence * (sequence + 1) + token % sequence];
}

/* Counts ids, and then puts each token behind those of lower ids, and of its own id behind those before it. */
void skep_cuda_group_inputs(uint32_t samples, uint32_t sequence, uint32_t vocabulary, int32_t *count, int32_t *inputs)
{
	const size_t tokens = (size_t)samples * sequence;
	const struct inputs in = inputs_of(samples, sequence, inputs);
	int32_t groups = 0, before = 0;
	memset(count, 0, vocabulary * sizeof *count);
	for (size_t t = 0; t < tokens; t++)
		count[id_of(&in, sequence, t)]++;
	for (uint32_t id = 0; id < vocabulary; id++) {
		const int32_t has = count[id];
		count[id] = before;
		if (has == 0)
			continue;
		in.group[groups] = (int32_t)id;
		in.start[groups++] = before;
		before += has;
	}
	for (size_t t = 0; t < tokens; t++)
		in.order[count[id_of(&in, sequence, t)]++] = (int32_t)t;
	*in.groups = groups;
	in.start[groups] = before;
	for (size_t i = (size_t)groups; i < tokens; i++) { /* unused, but copied with the rest */
		in.group[i] = 0;
		in.start[i + 1] = before;
	}
}

/* ---- embedding ---------------------------------------------------------------------------------------------------------- */

static bool is_bert(const struct skep_model *m)
{
	return m->architecture == SKEP_ARCHITECTURE_BERT;
}

/* Of a bert the sum, and what its norm keeps. */
static size_t embedding_inside(const struct skep_layer *layer, uint32_t samples)
{
	const struct skep_model *m = layer->model;
	const size_t tokens = (size_t)samples * m->sequence;
	return is_bert(m) ? skep_cuda_floats(tokens * m->hidden) + skep_cuda_floats(SKEP_NORM_KEPT * tokens) : 0;
}

static bool has_positions(const struct skep_model *m)
{
	return m->architecture != SKEP_ARCHITECTURE_LLAMA;
}

static size_t positions_offset(const struct skep_model *m)
{
	return (size_t)m->vocabulary * m->hidden;
}

/* Behind the positions: two segments, of which tokens have the first, and the norm. */
static size_t segment_offset(const struct skep_model *m)
{
	return positions_offset(m) + (size_t)(m->context > 0 ? m->context : m->sequence) * m->hidden;
}

static struct skep_cuda_norm embedding_norm(const struct skep_layer *layer, const struct skep_cuda_pass *pass)
{
	const struct skep_model *m = layer->model;
	const float *weight = pass->of.parameter + segment_offset(m) + 2 * (size_t)m->hidden;
	return (struct skep_cuda_norm){.rows = (size_t)samples_of(pass) * m->sequence,
		.width = m->hidden,
		.weight = weight,
		.bias = weight + m->hidden,
		.epsilon = (float)m->norm_epsilon};
}

static void add_segment(
	const struct skep_layer *layer, const struct skep_cuda_pass *pass, float *inside, float *ret_out)
{
	const struct skep_cuda_norm norm = embedding_norm(layer, pass);
	skep_cuda_add_wide_bias(
		pass->queue, norm.rows, norm.width, pass->of.parameter + segment_offset(layer->model), inside);
	skep_cuda_norm_forward_wide(
		pass->queue, &norm, inside, inside + skep_cuda_floats(norm.rows * norm.width), NULL, ret_out);
}

static void embed(const struct skep_layer *layer, const struct skep_cuda_pass *pass, const float *in, float *ret_out,
	float *ret_inside)
{
	const struct skep_model *m = layer->model;
	skep_cuda_embed(pass->queue, samples_of(pass), m->sequence, m->hidden, (const int32_t *)(const void *)in,
		pass->of.parameter, has_positions(m) ? pass->of.parameter + positions_offset(m) : NULL,
		is_bert(m) ? ret_inside : ret_out);
	if (is_bert(m))
		add_segment(layer, pass, ret_inside, ret_out);
}

/* Through a bert's norm and its segment. */
static void segment_back(
	const struct skep_layer *layer, const struct skep_cuda_pass *pass, const float *inside, float *gradient)
{
	const struct skep_cuda_norm norm = embedding_norm(layer, pass);
	float *segment = pass->of.gradient + segment_offset(layer->model), *weight = segment + 2 * norm.width;
	skep_cuda_norm_backward_wide(pass->queue, &norm, inside, inside + skep_cuda_floats(norm.rows * norm.width),
		gradient, weight, weight + norm.width, pass->own->narrow_gradient);
	skep_cuda_add_wide_rows(pass->queue, norm.rows, norm.width, gradient, segment);
}

static void embed_backward(const struct skep_layer *layer, const struct skep_cuda_pass *pass, const float *in,
	const float *inside, float *gradient)
{
	const struct skep_model *m = layer->model;
	const size_t tokens = (size_t)samples_of(pass) * m->sequence;
	/* It is not written through. */
	const struct inputs at = inputs_of(samples_of(pass), m->sequence, (int32_t *)(void *)(uintptr_t)in);
	struct skep_cuda_groups groups = {.count = at.groups, .id = at.group, .start = at.start, .order = at.order};
	groups.most = (uint32_t)(tokens < m->vocabulary ? tokens : m->vocabulary);
	if (!pass->of.gradient)
		return;
	if (is_bert(m))
		segment_back(layer, pass, inside, gradient);
	skep_cuda_embed_backward(pass->queue, samples_of(pass), m->sequence, m->hidden, &groups, gradient,
		pass->of.gradient, has_positions(m) ? pass->of.gradient + positions_offset(m) : NULL);
}

const struct skep_cuda_layer_type skep_cuda_embedding = {
	.type = &skep_layer_embedding, .inside = embedding_inside, .forward = embed, .backward = embed_backward};

/* ---- head: kept are what the norm keeps, and the gradient at the scores -------------------------------------------------- */

/* From one token's scores to the next. A product with an odd number of columns, as of GPT-2's vocabulary of 50257, is made
 * five times as slowly on an H100, so those behind the vocabulary are made as well; the cross-entropy takes no notice of
 * them and makes their gradients 0. */
static size_t stride_of(const struct skep_model *m)
{
	return ((size_t)m->vocabulary + SKEP_CUDA_ROWS_BEHIND) / 8 * 8;
}

static size_t tokens_of(const struct skep_model *m, uint32_t samples)
{
	return (size_t)samples * m->sequence;
}

static size_t head_inside(const struct skep_layer *layer, uint32_t samples)
{
	const size_t tokens = tokens_of(layer->model, samples);
	return skep_cuda_floats(SKEP_NORM_KEPT * tokens) + skep_cuda_halves(tokens * stride_of(layer->model));
}

static bool is_llama(const struct skep_model *m)
{
	return m->architecture == SKEP_ARCHITECTURE_LLAMA;
}

static struct skep_cuda_norm norm_of(const struct skep_layer *layer, const struct skep_cuda_pass *pass)
{
	const struct skep_model *m = layer->model;
	return (struct skep_cuda_norm){.rows = tokens_of(m, samples_of(pass)),
		.width = m->hidden,
		.weight = pass->of.parameter,
		.bias = is_llama(m) ? NULL : pass->of.parameter + m->hidden,
		.epsilon = (float)m->norm_epsilon};
}

static size_t table_offset(const struct skep_model *m)
{
	return (size_t)m->hidden * (is_llama(m) ? 1 : 2);
}

static const skep_bf16 *table_of(const struct skep_layer *layer, const struct skep_cuda_pass *pass)
{
	return pass->shared ? pass->shared : pass->narrowed + table_offset(layer->model);
}

static skep_bf16 *scores_of(const struct skep_cuda_norm *norm, float *inside)
{
	return (skep_bf16 *)(void *)(inside + skep_cuda_floats(SKEP_NORM_KEPT * norm->rows));
}

static void bring_targets(const struct skep_cuda_pass *pass, const struct skep_model *m)
{
	struct skep_diag diag = {0};
	/* The worker of the first stage drew the same ids for this microbatch. */
	bool drawn = skep_corpus_tokens(
		pass->of.training, pass->of.op->round, pass->of.op->microbatch, pass->lane->targets, &diag);
	assert(drawn);
	(void)drawn;
	skep_cuda_copy(pass->queue, pass->own->targets, pass->lane->targets,
		sizeof(int32_t) * samples_of(pass) * (m->sequence + 1));
}

static void head(const struct skep_layer *layer, const struct skep_cuda_pass *pass, const float *in, float *ret_out,
	float *ret_inside)
{
	const struct skep_model *m = layer->model;
	const struct skep_cuda_norm norm = norm_of(layer, pass);
	skep_bf16 *score = scores_of(&norm, ret_inside);
	(void)ret_out;
	bring_targets(pass, m);
	skep_cuda_norm_forward(pass->queue, &norm, in, ret_inside, pass->own->normed);
	skep_cuda_multiply(pass->queue, &(struct skep_cuda_product){.rows = norm.rows,
						.columns = stride_of(m),
						.inner = m->hidden,
						.a = pass->own->normed,
						.b = table_of(layer, pass),
						.transpose_b = true,
						.c = score});
	skep_cuda_surprise(pass->queue, samples_of(pass), m->sequence, m->vocabulary, stride_of(m), pass->own->targets,
		score, pass->own->losses);
	skep_cuda_copy(pass->queue, pass->lane->losses, pass->own->losses, norm.rows * sizeof(float));
}

static void head_backward(const struct skep_layer *layer, const struct skep_cuda_pass *pass, const float *in,
	const float *inside, float *gradient)
{
	const struct skep_model *m = layer->model;
	const struct skep_cuda_norm norm = norm_of(layer, pass);
	float *table = pass->of.shared ? pass->of.shared_gradient : pass->of.gradient + table_offset(m);
	struct skep_cuda_product product = {.rows = m->vocabulary,
		.columns = m->hidden,
		.inner = norm.rows,
		.a = scores_of(&norm, (float *)(uintptr_t)inside),
		.a_row = stride_of(m),
		.transpose_a = true,
		.b = pass->own->normed,
		.wide = true,
		.c = table,
		.add = table};
	if (pass->of.gradient) {
		skep_cuda_norm_apply(pass->queue, &norm, in, inside, pass->own->normed);
		if (!skep_model_table_is_frozen(m))
			skep_cuda_multiply(pass->queue, &product);
	}
	product = (struct skep_cuda_product){.rows = norm.rows,
		.columns = m->hidden,
		.inner = stride_of(m),
		.a = product.a,
		.b = table_of(layer, pass),
		.c = pass->own->normed};
	skep_cuda_multiply(pass->queue, &product);
	skep_cuda_norm_backward(pass->queue, &norm, in, inside, pass->own->normed, pass->of.gradient,
		pass->of.gradient && norm.bias ? pass->of.gradient + m->hidden : NULL, true, gradient,
		pass->own->narrow_gradient);
}

const struct skep_cuda_layer_type skep_cuda_head = {
	.type = &skep_layer_head, .inside = head_inside, .forward = head, .backward = head_backward};
