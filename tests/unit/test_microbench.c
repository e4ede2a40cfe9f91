/* SPDX-License-Identifier: Apache-2.0
 *
 * test_microbench.c - the rates of a GPU whose passes take what a law says: they are those of the law, however long the way into
 * a stage and out of it takes; a disturbed measurement makes no rate above twice what was seen of the whole stage.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "models/device/microbench.h"

#define FLOPS 3e14
#define BYTES_PER_S 2e12

/* A wide block has much to compute for its bytes, a narrow one little. */
static const struct skep_microbench_passes wide = {.flop = 1.2e12, .bytes = 3e9}, narrow = {.flop = 1e11, .bytes = 1e9};

static struct skep_microbench_passes taken(const struct skep_microbench_passes *block, uint32_t depth, double way_s)
{
	return (struct skep_microbench_passes){depth * block->flop, depth * block->bytes,
		way_s + depth * fmax(block->flop / FLOPS, block->bytes / BYTES_PER_S)};
}

static void note(
	struct skep_microbench *microbench, const struct skep_microbench_passes *block, double way_s, double late_s)
{
	struct skep_microbench_passes shallow = taken(block, 1, way_s + late_s), deep = taken(block, 3, way_s);
	skep_microbench_note(microbench, &shallow, &deep);
}

static bool near(double a, double b)
{
	return fabs(a / b - 1) < 1e-9;
}

static void test_the_way_is_not_in_it(void **state)
{
	(void)state;
	for (int w = 0; w < 3; w++) {
		struct skep_microbench microbench = {.overhead_s = 1e-6};
		const double way_s = w * 1e-3;
		note(&microbench, &wide, way_s, 0);
		assert_true(near(microbench.flops, FLOPS) && microbench.memory_Bps < BYTES_PER_S / 2);
		note(&microbench, &narrow, w * 1e-4, 0);
		assert_true(near(microbench.flops, FLOPS) && near(microbench.memory_Bps, BYTES_PER_S));
	}
}

static void test_the_best_rate_stays(void **state)
{
	struct skep_microbench microbench = {.overhead_s = 1e-6, .memory_Bps = 3 * BYTES_PER_S};
	(void)state;
	note(&microbench, &wide, 0, 0);
	note(&microbench, &narrow, 0, 0);
	assert_true(near(microbench.flops, FLOPS) && near(microbench.memory_Bps, 3 * BYTES_PER_S));
}

static void test_a_disturbance(void **state)
{
	(void)state;
	for (int i = 0; i <= 40; i++) { /* from none to so much that the shallow stage takes longer than the deep one */
		struct skep_microbench microbench = {.overhead_s = 1e-6};
		note(&microbench, &wide, 1e-3, i * 0.3e-3);
		const struct skep_microbench_passes deep = taken(&wide, 3, 1e-3);
		assert_true(microbench.flops >= (1 - 1e-9) * deep.flop / deep.seconds);
		assert_true(microbench.flops <= (2 + 1e-9) * deep.flop / deep.seconds);
	}
}

static void test_too_short(void **state)
{
	struct skep_microbench microbench = {.overhead_s = 1e-3};
	(void)state;
	note(&microbench, &wide, 0, 0);
	assert_true(microbench.flops == 0 && microbench.memory_Bps == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_way_is_not_in_it),
		cmocka_unit_test(test_the_best_rate_stays), cmocka_unit_test(test_a_disturbance),
		cmocka_unit_test(test_too_short)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
