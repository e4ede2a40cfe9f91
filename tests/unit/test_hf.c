/* SPDX-License-Identifier: Apache-2.0
 *
 * test_hf.c - models of Hugging Face: config.json is read or refused with the line; weights have the names and shapes of the
 * files, and all that differ are listed; with them the layers compute the logits that `transformers` computes
 * (tests/data/hf/README.md); what is written is read back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "models/layers/attention.h"
#include "models/layers/feed.h"
#include "models/layers/norm.h"
#include "models/read/hf_config.h"
#include "models/weights/hf_weights.h"
#include "models/weights/safetensors.h"

struct bench {
	char folder[64], path[128];
	struct skep_diag diag;
};

static void begin(struct bench *b)
{
	memset(b, 0, sizeof *b);
	strcpy(b->folder, "/tmp/skep-hf-XXXXXX");
	assert_non_null(mkdtemp(b->folder));
	strcpy(stpcpy(b->path, b->folder), "/config.json");
}

static void finish(struct bench *b)
{
	char command[128];
	snprintf(command, sizeof command, "rm -r %s", b->folder);
	assert_int_equal(system(command), 0);
}

static void write_text(const struct bench *b, const char *text)
{
	FILE *file = fopen(b->path, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void good(bool ok, const struct skep_diag *diag)
{
	if (!ok)
		print_message("%s:%u: %s\n", diag->file, diag->line, diag->message);
	assert_true(ok);
}

/* ---- config.json -------------------------------------------------------------------------------------------- */

static void test_configs(void **state)
{
	(void)state;
	struct skep_diag diag = {0};
	struct skep_hf_config c;
	good(skep_hf_config_read("tests/data/hf/hf_config_gpt2.json", &c, &diag), &diag);
	assert_int_equal(c.family, SKEP_HF_GPT2);
	assert_int_equal(c.vocabulary, 50257);
	assert_int_equal(c.positions, 1024);
	assert_int_equal(c.hidden, 768);
	assert_int_equal(c.blocks, 12);
	assert_int_equal(c.heads, 12);
	assert_int_equal(c.feed_forward, 3072); /* n_inner is null */
	assert_true(c.tied && c.norm_epsilon == 1e-5);
	good(skep_hf_config_read("tests/data/hf/hf_config_llama2_7b.json", &c, &diag), &diag);
	assert_int_equal(c.family, SKEP_HF_LLAMA);
	assert_int_equal(c.hidden, 4096);
	assert_int_equal(c.feed_forward, 11008);
	assert_int_equal(c.kv_heads, 32);
	assert_true(!c.tied && c.rotary_base == 10000);
	struct skep_model model;
	good(skep_model_read("tests/data/hf/gpt2/config.json", &model, &diag), &diag);
	assert_string_equal(model.name, "gpt2");
	assert_int_equal(model.layers, 4);
	assert_int_equal(model.sequence, 16);
	assert_int_equal(model.width[0], 17);
	assert_int_equal(model.width[1], 256);
	assert_int_equal(model.kind, SKEP_MODEL_TRANSFORMER);
	skep_model_finish(&model);
	good(skep_model_read("tests/data/hf/llama/config.json", &model, &diag), &diag);
	assert_int_equal(model.kv_heads, 2);
	assert_true(model.norm_epsilon == 1e-6);
	skep_model_finish(&model);
	good(skep_model_read("tests/data/hf/mixtral/config.json", &model, &diag), &diag);
	assert_true(model.experts.count == 4 && model.experts.per_token == 2 && model.experts.renormalized);
	assert_true(model.experts.aux_loss == 0.01 && model.experts.z_loss == 0); /* 0.02 over two blocks */
	assert_true(model.experts.capacity_factor == 0 && model.norm_epsilon == 1e-5);
	skep_model_finish(&model);
	good(skep_model_read("tests/data/hf/bert/config.json", &model, &diag), &diag);
	assert_true(model.architecture == SKEP_ARCHITECTURE_BERT && model.tied && model.feed_forward == 20);
	assert_true(model.predicted == 2 && model.mask_token == 47); /* of 16 positions; the last of 48 tokens */
	skep_model_finish(&model);
}

