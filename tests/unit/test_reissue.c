/* SPDX-License-Identifier: Apache-2.0
 *
 * test_reissue.c - a time-out that chooses again without a ban: who asks, who gives back, what the wiring makes of it.
 */
#include "worker_fixture.h"

#include "core/route/wiring.h"

static void begin_patient(struct fixture *f, uint32_t index, enum skep_routing routing)
{
	fixture_init(f, 6, 3, index);
	free(f->node);
	free(f->out.item);
	f->plan.routing = routing;
	f->plan.wiring = SKEP_WIRING_THROUGHPUT;
	f->plan.liveness.reissue_after_ns = SECOND_NS / 4;
	f->plan.in_flight = 8;
	f->node =
		skep_node_init(aligned_alloc(16, (skep_node_size(&f->plan, index) + 15) / 16 * 16), &f->plan, index, 1);
	f->out.capacity = skep_actions_limit(&f->plan);
	f->out.item = calloc(f->out.capacity, sizeof *f->out.item);
	fixture_start(f);
}

static struct skep_message cancelled(struct skep_message cancel, bool dropped)
{
	struct skep_message reply = cancel;
	reply.kind = SKEP_MESSAGE_CANCELLED;
	reply.from = cancel.to;
	reply.to = cancel.from;
	reply.u.cancelled.dropped = dropped;
	return reply;
}

static struct skep_message time_out(struct fixture *f)
{
	fixture_timer(f, skep_node_deadline(f->node));
	const struct skep_message *cancel = fixture_sent(f, SKEP_MESSAGE_CANCEL);
	assert_non_null(cancel);
	return *cancel;
}

/* ---- who asks ------------------------------------------------------------------------------------------------- */

static void test_what_is_given_back_goes_to_another(void **state)
{
	(void)state;
	struct fixture f;
	begin_patient(&f, 1, SKEP_ROUTING_PEER);
	struct skep_message sent = bring_through(&f, 0, 3), cancel = time_out(&f);
	assert_int_equal(f.now, SECOND_NS / 4);
	assert_int_equal(cancel.to.index, sent.to.index);
	assert_int_equal(cancel.microbatch, 3);
	fixture_deliver(&f, cancelled(cancel, true));
	struct skep_op op = *fixture_ran(&f, SKEP_OP_FORWARD); /* the activations went with the message */
	assert_int_equal(op.microbatch, 3);
	assert_non_null(fixture_find(&f, SKEP_ACTION_RELEASE, 0, 0)); /* the stash of the first pass */
	fixture_done(&f, op, fixture_buf(&f), fixture_buf(&f));
	struct skep_message again = *fixture_sent(&f, SKEP_MESSAGE_FORWARD);
	assert_int_equal(again.to.index, 7 - sent.to.index); /* 2 and 5 serve the next stage */
	fixture_deliver(&f, cancelled(cancel, true));        /* a duplicate */
	assert_int_equal(f.out.count, 0);
	fixture_timer(&f, f.now + SECOND_NS / 4); /* taken back once: this one is waited for */
	assert_null(fixture_sent(&f, SKEP_MESSAGE_CANCEL));
	fixture_deliver(&f, answer(&f, again, SKEP_MESSAGE_BACKWARD));
	assert_non_null(fixture_ran(&f, SKEP_OP_BACKWARD));
	fixture_finish(&f);
}

static void test_what_is_kept_is_waited_for(void **state)
{
	(void)state;
	struct fixture f;
	begin_patient(&f, 1, SKEP_ROUTING_PEER);
	struct skep_message sent = bring_through(&f, 0, 3);
	fixture_deliver(&f, cancelled(time_out(&f), false));
	assert_int_equal(f.out.count, 0);
	for (int i = 0; i < 3; i++) { /* no worker is asked twice for what it keeps */
		fixture_timer(&f, f.now + SECOND_NS / 4);
		assert_null(fixture_sent(&f, SKEP_MESSAGE_CANCEL));
	}
	fixture_deliver(&f, answer(&f, sent, SKEP_MESSAGE_BACKWARD));
	assert_non_null(fixture_ran(&f, SKEP_OP_BACKWARD));
	fixture_finish(&f);
}

