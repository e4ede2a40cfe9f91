/* SPDX-License-Identifier: Apache-2.0
 *
 * test_data.c - the quadratic corpus: pure in (seed, sample number), spread as it says, disjoint among microbatches.
 */
#include "models/corpus/data.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_a_sample_depends_on_its_number_alone(void **state)
{
	(void)state;
	float x[3], y[3], again[3], one;
	skep_corpus_sample(SKEP_CORPUS_QUADRATIC, 1, 1u << 20, 3, x, 3, y);
	skep_corpus_sample(SKEP_CORPUS_QUADRATIC, 1, 5, 3, again, 3, NULL);
	assert_true(memcmp(x, again, sizeof x) != 0);
	skep_corpus_sample(SKEP_CORPUS_QUADRATIC, 2, 1u << 20, 3, again, 3, NULL);
	assert_true(memcmp(x, again, sizeof x) != 0);
	skep_corpus_sample(SKEP_CORPUS_QUADRATIC, 1, 1u << 20, 3, again, 3, NULL);
	assert_memory_equal(x, again, sizeof x);
	skep_corpus_sample(SKEP_CORPUS_QUADRATIC, 1, (1u << 20) + 1, 3, again, 3, NULL);
	for (int c = 0; c < 9; c++)
		assert_true(x[c / 3] != again[c % 3]);
	skep_corpus_sample(SKEP_CORPUS_QUADRATIC, 1, 1u << 20, 3, NULL, 1, &one);
	assert_true(one == y[0]);
	for (int c = 0; c < 3; c++)
		assert_true(y[c] == x[c] * x[c] && x[c] >= -5.0f && x[c] < 5.0f);
}

/* Moments of x and y = x^2 for x uniform on [-5, 5]: 25/3 and 25/3, 625/5 - 625/9. */
static void test_the_spread(void **state)
{
	(void)state;
	const uint64_t count = 200000;
	const double n = (double)count;
	double x1 = 0, x2 = 0, y1 = 0, y2 = 0, lag = 0;
	float before = 0, x, y;
	for (uint64_t i = 0; i < count; i++) {
		skep_corpus_sample(SKEP_CORPUS_QUADRATIC, 42, i, 1, &x, 1, &y);
		x1 += x, x2 += (double)x * x, y1 += y, y2 += (double)y * y;
		lag += (double)x * before;
		before = x;
	}
	assert_true(fabs(x1 / n) < 0.03);
	assert_true(fabs(lag / n) < 0.1);
	assert_true(fabs(x2 / n - 25.0 / 3) < 0.08);
	assert_true(fabs(y2 / n - y1 / n * (y1 / n) - 55.56) < 0.5);
}

static int compare(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;
	return (x > y) - (x < y);
}

static void test_microbatches_are_disjoint_and_numbered(void **state)
{
	(void)state;
	enum { SAMPLES = 8, ROUNDS = 4 };
	uint32_t width[] = {1, 1};
	struct skep_model model = {.layers = 1, .width = width};
	struct skep_plan plan = {.workers = 1, .stages = 1, .microbatches = 3, .seed = 9};
	struct skep_training training = {.model = &model, .plan = &plan, .samples = SAMPLES};
	uint32_t capacity = skep_round_capacity(&plan);
	size_t n = (size_t)ROUNDS * capacity * SAMPLES;
	float *all = malloc(n * sizeof *all), x[SAMPLES], y[SAMPLES];
	assert_non_null(all);
	for (uint32_t b = 0; b < ROUNDS * capacity; b++) {
		skep_corpus_microbatch(&training, b / capacity, b % capacity, all + (size_t)b * SAMPLES, y);
		for (uint32_t j = 0; j < SAMPLES; j++) {
			skep_corpus_sample(SKEP_CORPUS_QUADRATIC, 9, (uint64_t)b * SAMPLES + j, 1, x, 1, NULL);
			assert_true(all[b * SAMPLES + j] == x[0] && y[j] == x[0] * x[0]);
		}
	}
	qsort(all, n, sizeof *all,
		compare); /* 24 random bits each: a few chance twins are expected, shared runs are not */
	uint32_t tied_peers = 0;
	for (size_t i = 1; i < n; i++)
		tied_peers += all[i] == all[i - 1];
	assert_true(tied_peers < 8);
	free(all);
}

/* Over five epochs of a set whose size is no multiple of a microbatch: each point once in each, in another order. */
static void test_a_finite_set_is_gone_through(void **state)
{
	(void)state;
	enum { SAMPLES = 8, POINTS = 100, EPOCHS = 6, ALL = EPOCHS * POINTS };
	uint32_t width[] = {1, 1};
	struct skep_model model = {.layers = 1, .width = width};
	struct skep_plan plan = {.workers = 1, .stages = 1, .microbatches = 3, .seed = 9};
	struct skep_training training = {.model = &model, .plan = &plan, .samples = SAMPLES, .points = POINTS};
	float all[ALL], wanted[POINTS], sorted[2][POINTS], more[SAMPLES];
	for (uint32_t b = 0; b < ALL / SAMPLES; b++)
		skep_corpus_microbatch(&training, b / 3, b % 3, all + (size_t)b * SAMPLES, NULL);
	for (uint32_t i = 0; i < POINTS; i++)
		skep_corpus_sample(SKEP_CORPUS_QUADRATIC, 9, i, 1, &wanted[i], 1, NULL);
	qsort(wanted, POINTS, sizeof *wanted, compare);
	for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) {
		memcpy(sorted[0], all + (size_t)epoch * POINTS, sizeof sorted[0]);
		qsort(sorted[0], POINTS, sizeof *sorted[0], compare);
		assert_memory_equal(sorted[0], wanted, sizeof wanted);
		if (epoch > 0)
			assert_memory_not_equal(all + (size_t)epoch * POINTS, all, sizeof wanted);
	}
	skep_corpus_microbatch(&training, 2, 3 + 1, more, NULL); /* makes up for another one */
	assert_memory_equal(more, all + (2 * 3 + 1) * SAMPLES, sizeof more);
}

