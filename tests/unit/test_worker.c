/* SPDX-License-Identifier: Apache-2.0
 *
 * test_worker.c - one worker's machine in steady times: worker.c, schedule.c, reduce.c, member.c, event by event.
 */
#include "core/schedule/pipelines.h"
#include "worker_fixture.h"

static void test_forward_backward_counted(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 1);
	skep_time came = f.now;
	struct skep_message sent = bring_through(&f, 0, 3);
	assert_true(sent.to.index == 2 || sent.to.index == 5);
	assert_int_equal(sent.payload_bytes, 64);
	f.now += 5000000;
	fixture_deliver(&f, answer(&f, sent, SKEP_MESSAGE_BACKWARD));
	struct skep_op op = *fixture_ran(&f, SKEP_OP_BACKWARD);
	fixture_done(&f, op, fixture_buf(&f), none);
	const struct skep_note *note = fixture_noted(&f, SKEP_NOTE_COUNTED);
	assert_non_null(note);
	assert_int_equal(note->microbatch, 3);
	const struct skep_message *up = fixture_sent(&f, SKEP_MESSAGE_BACKWARD);
	assert_int_equal(up->to.index, 0);
	assert_true(f.now - came >= 5000000);
	assert_int_equal(up->u.backward.held_ns, f.now - came);
	assert_true(fixture_released(&f, op.in) && fixture_released(&f, op.stash) && fixture_released(&f, op.gradient));
	fixture_finish(&f);
}

static void test_duplicates_are_ignored(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 1);
	struct skep_message sent = bring_through(&f, 0, 3);
	struct skep_message again = fixture_message(SKEP_MESSAGE_FORWARD, 0, 1, 0);
	again.microbatch = 3;
	again.payload = fixture_buf(&f);
	fixture_deliver(&f, again);
	assert_true(fixture_released(&f, again.payload));
	assert_null(fixture_find(&f, SKEP_ACTION_RUN, 0, 0));
	struct skep_message back = answer(&f, sent, SKEP_MESSAGE_BACKWARD);
	fixture_deliver(&f, back);
	fixture_done(&f, *fixture_ran(&f, SKEP_OP_BACKWARD), fixture_buf(&f), none);
	back.payload = fixture_buf(&f);
	fixture_deliver(&f, back);
	assert_true(fixture_released(&f, back.payload));
	assert_null(fixture_find(&f, SKEP_ACTION_RUN, 0, 0));
	fixture_deliver(&f, again); /* after all is done: seen is seen */
	assert_null(fixture_find(&f, SKEP_ACTION_RUN, 0, 0));
	fixture_finish(&f);
}

/* The same of a worker with two virtual stages, 1 and 3 of four: neither a number nor a virtual stage beyond the last one. */
static void test_no_virtual_stage_beyond_the_last_one(void **state)
{
	static const uint64_t vstage_bytes[] = {8, 16, 32, 0};
	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		struct fixture f;
		fixture_init(&f, 4, 2, 1);
		f.plan.pipeline = SKEP_PIPELINE_INTERLEAVED;
		f.plan.wiring = SKEP_WIRING_FIXED;
		f.plan.model_chunks = 2;
		f.plan.vstage_bytes = vstage_bytes;
		f.plan.microbatches = 8;
		f.plan.in_flight = skep_plan_fixed_in_flight(&f.plan);
		fixture_make(&f, 1);
		fixture_start(&f);
		struct skep_message forward = fixture_message(SKEP_MESSAGE_FORWARD, 0, 1, 0);
		forward.stage = i == 1 ? 4 : 0;
		forward.microbatch = i == 2 ? skep_plan_numbers(&f.plan) : 0;
		forward.payload = fixture_buf(&f);
		fixture_deliver(&f, forward);
		assert_int_equal(fixture_released(&f, forward.payload), i > 0);
		fixture_finish(&f);
	}
}

static void test_gradient_only_from_the_one_it_was_sent_to(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 1);
	struct skep_message sent = bring_through(&f, 0, 3), back = answer(&f, sent, SKEP_MESSAGE_BACKWARD);
	back.from.index = sent.to.index == 2 ? 5 : 2;
	fixture_deliver(&f, back);
	assert_true(fixture_released(&f, back.payload));
	assert_null(fixture_find(&f, SKEP_ACTION_RUN, 0, 0));
	fixture_finish(&f);
}

