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
	struct skep_eviction who;
	uint32_t evicted = 0, edges[16];
	count = skep_evict_pairs(disconnect, count);
	while (skep_evict_next(disconnect, &count, edges, 16, &who))
		ret[evicted++] = who.rank;
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

/* Rank 0 hears no member while it looks: here 64 looks at no more than 4096 pairs, where each pair was once held against each. */
static void test_a_run_in_halves_that_all_tell_twice(void **state)
{
	enum { HALF = 64 };
	static struct skep_disconnect pair[2 * HALF * HALF];
	uint32_t count = 0, evicted = 0, edges[2 * HALF + 1];
	struct skep_eviction who;
	(void)state;
	for (uint32_t a = 1; a <= HALF; a++)
		for (uint32_t b = HALF + 1; b <= 2 * HALF; b++) {
			pair[count++] = (struct skep_disconnect){a, b};
			pair[count++] = (struct skep_disconnect){b, a};
		}
	count = skep_evict_pairs(pair, count);
	assert_int_equal(count, HALF * HALF);
	while (skep_evict_next(pair, &count, edges, 2 * HALF + 1, &who)) {
		assert_int_equal(who.rank, 2 * HALF - evicted); /* the newer half, the newest first */
		assert_int_equal(who.edges, HALF);
		assert_int_equal(who.other, 1);
		evicted++;
	}
	assert_int_equal(evicted, HALF);
	assert_int_equal(count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_newer_of_two),
		cmocka_unit_test(test_one_bad_machine),
		cmocka_unit_test(test_a_pair_told_twice_is_one),
		cmocka_unit_test(test_two_halves),
		cmocka_unit_test(test_a_run_in_halves_that_all_tell_twice),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