#define LLAMA                                                                                                          \
	"{\n\"model_type\":\"llama\",\"vocab_size\":48,\"max_position_embeddings\":32,\"hidden_size\":16,\n"           \
	"\"num_hidden_layers\":2,\"num_attention_heads\":4,\"intermediate_size\":40"
#define GPT2 "{\n\"model_type\":\"gpt2\",\"vocab_size\":48,\"n_positions\":16,\"n_embd\":16,\"n_layer\":2,\"n_head\":2"

#define MIXTRAL                                                                                                        \
	"{\n\"model_type\":\"mixtral\",\"vocab_size\":48,\"max_position_embeddings\":32,\"hidden_size\":16,\n"         \
	"\"num_hidden_layers\":2,\"num_attention_heads\":8,\"intermediate_size\":40"

#define BERT                                                                                                           \
	"{\n\"model_type\":\"bert\",\"vocab_size\":48,\"max_position_embeddings\":16,\"hidden_size\":16,\n"            \
	"\"num_hidden_layers\":2,\"num_attention_heads\":2,\"intermediate_size\":20"

/* Keys that came later, and other names of old ones. */
static void test_other_keys(void **state)
{
	(void)state;
	struct bench b;
	struct skep_hf_config c;
	begin(&b);
	write_text(&b, LLAMA "}");
	good(skep_hf_config_read(b.path, &c, &b.diag), &b.diag);
	assert_true(c.kv_heads == 4 && !c.tied && c.rotary_base == 10000 && c.norm_epsilon == 1e-6);
	write_text(&b,
		LLAMA ",\"num_key_value_heads\":1,\"head_dim\":4,\"tie_word_embeddings\":true,\"rope_theta\":500000.0,"
		      "\"rope_scaling\":null,\"hidden_act\":\"silu\",\"mlp_bias\":false,\"dtype\":\"bfloat16\"}");
	good(skep_hf_config_read(b.path, &c, &b.diag), &b.diag);
	assert_true(c.kv_heads == 1 && c.tied && c.rotary_base == 500000);
	write_text(&b, LLAMA ",\"rope_parameters\":{\"rope_theta\":20000.0,\"rope_type\":\"default\"}}");
	good(skep_hf_config_read(b.path, &c, &b.diag), &b.diag);
	assert_true(c.rotary_base == 20000);
	write_text(&b, MIXTRAL "}");
	good(skep_hf_config_read(b.path, &c, &b.diag), &b.diag);
	assert_true(c.kv_heads == 8 && c.rotary_base == 1e6 && c.norm_epsilon == 1e-5);
	assert_true(c.experts.count == 8 && c.experts.per_token == 2 && c.experts.aux_loss == 0);
	write_text(&b, BERT "}");
	good(skep_hf_config_read(b.path, &c, &b.diag), &b.diag);
	assert_true(c.tied && c.norm_epsilon == 1e-12 && c.masked == 0.15 && c.mask_token == 47);
	write_text(&b, BERT ",\"mask_token_id\":4,\"layer_norm_eps\":1e-5,\"pooler_type\":\"first_token_transform\"}");
	good(skep_hf_config_read(b.path, &c, &b.diag), &b.diag);
	assert_true(c.norm_epsilon == 1e-5 && c.mask_token == 4);
	write_text(&b,
		"{\"model_type\":\"gpt2\",\"vocab_size\":48,\"max_position_embeddings\":16,\"hidden_size\":16,"
		"\"num_hidden_layers\":2,\"num_attention_heads\":2,\"n_inner\":20,\"tie_word_embeddings\":false}");
	good(skep_hf_config_read(b.path, &c, &b.diag), &b.diag);
	assert_true(c.positions == 16 && c.feed_forward == 20 && !c.tied);
	finish(&b);
}

