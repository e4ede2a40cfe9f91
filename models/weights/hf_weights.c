/* SPDX-License-Identifier: Apache-2.0
 *
 * hf_weights.c - see hf_weights.h. The layers' own names (layers/block.c, embedding.c, head.c) are those of the files, but
 * for what stands before them and for the products that lie side by side.
 */
#include "models/weights/hf_weights.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { PARTS_MAX = 3 };

/* What stands before the names of an architecture's tensors in files. */
static const struct prefixes {
	const char *model, *block; /* of all that are not the head's, and between that and the number of a block */
	const char *table;         /* of the embedding, and ... */
	const char *head;          /* ... of the head, as the layers call them */
} prefixes[] = {[SKEP_ARCHITECTURE_GPT2] = {"transformer", "h", "wte.weight", "lm_head.weight"},
	[SKEP_ARCHITECTURE_LLAMA] = {"model", "layers", "embed_tokens.weight", "lm_head.weight"},
	[SKEP_ARCHITECTURE_BERT] = {
		"bert", "encoder.layer", "embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"}};

struct part { /* of one tensor, or of each matrix of a stack: columns that are a weight of their own */
	const char *name;
	uint32_t columns;
};

/* What lies side by side in a tensor; 0: it is one weight. */
static uint32_t parts_of(const struct skep_model *model, const char *name, struct part ret[PARTS_MAX])
{
	uint32_t width = model->hidden / model->heads;
	if (strcmp(name, "self_attn.qkv_proj.weight") == 0) {
		ret[0] = (struct part){"self_attn.q_proj.weight", model->heads * width};
		ret[1] = (struct part){"self_attn.k_proj.weight", model->kv_heads * width};
		ret[2] = (struct part){"self_attn.v_proj.weight", model->kv_heads * width};
		return 3;
	}
	if (strcmp(name, "attention.self.qkv.weight") == 0) {
		ret[0] = (struct part){"attention.self.query.weight", model->hidden};
		ret[1] = (struct part){"attention.self.key.weight", model->hidden};
		ret[2] = (struct part){"attention.self.value.weight", model->hidden};
		return 3;
	}
	if (strcmp(name, "attention.self.qkv.bias") == 0) {
		ret[0] = (struct part){"attention.self.query.bias", model->hidden};
		ret[1] = (struct part){"attention.self.key.bias", model->hidden};
		ret[2] = (struct part){"attention.self.value.bias", model->hidden};
		return 3;
	}
	if (strcmp(name, "mlp.gate_up_proj.weight") == 0) {
		ret[0] = (struct part){"mlp.gate_proj.weight", model->feed_forward};
		ret[1] = (struct part){"mlp.up_proj.weight", model->feed_forward};
		return 2;
	}
	if (strcmp(name, "block_sparse_moe.experts.w13.weight") == 0) {
		ret[0] = (struct part){"w1.weight", model->feed_forward};
		ret[1] = (struct part){"w3.weight", model->feed_forward};
		return 2;
	}
	if (strcmp(name, "block_sparse_moe.experts.w2.weight") == 0) {
		ret[0] = (struct part){"w2.weight", model->hidden};
		return 1;
	}
	return 0;
}

static void name_weight(
	const struct skep_model *model, uint32_t layer, uint32_t block, const char *name, char ret[SKEP_WEIGHT_NAME])
{
	const struct prefixes *p = &prefixes[model->architecture];
	const bool whole = strcmp(name, "lm_head.weight") == 0 || strncmp(name, "cls.", 4) == 0;
	if (strcmp(name, "cls.predictions.bias") == 0 && !model->tied &&
		!model->copied) /* transformers adds the other one */
		snprintf(ret, SKEP_WEIGHT_NAME, "cls.predictions.decoder.bias");
	else if (strcmp(name, p->head) == 0 && model->copied) /* files have one table */
		snprintf(ret, SKEP_WEIGHT_NAME, "%s.%s", p->model, p->table);
	else if (whole)
		snprintf(ret, SKEP_WEIGHT_NAME, "%s", name);
	else if (layer == 0 || layer + 1 == model->layers)
		snprintf(ret, SKEP_WEIGHT_NAME, "%s.%s", p->model, name);
	else
		snprintf(ret, SKEP_WEIGHT_NAME, "%s.%s.%u.%s", p->model, p->block, block, name);
}