static void test_a_silent_one_is_asked_again_and_then_given_up(void **state)
{
	(void)state;
	struct fixture f;
	begin_patient(&f, 1, SKEP_ROUTING_PEER);
	struct skep_message sent = bring_through(&f, 0, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(time_out(&f).to.index, sent.to.index);
	assert_null(fixture_sent(&f, SKEP_MESSAGE_FORWARD));
	fixture_deliver(&f, peer_news(sent.to.index, 1, 2, false)); /* only fencing frees what it has */
	assert_non_null(fixture_sent(&f, SKEP_MESSAGE_ABANDON));
	fixture_finish(&f);
}

static void test_none_is_asked_if_none_else_is_there(void **state)
{
	(void)state;
	struct fixture f;
	begin_patient(&f, 1, SKEP_ROUTING_PEER);
	fixture_deliver(&f, peer_news(5, 1, 2, false));
	bring_through(&f, 0, 3);
	fixture_timer(&f, SECOND_NS / 4);
	assert_null(fixture_sent(&f, SKEP_MESSAGE_CANCEL));
	fixture_finish(&f);
}

static void test_without_another_one_it_is_given_up(void **state)
{
	(void)state;
	struct fixture f;
	begin_patient(&f, 1, SKEP_ROUTING_PEER);
	struct skep_message sent = bring_through(&f, 0, 3), cancel = time_out(&f);
	fixture_deliver(&f, peer_news(7 - sent.to.index, 1, 2, false));
	fixture_deliver(&f, cancelled(cancel, true));
	fixture_done(&f, *fixture_ran(&f, SKEP_OP_FORWARD), fixture_buf(&f), fixture_buf(&f));
	assert_null(fixture_sent(&f, SKEP_MESSAGE_FORWARD)); /* who dropped it ignores it from then on */
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_ABANDON)->to.index, 0);
	fixture_finish(&f);
}

/* A trainer that has done the first stage of one microbatch. */
static void begin_owner(struct fixture *f)
{
	begin_patient(f, 0, SKEP_ROUTING_TRAINER);
	struct skep_message grant = fixture_message(SKEP_MESSAGE_GRANT, DIRECTORY, 0, 0);
	grant.u.grant.count = 1;
	grant.u.grant.in_flight = f->plan.in_flight;
	fixture_deliver(f, grant);
	fixture_done(f, *fixture_ran(f, SKEP_OP_FORWARD), fixture_buf(f), fixture_buf(f));
}

static void test_an_owner_sends_what_it_kept(void **state)
{
	(void)state;
	struct fixture f;
	begin_owner(&f);
	for (uint16_t stage = 1; stage < 3; stage++) { /* in the middle, and the last one */
		struct skep_message sent = *fixture_sent(&f, SKEP_MESSAGE_FORWARD);
		fixture_deliver(&f, cancelled(time_out(&f), true));
		assert_null(fixture_find(&f, SKEP_ACTION_RUN, 0, 0));
		struct skep_message again = *fixture_sent(&f, SKEP_MESSAGE_FORWARD);
		assert_int_not_equal(again.to.index, sent.to.index);
		assert_int_equal(again.to.index % 3, stage);
		assert_int_equal(again.payload.slot, sent.payload.slot);
		struct skep_message reply =
			fixture_message(stage == 1 ? SKEP_MESSAGE_OUTPUT : SKEP_MESSAGE_BACKWARD, again.to.index, 0, 0);
		reply.stage = stage;
		reply.payload = fixture_buf(&f);
		fixture_deliver(&f, reply);
		if (stage == 2)
			assert_true(fixture_released(&f, again.payload)); /* kept for nothing */
	}
	assert_non_null(fixture_sent(&f, SKEP_MESSAGE_INPUT));
	fixture_timer(&f, f.now + SECOND_NS / 4); /* a gradient is not asked back */
	assert_null(fixture_sent(&f, SKEP_MESSAGE_CANCEL));
	fixture_finish(&f);
}

/* Of who is to say what came out, and of no other stage. */
static void test_an_owner_takes_what_it_waits_for(void **state)
{
	(void)state;
	struct fixture f;
	begin_owner(&f);
	for (uint16_t stage = 1; stage < 3; stage++) {
		const uint32_t to = fixture_sent(&f, SKEP_MESSAGE_FORWARD)->to.index;
		const int wanted = stage == 1 ? SKEP_MESSAGE_OUTPUT : SKEP_MESSAGE_BACKWARD;
		const int other = stage == 1 ? SKEP_MESSAGE_BACKWARD : SKEP_MESSAGE_OUTPUT;
		struct skep_message reply = fixture_message(other, to, 0, 0);
		reply.stage = stage;
		reply.payload = fixture_buf(&f);
		fixture_deliver(&f, reply);
		assert_true(fixture_released(&f, reply.payload));
		reply = fixture_message(wanted, to, 0, 0);
		reply.stage = 3 - stage;
		reply.payload = fixture_buf(&f);
		fixture_deliver(&f, reply);
		assert_true(fixture_released(&f, reply.payload));
		assert_null(fixture_find(&f, SKEP_ACTION_SEND, 0, 0));
		reply.stage = stage;
		reply.payload = fixture_buf(&f);
		fixture_deliver(&f, reply);
		assert_false(fixture_released(&f, reply.payload));
	}
	assert_non_null(fixture_sent(&f, SKEP_MESSAGE_INPUT));
	fixture_finish(&f);
}

