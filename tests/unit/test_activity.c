/* SPDX-License-Identifier: Apache-2.0
 *
 * test_activity.c - operations in bins of time: no nanosecond is lost or counted twice, however long the run becomes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "analysis/store/store_activity.h"

static void add(struct skep_activity *activity, uint32_t worker, int kind, int lane, skep_time begin, skep_time end)
{
	skep_activity_add(activity, &(struct skep_op_span){.worker = worker,
					    .kind = (uint8_t)kind,
					    .lane = (uint8_t)lane,
					    .begin_ns = begin,
					    .end_ns = end});
}

static skep_time sum(const struct skep_activity *activity, uint32_t worker, enum skep_activity_group group)
{
	skep_time total = 0;
	for (uint32_t bin = 0; bin < activity->bins; bin++)
		total += skep_activity_cell(activity, worker, bin)[group];
	return total;
}

static void test_groups(void **state)
{
	(void)state;
	struct skep_activity activity;
	assert_true(skep_activity_init(&activity, 2));
	add(&activity, 1, SKEP_OP_FORWARD, SKEP_LANE_COMPUTE, 0, 10);
	add(&activity, 1, SKEP_OP_BACKWARD, SKEP_LANE_COMPUTE, 10, 30);
	add(&activity, 1, SKEP_OP_STEP, SKEP_LANE_COMPUTE, 30, 33);
	add(&activity, 1, SKEP_OP_LOAD, SKEP_LANE_COMPUTE, 33, 37);
	add(&activity, 1, SKEP_OP_ADD, SKEP_LANE_REDUCE, 12, 17);
	add(&activity, 1, SKEP_OP_STEP, SKEP_LANE_REDUCE, 20, 26); /* delayed */
	add(&activity, 1, SKEP_OP_FORWARD, SKEP_LANE_COMPUTE, 40, 40);
	add(&activity, 2, SKEP_OP_FORWARD, SKEP_LANE_COMPUTE, 0, 10); /* there is none */
	static const skep_time expected[SKEP_ACTIVITY_GROUPS] = {10, 20, 9, 5, 4};
	for (int i = 0; i < SKEP_ACTIVITY_GROUPS; i++) {
		assert_int_equal(skep_activity_cell(&activity, 1, 0)[i], expected[i]);
		assert_int_equal(sum(&activity, 0, (enum skep_activity_group)i), 0);
	}
	assert_int_equal(activity.used, 1);
	skep_activity_finish(&activity);
}

/* An operation of four bins and a half: 1,024 ns each at first. */
static void test_edges(void **state)
{
	(void)state;
	static const skep_time expected[] = {0, 1024 - 100, 1024, 1024, 1024, 612, 0};
	struct skep_activity activity;
	assert_true(skep_activity_init(&activity, 1));
	add(&activity, 0, SKEP_OP_FORWARD, SKEP_LANE_COMPUTE, 1024 + 100, 5 * 1024 + 612);
	for (uint32_t i = 0; i < 7; i++)
		assert_int_equal(skep_activity_cell(&activity, 0, i)[SKEP_ACTIVITY_FORWARD], expected[i]);
	assert_int_equal(activity.used, 6);
	/* Time goes beyond the last bin: pairs are merged, and this is the first bin of the new half. */
	add(&activity, 0, SKEP_OP_STEP, SKEP_LANE_COMPUTE, 1024 * 1024, 1024 * 1024 + 7);
	static const skep_time merged[] = {1024 - 100, 2048, 1024 + 612, 0};
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(skep_activity_cell(&activity, 0, i)[SKEP_ACTIVITY_FORWARD], merged[i]);
	assert_int_equal(skep_activity_cell(&activity, 0, 512)[SKEP_ACTIVITY_STEP], 7);
	assert_int_equal(activity.used, 513);
	assert_int_equal(activity.shift, 11);
	skep_activity_finish(&activity);
	/* Merged twice at once: what was in the third bin is now in the first. */
	assert_true(skep_activity_init(&activity, 1));
	add(&activity, 0, SKEP_OP_FORWARD, SKEP_LANE_COMPUTE, 2 * 1024, 2 * 1024 + 5);
	add(&activity, 0, SKEP_OP_STEP, SKEP_LANE_COMPUTE, 3 * 1024 * 1024, 3 * 1024 * 1024 + 7);
	assert_int_equal(activity.shift, 12);
	assert_int_equal(skep_activity_cell(&activity, 0, 0)[SKEP_ACTIVITY_FORWARD], 5);
	skep_activity_finish(&activity);
}

/* Draws are heard out of order, from microseconds to days. */
static void test_sums(void **state)
{
	(void)state;
	static const uint32_t workers[] = {1, 7, 400, 5000};
	for (size_t w = 0; w < sizeof workers / sizeof workers[0]; w++) {
		struct skep_activity activity;
		skep_time total[2] = {0}, last = 0;
		uint64_t draw = 88172645463325252u;
		assert_true(skep_activity_init(&activity, workers[w]));
		assert_int_equal(activity.bins & (activity.bins - 1), 0);
		for (int i = 0; i < 20000; i++) {
			draw ^= draw << 13, draw ^= draw >> 7, draw ^= draw << 17;
			skep_time begin = (draw >> 10) % ((skep_time)i * i * 250000 + 1), length = draw % 90000000;
			bool back = draw >> 63;
			add(&activity, workers[w] - 1, back ? SKEP_OP_BACKWARD : SKEP_OP_FORWARD, SKEP_LANE_COMPUTE,
				begin, begin + length);
			total[back] += length;
			last = begin + length > last ? begin + length : last;
		}
		assert_int_equal(sum(&activity, workers[w] - 1, SKEP_ACTIVITY_FORWARD), total[0]);
		assert_int_equal(sum(&activity, workers[w] - 1, SKEP_ACTIVITY_BACKWARD), total[1]);
		assert_int_equal(activity.used, ((last - 1) >> activity.shift) + 1);
		assert_true(activity.used > activity.bins / 2);
		skep_activity_finish(&activity);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_sums),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
