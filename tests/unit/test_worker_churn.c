/* SPDX-License-Identifier: Apache-2.0
 *
 * test_worker_churn.c - one worker's machine when workers leave and move, and what it reports for that: member.c.
 */
#include "worker_fixture.h"

static void notice(struct fixture *f)
{
	struct skep_event event = {.kind = SKEP_EVENT_PREEMPT_NOTICE, .u.leave_at = 60 * SECOND_NS};
	fixture_event(f, event);
}

static uint32_t count_sent(const struct fixture *f, enum skep_message_kind kind)
{
	uint32_t n = 0;
	while (fixture_find(f, SKEP_ACTION_SEND, kind, n))
		n++;
	return n;
}

static struct skep_message grant_of(uint32_t first, uint32_t count)
{
	struct skep_message grant = fixture_message(SKEP_MESSAGE_GRANT, DIRECTORY, 0, 0);
	grant.microbatch = first;
	grant.u.grant.count = count;
	grant.u.grant.in_flight = 2; /* as the fixture has it */
	return grant;
}

/* Neither of a worker, in a stage or not, nor of the directory. */
static void test_nothing_is_due_before_the_start(void **state)
{
	(void)state;
	for (uint32_t index = 0; index <= DIRECTORY; index++) {
		struct fixture f;
		fixture_init(&f, 6, 3, index);
		assert_true(skep_node_deadline(f.node) == SKEP_TIME_NEVER);
		fixture_start(&f);
		assert_true(skep_node_deadline(f.node) < SKEP_TIME_NEVER);
		fixture_finish(&f);
	}
}

static void test_notice_hands_back_what_is_not_begun(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 0);
	fixture_deliver(&f, grant_of(0, 3));
	struct skep_op op = *fixture_ran(&f, SKEP_OP_FORWARD);
	notice(&f);
	assert_int_equal(f.out.item[0].u.send.kind, SKEP_MESSAGE_LEAVE); /* before what comes back is granted again */
	assert_int_equal(count_sent(&f, SKEP_MESSAGE_FINISHED), 2);
	for (uint32_t i = 0; i < 2; i++) {
		const struct skep_message *back = &fixture_find(&f, SKEP_ACTION_SEND, SKEP_MESSAGE_FINISHED, i)->u.send;
		assert_int_equal(back->microbatch, i + 1);
		assert_false(back->u.finished.ok);
	}
	notice(&f); /* told twice */
	assert_int_equal(f.out.count, 0);
	fixture_done(&f, op, fixture_buf(&f), fixture_buf(&f));
	assert_non_null(fixture_sent(&f, SKEP_MESSAGE_FORWARD)); /* what it has begun goes on */
	assert_null(fixture_find(&f, SKEP_ACTION_RUN, 0, 0));
	fixture_deliver(&f, grant_of(3, 1)); /* was under way, or no other worker is there */
	assert_int_equal(fixture_ran(&f, SKEP_OP_FORWARD)->microbatch, 3);
	assert_null(fixture_sent(&f, SKEP_MESSAGE_FINISHED));
	fixture_finish(&f);
}

static void test_leaver_stops_when_it_is_let_go(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 1);
	notice(&f);
	assert_int_equal(skep_node_outcome(f.node), SKEP_RUNNING);
	bring_through(&f, 0, 3); /* it works on until then */
	fixture_deliver(&f, peer_news(1, 1, 1, false));
	assert_null(fixture_sent(&f, SKEP_MESSAGE_JOIN));
	assert_non_null(fixture_find(&f, SKEP_ACTION_RELEASE, 0, 1));
	assert_int_equal(skep_node_outcome(f.node), SKEP_DONE);
	assert_true(skep_node_deadline(f.node) == SKEP_TIME_NEVER);
	fixture_finish(&f);
}

static void test_leaver_without_a_stage_stops_at_once(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 1);
	fixture_deliver(&f, peer_news(1, 1, 1, false));
	assert_non_null(fixture_sent(&f, SKEP_MESSAGE_JOIN));
	notice(&f);
	assert_int_equal(skep_node_outcome(f.node), SKEP_DONE);
	fixture_finish(&f);
}

static struct skep_message assignment(uint32_t epoch, uint16_t stage)
{
	struct skep_message assign = fixture_message(SKEP_MESSAGE_ASSIGN, DIRECTORY, 1, 0);
	assign.to.epoch = epoch;
	assign.stage = stage;
	return assign;
}

