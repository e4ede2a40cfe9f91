/* SPDX-License-Identifier: Apache-2.0
 *
 * test_worker_join.c - one worker's machine when it joins, step by step, and when others download from it: download.c. The
 * newcomer is worker 1 under epoch 2; its stage's state has three chunks; worker 4 is its source.
 */
#include "worker_fixture.h"

static struct skep_message to_newcomer(enum skep_message_kind kind, uint32_t from, uint32_t round)
{
	struct skep_message message = fixture_message(kind, from, 1, round);
	message.to.epoch = 2;
	message.stage = 1;
	return message;
}

static struct skep_message admit_of(uint32_t round, uint32_t attempt, uint32_t source)
{
	struct skep_message admit = to_newcomer(SKEP_MESSAGE_ADMIT, DIRECTORY, round);
	admit.attempt = attempt;
	admit.u.admit.source = (struct skep_peer){source, 1};
	return admit;
}

static void enter(struct fixture *f)
{
	fixture_init(f, 6, 3, 1);
	f->stage[1].state_chunks = 3;
	f->stage[1].state_bytes = 3 * SKEP_STATE_HEADER_BYTES + 1200;
	free(f->node); /* its size depends on the chunks */
	f->node = skep_node_init(aligned_alloc(16, (skep_node_size(&f->plan, 1) + 15) / 16 * 16), &f->plan, 1, 1);
	fixture_start(f);
	fixture_deliver(f, to_newcomer(SKEP_MESSAGE_ASSIGN, DIRECTORY, 0));
	struct skep_op op = *fixture_ran(f, SKEP_OP_ENTER);
	assert_int_equal(op.stage, 1);
	fixture_done(f, op, none, none);
	assert_non_null(fixture_sent(f, SKEP_MESSAGE_ENTERED));
}

/* The chunk that the n-th FETCH of the last step asks for; SKEP_NO_INDEX: there is no such FETCH. */
static uint32_t asked(const struct fixture *f, uint32_t n)
{
	const struct skep_action *a = fixture_find(f, SKEP_ACTION_SEND, SKEP_MESSAGE_FETCH, n);
	return a ? a->u.send.u.state.chunk : SKEP_NO_INDEX;
}

static struct skep_buf bring(struct fixture *f, uint32_t from, uint32_t round, uint32_t chunk)
{
	struct skep_message state = to_newcomer(SKEP_MESSAGE_STATE, from, round);
	state.u.state.chunk = chunk;
	state.payload = fixture_buf(f);
	fixture_deliver(f, state);
	return state.payload;
}

/* Chunk comes and is loaded. */
static void load(struct fixture *f, uint32_t round, uint32_t chunk)
{
	bring(f, 4, round, chunk);
	struct skep_op op = *fixture_ran(f, SKEP_OP_LOAD);
	assert_int_equal(op.round, round);
	assert_int_equal(op.chunk, chunk);
	assert_int_equal(op.size, 3);
	fixture_done(f, op, none, none);
	assert_true(fixture_released(f, op.in));
}

/* A reduction among two, of which it is one, to the end of its step, which makes other parameters. Its TALLY. */
static struct skep_message step_along(struct fixture *f, uint32_t round)
{
	struct skep_message message = reduce(round, 1, 0, 2, 4);
	message.to.epoch = 2;
	fixture_deliver(f, message);
	struct skep_op take = *fixture_ran(f, SKEP_OP_COPY_GRAD);
	fixture_done(f, take, fixture_buf(f), none);
	for (uint32_t hop = 1; hop <= 2; hop++) {
		struct skep_message chunk = to_newcomer(SKEP_MESSAGE_CHUNK, 4, round);
		chunk.attempt = 1;
		chunk.u.chunk.hop = hop;
		chunk.u.chunk.chunk = hop % 2;
		chunk.payload = fixture_buf(f);
		fixture_deliver(f, chunk);
		const struct skep_action *run = fixture_find(f, SKEP_ACTION_RUN, 0, 0);
		assert_non_null(run);
		fixture_done(f, run->u.run, fixture_buf(f), none);
	}
	struct skep_message tally = *fixture_sent(f, SKEP_MESSAGE_TALLY);
	assert_int_equal(tally.u.tally.count, 0);
	struct skep_message commit = to_newcomer(SKEP_MESSAGE_COMMIT, DIRECTORY, round);
	commit.attempt = 1;
	commit.u.commit.microbatches = 4;
	fixture_deliver(f, commit);
	struct skep_op op = *fixture_ran(f, SKEP_OP_STEP);
	assert_int_equal(op.round, round);
	struct skep_event done = {.kind = SKEP_EVENT_OP_DONE};
	done.u.done.op = op;
	done.u.done.parameters = UINT64_C(0x123456789abcdef0);
	fixture_event(f, done);
	return tally;
}

