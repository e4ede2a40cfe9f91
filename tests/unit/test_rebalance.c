/* SPDX-License-Identifier: Apache-2.0
 *
 * test_rebalance.c - the rebalancing policy, rule by rule: what a stage's load is, which worker migrates, where to, and
 * when none does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/directory/rebalance.h"

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
	s->plan.rebalance.period_ns = 1;
	memset(s->stage, 0xff, sizeof s->stage); /* what was there before must not matter */
}

static void has_stage(struct scene *s, uint32_t worker, uint32_t stage, uint64_t queue_milli, skep_time needed_ns)
{
	s->load[s->loads++] = (struct skep_load){worker, stage, true, queue_milli, needed_ns};
}

/* Equal workers: the load of a stage is in their number. */
static void serves(struct scene *s, uint32_t worker, uint32_t stage, uint64_t queue_milli)
{
	has_stage(s, worker, stage, queue_milli, 1000);
}

static void comes(struct scene *s, uint32_t worker, uint32_t stage)
{
	s->load[s->loads++] = (struct skep_load){worker, stage, false, 0, 0};
}

static struct skep_migration decide(struct scene *s)
{
	skep_stage_loads(&s->plan, s->load, s->loads, s->stage);
	return skep_rebalance(&s->plan, s->stage);
}

static uint32_t neediest(struct scene *s)
{
	skep_stage_loads(&s->plan, s->load, s->loads, s->stage);
	return skep_most_loaded(&s->plan, s->stage);
}

static void test_shortest_queue_of_the_least_loaded_goes_to_the_most_loaded(void **state)
{
	(void)state;
	struct scene s;
	scene_init(&s, 3);
	for (uint32_t i = 0; i < 3; i++)
		serves(&s, i, 0, 10); /* shorter queues, but a stage with fewer workers */
	for (uint32_t i = 3; i < 8; i++)
		serves(&s, i, 1, i == 6 ? 400 : 500);
	serves(&s, 8, 2, 5);
	struct skep_migration move = decide(&s);
	assert_int_equal(move.worker, 6);
	assert_int_equal(move.to, 2);
}

/* What the queues alone would do: they are long where microbatches turn round, however many work there. */
static void test_a_long_queue_is_no_load(void **state)
{
	(void)state;
	struct scene s;
	scene_init(&s, 2);
	serves(&s, 0, 0, 0);
	serves(&s, 1, 0, 0);
	for (uint32_t i = 2; i < 6; i++)
		serves(&s, i, 1, 9000);
	struct skep_migration move = decide(&s);
	assert_int_equal(move.worker, 2);
	assert_int_equal(move.to, 0);
}

static void test_a_rate_is_the_sum_of_rates(void **state)
{
	(void)state;
	struct scene s;
	scene_init(&s, 3);
	has_stage(&s, 7, 2, 10, 2000);
	has_stage(&s, 3, 0, 100, 4000);
	has_stage(&s, 5, 2, 30, 1000);
	decide(&s);
	assert_int_equal(s.stage[0].rate, 250000000000);
	assert_int_equal(s.stage[1].rate, 0);
	assert_int_equal(s.stage[2].rate, 1500000000000);
	assert_int_equal(s.stage[2].workers, 2);
	assert_int_equal(s.stage[2].idle, 7);
	assert_int_equal(s.stage[2].idle_rate, 500000000000);
}

static void test_a_slow_stage_gets_more_workers(void **state)
{
	(void)state;
	struct scene s;
	scene_init(&s, 2);
	for (uint32_t i = 0; i < 4; i++)
		has_stage(&s, i, 0, 0, 1000);
	for (uint32_t i = 4; i < 9; i++)
		has_stage(&s, i, 1, 0, 2000); /* five do what two and a half would */
	assert_int_equal(decide(&s).worker, 0);
	assert_int_equal(s.loads, 9);
	s.load[0].stage = 1; /* three against six that do three: none */
	s.load[0].needed_ns = 2000;
	assert_int_equal(decide(&s).worker, SKEP_NO_INDEX);
}

/* As the others of its stage, or where there are none, as all. */
static void test_who_has_not_told_counts_as_usual(void **state)
{
	(void)state;
	struct scene s;
	scene_init(&s, 3);
	has_stage(&s, 0, 0, 0, 1000);
	has_stage(&s, 1, 0, 0, 0);
	has_stage(&s, 2, 1, 0, 4000);
	has_stage(&s, 3, 1, 0, 2000);
	comes(&s, 4, 1);
	comes(&s, 5, 2);
	decide(&s);
	assert_int_equal(s.stage[0].rate, 2000000000000);
	assert_int_equal(s.stage[1].rate, 750000000000 + 375000000000);
	assert_int_equal(s.stage[2].rate, (1000000000000 + 750000000000) / 3);
	scene_init(&s, 2); /* none has told its time: the number of workers counts */
	for (uint32_t i = 0; i < 4; i++)
		has_stage(&s, i, i == 3, 0, 0);
	assert_int_equal(decide(&s).worker, 0);
}