static void test_mover_leaves_all_behind(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 1);
	struct skep_message sent = bring_through(&f, 0, 3), back = answer(&f, sent, SKEP_MESSAGE_BACKWARD);
	fixture_deliver(&f, assignment(2, 2));
	assert_non_null(fixture_find(&f, SKEP_ACTION_RELEASE, 0, 1)); /* input and stash */
	assert_int_equal(fixture_ran(&f, SKEP_OP_ENTER)->stage, 2);
	assert_int_equal(skep_node_stage(f.node), 2);
	assert_int_equal(skep_node_epoch(f.node), 2);
	fixture_deliver(&f, back); /* to its old life */
	assert_true(fixture_released(&f, back.payload));
	fixture_deliver(&f, peer_news(1, 1, 1, false)); /* its old life has ended, it knows */
	assert_int_equal(f.out.count, 0);
	fixture_finish(&f);
}

static void test_leaver_that_is_moved_asks_again(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 1);
	notice(&f);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_LEAVE)->from.epoch, 1);
	fixture_deliver(&f, assignment(2, 2));
	assert_null(fixture_ran(&f, SKEP_OP_ENTER));
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_LEAVE)->from.epoch, 2);
	fixture_finish(&f);
}

static void test_who_leaves_is_chosen_last(void **state)
{
	(void)state;
	for (enum skep_wiring wiring = SKEP_WIRING_UNIFORM; wiring <= SKEP_WIRING_LATENCY; wiring++) {
		struct fixture f;
		begin(&f, 1);
		f.plan.wiring = wiring;
		struct skep_message leaves = peer_news(5, 1, 2, true);
		leaves.u.peer.leaving = true;
		fixture_deliver(&f, leaves);
		for (uint32_t i = 0; i < 3; i++)
			assert_int_equal(bring_through(&f, 0, i).to.index, 2);
		fixture_deliver(&f, peer_news(5, 1, 2, true)); /* old news */
		assert_int_equal(bring_through(&f, 0, 3).to.index, 2);
		fixture_deliver(&f, peer_news(2, 1, 2, false));
		assert_int_equal(bring_through(&f, 0, 4).to.index, 5); /* none stays */
		fixture_deliver(&f, peer_news(2, 2, 2, true));
		assert_int_equal(bring_through(&f, 0, 5).to.index, 2);
		fixture_finish(&f);
	}
}

static void begin_reporting(struct fixture *f)
{
	fixture_init(f, 6, 3, 1);
	f->plan.rebalance.period_ns = SECOND_NS / 2;
	fixture_start(f);
}

/* One on the device, two wait for half of the time, one for the other half. */
static void test_load_is_the_mean_queue(void **state)
{
	(void)state;
	struct fixture f;
	begin_reporting(&f);
	struct skep_message forward = fixture_message(SKEP_MESSAGE_FORWARD, 0, 1, 0);
	for (uint32_t i = 0; i < 3; i++) {
		forward.microbatch = i;
		forward.payload = fixture_buf(&f);
		fixture_deliver(&f, forward);
	}
	f.now = SECOND_NS / 4;
	struct skep_op op = {.id = 1, .kind = SKEP_OP_FORWARD, .stage = 1, .in = forward.payload};
	fixture_done(&f, op, fixture_buf(&f), fixture_buf(&f));
	fixture_timer(&f, skep_node_deadline(f.node));
	assert_int_equal(f.now, SECOND_NS / 2);
	assert_in_range(fixture_sent(&f, SKEP_MESSAGE_LOAD)->u.load.queue_milli, 1495, 1500);
	fixture_timer(&f, skep_node_deadline(f.node)); /* it starts anew */
	assert_in_range(fixture_sent(&f, SKEP_MESSAGE_LOAD)->u.load.queue_milli, 995, 1000);
	fixture_finish(&f);
}

/* Of microseconds that have begun, so that there is one: two wait for nine, of ten. */
static void test_load_of_a_short_while(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f, 6, 3, 1);
	f.plan.rebalance.period_ns = 9000;
	fixture_start(&f);
	struct skep_message forward = fixture_message(SKEP_MESSAGE_FORWARD, 0, 1, 0);
	for (uint32_t i = 0; i < 3; i++) {
		forward.microbatch = i;
		forward.payload = fixture_buf(&f);
		fixture_deliver(&f, forward);
	}
	fixture_timer(&f, skep_node_deadline(f.node));
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_LOAD)->u.load.queue_milli, 1800);
	fixture_finish(&f);
}

static void done_after(struct fixture *f, struct skep_op op, skep_time elapsed_ns)
{
	struct skep_event event = {.kind = SKEP_EVENT_OP_DONE};
	event.u.done.op = op;
	event.u.done.out = fixture_buf(f);
	event.u.done.stash = op.kind == SKEP_OP_FORWARD ? fixture_buf(f) : none;
	event.u.done.elapsed_ns = elapsed_ns;
	fixture_event(f, event);
}