static void test_abandon_travels_back(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 1);
	struct skep_message sent = bring_through(&f, 0, 3);
	fixture_deliver(&f, answer(&f, sent, SKEP_MESSAGE_ABANDON));
	const struct skep_message *up = fixture_sent(&f, SKEP_MESSAGE_ABANDON);
	assert_non_null(up);
	assert_int_equal(up->to.index, 0);
	assert_int_equal(up->microbatch, 3);
	assert_non_null(fixture_find(&f, SKEP_ACTION_RELEASE, 0, 1)); /* input and stash */
	fixture_finish(&f);
}

static void test_gone_next_is_given_up_and_not_chosen(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 1);
	struct skep_message sent = bring_through(&f, 0, 3);
	fixture_deliver(&f, peer_news(sent.to.index, 1, 2, false));
	assert_non_null(fixture_sent(&f, SKEP_MESSAGE_ABANDON));
	for (uint32_t i = 10; i < 15; i++)
		assert_int_not_equal(bring_through(&f, 0, i).to.index, sent.to.index);
	fixture_finish(&f);
}

/* Six fit: two in flight for each of the three workers that the first stage may come to have. */
static void test_a_full_table_gives_up_what_comes(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 1);
	for (uint32_t i = 0; i < 6; i++)
		bring_through(&f, 0, i);
	struct skep_message forward = fixture_message(SKEP_MESSAGE_FORWARD, 0, 1, 0);
	forward.microbatch = 6;
	forward.payload = fixture_buf(&f);
	fixture_deliver(&f, forward);
	assert_non_null(fixture_noted(&f, SKEP_NOTE_OVERFLOW));
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_ABANDON)->to.index, 0);
	assert_true(fixture_released(&f, forward.payload));
	fixture_finish(&f);
}

/* A round has so many numbers: what another process says beyond them is put aside before anything is looked up by it. */
static void test_no_microbatch_beyond_the_last_number(void **state)
{
	(void)state;
	for (uint32_t beyond = 0; beyond < 2; beyond++) {
		struct fixture f;
		begin(&f, 1);
		struct skep_message forward = fixture_message(SKEP_MESSAGE_FORWARD, 0, 1, 0);
		forward.microbatch = skep_plan_numbers(&f.plan) - 1 + beyond;
		forward.payload = fixture_buf(&f);
		fixture_deliver(&f, forward);
		assert_int_equal(fixture_ran(&f, SKEP_OP_FORWARD) == NULL, beyond);
		assert_int_equal(fixture_released(&f, forward.payload), beyond);
		fixture_finish(&f);
	}
}

static void test_waits_when_none_serves_the_next_stage(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 1);
	fixture_deliver(&f, peer_news(2, 1, 2, false));
	fixture_deliver(&f, peer_news(5, 1, 2, false));
	struct skep_message forward = fixture_message(SKEP_MESSAGE_FORWARD, 0, 1, 0);
	forward.payload = fixture_buf(&f);
	fixture_deliver(&f, forward);
	fixture_done(&f, *fixture_ran(&f, SKEP_OP_FORWARD), fixture_buf(&f), fixture_buf(&f));
	assert_null(fixture_sent(&f, SKEP_MESSAGE_FORWARD));
	fixture_deliver(&f, peer_news(2, 2, 2, true));
	const struct skep_message *sent = fixture_sent(&f, SKEP_MESSAGE_FORWARD);
	assert_non_null(sent);
	assert_int_equal(sent->to.index, 2);
	assert_int_equal(sent->to.epoch, 2);
	fixture_finish(&f);
}

