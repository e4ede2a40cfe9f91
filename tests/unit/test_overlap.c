/* SPDX-License-Identifier: Apache-2.0
 *
 * test_overlap.c - delayed updates, event by event: when the directory opens a round beside a reduction and when it does not,
 * what a worker does of two rounds at once, and which operations wait for each other.
 */
#include "machine_fixture.h"

static const struct skep_buf none = {0, 0};

static void begin(struct fixture *f, uint32_t workers, uint32_t stages, uint32_t index, uint32_t rounds)
{
	fixture_init(f, workers, stages, index);
	f->plan.delayed = true;
	f->plan.rounds = rounds;
	free(f->node); /* it was made for a plan that needs less memory */
	f->node =
		skep_node_init(aligned_alloc(16, (skep_node_size(&f->plan, index) + 15) / 16 * 16), &f->plan, index, 1);
	f->out.capacity = skep_actions_limit(&f->plan);
	f->out.item = realloc(f->out.item, f->out.capacity * sizeof *f->out.item);
	fixture_start(f);
}

/* ---- the directory: workers 0 and 2 own, 1 and 3 finish ------------------------------------------------------------ */

#define DIRECTORY 4

static struct skep_message from_worker(enum skep_message_kind kind, uint32_t worker, uint32_t round)
{
	return fixture_message(kind, worker, DIRECTORY, round);
}

static void finish(struct fixture *f, uint32_t owner, uint32_t microbatch, uint32_t round)
{
	struct skep_message message = from_worker(SKEP_MESSAGE_FINISHED, owner, round);
	message.microbatch = microbatch;
	message.u.finished.ok = true;
	fixture_deliver(f, message);
}

static void finish_all(struct fixture *f, uint32_t round)
{
	for (uint32_t m = 0; m < 4; m++)
		finish(f, m / 2 * 2, m, round);
}

static void tally(
	struct fixture *f, struct skep_peer worker, uint32_t round, uint32_t attempt, uint16_t first, uint16_t count)
{
	struct skep_message message = from_worker(SKEP_MESSAGE_TALLY, worker.index, round);
	message.from.epoch = worker.epoch;
	message.attempt = attempt;
	message.u.tally.count = message.u.tally.used = count;
	for (uint16_t i = 0; i < count; i++)
		message.u.tally.offset[i] = (uint16_t)(first + i);
	message.u.tally.loss_nano = 100 * count;
	fixture_deliver(f, message);
}

static void tally_all(struct fixture *f, uint32_t round)
{
	for (uint32_t w = 0; w < 4; w++)
		tally(f, (struct skep_peer){w, 1}, round, 1, (uint16_t)(w / 2 * 2), 2);
}

static void test_a_round_opens_when_the_one_before_is_reduced(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 4, 2, DIRECTORY, 3);
	finish_all(&f, 0);
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_REDUCE), 4);
	assert_int_equal(fixture_noted(&f, SKEP_NOTE_ROUND_OPENED)->round, 1);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_GRANT)->round, 1);
	tally_all(&f, 0);
	assert_int_equal(fixture_noted(&f, SKEP_NOTE_ROUND_CLOSED)->round, 0);
	assert_null(fixture_noted(&f, SKEP_NOTE_ROUND_OPENED));
	fixture_finish(&f);
}

static void test_one_reduction_at_a_time(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 4, 2, DIRECTORY, 3);
	finish_all(&f, 0);
	finish_all(&f, 1);
	assert_null(fixture_sent(&f, SKEP_MESSAGE_REDUCE));
	tally_all(&f, 0);
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_REDUCE), 4);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_REDUCE)->round, 1);
	assert_int_equal(fixture_noted(&f, SKEP_NOTE_ROUND_OPENED)->round, 2);
	finish_all(&f, 2);
	tally_all(&f, 1);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_REDUCE)->round, 2);
	assert_null(fixture_noted(&f, SKEP_NOTE_ROUND_OPENED)); /* there is no fourth */
	tally_all(&f, 2);
	assert_int_equal(fixture_noted(&f, SKEP_NOTE_STOPPED)->round, 3);
	fixture_finish(&f);
}

/* A fresh process in the place of worker 3. */
static struct skep_peer join(struct fixture *f)
{
	struct skep_message message = from_worker(SKEP_MESSAGE_JOIN, 3, 0);
	message.from.epoch = 0;
	message.u.join.started_ns = 7;
	fixture_deliver(f, message);
	assert_int_equal(fixture_sent(f, SKEP_MESSAGE_ASSIGN)->stage, 1);
	return fixture_sent(f, SKEP_MESSAGE_ASSIGN)->to;
}

static void from_newcomer(struct fixture *f, struct skep_peer newcomer, enum skep_message_kind kind, uint32_t round)
{
	struct skep_message message = from_worker(kind, newcomer.index, round);
	message.from = newcomer;
	fixture_deliver(f, message);
}

