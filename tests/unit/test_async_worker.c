/* SPDX-License-Identifier: Apache-2.0
 *
 * test_async_worker.c - when a worker keeps its state, event by event: without waiting, where it is told while an outer step runs
 * (async_worker.c), and after a step that failed, which changes nothing (reduce.c). Workers 0 and 1 in two stages; worker 0 is
 * under test.
 */
#include "machine_fixture.h"

#define DIRECTORY 2

static const struct skep_buf none = {0, 0};

static void begin(struct fixture *f, bool async)
{
	fixture_init(f, 2, 2, 0);
	f->plan.async.on = f->plan.delayed = async;
	f->plan.inner.steps = async ? 2 : 0;
	f->plan.rounds = 8;
	f->plan.checkpoint_every = 1;
	f->plan.liveness.wait_for_join_ns = 60 * SECOND_NS;
	fixture_make(f, 0);
	fixture_start(f);
}

/* To the STEP of this version, which runs from then on. */
static struct skep_op step_of(struct fixture *f, uint32_t version, bool keeps)
{
	struct skep_message message = fixture_message(SKEP_MESSAGE_REDUCE, DIRECTORY, 0, version);
	message.attempt = 1;
	message.u.reduce.size = 1;
	fixture_deliver(f, message);
	assert_non_null(fixture_sent(f, SKEP_MESSAGE_TALLY));
	message = fixture_message(SKEP_MESSAGE_COMMIT, DIRECTORY, 0, version);
	message.attempt = 1;
	message.u.commit.checkpoint = keeps;
	fixture_deliver(f, message);
	assert_non_null(fixture_ran(f, SKEP_OP_STEP));
	return *fixture_ran(f, SKEP_OP_STEP);
}

static void keep(struct fixture *f, uint32_t round, uint32_t updates)
{
	struct skep_message message = fixture_message(SKEP_MESSAGE_CHECKPOINT, DIRECTORY, 0, round);
	message.update = updates;
	fixture_deliver(f, message);
}

static void done(struct fixture *f, struct skep_op op, enum skep_fault fault)
{
	struct skep_event event = {.kind = SKEP_EVENT_OP_DONE, .fault = (uint8_t)fault};
	event.u.done.op = op;
	fixture_event(f, event);
}

static void test_told_during_a_step_it_keeps_after_it(void **state)
{
	(void)state;
	for (uint32_t updates = 0; updates < 3; updates++) { /* so many that are final; two: after the next step */
		struct fixture f;
		begin(&f, true);
		struct skep_op op = step_of(&f, 0, false);
		keep(&f, 5, updates);
		assert_null(fixture_ran(&f, SKEP_OP_CHECKPOINT));
		done(&f, op, SKEP_FAULT_NONE);
		assert_int_equal(fixture_ran(&f, SKEP_OP_CHECKPOINT) != NULL, updates < 2);
		if (updates == 2)
			done(&f, step_of(&f, 1, false), SKEP_FAULT_NONE);
		const struct skep_op *kept = fixture_ran(&f, SKEP_OP_CHECKPOINT);
		assert_true(kept && kept->round == 5 && kept->version == (updates < 2 ? 1 : 2));
		fixture_done(&f, *kept, none, none);
		assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_CHECKPOINTED)->round, 5);
		done(&f, step_of(&f, updates < 2 ? 1 : 2, false), SKEP_FAULT_NONE);
		assert_null(fixture_ran(&f, SKEP_OP_CHECKPOINT)); /* once */
		fixture_finish(&f);
	}
}

static void test_a_step_that_failed_is_not_kept(void **state)
{
	(void)state;
	struct fixture f;
	for (uint32_t updates = 0; updates < 2; updates++) {
		begin(&f, true);
		struct skep_op op = step_of(&f, 0, false);
		keep(&f, 5, updates);
		done(&f, op, SKEP_FAULT_GRADIENT);
		assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_FAULT)->u.fault.kind, SKEP_FAULT_GRADIENT);
		assert_null(fixture_ran(&f, SKEP_OP_CHECKPOINT));
		fixture_finish(&f);
	}
	for (uint32_t fails = 0; fails < 2; fails++) {
		begin(&f, false);
		done(&f, step_of(&f, 0, true), fails ? SKEP_FAULT_GRADIENT : SKEP_FAULT_NONE);
		assert_int_equal(fixture_ran(&f, SKEP_OP_CHECKPOINT) == NULL, fails);
		fixture_finish(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_told_during_a_step_it_keeps_after_it),
		cmocka_unit_test(test_a_step_that_failed_is_not_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
