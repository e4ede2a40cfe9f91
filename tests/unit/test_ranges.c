/* SPDX-License-Identifier: Apache-2.0
 *
 * test_ranges.c - what a round sums of a stage's vector (skep_plan_range), by plans: all of it, buckets of which the last one
 * comes first, fragments of one length, fragments as a plan says. Together they are the vector, without a gap. And how many
 * bytes its elements have, where each stage has a codec of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/record.h"

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
	const struct skep_plan plan = {.stages = 2, .stage = stage, .inner.fragments = 3};
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

/* Stages may have codecs of their own, with one block. */
static void test_codecs(void **state)
{
	(void)state;
	const uint8_t each[] = {SKEP_CODEC_INT8, SKEP_CODEC_NONE}, none[] = {SKEP_CODEC_NONE, SKEP_CODEC_NONE};
	struct skep_plan plan = {.stages = 2, .stage = stage, .reduction.codec = SKEP_CODEC_FP16};
	for (uint32_t of = 0; of < 2; of++)
		assert_int_equal(skep_plan_encoded_bytes(&plan, of, 100), 200);
	assert_true(skep_plan_compresses(&plan) && !skep_plan_has_scales(&plan));
	plan.reduction.codecs = each;
	assert_int_equal(skep_plan_encoded_bytes(&plan, 0, 100), 100 + 2 * SKEP_CODEC_SCALE_BYTES);
	assert_int_equal(skep_plan_encoded_bytes(&plan, 1, 100), 400);
	assert_true(skep_plan_compresses(&plan) && skep_plan_has_scales(&plan));
	plan.reduction.block = 8;
	assert_int_equal(skep_plan_encoded_bytes(&plan, 0, 100), 100 + 13 * SKEP_CODEC_SCALE_BYTES);
	assert_int_equal(skep_plan_encoded_bytes(&plan, 1, 100), 400);
	struct skep_message chunk = {.kind = SKEP_MESSAGE_CHUNK, .stage = 1};
	assert_int_equal(skep_message_payload_max(&plan, &chunk), 400 + SKEP_PART_HEADER_BYTES);
	chunk.stage = 0;
	assert_int_equal(skep_message_payload_max(&plan, &chunk), 152 + SKEP_PART_HEADER_BYTES);
	plan.reduction.codecs = none;
	assert_true(!skep_plan_compresses(&plan) && !skep_plan_has_scales(&plan));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_buckets),
		cmocka_unit_test(test_fragments),
		cmocka_unit_test(test_codecs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
