/* SPDX-License-Identifier: Apache-2.0
 *
 * hf_config.c - see hf_config.h. JSON is read by the reader of YAML, of which it is a part, so that an error shows the line.
 * Keys, their other names and what holds without them are those of transformers' GPT2Config, LlamaConfig,
 * MixtralConfig and BertConfig.
 */
#include "models/read/hf_config.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/files.h"
#include "models/read/experts.h"

enum { WIDTH_MAX = 65536, BLOCKS_MAX = 4095, TOKENS_MAX = 1 << 24, SEQUENCE_MAX = WIDTH_MAX - 1 };
enum { PUBLISHED_MASK = 103, SEGMENTS = 2 };

struct reading {
	struct skep_reader *r;
	const struct skep_yaml_node *root;
};

/* ---- keys --------------------------------------------------------------------------------------------------- */

/* NULL where the key is not there or null. */
static const struct skep_yaml_node *find(struct reading *c, const struct skep_yaml_node *map, const char *key)
{
	const struct skep_yaml_node *node;
	const char *name;
	for (uint32_t i = 0; (node = skep_read_entry(c->r, map, i, &name)) != NULL; i++)
		if (strcmp(name, key) == 0)
			break;
	if (node != NULL && skep_yaml_kind(node) == SKEP_YAML_SCALAR &&
		strcmp(skep_read_string(c->r, node, NULL, ""), "null") == 0)
		return NULL;
	return node;
}

/* The first of the keys that is there; `fallback` INT64_MIN: one of them must be. */
static uint32_t integer(struct reading *c, const char *key, const char *other, int64_t high, int64_t fallback)
{
	if (find(c, c->root, key) == NULL && other != NULL && find(c, c->root, other) != NULL)
		key = other;
	if (find(c, c->root, key) == NULL && fallback != INT64_MIN)
		return (uint32_t)fallback;
	return (uint32_t)skep_read_integer(c->r, c->root, key, 1, high, INT64_MIN);
}

static double number(
	struct reading *c, const struct skep_yaml_node *map, const char *key, double low, double high, double fallback)
{
	return find(c, map, key) == NULL ? fallback : skep_read_number(c->r, map, key, low, high, NAN);
}

static bool truth(struct reading *c, const char *key, bool fallback)
{
	return find(c, c->root, key) == NULL ? fallback : skep_read_bool(c->r, c->root, key, fallback);
}

/* For keys that skep knows one value of. */
static void must_be(struct reading *c, const char *key, bool value, const char *why)
{
	if (truth(c, key, value) != value)
		skep_reader_fail(c->r, c->root, key, "%s: expected %s: %s", key, value ? "true" : "false", why);
}

static void must_be_one(struct reading *c, const char *key, const char *const words[], const char *why)
{
	const struct skep_yaml_node *node = find(c, c->root, key);
	const char *text = node != NULL ? skep_read_string(c->r, node, NULL, NULL) : words[0];
	for (uint32_t i = 0; words[i] != NULL; i++)
		if (strcmp(words[i], text) == 0)
			return;
	skep_reader_fail(c->r, node, NULL, "%s: expected %s, not `%.40s`: %s", key, words[0], text, why);
}

/* ---- families ----------------------------------------------------------------------------------------------- */

static void read_gpt2(struct reading *c, struct skep_hf_config *ret)
{
	static const char *const bends[] = {"gelu_new", "gelu_pytorch_tanh", "gelu_fast", NULL};
	ret->vocabulary = integer(c, "vocab_size", NULL, TOKENS_MAX, INT64_MIN);
	ret->positions = integer(c, "n_positions", "max_position_embeddings", WIDTH_MAX - 1, INT64_MIN);
	ret->hidden = integer(c, "n_embd", "hidden_size", WIDTH_MAX, INT64_MIN);
	ret->blocks = integer(c, "n_layer", "num_hidden_layers", BLOCKS_MAX, INT64_MIN);
	ret->heads = ret->kv_heads = integer(c, "n_head", "num_attention_heads", WIDTH_MAX, INT64_MIN);
	ret->feed_forward = integer(c, "n_inner", NULL, WIDTH_MAX * 8, 4 * (int64_t)ret->hidden);
	ret->norm_epsilon = number(c, c->root, "layer_norm_epsilon", 0, 1, 1e-5);
	ret->tied = truth(c, "tie_word_embeddings", true);
	must_be_one(c, "activation_function", bends, "skep's gelu is the one with tanh, whose numbers differ");
	must_be(c, "scale_attn_weights", true, "skep divides scores by the root of the head's width");
	must_be(c, "scale_attn_by_inverse_layer_idx", false, "skep scales scores alike in all blocks");
	must_be(c, "add_cross_attention", false, "skep has no encoder that could be attended to");
}