/* Two microbatches there and back, of another only the way there: it is part of what the two have cost. */
static void test_load_tells_the_time_for_a_microbatch(void **state)
{
	(void)state;
	struct fixture f;
	begin_reporting(&f);
	struct skep_message sent[3], forward = fixture_message(SKEP_MESSAGE_FORWARD, 0, 1, 0);
	for (uint32_t i = 0; i < 3; i++) {
		forward.microbatch = i;
		forward.payload = fixture_buf(&f);
		fixture_deliver(&f, forward);
		done_after(&f, *fixture_ran(&f, SKEP_OP_FORWARD), 1000);
		sent[i] = *fixture_sent(&f, SKEP_MESSAGE_FORWARD);
	}
	fixture_timer(&f, skep_node_deadline(f.node));
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_LOAD)->u.load.needed_ns, 0); /* none has come back */
	for (uint32_t i = 0; i < 2; i++) {
		fixture_deliver(&f, answer(&f, sent[i], SKEP_MESSAGE_BACKWARD));
		done_after(&f, *fixture_ran(&f, SKEP_OP_BACKWARD), 2500 - 1000 * i);
	}
	fixture_timer(&f, skep_node_deadline(f.node));
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_LOAD)->u.load.needed_ns, 3500);
	fixture_timer(&f, skep_node_deadline(f.node)); /* it starts anew */
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_LOAD)->u.load.needed_ns, 0);
	fixture_finish(&f);
}

static void test_a_reduction_is_no_time_to_measure(void **state)
{
	(void)state;
	struct fixture f;
	begin_reporting(&f);
	fixture_deliver(&f, reduce(0, 1, 0, 2, 4));
	fixture_timer(&f, skep_node_deadline(f.node));
	assert_null(fixture_sent(&f, SKEP_MESSAGE_LOAD));
	fixture_finish(&f);
}

static void test_who_is_out_asks_at_each_heartbeat(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 1);
	fixture_deliver(&f, peer_news(1, 1, 1, false));
	struct skep_message join = *fixture_sent(&f, SKEP_MESSAGE_JOIN);
	for (uint32_t i = 0; i < 3; i++) {
		fixture_timer(&f, skep_node_deadline(f.node));
		const struct skep_message *again = fixture_sent(&f, SKEP_MESSAGE_JOIN);
		assert_true(again && again->u.join.started_ns == join.u.join.started_ns && again->from.epoch == 1);
		assert_null(fixture_sent(&f, SKEP_MESSAGE_HEARTBEAT));
	}
	fixture_deliver(&f, assignment(2, 2));
	fixture_timer(&f, skep_node_deadline(f.node));
	assert_null(fixture_sent(&f, SKEP_MESSAGE_JOIN));
	fixture_finish(&f);
}

static void test_keeps_what_it_holds_without_a_directory(void **state)
{
	(void)state;
	struct fixture f;
	const struct skep_event lost = {.kind = SKEP_EVENT_SUSPECT, .u.peer = {DIRECTORY, 1}};
	for (uint32_t steps = 0; steps < 2; steps++) {
		fixture_init(&f, 6, 3, 1);
		f.plan.checkpoint_every = 100;
		fixture_make(&f, 1);
		fixture_start(&f);
		struct skep_op op = {0};
		if (steps >
			0) { /* what it holds is newer than what the run began with, and a step is still being made */
			fixture_deliver(&f, reduce(0, 1, 0, 1, 1));
			struct skep_message commit = fixture_message(SKEP_MESSAGE_COMMIT, DIRECTORY, 1, 0);
			commit.attempt = 1;
			fixture_deliver(&f, commit);
			op = *fixture_ran(&f, SKEP_OP_STEP);
		}
		fixture_event(&f, lost);
		assert_null(fixture_ran(&f, SKEP_OP_CHECKPOINT));
		if (steps > 0) {
			fixture_done(&f, op, none, none);
			assert_int_equal(fixture_ran(&f, SKEP_OP_CHECKPOINT)->round, 1);
			fixture_done(&f, *fixture_ran(&f, SKEP_OP_CHECKPOINT), none, none);
			assert_int_equal(f.out.count, 1);      /* word of it, which no machine hears */
			assert_false(skep_node_keeps(f.node)); /* once */
		}
		fixture_finish(&f);
	}
}

static void step_once(struct fixture *f)
{
	struct skep_message commit = fixture_message(SKEP_MESSAGE_COMMIT, DIRECTORY, 1, 0);
	commit.attempt = 1;
	fixture_deliver(f, reduce(0, 1, 0, 1, 1));
	fixture_deliver(f, commit);
	fixture_done(f, *fixture_ran(f, SKEP_OP_STEP), none, none);
}

