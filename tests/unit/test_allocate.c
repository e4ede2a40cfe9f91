/* SPDX-License-Identifier: Apache-2.0
 *
 * test_allocate.c - small pools: every search against an enumeration that shares no code with it; sizes, spares, memory and
 * what is fixed; and what is wrong with a problem or with links, said with the nearest change.
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
#include "planning/search/methods.h"
#include "tests/unit/seeds.h"

#define GIB (UINT64_C(1) << 30)

static struct skep_found search_with(struct skep_search *search, uint32_t *ret_stage_of)
{
	void *mem = malloc(skep_search_size(search));
	struct skep_found found = skep_search_run(search, mem, ret_stage_of);
	free(mem);
	return found;
}

static struct skep_problem_check check_problem(const struct skep_problem *problem)
{
	void *scratch = malloc(skep_problem_scratch_size(problem) + 1);
	struct skep_problem_check check = skep_problem_check(problem, scratch);
	free(scratch);
	return check;
}

/* ---- all of them, plainly ------------------------------------------------------------------------------------------- */

struct all { /* allocations */
	const struct skep_problem *problem;
	double (*cost)(void *self, const uint32_t *stage_of);
	void *self;
	double best, worst, sum, count;
	uint32_t stage_of[16];
};

static void each_allocation(struct all *all, uint32_t at)
{
	uint32_t count[16];
	if (at < all->problem->workers) {
		for (uint32_t s = 0; s <= all->problem->stages; s++) {
			all->stage_of[at] = s == all->problem->stages ? SKEP_SPARE : s;
			each_allocation(all, at + 1);
		}
		return;
	}
	if (!skep_problem_allows(all->problem, all->stage_of, count))
		return;
	double cost = all->cost(all->self, all->stage_of);
	all->best = fmin(all->best, cost);
	all->worst = fmax(all->worst, cost);
	all->sum += cost;
	all->count++;
}

static struct all all_of(const struct skep_problem *problem, double (*cost)(void *, const uint32_t *), void *self)
{
	struct all all = {.problem = problem, .cost = cost, .self = self, .best = INFINITY, .worst = -INFINITY};
	each_allocation(&all, 0);
	return all;
}

static double plain(void *self, const uint32_t *stage_of)
{
	return plain_cost(self, stage_of);
}

/* A cost that knows stages apart and sizes: one of the sort that only whole() is known of. */
static double crooked(void *self, const uint32_t *stage_of)
{
	uint64_t hash = *(const uint64_t *)self;
	double sum = 0;
	for (uint32_t i = 0; i < 7; i++)
		sum += (double)pool_draw(&hash, 100) * (stage_of[i] == SKEP_SPARE ? 0.7 : (stage_of[i] + i) % 3);
	return sum + (stage_of[0] == stage_of[1] ? 0 : 40) + (stage_of[2] == stage_of[5] ? 30 : 0);
}

static bool same_cost(double a, double b)
{
	return fabs(a - b) <= 1e-9 * fmax(1, fabs(b));
}

static void exact_is_exact(void **state)
{
	(void)state;
	static const uint32_t shape[][2] = {{4, 2}, {6, 3}, {8, 2}, {8, 4}, {6, 6}, {5, 1}};
	for (uint64_t seed = 1; seed <= 3; seed++)
		for (uint32_t i = 0; i < sizeof shape / sizeof *shape; i++) {
			uint32_t workers = shape[i][0], stage_of[12];
			struct pool pool = pool_make(workers, shape[i][1], seed, true);
			struct skep_problem problem = {.workers = workers, .stages = shape[i][1]};
			pool_cost(&pool);
			struct all all = all_of(&problem, plain, &pool);
			struct skep_search search = {
				SKEP_METHOD_EXACT, &problem, pool.cost, {.evaluations = 1000000}, .seed = 1};
			struct skep_found found = search_with(&search, stage_of);
			assert_true(found.optimal && same_cost(found.cost, all.best));
			assert_true(same_cost(found.mean, all.sum / all.count) && same_cost(found.worst, all.worst));
			/* Stages are alike, so each allocation stands for as many as there are orders of stages. */
			assert_true((double)found.evaluations <= all.count);
			pool_finish(&pool);
		}
}

