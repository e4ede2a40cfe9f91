/* SPDX-License-Identifier: Apache-2.0
 *
 * embedding.c - the first layer of a transformer: each token's row of a table and, with learned positions (gpt2), the row of
 * its place. Its input is what a stage draws: ids[samples][sequence + 1], of which the last of each sample is a target alone.
 */
#include "models/layers/layer.h"
#include "models/layers/spread.h"

static uint32_t tensors(const struct skep_layer *layer, struct skep_tensor ret[SKEP_TENSORS_MAX])
{
	const struct skep_model *m = layer->model;
	bool llama = m->architecture == SKEP_ARCHITECTURE_LLAMA;
	struct skep_tensor table = {.name = llama ? "embed_tokens.weight" : "wte.weight",
		.rows = m->vocabulary,
		.columns = m->hidden,
		.draw = SKEP_DRAW_NORMAL,
		.size = 0.02f,
		.role = SKEP_TENSOR_TABLE,
		.decays = true};
	uint32_t count = skep_tensor_add(ret, 0, &table);
	if (llama)
		return count;
	table.name = "wpe.weight";
	table.rows = m->context > 0 ? m->context : m->sequence;
	return skep_tensor_add(ret, count, &table);
}

static size_t inside(const struct skep_layer *layer)
{
	(void)layer;
	return 0;
}

static uint64_t flop(const struct skep_layer *layer, uint64_t *ret_attention)
{
	(void)layer;
	*ret_attention = 0;
	return 0;
}

/* Where the table of positions is, NULL: there is none. */
static const skep_real *positions_of(const struct skep_layer *layer, const skep_real *parameter)
{
	const struct skep_model *m = layer->model;
	return m->architecture == SKEP_ARCHITECTURE_GPT2 ? parameter + (size_t)m->vocabulary * m->hidden : NULL;
}

struct job {
	const int32_t *id;
	size_t h, sequence, tokens;
	const skep_real *table, *positions, *gradient;
	skep_real *ret, *table_gradient, *positions_gradient;
};

static size_t id_of(const struct job *job, size_t token)
{
	return (size_t)job->id[token / job->sequence * (job->sequence + 1) + token % job->sequence];
}

static void look_up(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct job *job = context;
	const size_t h = job->h;
	(void)member;
	for (size_t t = first; t < end; t++) {
		skep_real *row = job->ret + t * h;
		memcpy(row, job->table + id_of(job, t) * h, h * sizeof *row);
		for (size_t j = 0; job->positions && j < h; j++)
			row[j] += job->positions[t % job->sequence * h + j];
	}
}

static double forward(const struct skep_layer *layer, const struct skep_pass *pass, const void *in, skep_real *ret_out,
	skep_real *ret_inside)
{
	const struct skep_model *m = layer->model;
	const struct job job = {.id = in,
		.h = m->hidden,
		.sequence = m->sequence,
		.table = pass->parameter,
		.positions = positions_of(layer, pass->parameter),
		.ret = ret_out};
	(void)ret_inside;
	skep_thread_pool_for(pass->thread_pool, (size_t)pass->training->samples * m->sequence,
		skep_spread_rows(m->hidden), look_up, &job);
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
		skep_real_add_rows(1, end - first, from, job->table_gradient + id_of(job, t) * h + first);
		if (job->positions_gradient)
			skep_real_add_rows(
				1, end - first, from, job->positions_gradient + t % job->sequence * h + first);
	}
}

static void backward(const struct skep_layer *layer, const struct skep_pass *pass, const void *in,
	const skep_real *inside, skep_real *gradient, skep_real *ret)
{
	const struct skep_model *m = layer->model;
	const size_t tokens = (size_t)pass->training->samples * m->sequence;
	(void)inside;
	(void)ret;
	if (!pass->gradient)
		return;
	const struct job job = {.id = in,
		.h = m->hidden,
		.sequence = m->sequence,
		.tokens = tokens,
		.gradient = gradient,
		.table_gradient = pass->gradient,
		.positions_gradient = positions_of(layer, pass->gradient)
	                                      ? pass->gradient + (size_t)m->vocabulary * m->hidden
	                                      : NULL};
	skep_thread_pool_for(pass->thread_pool, m->hidden, skep_spread_columns(tokens, m->hidden), add_up, &job);
}

const struct skep_layer_type skep_layer_embedding = {.name = "embedding",
	.tensors = tensors,
	.inside = inside,
	.flop = flop,
	.forward = forward,
	.backward = backward};