/* Newer files keep both keys of the rotation in a group of their own. */
static void read_rotation(struct reading *c, double usual, struct skep_hf_config *ret)
{
	static const char *const groups[] = {"rope_scaling", "rope_parameters"}, *const kinds[] = {"rope_type", "type"};
	ret->rotary_base = number(c, c->root, "rope_theta", 1, 1e12, usual);
	for (uint32_t g = 0; g < 2; g++) {
		const struct skep_yaml_node *group = find(c, c->root, groups[g]), *kind = NULL;
		if (group == NULL)
			continue;
		if (skep_yaml_kind(group) != SKEP_YAML_MAP) {
			skep_reader_fail(c->r, group, NULL, "%s: expected a group of keys or null", groups[g]);
			return;
		}
		for (uint32_t k = 0; k < 2 && kind == NULL; k++)
			kind = find(c, group, kinds[k]);
		const char *name = kind != NULL ? skep_read_string(c->r, kind, NULL, NULL) : "";
		if (strcmp(name, "default") != 0 && (kind != NULL || g == 0))
			skep_reader_fail(c->r, kind != NULL ? kind : group, NULL,
				"%s: positions that are scaled%s%.20s%s are not built; weights trained with them need "
				"them, others take \"%s\": null",
				groups[g], kind != NULL ? " (" : "", name, kind != NULL ? ")" : "", groups[g]);
		ret->rotary_base = number(c, group, "rope_theta", 1, 1e12, ret->rotary_base);
	}
}

static void read_llama(struct reading *c, struct skep_hf_config *ret)
{
	static const char *const bends[] = {"silu", "swish", NULL};
	const bool mixtral = ret->family == SKEP_HF_MIXTRAL;
	ret->vocabulary = integer(c, "vocab_size", NULL, TOKENS_MAX, INT64_MIN);
	ret->positions = integer(c, "max_position_embeddings", NULL, TOKENS_MAX, INT64_MIN);
	ret->hidden = integer(c, "hidden_size", NULL, WIDTH_MAX, INT64_MIN);
	ret->blocks = integer(c, "num_hidden_layers", NULL, BLOCKS_MAX, INT64_MIN);
	ret->heads = integer(c, "num_attention_heads", NULL, WIDTH_MAX, INT64_MIN);
	ret->kv_heads = integer(c, "num_key_value_heads", NULL, WIDTH_MAX, mixtral ? 8 : ret->heads);
	ret->feed_forward = integer(c, "intermediate_size", NULL, WIDTH_MAX * 8, INT64_MIN);
	ret->norm_epsilon = number(c, c->root, "rms_norm_eps", 0, 1, mixtral ? 1e-5 : 1e-6);
	ret->tied = truth(c, "tie_word_embeddings", false);
	read_rotation(c, mixtral ? 1e6 : 1e4, ret);
	must_be_one(c, "hidden_act", bends, "skep's feed-forward part of a Llama is SwiGLU");
	must_be(c, "attention_bias", false, "skep's products in a Llama have no biases");
	must_be(c, "mlp_bias", false, "skep's products in a Llama have no biases");
}

/* One balance of all blocks together in transformers, one of each here: so the coefficient is shared out. It counts only where
 * the router's scores are asked for. */