/* `columns` of the tensor, which has `width` of them. */
static struct skep_weight weight_of(const struct skep_tensor *tensor, bool turned, uint32_t columns, float *at)
{
	struct skep_weight w = {.dimensions = 2, .at = at};
	if (tensor->rows == 1) {
		w = (struct skep_weight){.dimensions = 1, .shape = {columns, 1}, .at = at, .step = {1, 0}};
	} else if (turned) {
		w.shape[0] = columns;
		w.shape[1] = tensor->rows;
		w.step[0] = 1;
		w.step[1] = tensor->columns;
	} else {
		w.shape[0] = tensor->rows;
		w.shape[1] = columns;
		w.step[0] = tensor->columns;
		w.step[1] = 1;
	}
	return w;
}

/* Tables of tokens have a row for each token in both. */
static bool is_turned(const struct skep_model *model, const struct skep_tensor *tensor)
{
	return model->architecture != SKEP_ARCHITECTURE_GPT2 && tensor->role == SKEP_TENSOR_MATRIX;
}

/* In files each expert of a block has matrices of its own. */
static uint32_t tensor_weights(const struct skep_model *model, uint32_t layer, uint32_t block,
	const struct skep_tensor *tensor, float *parameter, struct skep_weight *ret)
{
	struct part part[PARTS_MAX];
	struct skep_tensor one = *tensor;
	uint32_t parts = parts_of(model, tensor->name, part), stacked = tensor->stacked > 0 ? tensor->stacked : 1;
	if (parts == 0) {
		part[0] = (struct part){tensor->name, tensor->columns};
		parts = 1;
	}
	one.rows /= stacked;
	for (uint32_t i = 0, column = 0; ret != NULL && i < stacked * parts; i++) {
		const struct part *p = &part[i % parts];
		const size_t before = tensor->offset + (size_t)(i / parts) * one.rows * one.columns;
		char name[SKEP_WEIGHT_NAME / 2];
		snprintf(name, sizeof name, "block_sparse_moe.experts.%u.%s", i / parts, p->name);
		ret[i] = weight_of(&one, is_turned(model, tensor), p->columns,
			parameter != NULL ? parameter + before + column : NULL);
		name_weight(model, layer, block, tensor->stacked > 0 ? name : p->name, ret[i].name);
		column += p->columns;
		assert(column <= one.columns && (column == one.columns || i % parts + 1 < parts));
		column %= one.columns;
	}
	return stacked * parts;
}

struct piece { /* rows and columns of a tensor of the whole model; `own`: the column of the shard's tensor that the first is */
	uint64_t row, rows, column, columns, own;
};

static void take_piece(
	struct skep_weight *weight, const struct skep_tensor *own, bool turned, const struct piece *piece)
{
	const uint32_t row = turned ? 1 : 0, column = 1 - row;
	if (weight->dimensions == 1) {
		weight->first[0] = piece->column, weight->count[0] = piece->columns;
		weight->first[1] = 0, weight->count[1] = 1;
		return;
	}
	weight->first[row] = piece->row, weight->count[row] = piece->rows;
	weight->first[column] = piece->column, weight->count[column] = piece->columns;
	weight->step[row] = own->columns, weight->step[column] = 1;
}

/* Of a shard: each weight in as many pieces as the shard has of it, one for each group of columns. */
static uint32_t tensor_pieces(const struct skep_model *model, uint32_t layer, uint32_t block,
	const struct skep_tensor *whole, const struct skep_tensor *own, float *parameter, struct skep_weight *ret)
{
	const struct skep_model of = skep_model_whole(model);
	const bool columns = whole->cut == SKEP_TENSOR_BY_COLUMNS, rows = whole->cut == SKEP_TENSOR_BY_ROWS;
	struct skep_weight weight[PARTS_MAX];
	const struct skep_own_rows of_rank = skep_model_own_rows(model, whole->rows);
	struct piece piece = {rows ? of_rank.first : 0, rows ? of_rank.count : own->rows, 0, 0, 0};
	uint32_t groups = 1, parts = tensor_weights(&of, layer, block, whole, NULL, NULL);
	while (columns && groups < SKEP_TENSOR_GROUPS_MAX && whole->group[groups] > 0)
		groups++;
	assert(parts == 1 || parts == groups);
	if (ret == NULL)
		return groups;
	tensor_weights(&of, layer, block, whole, NULL, weight);
	for (uint32_t g = 0, before = 0; g < groups; g++) {
		const uint32_t width = columns ? whole->group[g] : whole->columns;
		piece.column = (parts > 1 ? 0 : before) + (columns ? skep_model_first_of(model, width) : 0);
		piece.columns = columns ? skep_model_own_of(model, width) : width;
		ret[g] = weight[parts > 1 ? g : 0];
		ret[g].at = parameter != NULL ? parameter + own->offset + piece.own : NULL;
		take_piece(&ret[g], own, is_turned(model, whole), &piece);
		before += width;
		piece.own += piece.columns;
	}
	return groups;
}

