/* SPDX-License-Identifier: Apache-2.0
 *
 * test_ranges.c - what a round sums of a stage's vector (skep_plan_range), by plans: all of it, buckets of which the last one
 * comes first, fragments of one length, fragments as a plan says. Together they are the vector, without a gap.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/plan.h"

static const uint64_t firsts[] = {0, 5, 40}, bucket_firsts[] = {70, 30, 0};
static const struct skep_stage_plan stage[] = {
	{.parameters = 100, .buckets = 3, .bucket_first = bucket_firsts, .fragment_first = firsts},
	{.parameters = 100}};

static void holds(
	const struct skep_plan *plan, uint32_t of, uint32_t round, uint32_t bucket, uint64_t first, uint64_t count)
{
	uint64_t got_first, got_count;
	skep_plan_range(plan, of, round, bucket, &got_first, &got_count);
	assert_int_equal(got_first, first);
	assert_int_equal(got_count, count);
}

static void test_buckets(void **state)
{
	(void)state;
	struct skep_plan plan = {.stages = 2, .stage = stage};
	holds(&plan, 0, 3, 0, 0, 100);
	plan.eager = true;
	assert_int_equal(skep_plan_buckets(&plan, 0), 3);
	holds(&plan, 0, 3, 0, 70, 30);
	holds(&plan, 0, 3, 1, 30, 40);
	holds(&plan, 0, 3, 2, 0, 30);
	holds(&plan, 1, 3, 0, 0, 100);
}

static void test_fragments(void **state)
{
	(void)state;
	const struct skep_plan plan = {.stages = 2, .stage = stage, .fragments = 3};
	for (uint32_t round = 0; round < 6; round += 3) {
		holds(&plan, 0, round, 0, 0, 5);
		holds(&plan, 0, round + 1, 0, 5, 35);
		holds(&plan, 0, round + 2, 0, 40, 60);
		uint64_t first, count, end = 0;
		for (uint32_t nth = 0; nth < 3; nth++, end += count) { /* as nearly of one length as can be */
			skep_plan_range(&plan, 1, round + nth, 0, &first, &count);
			assert_true(first == end && count >= 33 && count <= 34);
		}
		assert_int_equal(end, 100);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_buckets),
		cmocka_unit_test(test_fragments),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
