/* SPDX-License-Identifier: Apache-2.0
 *
 * test_codec_again.c - what encoded bytes decode to encodes to bytes that decode to the same bits: some collectives encode sums
 * that have been encoded before, and all members must end with equal ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/random.h"
#include "models/layers/vector.h"
#include "models/update/codec.h"

enum { N = SKEP_CODEC_BLOCK };

static void test_each_half(void **state)
{
	(void)state;
	for (uint32_t half = 0; half <= UINT16_MAX; half++) {
		uint16_t encoded = (uint16_t)half, again;
		float value, then;
		skep_codec_decode(SKEP_CODEC_FP16, SKEP_CODEC_BLOCK, 1, &encoded, &value);
		skep_codec_encode(SKEP_CODEC_FP16, SKEP_CODEC_BLOCK, 1, &value, &again);
		skep_codec_decode(SKEP_CODEC_FP16, SKEP_CODEC_BLOCK, 1, &again, &then);
		assert_memory_equal(&value, &then, sizeof value);
	}
}

static void check_blocks_of(enum skep_codec codec, size_t n, float *value)
{
	float then[N];
	unsigned char encoded[N + SKEP_CODEC_SCALE_BYTES];
	skep_codec_encode(codec, SKEP_CODEC_BLOCK, n, value, encoded);
	skep_codec_decode(codec, SKEP_CODEC_BLOCK, n, encoded, value);
	skep_codec_encode(codec, SKEP_CODEC_BLOCK, n, value, encoded);
	skep_codec_decode(codec, SKEP_CODEC_BLOCK, n, encoded, then);
	assert_memory_equal(value, then, n * sizeof *value);
}

static void check_block(size_t n, float *value)
{
	float other[N];
	memcpy(other, value, n * sizeof *value);
	check_blocks_of(SKEP_CODEC_INT8, n, value);
	check_blocks_of(SKEP_CODEC_E3M0, n, other);
}

/* The largest of a block decides on the scale: all mantissas of one exponent, which is all but for the edges. */
static void test_each_scale(void **state)
{
	(void)state;
	for (int32_t mantissa = 0; mantissa < 1 << 23; mantissa++) {
		float value = skep_float_of(127 << 23 | mantissa);
		check_block(1, &value);
	}
}

static void test_blocks_of_all_sizes_and_exponents(void **state)
{
	(void)state;
	uint64_t random = 1;
	for (int32_t exponent = 0; exponent <= 255; exponent++) {
		for (uint32_t i = 0; i < 300; i++) {
			float value[N];
			size_t n = i % 3 ? N : 1 + skep_random_below(&random, N);
			for (size_t e = 0; e < n; e++) { /* of that size and some smaller ones */
				int32_t less = (int32_t)skep_random_below(&random, 12);
				int32_t bits = (exponent > less ? exponent - less : 0) << 23;
				bits |= (int32_t)skep_random_below(&random, 1 << 23);
				value[e] = skep_float_of(skep_random_below(&random, 2) ? bits | INT32_MIN : bits);
			}
			check_block(n, value);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_half),
		cmocka_unit_test(test_each_scale),
		cmocka_unit_test(test_blocks_of_all_sizes_and_exponents),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
