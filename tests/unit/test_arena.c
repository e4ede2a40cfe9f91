/* SPDX-License-Identifier: Apache-2.0
 *
 * test_arena.c - a worker's memory is as large as what it meets: as large in a swarm of thousands as in one of hundreds,
 * and large enough for one that is left alone in its stage.
 */
#include "worker_fixture.h"

#define ROUND 5000u /* microbatches */
#define MEMBERS 40u

static uint32_t stage_of[2 * MEMBERS];

/* As fixture_init(), of two stages and with microbatches for many. */
static void begin_many(struct fixture *f, uint32_t workers, uint32_t microbatches)
{
	fixture_init(f, 2, 2, 1);
	free(f->node);
	free(f->out.item);
	for (uint32_t i = 0; i < workers; i++)
		stage_of[i] = i % 2;
	f->plan.workers = workers;
	f->plan.first_stage_of = stage_of;
	f->plan.microbatches = microbatches;
	f->node = skep_node_init(aligned_alloc(16, (skep_node_size(&f->plan, 1) + 15) / 16 * 16), &f->plan, 1, 1);
	f->out.capacity = skep_actions_limit(&f->plan);
	f->out.item = calloc(f->out.capacity, sizeof *f->out.item);
	fixture_start(f);
}

static struct skep_message forward(struct fixture *f, uint32_t microbatch)
{
	struct skep_message message = fixture_message(SKEP_MESSAGE_FORWARD, 0, 1, 0);
	message.microbatch = microbatch;
	message.payload = fixture_buf(f);
	return message;
}

static void bring(struct fixture *f, uint32_t microbatch)
{
	fixture_deliver(f, forward(f, microbatch));
	fixture_done(f, *fixture_ran(f, SKEP_OP_FORWARD), none, fixture_buf(f));
	fixture_done(f, *fixture_ran(f, SKEP_OP_BACKWARD), fixture_buf(f), none);
	assert_non_null(fixture_noted(f, SKEP_NOTE_COUNTED));
}

static void test_one_that_is_left_does_the_whole_round(void **state)
{
	(void)state;
	struct fixture f;
	begin_many(&f, 16, ROUND);
	uint32_t step = 1237, told = 0; /* in an order of their own, all of them */
	for (uint32_t i = 0; i < ROUND; i++)
		bring(&f, i * step % ROUND);
	for (uint32_t i = 0; i < ROUND; i++) {
		struct skep_message again = forward(&f, i);
		fixture_deliver(&f, again);
		assert_true(fixture_released(&f, again.payload));
		assert_null(fixture_find(&f, SKEP_ACTION_RUN, 0, 0));
	}
	struct skep_message seal = reduce(0, 1, 0, 1, 1);
	seal.from.index = 16;
	fixture_deliver(&f, seal);
	for (uint32_t part = 0;; part++) {
		const struct skep_action *action = fixture_find(&f, SKEP_ACTION_SEND, SKEP_MESSAGE_TALLY, part);
		if (!action)
			break;
		assert_int_equal(action->u.send.u.tally.count, ROUND);
		for (uint32_t i = 0; i < action->u.send.u.tally.used; i++)
			assert_int_equal(action->u.send.u.tally.base + action->u.send.u.tally.offset[i], told++);
	}
	assert_int_equal(told, ROUND);
	fixture_finish(&f);
}

/* Nothing is done meanwhile, and most of it finds no room among what is in flight: all of it is known when it comes again. */
static void test_what_comes_to_a_busy_device_takes_room(void **state)
{
	(void)state;
	struct fixture f;
	begin_many(&f, 16, ROUND);
	for (uint32_t i = 0; i < ROUND; i++)
		fixture_deliver(&f, forward(&f, i));
	for (uint32_t i = 0; i < ROUND; i++) {
		fixture_deliver(&f, forward(&f, i));
		assert_null(fixture_noted(&f, SKEP_NOTE_OVERFLOW));
	}
	fixture_finish(&f);
}

/* Of a ring: all that can come before this worker takes part comes, in any order, and none is lost. */
static void test_all_early_hops_are_kept(void **state)
{
	(void)state;
	struct fixture f;
	begin_many(&f, 2 * MEMBERS, ROUND);
	for (uint32_t hop = MEMBERS - 1; hop >= 1; hop--) {
		struct skep_message early = fixture_message(SKEP_MESSAGE_CHUNK, 3, 1, 0);
		early.attempt = 1;
		early.u.chunk.hop = hop;
		early.u.chunk.chunk = (2 * MEMBERS - hop) % MEMBERS;
		early.payload = fixture_buf(&f);
		fixture_deliver(&f, early);
		assert_false(fixture_released(&f, early.payload));
	}
	struct skep_message begin = reduce(0, 1, 0, MEMBERS, 5);
	begin.from.index = 2 * MEMBERS;
	fixture_deliver(&f, begin);
	uint32_t adds = 0;
	while (fixture_find(&f, SKEP_ACTION_RUN, SKEP_OP_ADD, adds))
		adds++;
	assert_int_equal(adds, MEMBERS - 2); /* and one ADD_STORE */
	assert_non_null(fixture_ran(&f, SKEP_OP_ADD_STORE));
	fixture_finish(&f);
}

static size_t size_in(uint32_t workers, enum skep_collective collective)
{
	struct skep_stage_plan stage[8] = {{.parameters = 100, .state_bytes = 400}};
	uint32_t *first = malloc(workers * sizeof *first);
	struct skep_plan plan = {.workers = workers,
		.stages = 8,
		.samples = 1,
		.microbatches = workers / 8 * 128,
		.in_flight = 4,
		.rounds = 1,
		.reduction.collective = collective,
		.stage = stage,
		.first_stage_of = first};
	for (uint32_t i = 0; i < workers; i++)
		first[i] = i % 8;
	size_t size = skep_node_size(&plan, 0);
	free(first);
	return size;
}

static void test_a_worker_is_as_large_in_any_swarm(void **state)
{
	(void)state;
	size_t size = size_in(1024, SKEP_COLLECTIVE_FUSED);
	assert_int_equal(size_in(4096, SKEP_COLLECTIVE_FUSED), size);
	assert_int_equal(size_in(65536, SKEP_COLLECTIVE_FUSED), size);
	assert_true(size < 20 * 1024);
	size_t bits = (65536 - 1024) / 8 * 2 / 8; /* hops of a ring that have come */
	assert_true(size_in(65536, SKEP_COLLECTIVE_RING) <= size_in(1024, SKEP_COLLECTIVE_RING) + 2 * bits);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_that_is_left_does_the_whole_round),
		cmocka_unit_test(test_what_comes_to_a_busy_device_takes_room),
		cmocka_unit_test(test_all_early_hops_are_kept),
		cmocka_unit_test(test_a_worker_is_as_large_in_any_swarm),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
