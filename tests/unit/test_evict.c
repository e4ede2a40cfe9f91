/* SPDX-License-Identifier: Apache-2.0
 *
 * test_evict.c - who is evicted when members complain of each other: those that leave no disconnect behind, the fewest that are
 * seen at a glance, and none that has no part in it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "exec/tcp/evict.h"

static uint32_t all(struct skep_disconnect *disconnect, uint32_t count, uint32_t ret[16])
{
	uint32_t evicted = 0, rank;
	while ((rank = skep_evict_next(disconnect, &count)) != UINT32_MAX)
		ret[evicted++] = rank;
	assert_int_equal(count, 0);
	return evicted;
}

static void test_none(void **state)
{
	uint32_t who[16];
	(void)state;
	assert_int_equal(all(NULL, 0, who), 0);
}

static void test_newer_of_two(void **state)
{
	struct skep_disconnect both[] = {{3, 7}, {7, 3}, {3, 7}};
	uint32_t who[16];
	(void)state;
	assert_int_equal(all(both, 3, who), 1);
	assert_int_equal(who[0], 7);
}

static void test_one_bad_machine(void **state)
{
	/* 2 reaches no other: it complains of some, others of it, and it is older than all of them. */
	struct skep_disconnect star[] = {{2, 4}, {5, 2}, {6, 2}, {2, 6}, {9, 2}};
	uint32_t who[16];
	(void)state;
	assert_int_equal(all(star, 5, who), 1);
	assert_int_equal(who[0], 2);
}

static void test_a_pair_told_twice_is_one(void **state)
{
	/* 1 and 8 complain of each other again and again, yet 3 has more that it does not reach. */
	struct skep_disconnect mixed[] = {{1, 8}, {8, 1}, {1, 8}, {8, 1}, {3, 4}, {3, 5}};
	uint32_t who[16];
	(void)state;
	assert_int_equal(all(mixed, 6, who), 2);
	assert_int_equal(who[0], 3);
	assert_int_equal(who[1], 8);
}

static void test_two_halves(void **state)
{
	/* 1, 2 do not reach 3, 4, 5: the smaller half goes. */
	struct skep_disconnect halves[] = {{1, 3}, {1, 4}, {1, 5}, {3, 2}, {4, 2}, {5, 2}};
	uint32_t who[16];
	(void)state;
	assert_int_equal(all(halves, 6, who), 2);
	assert_int_equal(who[0], 2);
	assert_int_equal(who[1], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_newer_of_two),
		cmocka_unit_test(test_one_bad_machine),
		cmocka_unit_test(test_a_pair_told_twice_is_one),
		cmocka_unit_test(test_two_halves),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