static void test_bad_configs(void **state)
{
	(void)state;
	static const struct {
		const char *text, *why;
		uint32_t line;
	} c[] = {
		{"{\n\"model_type\":\"mistral\"}", "expected one of: gpt2, llama, mixtral, bert, not `mistral`", 2},
		{"{\"vocab_size\":48}", "key `model_type` is missing", 1},
		{"[]", "expected keys", 1},
		{"{", "not JSON: the file ends here", 1},
		{"{\n\"model_type\": \"gpt2\",\n\n\n", "not JSON: the file ends here", 2},
		{GPT2 ",\n\"n_inner\": }}", "not JSON: this cannot stand here", 3},
		{"", "empty", 1},
		{GPT2 ",\n\"activation_function\":\"relu\"}", "expected gelu_new, not `relu`", 3},
		{GPT2 ",\n\"activation_function\":\"gelu\"}", "the one with tanh", 3},
		{GPT2 ",\n\"scale_attn_by_inverse_layer_idx\":true}", "expected false: skep scales scores alike", 3},
		{GPT2 ",\n\"scale_attn_weights\":false}", "expected true", 3},
		{GPT2 ",\n\"vocab_size\":48}", "stands twice", 3},
		{GPT2 ",\n\"layer_norm_epsilon\":\"small\"}", "layer_norm_epsilon", 3},
		{GPT2 ",\n\"quantization_config\":{\"bits\":4}}", "quantised", 3},
		{"{\"model_type\":\"gpt2\",\"vocab_size\":48,\"n_positions\":16,\"n_embd\":16,\"n_layer\":2,\n\"n_"
		 "head\":3}",
			"expected a divisor of the hidden size, 16", 2},
		{"{\"model_type\":\"gpt2\",\n\"vocab_size\":48}", "key `n_positions` is missing", 1},
		{"{\"model_type\":\"gpt2\",\n\"vocab_size\":-48}", "vocab_size", 2},
		{"{\"model_type\":\"gpt2\",\n\"vocab_size\":null}", "vocab_size", 2},
		{LLAMA ",\n\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8.0}}",
			"positions that are scaled (llama3) are not built", 4},
		{LLAMA ",\n\"rope_scaling\":{\"type\":\"linear\",\"factor\":2.0}}", "scaled (linear)", 4},
		{LLAMA ",\n\"rope_scaling\":{\"factor\":2.0}}", "positions that are scaled are not built", 4},
		{LLAMA ",\n\"rope_scaling\":2}", "expected a group of keys or null", 4},
		{LLAMA ",\n\"hidden_act\":\"gelu\"}", "expected silu, not `gelu`", 4},
		{LLAMA ",\n\"attention_bias\":true}", "no biases", 4},
		{LLAMA ",\n\"head_dim\":8}", "head_dim: expected 4, hidden_size / num_attention_heads", 4},
		{LLAMA ",\n\"num_key_value_heads\":3}", "expected a divisor of the 4 heads", 4},
		{"{\"model_type\":\"llama\",\"vocab_size\":48,\"max_position_embeddings\":32,\"hidden_size\":12,\n"
		 "\"num_hidden_layers\":2,\"num_attention_heads\":4,\"intermediate_size\":40}",
			"cannot be rotated in pairs", 2},
		{MIXTRAL ",\n\"num_local_experts\":1}", "a token cannot go to 2 experts where there are 1", 1},
		{MIXTRAL ",\n\"num_experts_per_tok\":9}", "a token cannot go to 9 experts where there are 8", 4},
		{MIXTRAL ",\n\"router_jitter_noise\":0.1}", "skep's router adds no noise", 4},
		{MIXTRAL ",\n\"sliding_window\":16}", "expected null, or at least the 32 positions", 4},
		{BERT ",\n\"hidden_act\":\"gelu_new\"}", "the one with erf", 4},
		{BERT ",\n\"position_embedding_type\":\"relative_key\"}", "expected absolute, not `relative_key`", 4},
		{BERT ",\n\"is_decoder\":true}", "expected false: skep's BERT predicts tokens that are masked", 4},
		{BERT ",\n\"type_vocab_size\":1}", "type_vocab_size: expected 2", 4},
		{BERT ",\n\"mask_token_id\":48}", "mask_token_id", 4},
	};
	for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
		struct bench b;
		struct skep_model model;
		begin(&b);
		write_text(&b, c[i].text);
		assert_false(skep_model_read(b.path, &model, &b.diag));
		if (strstr(b.diag.message, c[i].why) == NULL || b.diag.line != c[i].line)
			print_message("%zu: %u: %s\n", i, b.diag.line, b.diag.message);
		assert_non_null(strstr(b.diag.message, c[i].why));
		assert_int_equal(b.diag.line, c[i].line);
		finish(&b);
	}
}