/* Of a step that was made on parts of a state nothing is told: what was loaded since is not in its sum. */
static void test_a_state_in_parts_has_no_sum(void **state)
{
	(void)state;
	struct fixture f;
	enter(&f);
	fixture_deliver(&f, admit_of(0, 1, 4));
	step_along(&f, 0);
	load(&f, 1, 0);
	load(&f, 1, 1);
	load(&f, 1, 2);
	assert_non_null(fixture_sent(&f, SKEP_MESSAGE_READY));
	assert_true(step_along(&f, 1).parameters == 0);
	assert_true(step_along(&f, 2).parameters != 0);
	fixture_finish(&f);
}

static void test_chunks_come_in_several_rounds(void **state)
{
	(void)state;
	struct fixture f;
	enter(&f);
	fixture_deliver(&f, admit_of(0, 1, 4));
	assert_int_equal(asked(&f, 0), 0);
	assert_int_equal(asked(&f, 1), 1);
	assert_int_equal(asked(&f, 2), SKEP_NO_INDEX); /* two at a time */
	load(&f, 0, 1);
	assert_int_equal(asked(&f, 0), 2);
	step_along(&f, 0);
	load(&f, 1, 0);
	step_along(&f, 1);
	assert_null(fixture_sent(&f, SKEP_MESSAGE_READY));
	load(&f, 2, 2);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_READY)->round, 2);
	fixture_finish(&f);
}

static void test_a_late_chunk_is_asked_for_again(void **state)
{
	(void)state;
	struct fixture f;
	enter(&f);
	fixture_deliver(&f, admit_of(0, 1, 4));
	step_along(&f, 0);
	struct skep_buf late = bring(&f, 4, 0, 0);
	assert_true(fixture_released(&f, late));
	assert_null(fixture_ran(&f, SKEP_OP_LOAD));
	assert_int_equal(asked(&f, 0), SKEP_NO_INDEX); /* one at a time from now on, and chunk 1 is under way */
	load(&f, 1, 1);
	assert_int_equal(asked(&f, 0), 0);
	assert_int_equal(asked(&f, 1), SKEP_NO_INDEX);
	load(&f, 1, 0);
	assert_int_equal(asked(&f, 0), 2);
	load(&f, 1, 2);
	assert_non_null(fixture_sent(&f, SKEP_MESSAGE_READY));
	fixture_finish(&f);
}

/* Both chunks took longer to come than a round, and too long for theirs: they are asked for again when the next step is
 * made. Times are counted from the first step on, however early it was. */
static void test_what_would_come_too_late_is_not_asked_for(void **state)
{
	(void)state;
	struct fixture f;
	enter(&f);
	fixture_deliver(&f, admit_of(0, 1, 4));
	f.now = 1;
	step_along(&f, 0);
	f.now = 101;
	step_along(&f, 1);
	for (uint32_t chunk = 0; chunk < 2; chunk++) {
		struct skep_buf late = bring(&f, 4, 0, chunk);
		assert_true(fixture_released(&f, late));
		assert_int_equal(asked(&f, 0), SKEP_NO_INDEX);
	}
	step_along(&f, 2);
	assert_int_equal(asked(&f, 0), 0);
	fixture_finish(&f);
}

/* Its source has stepped already. */
static void test_a_chunk_that_is_ahead_waits(void **state)
{
	(void)state;
	struct fixture f;
	enter(&f);
	fixture_deliver(&f, admit_of(0, 1, 4));
	struct skep_buf ahead = bring(&f, 4, 1, 0);
	assert_null(fixture_ran(&f, SKEP_OP_LOAD));
	assert_false(fixture_released(&f, ahead));
	step_along(&f, 0);
	assert_int_equal(fixture_ran(&f, SKEP_OP_LOAD)->in.slot, ahead.slot);
	fixture_finish(&f);
}