static void read_mixtral(struct reading *c, struct skep_hf_config *ret)
{
	read_llama(c, ret);
	uint32_t count = integer(c, "num_local_experts", NULL, SKEP_EXPERTS_MAX, 8);
	uint32_t per_token = integer(c, "num_experts_per_tok", NULL, SKEP_EXPERTS_MAX, 2);
	double balance = number(c, c->root, "router_aux_loss_coef", 0, 1e3, 0.001);
	ret->experts = (struct skep_experts){.count = count, .per_token = per_token, .renormalized = true};
	if (truth(c, "output_router_logits", false) && ret->blocks > 0)
		ret->experts.aux_loss = balance / ret->blocks;
	if (number(c, c->root, "router_jitter_noise", 0, 1e3, 0) > 0)
		skep_reader_fail(c->r, c->root, "router_jitter_noise",
			"router_jitter_noise: expected 0: skep's router adds no noise");
	else if (per_token > count)
		skep_reader_fail(c->r, c->root, "num_experts_per_tok",
			"num_experts_per_tok: a token cannot go to %u experts where there are %u", per_token, count);
	else if (find(c, c->root, "sliding_window") != NULL &&
		 integer(c, "sliding_window", NULL, TOKENS_MAX, TOKENS_MAX) < ret->positions)
		skep_reader_fail(c->r, c->root, "sliding_window",
			"sliding_window: expected null, or at least the %u positions: skep's attention sees all of a sequence",
			ret->positions);
}

/* The mask token is not in a config.json: `[MASK]` has the number 103 in the vocabularies that BERT was published with. */
static uint32_t read_mask_token(struct reading *c, uint32_t vocabulary)
{
	const uint32_t usual = vocabulary > PUBLISHED_MASK ? PUBLISHED_MASK : vocabulary - 1;
	if (find(c, c->root, "mask_token_id") == NULL)
		return usual;
	return (uint32_t)skep_read_integer(
		c->r, c->root, "mask_token_id", 0, vocabulary > 0 ? (int64_t)vocabulary - 1 : 0, INT64_MIN);
}

static void read_bert(struct reading *c, struct skep_hf_config *ret)
{
	static const char *const bends[] = {"gelu", "gelu_python", NULL}, *const positions[] = {"absolute", NULL};
	ret->vocabulary = integer(c, "vocab_size", NULL, TOKENS_MAX, INT64_MIN);
	ret->positions = integer(c, "max_position_embeddings", NULL, WIDTH_MAX - 1, INT64_MIN);
	ret->hidden = integer(c, "hidden_size", NULL, WIDTH_MAX, INT64_MIN);
	ret->blocks = integer(c, "num_hidden_layers", NULL, BLOCKS_MAX, INT64_MIN);
	ret->heads = ret->kv_heads = integer(c, "num_attention_heads", NULL, WIDTH_MAX, INT64_MIN);
	ret->feed_forward = integer(c, "intermediate_size", NULL, WIDTH_MAX * 8, INT64_MIN);
	ret->norm_epsilon = number(c, c->root, "layer_norm_eps", 0, 1, 1e-12);
	ret->tied = truth(c, "tie_word_embeddings", true);
	ret->masked = SKEP_MASKED_USUALLY;
	ret->mask_token = read_mask_token(c, ret->vocabulary);
	must_be_one(c, "hidden_act", bends, "skep's gelu of a BERT is the one with erf, whose numbers differ");
	must_be_one(c, "position_embedding_type", positions, "skep's BERT has a table of positions");
	must_be(c, "is_decoder", false, "skep's BERT predicts tokens that are masked");
	must_be(c, "add_cross_attention", false, "skep has no encoder that could be attended to");
	if (!c->r->diag->set && integer(c, "type_vocab_size", NULL, TOKENS_MAX, SEGMENTS) != SEGMENTS)
		skep_reader_fail(c->r, c->root, "type_vocab_size",
			"type_vocab_size: expected %d: skep's BERT has a table of so many segments", SEGMENTS);
}

static bool rotates(enum skep_hf_family family)
{
	return family == SKEP_HF_LLAMA || family == SKEP_HF_MIXTRAL;
}