static void test_what_is_printed_is_read(void **state)
{
	(void)state;
	static const char *const path[] = {"tests/data/hf/gpt2/config.json", "tests/data/hf/llama/config.json",
		"tests/data/hf/hf_config_llama2_7b.json", "models/tiny-llama.yaml", "models/tiny-gpt2.yaml",
		"tests/data/hf/mixtral/config.json", "tests/data/hf/bert/config.json", "models/tiny-bert.yaml"};
	for (size_t i = 0; i < sizeof path / sizeof *path; i++) {
		struct bench b;
		struct skep_model model;
		struct skep_hf_config second;
		begin(&b);
		good(skep_model_read(path[i], &model, &b.diag), &b.diag);
		struct skep_hf_config first = skep_hf_config_of(&model);
		char *text = skep_hf_config_print(&first);
		write_text(&b, text);
		good(skep_hf_config_read(b.path, &second, &b.diag), &b.diag);
		assert_int_equal(first.family, second.family);
		assert_int_equal(first.vocabulary, second.vocabulary);
		assert_int_equal(first.positions, second.positions);
		assert_int_equal(first.hidden, second.hidden);
		assert_int_equal(first.blocks, second.blocks);
		assert_int_equal(first.heads, second.heads);
		assert_int_equal(first.kv_heads, second.kv_heads);
		assert_int_equal(first.feed_forward, second.feed_forward);
		assert_int_equal(first.tied, second.tied);
		assert_true(first.norm_epsilon == second.norm_epsilon);
		assert_true(first.experts.count == second.experts.count);
		assert_true(first.experts.per_token == second.experts.per_token);
		assert_true(first.experts.aux_loss == second.experts.aux_loss);
		assert_true(first.family == SKEP_HF_GPT2 || first.family == SKEP_HF_BERT ||
			    first.rotary_base == second.rotary_base);
		assert_true(first.masked == second.masked && first.mask_token == second.mask_token);
		free(text);
		skep_model_finish(&model);
		finish(&b);
	}
}

/* ---- names -------------------------------------------------------------------------------------------------- */

static struct skep_safetensors *read_weights(const char *path)
{
	struct skep_diag diag = {0};
	struct skep_safetensors *set = skep_safetensors_open(path, &diag);
	good(set != NULL, &diag);
	return set;
}

static bool matches(const struct skep_model *model, const char *path, char **ret_list, struct skep_diag *diag)
{
	struct skep_weight *weight;
	struct skep_weight_names names = skep_hf_names(model);
	struct skep_safetensors *set = read_weights(path);
	uint32_t weights = skep_hf_model_weights(model, &weight);
	assert_true(weights > 0);
	bool ok = skep_weights_match(set, weight, weights, &names, ret_list, diag);
	free(weight);
	skep_safetensors_close(set);
	return ok;
}

