/* SPDX-License-Identifier: Apache-2.0
 *
 * test_bytes_sum.c - sums over bytes are those of XXH3 as it is compiled for any processor, whatever this one has: other machines
 * and states that are kept have them too.
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/sum.h"

enum { BYTES = 20000 };

static void test_each_length_has_the_sum_of_the_library(void **state)
{
	(void)state;
	static unsigned char bytes[BYTES + 1];
	for (size_t i = 0; i <= BYTES; i++)
		bytes[i] = (unsigned char)(i * 131 ^ i >> 7);
	for (size_t n = 1; n < BYTES; n += n < 2100 ? 1 : 97) {
		const void *at = bytes + n % 2;
		assert_true(skep_sum(0, at, n) == XXH3_64bits(at, n));
		assert_true(skep_sum(n, at, n) == XXH3_64bits_withSeed(at, n, n));
	}
	assert_true(skep_sum(7, bytes, 0) == 7);
}

static void test_a_known_sum(void **state)
{
	(void)state;
	unsigned char bytes[1000];
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (unsigned char)i;
	assert_true(skep_sum(0, bytes, sizeof bytes) == UINT64_C(0xd33dd80b46f60e50));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_length_has_the_sum_of_the_library),
		cmocka_unit_test(test_a_known_sum),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