static void exact_with_sizes_and_spares(void **state)
{
	(void)state;
	uint32_t least[] = {1, 2, 1}, most[] = {3, 4, 2}, stage_of[7];
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct skep_problem problem = {
			.workers = 7, .stages = 3, .least = least, .most = most, .spares = (uint32_t)seed % 3};
		uint64_t self = seed;
		struct skep_objective cost = {.whole = crooked, .self = &self};
		struct all all = all_of(&problem, crooked, &self);
		struct skep_search search = {SKEP_METHOD_EXACT, &problem, &cost, {.evaluations = 1000000}, .seed = 1};
		struct skep_found found = search_with(&search, stage_of);
		assert_true(found.optimal && same_cost(found.cost, all.best) && same_cost(found.worst, all.worst));
		assert_true(same_cost(found.mean, all.sum / all.count) && (double)found.evaluations == all.count);
	}
}

/* Machines in three places are of three kinds; what that spares is counted back into mean and worst. */
static void kinds_change_nothing_but_the_work(void **state)
{
	(void)state;
	for (uint32_t stages = 2; stages <= 4; stages += 2) {
		struct pool pool = pool_make(8, stages, 5, true);
		static const uint32_t place[] = {0, 0, 0, 1, 1, 2, 2, 2};
		uint32_t kind[8], stage_of[8];
		for (uint32_t i = 0; i < 8; i++)
			for (uint32_t j = 0; j < 8; j++) {
				uint32_t a = place[i], b = place[j];
				((double *)pool.links.delay_s)[i * 8 + j] = 0.001 + 0.01 * (a + b) * (a != b);
				((double *)pool.links.rate_Bps)[i * 8 + j] = a == b ? 1e9 : 1e7 * (1 + a + b);
			}
		pool_cost(&pool);
		assert_int_equal(skep_kinds(&pool.links, NULL, 0, NULL, kind), 3);
		for (uint32_t i = 0; i < 8; i++)
			assert_int_equal(kind[i], place[i]);
		struct skep_problem problem = {.workers = 8, .stages = stages};
		struct all all = all_of(&problem, plain, &pool);
		struct skep_search search = {
			SKEP_METHOD_EXACT, &problem, pool.cost, {.evaluations = 1000000}, .seed = 1};
		struct skep_found slow = search_with(&search, stage_of);
		problem.kind = kind;
		struct skep_found fast = search_with(&search, stage_of);
		assert_true(slow.optimal && fast.optimal && same_cost(slow.cost, all.best) &&
			    same_cost(fast.cost, all.best));
		assert_true(same_cost(slow.mean, all.sum / all.count) && same_cost(fast.mean, all.sum / all.count));
		assert_true(same_cost(fast.worst, all.worst) && fast.evaluations < slow.evaluations);
		assert_true((double)fast.evaluations <= skep_exact_count(&problem));
		pool_finish(&pool);
	}
}

static void what_is_looked_at_is_counted_before(void **state)
{
	(void)state;
	static const uint32_t kind[] = {0, 1, 2, 0, 2, 1, 0, 2}; /* three, two and three of a kind */
	struct skep_problem problem = {.workers = 8, .stages = 4};
	assert_true(same_cost(skep_exact_count(&problem), 65536)); /* 4^8 */
	problem.kind = kind;
	assert_true(same_cost(skep_exact_count(&problem), 20 * 10 * 20));
	problem.spares = 1;
	assert_true(same_cost(skep_exact_count(&problem), 35 * 15 * 35));
	problem = (struct skep_problem){.workers = 4000, .stages = 4};
	assert_true(skep_exact_count(&problem) >= 1e300);
}

/* Worker 1 may not serve stage 0. */
static double picky_cost(void *self, const uint32_t *stage_of)
{
	(void)self;
	return stage_of[1] == 0 ? SKEP_NEVER : 1 + 2 * stage_of[0] + stage_of[2];
}

static void what_cannot_be_is_in_no_mean(void **state)
{
	(void)state;
	static const uint32_t least[] = {1, 1}, most[] = {3, 3};
	struct skep_problem problem = {.workers = 3, .stages = 2, .least = least, .most = most};
	struct skep_objective cost = {.whole = picky_cost, .self = NULL};
	struct skep_search search = {SKEP_METHOD_EXACT, &problem, &cost, {.evaluations = 1000}, .seed = 1};
	uint32_t stage_of[3];
	struct skep_found found = search_with(&search, stage_of);
	/* Of (a, 1, c) all but (1, 1, 1), which leaves stage 0 empty: 1, 2 and 3. */
	assert_true(found.optimal && same_cost(found.cost, 1) && same_cost(found.mean, 2) && same_cost(found.worst, 3));
}

