/* SPDX-License-Identifier: Apache-2.0
 *
 * test_inflight.c - the table of held microbatches against a plain array, over random adds, removes and queue moves.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/random.h"
#include "core/schedule/order.h"
#include "core/worker/worker.h"
#include "machine_fixture.h"

#define CAPACITY 37
#define NUMBERS 200

static struct skep_inflight *table_of(uint32_t capacity)
{
	struct skep_inflight *table = malloc(skep_inflight_size(capacity));
	assert_non_null(table);
	skep_inflight_init(table, capacity);
	return table;
}

static void test_random_use(void **state)
{
	(void)state;
	struct skep_inflight *table = table_of(CAPACITY);
	bool held[2][NUMBERS] = {{false}};
	uint32_t count = 0;
	uint64_t random = 5;
	for (uint32_t i = 0; i < 200000; i++) {
		uint32_t round = skep_random_below(&random, 2), number = skep_random_below(&random, NUMBERS);
		struct skep_work *work = skep_inflight_find(table, round, number);
		assert_int_equal(work != NULL, held[round][number]);
		if (work) {
			skep_inflight_remove(table, work);
			held[round][number] = false;
			count--;
			continue;
		}
		work = skep_inflight_add(table, round, number);
		assert_int_equal(work != NULL, count < CAPACITY);
		if (!work)
			continue;
		held[round][number] = true;
		count++;
		if (skep_random_below(&random, 2)) { /* queued, so that removal takes it from the middle of a queue */
			work->state = SKEP_WORK_READY_FORWARD;
			skep_work_push(table, &table->forward[round], work);
		}
	}
	free(table);
}

static void test_queue_is_fifo_and_survives_removal(void **state)
{
	(void)state;
	struct skep_inflight *table = table_of(8);
	struct skep_work *work[5];
	for (uint32_t i = 0; i < 5; i++) {
		work[i] = skep_inflight_add(table, 0, i);
		work[i]->state = SKEP_WORK_READY_FORWARD;
		skep_work_push(table, &table->forward[0], work[i]);
	}
	skep_inflight_remove(table, work[2]);
	skep_inflight_remove(table, work[4]); /* the tail */
	skep_inflight_remove(table, work[0]); /* the head */
	struct skep_work *late = skep_inflight_add(table, 0, 9);
	late->state = SKEP_WORK_READY_FORWARD;
	skep_work_push(table, &table->forward[0], late);
	assert_int_equal(table->ready, 3); /* the load that is told of */
	assert_ptr_equal(skep_work_pop(table, &table->forward[0]), work[1]);
	assert_ptr_equal(skep_work_pop(table, &table->forward[0]), work[3]);
	assert_ptr_equal(skep_work_pop(table, &table->forward[0]), late);
	assert_null(skep_work_pop(table, &table->forward[0]));
	assert_int_equal(table->ready, 0);
	free(table);
}

static void test_same_number_in_two_rounds(void **state)
{
	(void)state;
	struct skep_inflight *table = table_of(8);
	struct skep_work *now = skep_inflight_add(table, 4, 7), *next = skep_inflight_add(table, 5, 7);
	assert_ptr_equal(skep_inflight_find(table, 4, 7), now);
	assert_ptr_equal(skep_inflight_find(table, 5, 7), next);
	assert_null(skep_inflight_find(table, 6, 7));
	free(table);
}

/* Of a fixed pipeline twice what is in flight and four, as far as slots have numbers. */
static void test_capacity_of_a_pipeline(void **state)
{
	(void)state;
	struct skep_plan plan = {.pipeline = SKEP_PIPELINE_1F1B};
	const uint32_t in_flight[] = {1, 16381, 16382, 30000, 32766, 40000, UINT32_MAX};
	for (uint32_t i = 0; i < sizeof in_flight / sizeof *in_flight; i++) {
		plan.in_flight = in_flight[i];
		assert_int_equal(skep_inflight_capacity(&plan), i < 2 ? 2 * in_flight[i] + 4 : 32767);
	}
}

/* Of stages with unequal numbers of workers four for each worker of the run and four more, as far as slots have numbers. */
static void test_capacity_of_uneven_stages(void **state)
{
	(void)state;
	const uint32_t workers[] = {3, 8190, 8191, 16384};
	for (uint32_t i = 0; i < sizeof workers / sizeof *workers; i++) {
		uint32_t *first_stage_of = calloc(workers[i], sizeof *first_stage_of);
		const struct skep_plan plan = {.pipeline = SKEP_PIPELINE_1F1B,
			.stages = 2,
			.workers = workers[i],
			.first_stage_of = first_stage_of};
		assert_non_null(first_stage_of);
		first_stage_of[workers[i] - 1] = 1;
		assert_int_equal(skep_inflight_capacity(&plan), i < 2 ? 4 * workers[i] + 4 : 32767);
		free(first_stage_of);
	}
}

/* A swarm's table is as large as what the workers of the first stage may have in flight together, where they are many. */
static void test_capacity_of_a_swarm(void **state)
{
	(void)state;
	const uint32_t first_stage_of[] = {0, 0, 0, 0, 1};
	const struct skep_plan plan = {
		.stages = 2, .workers = 5, .in_flight = 10, .microbatches = 500, .first_stage_of = first_stage_of};
	assert_int_equal(skep_inflight_capacity(&plan), 4 * 10);
}

/* What is held is counted wherever it stands in the table: behind a place that is free, too. */
static void test_room_behind_a_free_place(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f, 2, 2, 1);
	fixture_start(&f);
	struct worker *w = (struct worker *)f.node;
	struct skep_inflight *table = worker_inflight(w);
	struct skep_work *first = skep_inflight_add(table, 0, 0), *second = skep_inflight_add(table, 0, 1);
	w->held = 1;
	first->state = second->state = SKEP_WORK_WAIT_GRADIENT;
	skep_inflight_remove(table, first);
	assert_false(skep_order_has_room(w));
	skep_inflight_remove(table, second);
	assert_true(skep_order_has_room(w));
	fixture_finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_use),
		cmocka_unit_test(test_room_behind_a_free_place),
		cmocka_unit_test(test_queue_is_fifo_and_survives_removal),
		cmocka_unit_test(test_same_number_in_two_rounds),
		cmocka_unit_test(test_capacity_of_a_pipeline),
		cmocka_unit_test(test_capacity_of_uneven_stages),
		cmocka_unit_test(test_capacity_of_a_swarm),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
