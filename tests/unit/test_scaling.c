/* SPDX-License-Identifier: Apache-2.0
 *
 * test_scaling.c - the directory asks for machines and gives them back when a round has closed; a worker that is told leaves, and
 * does not come back.
 */
#include "core/scale/policy.h"
#include "directory_fixture.h"

enum { WORKERS = 4 };

static const uint32_t kind_of[WORKERS] = {0};

struct scaled {
	struct fixture f;
	struct skep_scale_kind kind;
	struct skep_scale scale;
};

/* With so many workers at the start, of four; two stages. */
static void begin_scaled(struct scaled *s, uint32_t start, skep_time deadline_ns)
{
	fixture_init(&s->f, WORKERS, 2, DIRECTORY);
	s->kind = (struct skep_scale_kind){.workers = WORKERS, .speed = 1000, .start = start};
	s->scale = (struct skep_scale){.policy = SKEP_SCALE_DEADLINE,
		.kinds = 1,
		.kind = &s->kind,
		.kind_of = kind_of,
		.min = 2,
		.max = WORKERS,
		.deadline_ns = deadline_ns,
		.period_ns = SECOND_NS,
		.margin_ppm = 100000};
	for (uint32_t i = start; i < WORKERS; i++)
		s->f.first_stage_of[i] = SKEP_NO_STAGE;
	s->f.plan.rounds = 4;
	s->f.plan.scale = &s->scale;
	fixture_make(&s->f, DIRECTORY);
	fixture_start(&s->f);
}

/* Owners 0 and 2, as far as they are there, issue four microbatches between them, and all count them. */
static void close_round(struct scaled *s, uint32_t round)
{
	struct fixture *f = &s->f;
	uint32_t owners = s->kind.start / 2;
	f->now += SECOND_NS;
	for (uint32_t i = 0; i < 4; i++) {
		struct skep_message message = from_worker(SKEP_MESSAGE_FINISHED, owners == 2 && i > 1 ? 2 : 0, round);
		message.microbatch = i;
		message.u.finished.ok = true;
		fixture_deliver(f, message);
	}
	for (uint32_t worker = 0; worker < s->kind.start; worker++) {
		struct skep_message message = from_worker(SKEP_MESSAGE_TALLY, worker, round);
		message.attempt = 1;
		for (uint16_t i = 0; i < 4 / owners; i++)
			message.u.tally.offset[message.u.tally.used++] = (uint16_t)(i + (worker >= 2 ? 2 : 0));
		message.u.tally.count = message.u.tally.used;
		fixture_deliver(f, message);
	}
	assert_non_null(fixture_noted(f, SKEP_NOTE_ROUND_CLOSED));
}

static void test_asks(void **state)
{
	struct scaled s;
	(void)state;
	begin_scaled(&s, 2, 1);
	close_round(&s, 0);
	assert_null(fixture_noted(&s.f, SKEP_NOTE_SCALED)); /* nothing is measured by the first one */
	close_round(&s, 1);
	const struct skep_note *note = fixture_noted(&s.f, SKEP_NOTE_SCALED);
	assert_true(note && note->wanted == 4 && note->there == 2 && note->stage == 0 && note->round == 2);
	const struct skep_action *action = fixture_find(&s.f, SKEP_ACTION_SCALE, 0, 0);
	assert_true(action && action->u.scale.kind == 0 && action->u.scale.machines == 4);
	assert_null(fixture_noted(&s.f, SKEP_NOTE_RETURNED));
	fixture_finish(&s.f);
}

/* The one with the highest number of the stage in which most stay: 3, and then, of stage 0, 2. Each stage keeps one. */
static void test_gives_back(void **state)
{
	struct scaled s;
	(void)state;
	begin_scaled(&s, 4, 1000000 * SECOND_NS);
	s.scale.min = 1;
	close_round(&s, 0);
	close_round(&s, 1);
	assert_int_equal(fixture_noted(&s.f, SKEP_NOTE_SCALED)->wanted, 2); /* half, and no less at once */
	for (uint32_t i = 0; i < 2; i++) {
		const struct skep_action *returned = fixture_find(&s.f, SKEP_ACTION_NOTE, SKEP_NOTE_RETURNED, i);
		const struct skep_action *told = fixture_find(&s.f, SKEP_ACTION_SEND, SKEP_MESSAGE_PEER, i);
		assert_true(returned && returned->u.note.peer.index == 3 - i);
		assert_true(told && told->u.send.to.index == 3 - i && told->u.send.u.peer.who.index == 3 - i);
		assert_true(told->u.send.u.peer.alive && told->u.send.u.peer.leaving);
	}
	assert_null(fixture_find(&s.f, SKEP_ACTION_NOTE, SKEP_NOTE_RETURNED, 2));
	assert_int_equal(
		fixture_noted(&s.f, SKEP_NOTE_ROUND_OPENED)->round, 2); /* in which they work until they say so */
	fixture_finish(&s.f);
}

static struct skep_message word_of(uint32_t worker, uint32_t epoch, bool alive, bool leaving)
{
	struct skep_message message = fixture_message(SKEP_MESSAGE_PEER, DIRECTORY, worker, 0);
	message.to.epoch = epoch;
	message.u.peer.who = (struct skep_peer){worker, epoch};
	message.u.peer.alive = alive;
	message.u.peer.leaving = leaving;
	return message;
}

static void test_worker_leaves(void **state)
{
	struct fixture f;
	(void)state;
	fixture_init(&f, WORKERS, 2, 1);
	fixture_start(&f);
	fixture_deliver(&f, word_of(1, 0, true, true)); /* of an earlier epoch */
	assert_null(fixture_sent(&f, SKEP_MESSAGE_LEAVE));
	fixture_deliver(&f, word_of(1, 1, true, true));
	assert_non_null(fixture_sent(&f, SKEP_MESSAGE_LEAVE));
	assert_false(skep_node_returned(f.node)); /* it works until the round's end */
	fixture_deliver(&f, word_of(1, 1, true, true));
	assert_null(fixture_sent(&f, SKEP_MESSAGE_LEAVE)); /* a duplicate */
	fixture_deliver(&f, word_of(1, 1, false, false));
	assert_null(fixture_sent(&f, SKEP_MESSAGE_JOIN));
	assert_int_equal(skep_node_outcome(f.node), SKEP_DONE);
	assert_true(skep_node_returned(f.node));
	fixture_finish(&f);
}

/* With the notice of a cloud it leaves as well, and its machine is not ours to turn off. */
static void test_notice_is_no_return(void **state)
{
	struct fixture f;
	(void)state;
	fixture_init(&f, WORKERS, 2, 1);
	fixture_start(&f);
	fixture_event(&f, (struct skep_event){.kind = SKEP_EVENT_PREEMPT_NOTICE, .u.leave_at = SECOND_NS});
	fixture_deliver(&f, word_of(1, 1, false, false));
	assert_int_equal(skep_node_outcome(f.node), SKEP_DONE);
	assert_false(skep_node_returned(f.node));
	fixture_finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_asks),
		cmocka_unit_test(test_gives_back),
		cmocka_unit_test(test_worker_leaves),
		cmocka_unit_test(test_notice_is_no_return),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