static bool sent_to(const struct fixture *f, enum skep_message_kind kind, struct skep_peer to)
{
	const struct skep_action *a;
	for (uint32_t n = 0; (a = fixture_find(f, SKEP_ACTION_SEND, kind, n)); n++) {
		if (a->u.send.to.index == to.index && a->u.send.to.epoch == to.epoch)
			return true;
	}
	return false;
}

/* It enters in the open round: a member of that round's reduction, and the next one opens all the same. */
static void test_a_newcomer_is_admitted_to_the_open_round(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 4, 2, DIRECTORY, 3);
	struct skep_peer newcomer = join(&f);
	from_newcomer(&f, newcomer, SKEP_MESSAGE_ENTERED, 0);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_ADMIT)->round, 0);
	finish_all(&f, 0);
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_REDUCE), 4);
	assert_true(sent_to(&f, SKEP_MESSAGE_REDUCE, newcomer));
	assert_int_equal(fixture_noted(&f, SKEP_NOTE_ROUND_OPENED)->round, 1);
	fixture_finish(&f);
}

/* It enters while round 1 is open and round 0 is summed: a member of round 1's reduction, even when the one of round 0
 * begins anew. It serves when round 1 is committed, which is when it holds a version that the open round works on. */
static void test_rounds_open_over_a_newcomers_head(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 4, 2, DIRECTORY, 4);
	struct skep_peer newcomer = join(&f);
	finish_all(&f, 0);
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_REDUCE), 3);
	assert_int_equal(fixture_noted(&f, SKEP_NOTE_ROUND_OPENED)->round, 1);
	from_newcomer(&f, newcomer, SKEP_MESSAGE_ENTERED, 0);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_ADMIT)->round, 1);
	tally(&f, (struct skep_peer){0, 1}, 0, 1, 0, 2);
	tally(&f, (struct skep_peer){2, 1}, 0, 1, 2, 2);
	tally(&f, (struct skep_peer){1, 1}, 0, 1, 0, 4);
	assert_int_equal(fixture_noted(&f, SKEP_NOTE_ROUND_CLOSED)->round, 0);
	for (uint32_t m = 0; m < 4; m++) { /* of one of them; the word of the other is ignored; the last one is of 0 */
		finish(&f, 2, m, 1);
		finish(&f, 0, m, 1);
	}
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_REDUCE), 4);
	assert_true(sent_to(&f, SKEP_MESSAGE_REDUCE, newcomer));
	assert_int_equal(fixture_noted(&f, SKEP_NOTE_ROUND_OPENED)->round, 2);
	from_newcomer(&f, newcomer, SKEP_MESSAGE_READY, 1);
	assert_int_equal(fixture_noted(&f, SKEP_NOTE_JOINED)->round, 1);
	tally(&f, (struct skep_peer){1, 1}, 1, 1, 0, 4);
	assert_null(fixture_sent(&f, SKEP_MESSAGE_PEER));
	tally(&f, newcomer, 1, 1, 0, 0);
	assert_int_equal(fixture_noted(&f, SKEP_NOTE_STAGE_COMMITTED)->microbatch, 4);
	assert_true(sent_to(&f, SKEP_MESSAGE_COMMIT, newcomer));
	assert_true(sent_to(&f, SKEP_MESSAGE_PEER, (struct skep_peer){0, 1})); /* it serves now */
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_PEER)->u.peer.who.index, newcomer.index);
	fixture_finish(&f);
}

static void test_no_round_opens_before_a_leaver_goes(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 4, 2, DIRECTORY, 3);
	fixture_deliver(&f, from_worker(SKEP_MESSAGE_LEAVE, 3, 0));
	finish_all(&f, 0);
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_REDUCE), 4);
	assert_null(fixture_noted(&f, SKEP_NOTE_ROUND_OPENED));
	tally_all(&f, 0);
	assert_non_null(fixture_noted(&f, SKEP_NOTE_LEFT));
	assert_int_equal(fixture_noted(&f, SKEP_NOTE_ROUND_OPENED)->round, 1);
	fixture_finish(&f);
}

/* The newcomer holds version 0 and could do round 0, but in general not the round in which it is ready. */
static void test_a_stage_of_newcomers_cuts_the_round(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 4, 2, DIRECTORY, 3);
	struct skep_peer newcomer = join(&f);
	from_newcomer(&f, newcomer, SKEP_MESSAGE_ENTERED, 0);
	from_newcomer(&f, newcomer, SKEP_MESSAGE_READY, 0);
	struct skep_event gone = {.kind = SKEP_EVENT_SUSPECT, .u.peer = {1, 1}};
	fixture_event(&f, gone);
	assert_null(fixture_noted(&f, SKEP_NOTE_STAGE_EMPTY));
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_REDUCE), 3);
	assert_int_equal(fixture_noted(&f, SKEP_NOTE_ROUND_OPENED)->round, 1);
	tally(&f, newcomer, 0, 1, 0, 0);
	assert_int_equal(fixture_noted(&f, SKEP_NOTE_LOST)->value, 15);
	assert_non_null(fixture_sent(&f, SKEP_MESSAGE_PEER)); /* it serves now */
	fixture_finish(&f);
}