static void test_those_on_their_way_count(void **state)
{
	(void)state;
	struct scene s;
	scene_init(&s, 2);
	for (uint32_t i = 0; i < 3; i++)
		serves(&s, i, 0, 0);
	serves(&s, 3, 1, 0);
	assert_int_equal(decide(&s).worker, 0);
	assert_int_equal(neediest(&s), 1);
	comes(&s, 4, 1);
	assert_int_equal(decide(&s).worker, SKEP_NO_INDEX);
	assert_int_equal(neediest(&s), 1);
	comes(&s, 5, 1);
	comes(&s, 6, 1);
	assert_int_equal(neediest(&s), 0);
	assert_int_equal(decide(&s).worker, SKEP_NO_INDEX); /* of those in stage 1 one serves: it stays */
}

static void test_ties_go_to_the_lower_number(void **state)
{
	(void)state;
	struct scene s;
	scene_init(&s, 4);
	for (uint32_t i = 0; i < 8; i++) /* stages 0 and 2 have three each, 1 and 3 one */
		serves(&s, i, i < 6 ? i % 2 * 2 : i * 2 - 11, 5);
	struct skep_migration move = decide(&s);
	assert_int_equal(move.worker, 0);
	assert_int_equal(move.to, 1);
}

static void test_a_stage_keeps_its_last_worker(void **state)
{
	(void)state;
	struct scene s;
	scene_init(&s, 2);
	has_stage(&s, 0, 0, 0, 10); /* does more alone than two in the other */
	serves(&s, 1, 1, 900);
	serves(&s, 2, 1, 900);
	assert_int_equal(decide(&s).worker, SKEP_NO_INDEX);
	has_stage(&s, 3, 0, 1, 10);
	assert_int_equal(decide(&s).worker, 0);
}

/* Not the stage with the highest rate, but the one that can spare a worker. */
static void test_the_giver_is_judged_by_what_it_keeps(void **state)
{
	(void)state;
	struct scene s;
	scene_init(&s, 3);
	has_stage(&s, 0, 0, 0, 1000); /* 2.0, without one of them 1.0 */
	has_stage(&s, 1, 0, 0, 1000);
	for (uint32_t i = 2; i < 9; i++) /* 1.75, and 1.5 */
		has_stage(&s, i, 1, 0, 4000);
	has_stage(&s, 9, 2, 0, 800); /* 1.25 */
	struct skep_migration move = decide(&s);
	assert_int_equal(move.worker, 2);
	assert_int_equal(move.to, 2);
}

/* Four and three: the other way round would be no better. */
static void test_a_move_that_gains_nothing_is_not_made(void **state)
{
	(void)state;
	struct scene s;
	scene_init(&s, 2);
	for (uint32_t i = 0; i < 7; i++)
		serves(&s, i, i % 2, i % 2 ? 5000 : 0);
	assert_int_equal(decide(&s).worker, SKEP_NO_INDEX);
	serves(&s, 7, 0, 9);
	assert_int_equal(decide(&s).worker, 0);
	for (uint32_t round = 0; round < 8; round++) { /* and no worker goes back and forth */
		struct skep_migration move = decide(&s);
		assert_true(round == 0 || move.worker == SKEP_NO_INDEX);
		for (uint32_t i = 0; i < s.loads; i++)
			s.load[i].stage = s.load[i].worker == move.worker ? move.to : s.load[i].stage;
	}
}

/* From any spread of equal workers, moves end with one more or less between any two stages. */
static void test_moves_end_in_an_even_spread(void **state)
{
	(void)state;
	for (uint32_t seed = 0; seed < 200; seed++) {
		struct scene s;
		uint32_t moves = 0;
		scene_init(&s, STAGES);
		for (uint32_t i = 0; i < 16; i++)
			serves(&s, i, i < STAGES ? i : (seed * 2654435761u >> i) % STAGES, i * seed % 7);
		for (struct skep_migration move = decide(&s); move.worker != SKEP_NO_INDEX; move = decide(&s)) {
			s.load[move.worker].stage = move.to;
			assert_true(++moves <= 12);
		}
		for (uint32_t i = 0; i < STAGES; i++)
			assert_int_equal(s.stage[i].workers, 4);
	}
}