static void test_another_source_keeps_what_is_there(void **state)
{
	(void)state;
	struct fixture f;
	enter(&f);
	fixture_deliver(&f, admit_of(0, 1, 4));
	load(&f, 0, 0);
	fixture_deliver(&f, admit_of(0, 2, 3));
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_FETCH)->to.index, 3);
	assert_int_equal(asked(&f, 0), 2);
	assert_int_equal(asked(&f, 1), 1);
	fixture_deliver(&f, admit_of(0, 1, 4)); /* the old one again */
	assert_int_equal(f.out.count, 0);
	assert_true(fixture_released(&f, bring(&f, 4, 0, 1))); /* nor is what the old source sent of use */
	bring(&f, 3, 0, 1);
	assert_non_null(fixture_ran(&f, SKEP_OP_LOAD));
	fixture_finish(&f);
}

static void test_a_silent_source_is_asked_again(void **state)
{
	(void)state;
	struct fixture f;
	enter(&f);
	fixture_deliver(&f, admit_of(0, 1, 4));
	uint32_t times = 0;
	for (uint32_t i = 0; i < 16; i++) {
		fixture_timer(&f, skep_node_deadline(f.node));
		times += asked(&f, 0) == 0 && asked(&f, 1) == 1;
	}
	assert_int_equal(times, 2); /* after 5 s, and after 10 more */
	fixture_finish(&f);
}

/* The directory counts on it from the moment at which it has entered; REDUCE and the first hop may overtake the ADMIT. */
static void test_a_reduction_may_come_before_the_admission(void **state)
{
	(void)state;
	struct fixture f;
	enter(&f);
	step_along(&f, 7);
	fixture_deliver(&f, admit_of(7, 1, 4));
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_FETCH)->round, 8);
	load(&f, 8, 0);
	fixture_finish(&f);
}

static void test_a_new_life_drops_the_chunks(void **state)
{
	(void)state;
	struct fixture f;
	enter(&f);
	fixture_deliver(&f, admit_of(0, 1, 4));
	struct skep_buf ahead = bring(&f, 4, 1, 0);
	struct skep_message out = peer_news(1, 2, 1, false);
	out.to.epoch = 2;
	fixture_deliver(&f, out);
	assert_true(fixture_released(&f, ahead));
	assert_non_null(fixture_sent(&f, SKEP_MESSAGE_JOIN));
	fixture_finish(&f);
}

/* Nor does it ask the source of the last life, before it is told of one. */
static void test_a_new_life_has_no_source(void **state)
{
	(void)state;
	struct fixture f;
	enter(&f);
	fixture_deliver(&f, admit_of(0, 1, 4));
	struct skep_message out = peer_news(1, 2, 1, false);
	out.to.epoch = 2;
	fixture_deliver(&f, out);
	struct skep_message assign = to_newcomer(SKEP_MESSAGE_ASSIGN, DIRECTORY, 0);
	assign.to.epoch = 3;
	fixture_deliver(&f, assign);
	fixture_done(&f, *fixture_ran(&f, SKEP_OP_ENTER), none, none);
	assert_non_null(fixture_sent(&f, SKEP_MESSAGE_ENTERED));
	struct skep_message message = reduce(1, 1, 0, 2, 4); /* which says that it is let in, and not from where */
	message.to.epoch = 3;
	fixture_deliver(&f, message);
	fixture_timer(&f, skep_node_deadline(f.node));
	assert_null(fixture_sent(&f, SKEP_MESSAGE_FETCH));
	fixture_finish(&f);
}

/* ---- the source ------------------------------------------------------------------------------------------------- */

static struct skep_message fetch_of(uint32_t from, uint32_t round, uint32_t chunk)
{
	struct skep_message fetch = fixture_message(SKEP_MESSAGE_FETCH, from, 1, round);
	fetch.stage = 1;
	fetch.u.state.chunk = chunk;
	return fetch;
}

