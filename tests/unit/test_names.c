/* SPDX-License-Identifier: Apache-2.0
 *
 * test_names.c - every kind of operation, message, note, collective, lane and traffic has a name of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/names.h"
#include "core/record.h"

static void expect_names(const char *(*name_of)(uint8_t), uint8_t first, uint8_t end)
{
	for (uint8_t kind = first; kind < end; kind++) {
		assert_string_not_equal(name_of(kind), "?");
		for (uint8_t other = first; other < kind; other++)
			assert_string_not_equal(name_of(kind), name_of(other));
	}
	if (first > 0)
		assert_string_equal(name_of(0), "?");
	assert_string_equal(name_of(end), "?");
	assert_string_equal(name_of(UINT8_MAX), "?");
}

static void test_each_kind_has_its_name(void **state)
{
	(void)state;
	expect_names(skep_op_name, 1, SKEP_OP_KINDS);
	expect_names(skep_message_name, 1, SKEP_MESSAGE_KINDS);
	expect_names(skep_note_name, 1, SKEP_NOTE_KINDS);
	expect_names(skep_collective_name, 0, SKEP_COLLECTIVE_KINDS);
	expect_names(skep_lane_name, 0, SKEP_LANES);
	expect_names(skep_traffic_name, 0, SKEP_TRAFFICS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_kind_has_its_name)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
