/* SPDX-License-Identifier: Apache-2.0
 *
 * test_model.c - model files: what is read and what is refused where; the cut against every other cut there is; the cost
 * against sums written out.
 */
#include "models/read/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/random.h"

/* ---- files -------------------------------------------------------------------------------------------------- */

static bool read_text(const char *text, size_t size, struct skep_model *ret, struct skep_diag *reterr)
{
	char path[] = "/tmp/skep-test-model-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, size), (ssize_t)size);
	close(fd);
	*reterr = (struct skep_diag){0};
	bool ok = skep_model_read(path, ret, reterr);
	unlink(path);
	return ok;
}

static void read_shipped(const char *name, struct skep_model *ret)
{
	char path[512];
	struct skep_diag diag = {0};
	if (!skep_file_find(NULL, __FILE__, name, path, sizeof path))
		fail_msg("run in the source tree: no %s from %s", name, __FILE__);
	if (!skep_model_read(path, ret, &diag))
		fail_msg("%s:%u: %s", diag.file, diag.line, diag.message);
}

static void test_shipped_files(void **state)
{
	(void)state;
	struct skep_model model;
	read_shipped("models/square-mlp.yaml", &model);
	assert_string_equal(model.name, "square-mlp");
	assert_int_equal(model.activation, SKEP_ACTIVATION_GELU);
	assert_int_equal(model.layers, 9);
	assert_int_equal(model.width[0], 1);
	assert_int_equal(model.width[9], 1);
	skep_model_finish(&model);
	read_shipped("models/tiny-mlp.yaml", &model);
	struct skep_cost cost;
	skep_model_cost(&model, 1, 0, &cost);
	assert_int_equal(cost.parameters, 16 + 3 * 72 + 9);
	skep_model_finish(&model);
	assert_null(model.width);
}

#define HEAD "name: a\nkind: mlp\nactivation: relu\n"

static void test_a_file_is_read(void **state)
{
	(void)state;
	const char text[] = HEAD "layers: {inputs: 2, hidden: 3, hidden_layers: 2, outputs: 4}\n";
	struct skep_model model;
	struct skep_diag diag;
	assert_true(read_text(text, sizeof text - 1, &model, &diag));
	assert_string_equal(model.name, "a");
	assert_int_equal(model.kind, SKEP_MODEL_MLP);
	assert_int_equal(model.activation, SKEP_ACTIVATION_RELU);
	assert_int_equal(model.layers, 3);
	const uint32_t width[] = {2, 3, 3, 4};
	assert_memory_equal(model.width, width, sizeof width);
	skep_model_finish(&model);
}

static void test_what_is_refused(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint32_t line; /* 0: of no line */
		const char *says;
	} bad[] = {
		{"", 0, ""},
		{"- 1\n", 1, ""},
		{"mlp\n", 1, ""},
		{HEAD, 0, "layers"},
		{HEAD "layers: 3\n", 4, ""},
		{HEAD "layers: [1, 2, 1]\n", 4, ""},
		{HEAD "layers: {inputs: 1, hidden: 8, hidden_layers: 2}\n", 4, "outputs"},
		{HEAD "layers: {inputs: 0, hidden: 8, hidden_layers: 2, outputs: 1}\n", 4, "1"},
		{HEAD "layers: {inputs: 1, hidden: -8, hidden_layers: 2, outputs: 1}\n", 4, "1"},
		{HEAD "layers: {inputs: 1, hidden: 8, hidden_layers: 0, outputs: 1}\n", 4, "1"},
		{HEAD "layers: {inputs: 1, hidden: 65537, hidden_layers: 2, outputs: 1}\n", 4, "65536"},
		{HEAD "layers: {inputs: 1, hidden: 8, hidden_layers: 1e9, outputs: 1}\n", 4, ""},
		{HEAD "layers: {inputs: 1, hidden: 8.5, hidden_layers: 2, outputs: 1}\n", 4, ""},
		{HEAD "layers: {inputs: nan, hidden: 8, hidden_layers: 2, outputs: 1}\n", 4, ""},
		{HEAD "layers: {inputs: 1, hiden: 8, hidden_layers: 2, outputs: 1}\n", 4, "hidden"},
		{HEAD "layers: {inputs: 1, hidden: 8, hidden_layers: 2, outputs: 1, more: 1}\n", 4, "more"},
		{HEAD "layers: {inputs: 1, hidden: 8, hidden_layers: 2, outputs: 1}\nlayer: 1\n", 5, "layers"},
		{"name: a\nkind: recurrent\nactivation: relu\n"
		 "layers: {inputs: 1, hidden: 8, hidden_layers: 2, outputs: 1}\n",
			2, "mlp"},
		{"name: a\nkind: mlp\nactivation: swish\n"
		 "layers: {inputs: 1, hidden: 8, hidden_layers: 2, outputs: 1}\n",
			3, "gelu"},
		{"name: a\nname: b\n", 2, ""},
		{"name: ''\nkind: mlp\nactivation: relu\n"
		 "layers: {inputs: 1, hidden: 8, hidden_layers: 2, outputs: 1}\n",
			1, ""},
		{"name: 0123456789012345678901234567890123456789012345678901234567890123\nkind: mlp\n"
		 "activation: relu\nlayers: {inputs: 1, hidden: 8, hidden_layers: 2, outputs: 1}\n",
			1, "63"},
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct skep_model model;
		struct skep_diag diag;
		assert_false(read_text(bad[i].text, strlen(bad[i].text), &model, &diag));
		assert_null(model.width);
		assert_true(diag.set);
		if (!strstr(diag.message, bad[i].says) || (bad[i].line && diag.line != bad[i].line))
			fail_msg("case %zu: line %u: %s", i, diag.line, diag.message);
	}
}