static void test_gradients_run_before_activations(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 1);
	struct skep_message sent = bring_through(&f, 0, 1), forward = fixture_message(SKEP_MESSAGE_FORWARD, 0, 1, 0);
	struct skep_op running = {0};
	for (uint32_t i = 2; i < 5; i++) {
		forward.microbatch = i;
		forward.payload = fixture_buf(&f);
		fixture_deliver(&f, forward);
		if (fixture_ran(&f, SKEP_OP_FORWARD))
			running = *fixture_ran(&f, SKEP_OP_FORWARD);
	}
	fixture_deliver(&f, answer(&f, sent, SKEP_MESSAGE_BACKWARD));
	assert_null(fixture_find(&f, SKEP_ACTION_RUN, 0, 0)); /* one operation at a time */
	fixture_done(&f, running, fixture_buf(&f), fixture_buf(&f));
	assert_non_null(fixture_ran(&f, SKEP_OP_BACKWARD));
	fixture_done(&f, *fixture_ran(&f, SKEP_OP_BACKWARD), fixture_buf(&f), none);
	assert_int_equal(fixture_ran(&f, SKEP_OP_FORWARD)->microbatch, 3); /* then the oldest */
	fixture_finish(&f);
}

static void test_owner_keeps_to_in_flight(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 0);
	struct skep_message grant = fixture_message(SKEP_MESSAGE_GRANT, DIRECTORY, 0, 0);
	grant.u.grant.count = 4;
	grant.u.grant.in_flight = f.plan.in_flight;
	fixture_deliver(&f, grant);
	struct skep_op op = *fixture_ran(&f, SKEP_OP_FORWARD);
	fixture_done(&f, op, fixture_buf(&f), fixture_buf(&f));
	struct skep_message first = *fixture_sent(&f, SKEP_MESSAGE_FORWARD);
	op = *fixture_ran(&f, SKEP_OP_FORWARD);
	assert_int_equal(op.microbatch, 1);
	fixture_done(&f, op, fixture_buf(&f), fixture_buf(&f));
	assert_null(fixture_ran(&f, SKEP_OP_FORWARD)); /* two in flight is the limit */
	fixture_deliver(&f, grant);                    /* a duplicate */
	assert_null(fixture_find(&f, SKEP_ACTION_RUN, 0, 0));
	struct skep_message back = fixture_message(SKEP_MESSAGE_BACKWARD, first.to.index, 0, 0);
	back.payload = fixture_buf(&f);
	fixture_deliver(&f, back);
	fixture_done(&f, *fixture_ran(&f, SKEP_OP_BACKWARD), none, none);
	const struct skep_message *finished = fixture_sent(&f, SKEP_MESSAGE_FINISHED);
	assert_true(finished && finished->u.finished.ok && finished->to.index == DIRECTORY);
	assert_int_equal(fixture_ran(&f, SKEP_OP_FORWARD)->microbatch, 2);
	fixture_finish(&f);
}

static struct skep_message chunk(struct fixture *f, uint32_t attempt, uint32_t number, uint32_t hop)
{
	struct skep_message message = fixture_message(SKEP_MESSAGE_CHUNK, 4, 1, 0);
	message.attempt = attempt;
	message.u.chunk.chunk = number;
	message.u.chunk.hop = hop;
	message.payload = fixture_buf(f);
	return message;
}

/* Rank 0 of 2: takes its chunk, adds and stores what comes as hop 1, stores hop 2. */
static void finish_reduction(struct fixture *f, uint32_t attempt, struct skep_op take)
{
	fixture_done(f, take, fixture_buf(f), none);
	assert_int_equal(fixture_sent(f, SKEP_MESSAGE_CHUNK)->u.chunk.hop, 1);
	fixture_deliver(f, chunk(f, attempt, 1, 1));
	struct skep_op op = *fixture_ran(f, SKEP_OP_ADD_STORE);
	fixture_done(f, op, op.in, none);
	assert_int_equal(fixture_sent(f, SKEP_MESSAGE_CHUNK)->u.chunk.hop, 2);
	fixture_deliver(f, chunk(f, attempt, 0, 2));
	op = *fixture_ran(f, SKEP_OP_STORE);
	fixture_done(f, op, op.in, none);
	assert_non_null(fixture_sent(f, SKEP_MESSAGE_TALLY));
}

