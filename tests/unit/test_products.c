/* SPDX-License-Identifier: Apache-2.0
 *
 * test_products.c - the products of each layer add up to what skep_model_cost() says of FLOPs, parameters and memory traffic.
 */
#include "models/read/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static struct skep_model must_read(const char *name)
{
	char path[128];
	struct skep_model model;
	struct skep_diag diag = {0};
	snprintf(path, sizeof path, "models/%s.yaml", name);
	if (!skep_model_read(path, &model, &diag))
		fail_msg("%s: %s", path, diag.message);
	return model;
}

static double activations_of_products(const struct skep_layer_products *p, bool transformer)
{
	double sum = 0;
	for (uint32_t i = 0; i < p->products; i++)
		if (!transformer || p->product[i].batch <= 1) /* attention's inside stays in fast memory */
			sum += p->product[i].n * (p->product[i].k + p->product[i].m);
	return sum;
}

static void check_model(const char *name, uint32_t samples)
{
	struct skep_model model = must_read(name);
	bool transformer = model.kind == SKEP_MODEL_TRANSFORMER;
	for (uint32_t stages = 1; stages <= model.layers; stages += 3)
		for (uint32_t stage = 0; stage < stages; stage++) {
			struct skep_cost cost;
			uint32_t first, count;
			double flop = 0, backward = 0, parameters = 0, numbers = 0;
			skep_model_cost(&model, stages, stage, &cost);
			skep_model_cut(&model, stages, stage, &first, &count);
			for (uint32_t l = first; l < first + count; l++) {
				struct skep_layer_products p;
				skep_model_products(&model, l, samples, &p);
				flop += p.repeats * p.flop;
				backward += p.backward * p.repeats * p.flop;
				parameters += p.parameters;
				numbers += p.repeats * p.numbers;
				assert_true(p.numbers == p.other_numbers + activations_of_products(&p, transformer));
			}
			assert_true(flop == samples * cost.forward_flop);
			assert_true(backward == samples * cost.backward_flop);
			assert_true(parameters == (double)cost.parameters);
			assert_true(numbers * sizeof(float) == samples * cost.sample_bytes);
		}
	skep_model_finish(&model);
}

static void test_sums(void **state)
{
	(void)state;
	static const char *const names[] = {"square-mlp", "tiny-mlp", "swarm-1b", "transformer-32", "opt-350m"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		for (uint32_t samples = 1; samples <= 4; samples += 3)
			check_model(names[i], samples);
}

static void test_shapes(void **state)
{
	(void)state;
	struct skep_model model = must_read("opt-350m");
	struct skep_layer_products p;
	skep_model_products(&model, 0, 4, &p);
	assert_int_equal(p.products, 6);
	assert_true(p.product[0].m == 3072 && p.product[0].k == 1024 && p.product[0].n == 8192);
	assert_true(p.product[1].batch == 64 && p.product[1].m == 2048 && p.product[1].k == 64);
	assert_true(p.matrix_numbers == 8.0 * 64 * 2048 * 2048);
	skep_model_products(&model, 24, 1, &p);
	assert_int_equal(p.products, 1);
	assert_true(p.product[0].m == model.vocabulary && p.matrix_numbers == 0);
	skep_model_finish(&model);
}

/* Each GPU's products have the FLOPs of its share, and all products of one are those of the whole layer, over the GPUs. */
static void test_shares(void **state)
{
	(void)state;
	static const char *const names[] = {"megatron-7.5b", "opt-350m", "gpt2-124m", "tiny-llama"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		struct skep_model model = must_read(names[i]);
		for (uint32_t l = 0; l < model.layers; l++) {
			const struct skep_split two = {.gpus = 2}, sequence = {.gpus = 2, .sequence = true};
			struct skep_layer_products whole, half, thin;
			struct skep_cost share;
			skep_model_products(&model, l, 3, &whole);
			skep_model_share_products(&model, l, 3, &two, &half);
			skep_model_share_products(&model, l, 3, &sequence, &thin);
			skep_model_share(&model, model.layers, l, &two, &share);
			assert_int_equal(half.products, whole.products);
			bool head = l + 1 == model.layers; /* an odd vocabulary has one row more on each */
			if (!head || model.vocabulary % 2 == 0)
				assert_true(2 * half.flop == whole.flop);
			if (model.architecture == SKEP_ARCHITECTURE_NONE)
				assert_true(half.repeats * half.flop == 3 * share.forward_flop);
			assert_true(thin.flop == half.flop && thin.other_numbers <= half.other_numbers);
			assert_true(half.other_numbers <= whole.other_numbers);
		}
		skep_model_finish(&model);
	}
}

static void test_shapes_of_a_share(void **state)
{
	(void)state;
	struct skep_model model = must_read("megatron-7.5b"); /* hidden 4096, 32 heads, 2048 tokens */
	const struct skep_split four = {.gpus = 4}, sequence = {.gpus = 4, .sequence = true};
	struct skep_layer_products p;
	skep_model_share_products(&model, 0, 2, &four, &p);
	static const double shape[6][4] = {{1, 3072, 4096, 4096}, {16, 2048, 128, 2048}, {16, 128, 2048, 2048},
		{1, 4096, 1024, 4096}, {1, 4096, 4096, 4096}, {1, 4096, 4096, 4096}};
	for (uint32_t i = 0; i < 6; i++)
		assert_true(p.product[i].batch == shape[i][0] && p.product[i].m == shape[i][1] &&
			    p.product[i].k == shape[i][2] && p.product[i].n == shape[i][3]);
	assert_true(p.other_numbers == 4096.0 * (10 * 4096 + 2 * 4096));
	skep_model_share_products(&model, 0, 2, &sequence, &p);
	assert_true(p.other_numbers == 4096.0 * (10 * 1024 + 2 * 4096));
	skep_model_share_products(&model, 36, 2, &four, &p); /* 51,200 tokens of vocabulary */
	assert_true(p.product[0].m == 12800 && p.product[0].k == 4096 && p.other_numbers == 4096.0 * 12800);
	skep_model_finish(&model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_sums), cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_shares), cmocka_unit_test(test_shapes_of_a_share)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
