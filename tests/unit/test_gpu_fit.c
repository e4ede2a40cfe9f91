/* SPDX-License-Identifier: Apache-2.0
 *
 * test_gpu_fit.c - laws: each finds the coefficients that made its points; predictors: what they are asked, and how far each is
 * off on the half of each shipped table that it did not see, as topologies/README.md has it.
 */
#include "topologies/gpu_predictor.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PEAK 100e12
#define MEMORY 1e12

static void near(double value, double expected, double share)
{
	if (!(fabs(value - expected) <= share * fabs(expected)))
		fail_msg("%.9g, expected %.9g", value, expected);
}

enum { POINTS = 96 };

/* Products of many shapes, timed by the law itself. */
static void make_points(const struct skep_fit *law, struct skep_fit_point *ret)
{
	for (uint32_t i = 0; i < POINTS; i++) {
		struct skep_product p = {
			1 + i % 3, (double)(64 << (i % 7)) + i, (double)(48 << (i * 5 % 6)), 16 << (i * 3 % 10)};
		ret[i] = (struct skep_fit_point){
			.product = p, .flop = skep_product_flop(&p), .bytes = skep_product_bytes(&p, SKEP_TYPE_FP16)};
		ret[i].seconds = skep_fit_seconds(law, &ret[i]);
	}
}

static void test_laws_find_themselves(void **state)
{
	(void)state;
	static const struct skep_fit law[] = {
		{.law = SKEP_FIT_ANALYTIC, .peak = PEAK, .memory_Bps = MEMORY, .coefficient = {0.62}},
		{.law = SKEP_FIT_REGRESSION, .coefficient = {7e-6, 61e12, 0.45e12}},
		{.law = SKEP_FIT_SHAPE, .coefficient = {7e-6, 81e12, 0.7e12, 90, 20, 150, 4e5}},
	};
	for (size_t i = 0; i < sizeof law / sizeof law[0]; i++) {
		struct skep_fit_point point[POINTS];
		struct skep_fit fit;
		make_points(&law[i], point);
		assert_true(skep_fit_make(law[i].law, PEAK, MEMORY, point, POINTS, &fit));
		assert_int_equal(fit.points, POINTS);
		assert_true(fit.p90_error < 2e-3); /* the springs pull a little */
		near(fit.coefficient[0], law[i].coefficient[0], 0.02);
		if (law[i].law != SKEP_FIT_ANALYTIC)
			near(fit.coefficient[1], law[i].coefficient[1], 0.02);
	}
}

static void test_errors_are_seen(void **state)
{
	(void)state;
	struct skep_fit_point point[POINTS];
	struct skep_fit truth = {.law = SKEP_FIT_ANALYTIC, .peak = PEAK, .memory_Bps = MEMORY, .coefficient = {0.5}},
			fit;
	make_points(&truth, point);
	for (uint32_t i = 0; i < POINTS; i++)
		point[i].seconds *= i % 2 ? 1.25 : 0.8; /* one lambda cannot be right for both */
	assert_true(skep_fit_make(SKEP_FIT_ANALYTIC, PEAK, MEMORY, point, POINTS, &fit));
	near(fit.coefficient[0], 0.5, 1e-4);
	assert_true(fit.median_error > 0.19 && fit.p90_error < 0.26);
	assert_false(skep_fit_make(SKEP_FIT_SHAPE, PEAK, MEMORY, point, 6, &fit));
	assert_int_equal(fit.points, 0);
}

static void test_quantiles(void **state)
{
	(void)state;
	double a[] = {5, 1, 4, 2, 3};
	near(skep_fit_quantile(a, 5, 0.5), 3, 0);
	near(skep_fit_quantile(a, 5, 0.9), 4.6, 1e-12);
	near(skep_fit_quantile(a, 1, 0.9), 1, 0);
}

/* ---- predictors -------------------------------------------------------------------------------------------------- */

static struct skep_gpu must_have(const char *name)
{
	struct skep_gpu gpu;
	struct skep_diag diag = {0};
	if (!skep_gpu_read("topologies/profiled.yaml", name, &gpu, &diag))
		fail_msg("%s: %s", name, diag.message);
	return gpu;
}

static struct skep_predictor must_make(struct skep_gpu *gpu, enum skep_predictor_kind kind, enum skep_type type)
{
	struct skep_predictor p;
	struct skep_diag diag = {0};
	if (!skep_predictor_make(gpu, kind, type, &p, &diag))
		fail_msg("%s: %s", gpu->name, diag.message);
	return p;
}