uint32_t skep_hf_layer_weights(
	const struct skep_model *model, uint32_t layer, float *parameter, struct skep_weight *ret)
{
	const struct skep_model whole = skep_model_whole(model);
	struct skep_tensor tensor[SKEP_TENSORS_MAX], all[SKEP_TENSORS_MAX];
	struct skep_layer of = skep_layer_of(model, layer), of_whole = skep_layer_of(&whole, layer);
	bool edge = layer == 0 || layer + 1 == model->layers, cut = skep_model_ranks(model) > 1;
	uint32_t tensors = of.type->tensors(&of, tensor), count = 0, repeats = edge ? 1 : model->shared;
	of.type->tensors(&of_whole, all);
	for (uint32_t r = 0; r < repeats; r++)
		for (uint32_t t = 0; t < tensors; t++) {
			struct skep_weight *to = ret != NULL ? ret + count : NULL;
			const uint32_t block = edge ? 0 : (layer - 1) * model->shared + r;
			count += cut ? tensor_pieces(model, layer, block, &all[t], &tensor[t], parameter, to)
			             : tensor_weights(model, layer, block, &tensor[t], parameter, to);
		}
	return count;
}

uint32_t skep_hf_model_weights(const struct skep_model *model, struct skep_weight **ret)
{
	const struct skep_model whole = skep_model_whole(model);
	uint32_t count = 0, at = 0;
	for (uint32_t l = 0; l < model->layers; l++)
		count += skep_hf_layer_weights(&whole, l, NULL, NULL);
	*ret = calloc(count, sizeof **ret);
	for (uint32_t l = 0; *ret != NULL && l < model->layers; l++)
		at += skep_hf_layer_weights(&whole, l, NULL, *ret + at);
	return at;
}

/* ---- names -------------------------------------------------------------------------------------------------- */

/* Masks of the attention and frequencies of the rotation: old files have them. */
static bool is_buffer(const char *name)
{
	return skep_text_ends(name, ".attn.bias") || skep_text_ends(name, ".attn.masked_bias") ||
	       skep_text_ends(name, ".rotary_emb.inv_freq");
}

static bool is_buffer_or_tied(const char *name)
{
	return is_buffer(name) || strcmp(name, "lm_head.weight") == 0;
}

/* What else a BERT was trained for, whether a sentence follows another one; its tied head once more; and numbers of positions. */
static bool is_beside_bert(const char *name)
{
	static const char *const begins[] = {
		"bert.pooler.", "pooler.", "cls.seq_relationship.", "cls.predictions.decoder.", "cls.predictions.bias"};
	for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
		if (strncmp(name, begins[i], strlen(begins[i])) == 0)
			return true;
	return skep_text_ends(name, "embeddings.position_ids");
}

/* Norms of the first files of BERT, which were those of TensorFlow, have a gamma and a beta. A head of its own begins with the
 * bias of a tied one. */
static bool older_bert(const char *name, char ret[SKEP_WEIGHT_NAME])
{
	static const char *const ends[][2] = {{".LayerNorm.weight", "gamma"}, {".LayerNorm.bias", "beta"}};
	if (strcmp(name, "cls.predictions.decoder.bias") == 0) {
		strcpy(ret, "cls.predictions.bias");
		return true;
	}
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		if (skep_text_ends(name, ends[i][0])) {
			const char *dot = strrchr(name, '.');
			snprintf(ret, SKEP_WEIGHT_NAME, "%.*s%s", (int)(dot + 1 - name), name, ends[i][1]);
			return true;
		}
	return false;
}

/* Files of models with tied heads have no head; who unties one begins with a copy of the table, as transformers does. */
struct skep_weight_names skep_hf_names(const struct skep_model *model)
{
	static const struct skep_weight_names gpt2 = {.prefix = "transformer.", .is_ignored = is_buffer},
					      llama = {.prefix = "model.", .is_ignored = is_buffer},
					      bert = {.prefix = "bert.",
						      .is_ignored = is_beside_bert,
						      .older = older_bert};
	const bool tied = model->tied || model->copied, is_bert = model->architecture == SKEP_ARCHITECTURE_BERT;
	struct skep_weight_names ret = is_bert ? bert : model->architecture == SKEP_ARCHITECTURE_LLAMA ? llama : gpt2;
	if (tied) {
		ret.is_ignored = is_bert ? is_beside_bert : is_buffer_or_tied;
		return ret;
	}
	ret.head = prefixes[model->architecture].head;
	ret.table = is_bert                                          ? "bert.embeddings.word_embeddings.weight"
	            : model->architecture == SKEP_ARCHITECTURE_LLAMA ? "model.embed_tokens.weight"
	                                                             : "transformer.wte.weight";
	return ret;
}