static void test_names_are_those_of_the_files(void **state)
{
	(void)state;
	static const char *const pair[][2] = {
		{"tests/data/hf/gpt2/config.json", "tests/data/hf/gpt2"},
		{"tests/data/hf/gpt2/config.json", "tests/data/hf/gpt2-old"},
		{"tests/data/hf/llama/config.json", "tests/data/hf/llama"},
		{"tests/data/hf/mixtral/config.json", "tests/data/hf/mixtral"},
		{"tests/data/hf/bert/config.json", "tests/data/hf/bert"},
		{"tests/data/hf/bert/config.json", "tests/data/hf/bert-old"},
	};
	for (size_t i = 0; i < sizeof pair / sizeof *pair; i++) {
		struct skep_model model;
		struct skep_diag diag = {0};
		char *list;
		good(skep_model_read(pair[i][0], &model, &diag), &diag);
		good(matches(&model, pair[i][1], &list, &diag), &diag);
		assert_string_equal(list, "");
		free(list);
		skep_model_finish(&model);
	}
}

/* Blocks that share their parameters have names of their own in files. */
static void test_shared_blocks_are_repeated(void **state)
{
	(void)state;
	struct skep_model model;
	struct skep_diag diag = {0};
	char *list;
	good(skep_model_read("tests/data/hf/gpt2/config.json", &model, &diag), &diag);
	model.shared = 2;
	model.layers = 3;
	good(matches(&model, "tests/data/hf/gpt2", &list, &diag), &diag);
	free(list);
	skep_model_finish(&model);
}

static void test_all_differences_are_listed(void **state)
{
	(void)state;
	struct skep_model model;
	struct skep_diag diag = {0};
	char *list;
	good(skep_model_read("tests/data/hf/gpt2/config.json", &model, &diag), &diag);
	model.tied = false;
	model.vocabulary = 50;
	assert_false(matches(&model, "tests/data/hf/gpt2", &list, &diag));
	assert_string_equal(list, "shape: transformer.wte.weight is [48, 16], the model has [50, 16]\n"
				  "missing: lm_head.weight [50, 16]\n");
	assert_string_equal(diag.message, "does not fit the model: 1 weights missing, 1 of another shape, 0 of a dtype "
					  "without weights, 0 that the model does not have");
	free(list);
	diag.set = false;
	assert_false(matches(&model, "tests/data/hf/llama", &list, &diag));
	assert_non_null(
		strstr(diag.message, "28 weights missing, 1 of another shape, 0 of a dtype without weights, 20 that"));
	assert_non_null(strstr(list, "missing: transformer.h.1.attn.c_attn.weight [16, 48]\n"));
	assert_non_null(strstr(list, "unknown: model.layers.1.self_attn.q_proj.weight [16, 16]\n"));
	uint32_t lines = 0;
	for (const char *c = list; *c; c++)
		lines += *c == '\n';
	assert_int_equal(lines, 28 + 1 + 21 - 1); /* lm_head.weight is of another shape: one line, not two */
	free(list);
	skep_model_finish(&model);
}

/* ---- numbers ------------------------------------------------------------------------------------------------ */

enum { T = 12, VOCABULARY = 48 };

struct run { /* of a whole model, layer by layer */
	struct skep_model model;
	struct skep_layer layer[8];
	float *parameter[8];
	struct skep_weight_names names;
};

static void start(struct run *r, const char *config)
{
	struct skep_diag diag = {0};
	good(skep_model_read(config, &r->model, &diag), &diag);
	skep_model_set_sequence(&r->model, T);
	r->names = skep_hf_names(&r->model);
	assert_true(r->model.layers <= 8);
	for (uint32_t l = 0; l < r->model.layers; l++) {
		r->layer[l] = skep_layer_of(&r->model, l);
		r->parameter[l] = calloc(r->layer[l].parameters, sizeof(float));
		skep_layer_draw(&r->layer[l], 1, r->parameter[l]);
	}
}

static void stop(struct run *r)
{
	for (uint32_t l = 0; l < r->model.layers; l++)
		free(r->parameter[l]);
	skep_model_finish(&r->model);
}

static uint32_t weights_of(struct run *r, struct skep_weight weight[64])
{
	uint32_t weights = 0;
	for (uint32_t l = 0; l < r->model.layers; l++)
		weights += skep_hf_layer_weights(&r->model, l, r->parameter[l], weight + weights);
	assert_true(weights <= 64);
	return weights;
}