/* A measured product is answered as it was measured; one beyond by the law; between them it is joined on smoothly. */
static void test_order_of_trust(void **state)
{
	(void)state;
	struct skep_gpu gpu = must_have("t4");
	struct skep_predictor p = must_make(&gpu, SKEP_PREDICTOR_TABLE, SKEP_TYPE_FP16);
	enum skep_time_origin origin;
	struct skep_product hit = {1, 4096, 4096, 7000}, inside = {1, 4096, 4096, 3000},
			    beyond = {1, 4096, 4096, 99000};
	near(skep_predictor_product_s(&p, &hit, &origin), 5.049e-3, 1e-12);
	assert_int_equal(origin, SKEP_TIME_MEASURED);
	double seconds = skep_predictor_product_s(&p, &inside, &origin);
	assert_int_equal(origin, SKEP_TIME_INTERPOLATED);
	assert_true(seconds > 5.049e-3 * 3 / 7 * 0.9 && seconds < 5.049e-3 * 3 / 7 * 1.2);
	seconds = skep_predictor_product_s(&p, &beyond, &origin);
	assert_int_equal(origin, SKEP_TIME_FITTED);
	near(seconds, 5.049e-3 * 99 / 7, 0.15);
	skep_gpu_finish(&gpu);
}

static void test_without_a_table(void **state)
{
	(void)state;
	struct skep_gpu gpu = must_have("rtx-3090");
	struct skep_predictor p = must_make(&gpu, SKEP_PREDICTOR_TABLE, SKEP_TYPE_BF16);
	struct skep_product product = {1, 4096, 4096, 4096};
	enum skep_time_origin origin;
	near(skep_predictor_product_s(&p, &product, &origin), skep_product_flop(&product) / (71.2e12 * 0.7), 1e-9);
	assert_int_equal(origin, SKEP_TIME_ASSUMED);
	assert_false(skep_predictor_by_layer(&p, "another model"));
	skep_gpu_finish(&gpu);
}

static void test_types(void **state)
{
	(void)state;
	struct skep_gpu v100 = must_have("v100"), a100 = must_have("a100-40"), h100 = must_have("h100");
	struct skep_predictor p;
	struct skep_diag diag = {0};
	assert_false(skep_predictor_make(&v100, SKEP_PREDICTOR_TABLE, SKEP_TYPE_BF16, &p, &diag));
	assert_non_null(strstr(diag.message, "bf16 is no type of V100-SXM2-16, which has fp32, fp16"));
	p = must_make(&a100, SKEP_PREDICTOR_TABLE, SKEP_TYPE_FP32); /* TF32 stands in */
	assert_non_null(p.layers);
	assert_int_equal(p.layers->type, SKEP_TYPE_TF32);
	assert_true(skep_predictor_by_layer(&p, "another model"));
	p = must_make(&v100, SKEP_PREDICTOR_TABLE, SKEP_TYPE_FP32); /* products for models whose layers nobody timed */
	assert_true(skep_predictor_by_layer(&p, "opt-350m") && !skep_predictor_by_layer(&p, "another model"));
	p = must_make(&h100, SKEP_PREDICTOR_TABLE, SKEP_TYPE_BF16);
	assert_int_equal(p.products->type, SKEP_TYPE_BF16);
	p = must_make(&h100, SKEP_PREDICTOR_TABLE, SKEP_TYPE_FP16); /* it has its own */
	assert_int_equal(p.products->type, SKEP_TYPE_FP16);
	skep_gpu_finish(&v100);
	skep_gpu_finish(&a100);
	skep_gpu_finish(&h100);
}

/* The judge can find fault: a table whose times stand one row too low is told from a sound one, by every predictor. */
static void test_wrong_times_are_seen(void **state)
{
	(void)state;
	struct skep_gpu gpu = must_have("h100");
	for (int kind = SKEP_PREDICTOR_TABLE; kind <= SKEP_PREDICTOR_REGRESSION; kind++) {
		struct skep_predictor p = must_make(&gpu, (enum skep_predictor_kind)kind, SKEP_TYPE_BF16);
		struct skep_gpu_table *t = p.products, shifted = *t;
		double sound[2], wrong[2];
		assert_true(skep_predictor_judge(&p, t, &sound[0], &sound[1]));
		shifted.row = calloc(t->rows, sizeof *shifted.row);
		assert_non_null(shifted.row);
		for (uint32_t i = 0; i < t->rows; i++) {
			shifted.row[i] = t->row[i];
			shifted.row[i].seconds[0] = t->row[(i + 1) % t->rows].seconds[0];
		}
		assert_true(skep_predictor_judge(&p, &shifted, &wrong[0], &wrong[1]));
		assert_true(wrong[1] > 2 * sound[1] || (kind == SKEP_PREDICTOR_ANALYTIC && wrong[1] > 1.3 * sound[1]));
		free(shifted.row);
	}
	skep_gpu_finish(&gpu);
}

