/* SPDX-License-Identifier: Apache-2.0
 *
 * model.c - see model.h. Sizes of GPT-2: Radford et al. 2019; of Llama: Touvron et al. 2023 (arXiv 2302.13971, 2307.09288) and
 * Meta's model cards of Llama 3 and 3.2; of TinyLlama: Zhang et al. 2024 (arXiv 2401.02385); of Mixtral: Jiang et al.
 * 2024 (arXiv 2401.04088).
 */
#include "asking/model.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "models/read/model.h"

#define GPT2_VOCABULARY 50257u
#define SEQUENCE 1024u

struct shape {
	const char *name;
	uint32_t hidden, heads, blocks;
	uint32_t kv_heads, feed_forward, sequence, vocabulary; /* of llama; 0: a GPT-2 */
	bool tied;
	uint32_t experts, per_token; /* of a mixture, else 0 */
};

static const struct shape shapes[] = {
	{"gpt2", 768, 12, 12, .tied = true},
	{"gpt2-small", 768, 12, 12, .tied = true},
	{"gpt2-medium", 1024, 16, 24, .tied = true},
	{"gpt2-large", 1280, 20, 36, .tied = true},
	{"gpt2-xl", 1600, 25, 48, .tied = true},
	{"tinyllama-1.1b", 2048, 32, 22, 4, 5632, 2048, 32000, .tied = false},
	{"llama-7b", 4096, 32, 32, 32, 11008, 2048, 32000, .tied = false},
	{"llama-13b", 5120, 40, 40, 40, 13824, 2048, 32000, .tied = false},
	{"llama-30b", 6656, 52, 60, 52, 17920, 2048, 32000, .tied = false},
	{"llama-65b", 8192, 64, 80, 64, 22016, 2048, 32000, .tied = false},
	{"llama-2-7b", 4096, 32, 32, 32, 11008, 4096, 32000, .tied = false},
	{"llama-2-13b", 5120, 40, 40, 40, 13824, 4096, 32000, .tied = false},
	{"llama-2-70b", 8192, 64, 80, 8, 28672, 4096, 32000, .tied = false},
	{"llama-3-8b", 4096, 32, 32, 8, 14336, 8192, 128256, .tied = false},
	{"llama-3-70b", 8192, 64, 80, 8, 28672, 8192, 128256, .tied = false},
	{"llama-3.2-1b", 2048, 32, 16, 8, 8192, 8192, 128256, .tied = true},
	{"llama-3.2-3b", 3072, 24, 28, 8, 8192, 8192, 128256, .tied = true},
	{"mixtral-8x7b", 4096, 32, 32, 8, 14336, 4096, 32000, .experts = 8, .per_token = 2},
};
#define SHAPES (sizeof shapes / sizeof shapes[0])

static void write_shape(const struct shape *s, struct skep_ask_model *ret)
{
	snprintf(ret->name, sizeof ret->name, "%s", s->name);
	int used = snprintf(ret->text, sizeof ret->text,
		"name: %s\nkind: transformer\ntransformer:\n  {architecture: %s, hidden: %u, heads: %u, blocks: %u, "
		"sequence: %u, vocabulary: %u",
		s->name, s->feed_forward > 0 ? "llama" : "gpt2", s->hidden, s->heads, s->blocks,
		s->sequence > 0 ? s->sequence : SEQUENCE, s->vocabulary > 0 ? s->vocabulary : GPT2_VOCABULARY);
	if (s->feed_forward > 0)
		used += snprintf(ret->text + used, sizeof ret->text - (size_t)used, ", kv_heads: %u, feed_forward: %u",
			s->kv_heads, s->feed_forward);
	if (s->experts > 0)
		used += snprintf(ret->text + used, sizeof ret->text - (size_t)used,
			", experts: {count: %u, per_token: %u}", s->experts, s->per_token);
	snprintf(ret->text + used, sizeof ret->text - (size_t)used, "%s}\n", s->tied ? ", tied: true" : "");
}

