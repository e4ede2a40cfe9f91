/* SPDX-License-Identifier: Apache-2.0
 *
 * test_gpu_table.c - tables of measured times: what is read and refused, look-ups against values worked out by hand, and the
 * shipped tables against the figures that their makers published.
 */
#include "topologies/gpu/gpu_table.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define PRODUCTS "batch,m,k,n,time_us\n"
#define LAYERS "layer,tensor_parallel,microbatch,forward_us,backward_us,update_us,forward_flop,forward_bytes\n"

static char path[] = "/tmp/skep-table-XXXXXX";

static int set_up(void **state)
{
	(void)state;
	int fd = mkstemp(path);
	return fd < 0 ? -1 : close(fd);
}

static int tear_down(void **state)
{
	(void)state;
	return unlink(path);
}

static bool read_text(const char *text, enum skep_table_kind kind, struct skep_gpu_table *ret, struct skep_diag *diag)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
	*ret = (struct skep_gpu_table){.kind = kind, .type = SKEP_TYPE_FP32};
	*diag = (struct skep_diag){0};
	snprintf(ret->path, sizeof ret->path, "%s", path);
	return skep_gpu_table_read(ret, diag);
}

static struct skep_gpu_table must_read(const char *text, enum skep_table_kind kind)
{
	struct skep_gpu_table t;
	struct skep_diag diag;
	if (!read_text(text, kind, &t, &diag))
		fail_msg("line %u: %s", diag.line, diag.message);
	return t;
}

static void near(double value, double expected, double share)
{
	if (!(fabs(value - expected) <= share * fabs(expected)))
		fail_msg("%.9g, expected %.9g", value, expected);
}

/* t = 3 us * batch * (m / 16) * (k / 16)^0.5 * (n / 16)^0.8 on a grid: interpolation in logarithms is exact. */
static double power_law(double batch, double m, double k, double n)
{
	return 3e-6 * batch * (m / 16) * sqrt(k / 16) * pow(n / 16, 0.8);
}

static struct skep_gpu_table power_grid(void)
{
	static char text[65536];
	size_t used = (size_t)snprintf(text, sizeof text, PRODUCTS);
	for (int batch = 1; batch <= 4; batch *= 4)
		for (int m = 16; m <= 256; m *= 4)
			for (int k = 16; k <= 256; k *= 4)
				for (int n = 16; n <= 256; n *= 4)
					used += (size_t)snprintf(text + used, sizeof text - used, "%d,%d,%d,%d,%.9g\n",
						batch, m, k, n, 1e6 * power_law(batch, m, k, n));
	assert_true(used < sizeof text);
	return must_read(text, SKEP_TABLE_PRODUCTS);
}

static void test_products(void **state)
{
	(void)state;
	struct skep_gpu_table t = power_grid();
	double s;
	assert_int_equal(t.rows, 2 * 27);
	struct skep_product hit = {4, 64, 16, 256}, inside = {2, 100, 33, 17}, edge = {1, 16, 256, 200};
	assert_int_equal(skep_gpu_table_product(&t, &hit, &s), SKEP_ANSWER_EXACT);
	near(s, power_law(4, 64, 16, 256), 1e-8);
	assert_int_equal(skep_gpu_table_product(&t, &inside, &s), SKEP_ANSWER_BETWEEN);
	near(s, power_law(2, 100, 33, 17), 1e-8);
	assert_int_equal(skep_gpu_table_product(&t, &edge, &s), SKEP_ANSWER_BETWEEN);
	near(s, power_law(1, 16, 256, 200), 1e-8);
	struct skep_product beyond[] = {{1, 257, 16, 16}, {1, 16, 15, 16}, {1, 16, 16, 1000}, {5, 64, 64, 64}};
	for (int i = 0; i < 4; i++)
		assert_int_equal(skep_gpu_table_product(&t, &beyond[i], &s), SKEP_ANSWER_NONE);
	skep_gpu_table_finish(&t);
}

/* Lines that share no m and k: answers along them, for their transposes, and nowhere between. */
static void test_scattered_products(void **state)
{
	(void)state;
	struct skep_gpu_table t = must_read(
		PRODUCTS "1,100,200,10,5\n1,100,200,40,20\n1,300,700,10,9\n1,300,700,1000,90\n", SKEP_TABLE_PRODUCTS);
	double s;
	struct skep_product on = {1, 100, 200, 20}, turned = {1, 20, 200, 100}, off = {1, 200, 200, 20},
			    other_k = {1, 100, 300, 20};
	assert_int_equal(skep_gpu_table_product(&t, &on, &s), SKEP_ANSWER_BETWEEN);
	near(s, 10e-6, 1e-9);
	assert_int_equal(skep_gpu_table_product(&t, &turned, &s), SKEP_ANSWER_BETWEEN);
	near(s, 10e-6, 1e-9);
	assert_int_equal(skep_gpu_table_product(&t, &off, &s), SKEP_ANSWER_NONE);
	assert_int_equal(skep_gpu_table_product(&t, &other_k, &s), SKEP_ANSWER_NONE);
	t.row[0].expected_s = 1e-6;
	t.row[1].expected_s = 5e-6; /* departures of 5 and 4 */
	assert_int_equal(skep_gpu_table_product(&t, &on, &s), SKEP_ANSWER_BETWEEN);
	near(s, sqrt(20), 1e-9);
	skep_gpu_table_finish(&t);
}

