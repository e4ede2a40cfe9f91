/* SPDX-License-Identifier: Apache-2.0
 *
 * test_directory_join.c - the directory's machine when workers join, and when a stage has lost its last one: restore.c. Four
 * workers in two stages, as in test_directory.c.
 */
#include "directory_fixture.h"

static void test_who_enters_in_a_reduction_is_a_member_of_the_next(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	suspect(&f, 3);
	join(&f, 3, 1, 0);
	finish(&f, 0, 0, true);
	finish(&f, 0, 1, true);
	finish(&f, 2, 2, true);
	finish(&f, 2, 3, true);
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_REDUCE), 3);
	entered(&f, 3, 2);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_ADMIT)->round, 1);
	suspect(&f, 2); /* the sum begins anew, without the newcomer */
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_REDUCE), 1);
	tally(&f, 0, 2, 3);
	tally(&f, 1, 1, 15);
	assert_non_null(fixture_noted(&f, SKEP_NOTE_ROUND_CLOSED));
	for (uint32_t i = 0; i < 2; i++) {
		struct skep_message back = from_worker(SKEP_MESSAGE_FINISHED, 0, 1);
		back.microbatch = i;
		back.u.finished.ok = true;
		fixture_deliver(&f, back);
	}
	for (uint32_t i = 2; i < 4; i++) {
		struct skep_message back = from_worker(SKEP_MESSAGE_FINISHED, 0, 1);
		back.microbatch = i;
		back.u.finished.ok = true;
		fixture_deliver(&f, back);
	}
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_REDUCE), 3); /* it still downloads */
	fixture_finish(&f);
}

static void test_a_newcomer_hears_of_another_source(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f, 6, 2, 6);
	fixture_start(&f);
	struct skep_event dead = {.kind = SKEP_EVENT_SUSPECT, .u.peer = {5, 1}};
	fixture_event(&f, dead);
	struct skep_message message = fixture_message(SKEP_MESSAGE_JOIN, 5, 6, 0);
	fixture_deliver(&f, message);
	message = fixture_message(SKEP_MESSAGE_ENTERED, 5, 6, 0);
	message.from.epoch = 2;
	fixture_deliver(&f, message);
	struct skep_message admit = *fixture_sent(&f, SKEP_MESSAGE_ADMIT);
	dead.u.peer = admit.u.admit.source;
	fixture_event(&f, dead);
	const struct skep_message *again = fixture_sent(&f, SKEP_MESSAGE_ADMIT);
	assert_int_equal(again->attempt, admit.attempt + 1);
	assert_int_equal(again->u.admit.source.index, 4 - admit.u.admit.source.index); /* 1 and 3 serve the stage */
	dead.u.peer = (struct skep_peer){2, 1};                                        /* of another stage */
	fixture_event(&f, dead);
	assert_null(fixture_sent(&f, SKEP_MESSAGE_ADMIT));
	fixture_finish(&f);
}

/* With the same load everywhere, those that are on their way decide. */
static void test_those_that_join_at_once_are_spread(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f, 8, 2, 8);
	f.plan.rebalance.period_ns = 2 * SECOND_NS;
	fixture_start(&f);
	for (uint32_t i = 0; i < 4; i++) {
		struct skep_message load = fixture_message(SKEP_MESSAGE_LOAD, i, 8, 0);
		load.u.load.needed_ns = i % 2 == 0 ? 3000 : 2500;
		fixture_deliver(&f, load);
	}
	uint32_t stage[2] = {0};
	for (uint32_t i = 4; i < 8; i++) {
		struct skep_event dead = {.kind = SKEP_EVENT_SUSPECT, .u.peer = {i, 1}};
		fixture_event(&f, dead);
	}
	for (uint32_t i = 4; i < 8; i++) {
		fixture_deliver(&f, fixture_message(SKEP_MESSAGE_JOIN, i, 8, 0));
		stage[fixture_sent(&f, SKEP_MESSAGE_ASSIGN)->stage]++;
	}
	assert_int_equal(stage[0], 2);
	assert_int_equal(stage[1], 2);
	fixture_finish(&f);
}

/* Without rebalancing the stage with the fewest: who will go does not count. */
static void test_who_gave_notice_is_as_good_as_gone(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	suspect(&f, 2);
	fixture_deliver(&f, from_worker(SKEP_MESSAGE_LEAVE, 1, 0));
	fixture_deliver(&f, from_worker(SKEP_MESSAGE_LEAVE, 3, 0));
	join(&f, 2, 1, 0);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_ASSIGN)->stage, 1); /* not 0, which has one that stays */
	fixture_finish(&f);
}