/* Midpoints of equal parts: the mean of x^2 lacks (width of a part)^2 / 12, and each component has each midpoint once. */
static void test_what_is_held_out_is_the_whole_range(void **state)
{
	(void)state;
	enum { ALL = 1000 };
	double sum[2] = {0};
	uint8_t seen[2][ALL] = {{0}};
	for (uint64_t i = 0; i < ALL; i++) {
		float x[2], y[2], one;
		skep_corpus_held_out(SKEP_CORPUS_QUADRATIC, i, ALL, 2, x, 2, y);
		skep_corpus_held_out(SKEP_CORPUS_QUADRATIC, i, ALL, 2, NULL, 1, &one);
		assert_true(one == y[0]);
		for (int c = 0; c < 2; c++) {
			sum[c] += y[c];
			seen[c][(int)((x[c] + 5) * ALL / 10)]++;
			assert_true(y[c] == x[c] * x[c]);
		}
	}
	for (int c = 0; c < 2; c++) {
		assert_true(fabs(sum[c] / ALL - (25.0 / 3 - 0.01 * 0.01 / 12)) < 1e-5);
		for (int i = 0; i < ALL; i++)
			assert_int_equal(seen[c][i], 1);
	}
}

/* The same in every round and for every seed and try, and another one for each microbatch. */
static void test_validation_has_samples_of_its_own(void **state)
{
	(void)state;
	enum { SAMPLES = 4, JUDGED = 3 };
	uint32_t width[] = {1, 1};
	struct skep_model model = {.layers = 1, .width = width};
	struct skep_plan plan = {.workers = 1,
		.stages = 1,
		.microbatches = 3,
		.rounds = 5,
		.validation.every = 2,
		.validation.microbatches = JUDGED};
	struct skep_training training = {.model = &model, .plan = &plan, .samples = SAMPLES};
	uint32_t capacity = skep_round_capacity(&plan);
	float first[JUDGED][SAMPLES], x[SAMPLES], y[SAMPLES];
	assert_int_equal(skep_plan_numbers(&plan), capacity + SKEP_VALIDATION_TRIES * JUDGED);
	assert_false(skep_plan_validates(&plan, capacity - 1));
	for (uint32_t i = 0; i < JUDGED; i++)
		skep_corpus_microbatch(&training, 0, capacity + i, first[i], y);
	for (uint32_t number = 0; number < SKEP_VALIDATION_TRIES * JUDGED; number++) {
		plan.seed = number;
		assert_true(skep_plan_validates(&plan, capacity + number));
		assert_int_equal(skep_plan_validation(&plan, capacity + number), number % JUDGED);
		skep_corpus_microbatch(&training, number, capacity + number, x, y);
		for (uint32_t j = 0; j < SAMPLES; j++) {
			assert_true(x[j] == first[number % JUDGED][j] && y[j] == x[j] * x[j]);
			assert_true(fabsf(x[j] - (-5 + 10.0f * (float)(number % JUDGED * SAMPLES + j) / 12)) < 0.5f);
		}
	}
	static const bool due[] = {false, false, true, false, true, true};
	for (uint32_t closed = 1; closed <= plan.rounds; closed++)
		assert_true(skep_plan_validation_due(&plan, closed) == due[closed]);
	plan.validation.every = 0;
	assert_int_equal(skep_plan_numbers(&plan), capacity);
	assert_false(skep_plan_validation_due(&plan, plan.rounds));
}

static void test_which_models_fit(void **state)
{
	(void)state;
	static const struct {
		uint32_t inputs, outputs;
		bool fits;
	} cases[] = {{1, 1, true}, {4, 4, true}, {4, 1, true}, {1, 4, false}, {4, 3, false}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint32_t width[] = {cases[i].inputs, 8, cases[i].outputs};
		struct skep_model model = {.layers = 2, .width = width};
		const char *expected = NULL;
		assert_true(skep_corpus_fits(SKEP_CORPUS_QUADRATIC, &model, &expected) == cases[i].fits);
		assert_true(cases[i].fits || expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_sample_depends_on_its_number_alone),
		cmocka_unit_test(test_the_spread),
		cmocka_unit_test(test_microbatches_are_disjoint_and_numbered),
		cmocka_unit_test(test_a_finite_set_is_gone_through),
		cmocka_unit_test(test_what_is_held_out_is_the_whole_range),
		cmocka_unit_test(test_validation_has_samples_of_its_own),
		cmocka_unit_test(test_which_models_fit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