/* Blocks of the model of GPT-3's table that is next to it in the logarithm of its size; smaller ones have six. */
static uint32_t blocks_for(double parameters)
{
	static const struct {
		double parameters;
		uint32_t blocks;
	} table[] = {{30e6, 6}, {125e6, 12}, {350e6, 24}, {760e6, 24}, {1.3e9, 24}, {2.7e9, 32}, {6.7e9, 32},
		{13e9, 40}, {175e9, 96}};
	uint32_t best = 0;
	for (uint32_t i = 1; i < sizeof table / sizeof table[0]; i++)
		if (fabs(log(parameters / table[i].parameters)) < fabs(log(parameters / table[best].parameters)))
			best = i;
	return table[best].blocks;
}

static void pick_shape(const char *given, double parameters, struct skep_ask_model *ret)
{
	double blocks = blocks_for(parameters), tables = GPT2_VOCABULARY + SEQUENCE;
	/* 12 L h^2 + (V + s) h = N, in heads of 64 */
	double hidden = (sqrt(tables * tables + 48 * blocks * parameters) - tables) / (24 * blocks);
	double heads = fmax(1, round(hidden / 64));
	char name[40];
	snprintf(name, sizeof name, "gpt-%.20s", given);
	const struct shape s = {.name = name,
		.hidden = (uint32_t)(64 * heads),
		.heads = (uint32_t)heads,
		.blocks = (uint32_t)blocks,
		.tied = true};
	write_shape(&s, ret);
}

static bool is_file(const char *given)
{
	size_t length = strlen(given);
	return strchr(given, '/') || (length > 5 && strcmp(given + length - 5, ".json") == 0) ||
	       (length > 5 && strcmp(given + length - 5, ".yaml") == 0);
}

static bool unknown(const char *given, struct skep_diag *reterr)
{
	const char *word[SHAPES], *near;
	char all[600] = "";
	for (uint32_t i = 0; i < SHAPES; i++) {
		size_t used = strlen(all);
		word[i] = shapes[i].name;
		snprintf(all + used, sizeof all - used, "%s%s", i > 0 ? ", " : "", word[i]);
	}
	near = skep_text_nearest(given, word, SHAPES);
	skep_diag_set(reterr, "--model", 0, 1, given,
		"no model is called '%.60s'%s%s%s; there are %s; or a number of parameters, as 150M, or a file: "
		"config.json of Hugging Face, or a model file of skep",
		given, near ? " (near: " : "", near ? near : "", near ? ")" : "", all);
	return false;
}

bool skep_ask_model_find(const char *given, struct skep_ask_model *ret, struct skep_diag *reterr)
{
	double parameters;
	*ret = (struct skep_ask_model){.parameters = 0};
	if (is_file(given)) {
		char path[PATH_MAX];
		if (!realpath(given, path) || strlen(path) >= sizeof ret->file) {
			skep_diag_set(reterr, "--model", 0, 1, given, "there is no such file");
			return false;
		}
		memcpy(ret->file, path, strlen(path) + 1);
		return true;
	}
	for (uint32_t i = 0; i < SHAPES; i++)
		if (strcasecmp(given, shapes[i].name) == 0) {
			write_shape(&shapes[i], ret);
			return true;
		}
	if (!skep_count_parse(given, &parameters))
		return unknown(given, reterr);
	if (parameters >= 10e6 && parameters <= 1e12) {
		pick_shape(given, parameters, ret);
		return true;
	}
	skep_diag_set(reterr, "--model", 0, 1, given, "expected 10M to 1T parameters, as in 150M or 1.3B");
	return false;
}

bool skep_ask_model_measure(struct skep_ask_model *model, const char *path, struct skep_diag *reterr)
{
	struct skep_model read;
	struct skep_cost cost;
	if (!skep_model_read(path, &read, reterr))
		return false;
	skep_model_cost(&read, 1, 0, &cost);
	snprintf(model->name, sizeof model->name, "%s", read.name);
	model->parameters = (double)cost.parameters;
	model->sequence = read.sequence;
	model->layers = read.layers;
	model->vocabulary = read.vocabulary;
	bool transformer = read.kind == SKEP_MODEL_TRANSFORMER;
	skep_model_finish(&read);
	if (!transformer)
		skep_diag_set(reterr, path, 0, 0, NULL,
			"`skep ask` answers for transformers, whose samples are tokens: for another model write a "
			"scenario and use skep plan");
	return transformer;
}