/* Where all wait for a replacement it goes to the stage that lacks most of what it had, which is not the one that had most. */
static void test_who_replaces_goes_where_most_are_missing(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f, 8, 2, 8);
	f.plan.on_loss = SKEP_ON_LOSS_WAIT;
	f.plan.liveness.wait_for_join_ns = 60 * SECOND_NS;
	for (uint32_t i = 0; i < 8; i++)
		f.first_stage_of[i] = i >= 5;
	fixture_make(&f, 8);
	fixture_start(&f);
	suspect(&f, 0);
	suspect(&f, 5);
	suspect(&f, 6); /* one of five is gone, and two of three */
	struct skep_message message = fixture_message(SKEP_MESSAGE_JOIN, 0, 8, 0);
	fixture_deliver(&f, message);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_ASSIGN)->stage, 1);
	fixture_finish(&f);
}

/* Newcomers are not spread: any stage, drawn, whatever is there. But a stage that waits for a restorer comes first. */
static void test_joins_may_be_random(void **state)
{
	(void)state;
	struct fixture f;
	uint32_t stage[4] = {0};
	fixture_init(&f, 8, 4, 8);
	f.plan.joins = SKEP_JOINS_RANDOM;
	f.plan.liveness.wait_for_join_ns = 60 * SECOND_NS;
	fixture_start(&f);
	struct skep_event dead = {.kind = SKEP_EVENT_SUSPECT, .u.peer = {3, 1}};
	fixture_event(&f, dead);
	dead.u.peer.index = 7; /* no worker is left in stage 3 */
	fixture_event(&f, dead);
	for (uint32_t life = 0; life < 40; life++) { /* born again and again, into stages that have two workers */
		struct skep_message message = fixture_message(SKEP_MESSAGE_JOIN, life == 0 ? 3 : 7, 8, 0);
		message.from.epoch = 0;
		message.u.join.started_ns = life + 1;
		fixture_deliver(&f, message);
		uint32_t given = fixture_sent(&f, SKEP_MESSAGE_ASSIGN)->stage;
		assert_true(life > 0 || given == 3);
		stage[given]++;
	}
	for (uint32_t i = 0; i < 4; i++)
		assert_in_range(stage[i], 3, 20);
	fixture_finish(&f);
}

static void heartbeat(struct fixture *f, uint32_t worker, uint32_t epoch)
{
	struct skep_message message = from_worker(SKEP_MESSAGE_HEARTBEAT, worker, 0);
	message.from.epoch = epoch;
	fixture_deliver(f, message);
}

static void ready(struct fixture *f, uint32_t worker, uint32_t epoch, uint32_t round)
{
	struct skep_message message = from_worker(SKEP_MESSAGE_READY, worker, round);
	message.from.epoch = epoch;
	fixture_deliver(f, message);
}

/* Stage 1 is empty, and worker 3 has entered it anew under epoch 2. */
static void begin_waiting(struct fixture *f)
{
	fixture_init(f, 4, 2, DIRECTORY);
	f->plan.liveness.wait_for_join_ns = 60 * SECOND_NS;
	fixture_start(f);
	suspect(f, 1);
	suspect(f, 3);
	assert_int_equal(fixture_noted(f, SKEP_NOTE_STAGE_EMPTY)->stage, 1);
	assert_int_equal(skep_node_outcome(f->node), SKEP_RUNNING);
	join(f, 3, 1, 0);
	assert_int_equal(fixture_sent(f, SKEP_MESSAGE_ASSIGN)->stage, 1);
	entered(f, 3, 2);
}

static void test_the_first_founds_the_rest_downloads(void **state)
{
	(void)state;
	struct fixture f;
	begin_waiting(&f);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_ADMIT)->u.admit.source.index, SKEP_NO_INDEX);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_ADMIT)->u.admit.checkpoint, 0);
	struct skep_message other = fixture_message(SKEP_MESSAGE_JOIN, 1, DIRECTORY, 0);
	fixture_deliver(&f, other);
	uint32_t stage = fixture_sent(&f, SKEP_MESSAGE_ASSIGN)->stage;
	entered(&f, 1, 2);
	assert_true(stage != 1 || !fixture_sent(&f, SKEP_MESSAGE_ADMIT)); /* it waits for the restorer */
	ready(&f, 3, 2, 0);
	assert_int_equal(fixture_noted(&f, SKEP_NOTE_STAGE_RESTARTED)->value, 0);
	assert_true(stage != 1 || fixture_sent(&f, SKEP_MESSAGE_ADMIT)->u.admit.source.index == 3);
	uint32_t told = 0;
	for (uint32_t i = 0; fixture_find(&f, SKEP_ACTION_SEND, SKEP_MESSAGE_PEER, i); i++)
		told |= 1u << fixture_find(&f, SKEP_ACTION_SEND, SKEP_MESSAGE_PEER, i)->u.send.to.index;
	assert_int_equal(told, 1u << 0 | 1u << 2); /* it serves at once */
	fixture_finish(&f);
}

