/* SPDX-License-Identifier: Apache-2.0
 *
 * test_tied_worker.c - a tied table: core/methods/tied_embeddings.c and what clip.c adds up, event by event.
 * Four workers in two stages, which hold a copy of ten elements each.
 */
#include "directory_fixture.h"

#include "core/square.h"

#define TIED 10
#define SELF 0 /* where a worker is under test */

static const struct skep_buf none = {0, 0};
static const struct skep_peer no_worker = {SKEP_NO_INDEX, 0};

static void begin_tied(struct fixture *f, uint32_t index, bool clip)
{
	fixture_init(f, 4, 2, index);
	f->plan.tied = TIED;
	f->plan.clip = clip;
	f->plan.liveness.wait_for_join_ns = 60 * SECOND_NS;
	fixture_make(f, index);
	fixture_start(f);
}

/* ---- a worker -------------------------------------------------------------------------------------------------- */

/* To the machine under test, which is alone in its stage: there is nothing to sum. */
static void reduce_alone(struct fixture *f, uint32_t attempt, struct skep_peer across, struct skep_peer along)
{
	struct skep_message message = fixture_message(SKEP_MESSAGE_REDUCE, DIRECTORY, SELF, 0);
	message.attempt = attempt;
	message.u.reduce.size = 1;
	message.u.reduce.across = across;
	message.u.reduce.along = along;
	fixture_deliver(f, message);
}

static struct skep_buf from_tied_peer(struct fixture *f, uint32_t attempt)
{
	struct skep_message message = fixture_message(SKEP_MESSAGE_CHUNK, 1, 0, 0);
	message.attempt = attempt;
	message.u.chunk.hop = SKEP_HOP_TIED;
	message.payload = fixture_buf(f);
	fixture_deliver(f, message);
	return message.payload;
}

static struct skep_op ran(const struct fixture *f, enum skep_op_kind kind)
{
	assert_non_null(fixture_ran(f, kind));
	return *fixture_ran(f, kind);
}

static void test_a_worker_tells_and_takes_before_its_tally(void **state)
{
	(void)state;
	struct fixture f;
	begin_tied(&f, 0, false);
	reduce_alone(&f, 1, (struct skep_peer){1, 1}, no_worker);
	struct skep_op give = ran(&f, SKEP_OP_COPY_TIED);
	assert_true(give.first == 0 && give.count == TIED && give.size == 1 && give.lane == SKEP_LANE_REDUCE);
	struct skep_buf out = fixture_buf(&f);
	fixture_done(&f, give, out, none);
	const struct skep_message *sent = fixture_sent(&f, SKEP_MESSAGE_CHUNK);
	assert_true(sent && sent->to.index == 1 && sent->payload.slot == out.slot && sent->payload_bytes == 4 * TIED);
	assert_null(fixture_sent(&f, SKEP_MESSAGE_TALLY));
	struct skep_buf payload = from_tied_peer(&f, 1);
	struct skep_op take = ran(&f, SKEP_OP_STORE_TIED);
	assert_true(take.in.slot == payload.slot && take.count == TIED);
	assert_true(fixture_released(&f, from_tied_peer(&f, 1))); /* a duplicate */
	fixture_done(&f, take, none, none);
	assert_non_null(fixture_sent(&f, SKEP_MESSAGE_TALLY));
	struct skep_message commit = fixture_message(SKEP_MESSAGE_COMMIT, DIRECTORY, 0, 0);
	commit.attempt = 1;
	commit.u.commit.tied = 3;
	fixture_deliver(&f, commit);
	struct skep_op step = ran(&f, SKEP_OP_STEP);
	assert_true(step.microbatches == 0 && step.tied == 3);
	fixture_finish(&f);
}

static void test_what_comes_early_waits_and_goes_along(void **state)
{
	(void)state;
	struct fixture f;
	begin_tied(&f, 0, false);
	struct skep_buf payload = from_tied_peer(&f, 1);
	assert_null(fixture_ran(&f, SKEP_OP_STORE_TIED));
	reduce_alone(&f, 1, no_worker, (struct skep_peer){2, 1});
	const struct skep_action *along = fixture_find(&f, SKEP_ACTION_SEND, SKEP_MESSAGE_CHUNK, 0);
	assert_true(along && along->keep && along->u.send.to.index == 2 && along->u.send.payload.slot == payload.slot);
	assert_int_equal(ran(&f, SKEP_OP_STORE_TIED).in.slot, payload.slot);
	struct skep_buf out = fixture_buf(&f);
	struct skep_op give = ran(&f, SKEP_OP_COPY_TIED);
	fixture_done(&f, give, out, none);
	assert_true(fixture_released(&f, out)); /* no peer has the same rank */
	fixture_finish(&f);
}