static void test_places_that_are_no_files(void **state)
{
	(void)state;
	static const char *const paths[] = {"/nonexistent/model.yaml", "/tmp", "/dev/null"};
	for (size_t i = 0; i < 3; i++) {
		struct skep_model model;
		struct skep_diag diag = {0};
		assert_false(skep_model_read(paths[i], &model, &diag));
		assert_true(diag.set);
		assert_null(model.width);
	}
}

static void test_damaged_files_never_crash(void **state)
{
	(void)state;
	const char text[] = HEAD "layers: {inputs: 2, hidden: 3, hidden_layers: 2, outputs: 4}\n";
	uint64_t random = 1;
	for (int round = 0; round < 3000; round++) {
		char damaged[sizeof text];
		size_t size = sizeof text - 1 - skep_random_below(&random, 4) * skep_random_below(&random, 8);
		memcpy(damaged, text, sizeof text);
		for (uint32_t n = 1 + skep_random_below(&random, 3); n; n--)
			damaged[skep_random_below(&random, (uint32_t)size)] = (char)skep_random_below(&random, 256);
		struct skep_model model;
		struct skep_diag diag;
		bool ok = read_text(damaged, size, &model, &diag);
		assert_true(ok != diag.set);
		assert_true(ok == (model.width != NULL));
		skep_model_finish(&model);
	}
}

/* ---- the cut ------------------------------------------------------------------------------------------------ */

enum { LAYERS_MAX = 9 };

static uint64_t flop(const struct skep_model *model, uint32_t layer)
{
	uint64_t product = 2 * (uint64_t)model->width[layer] * model->width[layer + 1];
	return product * (layer ? 3 : 2);
}

static uint64_t flop_between(const struct skep_model *model, uint32_t begin, uint32_t end)
{
	uint64_t sum = 0;
	for (uint32_t l = begin; l < end; l++)
		sum += flop(model, l);
	return sum;
}

/* The first of the best among all cuts, in lexicographic order of where the stages begin. */
static void best_cut(const struct skep_model *model, uint32_t stages, uint32_t stage, uint64_t largest, uint32_t *begin,
	uint64_t *best, uint32_t *ret)
{
	if (stage == stages) {
		uint64_t last = flop_between(model, begin[stages - 1], model->layers);
		largest = last > largest ? last : largest;
		if (largest < *best) {
			*best = largest;
			memcpy(ret, begin, stages * sizeof *ret);
		}
		return;
	}
	for (uint32_t b = begin[stage - 1] + 1; b + (stages - stage) <= model->layers; b++) {
		uint64_t before = flop_between(model, begin[stage - 1], b);
		begin[stage] = b;
		best_cut(model, stages, stage + 1, before > largest ? before : largest, begin, best, ret);
	}
}