/* Its sum is there, and COMMIT is not. It may be on its way from a directory that is dead, so that other stages have made the
 * step: what it holds is kept, and then what the step makes, if it is known what the sum is to be divided by. */
static void test_presumes_the_step_that_it_waits_for(void **state)
{
	(void)state;
	struct fixture f;
	const struct skep_event lost = {.kind = SKEP_EVENT_SUSPECT, .u.peer = {DIRECTORY, 1}};
	for (uint32_t way = 0; way < 4; way++) { /* it does; is not told; the sum is not there; the step fails */
		fixture_init(&f, 6, 3, 1);
		f.plan.checkpoint_every = 100;
		f.plan.together = true;
		fixture_make(&f, 1);
		fixture_start(&f);
		step_once(&f);
		struct skep_message last = reduce(1, 1, 0, way == 2 ? 2 : 1, way == 2 ? 4 : 1);
		last.u.reduce.expected = way == 1 ? 0 : 3;
		fixture_deliver(&f, last);
		fixture_event(&f, lost);
		assert_true(skep_node_keeps(f.node));
		assert_int_equal(fixture_ran(&f, SKEP_OP_CHECKPOINT)->round, 1);
		assert_false(fixture_ran(&f, SKEP_OP_CHECKPOINT)->presumed);
		fixture_done(&f, *fixture_ran(&f, SKEP_OP_CHECKPOINT), none, none);
		const struct skep_op *presumed = fixture_ran(&f, SKEP_OP_STEP);
		assert_true((presumed != NULL) == (way % 3 == 0) && skep_node_keeps(f.node) == (way % 3 == 0));
		if (presumed != NULL) {
			assert_true(presumed->round == 1 && presumed->microbatches == 3);
			struct skep_event made = {.kind = SKEP_EVENT_OP_DONE, .u.done.op = *presumed};
			made.fault = way == 3 ? SKEP_FAULT_GRADIENT : SKEP_FAULT_NONE;
			fixture_event(&f, made);
			const struct skep_op *kept = fixture_ran(&f, SKEP_OP_CHECKPOINT);
			assert_true((kept != NULL) == (way == 0));
			if (kept != NULL) {
				assert_true(kept->round == 2 && kept->presumed);
				fixture_done(&f, *kept, none, none);
			}
		}
		assert_false(skep_node_keeps(f.node));
		assert_null(fixture_ran(&f, SKEP_OP_STEP));
		fixture_finish(&f);
	}
}

/* What the run began with is kept already: what the first step makes is all that it keeps, and it says that this is presumed. */
static void test_presumes_the_first_step(void **state)
{
	(void)state;
	struct fixture f;
	const struct skep_event lost = {.kind = SKEP_EVENT_SUSPECT, .u.peer = {DIRECTORY, 1}};
	fixture_init(&f, 6, 3, 1);
	f.plan.checkpoint_every = 100;
	f.plan.together = true;
	fixture_make(&f, 1);
	fixture_start(&f);
	struct skep_message first = reduce(0, 1, 0, 1, 1);
	first.u.reduce.expected = 3;
	fixture_deliver(&f, first);
	fixture_event(&f, lost);
	assert_null(fixture_ran(&f, SKEP_OP_CHECKPOINT));
	assert_true(skep_node_keeps(f.node));
	fixture_done(&f, *fixture_ran(&f, SKEP_OP_STEP), none, none);
	const struct skep_op kept = *fixture_ran(&f, SKEP_OP_CHECKPOINT);
	assert_true(kept.round == 1 && kept.presumed);
	fixture_done(&f, kept, none, none);
	assert_false(skep_node_keeps(f.node));
	fixture_finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_due_before_the_start),
		cmocka_unit_test(test_notice_hands_back_what_is_not_begun),
		cmocka_unit_test(test_leaver_stops_when_it_is_let_go),
		cmocka_unit_test(test_leaver_without_a_stage_stops_at_once),
		cmocka_unit_test(test_mover_leaves_all_behind),
		cmocka_unit_test(test_leaver_that_is_moved_asks_again),
		cmocka_unit_test(test_who_leaves_is_chosen_last),
		cmocka_unit_test(test_load_is_the_mean_queue),
		cmocka_unit_test(test_load_of_a_short_while),
		cmocka_unit_test(test_load_tells_the_time_for_a_microbatch),
		cmocka_unit_test(test_a_reduction_is_no_time_to_measure),
		cmocka_unit_test(test_who_is_out_asks_at_each_heartbeat),
		cmocka_unit_test(test_keeps_what_it_holds_without_a_directory),
		cmocka_unit_test(test_presumes_the_step_that_it_waits_for),
		cmocka_unit_test(test_presumes_the_first_step),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