static void test_round_ends_with_a_step(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 1);
	struct skep_message sent = bring_through(&f, 0, 3);
	fixture_deliver(&f, answer(&f, sent, SKEP_MESSAGE_BACKWARD));
	fixture_done(&f, *fixture_ran(&f, SKEP_OP_BACKWARD), fixture_buf(&f), none);
	fixture_deliver(&f, reduce(0, 1, 0, 2, 4));
	finish_reduction(&f, 1, *fixture_ran(&f, SKEP_OP_COPY_GRAD));
	const struct skep_message *tally = fixture_sent(&f, SKEP_MESSAGE_TALLY);
	assert_int_equal(tally->u.tally.count, 1);
	assert_int_equal(tally->u.tally.used, 1);
	assert_int_equal(tally->u.tally.base + tally->u.tally.offset[0], 3);
	struct skep_message commit = fixture_message(SKEP_MESSAGE_COMMIT, DIRECTORY, 1, 0);
	commit.attempt = 1;
	commit.u.commit.microbatches = 2;
	fixture_deliver(&f, commit);
	struct skep_op step = *fixture_ran(&f, SKEP_OP_STEP);
	assert_int_equal(step.microbatches, 2);
	fixture_deliver(&f, commit); /* a duplicate */
	assert_null(fixture_find(&f, SKEP_ACTION_RUN, 0, 0));
	fixture_done(&f, step, none, none);
	bring_through(&f, 1, 0); /* the next round is open */
	fixture_finish(&f);
}

static void test_work_after_the_seal_is_too_late(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 1);
	struct skep_message sent = bring_through(&f, 0, 3), back = answer(&f, sent, SKEP_MESSAGE_BACKWARD);
	fixture_deliver(&f, reduce(0, 1, 0, 2, 4));
	fixture_deliver(&f, back);
	assert_true(fixture_released(&f, back.payload));
	assert_null(fixture_ran(&f, SKEP_OP_BACKWARD));
	fixture_finish(&f);
}

/* REDUCE of size 0: the worker tells, drops what it holds, and is open for work that carries this attempt. */
static void test_a_count_without_a_sum(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 1);
	struct skep_message counted = bring_through(&f, 0, 1), held = bring_through(&f, 0, 2);
	fixture_deliver(&f, answer(&f, counted, SKEP_MESSAGE_BACKWARD));
	fixture_done(&f, *fixture_ran(&f, SKEP_OP_BACKWARD), fixture_buf(&f), none);
	fixture_deliver(&f, reduce(0, 1, 0, 0, 1));
	const struct skep_message *tally = fixture_sent(&f, SKEP_MESSAGE_TALLY);
	assert_non_null(tally);
	assert_int_equal(tally->attempt, 1);
	assert_int_equal(tally->u.tally.count, 1);
	assert_null(fixture_ran(&f, SKEP_OP_COPY_GRAD));
	fixture_deliver(&f, answer(&f, held, SKEP_MESSAGE_BACKWARD)); /* of the pass before: too late */
	assert_null(fixture_ran(&f, SKEP_OP_BACKWARD));

	struct skep_message again = fixture_message(SKEP_MESSAGE_FORWARD, 0, 1, 0);
	again.microbatch = 2;
	again.payload = fixture_buf(&f);
	fixture_deliver(&f, again); /* without the attempt it is of the pass before */
	assert_null(fixture_ran(&f, SKEP_OP_FORWARD));
	again.attempt = 1;
	again.span = (struct skep_span){2, 2};
	again.payload = fixture_buf(&f);
	fixture_deliver(&f, again);
	fixture_done(&f, *fixture_ran(&f, SKEP_OP_FORWARD), fixture_buf(&f), fixture_buf(&f));
	struct skep_message sent = *fixture_sent(&f, SKEP_MESSAGE_FORWARD);
	assert_int_equal(sent.attempt, 1);
	assert_int_equal(sent.span.first, 2);
	struct skep_message back = answer(&f, sent, SKEP_MESSAGE_BACKWARD);
	back.attempt = 1;
	fixture_deliver(&f, back);
	assert_true(fixture_ran(&f, SKEP_OP_BACKWARD)->uncounted);
	fixture_done(&f, *fixture_ran(&f, SKEP_OP_BACKWARD), fixture_buf(&f), none);
	assert_null(fixture_noted(&f, SKEP_NOTE_COUNTED));
	assert_non_null(fixture_sent(&f, SKEP_MESSAGE_BACKWARD));
	fixture_deliver(&f, reduce(0, 2, 0, 2, 4));
	assert_non_null(fixture_ran(&f, SKEP_OP_COPY_GRAD));
	fixture_finish(&f);
}