static void take(struct run *r, const char *path)
{
	struct skep_weight weight[64];
	struct skep_diag diag = {0};
	char *list;
	struct skep_safetensors *set = read_weights(path);
	uint32_t weights = weights_of(r, weight);
	good(skep_weights_match(set, weight, weights, &r->names, &list, &diag), &diag);
	skep_weights_read(set, weight, weights, &r->names);
	free(list);
	skep_safetensors_close(set);
}

/* The head of a BERT, of all tokens: its tensors are a dense layer, a norm and the biases of the scores, in this order. */
static void compute_masked(struct run *r, const float *x, float logits[T][VOCABULARY])
{
	static float dense[T * 64], bent[T * 64], kept[2 * T];
	const struct skep_model *m = &r->model;
	const size_t h = m->hidden;
	const float *weight = r->parameter[m->layers - 1], *bias = weight + h * h;
	const struct skep_norm norm = {
		.rows = T, .width = h, .weight = bias + h, .bias = bias + 2 * h, .epsilon = (float)m->norm_epsilon};
	for (uint32_t t = 0; t < T; t++) {
		memcpy(dense + t * h, bias, h * sizeof *dense);
		memcpy(logits[t], bias + 3 * h, sizeof logits[t]);
	}
	skep_real_product(CblasNoTrans, CblasNoTrans, T, h, h, x, weight, 1, dense);
	skep_gelu_erf_forward(T, h, dense, bent);
	skep_norm_measure(&norm, bent, kept);
	skep_norm_apply(&norm, bent, kept, dense);
	skep_real_product(CblasNoTrans, CblasTrans, T, VOCABULARY, h, dense, r->parameter[0], 1, logits[0]);
}

/* All layers but the head, and then its norm and product. */
static void compute(struct run *r, const int32_t token[T + 1], float logits[T][VOCABULARY])
{
	static float x[2][T * 64], inside[T * 1024], work[T * 4096], rotation[T * 64];
	static float strips[(2 * T + 1) * SKEP_ATTENTION_ROWS];
	struct skep_training training = {.model = &r->model, .samples = 1};
	const struct skep_model *m = &r->model;
	bool llama = m->architecture == SKEP_ARCHITECTURE_LLAMA;
	uint32_t head = m->layers - 1;
	const void *in = token;
	if (llama)
		skep_rotation_fill(T, m->hidden / m->heads, m->rotary_base, rotation);
	for (uint32_t l = 0; l < head; l++) {
		struct skep_pass pass = {.training = &training,
			.parameter = r->parameter[l],
			.rotation = llama ? rotation : NULL,
			.work = work,
			.strips = strips};
		assert_true(r->layer[l].type->inside(&r->layer[l]) <= sizeof inside / sizeof *inside);
		r->layer[l].type->forward(&r->layer[l], &pass, in, x[l % 2], inside);
		in = x[l % 2];
	}
	if (m->architecture == SKEP_ARCHITECTURE_BERT) {
		compute_masked(r, in, logits);
		return;
	}
	struct skep_norm norm = {.rows = T,
		.width = m->hidden,
		.weight = r->parameter[head],
		.bias = llama ? NULL : r->parameter[head] + m->hidden,
		.epsilon = (float)m->norm_epsilon};
	const float *table = m->tied ? r->parameter[0] : r->parameter[head] + (llama ? 1 : 2) * m->hidden;
	skep_norm_measure(&norm, in, inside);
	skep_norm_apply(&norm, in, inside, work);
	skep_real_product(CblasNoTrans, CblasTrans, T, VOCABULARY, m->hidden, work, table, 0, logits[0]);
}

static void read_golden(const char *path, int32_t token[T + 1], float logits[T][VOCABULARY])
{
	char line[8192];
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	for (uint32_t t = 0; t < T;) {
		assert_non_null(fgets(line, sizeof line, file));
		if (line[0] == '#')
			continue;
		char *at = line;
		token[t] = (int32_t)strtol(at, &at, 10);
		for (uint32_t v = 0; v < VOCABULARY; v++)
			logits[t][v] = strtof(at, &at);
		assert_string_equal(at, "\n");
		t++;
	}
	token[T] = 0;
	fclose(file);
}

