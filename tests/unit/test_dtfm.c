/* SPDX-License-Identifier: Apache-2.0
 *
 * test_dtfm.c - the cost by pairwise delays and bandwidths: an example by hand, all pairings and orders, what changes cost, the
 * sketch, missing links, and what an explanation adds up to.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dtfm_fixture.h"
#include "tests/unit/observed_dtfm.h"

static void deal(uint32_t *stage_of, uint32_t workers, uint32_t stages, uint64_t *seed)
{
	for (uint32_t i = 0; i < workers; i++)
		stage_of[i] = i % stages;
	for (uint32_t i = workers; i > 1; i--) {
		uint32_t j = pool_draw(seed, i), swapped = stage_of[i - 1];
		stage_of[i - 1] = stage_of[j];
		stage_of[j] = swapped;
	}
}

static void assert_close(double a, double b)
{
	assert_true(fabs(a - b) <= 1e-12 * fmax(fabs(a), fabs(b)));
}

/* Four workers in two places, 8 Gbit/s and no delay inside, 1 Gbit/s and 10 ms across; c_dp = 1 GB, c_pp = 0.5 GB. A stage in
 * each place: 2 (1e9 / 2) / 1e9 = 1 s, and 2 (0.01 + 0.5e9 / 0.125e9) = 8.02 s. Stages across: 2 (0.01 + 0.5e9 / 0.125e9) =
 * 8.02 s, and 2 (0.5e9 / 1e9) = 1 s. */
static void by_hand(void **state)
{
	(void)state;
	struct pool pool = pool_make(4, 2, 1, true);
	for (uint32_t i = 0; i < 4; i++)
		for (uint32_t j = 0; j < 4; j++) {
			((double *)pool.links.delay_s)[i * 4 + j] = i / 2 == j / 2 ? 0 : 0.01;
			((double *)pool.links.rate_Bps)[i * 4 + j] = i / 2 == j / 2 ? 1e9 : 0.125e9;
		}
	pool.dtfm.gradient_bytes = 1e9;
	pool.dtfm.activation_bytes = 0.5e9;
	pool_cost(&pool);
	assert_close(pool.cost->whole(pool.cost->self, (const uint32_t[]){0, 0, 1, 1}), 9.02);
	assert_close(pool.cost->whole(pool.cost->self, (const uint32_t[]){0, 1, 0, 1}), 9.02);
	struct dtfm_parts parts = dtfm_explain(pool.cost, (const uint32_t[]){0, 0, 1, 1}, NULL);
	assert_close(parts.data_parallel_s, 1);
	assert_close(parts.pipeline_s, 4.01);
	parts = dtfm_explain(pool.cost, (const uint32_t[]){0, 1, 0, 1}, NULL);
	assert_close(parts.data_parallel_s, 8.02);
	assert_close(parts.pipeline_s, 0.5);
	pool_finish(&pool);
}

static void as_all_pairings_and_orders(void **state)
{
	(void)state;
	static const uint32_t shape[][2] = {
		{4, 2}, {6, 2}, {6, 3}, {8, 4}, {9, 3}, {10, 5}, {12, 3}, {12, 2}, {12, 6}, {5, 5}, {3, 1}};
	for (uint64_t seed = 1; seed <= 6; seed++)
		for (uint32_t i = 0; i < sizeof shape / sizeof *shape; i++) {
			struct pool pool = pool_make(shape[i][0], shape[i][1], seed, seed % 2 == 0);
			uint64_t draws = seed;
			pool_cost(&pool);
			for (uint32_t n = 0; n < 5; n++) {
				uint32_t stage_of[12];
				deal(stage_of, shape[i][0], shape[i][1], &draws);
				assert_close(pool.cost->whole(pool.cost->self, stage_of), plain_cost(&pool, stage_of));
			}
			pool_finish(&pool);
		}
}

/* To the last bit: whatever way led there. */
static void a_change_costs_what_the_whole_would(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		uint32_t workers = seed % 2 ? 24 : 130, stages = seed % 2 ? 4 : 2, stage_of[130];
		struct pool pool = pool_make(workers, stages, seed, seed > 2),
			    other = pool_make(workers, stages, seed, seed > 2);
		pool_cost(&pool);
		pool_cost(&other);
		deal(stage_of, workers, stages, &seed);
		pool.cost->whole(pool.cost->self, stage_of);
		for (uint32_t n = 0; n < 60; n++) {
			struct skep_change change = {pool_draw(&seed, workers), pool_draw(&seed, workers), 0};
			uint32_t from = stage_of[change.worker];
			double said = pool.cost->change(pool.cost->self, &change);
			stage_of[change.worker] = stage_of[change.other];
			stage_of[change.other] = from;
			double whole = other.cost->whole(other.cost->self, stage_of);
			assert_memory_equal(&said, &whole, sizeof said);
			if (n % 3 != 0) {
				pool.cost->keep(pool.cost->self);
				continue;
			}
			stage_of[change.other] = stage_of[change.worker];
			stage_of[change.worker] = from;
		}
		pool_finish(&pool);
		pool_finish(&other);
	}
}