static void test_a_running_backward_is_still_counted(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 1);
	struct skep_message sent = bring_through(&f, 0, 3);
	fixture_deliver(&f, answer(&f, sent, SKEP_MESSAGE_BACKWARD));
	struct skep_op backward = *fixture_ran(&f, SKEP_OP_BACKWARD);
	fixture_deliver(&f, reduce(0, 1, 0, 2, 4));
	assert_null(fixture_ran(&f, SKEP_OP_COPY_GRAD));
	fixture_done(&f, backward, fixture_buf(&f), none);
	assert_non_null(fixture_noted(&f, SKEP_NOTE_COUNTED));
	assert_non_null(fixture_ran(&f, SKEP_OP_COPY_GRAD));
	fixture_finish(&f);
}

static void test_a_new_attempt_voids_the_old_one(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 1);
	fixture_deliver(&f, reduce(0, 1, 0, 2, 4));
	struct skep_op take = *fixture_ran(&f, SKEP_OP_COPY_GRAD);
	struct skep_message early = chunk(&f, 2, 1, 1); /* of the next attempt, before its REDUCE */
	fixture_deliver(&f, early);
	assert_false(fixture_released(&f, early.payload));
	fixture_deliver(&f, reduce(0, 2, 0, 2, 4));
	assert_int_equal(fixture_ran(&f, SKEP_OP_ADD_STORE)->in.slot, early.payload.slot);
	assert_int_equal(fixture_ran(&f, SKEP_OP_COPY_GRAD)->attempt, 2);
	struct skep_buf stale = fixture_buf(&f);
	fixture_done(&f, take, stale, none);
	assert_true(fixture_released(&f, stale));
	assert_null(fixture_sent(&f, SKEP_MESSAGE_CHUNK));
	struct skep_message late = chunk(&f, 1, 1, 1);
	fixture_deliver(&f, late);
	assert_true(fixture_released(&f, late.payload));
	fixture_deliver(&f, reduce(0, 1, 0, 2, 4)); /* the old one again */
	assert_null(fixture_ran(&f, SKEP_OP_COPY_GRAD));
	fixture_finish(&f);
}

/* It would be dropped when the sum begins, and take memory until then. */
static void test_a_chunk_of_a_void_attempt_is_not_kept(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 1);
	struct skep_message early = chunk(&f, 2, 1, 1), late = chunk(&f, 1, 1, 1);
	fixture_deliver(&f, early);
	assert_false(fixture_released(&f, early.payload));
	fixture_deliver(&f, late);
	assert_true(fixture_released(&f, late.payload));
	fixture_deliver(&f, reduce(0, 2, 0, 2, 4));
	assert_int_equal(fixture_ran(&f, SKEP_OP_ADD_STORE)->in.slot, early.payload.slot);
	fixture_finish(&f);
}

