/* SPDX-License-Identifier: Apache-2.0
 *
 * test_gpu_fit.c - laws: each finds the coefficients that made its points; predictors: what they are asked, and how far each is
 * off on the half of each shipped table that it did not see, as docs/gpu-times.md has it; whether the deviations that it
 * finds of itself hold of rows that it has not seen.
 */
#include "topologies/gpu/uncertainty.h"

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
	p = must_make(&v100, SKEP_PREDICTOR_TABLE, SKEP_TYPE_FP32); /* products, for models without layer times */
	assert_true(skep_predictor_by_layer(&p, "opt-350m") && !skep_predictor_by_layer(&p, "another model"));
	p = must_make(&h100, SKEP_PREDICTOR_TABLE, SKEP_TYPE_BF16);
	assert_int_equal(p.products->type, SKEP_TYPE_BF16);
	p = must_make(&h100, SKEP_PREDICTOR_TABLE, SKEP_TYPE_FP16); /* it has its own */
	assert_int_equal(p.products->type, SKEP_TYPE_FP16);
	skep_gpu_finish(&v100);
	skep_gpu_finish(&a100);
	skep_gpu_finish(&h100);
}

/* ---- judging ----------------------------------------------------------------------------------------------------- */

/* Quantiles of |predicted / measured - 1| over both halves: the median, and 90 %. */
static void judge(const struct skep_predictor *p, const struct skep_gpu_table *table, double ret[2])
{
	struct skep_unseen *unseen = calloc((size_t)2 * table->rows, sizeof *unseen);
	double *error = calloc((size_t)2 * table->rows, sizeof *error);
	assert_true(unseen && error);
	struct skep_diag diag = {0};
	uint32_t count = skep_unseen_errors(p, table, unseen, &diag);
	assert_true(count > 0);
	for (uint32_t i = 0; i < count; i++)
		error[i] = fabs(exp(unseen[i].log_error) - 1);
	free(unseen);
	ret[0] = skep_fit_quantile(error, count, 0.5);
	ret[1] = skep_fit_quantile(error, count, 0.9);
	free(error);
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
		judge(&p, t, sound);
		shifted.row = calloc(t->rows, sizeof *shifted.row);
		assert_non_null(shifted.row);
		for (uint32_t i = 0; i < t->rows; i++) {
			shifted.row[i] = t->row[i];
			shifted.row[i].seconds[0] = t->row[(i + 1) % t->rows].seconds[0];
		}
		judge(&p, &shifted, wrong);
		assert_true(wrong[1] > 2 * sound[1] || (kind == SKEP_PREDICTOR_ANALYTIC && wrong[1] > 1.3 * sound[1]));
		free(shifted.row);
	}
	skep_gpu_finish(&gpu);
}

/* ---- the half that was not seen ---------------------------------------------------------------------------------- */

static const char *readme(void)
{
	static char text[65536];
	FILE *file = fopen("docs/gpu-times.md", "r");
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
		fail_msg("docs/gpu-times.md: no row as\n%s %.1f, %.1f | %.1f, %.1f | %.1f, %.1f |", label, error[0],
			error[1], error[2], error[3], error[4], error[5]);
	for (int i = 0; i < 6; i++)
		if (fabs(told[i] - error[i]) > 0.15)
			fail_msg("docs/gpu-times.md says %.1f, found\n%s %.1f, %.1f | %.1f, %.1f | %.1f, %.1f |",
				told[i], label, error[0], error[1], error[2], error[3], error[4], error[5]);
}