/* Issue "Planning", shown by 1. */
static void all_seeds_find_the_optimum_of_twelve(void **state)
{
	(void)state;
	static const enum skep_method method[] = {SKEP_METHOD_GENETIC, SKEP_METHOD_ANNEAL, SKEP_METHOD_PORTFOLIO};
	static const uint32_t stages_of[] = {2, 3, 4, 6};
	for (uint32_t i = 0; i < 4; i++) {
		struct pool pool = pool_make(12, stages_of[i], 1 + i, true);
		struct skep_problem problem = {.workers = 12, .stages = stages_of[i]};
		uint32_t stage_of[12], count[12];
		pool_cost(&pool);
		struct skep_search search = {
			SKEP_METHOD_EXACT, &problem, pool.cost, {.evaluations = 1000000}, .seed = 1};
		search.together_s = skep_dtfm_together(pool.cost);
		search.along_s = skep_dtfm_along(pool.cost);
		double best = search_with(&search, stage_of).cost;
		search.budget.evaluations = 30000;
		for (uint32_t m = 0; m < 3; m++)
			for (search.seed = 1; search.seed <= SEARCH_SEEDS; search.seed++) {
				search.method = method[m];
				struct skep_found found = search_with(&search, stage_of);
				assert_true(skep_problem_allows(&problem, stage_of, count));
				assert_true(same_cost(plain_cost(&pool, stage_of), found.cost));
				assert_true(same_cost(found.cost, best));
			}
		pool_finish(&pool);
	}
}

/* The same in smaller pools of all shapes, whose links are not the same there and back, with fewer evaluations. */
static void all_seeds_find_the_optimum_of_fewer(void **state)
{
	(void)state;
	static const enum skep_method method[] = {SKEP_METHOD_GENETIC, SKEP_METHOD_ANNEAL, SKEP_METHOD_PORTFOLIO};
	static const uint32_t shape[][2] = {{4, 2}, {6, 2}, {6, 3}, {8, 2}, {8, 4}, {9, 3}, {10, 2}, {10, 5}, {5, 5}};
	for (uint32_t i = 0; i < 2 * sizeof shape / sizeof *shape; i++) {
		uint32_t workers = shape[i / 2][0], stages = shape[i / 2][1], stage_of[12];
		struct pool pool = pool_make(workers, stages, 100 + i, false);
		struct skep_problem problem = {.workers = workers, .stages = stages};
		pool_cost(&pool);
		struct skep_search search = {
			SKEP_METHOD_EXACT, &problem, pool.cost, {.evaluations = 1000000}, .seed = 1};
		search.together_s = skep_dtfm_together(pool.cost);
		search.along_s = skep_dtfm_along(pool.cost);
		struct skep_found exact = search_with(&search, stage_of);
		assert_true(exact.optimal);
		search.budget.evaluations = 6000;
		for (uint32_t m = 0; m < 3; m++)
			for (search.seed = 1; search.seed <= SEARCH_SEEDS; search.seed++) {
				search.method = method[m];
				struct skep_found found = search_with(&search, stage_of);
				assert_true(same_cost(plain_cost(&pool, stage_of), found.cost));
				assert_true(same_cost(found.cost, exact.cost));
			}
		pool_finish(&pool);
	}
}

/* The walks of the portfolio have to find it too, without the enumeration that settles small pools. */
static void a_portfolio_needs_no_enumeration(void **state)
{
	(void)state;
	struct pool pool = pool_make(12, 4, 9, true);
	struct skep_problem problem = {.workers = 12, .stages = 4};
	uint32_t stage_of[12];
	pool_cost(&pool);
	struct skep_search search = {SKEP_METHOD_EXACT, &problem, pool.cost, {.evaluations = 1000000}, .seed = 1};
	double best = search_with(&search, stage_of).cost;
	search.method = SKEP_METHOD_PORTFOLIO;
	search.budget.evaluations = 2000; /* of 15,400 */
	for (search.seed = 1; search.seed <= SEARCH_SEEDS; search.seed++) {
		struct skep_found found = search_with(&search, stage_of);
		assert_true(!found.optimal && found.evaluations <= 2000 && same_cost(found.cost, best));
	}
	pool_finish(&pool);
}

