/* SPDX-License-Identifier: Apache-2.0
 *
 * test_init.c - first parameters by train.init.method: means and deviations of what is drawn for each tensor of each kind of
 * layer, against the formulas of torch.nn.init worked out by hand for its shape.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/layers/layer.h"
#include "models/read/model.h"

enum { HIDDEN = 96, VOCABULARY = 200, SEQUENCE = 32, UP = 4 * HIDDEN };

struct moments {
	double mean, deviation, largest;
};

static struct moments moments_of(const skep_real *value, size_t count)
{
	struct moments m = {0};
	for (size_t i = 0; i < count; i++) {
		m.mean += value[i] / (double)count;
		m.largest = fmax(m.largest, fabs((double)value[i]));
	}
	for (size_t i = 0; i < count; i++)
		m.deviation += (value[i] - m.mean) * (value[i] - m.mean) / (double)count;
	m.deviation = sqrt(m.deviation);
	return m;
}

static void must_be_gpt2(struct skep_model *model)
{
	*model = (struct skep_model){.kind = SKEP_MODEL_TRANSFORMER,
		.architecture = SKEP_ARCHITECTURE_GPT2,
		.hidden = HIDDEN,
		.sequence = SEQUENCE,
		.shared = 1,
		.vocabulary = VOCABULARY,
		.heads = 4,
		.kv_heads = 4,
		.feed_forward = UP,
		.norm_epsilon = 1e-5};
	assert_true(skep_model_place(model, 2));
}

/* The tensor of this name in a layer, as it is drawn. */
static struct moments drawn(const struct skep_model *model, uint32_t number, const char *name)
{
	struct skep_layer layer = skep_layer_of(model, number);
	struct skep_tensor tensor[SKEP_TENSORS_MAX];
	uint32_t tensors = layer.type->tensors(&layer, tensor);
	skep_real *value = malloc(layer.parameters * sizeof *value);
	assert_non_null(value);
	skep_layer_draw(&layer, 7, value);
	struct moments ret = {.mean = NAN};
	for (uint32_t t = 0; t < tensors; t++) {
		if (strcmp(tensor[t].name, name) == 0)
			ret = moments_of(value + tensor[t].offset, (size_t)tensor[t].rows * tensor[t].columns);
	}
	free(value);
	assert_false(isnan(ret.mean));
	return ret;
}

struct expected {
	uint32_t layer;
	const char *name;
	double in, out;
};

static const struct expected matrices[] = {
	{0, "wte.weight", HIDDEN, VOCABULARY},
	{0, "wpe.weight", HIDDEN, SEQUENCE},
	{1, "attn.c_attn.weight", HIDDEN, 3 * HIDDEN},
	{1, "attn.c_proj.weight", HIDDEN, HIDDEN},
	{2, "mlp.c_fc.weight", HIDDEN, UP},
	{2, "mlp.c_proj.weight", UP, HIDDEN},
	{3, "lm_head.weight", HIDDEN, VOCABULARY},
};
enum { MATRICES = sizeof matrices / sizeof matrices[0] };

static void each_matrix_has(enum skep_init init, double (*deviation)(double in, double out), double most_of_deviation)
{
	struct skep_model model;
	must_be_gpt2(&model);
	model.init = init;
	model.init_deviation = 0.05f;
	for (size_t i = 0; i < MATRICES; i++) {
		const struct expected *e = &matrices[i];
		struct moments m = drawn(&model, e->layer, e->name);
		double wanted = deviation(e->in, e->out);
		assert_true(fabs(m.deviation / wanted - 1) < 0.03);
		assert_true(fabs(m.mean) < 0.1 * wanted);
		assert_true(m.largest < most_of_deviation * wanted);
		assert_true(m.largest > 0.95 * fmin(most_of_deviation, 3) * wanted);
	}
	static const char *const zero[] = {"ln_1.bias", "attn.c_attn.bias", "mlp.c_proj.bias"};
	for (size_t i = 0; i < sizeof zero / sizeof zero[0]; i++)
		assert_true(drawn(&model, 1, zero[i]).largest < 1e-30);
	assert_true(fabs(drawn(&model, 1, "ln_1.weight").mean - 1) < 1e-6);
	skep_model_finish(&model);
}

static double normal(double in, double out)
{
	(void)in;
	(void)out;
	return 0.05;
}

static double xavier(double in, double out)
{
	return sqrt(2 / (in + out));
}

static double kaiming(double in, double out)
{
	(void)out;
	return sqrt(2 / in);
}

static void each_method_has_its_deviation(void **state)
{
	(void)state;
	const double root_3 = 1.7320509; /* the end of a uniform draw, in deviations */
	each_matrix_has(SKEP_INIT_NORMAL, normal, 6.1);
	each_matrix_has(SKEP_INIT_XAVIER_UNIFORM, xavier, root_3);
	each_matrix_has(SKEP_INIT_XAVIER_NORMAL, xavier, 6.1);
	each_matrix_has(SKEP_INIT_KAIMING_UNIFORM, kaiming, root_3);
	each_matrix_has(SKEP_INIT_KAIMING_NORMAL, kaiming, 6.1);
}

/* GPT-2's own: 0.02, and what ends at one of the four residual sums of two blocks by their root less. */
static void without_a_method_it_is_gpt2s(void **state)
{
	(void)state;
	struct skep_model model;
	must_be_gpt2(&model);
	assert_true(fabs(drawn(&model, 0, "wte.weight").deviation / 0.02 - 1) < 0.03);
	assert_true(fabs(drawn(&model, 1, "mlp.c_fc.weight").deviation / 0.02 - 1) < 0.03);
	assert_true(fabs(drawn(&model, 1, "mlp.c_proj.weight").deviation / 0.01 - 1) < 0.03);
	skep_model_finish(&model);
}

/* A layer with one input has a matrix of one row, which is no bias. */
static void perceptrons_have_no_biases_then(void **state)
{
	(void)state;
	uint32_t width[] = {1, 400, 400, 1};
	struct skep_model model = {
		.kind = SKEP_MODEL_MLP, .layers = 3, .width = width, .init = SKEP_INIT_XAVIER_NORMAL};
	assert_true(fabs(drawn(&model, 0, "weight").deviation / xavier(1, 400) - 1) < 0.1);
	assert_true(fabs(drawn(&model, 1, "weight").deviation / xavier(400, 400) - 1) < 0.03);
	assert_true(drawn(&model, 0, "bias").largest < 1e-30);
	model.init = SKEP_INIT_DEFAULT;
	assert_true(drawn(&model, 0, "bias").largest > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_method_has_its_deviation),
		cmocka_unit_test(without_a_method_it_is_gpt2s),
		cmocka_unit_test(perceptrons_have_no_biases_then),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