static float worst(float a[T][VOCABULARY], float b[T][VOCABULARY])
{
	float most = 0;
	for (uint32_t t = 0; t < T; t++)
		for (uint32_t v = 0; v < VOCABULARY; v++)
			most = fmaxf(most, fabsf(a[t][v] - b[t][v]));
	return most;
}

/* Logits are up to 8 in size: 1e-5 is some ten units of the last place. */
static void test_logits_are_those_of_transformers(void **state)
{
	(void)state;
	static const struct {
		const char *config, *weights, *logits;
		float tolerance;
	} c[] = {
		{"tests/data/hf/gpt2/config.json", "tests/data/hf/gpt2", "tests/data/hf/gpt2/logits.txt", 1e-5f},
		{"tests/data/hf/gpt2/config.json", "tests/data/hf/gpt2-old", "tests/data/hf/gpt2/logits.txt", 0.05f},
		{"tests/data/hf/llama/config.json", "tests/data/hf/llama", "tests/data/hf/llama/logits.txt", 1e-5f},
		{"tests/data/hf/mixtral/config.json", "tests/data/hf/mixtral", "tests/data/hf/mixtral/logits.txt",
			1e-5f},
		{"tests/data/hf/bert/config.json", "tests/data/hf/bert", "tests/data/hf/bert/logits.txt", 1e-5f},
		{"tests/data/hf/bert/config.json", "tests/data/hf/bert-old", "tests/data/hf/bert/logits.txt", 1e-5f},
	};
	for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
		static float expected[T][VOCABULARY], found[T][VOCABULARY];
		int32_t token[T + 1];
		struct run r;
		start(&r, c[i].config);
		read_golden(c[i].logits, token, expected);
		compute(&r, token, found);
		assert_true(worst(expected, found) > 0.5f); /* drawn, not read */
		take(&r, c[i].weights);
		compute(&r, token, found);
		print_message("%s: largest difference %g\n", c[i].weights, (double)worst(expected, found));
		assert_true(worst(expected, found) < c[i].tolerance);
		stop(&r);
	}
}

/* Of a model that was drawn: written, read into another one that was drawn otherwise, and the same bits. */
static void test_written_weights_come_back(void **state)
{
	(void)state;
	static const char *const config[] = {"tests/data/hf/gpt2/config.json", "tests/data/hf/llama/config.json",
		"tests/data/hf/mixtral/config.json", "tests/data/hf/bert/config.json"};
	for (size_t i = 0; i < sizeof config / sizeof *config; i++) {
		struct bench b;
		struct run first, second;
		struct skep_weight weight[64];
		begin(&b);
		start(&first, config[i]);
		start(&second, config[i]);
		uint32_t weights = weights_of(&first, weight);
		strcpy(stpcpy(b.path, b.folder), "/model.safetensors");
		struct skep_safetensors_target target = {.path = b.path, .shard_bytes = 12000};
		good(skep_safetensors_write(&target, weight, weights, &b.diag), &b.diag);
		for (uint32_t l = 0; l < second.model.layers; l++)
			skep_layer_draw(&second.layer[l], 2, second.parameter[l]);
		take(&second, b.folder);
		for (uint32_t l = 0; l < first.model.layers; l++)
			assert_memory_equal(
				first.parameter[l], second.parameter[l], first.layer[l].parameters * sizeof(float));
		stop(&first);
		stop(&second);
		finish(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_configs),
		cmocka_unit_test(test_other_keys),
		cmocka_unit_test(test_bad_configs),
		cmocka_unit_test(test_what_is_printed_is_read),
		cmocka_unit_test(test_names_are_those_of_the_files),
		cmocka_unit_test(test_shared_blocks_are_repeated),
		cmocka_unit_test(test_all_differences_are_listed),
		cmocka_unit_test(test_logits_are_those_of_transformers),
		cmocka_unit_test(test_written_weights_come_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