static void every_method_keeps_the_rules(void **state)
{
	(void)state;
	uint32_t least[] = {1, 2, 1}, most[] = {2, 3, 2}, fixed[7], stage_of[7], again[7], count[3];
	uint64_t need[] = {4 * GIB, 16 * GIB, 8 * GIB}, have[7], self = 11;
	for (uint32_t i = 0; i < 7; i++) {
		have[i] = (i < 4 ? 16 : i < 6 ? 8 : 4) * GIB;
		fixed[i] = i == 1 ? 2 : SKEP_ANY_STAGE;
	}
	struct skep_problem problem = {.workers = 7,
		.stages = 3,
		.least = least,
		.most = most,
		.spares = 1,
		.need_bytes = need,
		.have_bytes = have,
		.fixed = fixed};
	struct skep_objective cost = {.whole = crooked, .self = &self};
	assert_int_equal(check_problem(&problem).fault, SKEP_PROBLEM_FINE);
	struct all all = all_of(&problem, crooked, &self);
	assert_true(all.count > 10);
	for (uint32_t m = 0; m < SKEP_METHODS; m++)
		for (uint64_t seed = 1; seed <= 5; seed++) {
			struct skep_search search = {
				(enum skep_method)m, &problem, &cost, {.evaluations = 400}, .seed = seed};
			struct skep_found found = search_with(&search, stage_of);
			assert_true(skep_problem_allows(&problem, stage_of, count));
			assert_true(found.evaluations >= 1 && found.evaluations <= 400);
			assert_true(same_cost(found.cost, crooked(&self, stage_of)) && found.cost >= all.best - 1e-9);
			struct skep_found second = search_with(&search, again); /* same seed, same result */
			assert_memory_equal(stage_of, again, sizeof stage_of);
			assert_memory_equal(&found.cost, &second.cost, sizeof found.cost);
			if (m >= SKEP_METHOD_GREEDY && m != SKEP_METHOD_GREEDY && m != SKEP_METHOD_RELAXED)
				assert_true(same_cost(found.cost, all.best));
		}
}

/* ---- ends ----------------------------------------------------------------------------------------------------------- */

static void no_budget_is_one_evaluation(void **state)
{
	(void)state;
	struct pool pool = pool_make(12, 3, 1, true);
	struct skep_problem problem = {.workers = 12, .stages = 3};
	uint32_t stage_of[12], count[3];
	const bool over = true;
	pool_cost(&pool);
	for (uint32_t m = 0; m < SKEP_METHODS; m++) {
		struct skep_search search = {(enum skep_method)m, &problem, pool.cost, {.evaluations = 0}, .seed = 1};
		struct skep_found found = search_with(&search, stage_of);
		assert_true(found.evaluations == 1 && isfinite(found.cost) &&
			    skep_problem_allows(&problem, stage_of, count));
		search.budget = (struct skep_budget){.evaluations = 100000, .over = &over};
		found = search_with(&search, stage_of);
		assert_true(found.evaluations == 1 && skep_problem_allows(&problem, stage_of, count));
	}
	pool_finish(&pool);
}

static double level(void *self, const uint32_t *stage_of)
{
	(void)stage_of;
	return *(const double *)self;
}

/* Nothing to choose: all cost the same, or nothing is possible. It ends, with an allowed allocation. */
static void all_equal_costs(void **state)
{
	(void)state;
	uint32_t stage_of[12], count[4];
	for (uint32_t n = 0; n < 2; n++)
		for (uint32_t m = 0; m < SKEP_METHODS; m++) {
			double value = n == 0 ? 7 : INFINITY;
			struct skep_problem problem = {.workers = 12, .stages = 4};
			struct skep_objective cost = {.whole = level, .self = &value};
			struct skep_search search = {
				(enum skep_method)m, &problem, &cost, {.evaluations = 3000}, .seed = 1};
			struct skep_found found = search_with(&search, stage_of);
			assert_true(!(found.cost < value) && !(found.cost > value));
			assert_true(skep_problem_allows(&problem, stage_of, count));
		}
}