static void test_off_is_off(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 1);
	bring_through(&f, 0, 3);
	assert_int_equal(skep_node_deadline(f.node), SECOND_NS);
	for (int i = 0; i < 10; i++) {
		fixture_timer(&f, f.now + SECOND_NS);
		assert_null(fixture_sent(&f, SKEP_MESSAGE_CANCEL));
	}
	fixture_finish(&f);
}

/* ---- who gives back ------------------------------------------------------------------------------------------- */

static struct skep_message work_for(struct fixture *f, enum skep_message_kind kind, uint32_t microbatch)
{
	struct skep_message message = fixture_message(kind, 0, 1, 0);
	message.microbatch = microbatch;
	if (kind == SKEP_MESSAGE_FORWARD)
		message.payload = fixture_buf(f);
	return message;
}

/* Asks; does the worker drop it? */
static bool drops(struct fixture *f, uint32_t microbatch)
{
	fixture_deliver(f, work_for(f, SKEP_MESSAGE_CANCEL, microbatch));
	const struct skep_message *reply = fixture_sent(f, SKEP_MESSAGE_CANCELLED);
	assert_non_null(reply);
	assert_int_equal(reply->to.index, 0);
	assert_int_equal(reply->microbatch, microbatch);
	return reply->u.cancelled.dropped;
}

static void test_an_overloaded_one_gets_its_queue_relieved(void **state)
{
	(void)state;
	struct fixture f;
	struct skep_message forward[5];
	begin_patient(&f, 1, SKEP_ROUTING_PEER);
	for (uint32_t i = 0; i < 5; i++) {
		forward[i] = work_for(&f, SKEP_MESSAGE_FORWARD, i);
		fixture_deliver(&f, forward[i]);
	}
	struct skep_op op = {.id = 1, .kind = SKEP_OP_FORWARD, .stage = 1, .in = forward[0].payload};
	assert_false(drops(&f, 0)); /* on the device */
	for (uint32_t i = 1; i < 4; i++) {
		assert_true(drops(&f, i));
		assert_true(fixture_released(&f, forward[i].payload));
		assert_false(drops(&f, i)); /* said once; the first word counts */
	}
	fixture_done(&f, op, fixture_buf(&f), fixture_buf(&f));
	assert_int_equal(fixture_ran(&f, SKEP_OP_FORWARD)->microbatch, 4);
	assert_false(drops(&f, 0));        /* passed on */
	for (uint32_t i = 1; i < 4; i++) { /* a late copy */
		forward[i].payload = fixture_buf(&f);
		fixture_deliver(&f, forward[i]);
		assert_true(fixture_released(&f, forward[i].payload));
	}
	fixture_finish(&f);
}

static void test_a_cancel_may_overtake_the_work(void **state)
{
	(void)state;
	struct fixture f;
	begin_patient(&f, 1, SKEP_ROUTING_PEER);
	assert_true(drops(&f, 7));
	struct skep_message forward = work_for(&f, SKEP_MESSAGE_FORWARD, 7);
	fixture_deliver(&f, forward);
	assert_true(fixture_released(&f, forward.payload));
	assert_null(fixture_find(&f, SKEP_ACTION_RUN, 0, 0));
	fixture_finish(&f);
}

static void test_what_was_begun_once_is_not_given_back(void **state)
{
	(void)state;
	struct fixture f;
	begin_patient(&f, 1, SKEP_ROUTING_PEER);
	bring_through(&f, 0, 3);
	struct skep_message cancel = time_out(&f);
	fixture_deliver(&f, work_for(&f, SKEP_MESSAGE_FORWARD, 4)); /* so that 3 waits for the device once more */
	fixture_deliver(&f, cancelled(cancel, true));
	assert_null(fixture_find(&f, SKEP_ACTION_RUN, 0, 0));
	assert_false(drops(&f, 3));
	fixture_finish(&f);
}

static void test_a_round_that_is_over_needs_no_answer(void **state)
{
	(void)state;
	struct fixture f;
	begin_patient(&f, 1, SKEP_ROUTING_PEER);
	fixture_deliver(&f, work_for(&f, SKEP_MESSAGE_FORWARD, 0));
	fixture_deliver(&f, reduce(0, 1, 0, 2, 4));
	fixture_deliver(&f, work_for(&f, SKEP_MESSAGE_CANCEL, 1));
	assert_null(fixture_sent(&f, SKEP_MESSAGE_CANCELLED));
	fixture_finish(&f);
}

/* ---- shares --------------------------------------------------------------------------------------------------- */

struct share {
	struct fixture f;
	uint32_t next;
	struct skep_message open[16]; /* sent, and not come back */
	uint32_t opens;
};

