/* SPDX-License-Identifier: Apache-2.0
 *
 * test_grow.c - arrays that grow keep what is in them, also when items go in between.
 */
#include "base/grow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void items_stay(void **state)
{
	(void)state;
	enum { COUNT = 5000 };
	uint32_t *item = NULL;
	for (uint32_t i = 0; i < COUNT; i++) {
		assert_true(skep_grow(&item, i, sizeof *item));
		item[i] = i * i;
	}
	for (uint32_t i = 0; i < COUNT; i++)
		assert_true(item[i] == i * i);
	free(item);
}

static void an_array_that_became_shorter_grows_again(void **state)
{
	(void)state;
	uint64_t *item = NULL;
	size_t count = 0;
	uint32_t random = 1;
	for (uint32_t i = 0; i < 100000; i++) {
		random = random * 1664525 + 1013904223;
		if (random >> 30 == 0 && count > 0) {
			count -= (random >> 8) % count;
			continue;
		}
		assert_true(skep_grow(&item, count, sizeof *item));
		item[count] = count;
		count++;
	}
	for (size_t i = 0; i < count; i++)
		assert_true(item[i] == i);
	free(item);
}

static void what_cannot_be_is_refused(void **state)
{
	(void)state;
	char *item = malloc(1), *before = item;
	assert_non_null(item);
	item[0] = 'x';
	assert_false(skep_grow(&item, (size_t)1 << 62, 16));
	assert_ptr_equal(item, before);
	assert_int_equal(item[0], 'x');
	free(item);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(items_stay),
		cmocka_unit_test(an_array_that_became_shorter_grows_again),
		cmocka_unit_test(what_cannot_be_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
