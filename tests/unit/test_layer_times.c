/* SPDX-License-Identifier: Apache-2.0
 *
 * test_layer_times.c - the parts that stages were made of come out of their times; disturbed ones are smoothed; and the layers of
 * a small model on the CPU are timed at all, however long they take.
 */
#include "models/device/layer_times.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "models/read/model.h"
#include "tests/unit/fresh.h"

static bool near(double a, double b)
{
	return fabs(a / b - 1) < 1e-9;
}

static struct skep_layer_time of(double s)
{
	return (struct skep_layer_time){{s, 2 * s, 3 * s}};
}

static void test_parts(void **state)
{
	(void)state;
	const double embedding = 7, block = 11, head = 40, edge = 2;
	const struct skep_layer_stages stages = {.blocks = 4,
		.embedding = of(embedding + edge),
		.one_block = of(block + 2 * edge),
		.several = of(4 * block + 2 * edge),
		.head = of(head + edge)};
	const double want[] = {embedding, block, head, edge};
	struct skep_layer_time part[SKEP_LAYER_PARTS];
	skep_layer_times_part(&stages, part);
	for (int p = 0; p < SKEP_LAYER_PARTS; p++)
		for (int c = 0; c < SKEP_LAYER_COLUMNS; c++)
			assert_true(near(part[p].s[c], (c + 1) * want[p]));
}

/* Whatever was disturbed, no part is 0 or less, and no block longer than a stage that has one and than its part of several. */
static void test_disturbed_parts(void **state)
{
	(void)state;
	for (int i = 0; i < 64; i++) {
		const struct skep_layer_stages stages = {.blocks = 3,
			.embedding = of(i & 1 ? 1 : 100),
			.one_block = of(i & 2 ? 3 : 300),
			.several = of(i & 4 ? 9 : 900),
			.head = of(i & 8 ? 5 : 500)};
		struct skep_layer_time part[SKEP_LAYER_PARTS];
		skep_layer_times_part(&stages, part);
		for (int p = 0; p < SKEP_LAYER_PARTS; p++)
			assert_true(part[p].s[0] > 0);
		assert_true(
			part[SKEP_PART_BLOCK].s[0] <= fmax(stages.one_block.s[0], stages.several.s[0] / stages.blocks));
		assert_true(part[SKEP_PART_HEAD].s[0] <= stages.head.s[0]);
	}
}

/* Four blocks that do not stay in a cache where one does: they and the two edges are what was seen of four. */
static void test_blocks_beyond_a_cache(void **state)
{
	(void)state;
	const struct skep_layer_stages stages = {
		.blocks = 4, .embedding = of(1), .one_block = of(0.6), .several = of(4), .head = of(1)};
	struct skep_layer_time part[SKEP_LAYER_PARTS];
	skep_layer_times_part(&stages, part);
	for (int c = 0; c < SKEP_LAYER_COLUMNS; c++) {
		const double block = part[SKEP_PART_BLOCK].s[c], edge = part[SKEP_PART_EDGE].s[c];
		assert_true(near(4 * block + 2 * edge, (c + 1) * 4.0));
		assert_true(near(edge, (c + 1) * 0.006));
	}
}

static void smooth(const double seen[], uint32_t count, const double want[])
{
	struct skep_layer_times times = {.microbatches = count};
	for (int p = 0; p < SKEP_LAYER_PARTS; p++)
		for (uint32_t i = 0; i < count; i++)
			times.part[p][i] = of(seen[i]);
	skep_layer_times_smooth(&times);
	for (uint32_t i = 0; i < count; i++)
		for (int p = 0; p < SKEP_LAYER_PARTS; p++) {
			assert_true(near(times.part[p][i].s[SKEP_LAYER_FORWARD], want[i]));
			assert_true(near(times.part[p][i].s[SKEP_LAYER_BACKWARD], 2 * want[i]));
			assert_true(near(times.part[p][i].s[SKEP_LAYER_UPDATE], times.part[0][0].s[SKEP_LAYER_UPDATE]));
		}
}

/* By hand: one that is late is pooled with what is behind it, one that is early with what is before it. */
static void test_smoothing(void **state)
{
	(void)state;
	smooth((const double[]){1, 2, 4, 8}, 4, (const double[]){1, 2, 4, 8});
	smooth((const double[]){95, 120, 660, 235, 395, 815}, 6, (const double[]){95, 120, 395, 395, 395, 815});
	smooth((const double[]){1, 2, 0.1, 8}, 4, (const double[]){1, 1.05, 1.05, 8});
	smooth((const double[]){5, 4}, 2, (const double[]){4.5, 4.5});
	smooth((const double[]){3}, 1, (const double[]){3});
}

static void test_a_model(void **state)
{
	(void)state;
	struct skep_model model;
	struct skep_layer_times times;
	struct skep_diag diag;
	const struct skep_device_place place = {.threads = 1};
	assert_true(skep_model_read("models/tiny-gpt2.yaml", &model, fresh(&diag)));
	assert_true(skep_layer_times_measure(SKEP_DEVICE_CPU, &place, &model, &times, fresh(&diag)));
	assert_true(times.microbatches > 0 && times.microbatches <= SKEP_LAYER_TIMES_MAX);
	for (int p = 0; p < SKEP_LAYER_PARTS; p++)
		for (uint32_t i = 0; i < times.microbatches; i++)
			for (int c = 0; c < SKEP_LAYER_COLUMNS; c++) {
				assert_true(times.part[p][i].s[c] > 0);
				assert_true(i == 0 || times.part[p][i].s[c] >= times.part[p][i - 1].s[c]);
			}
	skep_model_finish(&model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_parts), cmocka_unit_test(test_disturbed_parts),
		cmocka_unit_test(test_blocks_beyond_a_cache), cmocka_unit_test(test_smoothing),
		cmocka_unit_test(test_a_model)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