static void test_another_attempt_begins_anew(void **state)
{
	(void)state;
	struct fixture f;
	begin_tied(&f, 0, false);
	reduce_alone(&f, 1, (struct skep_peer){1, 1}, no_worker);
	struct skep_op give = ran(&f, SKEP_OP_COPY_TIED), take;
	from_tied_peer(&f, 1);
	take = ran(&f, SKEP_OP_STORE_TIED);
	reduce_alone(&f, 2, (struct skep_peer){3, 1}, no_worker);
	struct skep_op second = ran(&f, SKEP_OP_COPY_TIED);
	struct skep_buf out = fixture_buf(&f);
	fixture_done(&f, give, out, none); /* of an attempt that is void */
	assert_true(fixture_released(&f, out));
	fixture_done(&f, take, none, none);
	fixture_done(&f, second, fixture_buf(&f), none);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_CHUNK)->to.index, 3);
	assert_null(fixture_sent(&f, SKEP_MESSAGE_TALLY)); /* what came was of the first attempt */
	from_tied_peer(&f, 2);
	take = ran(&f, SKEP_OP_STORE_TIED);
	fixture_done(&f, take, none, none);
	assert_non_null(fixture_sent(&f, SKEP_MESSAGE_TALLY));
	fixture_finish(&f);
}

static void test_the_first_stage_tells_the_products(void **state)
{
	(void)state;
	struct fixture f;
	begin_tied(&f, 0, true);
	reduce_alone(&f, 1, no_worker, no_worker);
	struct skep_op give = ran(&f, SKEP_OP_COPY_TIED);
	fixture_done(&f, give, fixture_buf(&f), none);
	from_tied_peer(&f, 1);
	struct skep_op take = ran(&f, SKEP_OP_STORE_TIED), norm[3];
	fixture_done(&f, take, none, none);
	for (uint32_t part = 0; part < 3; part++)
		norm[part] = fixture_find(&f, SKEP_ACTION_RUN, SKEP_OP_NORM, part)->u.run;
	for (uint32_t part = 0; part < 3; part++) {
		assert_int_equal(norm[part].chunk, part);
		fixture_done(&f, norm[part], none, none);
		assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_NORM)->u.norm.term, part);
		assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_TALLY) != NULL, part == 2);
	}
	fixture_finish(&f);
}

/* ---- the directory --------------------------------------------------------------------------------------------- */

/* Grants at the start: microbatches 0, 1 to worker 0 and 2, 3 to worker 2. */
static void all_come_back(struct fixture *f)
{
	for (uint32_t microbatch = 0; microbatch < 4; microbatch++)
		finish(f, microbatch / 2 * 2, microbatch, true);
	assert_int_equal(fixture_count_sent(f, SKEP_MESSAGE_REDUCE), 4);
}

static const struct skep_message *told(const struct fixture *f, enum skep_message_kind kind, uint32_t to)
{
	const struct skep_action *action = NULL;
	for (uint32_t n = 0; (action = fixture_find(f, SKEP_ACTION_SEND, kind, n)); n++)
		if (action->u.send.to.index == to)
			return &action->u.send;
	return NULL;
}

static void test_two_stages_are_committed_at_once(void **state)
{
	(void)state;
	struct fixture f;
	begin_tied(&f, DIRECTORY, false);
	all_come_back(&f);
	for (uint32_t worker = 0; worker < 4; worker++) {
		const struct skep_message *reduce = told(&f, SKEP_MESSAGE_REDUCE, worker);
		assert_int_equal(reduce->u.reduce.across.index, worker ^ 1);
		assert_int_equal(reduce->u.reduce.along.index, SKEP_NO_INDEX);
	}
	tally(&f, 0, 1, 3);
	tally(&f, 2, 1, 12);
	assert_int_equal(f.out.count, 0); /* the other one may still have to begin anew */
	tally(&f, 1, 1, 1);
	tally(&f, 3, 1, 2);
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_COMMIT), 4);
	const struct skep_message *first = told(&f, SKEP_MESSAGE_COMMIT, 0), *last = told(&f, SKEP_MESSAGE_COMMIT, 1);
	assert_true(first->u.commit.microbatches == 4 && first->u.commit.tied == 2);
	assert_true(last->u.commit.microbatches == 2 && last->u.commit.tied == 4);
	fixture_finish(&f);
}

