/* SPDX-License-Identifier: Apache-2.0
 *
 * test_directory_limits.c - where the directory stops: a step grants no more than its actions have room for, what is not finite
 * ends the run at once, and of what is lost members are not told beforehand what their sums will have.
 */
#include "directory_fixture.h"

enum { MANY = 4096 };

/* What an owner had is granted to the other one when it is fenced, one by one; what is left when microbatches come back. */
static void test_a_step_refills_no_more_than_it_has_room_for(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f, 4, 2, DIRECTORY);
	f.plan.in_flight = 2 * MANY;
	f.plan.microbatches = MANY;
	fixture_make(&f, DIRECTORY);
	fixture_start(&f);
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_GRANT), 2);
	suspect(&f, 2);
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_GRANT), 1024);
	finish(&f, 0, 0, true);
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_GRANT), MANY / 2 - 1024);
	fixture_finish(&f);
}

/* It says where, and of no stage that it lacks, also where it waits for one. */
static void test_what_is_not_finite_ends_the_run(void **state)
{
	(void)state;
	for (uint32_t empty = 0; empty < 2; empty++) {
		struct fixture f;
		fixture_init(&f, 4, 2, DIRECTORY);
		f.plan.liveness.wait_for_join_ns = 100 * SECOND_NS;
		fixture_make(&f, DIRECTORY);
		fixture_start(&f);
		for (uint32_t worker = 1; empty && worker < 4; worker += 2)
			suspect(&f, worker);
		struct skep_message message = from_worker(SKEP_MESSAGE_FAULT, 2, 0);
		message.microbatch = 3;
		message.u.fault = (struct skep_fault_at){.kind = SKEP_FAULT_NONE + 1, .layer = 5};
		fixture_deliver(&f, message);
		const struct skep_note *note = fixture_noted(&f, SKEP_NOTE_DIVERGED);
		assert_non_null(note);
		assert_true(note->microbatch == 3 && note->peer.index == 2 && note->fault.layer == 5);
		note = fixture_noted(&f, SKEP_NOTE_STOPPED);
		assert_true(note->stage == (uint16_t)SKEP_NO_STAGE && !note->ok);
		assert_int_equal(skep_node_outcome(f.node), SKEP_FAILED);
		assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_STOP), 4);
		fixture_finish(&f);
	}
}

/* Of a round of which nothing is lost it is known beforehand what each stage will have counted. */
static void test_members_are_told_what_their_sum_will_have(void **state)
{
	(void)state;
	struct fixture f;
	for (uint32_t way = 0; way < 5; way++) { /* none; not together; clipped; one is given up; a worker is lost */
		fixture_init(&f, 4, 2, DIRECTORY);
		f.plan.together = way != 1;
		f.plan.clip = way == 2;
		fixture_make(&f, DIRECTORY);
		fixture_start(&f);
		if (way == 3) {
			finish(&f, 0, 1, false);
			finish(&f, 0, 4, true);
		}
		if (way == 4)
			suspect(&f, 3);
		for (uint32_t i = 0; i < 4; i++)
			if (way != 3 || i != 1)
				finish(&f, i < 2 ? 0 : 2, i, true);
		const struct skep_message *reduce = fixture_sent(&f, SKEP_MESSAGE_REDUCE);
		assert_int_equal(reduce->u.reduce.expected, way == 0 ? 4 : 0);
		suspect(&f, 1); /* the sum without it has fewer */
		if (way == 0)
			assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_REDUCE)->u.reduce.expected, 0);
		fixture_finish(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_step_refills_no_more_than_it_has_room_for),
		cmocka_unit_test(test_what_is_not_finite_ends_the_run),
		cmocka_unit_test(test_members_are_told_what_their_sum_will_have),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