static void test_layers(void **state)
{
	(void)state;
	struct skep_gpu_table t = must_read(LAYERS "# a comment\n"
						   "embedding,1,1,10,0,7,0,80\nembedding,1,4,40,3,7,0,320\n"
						   "block,1,1,100,200,,1e9,4e6\nblock,1,4,400,1600,,4e9,8e6\n"
						   "block,2,1,60,100,,5e8,2e6\n",
		SKEP_TABLE_LAYERS);
	double s;
	assert_int_equal(skep_gpu_table_layer(&t, SKEP_LAYER_BLOCK, 1, 4, SKEP_COLUMN_BACKWARD, &s), SKEP_ANSWER_EXACT);
	near(s, 1600e-6, 1e-12);
	assert_int_equal(
		skep_gpu_table_layer(&t, SKEP_LAYER_BLOCK, 1, 2, SKEP_COLUMN_FORWARD, &s), SKEP_ANSWER_BETWEEN);
	near(s, 200e-6, 1e-9);
	assert_int_equal(
		skep_gpu_table_layer(&t, SKEP_LAYER_BLOCK, 1, 2, SKEP_COLUMN_BACKWARD, &s), SKEP_ANSWER_BETWEEN);
	near(s, sqrt(200e-6 * 1600e-6), 1e-9);
	assert_int_equal(
		skep_gpu_table_layer(&t, SKEP_LAYER_EMBEDDING, 1, 2, SKEP_COLUMN_BACKWARD, &s), SKEP_ANSWER_BETWEEN);
	near(s, 1e-6, 1e-9); /* from 0: straight */
	assert_int_equal(skep_gpu_table_layer(&t, SKEP_LAYER_BLOCK, 1, 1, SKEP_COLUMN_UPDATE, &s), SKEP_ANSWER_NONE);
	assert_int_equal(skep_gpu_table_layer(&t, SKEP_LAYER_BLOCK, 1, 5, SKEP_COLUMN_FORWARD, &s), SKEP_ANSWER_NONE);
	assert_int_equal(skep_gpu_table_layer(&t, SKEP_LAYER_BLOCK, 4, 1, SKEP_COLUMN_FORWARD, &s), SKEP_ANSWER_NONE);
	assert_int_equal(skep_gpu_table_layer(&t, SKEP_LAYER_HEAD, 1, 1, SKEP_COLUMN_FORWARD, &s), SKEP_ANSWER_NONE);
	skep_gpu_table_finish(&t);
}

static void test_refuses(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		enum skep_table_kind kind;
		uint32_t line;
		const char *message;
	} bad[] = {
		{"", 0, 0, "empty"},
		{"# nothing\n\n", 0, 0, "empty"},
		{PRODUCTS, 0, 0, "no row behind the first"},
		{LAYERS "block,1,1,1,1,1,1,1\n", 0, 1, "as the first row of a table of products"},
		{PRODUCTS "1,1,1,1,1\n", 1, 1, "as the first row of a table of layers"},
		{PRODUCTS "1,1,1,1\n", 0, 2, "ragged"},
		{PRODUCTS "1,1,1,1,1,1\n", 0, 2, "ragged"},
		{PRODUCTS "1,1,1,1,1\n1,1,1,2\n", 0, 3, "ragged"},
		{PRODUCTS "1,1,1,1,nan\n", 0, 2, "expected time_us"},
		{PRODUCTS "1,1,1,1,inf\n", 0, 2, "expected time_us"},
		{PRODUCTS "1,1,1,1,-5\n", 0, 2, "expected time_us"},
		{PRODUCTS "1,1,1,1,0\n", 0, 2, "expected time_us"},
		{PRODUCTS "1,1,1,1,\n", 0, 2, "expected time_us"},
		{PRODUCTS "1,1,1,1,0x10\n", 0, 2, "expected time_us"},
		{PRODUCTS "1,1,0,1,5\n", 0, 2, "expected k"},
		{PRODUCTS "1,x,1,1,5\n", 0, 2, "expected m"},
		{PRODUCTS "1,1,1,1,5\n1,1,1,1,5\n", 0, 3, "second row of this point"},
		{PRODUCTS "1,2,1,1,5\n1,1,1,1,5\n", 0, 3, "not monotone: m falls"},
		{PRODUCTS "1,2,1,1,5\n1,2,1,8,2.4\n", 0, 3, "not monotone: 2.4 us after 5 us for a smaller n"},
		{LAYERS "tail,1,1,1,1,1,1,1\n", 1, 2, "embedding, block, head or edge"},
		{LAYERS "block,1,1,,1,1,1,1\n", 1, 2, "expected forward_us"},
		{LAYERS "block,1,1,1,,1,1,1\n", 1, 2, "expected backward_us"},
		{LAYERS "block,1,1,1,1,-1,1,1\n", 1, 2, "expected update_us"},
		{LAYERS "block,1,1,1,1,1,-1,1\n", 1, 2, "expected forward_flop"},
		{LAYERS "head,1,1,1,1,1,1,1\nblock,1,1,1,1,1,1,1\n", 1, 3, "not monotone: layer falls"},
		{LAYERS "block,1,2,9,9,1,1,1\nblock,1,4,9,4,1,1,1\n", 1, 3, "smaller microbatch"},
	};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct skep_gpu_table t;
		struct skep_diag diag;
		if (read_text(bad[i].text, bad[i].kind, &t, &diag))
			fail_msg("read: %s", bad[i].text);
		if (diag.line != bad[i].line || !strstr(diag.message, bad[i].message))
			fail_msg("%s: line %u, %s", bad[i].text, diag.line, diag.message);
		assert_string_equal(diag.file, path);
		assert_int_equal(t.rows, 0);
	}
}