static void test_a_source_works_between_two_chunks(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 1);
	f.stage[1].state_chunks = 4;
	f.stage[1].state_bytes = 4 * SKEP_STATE_HEADER_BYTES + 1200;
	fixture_deliver(&f, fetch_of(4, 0, 3));
	struct skep_op op = *fixture_ran(&f, SKEP_OP_SAVE);
	assert_int_equal(op.chunk, 3);
	assert_int_equal(op.size, 4);
	fixture_deliver(&f, fetch_of(4, 0, 2));
	fixture_deliver(&f, fetch_of(4, 0, 2)); /* asks again */
	struct skep_message forward = fixture_message(SKEP_MESSAGE_FORWARD, 0, 1, 0);
	forward.payload = fixture_buf(&f);
	fixture_deliver(&f, forward);
	fixture_done(&f, op, fixture_buf(&f), none);
	const struct skep_message *sent = fixture_sent(&f, SKEP_MESSAGE_STATE);
	assert_int_equal(sent->u.state.chunk, 3);
	assert_int_equal(sent->payload_bytes, SKEP_STATE_HEADER_BYTES + 25 * 12);
	op = *fixture_ran(&f, SKEP_OP_FORWARD);
	fixture_done(&f, op, fixture_buf(&f), fixture_buf(&f));
	op = *fixture_ran(&f, SKEP_OP_SAVE);
	assert_int_equal(op.chunk, 2);
	fixture_done(&f, op, fixture_buf(&f), none);
	assert_null(fixture_ran(&f, SKEP_OP_SAVE));
	fixture_finish(&f);
}

/* A chunk that comes back is sent again only while it is of use; else it is saved anew. */
static void test_a_chunk_that_comes_back(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 1);
	struct skep_event event = {.kind = SKEP_EVENT_SEND_FAILED};
	event.u.message = fixture_message(SKEP_MESSAGE_STATE, 1, 4, 0);
	event.u.message.payload = fixture_buf(&f);
	fixture_event(&f, event);
	assert_non_null(fixture_sent(&f, SKEP_MESSAGE_STATE));
	fixture_deliver(&f, reduce(0, 1, 0, 1, 1));
	struct skep_message commit = fixture_message(SKEP_MESSAGE_COMMIT, DIRECTORY, 1, 0);
	commit.attempt = 1;
	fixture_deliver(&f, commit);
	fixture_done(&f, *fixture_ran(&f, SKEP_OP_STEP), none, none);
	fixture_event(&f, event);
	assert_true(fixture_released(&f, event.u.message.payload));
	assert_int_equal(fixture_ran(&f, SKEP_OP_SAVE)->round, 1);
	fixture_finish(&f);
}

/* ---- news ------------------------------------------------------------------------------------------------------- */

/* News that a worker serves may come after the news of its end. */
static void test_the_dead_stay_dead(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 1);
	fixture_deliver(&f, peer_news(5, 3, 2, false));
	fixture_deliver(&f, peer_news(5, 3, 2, true));
	fixture_deliver(&f, peer_news(5, 2, 2, true));
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(bring_through(&f, 0, i).to.index, 2);
	fixture_deliver(&f, peer_news(2, 1, 2, false));
	fixture_deliver(&f, peer_news(5, 4, 2, true)); /* a new life */
	assert_int_equal(bring_through(&f, 0, 4).to.index, 5);
	fixture_finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_state_in_parts_has_no_sum),
		cmocka_unit_test(test_chunks_come_in_several_rounds),
		cmocka_unit_test(test_a_late_chunk_is_asked_for_again),
		cmocka_unit_test(test_what_would_come_too_late_is_not_asked_for),
		cmocka_unit_test(test_a_chunk_that_is_ahead_waits),
		cmocka_unit_test(test_another_source_keeps_what_is_there),
		cmocka_unit_test(test_a_silent_source_is_asked_again),
		cmocka_unit_test(test_a_reduction_may_come_before_the_admission),
		cmocka_unit_test(test_a_new_life_drops_the_chunks),
		cmocka_unit_test(test_a_new_life_has_no_source),
		cmocka_unit_test(test_a_source_works_between_two_chunks),
		cmocka_unit_test(test_a_chunk_that_comes_back),
		cmocka_unit_test(test_the_dead_stay_dead),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