/* ---- the half that was not seen ---------------------------------------------------------------------------------- */

static const char *readme(void)
{
	static char text[65536];
	FILE *file = fopen("topologies/README.md", "r");
	assert_non_null(file);
	size_t length = fread(text, 1, sizeof text - 1, file);
	assert_true(length < sizeof text - 1);
	fclose(file);
	text[length] = '\0';
	return text;
}

/* The row of the README begins with `label`, followed by the six figures, in percent. */
static void check_row(const char *label, const double error[6])
{
	const char *at = strstr(readme(), label);
	double told[6];
	if (!at || sscanf(at + strlen(label), " %lf, %lf | %lf, %lf | %lf, %lf |", &told[0], &told[1], &told[2],
			   &told[3], &told[4], &told[5]) != 6)
		fail_msg("topologies/README.md: no row as\n%s %.1f, %.1f | %.1f, %.1f | %.1f, %.1f |", label, error[0],
			error[1], error[2], error[3], error[4], error[5]);
	for (int i = 0; i < 6; i++)
		if (fabs(told[i] - error[i]) > 0.15)
			fail_msg("topologies/README.md says %.1f, found\n%s %.1f, %.1f | %.1f, %.1f | %.1f, %.1f |",
				told[i], label, error[0], error[1], error[2], error[3], error[4], error[5]);
}

static void judge(const char *name, enum skep_table_kind kind, enum skep_type type)
{
	char label[80];
	double error[6];
	struct skep_gpu gpu = must_have(name);
	for (int i = 0; i < 3; i++) {
		struct skep_predictor p = must_make(&gpu, (enum skep_predictor_kind)(SKEP_PREDICTOR_TABLE + i), type);
		const struct skep_gpu_table *table = kind == SKEP_TABLE_PRODUCTS ? p.products : p.layers;
		assert_non_null(table);
		assert_int_equal(table->type, type);
		assert_true(skep_predictor_judge(&p, table, &error[2 * i], &error[2 * i + 1]));
	}
	for (int i = 0; i < 6; i++)
		error[i] *= 100;
	snprintf(label, sizeof label, "| %s | %s, %s |", name, skep_table_names[kind], skep_type_names[type]);
	check_row(label, error);
	skep_gpu_finish(&gpu);
}

static void test_unseen_half(void **state)
{
	(void)state;
	judge("t4", SKEP_TABLE_PRODUCTS, SKEP_TYPE_FP32);
	judge("t4", SKEP_TABLE_PRODUCTS, SKEP_TYPE_FP16);
	judge("v100", SKEP_TABLE_PRODUCTS, SKEP_TYPE_FP32);
	judge("v100", SKEP_TABLE_PRODUCTS, SKEP_TYPE_FP16);
	judge("a100-80", SKEP_TABLE_PRODUCTS, SKEP_TYPE_FP16);
	judge("h100", SKEP_TABLE_PRODUCTS, SKEP_TYPE_TF32);
	judge("h100", SKEP_TABLE_PRODUCTS, SKEP_TYPE_BF16);
	judge("h100", SKEP_TABLE_PRODUCTS, SKEP_TYPE_FP16);
	judge("v100", SKEP_TABLE_LAYERS, SKEP_TYPE_FP32);
	judge("a100-40", SKEP_TABLE_LAYERS, SKEP_TYPE_TF32);
	judge("a100-80", SKEP_TABLE_LAYERS, SKEP_TYPE_TF32);
	judge("titan-rtx", SKEP_TABLE_LAYERS, SKEP_TYPE_FP32);
	judge("rtx-2080", SKEP_TABLE_LAYERS, SKEP_TYPE_FP32);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_laws_find_themselves),
		cmocka_unit_test(test_errors_are_seen),
		cmocka_unit_test(test_quantiles),
		cmocka_unit_test(test_order_of_trust),
		cmocka_unit_test(test_without_a_table),
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_wrong_times_are_seen),
		cmocka_unit_test(test_unseen_half),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
