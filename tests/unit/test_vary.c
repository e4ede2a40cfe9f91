/* SPDX-License-Identifier: Apache-2.0
 *
 * test_vary.c - the values and seeds of a sweep: how they are taken apart, what is refused, and the order of combinations.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "scenarios/vary/vary.h"
#include "tests/unit/fresh.h"

static void accept(struct skep_vary *vary, const char *text)
{
	struct skep_diag error;
	bool added = skep_vary_add(vary, text, fresh(&error));
	if (!added)
		print_error("%s\n", error.message);
	assert_true(added);
}

static void refuse(const char *text, const char *expected)
{
	struct skep_vary vary = {0};
	struct skep_diag error;
	assert_false(skep_vary_add(&vary, text, fresh(&error)));
	if (!strstr(error.message, expected))
		print_error("%s: %s\n", text, error.message);
	assert_non_null(strstr(error.message, expected));
	skep_vary_finish(&vary);
}

static void test_values_are_cut_at_commas_outside_of_braces(void **state)
{
	(void)state;
	static const char *const value[] = {
		"{a: 1, b: [2, 3]}", "\"x, \\\"y\"", "'it''s, so'", "it's", "[{c: ']'}, 4]", "60 s", "''"};
	struct skep_vary vary = {0};
	accept(&vary, "k.l={a: 1, b: [2, 3]}, \"x, \\\"y\" ,'it''s, so',it's,[{c: ']'}, 4],\t60 s,''");
	assert_int_equal(vary.keys, 1);
	assert_string_equal(vary.key[0].key, "k.l");
	assert_int_equal(vary.key[0].values, sizeof value / sizeof value[0]);
	for (uint32_t i = 0; i < vary.key[0].values; i++)
		assert_string_equal(vary.key[0].value[i], value[i]);
	skep_vary_finish(&vary);
}

static void test_an_equals_sign_may_be_in_a_value(void **state)
{
	(void)state;
	struct skep_vary vary = {0};
	accept(&vary, "k=a=b,c");
	assert_string_equal(vary.key[0].value[0], "a=b");
	skep_vary_finish(&vary);
}

static void test_what_is_no_list_of_values_is_refused(void **state)
{
	(void)state;
	char many[200] = "k=";
	for (int i = 0; i < 100; i++)
		strcat(many, "[");
	refuse("", "expected KEY=A,B,C");
	refuse("=1", "expected KEY=A,B,C");
	refuse("k", "expected KEY=A,B,C");
	refuse("k=", "expected KEY=A,B,C");
	refuse("k=,", "value 1 is empty");
	refuse("k=1, ,2", "value 2 is empty");
	refuse("k=1,", "value 2 is empty");
	refuse("k=1,2, 1", "the value 1 is there twice");
	refuse("k={1,2", "has no partner");
	refuse("k=1},2", "has no partner");
	refuse("k={1]", "has no partner");
	refuse("k='1,2", "has no partner");
	refuse(many, "has no partner");
	refuse("seed=1,2", "take --seeds");
}

/* So many that to compare each with each takes long. */
static void test_many_values_are_told_apart_at_once(void **state)
{
	(void)state;
	enum { EACH = 8 };
	struct skep_vary vary = {0};
	char *text = malloc(2 + (SKEP_VARY_COMBINATIONS_MAX + 2) * EACH);
	assert_non_null(text);
	char *end = text + sprintf(text, "k=0");
	for (uint32_t i = 1; i < SKEP_VARY_COMBINATIONS_MAX; i++)
		end += sprintf(end, ",%u", i);
	accept(&vary, text);
	assert_int_equal(vary.key[0].values, SKEP_VARY_COMBINATIONS_MAX);
	assert_string_equal(vary.key[0].value[SKEP_VARY_COMBINATIONS_MAX - 1], "99999");
	skep_vary_finish(&vary);
	strcpy(end, ",x");
	refuse(text, "more than 100000 values");
	strcpy(end - strlen(",99999"), ",0");
	refuse(text, "the value 0 is there twice");
	free(text);
}

static void test_a_key_is_varied_once(void **state)
{
	(void)state;
	struct skep_vary vary = {0};
	struct skep_diag error;
	accept(&vary, "k=1");
	accept(&vary, "k.l=1");
	assert_false(skep_vary_add(&vary, "k=2", fresh(&error)));
	assert_non_null(strstr(error.message, "there twice"));
	skep_vary_finish(&vary);
}

static void test_so_many_keys_and_no_more(void **state)
{
	(void)state;
	struct skep_vary vary = {0};
	char text[16];
	struct skep_diag error;
	for (uint32_t i = 0; i < SKEP_VARY_KEYS_MAX; i++) {
		snprintf(text, sizeof text, "k%u=1", i);
		accept(&vary, text);
	}
	assert_false(skep_vary_add(&vary, "more=1", fresh(&error)));
	assert_non_null(strstr(error.message, "at most 16 keys"));
	skep_vary_finish(&vary);
}