static void a_trail_falls(void **state)
{
	(void)state;
	struct pool pool = pool_make(12, 3, 1, true);
	struct skep_problem problem = {.workers = 12, .stages = 3};
	struct skep_trail_point point[64];
	struct skep_trail trail = {point, 0, 64};
	uint32_t stage_of[12];
	pool_cost(&pool);
	struct skep_search search = {
		SKEP_METHOD_ANNEAL, &problem, pool.cost, {.evaluations = 2000}, .seed = 1, .trail = &trail};
	struct skep_found found = search_with(&search, stage_of);
	assert_true(trail.points > 1 && point[0].evaluations == 1);
	for (uint32_t i = 1; i < trail.points; i++)
		assert_true(point[i].cost < point[i - 1].cost && point[i].evaluations > point[i - 1].evaluations);
	assert_true(same_cost(point[trail.points - 1].cost, found.cost));
	pool_finish(&pool);
}

/* ---- what is wrong -------------------------------------------------------------------------------------------------- */

static void problems_that_cannot_be(void **state)
{
	(void)state;
	uint32_t least[] = {2, 1}, most[] = {2, 1}, fixed[] = {0, 0, 0, SKEP_ANY_STAGE};
	struct skep_problem problem = {.workers = 3, .stages = 4};
	struct skep_problem_check check = check_problem(&problem); /* more stages than workers */
	assert_int_equal(check.fault, SKEP_PROBLEM_FEW);
	assert_true(check.wanted == 4 && check.found == 3);
	problem.stages = 0;
	assert_int_equal(check_problem(&problem).fault, SKEP_PROBLEM_SIZE);
	problem = (struct skep_problem){.workers = 0, .stages = 1};
	assert_int_equal(check_problem(&problem).fault, SKEP_PROBLEM_SIZE);
	problem = (struct skep_problem){.workers = 4, .stages = 2, .least = least, .most = most};
	assert_int_equal(check_problem(&problem).fault, SKEP_PROBLEM_FINE); /* one is left out of necessity */
	most[0] = 1;
	check = check_problem(&problem);
	assert_true(check.fault == SKEP_PROBLEM_BOUNDS && check.stage == 0);
	problem = (struct skep_problem){.workers = 4, .stages = 2, .fixed = fixed};
	check = check_problem(&problem);
	assert_true(check.fault == SKEP_PROBLEM_FIXED && check.worker == 2 && check.stage == 0);
	fixed[2] = 2;
	check = check_problem(&problem);
	assert_true(check.fault == SKEP_PROBLEM_FIXED && check.worker == 2 && check.stage == 2);
}

static void memory_that_is_not_there(void **state)
{
	(void)state;
	uint64_t need[] = {6 * GIB, 14 * GIB, 10 * GIB},
		 have[] = {16 * GIB, 8 * GIB, 11 * GIB, 12 * GIB, 16 * GIB, 7 * GIB};
	struct skep_problem problem = {.workers = 6, .stages = 3, .need_bytes = need, .have_bytes = have};
	struct skep_problem_check check = check_problem(&problem);
	assert_int_equal(check.fault, SKEP_PROBLEM_FINE);
	have[0] = 13 * GIB; /* only one can hold stage 1 now */
	check = check_problem(&problem);
	assert_true(check.fault == SKEP_PROBLEM_MEMORY && check.stage == 1);
	assert_true(check.wanted == 2 && check.found == 1 && check.need_bytes == 14 * GIB);
	assert_true(check.fit_bytes == 13 * GIB && check.more_bytes == GIB && check.worker == 0);
	need[1] = check.fit_bytes; /* either change does */
	assert_int_equal(check_problem(&problem).fault, SKEP_PROBLEM_FINE);
	need[1] = 14 * GIB;
	have[check.worker] += check.more_bytes;
	assert_int_equal(check_problem(&problem).fault, SKEP_PROBLEM_FINE);
	have[0] = have[4] = 13 * GIB; /* and no other worker */
	check = check_problem(&problem);
	assert_true(check.fault == SKEP_PROBLEM_MEMORY && check.found == 0 && check.fit_bytes == 13 * GIB);
	have[0] = have[4] = 16 * GIB;
	have[5] = 1 * GIB; /* one that can hold nothing cannot serve, and may not be left out */
	check = check_problem(&problem);
	assert_true(
		check.fault == SKEP_PROBLEM_MEMORY && check.stage == 0 && check.found == 5 && check.fit_bytes == GIB);
	problem.spares = 1;
	assert_int_equal(check_problem(&problem).fault, SKEP_PROBLEM_FINE);
}

