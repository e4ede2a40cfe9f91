/* SPDX-License-Identifier: Apache-2.0
 *
 * test_clock.c - dates as texts and back.
 */
#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)

static void dates_are_read(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint64_t date_ns;
		size_t length;
	} cases[] = {
		{"1970-01-01T00:00:00Z", 0, 20},
		{"2000-03-01T00:00:00Z", 951868800 * SECOND, 20},
		{"2020-02-29T23:59:59.5Z and more", 1583020799 * SECOND + 500000000, 22},
		{"2020-03-15T10:07:33.000Z", 1584266853 * SECOND, 24},
		{"2016-12-31T23:59:60Z", 1483228800 * SECOND, 20}, /* a leap second is the first one of the next day */
		{"2020-01-01T00:00:00.0000000019Z", 1577836800 * SECOND + 1, 31},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		uint64_t date_ns = 7;
		assert_int_equal(skep_date_parse(cases[i].text, &date_ns), cases[i].length);
		assert_true(date_ns == cases[i].date_ns);
	}
}

static void what_is_no_date_is_refused(void **state)
{
	(void)state;
	static const char *const cases[] = {"", "2020", "2020-03-15", "2020-03-15T10:07:33", "2020-03-15 10:07:33Z",
		"2020-13-15T10:07:33Z", "2020-00-15T10:07:33Z", "2020-03-32T10:07:33Z", "2020-03-15T24:07:33Z",
		"2020-03-15T10:60:33Z", "2020-03-15T10:07:61Z", "1969-12-31T23:59:59Z", "2201-01-01T00:00:00Z",
		"2020- 3-15T10:07:33Z", "2020-3-15T10:07:33Z", "+020-03-15T10:07:33Z", "2020-03-15T10:07:33+01:00",
		"a020-03-15T10:07:33Z"};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		uint64_t date_ns;
		assert_int_equal(skep_date_parse(cases[i], &date_ns), 0);
	}
}

static void dates_are_written(void **state)
{
	(void)state;
	char text[32], small[4] = "abc";
	skep_date_text(1584266853 * SECOND + 999999999, "%Y%m%d-%H%M%S", text, sizeof text);
	assert_string_equal(text, "20200315-100733");
	skep_date_text(0, "%Y-%m-%d", small, sizeof small);
	assert_string_equal(small, "");
	assert_true(skep_date_now() > 1584266853 * SECOND);
}

static void the_monotonic_clock_rises(void **state)
{
	(void)state;
	uint64_t before_ns = skep_monotonic_ns();
	double between_s = skep_monotonic_s();
	uint64_t after_ns = skep_monotonic_ns();
	assert_true(before_ns <= after_ns);
	assert_true(between_s >= 1e-9 * (double)before_ns - 1e-6 && between_s <= 1e-9 * (double)after_ns + 1e-6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dates_are_read),
		cmocka_unit_test(what_is_no_date_is_refused),
		cmocka_unit_test(dates_are_written),
		cmocka_unit_test(the_monotonic_clock_rises),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
