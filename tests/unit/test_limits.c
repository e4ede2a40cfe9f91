/* SPDX-License-Identifier: Apache-2.0
 *
 * test_limits.c - figures by hand of what a plan takes: how many versions of its parameters a worker keeps, and what each
 * worker adds to the most actions that a step of the directory returns. No run comes near the latter, so none would notice a
 * smaller one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/skep.h"
#include "core/weights.h"

enum { STAGES = 3, WORKERS = 48 };

static const struct skep_stage_plan stage[STAGES] = {{.parameters = 9, .activation_bytes = 4, .state_bytes = 36},
	{.parameters = 9, .activation_bytes = 4, .state_bytes = 36}, {.parameters = 9, .state_bytes = 36}};
static uint32_t first_stage_of[WORKERS];

static struct skep_plan plan_of(uint32_t workers)
{
	for (uint32_t i = 0; i < workers; i++)
		first_stage_of[i] = i % STAGES;
	return (struct skep_plan){.workers = workers,
		.stages = STAGES,
		.samples = 1,
		.microbatches = WORKERS,
		.in_flight = 2,
		.rounds = 2,
		.seed = 1,
		.liveness.heartbeat_ns = 1,
		.liveness.fence_after_ns = 2,
		.until.target_loss_nano = INT64_MIN,
		.stage = stage,
		.first_stage_of = first_stage_of};
}

static void test_versions(void **state)
{
	(void)state;
	struct skep_plan plan = plan_of(STAGES);
	assert_int_equal(skep_plan_versions(&plan, 0), 1);
	plan.delayed = true;
	assert_int_equal(skep_plan_versions(&plan, 0), 2);
	plan.inner.steps = 4;
	assert_int_equal(skep_plan_versions(&plan, 0), 1);
	plan = plan_of(STAGES);
	plan.pipeline = SKEP_PIPELINE_PIPEDREAM;
	plan.microbatches = 1;
	for (uint32_t s = 0; s < STAGES;
		s++) { /* microbatches that are under way from there to the last stage and back */
		plan.no_flush.weights = SKEP_WEIGHTS_STASHED;
		assert_int_equal(skep_plan_versions(&plan, s), STAGES - s);
		plan.no_flush.weights = SKEP_WEIGHTS_VERTICAL_SYNC;
		assert_int_equal(skep_plan_versions(&plan, s), STAGES);
		plan.no_flush.weights = SKEP_WEIGHTS_NEWEST;
		assert_int_equal(skep_plan_versions(&plan, s), 1);
	}
}

/* What a worker more adds, of a plan that stays the same but for that. */
static uint32_t each(struct skep_plan plan)
{
	plan.workers = WORKERS;
	uint32_t all = skep_actions_limit(&plan);
	plan.workers = WORKERS / 2;
	return (all - skep_actions_limit(&plan)) / (WORKERS / 2);
}

/* 16 announcements, four fences of four messages each, and 12 more: its stage, its state, its
 * round, its sums. */
static void test_actions_of_a_worker(void **state)
{
	(void)state;
	struct skep_plan plan = plan_of(WORKERS), more;
	plan.reduction.collective = SKEP_COLLECTIVE_FUSED; /* without messages of rosters */
	const uint32_t plain = 16 + 4 * 4 + 12;
	assert_int_equal(each(plan), plain);
	more = plan;
	more.validation.every = more.validation.microbatches = 1;
	assert_int_equal(each(more), plain + 2);
	more = plan;
	more.pipeline = SKEP_PIPELINE_GPIPE;
	more.wiring = SKEP_WIRING_FIXED;
	assert_int_equal(each(more), plain);
	more.barrier = true;
	assert_int_equal(each(more), plain + 1);
	more.barrier = false;
	more.eager = true; /* a round is announced to each, and with rosters of 5 messages for 16 members, 3 for 8 */
	assert_int_equal(each(more), plain + 1);
	more.reduction.collective = SKEP_COLLECTIVE_BUTTERFLY;
	assert_int_equal(each(more), plain + 1 + 2 * 7 * 5 - 7 * 3);
	more.reduction.collective = SKEP_COLLECTIVE_FUSED;
	more.eager = false;
	more.pipeline = SKEP_PIPELINE_INTERLEAVED;
	for (uint32_t chunks = 2; chunks < 4; chunks++) {
		more.model_chunks = chunks;
		assert_int_equal(each(more), plain + 2 * (chunks - 1));
	}
}

/* A worker that may hold much more than the directory says in a step: a message more for each 11 microbatches that it
 * may tell of, which are half as many again as a round has. */
static void test_actions_of_a_tally(void **state)
{
	(void)state;
	struct skep_plan plan = plan_of(STAGES);
	plan.in_flight = 20000;
	plan.microbatches = 110;
	uint32_t few = skep_actions_limit(&plan);
	plan.microbatches = 220;
	assert_int_equal(skep_actions_limit(&plan) - few, 110 * 3 / 2 / 11);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_versions), cmocka_unit_test(test_actions_of_a_worker),
		cmocka_unit_test(test_actions_of_a_tally)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