static void expect_seeds(const char *text, const uint64_t *seed, uint32_t seeds)
{
	struct skep_vary vary = {0};
	struct skep_diag error;
	assert_true(skep_vary_add_seeds(&vary, text, fresh(&error)));
	assert_int_equal(vary.seeds, seeds);
	assert_memory_equal(vary.seed, seed, seeds * sizeof *seed);
	skep_vary_finish(&vary);
}

static void refuse_seeds(const char *text, const char *expected)
{
	struct skep_vary vary = {0};
	struct skep_diag error;
	assert_false(skep_vary_add_seeds(&vary, text, fresh(&error)));
	assert_non_null(strstr(error.message, expected));
	skep_vary_finish(&vary);
}

static void test_seeds_are_ranges_and_numbers(void **state)
{
	(void)state;
	expect_seeds("3", (const uint64_t[]){3}, 1);
	expect_seeds("1..4", (const uint64_t[]){1, 2, 3, 4}, 4);
	expect_seeds("9,1..3,7", (const uint64_t[]){9, 1, 2, 3, 7}, 5);
	expect_seeds("9223372036854775806..9223372036854775807",
		(const uint64_t[]){UINT64_C(9223372036854775806), UINT64_C(9223372036854775807)}, 2);
	static const char *const wrong[] = {
		"", ",", "1,", "x", "-1", "1..", "..2", "1...2", "1 2", "9223372036854775808"};
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		refuse_seeds(wrong[i], "expected whole numbers");
	refuse_seeds("2..1", "2 comes after 1");
	refuse_seeds("1..3,2", "2 is there twice");
	refuse_seeds("0..9223372036854775807", "more than 100000 seeds");
}

static void test_the_seed_changes_first_and_then_the_last_key(void **state)
{
	(void)state;
	static const char *const name[] = {"a=1, b=x, seed 5", "a=1, b=x, seed 6", "a=1, b=y, seed 5",
		"a=1, b=y, seed 6", "a=2, b=x, seed 5", "a=2, b=x, seed 6", "a=2, b=y, seed 5", "a=2, b=y, seed 6"};
	struct skep_vary vary = {0};
	char text[64];
	struct skep_diag error;
	accept(&vary, "a=1,2");
	accept(&vary, "b=x,y");
	assert_true(skep_vary_add_seeds(&vary, "5,6", fresh(&error)));
	assert_true(skep_vary_check(&vary, fresh(&error)));
	assert_int_equal(skep_vary_points(&vary), 4);
	assert_int_equal(skep_vary_combinations(&vary), 8);
	for (uint32_t i = 0; i < 8; i++) {
		skep_vary_name(&vary, i, text, sizeof text);
		assert_string_equal(text, name[i]);
	}
	skep_vary_name(&vary, 0, text, 7);
	assert_string_equal(text, "a=1, b");
	skep_vary_finish(&vary);
}

static void test_without_seeds_the_scenario_has_its_own(void **state)
{
	(void)state;
	struct skep_vary vary = {0};
	char text[64];
	uint64_t seed = 77;
	accept(&vary, "a=1,2,3");
	assert_int_equal(skep_vary_combinations(&vary), 3);
	assert_false(skep_vary_seed(&vary, 2, &seed));
	assert_int_equal(seed, 77);
	skep_vary_name(&vary, 2, text, sizeof text);
	assert_string_equal(text, "a=3");
	skep_vary_finish(&vary);
}

static void test_the_product_has_a_bound(void **state)
{
	(void)state;
	struct skep_vary vary = {0};
	char text[16];
	struct skep_diag error;
	for (uint32_t i = 0; i < SKEP_VARY_KEYS_MAX;
		i++) { /* 3^16 and more would wrap 32 bits with a few values more */
		snprintf(text, sizeof text, "k%u=1,2,3,4", i);
		accept(&vary, text);
	}
	assert_false(skep_vary_check(&vary, fresh(&error)));
	assert_non_null(strstr(error.message, "more than 100000 combinations"));
	skep_vary_finish(&vary);
	assert_true(skep_vary_add_seeds(&vary, "1..100000", fresh(&error)));
	assert_true(skep_vary_check(&vary, fresh(&error)));
	accept(&vary, "k=1");
	assert_true(skep_vary_check(&vary, fresh(&error)));
	accept(&vary, "l=1,2");
	assert_false(skep_vary_check(&vary, fresh(&error)));
	skep_vary_finish(&vary);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values_are_cut_at_commas_outside_of_braces),
		cmocka_unit_test(test_an_equals_sign_may_be_in_a_value),
		cmocka_unit_test(test_what_is_no_list_of_values_is_refused),
		cmocka_unit_test(test_many_values_are_told_apart_at_once),
		cmocka_unit_test(test_a_key_is_varied_once),
		cmocka_unit_test(test_so_many_keys_and_no_more),
		cmocka_unit_test(test_seeds_are_ranges_and_numbers),
		cmocka_unit_test(test_the_seed_changes_first_and_then_the_last_key),
		cmocka_unit_test(test_without_seeds_the_scenario_has_its_own),
		cmocka_unit_test(test_the_product_has_a_bound),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