/* ---- what is shipped --------------------------------------------------------------------------------------------- */

static struct skep_gpu_table shipped(const char *name, enum skep_table_kind kind, enum skep_type type)
{
	struct skep_diag diag = {0};
	struct skep_gpu_table t = {.kind = kind, .type = type};
	snprintf(t.path, sizeof t.path, "topologies/gpus/tables/%s.csv", name);
	if (!skep_gpu_table_read(&t, &diag))
		fail_msg("%s:%u: %s", t.path, diag.line, diag.message);
	return t;
}

static double best_tflops(const char *name, enum skep_type type)
{
	struct skep_gpu_table t = shipped(name, SKEP_TABLE_PRODUCTS, type);
	double best = 0;
	for (uint32_t i = 0; i < t.rows; i++)
		best = fmax(best, t.row[i].flop / t.row[i].seconds[0]);
	skep_gpu_table_finish(&t);
	return best / 1e12;
}

static void test_best_products(void **state)
{
	(void)state;
	near(best_tflops("t4-fp32-products", SKEP_TYPE_FP32), 4.67, 2e-3);
	near(best_tflops("t4-fp16-products", SKEP_TYPE_FP16), 46.5, 2e-3);
	near(best_tflops("v100-fp32-products", SKEP_TYPE_FP32), 14.78, 2e-3);
	near(best_tflops("v100-fp16-products", SKEP_TYPE_FP16), 112.3, 2e-3);
	near(best_tflops("h100-bf16-products", SKEP_TYPE_BF16), 804.7, 2e-3);
	assert_true(best_tflops("h100-tf32-products", SKEP_TYPE_TF32) < 494.7); /* the published peaks */
	assert_true(best_tflops("h100-fp16-products", SKEP_TYPE_FP16) < 989.4);
	assert_true(best_tflops("a100-fp16-products", SKEP_TYPE_FP16) < 312);
}

static double block_ms(const struct skep_gpu_table *t, enum skep_gpu_column column)
{
	double s;
	assert_int_equal(skep_gpu_table_layer(t, SKEP_LAYER_BLOCK, 1, 4, column, &s), SKEP_ANSWER_EXACT);
	return 1e3 * s;
}

static void test_opt_blocks(void **state)
{
	(void)state;
	struct skep_gpu_table v100 = shipped("v100-fp32-opt-350m", SKEP_TABLE_LAYERS, SKEP_TYPE_FP32);
	struct skep_gpu_table a100 = shipped("a100-40-tf32-opt-350m", SKEP_TABLE_LAYERS, SKEP_TYPE_TF32);
	near(block_ms(&a100, SKEP_COLUMN_FORWARD), 8.2, 0.005);
	near(block_ms(&a100, SKEP_COLUMN_BACKWARD), 22.7, 0.005);
	near(block_ms(&v100, SKEP_COLUMN_FORWARD), 28.8, 0.005);
	near(block_ms(&v100, SKEP_COLUMN_BACKWARD), 71.7, 0.005);
	double forward = block_ms(&v100, SKEP_COLUMN_FORWARD) / block_ms(&a100, SKEP_COLUMN_FORWARD);
	double both = (block_ms(&v100, SKEP_COLUMN_FORWARD) + block_ms(&v100, SKEP_COLUMN_BACKWARD)) /
	              (block_ms(&a100, SKEP_COLUMN_FORWARD) + block_ms(&a100, SKEP_COLUMN_BACKWARD));
	assert_true(forward > 3.2 && forward < 3.55 && both > 3.2 && both < 3.5);
	near(a100.row[12].flop, 24.0 * 2048 * 1024 * 1024 + 4.0 * 2048 * 2048 * 1024, 1e-12);
	skep_gpu_table_finish(&v100);
	skep_gpu_table_finish(&a100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_products),
		cmocka_unit_test(test_scattered_products),
		cmocka_unit_test(test_layers),
		cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_best_products),
		cmocka_unit_test(test_opt_blocks),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