static void check_cut(const struct skep_model *model, uint32_t stages)
{
	uint32_t begin[LAYERS_MAX] = {0}, expected[LAYERS_MAX + 1] = {0};
	uint64_t best = UINT64_MAX;
	best_cut(model, stages, 1, 0, begin, &best, expected);
	expected[stages] = model->layers;
	for (uint32_t s = 0; s < stages; s++) {
		uint32_t first, count;
		skep_model_cut(model, stages, s, &first, &count);
		assert_int_equal(first, expected[s]);
		assert_int_equal(count, expected[s + 1] - expected[s]);
	}
}

static void test_the_cut_is_the_first_of_the_best(void **state)
{
	(void)state;
	uint64_t random = 7;
	for (int round = 0; round < 300; round++) {
		uint32_t width[LAYERS_MAX + 1];
		struct skep_model model = {.layers = 1 + skep_random_below(&random, LAYERS_MAX), .width = width};
		for (uint32_t i = 0; i <= model.layers; i++)
			width[i] = 1 + skep_random_below(&random, round % 2 ? 3 : 40);
		for (uint32_t stages = 1; stages <= model.layers; stages++)
			check_cut(&model, stages);
	}
}

static void test_the_bench_model_halves(void **state)
{
	(void)state;
	struct skep_model model;
	read_shipped("models/bench-mlp-512.yaml", &model);
	for (uint32_t s = 0; s < 2; s++) {
		uint32_t first, count, large = 0;
		skep_model_cut(&model, 2, s, &first, &count);
		for (uint32_t l = first; l < first + count; l++)
			large += model.width[l] == 512 && model.width[l + 1] == 512;
		assert_int_equal(large, 4);
		assert_int_equal(count, 5);
	}
	skep_model_finish(&model);
}

/* ---- the cost ----------------------------------------------------------------------------------------------- */

static void test_costs_of_two_stages(void **state)
{
	(void)state;
	uint32_t width[] = {2, 3, 5, 4};
	struct skep_model model = {.layers = 3, .width = width};
	struct skep_cost cost[2];
	for (uint32_t s = 0; s < 2; s++)
		skep_model_cost(&model, 2, s, &cost[s]);
	/* FLOPs of the layers: 24, 90, 120; so the cut is after layer 1. */
	assert_int_equal(cost[0].parameters, 2 * 3 + 3 + 3 * 5 + 5);
	assert_int_equal(cost[1].parameters, 5 * 4 + 4);
	assert_true(cost[0].forward_flop == 12 + 30 && cost[0].backward_flop == 12 + 60);
	assert_true(cost[1].forward_flop == 40 && cost[1].backward_flop == 80);
	assert_true(cost[0].forward_bytes == 4 * 29 && cost[0].backward_bytes == 12 * 29);
	assert_true(cost[0].sample_bytes == 4 * (2 + 3 + 3 + 5) && cost[1].sample_bytes == 4 * (5 + 4));
	assert_int_equal(cost[0].activation_bytes, 4 * 5);
	assert_int_equal(cost[1].activation_bytes, 0);
	assert_int_equal(cost[0].stash_bytes, 4 * (2 + 3 + 3 + 5));
	assert_int_equal(cost[1].stash_bytes, 4 * 4);
}

static void test_costs_with_checkpoints(void **state)
{
	(void)state;
	uint32_t width[] = {2, 3, 5, 4};
	struct skep_model model = {.layers = 3, .width = width};
	for (uint32_t s = 0; s < 2; s++) {
		struct skep_cost plain, cost;
		skep_model_cost(&model, 2, s, &plain);
		assert_true(plain.backward_sample_bytes == 2 * plain.sample_bytes && plain.workspace_bytes == 0);
		cost = plain;
		skep_cost_checkpoint(&cost);
		assert_true(cost.backward_flop == plain.backward_flop + plain.forward_flop);
		assert_true(cost.backward_bytes == 4 * plain.forward_bytes);
		assert_true(cost.backward_sample_bytes == 3 * plain.sample_bytes);
		assert_int_equal(cost.stash_bytes, 0);
		assert_int_equal(cost.workspace_bytes, plain.stash_bytes);
		assert_true(cost.forward_flop == plain.forward_flop && cost.sample_bytes == plain.sample_bytes);
		assert_int_equal(cost.activation_bytes, plain.activation_bytes);
	}
}