static void test_who_is_fenced_voids_both(void **state)
{
	(void)state;
	struct fixture f;
	begin_tied(&f, DIRECTORY, false);
	all_come_back(&f);
	tally(&f, 0, 1, 3);
	tally(&f, 2, 1, 12);
	suspect(&f, 1);
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_REDUCE), 3);
	const struct skep_message *reduce = told(&f, SKEP_MESSAGE_REDUCE, 0);
	assert_true(reduce->attempt == 2 && reduce->u.reduce.across.index == 3 && reduce->u.reduce.along.index == 2);
	reduce = told(&f, SKEP_MESSAGE_REDUCE, 2);
	assert_true(reduce->attempt == 2 && reduce->u.reduce.across.index == SKEP_NO_INDEX &&
		    reduce->u.reduce.along.index == SKEP_NO_INDEX);
	reduce = told(&f, SKEP_MESSAGE_REDUCE, 3);
	assert_true(reduce->attempt == 2 && reduce->u.reduce.across.index == 0);
	tally(&f, 3, 2, 2);
	tally(&f, 0, 1, 3); /* of the first attempt */
	tally(&f, 0, 2, 3);
	assert_null(fixture_sent(&f, SKEP_MESSAGE_COMMIT));
	tally(&f, 2, 2, 12);
	assert_int_equal(told(&f, SKEP_MESSAGE_COMMIT, 0)->u.commit.tied, 1);
	fixture_finish(&f);
}

static void norm(struct fixture *f, uint32_t worker, uint16_t vstage, uint32_t part, uint64_t square)
{
	struct skep_message message = from_worker(SKEP_MESSAGE_NORM, worker, 0);
	message.attempt = 1;
	message.stage = vstage;
	message.u.norm.term = part;
	message.u.norm.square = square;
	fixture_deliver(f, message);
}

/* n as core/square.h has it. */
static uint64_t square(uint64_t n)
{
	return skep_square_make(n, SKEP_SQUARE_BIAS + SKEP_SQUARE_BITS);
}

/* 64 / 4^2 + 128 / 4^2 + 2 (16 - 8) / (4 * 4) = 13 */
static void test_the_table_counts_once_in_the_norm(void **state)
{
	(void)state;
	struct fixture f;
	begin_tied(&f, DIRECTORY, true);
	all_come_back(&f);
	norm(&f, 0, 0, 0, square(64));
	norm(&f, 1, 1, 0, square(128));
	norm(&f, 1, 1, 1, square(1)); /* these are not the last stage's to tell */
	for (uint32_t worker = 0; worker < 4; worker++)
		tally(&f, worker, 1, worker < 2 ? 3 : 12);
	assert_null(fixture_sent(&f, SKEP_MESSAGE_COMMIT));
	norm(&f, 0, 0, 1, square(16));
	assert_null(fixture_sent(&f, SKEP_MESSAGE_COMMIT));
	norm(&f, 0, 0, 2, square(8));
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_COMMIT)->u.commit.square, square(13));
	fixture_finish(&f);
}

static void test_differences_of_squares(void **state)
{
	(void)state;
	assert_int_equal(skep_square_subtract(square(13), square(5)), square(8));
	assert_int_equal(skep_square_subtract(square(13), 0), square(13));
	assert_int_equal(skep_square_subtract(square(1), square(2)), 0);
	assert_int_equal(skep_square_subtract(square(7), square(7)), 0);
	assert_int_equal(skep_square_subtract(SKEP_SQUARE_INFINITE, square(7)), SKEP_SQUARE_INFINITE);
}

static void test_a_copy_that_none_holds_ends_the_run(void **state)
{
	(void)state;
	struct fixture f;
	begin_tied(&f, DIRECTORY, false);
	suspect(&f, 1);
	suspect(&f, 3);
	const struct skep_note *stopped = fixture_noted(&f, SKEP_NOTE_STOPPED);
	assert_true(stopped && stopped->value == 0 && stopped->stage == 1);
	fixture_finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_worker_tells_and_takes_before_its_tally),
		cmocka_unit_test(test_what_comes_early_waits_and_goes_along),
		cmocka_unit_test(test_another_attempt_begins_anew),
		cmocka_unit_test(test_the_first_stage_tells_the_products),
		cmocka_unit_test(test_two_stages_are_committed_at_once),
		cmocka_unit_test(test_who_is_fenced_voids_both),
		cmocka_unit_test(test_the_table_counts_once_in_the_norm),
		cmocka_unit_test(test_differences_of_squares),
		cmocka_unit_test(test_a_copy_that_none_holds_ends_the_run),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