static void test_fenced_worker_forgets_and_joins_again(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 1);
	bring_through(&f, 0, 3);
	fixture_deliver(&f, peer_news(1, 1, 1, false));
	assert_non_null(fixture_find(&f, SKEP_ACTION_RELEASE, 0, 1));
	assert_non_null(fixture_sent(&f, SKEP_MESSAGE_JOIN));
	assert_int_equal(skep_node_stage(f.node), SKEP_NO_STAGE);
	struct skep_message assign = fixture_message(SKEP_MESSAGE_ASSIGN, DIRECTORY, 1, 0);
	assign.to.epoch = 2;
	assign.stage = 2;
	fixture_deliver(&f, assign);
	assert_int_equal(skep_node_epoch(f.node), 2);
	fixture_deliver(&f, assign); /* a duplicate */
	assert_int_equal(f.out.count, 0);
	fixture_done(&f, (struct skep_op){.id = 2, .kind = SKEP_OP_ENTER, .stage = 2}, none, none);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_ENTERED)->from.epoch, 2);
	struct skep_message admit = fixture_message(SKEP_MESSAGE_ADMIT, DIRECTORY, 1, 4);
	admit.to.epoch = 2;
	admit.attempt = 1;
	admit.u.admit.source = (struct skep_peer){5, 1};
	fixture_deliver(&f, admit);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_FETCH)->to.index, 5);
	struct skep_message got = fixture_message(SKEP_MESSAGE_STATE, 5, 1, 4);
	got.to.epoch = 2;
	got.payload = fixture_buf(&f);
	fixture_deliver(&f, got);
	struct skep_op load = *fixture_ran(&f, SKEP_OP_LOAD);
	fixture_done(&f, load, none, none);
	assert_true(fixture_released(&f, got.payload));
	const struct skep_message *ready = fixture_sent(&f, SKEP_MESSAGE_READY);
	assert_int_equal(ready->round, 4);
	assert_int_equal(ready->from.epoch, 2);
	fixture_finish(&f);
}

static void test_source_saves_at_the_right_version(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 1);
	struct skep_message fetch = fixture_message(SKEP_MESSAGE_FETCH, 4, 1, 1); /* round 1: after our next step */
	fetch.from.epoch = 3;
	fixture_deliver(&f, fetch);
	assert_null(fixture_ran(&f, SKEP_OP_SAVE));
	fetch.from.epoch = 4;
	fetch.round = 0;
	fixture_deliver(&f, fetch);
	struct skep_op save = *fixture_ran(&f, SKEP_OP_SAVE);
	struct skep_buf image = fixture_buf(&f);
	fixture_done(&f, save, image, none);
	const struct skep_message *sent = fixture_sent(&f, SKEP_MESSAGE_STATE);
	assert_int_equal(sent->to.index, 4);
	assert_int_equal(sent->to.epoch, 4);
	assert_int_equal(sent->payload.slot, image.slot);
	assert_int_equal(sent->payload_bytes, 1200);
	fixture_finish(&f);
}

static void test_heartbeat_only_when_silent(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 1);
	fixture_timer(&f, skep_node_deadline(f.node));
	assert_non_null(fixture_sent(&f, SKEP_MESSAGE_HEARTBEAT));
	f.now += SECOND_NS * 9 / 10; /* a tally goes to the directory ... */
	fixture_deliver(&f, reduce(0, 1, 0, 1, 1));
	assert_non_null(fixture_sent(&f, SKEP_MESSAGE_TALLY));
	fixture_timer(&f, skep_node_deadline(f.node)); /* ... shortly before the next heartbeat is due */
	assert_null(fixture_sent(&f, SKEP_MESSAGE_HEARTBEAT));
	fixture_finish(&f);
}

static void test_asks_about_the_long_silent(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 1);
	struct skep_message sent = bring_through(&f, 0, 3);
	for (uint32_t i = 0; i < 4; i++) {
		fixture_timer(&f, skep_node_deadline(f.node));
		assert_null(fixture_sent(&f, SKEP_MESSAGE_SUSPECT));
	}
	fixture_timer(&f, skep_node_deadline(f.node));
	const struct skep_message *ask = fixture_sent(&f, SKEP_MESSAGE_SUSPECT);
	assert_non_null(ask);
	assert_int_equal(ask->u.peer.who.index, sent.to.index);
	assert_true(ask->u.peer.alive); /* it only asks */
	fixture_finish(&f);
}

static void test_returned_message_goes_again_while_it_is_of_use(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 1);
	struct skep_message sent = bring_through(&f, 0, 3);
	struct skep_event event = {.kind = SKEP_EVENT_SEND_FAILED};
	event.u.message = sent;
	fixture_event(&f, event);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_FORWARD)->payload.slot, sent.payload.slot);
	fixture_deliver(&f, answer(&f, sent, SKEP_MESSAGE_ABANDON));
	fixture_event(&f, event);
	assert_null(fixture_sent(&f, SKEP_MESSAGE_FORWARD));
	assert_true(fixture_released(&f, sent.payload));
	fixture_finish(&f);
}

