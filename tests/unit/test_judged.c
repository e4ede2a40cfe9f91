/* SPDX-License-Identifier: Apache-2.0
 *
 * test_judged.c - the directory's part of a validation, event by event: losses that are too large to be added up.
 */
#include "directory_fixture.h"

static void judge(struct fixture *f, uint32_t owner, uint32_t number, int64_t loss_nano)
{
	struct skep_message message = from_worker(SKEP_MESSAGE_FINISHED, owner, 1);
	message.microbatch = skep_round_capacity(&f->plan) + number;
	message.u.finished.ok = true;
	message.u.finished.loss_nano = loss_nano;
	fixture_deliver(f, message);
}

/* Their sum, and so their mean, stays the largest number that there is, whatever comes on top. */
static void test_largest_losses(void **state)
{
	(void)state;
	for (int64_t last = 0; last < 3; last++) {
		struct fixture f;
		fixture_init(&f, 4, 2, DIRECTORY);
		f.plan.validation.every = 1;
		f.plan.validation.microbatches = 2;
		fixture_make(&f, DIRECTORY);
		fixture_start(&f);
		for (uint32_t i = 0; i < 4; i++)
			finish(&f, i / 2 * 2, i, true);
		for (uint32_t worker = 0; worker < 4; worker++)
			tally(&f, worker, 1, worker < 2 ? 3 : 12);
		assert_non_null(fixture_noted(&f, SKEP_NOTE_VALIDATING));
		uint32_t owner[2];
		for (uint32_t i = 0; i < 2; i++)
			owner[i] = fixture_find(&f, SKEP_ACTION_SEND, SKEP_MESSAGE_GRANT, i)->u.send.to.index;
		judge(&f, owner[0], 0, INT64_MAX);
		judge(&f, owner[1], 1, last);
		assert_true(fixture_noted(&f, SKEP_NOTE_VALIDATED)->loss_nano == INT64_MAX);
		fixture_finish(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_largest_losses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
