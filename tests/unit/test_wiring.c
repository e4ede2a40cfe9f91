/* SPDX-License-Identifier: Apache-2.0
 *
 * test_wiring.c - views and the choice among them: uniform, also when the view is a sample; epochs only go up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/wiring.h"

static struct skep_view *view_of(uint32_t capacity)
{
	struct skep_view *view = calloc(1, sizeof *view + capacity * sizeof view->peer[0]);
	assert_non_null(view);
	return view;
}

static void test_uniform(void **state)
{
	(void)state;
	struct skep_view *view = view_of(8);
	uint64_t random = 7;
	uint32_t hits[8] = {0};
	for (uint32_t i = 0; i < 8; i++)
		skep_view_add(view, 8, (struct skep_peer){i, 1}, &random);
	for (uint32_t i = 0; i < 80000; i++)
		hits[skep_view_choose(view, SKEP_WIRING_UNIFORM, &random).index]++;
	for (uint32_t i = 0; i < 8; i++) /* 10000 expected, standard deviation 94 */
		assert_in_range(hits[i], 10000 - 5 * 94, 10000 + 5 * 94);
	free(view);
}

/* Many senders, each with a sample of 4 out of 16: all 16 are chosen alike. */
static void test_sampled_views_are_uniform_together(void **state)
{
	(void)state;
	struct skep_view *view = view_of(4);
	uint32_t hits[16] = {0};
	for (uint64_t sender = 0; sender < 32000; sender++) {
		uint64_t random = sender * 977 + 3;
		skep_view_clear(view);
		for (uint32_t i = 0; i < 16; i++)
			skep_view_add(view, 4, (struct skep_peer){i, 1}, &random);
		assert_int_equal(view->count, 4);
		hits[skep_view_choose(view, SKEP_WIRING_UNIFORM, &random).index]++;
	}
	for (uint32_t i = 0; i < 16; i++) /* 2000 expected, standard deviation 43 */
		assert_in_range(hits[i], 2000 - 5 * 43, 2000 + 5 * 43);
	free(view);
}

static void test_epochs_only_go_up(void **state)
{
	(void)state;
	struct skep_view *view = view_of(4);
	uint64_t random = 1;
	skep_view_add(view, 4, (struct skep_peer){3, 2}, &random);
	skep_view_add(view, 4, (struct skep_peer){3, 1}, &random);
	assert_int_equal(view->count, 1);
	assert_int_equal(view->peer[0].epoch, 2);
	skep_view_remove(view, 4, (struct skep_peer){3, 1}); /* news of an earlier life */
	assert_int_equal(view->count, 1);
	skep_view_add(view, 4, (struct skep_peer){3, 5}, &random);
	assert_int_equal(view->peer[0].epoch, 5);
	skep_view_remove(view, 4, (struct skep_peer){3, 5});
	assert_int_equal(view->count, 0);
	assert_int_equal(skep_view_choose(view, SKEP_WIRING_UNIFORM, &random).index, SKEP_NO_INDEX);
	free(view);
}

/* Of 16 the view holds 4: when it is down to two it asks, and is told of those who are left. */
static void test_a_thin_sample_asks_for_the_rest(void **state)
{
	(void)state;
	struct skep_view *view = view_of(4);
	uint64_t random = 3;
	for (uint32_t i = 0; i < 16; i++)
		skep_view_add(view, 4, (struct skep_peer){i, 1}, &random);
	bool asked = false;
	while (!asked) {
		assert_in_range(view->count, 3, 4);
		asked = skep_view_remove(view, 4, view->peer[0]);
	}
	assert_int_equal(view->count, 2);
	for (uint32_t i = 0; i < 16; i++)
		skep_view_add(view, 4, (struct skep_peer){i, 1}, &random);
	assert_int_equal(view->count, 4);
	assert_int_equal(view->heard, 16);
	free(view);
}

static void test_a_whole_view_never_asks(void **state)
{
	(void)state;
	struct skep_view *view = view_of(4);
	uint64_t random = 3;
	for (uint32_t i = 0; i < 4; i++)
		skep_view_add(view, 4, (struct skep_peer){i, 1}, &random);
	for (uint32_t i = 0; i < 4; i++)
		assert_false(skep_view_remove(view, 4, (struct skep_peer){i, 1}));
	assert_int_equal(view->heard, 0);
	free(view);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_uniform),
		cmocka_unit_test(test_sampled_views_are_uniform_together),
		cmocka_unit_test(test_epochs_only_go_up),
		cmocka_unit_test(test_a_thin_sample_asks_for_the_rest),
		cmocka_unit_test(test_a_whole_view_never_asks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