static void test_stop_after_the_last_step(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 1);
	fixture_deliver(&f, reduce(0, 1, 0, 1, 1));
	struct skep_message stop = fixture_message(SKEP_MESSAGE_STOP, DIRECTORY, 1, 1); /* it overtakes the COMMIT */
	stop.u.stop.ok = true;
	fixture_deliver(&f, stop);
	assert_int_equal(skep_node_outcome(f.node), SKEP_RUNNING);
	struct skep_message commit = fixture_message(SKEP_MESSAGE_COMMIT, DIRECTORY, 1, 0);
	commit.attempt = 1;
	fixture_deliver(&f, commit);
	fixture_done(&f, *fixture_ran(&f, SKEP_OP_STEP), none, none);
	assert_int_equal(skep_node_outcome(f.node), SKEP_DONE);
	assert_true(skep_node_deadline(f.node) == SKEP_TIME_NEVER);
	fixture_finish(&f);
}

/* Without a flush several rounds are open; a pipeline that is told to give up all of them has none left, and takes no later
 * one in before it has caught up. */
static void test_a_drained_window_is_empty(void **state)
{
	(void)state;
	for (uint32_t drained = 0; drained < 2; drained++) {
		struct fixture f;
		fixture_init(&f, 6, 3, 1);
		f.plan.pipeline = SKEP_PIPELINE_PIPEDREAM;
		f.plan.wiring = SKEP_WIRING_FIXED;
		f.plan.microbatches = 2;
		f.plan.rounds = 40;
		f.plan.in_flight = skep_plan_held(&f.plan, 0);
		f.plan.liveness.wait_for_join_ns = SECOND_NS;
		fixture_make(&f, 1);
		fixture_start(&f);
		uint32_t last = skep_plan_window(&f.plan);
		fixture_deliver(&f, fixture_message(SKEP_MESSAGE_DRAIN, DIRECTORY, 1, last - 1 + drained));
		for (uint32_t round = last - 1; round <= last + 1; round++) {
			struct skep_message forward = fixture_message(SKEP_MESSAGE_FORWARD, 0, 1, round);
			forward.payload = fixture_buf(&f);
			fixture_deliver(&f, forward);
			assert_int_equal(fixture_released(&f, forward.payload), drained || round != last);
		}
		fixture_finish(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forward_backward_counted),
		cmocka_unit_test(test_duplicates_are_ignored),
		cmocka_unit_test(test_no_microbatch_beyond_the_last_number),
		cmocka_unit_test(test_no_virtual_stage_beyond_the_last_one),
		cmocka_unit_test(test_gradient_only_from_the_one_it_was_sent_to),
		cmocka_unit_test(test_abandon_travels_back),
		cmocka_unit_test(test_gone_next_is_given_up_and_not_chosen),
		cmocka_unit_test(test_a_full_table_gives_up_what_comes),
		cmocka_unit_test(test_waits_when_none_serves_the_next_stage),
		cmocka_unit_test(test_gradients_run_before_activations),
		cmocka_unit_test(test_owner_keeps_to_in_flight),
		cmocka_unit_test(test_round_ends_with_a_step),
		cmocka_unit_test(test_work_after_the_seal_is_too_late),
		cmocka_unit_test(test_a_count_without_a_sum),
		cmocka_unit_test(test_a_running_backward_is_still_counted),
		cmocka_unit_test(test_a_new_attempt_voids_the_old_one),
		cmocka_unit_test(test_a_chunk_of_a_void_attempt_is_not_kept),
		cmocka_unit_test(test_fenced_worker_forgets_and_joins_again),
		cmocka_unit_test(test_source_saves_at_the_right_version),
		cmocka_unit_test(test_heartbeat_only_when_silent),
		cmocka_unit_test(test_asks_about_the_long_silent),
		cmocka_unit_test(test_returned_message_goes_again_while_it_is_of_use),
		cmocka_unit_test(test_stop_after_the_last_step),
		cmocka_unit_test(test_a_drained_window_is_empty),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