/* What all have in common, once their keys are read without an error. */
static void check(struct reading *c, const struct skep_hf_config *config)
{
	bool llama = rotates(config->family);
	const char *heads =
		config->family != SKEP_HF_GPT2 || find(c, c->root, "n_head") == NULL ? "num_attention_heads" : "n_head";
	if (config->hidden % config->heads != 0)
		skep_reader_fail(
			c->r, c->root, heads, "%s: expected a divisor of the hidden size, %u", heads, config->hidden);
	else if (config->heads % config->kv_heads != 0)
		skep_reader_fail(c->r, c->root, "num_key_value_heads",
			"num_key_value_heads: expected a divisor of the %u heads", config->heads);
	else if (llama && config->hidden / config->heads % 2 != 0)
		skep_reader_fail(c->r, c->root, heads,
			"%s: heads of %u numbers cannot be rotated in pairs: expected an even width", heads,
			config->hidden / config->heads);
	else if (llama && integer(c, "head_dim", NULL, WIDTH_MAX, config->hidden / config->heads) !=
				  config->hidden / config->heads)
		skep_reader_fail(c->r, c->root, "head_dim",
			"head_dim: expected %u, hidden_size / num_attention_heads: heads of another width are not "
			"built",
			config->hidden / config->heads);
}

static void read_config(struct reading *c, struct skep_hf_config *ret)
{
	static const char *const families[] = {"gpt2", "llama", "mixtral", "bert", NULL};
	const struct skep_yaml_node *quantised = find(c, c->root, "quantization_config");
	ret->family = (enum skep_hf_family)skep_read_choice(c->r, c->root, "model_type", families, -1);
	if (quantised != NULL)
		skep_reader_fail(
			c->r, quantised, NULL, "weights that are quantised cannot be trained: use the original ones");
	if (c->r->diag->set)
		return;
	if (ret->family == SKEP_HF_MIXTRAL)
		read_mixtral(c, ret);
	else if (ret->family == SKEP_HF_LLAMA)
		read_llama(c, ret);
	else if (ret->family == SKEP_HF_BERT)
		read_bert(c, ret);
	else
		read_gpt2(c, ret);
	if (!c->r->diag->set)
		check(c, ret);
}

/* Is it no JSON? Where a file ends too early its last character is shown. */
static bool fail_json(const char *path, const char *text, size_t size, struct skep_diag *reterr)
{
	const char *at = text;
	cJSON *json = cJSON_ParseWithLengthOpts(text, size + 1, &at, false);
	cJSON_Delete(json);
	if (json != NULL)
		return false;
	bool ends = at[strspn(at, " \t\r\n")] == 0;
	while (ends && at > text && strchr(" \t\r\n", *at) != NULL)
		at--;
	uint32_t line = 1;
	const char *begin = text;
	for (const char *c = text; c < at; c++)
		if (*c == '\n') {
			line++;
			begin = c + 1;
		}
	skep_diag_set(reterr, path, line, (uint32_t)(at - begin) + 1, begin, "not JSON: %s",
		ends ? "the file ends here, before what it has opened is closed" : "this cannot stand here");
	return true;
}

bool skep_hf_config_read(const char *path, struct skep_hf_config *ret, struct skep_diag *reterr)
{
	char *text = NULL;
	size_t size = 0;
	*ret = (struct skep_hf_config){0};
	if (!skep_file_read(path, SKEP_FILE_BYTES_MAX, &text, &size, reterr))
		return false;
	struct skep_diag why = skep_diag_beside(reterr);
	struct skep_yaml *yaml = skep_yaml_parse(path, text, size, &why);
	bool broken = yaml == NULL && strncmp(why.message, "not YAML", 8) == 0;
	if (yaml == NULL && !(broken && fail_json(path, text, size, reterr)))
		*reterr = why; /* what else the reader refuses: a key twice, for one */
	free(text);
	if (yaml == NULL)
		return false;
	struct skep_reader r = {yaml, reterr};
	struct reading c = {&r, skep_yaml_root(yaml)};
	read_config(&c, ret);
	skep_yaml_destroy(yaml);
	return !reterr->set;
}

/* ---- writing ------------------------------------------------------------------------------------------------ */

static void add_number(cJSON *root, const char *key, double value)
{
	cJSON_AddNumberToObject(root, key, value);
}

