/* SPDX-License-Identifier: Apache-2.0
 *
 * test_rebalance.c - the rebalancing policy, rule by rule: who moves, where to, and when nobody does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/rebalance.h"

#define STAGES 4

struct scene {
	struct skep_plan plan;
	struct skep_stage_plan stage_plan[STAGES];
	struct skep_stage_load stage[STAGES];
	struct skep_load load[16];
	uint32_t loads;
};

static void scene_init(struct scene *s, uint32_t stages)
{
	memset(s, 0, sizeof *s);
	s->plan.stages = stages;
	s->plan.stage = s->stage_plan;
	s->plan.rebalance_ns = 1;
	memset(s->stage, 0xff, sizeof s->stage); /* what was there before must not matter */
}

static void serves(struct scene *s, uint32_t worker, uint32_t stage, uint64_t queue_milli)
{
	s->load[s->loads++] = (struct skep_load){worker, stage, queue_milli};
}

static struct skep_move decide(struct scene *s)
{
	return skep_rebalance(&s->plan, s->load, s->loads, s->stage);
}

static void test_shortest_queue_of_the_least_loaded_goes_to_the_most_loaded(void **state)
{
	(void)state;
	struct scene s;
	scene_init(&s, 3);
	serves(&s, 0, 0, 400); /* stage 0: 1000 together */
	serves(&s, 1, 0, 600);
	serves(&s, 2, 1, 500); /* stage 1: 900, the least, though no queue of it is the shortest */
	serves(&s, 3, 1, 400);
	serves(&s, 4, 2, 5000);
	struct skep_move move = decide(&s);
	assert_int_equal(move.worker, 3);
	assert_int_equal(move.to, 2);
}

static void test_loads_are_summed_by_stage(void **state)
{
	(void)state;
	struct scene s;
	scene_init(&s, 3);
	serves(&s, 7, 2, 10);
	serves(&s, 3, 0, 100);
	serves(&s, 5, 2, 30);
	decide(&s);
	assert_int_equal(s.stage[0].workers, 1);
	assert_int_equal(s.stage[0].queue_milli, 100);
	assert_int_equal(s.stage[1].workers, 0);
	assert_int_equal(s.stage[1].queue_milli, 0);
	assert_int_equal(s.stage[2].workers, 2);
	assert_int_equal(s.stage[2].queue_milli, 40);
}

static void test_many_short_queues_are_more_than_a_long_one(void **state)
{
	(void)state;
	struct scene s;
	scene_init(&s, 2);
	serves(&s, 0, 0, 900);
	serves(&s, 1, 0, 0);
	serves(&s, 2, 1, 400);
	serves(&s, 3, 1, 400);
	serves(&s, 4, 1, 400);
	struct skep_move move = decide(&s);
	assert_int_equal(move.worker, 1);
	assert_int_equal(move.to, 1);
}

static void test_ties_go_to_the_lower_number(void **state)
{
	(void)state;
	struct scene s;
	scene_init(&s, 4);
	for (uint32_t i = 0; i < 8; i++) /* stages 0 and 2 are idle, 1 and 3 equally loaded */
		serves(&s, i, i % 4, i % 2 == 0 ? 5 : 50);
	struct skep_move move = decide(&s);
	assert_int_equal(move.worker, 0);
	assert_int_equal(move.to, 1);
}

static void test_a_stage_keeps_its_last_worker(void **state)
{
	(void)state;
	struct scene s;
	scene_init(&s, 2);
	serves(&s, 0, 0, 0);
	serves(&s, 1, 1, 900);
	serves(&s, 2, 1, 900);
	assert_int_equal(decide(&s).worker, SKEP_NO_INDEX);
	serves(&s, 3, 0, 1);
	assert_int_equal(decide(&s).worker, 0);
}

static void test_a_stage_without_workers_gives_none(void **state)
{
	(void)state;
	struct scene s;
	scene_init(&s, 3);
	serves(&s, 0, 0, 10);
	serves(&s, 1, 0, 10);
	serves(&s, 2, 2, 90);
	assert_int_equal(decide(&s).worker, SKEP_NO_INDEX);
}

static void test_equal_loads_stay(void **state)
{
	(void)state;
	struct scene s;
	scene_init(&s, 2);
	serves(&s, 0, 0, 30);
	serves(&s, 1, 0, 0);
	serves(&s, 2, 1, 15);
	serves(&s, 3, 1, 15);
	assert_int_equal(decide(&s).worker, SKEP_NO_INDEX);
	s.load[2].queue_milli++; /* without a horizon any difference will do */
	assert_int_equal(decide(&s).worker, 1);
}

static void test_nothing_reported_nobody_there_one_stage(void **state)
{
	(void)state;
	struct scene s;
	scene_init(&s, 2);
	assert_int_equal(decide(&s).worker, SKEP_NO_INDEX);
	for (uint32_t i = 0; i < 4; i++)
		serves(&s, i, i % 2, 0);
	assert_int_equal(decide(&s).worker, SKEP_NO_INDEX);
	scene_init(&s, 1);
	serves(&s, 0, 0, 10);
	serves(&s, 1, 0, 900);
	assert_int_equal(decide(&s).worker, SKEP_NO_INDEX);
}

/* The most loaded stage has two workers, so a third is worth a third of the horizon. */
static void test_a_move_must_pay_within_the_horizon(void **state)
{
	(void)state;
	struct scene s;
	scene_init(&s, 2);
	serves(&s, 0, 0, 0);
	serves(&s, 1, 0, 0);
	serves(&s, 2, 1, 70);
	serves(&s, 3, 1, 70);
	s.plan.rebalance_horizon_ns = 3000;
	s.stage_plan[0].move_ns = 1u << 30; /* nobody goes there */
	s.stage_plan[1].move_ns = 999;
	assert_int_equal(decide(&s).worker, 0);
	s.stage_plan[1].move_ns = 1000;
	assert_int_equal(decide(&s).worker, SKEP_NO_INDEX);
	s.plan.rebalance_horizon_ns = 0; /* no such condition */
	s.stage_plan[1].move_ns = SKEP_TIME_NEVER;
	assert_int_equal(decide(&s).worker, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shortest_queue_of_the_least_loaded_goes_to_the_most_loaded),
		cmocka_unit_test(test_loads_are_summed_by_stage),
		cmocka_unit_test(test_many_short_queues_are_more_than_a_long_one),
		cmocka_unit_test(test_ties_go_to_the_lower_number),
		cmocka_unit_test(test_a_stage_keeps_its_last_worker),
		cmocka_unit_test(test_a_stage_without_workers_gives_none),
		cmocka_unit_test(test_equal_loads_stay),
		cmocka_unit_test(test_nothing_reported_nobody_there_one_stage),
		cmocka_unit_test(test_a_move_must_pay_within_the_horizon),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