static void test_a_stage_without_workers_is_the_most_loaded(void **state)
{
	(void)state;
	struct scene s;
	scene_init(&s, 3);
	serves(&s, 0, 0, 10);
	serves(&s, 1, 0, 10);
	serves(&s, 2, 2, 90);
	assert_int_equal(decide(&s).worker, 0);
	assert_int_equal(decide(&s).to, 1);
}

static void test_nothing_reported_none_there_one_stage(void **state)
{
	(void)state;
	struct scene s;
	scene_init(&s, 2);
	assert_int_equal(decide(&s).worker, SKEP_NO_INDEX);
	for (uint32_t i = 0; i < 4; i++)
		has_stage(&s, i, i % 2, 0, 0);
	assert_int_equal(decide(&s).worker, SKEP_NO_INDEX);
	scene_init(&s, 1);
	serves(&s, 0, 0, 10);
	serves(&s, 1, 0, 900);
	assert_int_equal(decide(&s).worker, SKEP_NO_INDEX);
}

/* 4,000 workers that need a ns, one that needs 580 years. */
static void test_extremes_do_not_overflow(void **state)
{
	(void)state;
	static struct skep_load load[4001];
	struct scene s;
	scene_init(&s, 2);
	for (uint32_t i = 0; i < 4000; i++)
		load[i] = (struct skep_load){i, 0, true, UINT64_MAX, 1};
	load[4000] = (struct skep_load){4000, 1, true, 0, UINT64_MAX};
	skep_stage_loads(&s.plan, load, 4001, s.stage);
	assert_true(s.stage[0].rate == 4000 * 1000000000000000u);
	assert_int_equal(s.stage[1].rate, 1);
	assert_int_equal(skep_rebalance(&s.plan, s.stage).worker, 0);
}

/* The most loaded stage has two workers, so a third is worth a third of the horizon. */
static void test_a_move_must_pay_within_the_horizon(void **state)
{
	(void)state;
	struct scene s;
	scene_init(&s, 2);
	for (uint32_t i = 0; i < 6; i++)
		serves(&s, i, i >= 4, 0);
	s.plan.rebalance.horizon_ns = 3000;
	s.stage_plan[0].migrate_ns = 1u << 30; /* no worker goes there */
	s.stage_plan[1].migrate_ns = 999;
	assert_int_equal(decide(&s).worker, 0);
	s.stage_plan[1].migrate_ns = 1000;
	assert_int_equal(decide(&s).worker, SKEP_NO_INDEX);
	s.plan.rebalance.horizon_ns = 0; /* no such condition */
	s.stage_plan[1].migrate_ns = SKEP_TIME_NEVER;
	assert_int_equal(decide(&s).worker, 0);
}

/* ---- by queue: Algorithm 2 of SWARM ----------------------------------------------------------------------------- */

static void queues_init(struct scene *s, uint32_t stages)
{
	scene_init(s, stages);
	s->plan.rebalance.by = SKEP_REBALANCE_BY_QUEUE;
}

/* Sums of 3.0, 1.5, 0.9 and 2.0: of stage 2 goes the worker with 0.2, to stage 0. That one has the highest rate of all, and
 * stage 2 the least. */
static void test_by_queue_sums_decide_and_no_rate(void **state)
{
	(void)state;
	struct scene s;
	queues_init(&s, 4);
	has_stage(&s, 0, 0, 1000, 10);
	has_stage(&s, 1, 0, 1200, 10);
	has_stage(&s, 2, 0, 800, 10);
	has_stage(&s, 3, 1, 1500, 100);
	has_stage(&s, 4, 2, 700, 1000);
	has_stage(&s, 5, 2, 200, 1000);
	has_stage(&s, 6, 3, 100, 100); /* the shortest queue of all, but not of the stage with the shortest */
	has_stage(&s, 7, 3, 1900, 100);
	assert_int_equal(decide(&s).worker, 5);
	assert_int_equal(decide(&s).to, 0);
	assert_int_equal(neediest(&s), 0);
	s.plan.rebalance.by = SKEP_REBALANCE_BY_RATE;
	assert_int_equal(decide(&s).worker, 2);
	assert_int_equal(decide(&s).to, 2);
}

/* A stage gives its shortest queue until it has one worker left; then the next one gives. */
static void test_by_queue_a_stage_keeps_its_last_worker(void **state)
{
	(void)state;
	struct scene s;
	queues_init(&s, 3);
	serves(&s, 0, 0, 10);
	serves(&s, 1, 1, 300);
	serves(&s, 2, 1, 200);
	serves(&s, 3, 2, 900);
	comes(&s, 4, 0); /* does not serve yet: it could not take over */
	assert_int_equal(decide(&s).worker, 2);
	assert_int_equal(decide(&s).to, 2);
	s.load[2].stage = 2;
	assert_int_equal(decide(&s).worker, SKEP_NO_INDEX); /* stage 2, with 1100, is the only one that could give */
}