static void add_gpt2(cJSON *root, const struct skep_hf_config *c)
{
	add_number(root, "n_positions", c->positions);
	add_number(root, "n_embd", c->hidden);
	add_number(root, "n_layer", c->blocks);
	add_number(root, "n_head", c->heads);
	add_number(root, "n_inner", c->feed_forward);
	add_number(root, "layer_norm_epsilon", c->norm_epsilon);
	cJSON_AddStringToObject(root, "activation_function", "gelu_new");
}

/* By the names that all but GPT-2 have for them. */
static void add_measures(cJSON *root, const struct skep_hf_config *c)
{
	add_number(root, "max_position_embeddings", c->positions);
	add_number(root, "hidden_size", c->hidden);
	add_number(root, "intermediate_size", c->feed_forward);
	add_number(root, "num_hidden_layers", c->blocks);
	add_number(root, "num_attention_heads", c->heads);
}

static void add_llama(cJSON *root, const struct skep_hf_config *c)
{
	add_measures(root, c);
	add_number(root, "num_key_value_heads", c->kv_heads);
	add_number(root, "rms_norm_eps", c->norm_epsilon);
	add_number(root, "rope_theta", c->rotary_base);
	cJSON_AddNullToObject(root, "rope_scaling");
	cJSON_AddStringToObject(root, "hidden_act", "silu");
	if (c->family == SKEP_HF_MIXTRAL)
		return;
	cJSON_AddFalseToObject(root, "attention_bias");
	cJSON_AddFalseToObject(root, "mlp_bias");
}

static void add_mixtral(cJSON *root, const struct skep_hf_config *c)
{
	add_llama(root, c);
	add_number(root, "num_local_experts", c->experts.count);
	add_number(root, "num_experts_per_tok", c->experts.per_token);
	cJSON_AddBoolToObject(root, "output_router_logits", c->experts.aux_loss > 0);
	/* transformers refuses a whole number here, as it would be written of 0 or 1. */
	char balance[64];
	const double coefficient = c->experts.aux_loss * c->blocks;
	snprintf(balance, sizeof balance, coefficient == floor(coefficient) ? "%.1f" : "%.17g", coefficient);
	cJSON_AddRawToObject(root, "router_aux_loss_coef", balance);
	cJSON_AddNullToObject(root, "sliding_window");
}

static void add_bert(cJSON *root, const struct skep_hf_config *c)
{
	add_measures(root, c);
	add_number(root, "layer_norm_eps", c->norm_epsilon);
	add_number(root, "type_vocab_size", SEGMENTS);
	add_number(root, "mask_token_id", c->mask_token);
	cJSON_AddStringToObject(root, "position_embedding_type", "absolute");
	cJSON_AddStringToObject(root, "hidden_act", "gelu");
}

static const struct {
	const char *type, *architecture;
	void (*add)(cJSON *root, const struct skep_hf_config *config);
} families[] = {[SKEP_HF_GPT2] = {"gpt2", "GPT2LMHeadModel", add_gpt2},
	[SKEP_HF_LLAMA] = {"llama", "LlamaForCausalLM", add_llama},
	[SKEP_HF_MIXTRAL] = {"mixtral", "MixtralForCausalLM", add_mixtral},
	[SKEP_HF_BERT] = {"bert", "BertForMaskedLM", add_bert}};

char *skep_hf_config_print(const struct skep_hf_config *config)
{
	cJSON *root = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(root, "architectures");
	cJSON_AddItemToArray(list, cJSON_CreateString(families[config->family].architecture));
	cJSON_AddStringToObject(root, "model_type", families[config->family].type);
	add_number(root, "vocab_size", config->vocabulary);
	families[config->family].add(root, config);
	cJSON_AddBoolToObject(root, "tie_word_embeddings", config->tied);
	cJSON_AddStringToObject(root, "torch_dtype", "float32");
	/* Tokens that begin and end a text: those of a vocabulary that is not known here. */
	cJSON_AddNullToObject(root, "bos_token_id");
	cJSON_AddNullToObject(root, "eos_token_id");
	char *text = cJSON_Print(root);
	cJSON_Delete(root);
	return text;
}

/* ---- models of skep's --------------------------------------------------------------------------------------- */