static void judge_table(const char *name, enum skep_table_kind kind, enum skep_type type)
{
	char label[80];
	double error[6];
	struct skep_gpu gpu = must_have(name);
	for (int i = 0; i < 3; i++) {
		struct skep_predictor p = must_make(&gpu, (enum skep_predictor_kind)(SKEP_PREDICTOR_TABLE + i), type);
		const struct skep_gpu_table *table = kind == SKEP_TABLE_PRODUCTS ? p.products : p.layers;
		assert_non_null(table);
		assert_int_equal(table->type, type);
		judge(&p, table, &error[2 * i]);
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
	judge_table("t4", SKEP_TABLE_PRODUCTS, SKEP_TYPE_FP32);
	judge_table("t4", SKEP_TABLE_PRODUCTS, SKEP_TYPE_FP16);
	judge_table("v100", SKEP_TABLE_PRODUCTS, SKEP_TYPE_FP32);
	judge_table("v100", SKEP_TABLE_PRODUCTS, SKEP_TYPE_FP16);
	judge_table("a100-80", SKEP_TABLE_PRODUCTS, SKEP_TYPE_FP16);
	judge_table("h100", SKEP_TABLE_PRODUCTS, SKEP_TYPE_TF32);
	judge_table("h100", SKEP_TABLE_PRODUCTS, SKEP_TYPE_BF16);
	judge_table("h100", SKEP_TABLE_PRODUCTS, SKEP_TYPE_FP16);
	judge_table("v100", SKEP_TABLE_LAYERS, SKEP_TYPE_FP32);
	judge_table("a100-40", SKEP_TABLE_LAYERS, SKEP_TYPE_TF32);
	judge_table("a100-80", SKEP_TABLE_LAYERS, SKEP_TYPE_TF32);
	judge_table("titan-rtx", SKEP_TABLE_LAYERS, SKEP_TYPE_FP32);
	judge_table("rtx-2080", SKEP_TABLE_LAYERS, SKEP_TYPE_FP32);
}

/* ---- how sure a time is ------------------------------------------------------------------------------------------ */

/* What half of a table says of its own errors is held against the other half, which it has not seen: how many of its rows lie
 * within 1.645 deviations, of 90 % that should. */
static void cover(const char *name, enum skep_type type, enum skep_predictor_kind kind, uint32_t count[2])
{
	struct skep_gpu gpu = must_have(name);
	struct skep_predictor p = must_make(&gpu, kind, type);
	for (uint32_t first = 0; first < 2; first++) {
		struct skep_gpu half = gpu;
		struct skep_gpu_table seen = *p.products;
		double deviation[SKEP_TIME_ORIGINS];
		seen.rows = 0;
		seen.row = calloc(p.products->rows, sizeof *seen.row);
		assert_non_null(seen.row);
		for (uint32_t i = first; i < p.products->rows; i += 2)
			seen.row[seen.rows++] = p.products->row[i];
		half.table = &seen;
		half.tables = 1;
		struct skep_predictor learner = must_make(&half, kind, type);
		assert_true(skep_uncertainty_find(&half, &learner, "none", deviation, &(struct skep_diag){0}));
		assert_true(deviation[SKEP_TIME_MEASURED] == 0 && deviation[SKEP_TIME_ASSUMED] == SKEP_GPU_UNCERTAINTY);
		for (uint32_t i = 1 - first; i < p.products->rows; i += 2) {
			const struct skep_table_row *row = &p.products->row[i];
			struct skep_product product = {row->axis[0], row->axis[1], row->axis[2], row->axis[3]};
			enum skep_time_origin origin;
			double seconds = skep_predictor_product_s(&learner, &product, &origin);
			count[0]++;
			count[1] += fabs(log(seconds / row->seconds[0])) <= 1.645 * deviation[origin];
		}
		free(seen.row);
	}
	skep_gpu_finish(&gpu);
}

static void test_deviations_hold(void **state)
{
	(void)state;
	static const struct {
		const char *gpu;
		enum skep_type type;
	} table[] = {{"t4", SKEP_TYPE_FP32}, {"t4", SKEP_TYPE_FP16}, {"v100", SKEP_TYPE_FP32}, {"v100", SKEP_TYPE_FP16},
		{"a100-80", SKEP_TYPE_FP16}, {"h100", SKEP_TYPE_TF32}, {"h100", SKEP_TYPE_BF16},
		{"h100", SKEP_TYPE_FP16}};
	for (int kind = SKEP_PREDICTOR_TABLE; kind <= SKEP_PREDICTOR_REGRESSION; kind++) {
		uint32_t count[2] = {0, 0};
		for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
			cover(table[i].gpu, table[i].type, (enum skep_predictor_kind)kind, count);
		double share = (double)count[1] / count[0];
		if (!(share > 0.85 && share < 0.95))
			fail_msg("%s: %u of %u rows, %.3f", skep_predictor_names[kind], count[1], count[0], share);
	}
}

/* Factors have median 1 and that deviation; they follow from the seed, the GPU's name and the origin alone. */
static void test_draws(void **state)
{
	(void)state;
	enum { DRAWS = 4000 };
	const double deviation[SKEP_TIME_ORIGINS] = {0, 0.05, 0.1, 0.18, 0.18};
	struct skep_gpu gpu = must_have("t4"), other = must_have("v100");
	double sum[SKEP_TIME_ORIGINS] = {0}, squares[SKEP_TIME_ORIGINS] = {0}, both = 0, factor[SKEP_TIME_ORIGINS],
	       again[SKEP_TIME_ORIGINS], others[SKEP_TIME_ORIGINS];
	for (uint64_t seed = 1; seed <= DRAWS; seed++) {
		skep_uncertainty_draw(&gpu, deviation, seed, factor);
		skep_uncertainty_draw(&gpu, deviation, seed, again);
		skep_uncertainty_draw(&other, deviation, seed, others);
		assert_memory_equal(factor, again, sizeof factor);
		for (int i = 0; i < SKEP_TIME_ORIGINS; i++) {
			sum[i] += log(factor[i]);
			squares[i] += log(factor[i]) * log(factor[i]);
		}
		both += log(factor[SKEP_TIME_ASSUMED]) * log(others[SKEP_TIME_ASSUMED]);
	}
	assert_true(sum[SKEP_TIME_MEASURED] == 0);
	for (int i = SKEP_TIME_INTERPOLATED; i < SKEP_TIME_ORIGINS; i++) {
		near(sqrt(squares[i] / DRAWS), deviation[i], 0.04);
		assert_true(fabs(sum[i] / DRAWS) < 4 * deviation[i] / sqrt(DRAWS));
	}
	assert_true(fabs(both / DRAWS) < 4 * 0.18 * 0.18 / sqrt(DRAWS)); /* one card says nothing of another */
	skep_gpu_finish(&gpu);
	skep_gpu_finish(&other);
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
		cmocka_unit_test(test_deviations_hold),
		cmocka_unit_test(test_draws),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