/* FINE or not is as an enumeration says. */
static void checks_agree_with_enumeration(void **state)
{
	(void)state;
	uint64_t seed = 1, fine = 0;
	for (uint32_t n = 0; n < 300; n++) {
		uint32_t least[3], most[3], fixed[5];
		uint64_t need[3], have[5];
		double zero = 0;
		for (uint32_t s = 0; s < 3; s++) {
			least[s] = 1 + pool_draw(&seed, 2);
			most[s] = least[s] + pool_draw(&seed, 2);
			need[s] = pool_draw(&seed, 4);
		}
		for (uint32_t i = 0; i < 5; i++) {
			have[i] = pool_draw(&seed, 5);
			fixed[i] = pool_draw(&seed, 6) == 0 ? pool_draw(&seed, 3) : SKEP_ANY_STAGE;
		}
		struct skep_problem problem = {5, 3, least, most, pool_draw(&seed, 3), need, have, fixed, NULL};
		bool possible = all_of(&problem, level, &zero).count > 0;
		assert_int_equal(check_problem(&problem).fault == SKEP_PROBLEM_FINE, possible);
		fine += possible;
	}
	assert_true(fine > 30 && fine < 270);
}

static void links_that_make_no_sense(void **state)
{
	(void)state;
	struct pool pool = pool_make(6, 2, 1, true);
	double *delay = (double *)pool.links.delay_s, *rate = (double *)pool.links.rate_Bps;
	uint8_t mark[6];
	delay[0] = NAN; /* the diagonal is not read */
	assert_int_equal(skep_links_check(&pool.links, mark).fault, SKEP_LINKS_FINE);
	delay[3 * 6 + 1] = NAN;
	struct skep_links_check check = skep_links_check(&pool.links, mark);
	assert_true(check.fault == SKEP_LINKS_NAN && check.row == 3 && check.column == 1);
	delay[3 * 6 + 1] = 0.1;
	rate[2 * 6 + 5] = -1;
	check = skep_links_check(&pool.links, mark);
	assert_true(check.fault == SKEP_LINKS_NEGATIVE && check.row == 2 && check.column == 5);
	rate[2 * 6 + 5] = 0; /* there are other ways */
	assert_int_equal(skep_links_check(&pool.links, mark).fault, SKEP_LINKS_FINE);
	for (uint32_t i = 0; i < 6; i++)
		for (uint32_t j = 0; j < 6; j++)
			rate[i * 6 + j] = i / 3 == j / 3 ? 1e9 : 0;
	check = skep_links_check(&pool.links, mark);
	assert_true(check.fault == SKEP_LINKS_APART && check.row == 0 && check.column == 3);
	rate[2 * 6 + 3] = 1; /* there, and not back */
	check = skep_links_check(&pool.links, mark);
	assert_true(check.fault == SKEP_LINKS_APART && check.row == 3 && check.column == 0);
	rate[5 * 6 + 1] = 1;
	assert_int_equal(skep_links_check(&pool.links, mark).fault, SKEP_LINKS_FINE);
	pool_finish(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exact_is_exact),
		cmocka_unit_test(exact_with_sizes_and_spares),
		cmocka_unit_test(kinds_change_nothing_but_the_work),
		cmocka_unit_test(what_is_looked_at_is_counted_before),
		cmocka_unit_test(what_cannot_be_is_in_no_mean),
		cmocka_unit_test(all_seeds_find_the_optimum_of_twelve),
		cmocka_unit_test(all_seeds_find_the_optimum_of_fewer),
		cmocka_unit_test(a_portfolio_needs_no_enumeration),
		cmocka_unit_test(every_method_keeps_the_rules),
		cmocka_unit_test(no_budget_is_one_evaluation),
		cmocka_unit_test(all_equal_costs),
		cmocka_unit_test(a_trail_falls),
		cmocka_unit_test(problems_that_cannot_be),
		cmocka_unit_test(memory_that_is_not_there),
		cmocka_unit_test(checks_agree_with_enumeration),
		cmocka_unit_test(links_that_make_no_sense),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
