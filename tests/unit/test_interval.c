/* SPDX-License-Identifier: Apache-2.0
 *
 * test_interval.c - means and their intervals: against figures from tables and by hand, and how often they hold what is true.
 */
#include "planning/trial/interval.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/random.h"

static bool near(double a, double b, double by)
{
	return fabs(a - b) <= by;
}

/* As printed in any table of the distribution. */
static void quantiles_are_those_of_the_tables(void **state)
{
	(void)state;
	assert_true(near(skep_student95(1), 12.706, 5e-4) && near(skep_student95(2), 4.303, 5e-4));
	assert_true(near(skep_student95(7), 2.365, 5e-4) && near(skep_student95(19), 2.093, 5e-4));
	assert_true(near(skep_student95(1000), 1.962, 5e-4));
}

/* 2, 4, 9: mean 5, deviation sqrt(13), 4.303 * sqrt(13 / 3) = 8.957. */
static void an_interval_by_hand(void **state)
{
	(void)state;
	const double value[] = {2, NAN, 4, INFINITY, 9};
	struct skep_interval r = skep_interval_of(value, 5);
	assert_int_equal(r.count, 3);
	assert_true(near(r.mean, 5, 1e-12) && near(r.low, 5 - 8.957, 1e-3) && near(r.high, 5 + 8.957, 1e-3));
}

/* The logarithms of the same three: mean 1.4256, deviation 0.7528; 4.303 * 0.7528 * sqrt(1 + 1 / 3) = 3.740. */
static void one_more_by_hand(void **state)
{
	(void)state;
	const double value[] = {2, NAN, 4, INFINITY, 9};
	struct skep_interval r = skep_interval_of_one_more(value, 5);
	assert_true(near(r.mean, 5, 1e-12) && near(r.low, 0.09881, 1e-4) && near(r.high, 175.16, 0.02));
}

static void one_more_of_the_same(void **state)
{
	(void)state;
	const double value[] = {107.076845394, 107.076845394, 107.076845394};
	struct skep_interval r = skep_interval_of_one_more(value, 3), none = skep_interval_of_one_more(value, 1);
	assert_true(r.low <= r.mean && r.mean <= r.high && near(r.low, r.high, 1e-9));
	assert_true(none.count == 1);
}

static void too_few_values(void **state)
{
	(void)state;
	const double value[] = {NAN, 3};
	struct skep_interval none = skep_interval_of(value, 1), one = skep_interval_of(value, 2);
	assert_true(none.count == 0 && isnan(none.mean) && isnan(none.low));
	assert_true(one.count == 1 && one.mean == 3.0 && isnan(one.low) && isnan(one.high));
}

/* What both have from their seed falls out: values that differ by 100 from pair to pair, and by 2 and a little within one. */
static void pairs_are_compared_as_pairs(void **state)
{
	(void)state;
	const double a[] = {102, 203.5, 301, 402.5, 500}, b[] = {100, 201, 299.5, 400, NAN};
	struct skep_interval pairs = skep_interval_difference(a, b, 5), plain = skep_interval_of(a, 4);
	assert_int_equal(pairs.count, 4);
	assert_true(near(pairs.mean, 2.125, 1e-12) && pairs.high - pairs.low < 1.6);
	assert_true(plain.high - plain.low > 300);
}

static void a_ratio_and_its_inverse(void **state)
{
	(void)state;
	const double a[] = {2, 8, 5, 0, -1}, b[] = {1, 2, 1.25, 1, 1}; /* 2, 4, 4; no logarithm of the others */
	struct skep_interval r = skep_interval_ratio(a, b, 5), inverse = skep_interval_ratio(b, a, 5);
	assert_int_equal(r.count, 3);
	assert_true(near(r.mean, cbrt(32), 1e-12) && r.low > 0 && r.low < 2 && r.high > 4);
	assert_true(near(inverse.mean, 1 / r.mean, 1e-12) && near(inverse.low, 1 / r.high, 1e-12));
	assert_true(near(inverse.high, 1 / r.low, 1e-9));
}

static double normal(uint64_t *state)
{
	double u = (double)((skep_random_next(state) >> 11) + 1) * 0x1p-53,
	       v = (double)(skep_random_next(state) >> 11) * 0x1p-53;
	return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

/* Of 4000 samples of six, 3800 intervals should have the true mean, with a deviation of 14; those of a normal law (1.96 in
 * place of 2.571) would have it 3570 times. */
static void intervals_hold_the_mean_as_often_as_they_say(void **state)
{
	(void)state;
	uint64_t random = 1;
	uint32_t held = 0;
	for (uint32_t sample = 0; sample < 4000; sample++) {
		double value[6];
		for (uint32_t i = 0; i < 6; i++)
			value[i] = 10 + 3 * normal(&random);
		struct skep_interval r = skep_interval_of(value, 6);
		held += r.low <= 10 && 10 <= r.high;
	}
	assert_in_range(held, 3744, 3856);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantiles_are_those_of_the_tables),
		cmocka_unit_test(an_interval_by_hand),
		cmocka_unit_test(one_more_by_hand),
		cmocka_unit_test(one_more_of_the_same),
		cmocka_unit_test(too_few_values),
		cmocka_unit_test(pairs_are_compared_as_pairs),
		cmocka_unit_test(a_ratio_and_its_inverse),
		cmocka_unit_test(intervals_hold_the_mean_as_often_as_they_say),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