static void a_sketch_is_never_below(void **state)
{
	(void)state;
	struct pool pool = pool_make(24, 4, 7, true), other = pool_make(24, 4, 7, true);
	uint32_t stage_of[24];
	uint64_t seed = 3;
	pool_cost(&pool);
	pool_cost(&other);
	const struct skep_objective *sketch = pool.cost->sketch;
	deal(stage_of, 24, 4, &seed);
	double begun = sketch->whole(sketch->self, stage_of);
	assert_close(begun, other.cost->whole(other.cost->self, stage_of));
	bool above = false;
	for (uint32_t n = 0; n < 2000; n++) {
		struct skep_change change = {pool_draw(&seed, 24), pool_draw(&seed, 24), 0};
		uint32_t from = stage_of[change.worker];
		double said = sketch->change(sketch->self, &change);
		stage_of[change.worker] = stage_of[change.other];
		stage_of[change.other] = from;
		double true_cost = other.cost->whole(other.cost->self, stage_of);
		assert_true(said >= true_cost * (1 - 1e-9));
		above |= said > true_cost * (1 + 1e-9);
		sketch->keep(sketch->self);
		if (n % 500 == 499) /* and written down anew it is as good as can be */
			assert_close(sketch->whole(sketch->self, stage_of), true_cost);
	}
	assert_true(above);
	pool_finish(&pool);
	pool_finish(&other);
}

static void arranged_stages_are_a_chain(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct pool pool = pool_make(24, 6, seed, true);
		uint32_t stage_of[24], pipeline[24], met[6][4] = {{0}};
		pool_cost(&pool);
		deal(stage_of, 24, 6, &seed);
		double cost = pool.cost->whole(pool.cost->self, stage_of);
		pool.cost->arrange(pool.cost->self, stage_of);
		struct dtfm_parts parts = dtfm_explain(pool.cost, stage_of, pipeline);
		assert_close(parts.total_s, cost);
		assert_close(parts.data_parallel_s + 2 * parts.pipeline_s, cost);
		double longest[6] = {0}, path = 0;
		for (uint32_t i = 0; i < 24; i++) {
			assert_true(pipeline[i] < 4 && met[stage_of[i]][pipeline[i]]++ == 0);
			for (uint32_t j = 0; j < 24; j++)
				if (stage_of[j] == stage_of[i] + 1 && pipeline[j] == pipeline[i])
					longest[stage_of[i]] = fmax(longest[stage_of[i]], plain_edge(&pool, i, j));
		}
		for (uint32_t s = 0; s < 6; s++)
			path += longest[s];
		assert_close(path, parts.pipeline_s);
		pool_finish(&pool);
	}
}

/* More groups than the exact path takes: never shorter than true, and as short where the right order can be seen. */
static void a_long_path(void **state)
{
	(void)state;
	enum { STAGES = 40 };
	struct pool pool = pool_make(STAGES, STAGES, 1, true);
	uint32_t stage_of[STAGES];
	uint64_t seed = 5;
	for (uint32_t i = 0; i < STAGES; i++)
		for (uint32_t j = 0; j < STAGES; j++) {
			((double *)pool.links.delay_s)[i * STAGES + j] = (i > j ? i - j : j - i) * 0.01; /* on a line */
			((double *)pool.links.rate_Bps)[i * STAGES + j] = INFINITY;
		}
	pool_cost(&pool);
	deal(stage_of, STAGES, STAGES, &seed);
	assert_true(fabs(pool.cost->whole(pool.cost->self, stage_of) - 2 * 0.01 * (STAGES - 1)) < 1e-12);
	pool_finish(&pool);
}

static void no_way_costs_for_ever(void **state)
{
	(void)state;
	struct pool pool = pool_make(6, 2, 3, true);
	((double *)pool.links.rate_Bps)[0 * 6 + 1] = 0;
	pool_cost(&pool);
	assert_true(isinf(pool.cost->whole(pool.cost->self, (const uint32_t[]){0, 0, 0, 1, 1, 1})));
	/* 0 and 1 in two stages need not be partners. */
	assert_true(isfinite(pool.cost->whole(pool.cost->self, (const uint32_t[]){0, 1, 0, 1, 0, 1})));
	for (uint32_t i = 1; i < 6; i++)
		((double *)pool.links.delay_s)[i] = INFINITY;
	free(pool.mem);
	pool_cost(&pool);
	assert_true(isinf(pool.cost->whole(pool.cost->self, (const uint32_t[]){0, 1, 0, 1, 0, 1})));
	const struct skep_objective *sketch = pool.cost->sketch;
	double capped = sketch->whole(sketch->self, (const uint32_t[]){0, 1, 0, 1, 0, 1});
	assert_true(isfinite(capped) && capped > 1);
	pool_finish(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_hand),
		cmocka_unit_test(as_all_pairings_and_orders),
		cmocka_unit_test(a_change_costs_what_the_whole_would),
		cmocka_unit_test(a_sketch_is_never_below),
		cmocka_unit_test(arranged_stages_are_a_chain),
		cmocka_unit_test(a_long_path),
		cmocka_unit_test(no_way_costs_for_ever),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