/* ---- a worker: number 1 of four, in the last of two stages, alone in its reductions --------------------------------- */

static struct skep_op forward(struct fixture *f, uint32_t round, uint32_t microbatch)
{
	struct skep_message message = fixture_message(SKEP_MESSAGE_FORWARD, 0, 1, round);
	message.microbatch = microbatch;
	message.payload = fixture_buf(f);
	fixture_deliver(f, message);
	const struct skep_op *op = fixture_ran(f, SKEP_OP_FORWARD);
	assert_non_null(op);
	return *op;
}

/* Forward is done; so is backward. */
static void go_back(struct fixture *f, struct skep_op op)
{
	fixture_done(f, op, none, fixture_buf(f));
	struct skep_op backward = *fixture_ran(f, SKEP_OP_BACKWARD);
	assert_int_equal(backward.version, op.version);
	fixture_done(f, backward, fixture_buf(f), none);
	assert_int_equal(fixture_noted(f, SKEP_NOTE_COUNTED)->value, op.round - op.version);
}

static void reduce(struct fixture *f, uint32_t round)
{
	struct skep_message message = fixture_message(SKEP_MESSAGE_REDUCE, DIRECTORY, 1, round);
	message.attempt = message.u.reduce.size = 1;
	message.u.reduce.next = (struct skep_peer){1, 1};
	fixture_deliver(f, message);
}

static void commit(struct fixture *f, uint32_t round)
{
	struct skep_message message = fixture_message(SKEP_MESSAGE_COMMIT, DIRECTORY, 1, round);
	message.attempt = 1;
	message.u.commit.microbatches = 1;
	fixture_deliver(f, message);
}

static void test_work_goes_on_beside_reduction_and_step(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 4, 2, 1, 4);
	struct skep_op op = forward(&f, 0, 3);
	assert_int_equal(op.version, 0);
	go_back(&f, op);
	reduce(&f, 0);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_TALLY)->u.tally.count, 1);
	op = forward(&f, 1, 0);
	assert_int_equal(op.version, 0);
	commit(&f, 0);
	struct skep_op step = *fixture_ran(&f, SKEP_OP_STEP);
	assert_int_equal(step.lane, SKEP_LANE_REDUCE);
	go_back(&f, op); /* while the step goes on */
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_BACKWARD)->round, 1);
	reduce(&f, 1); /* comes too early: the round stays open */
	assert_null(fixture_sent(&f, SKEP_MESSAGE_TALLY));
	go_back(&f, forward(&f, 1, 2));
	fixture_done(&f, step, none, none);
	const struct skep_message *tally = fixture_sent(&f, SKEP_MESSAGE_TALLY);
	assert_int_equal(tally->round, 1);
	assert_int_equal(tally->u.tally.count, 2);
	assert_int_equal(forward(&f, 2, 0).version, 1);
	fixture_finish(&f);
}

/* It would read what the step replaces. */
static void test_step_waits_for_a_pass_that_came_too_late(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 4, 2, 1, 4);
	struct skep_op op = forward(&f, 0, 3);
	reduce(&f, 0);
	commit(&f, 0);
	assert_null(fixture_ran(&f, SKEP_OP_STEP));
	fixture_done(&f, op, none, fixture_buf(&f));
	assert_null(fixture_ran(&f, SKEP_OP_BACKWARD));
	assert_non_null(fixture_ran(&f, SKEP_OP_STEP));
	fixture_finish(&f);
}

static void test_save_and_step_wait_for_each_other(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 4, 2, 1, 4);
	fixture_deliver(&f, fixture_message(SKEP_MESSAGE_FETCH, 3, 1, 1));
	assert_null(fixture_ran(&f, SKEP_OP_SAVE));
	reduce(&f, 0);
	commit(&f, 0);
	fixture_done(&f, *fixture_ran(&f, SKEP_OP_STEP), none, none);
	struct skep_op save = *fixture_ran(&f, SKEP_OP_SAVE);
	assert_int_equal(save.version, 1);
	reduce(&f, 1);
	commit(&f, 1);
	assert_null(fixture_ran(&f, SKEP_OP_STEP));
	fixture_done(&f, save, fixture_buf(&f), none);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_STATE)->round, 1);
	assert_non_null(fixture_ran(&f, SKEP_OP_STEP));
	fixture_finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_round_opens_when_the_one_before_is_reduced),
		cmocka_unit_test(test_one_reduction_at_a_time),
		cmocka_unit_test(test_a_newcomer_is_admitted_to_the_open_round),
		cmocka_unit_test(test_rounds_open_over_a_newcomers_head),
		cmocka_unit_test(test_no_round_opens_before_a_leaver_goes),
		cmocka_unit_test(test_a_stage_of_newcomers_cuts_the_round),
		cmocka_unit_test(test_work_goes_on_beside_reduction_and_step),
		cmocka_unit_test(test_step_waits_for_a_pass_that_came_too_late),
		cmocka_unit_test(test_save_and_step_wait_for_each_other),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