static void test_payloads_of_a_boundary(void **state)
{
	(void)state;
	uint32_t width[] = {2, 3, 5, 4};
	struct skep_model model = {.layers = 3, .width = width};
	struct skep_cost cost[2];
	for (uint32_t s = 0; s < 2; s++)
		skep_model_cost(&model, 2, s, &cost[s]);
	/* 5 numbers per sample, 13 samples: 65 numbers, one more than a block. */
	assert_int_equal(skep_cost_payload_bytes(&cost[0], SKEP_CODEC_NONE, SKEP_CODEC_BLOCK, 13), 4 * 65);
	assert_int_equal(skep_cost_payload_bytes(&cost[0], SKEP_CODEC_FP16, SKEP_CODEC_BLOCK, 13), 2 * 65);
	assert_int_equal(skep_cost_payload_bytes(&cost[0], SKEP_CODEC_INT8, SKEP_CODEC_BLOCK, 13), 65 + 2 * 4);
	for (int c = SKEP_CODEC_NONE; c <= SKEP_CODEC_INT8; c++)
		assert_int_equal(skep_cost_payload_bytes(&cost[1], (enum skep_codec)c, SKEP_CODEC_BLOCK, 13), 0);
}

/* The sums of models/swarm-1b.yaml: 1.011 billion parameters, 12.9 billion if nothing were shared. */
static void test_a_transformer_by_its_cost(void **state)
{
	(void)state;
	struct skep_model model;
	struct skep_cost cost[4];
	uint64_t all = 0;
	read_shipped("models/swarm-1b.yaml", &model);
	assert_int_equal(model.layers, 5);
	for (uint32_t s = 0; s < 4; s++) {
		skep_model_cost(&model, 4, s, &cost[s]);
		all += cost[s].parameters;
	}
	const uint64_t h = 4096, s = 2048, block = 12 * h * h + 13 * h, head = 50257 * h + 2 * h;
	assert_int_equal(all, 4 * block + head);
	assert_true(all > 1005000000 && all < 1015000000);
	assert_int_equal(cost[3].parameters, block + head); /* the head goes with the last group */
	assert_int_equal(cost[0].activation_bytes, 4 * s * h);
	assert_int_equal(cost[3].activation_bytes, 0);
	assert_true(cost[1].forward_flop == 16 * (double)(24 * s * h * h + 4 * s * s * h));
	assert_true(cost[1].backward_flop == 2 * cost[1].forward_flop);
	assert_int_equal(cost[1].stash_bytes, 16 * (16 * 4 + 2) * s * h); /* the masks are bytes */
	skep_cost_checkpoint(&cost[1]);
	assert_true(cost[1].backward_flop == 3 * cost[1].forward_flop && cost[1].stash_bytes == 0);
	assert_int_equal(cost[1].workspace_bytes, s * h * (16 * 4 + 66)); /* inputs of the blocks, and one block */
	skep_model_finish(&model);
}

static void test_a_transformer_that_is_wrong(void **state)
{
	(void)state;
	static const char text[] = "name: a\nkind: transformer\n"
				   "transformer: {hidden: 8, sequence: 4, blocks: 6, shared: 4, vocabulary: 9}\n";
	struct skep_model model;
	struct skep_diag diag;
	assert_false(read_text(text, sizeof text - 1, &model, &diag));
	assert_int_equal(diag.line, 3);
	assert_non_null(strstr(diag.message, "divisor of the 6 blocks"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shipped_files),
		cmocka_unit_test(test_a_file_is_read),
		cmocka_unit_test(test_what_is_refused),
		cmocka_unit_test(test_places_that_are_no_files),
		cmocka_unit_test(test_damaged_files_never_crash),
		cmocka_unit_test(test_the_cut_is_the_first_of_the_best),
		cmocka_unit_test(test_the_bench_model_halves),
		cmocka_unit_test(test_costs_of_two_stages),
		cmocka_unit_test(test_costs_with_checkpoints),
		cmocka_unit_test(test_payloads_of_a_boundary),
		cmocka_unit_test(test_a_transformer_by_its_cost),
		cmocka_unit_test(test_a_transformer_that_is_wrong),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