/* However little it gains; but equal queues move none, nor do those that were not reported. */
static void test_by_queue_any_difference_moves_a_worker(void **state)
{
	(void)state;
	struct scene s;
	queues_init(&s, 2);
	for (uint32_t i = 0; i < 5; i++)
		serves(&s, i, i < 2, i < 2 ? 301 : 200);
	assert_int_equal(decide(&s).worker, 2); /* from three with 600 to two with 602 */
	assert_int_equal(decide(&s).to, 1);
	s.load[0].queue_milli = 299;
	assert_int_equal(decide(&s).worker, SKEP_NO_INDEX);
	assert_int_equal(neediest(&s), 1); /* which has fewer workers */
	queues_init(&s, 3);
	assert_int_equal(decide(&s).worker, SKEP_NO_INDEX);
	for (uint32_t i = 0; i < 9; i++)
		serves(&s, i, i % 3, 0);
	assert_int_equal(decide(&s).worker, SKEP_NO_INDEX);
	comes(&s, 9, 0);
	assert_int_equal(neediest(&s), 1);
}

/* Of stages whose queues are equal the largest gives. */
static void test_by_queue_ties_go_by_workers(void **state)
{
	(void)state;
	struct scene s;
	queues_init(&s, 4);
	for (uint32_t i = 0; i < 5; i++)
		serves(&s, i, i / 2, 0); /* two, two, one */
	serves(&s, 5, 1, 0);
	serves(&s, 6, 3, 100);
	assert_int_equal(decide(&s).worker, 2);
	assert_int_equal(decide(&s).to, 3);
}

static void test_by_queue_a_stage_without_workers_comes_first(void **state)
{
	(void)state;
	struct scene s;
	queues_init(&s, 3);
	serves(&s, 0, 0, 50);
	serves(&s, 1, 0, 60);
	serves(&s, 2, 2, 9000);
	assert_int_equal(decide(&s).worker, 0);
	assert_int_equal(decide(&s).to, 1);
}

static void test_by_queue_extremes_do_not_overflow(void **state)
{
	(void)state;
	struct scene s;
	queues_init(&s, 2);
	serves(&s, 0, 0, UINT64_MAX);
	serves(&s, 1, 0, UINT64_MAX);
	serves(&s, 2, 1, 7);
	serves(&s, 3, 1, 6);
	assert_int_equal(decide(&s).worker, 3);
	assert_true(s.stage[0].queue_milli == UINT64_MAX);
	s.plan.rebalance.horizon_ns = 3000; /* the horizon holds here too */
	s.stage_plan[0].migrate_ns = 1000;
	assert_int_equal(decide(&s).worker, SKEP_NO_INDEX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shortest_queue_of_the_least_loaded_goes_to_the_most_loaded),
		cmocka_unit_test(test_a_long_queue_is_no_load),
		cmocka_unit_test(test_a_rate_is_the_sum_of_rates),
		cmocka_unit_test(test_a_slow_stage_gets_more_workers),
		cmocka_unit_test(test_who_has_not_told_counts_as_usual),
		cmocka_unit_test(test_those_on_their_way_count),
		cmocka_unit_test(test_ties_go_to_the_lower_number),
		cmocka_unit_test(test_a_stage_keeps_its_last_worker),
		cmocka_unit_test(test_the_giver_is_judged_by_what_it_keeps),
		cmocka_unit_test(test_a_move_that_gains_nothing_is_not_made),
		cmocka_unit_test(test_moves_end_in_an_even_spread),
		cmocka_unit_test(test_a_stage_without_workers_is_the_most_loaded),
		cmocka_unit_test(test_nothing_reported_none_there_one_stage),
		cmocka_unit_test(test_extremes_do_not_overflow),
		cmocka_unit_test(test_a_move_must_pay_within_the_horizon),
		cmocka_unit_test(test_by_queue_sums_decide_and_no_rate),
		cmocka_unit_test(test_by_queue_a_stage_keeps_its_last_worker),
		cmocka_unit_test(test_by_queue_any_difference_moves_a_worker),
		cmocka_unit_test(test_by_queue_ties_go_by_workers),
		cmocka_unit_test(test_by_queue_a_stage_without_workers_comes_first),
		cmocka_unit_test(test_by_queue_extremes_do_not_overflow),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