bool skep_hf_config_is(const char *path)
{
	size_t length = strlen(path);
	return length > 5 && strcmp(path + length - 5, ".json") == 0;
}

/* A config.json says no name: that of its folder, wherever it is named from, or else the kind. Links are not followed: caches
 * keep files elsewhere, under names that are digests, and a copy of the files on another machine has their names alone. */
static void name_model(const char *path, const struct skep_hf_config *config, struct skep_model *ret)
{
	char folder[sizeof ret->path], whole[4096];
	snprintf(folder, sizeof folder, "%s", path);
	char *end = strrchr(folder, '/');
	if (end != NULL && end > folder)
		*end = 0;
	else
		strcpy(folder, end != NULL ? "/" : ".");
	char *here = getcwd(NULL, 0);
	bool normal = here != NULL && skep_path_normal(here, folder, whole, sizeof whole);
	const char *name = normal ? strrchr(whole, '/') + 1 : "";
	if (name[0] == 0 || name[0] == '.' || strlen(name) >= sizeof ret->name)
		name = families[config->family].type;
	strcpy(ret->name, name);
	free(here);
}

bool skep_hf_model_read(const char *path, struct skep_model *ret, struct skep_diag *reterr)
{
	struct skep_hf_config c;
	*ret = (struct skep_model){0};
	if (!skep_hf_config_read(path, &c, reterr))
		return false;
	*ret = (struct skep_model){.kind = SKEP_MODEL_TRANSFORMER,
		.activation = SKEP_ACTIVATION_GELU,
		.hidden = c.hidden,
		.sequence = c.positions < SEQUENCE_MAX ? c.positions : SEQUENCE_MAX,
		.shared = 1,
		.vocabulary = c.vocabulary,
		.heads = c.heads,
		.dropout = SKEP_DROPOUT_NONE,
		.architecture = rotates(c.family)          ? SKEP_ARCHITECTURE_LLAMA
	                        : c.family == SKEP_HF_BERT ? SKEP_ARCHITECTURE_BERT
	                                                   : SKEP_ARCHITECTURE_GPT2,
		.kv_heads = c.kv_heads,
		.feed_forward = c.feed_forward,
		.context = c.positions,
		.tied = c.tied,
		.norm_epsilon = c.norm_epsilon,
		.rotary_base = c.rotary_base,
		.experts = c.experts,
		.masked = c.masked,
		.mask_token = c.mask_token};
	snprintf(ret->path, sizeof ret->path, "%s", path);
	name_model(path, &c, ret);
	if (!skep_model_place(ret, c.blocks))
		skep_diag_set(reterr, path, 0, 0, NULL, "not enough memory for %u blocks", c.blocks);
	return !reterr->set;
}

struct skep_hf_config skep_hf_config_of(const struct skep_model *model)
{
	assert(model->architecture != SKEP_ARCHITECTURE_NONE);
	static const enum skep_hf_family family[] = {[SKEP_ARCHITECTURE_GPT2] = SKEP_HF_GPT2,
		[SKEP_ARCHITECTURE_LLAMA] = SKEP_HF_LLAMA,
		[SKEP_ARCHITECTURE_BERT] = SKEP_HF_BERT};
	return (struct skep_hf_config){
		.family = model->experts.count > 0 ? SKEP_HF_MIXTRAL : family[model->architecture],
		.vocabulary = model->vocabulary,
		.positions = model->context > 0 ? model->context : model->sequence,
		.hidden = model->hidden,
		.blocks = (model->layers - 2) * model->shared,
		.heads = model->heads,
		.kv_heads = model->kv_heads,
		.feed_forward = model->feed_forward,
		.norm_epsilon = model->norm_epsilon,
		.rotary_base = model->rotary_base,
		.tied = model->tied || model->copied,
		.experts = model->experts,
		.masked = model->masked,
		.mask_token = model->mask_token};
}

const char *skep_hf_config_lacks(const struct skep_model *model)
{
	if (model->experts.count > 0 && !model->experts.renormalized)
		return "has experts whose weights are not renormalized, and those of a Mixtral always are: take `renormalize: "
		       "true`, with two experts per token or more";
	return NULL;
}