/* One more microbatch; who gets it. */
static uint32_t send_one(struct share *s)
{
	struct skep_message sent = bring_through(&s->f, 0, s->next++);
	s->open[s->opens++] = sent;
	return sent.to.index;
}

/* Those that `who` has come back, each after `ms` on its device. */
static void come_back(struct share *s, uint32_t who, skep_time ms)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < s->opens; i++) {
		if (s->open[i].to.index != who) {
			s->open[kept++] = s->open[i];
			continue;
		}
		struct skep_message back = answer(&s->f, s->open[i], SKEP_MESSAGE_BACKWARD);
		back.u.backward.needed_ns = ms * 1000000;
		fixture_deliver(&s->f, back);
		fixture_done(&s->f, *fixture_ran(&s->f, SKEP_OP_BACKWARD), fixture_buf(&s->f), none);
	}
	s->opens = kept;
}

/* Both take 50 ms. One falls silent: within one time-out it gets nothing any more, until the wait has been paid off by what
 * the other one does (five or so to each 250 ms). Then it is tried again, and once it answers both get the same again. */
static void test_a_silent_one_loses_its_share_and_gets_it_back(void **state)
{
	(void)state;
	struct share s = {.next = 0};
	begin_patient(&s.f, 1, SKEP_ROUTING_PEER);
	for (int i = 0; i < 4; i++) {
		send_one(&s);
		come_back(&s, 2, 50);
		come_back(&s, 5, 50);
	}
	uint32_t silent = send_one(&s);
	fixture_timer(&s.f, skep_node_deadline(s.f.node));
	for (int i = 0; i < 4; i++) {
		assert_int_equal(send_one(&s), 7 - silent);
		come_back(&s, 7 - silent, 50);
	}
	come_back(&s, silent, 50);
	uint32_t shares[2] = {0, 0};
	for (int i = 0; i < 40; i++) {
		uint32_t who = send_one(&s);
		come_back(&s, who, 50);
		shares[who == silent] += i >= 20;
	}
	assert_in_range(shares[1], 9, 11);
	assert_in_range(shares[0], 9, 11);
	fixture_finish(&s.f);
}

static void test_another_one_is_chosen(void **state)
{
	(void)state;
	size_t size = sizeof(struct skep_view) + 4 * sizeof(struct skep_choice);
	struct skep_view *view = malloc(size);
	struct skep_plan plan = {.samples = 1};
	uint64_t random = 1;
	for (enum skep_wiring wiring = SKEP_WIRING_UNIFORM; wiring <= SKEP_WIRING_LATENCY; wiring++) {
		memset(view, 0, size);
		plan.wiring = wiring;
		struct skep_peer self = {9, 1}, avoid = {2, 1};
		skep_view_add(view, &plan, 4, avoid, &random);
		assert_int_equal(skep_view_choose_other(view, &plan, self, avoid, &random).index, SKEP_NO_INDEX);
		assert_false(skep_view_has_other(view, avoid));
		skep_view_add(view, &plan, 4, (struct skep_peer){3, 1}, &random);
		skep_view_add(view, &plan, 4, (struct skep_peer){4, 1}, &random);
		for (int i = 0; i < 20; i++)
			assert_int_not_equal(skep_view_choose_other(view, &plan, self, avoid, &random).index, 2);
		skep_view_leaving(view, (struct skep_peer){3, 1});
		skep_view_leaving(
			view, (struct skep_peer){4, 1}); /* better one that leaves than the one that gave it back */
		for (int i = 0; i < 20; i++)
			assert_int_not_equal(skep_view_choose_other(view, &plan, self, avoid, &random).index, 2);
		avoid.epoch = 2; /* a new life of it has not had the microbatch */
		assert_int_equal(skep_view_choose_other(view, &plan, self, avoid, &random).index, 2);
	}
	free(view);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_given_back_goes_to_another),
		cmocka_unit_test(test_what_is_kept_is_waited_for),
		cmocka_unit_test(test_a_silent_one_is_asked_again_and_then_given_up),
		cmocka_unit_test(test_none_is_asked_if_none_else_is_there),
		cmocka_unit_test(test_without_another_one_it_is_given_up),
		cmocka_unit_test(test_an_owner_sends_what_it_kept),
		cmocka_unit_test(test_an_owner_takes_what_it_waits_for),
		cmocka_unit_test(test_off_is_off),
		cmocka_unit_test(test_an_overloaded_one_gets_its_queue_relieved),
		cmocka_unit_test(test_a_cancel_may_overtake_the_work),
		cmocka_unit_test(test_what_was_begun_once_is_not_given_back),
		cmocka_unit_test(test_a_round_that_is_over_needs_no_answer),
		cmocka_unit_test(test_a_silent_one_loses_its_share_and_gets_it_back),
		cmocka_unit_test(test_another_one_is_chosen),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