static void test_another_founds_if_the_first_dies(void **state)
{
	(void)state;
	struct fixture f;
	begin_waiting(&f);
	struct skep_event dead = {.kind = SKEP_EVENT_SUSPECT, .u.peer = {3, 2}};
	fixture_event(&f, dead);
	fixture_deliver(&f, fixture_message(SKEP_MESSAGE_JOIN, 1, DIRECTORY, 0));
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_ASSIGN)->stage, 1);
	entered(&f, 1, 2);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_ADMIT)->u.admit.source.index, SKEP_NO_INDEX);
	fixture_finish(&f);
}

static void test_a_reduction_closes_with_none(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f, 4, 2, DIRECTORY);
	f.plan.liveness.wait_for_join_ns = 60 * SECOND_NS;
	fixture_start(&f);
	finish(&f, 0, 0, true);
	finish(&f, 0, 1, true);
	finish(&f, 2, 2, true);
	finish(&f, 2, 3, true);
	tally(&f, 0, 1, 3);
	tally(&f, 2, 1, 12);
	suspect(&f, 1);
	suspect(&f, 3);
	assert_int_equal(fixture_noted(&f, SKEP_NOTE_STAGE_COMMITTED)->microbatch, 0);
	assert_int_equal(fixture_noted(&f, SKEP_NOTE_LOST)->value, 15);
	assert_non_null(fixture_noted(&f, SKEP_NOTE_ROUND_CLOSED));
	assert_int_equal(fixture_noted(&f, SKEP_NOTE_ROUND_OPENED)->round, 1);
	fixture_finish(&f);
}

static void test_the_wait_has_an_end(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f, 4, 2, DIRECTORY);
	f.plan.liveness.wait_for_join_ns = 10 * SECOND_NS;
	fixture_start(&f);
	suspect(&f, 1);
	suspect(&f, 3);
	for (uint64_t now = 1; now <= 10; now++) {
		assert_int_equal(skep_node_outcome(f.node), SKEP_RUNNING);
		f.now = now * SECOND_NS;
		heartbeat(&f, 0, 1);
		heartbeat(&f, 2, 1);
		fixture_timer(&f, f.now);
	}
	assert_int_equal(fixture_noted(&f, SKEP_NOTE_STOPPED)->stage, 1);
	assert_int_equal(skep_node_outcome(f.node), SKEP_FAILED);
	fixture_finish(&f);
}

/* One member of each stage keeps the state when it is time, and the restorer is told of the newest. */
static void test_the_restorer_restores_the_newest_checkpoint(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f, 4, 2, DIRECTORY);
	f.plan.liveness.wait_for_join_ns = 60 * SECOND_NS;
	f.plan.checkpoint_every = 1;
	fixture_start(&f);
	finish(&f, 0, 0, true);
	finish(&f, 0, 1, true);
	finish(&f, 2, 2, true);
	finish(&f, 2, 3, true);
	tally(&f, 0, 1, 3);
	tally(&f, 2, 1, 12);
	tally(&f, 1, 1, 5);
	tally(&f, 3, 1, 10);
	uint32_t keepers = 0;
	for (uint32_t i = 0; fixture_find(&f, SKEP_ACTION_SEND, SKEP_MESSAGE_COMMIT, i); i++)
		keepers += fixture_find(&f, SKEP_ACTION_SEND, SKEP_MESSAGE_COMMIT, i)->u.send.u.commit.checkpoint;
	assert_int_equal(keepers, 1); /* of this stage */
	fixture_deliver(&f, from_worker(SKEP_MESSAGE_CHECKPOINTED, 1, 1));
	assert_int_equal(fixture_noted(&f, SKEP_NOTE_CHECKPOINTED)->stage, 1);
	fixture_deliver(&f, from_worker(SKEP_MESSAGE_CHECKPOINTED, 1, 1));
	assert_null(fixture_noted(&f, SKEP_NOTE_CHECKPOINTED));
	suspect(&f, 1);
	suspect(&f, 3);
	join(&f, 3, 1, 0);
	entered(&f, 3, 2);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_ADMIT)->u.admit.checkpoint, 1);
	ready(&f, 3, 2, 1);
	assert_int_equal(fixture_noted(&f, SKEP_NOTE_STAGE_RESTARTED)->value, 1);
	fixture_finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_enters_in_a_reduction_is_a_member_of_the_next),
		cmocka_unit_test(test_a_newcomer_hears_of_another_source),
		cmocka_unit_test(test_those_that_join_at_once_are_spread),
		cmocka_unit_test(test_who_gave_notice_is_as_good_as_gone),
		cmocka_unit_test(test_who_replaces_goes_where_most_are_missing),
		cmocka_unit_test(test_joins_may_be_random),
		cmocka_unit_test(test_the_first_founds_the_rest_downloads),
		cmocka_unit_test(test_another_founds_if_the_first_dies),
		cmocka_unit_test(test_a_reduction_closes_with_none),
		cmocka_unit_test(test_the_wait_has_an_end),
		cmocka_unit_test(test_the_restorer_restores_the_newest_checkpoint),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
