/* SPDX-License-Identifier: Apache-2.0
 *
 * test_square.c - sums of squares in integers against the same in floating point; arrays that are not finite; and the clipped
 * step of a model, cut or whole, against one whose gradients were scaled by hand.
 */
#include "tests/unit/job.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/random.h"
#include "models/update/squares.h"

static bool near(double a, double b, double tolerance)
{
	return fabs(a - b) <= tolerance * fabs(b);
}

/* From 1e-60 to 1e60. */
static double draw(uint64_t *state)
{
	double part = 1 + (double)skep_random_below(state, 1000000) * 1e-6;
	return part * pow(10, (double)skep_random_below(state, 121) - 60);
}

static void test_sums_and_quotients(void **state)
{
	(void)state;
	uint64_t seed = 7;
	for (int i = 0; i < 10000; i++) {
		double a = draw(&seed), b = draw(&seed);
		uint32_t divisor = 1 + skep_random_below(&seed, i % 2 ? 100 : UINT32_MAX - 1);
		uint64_t x = skep_squares_encode(a), y = skep_squares_encode(b);
		assert_true(near(skep_squares_decode(x), a, 1e-14));
		assert_true(skep_square_add(x, y) == skep_square_add(y, x));
		assert_true(near(skep_squares_decode(skep_square_add(x, y)), a + b, 1e-13));
		assert_true(near(skep_squares_decode(skep_square_divide(x, divisor)), a / divisor,
			divisor < 101 ? 1e-13 : 1e-9));
		assert_true((x < y) == (a < b) || near(a, b, 1e-14)); /* they compare as what they stand for */
	}
}

static void test_edges(void **state)
{
	(void)state;
	uint64_t one = skep_squares_encode(1);
	assert_true(skep_squares_encode(0) == 0 && skep_squares_decode(0) == 0);
	assert_true(
		skep_square_add(0, one) == one && skep_square_divide(0, 3) == 0 && skep_square_divide(one, 0) == one);
	const double wild[] = {(double)INFINITY, (double)NAN};
	for (int i = 0; i < 2; i++) {
		uint64_t none = skep_squares_encode(wild[i]);
		assert_true(none == SKEP_SQUARE_INFINITE && isinf(skep_squares_decode(none)));
		assert_true(skep_square_add(none, one) == none && skep_square_add(one, none) == none);
		assert_true(skep_square_divide(none, 7) == none);
	}
	assert_true(near(skep_squares_decode(skep_squares_encode(1e-300)), 1e-300, 1e-14));
	assert_true(near(skep_squares_decode(skep_squares_encode(1e300)), 1e300, 1e-14));
}

/* As clip_grad_norm_ has it. */
static void test_scale(void **state)
{
	(void)state;
	assert_true(skep_squares_scale(1, skep_squares_encode(0.25)) == 1);
	assert_true(skep_squares_scale(0, skep_squares_encode(1e9)) == 1); /* not clipped */
	assert_true(near(skep_squares_scale(0.5, skep_squares_encode(4)), 0.5 / (2 + 1e-6), 1e-14));
	assert_true(skep_squares_scale(1, 0) == 1);
}

static void test_what_is_finite(void **state)
{
	(void)state;
	static const float wild[] = {INFINITY, -INFINITY, NAN};
	float a[53] = {0};
	for (size_t n = 0; n <= 53; n++) {
		double squares = 0;
		for (size_t i = 0; i < n; i++) {
			a[i] = (float)(i % 3 ? 3e38 : -1e-38);
			squares += (double)a[i] * (double)a[i];
		}
		assert_true(skep_squares_finite(n, a) && near(skep_squares_sum(n, a), squares, 1e-14));
		for (size_t i = 0; i < n; i++) {
			float was = a[i];
			a[i] = wild[i % 3];
			assert_false(skep_squares_finite(n, a));
			assert_false(isfinite(skep_squares_sum(n, a)));
			a[i] = was;
		}
	}
}

/* The norm of the gradients of a job of so many stages, before a step that clips it; then its parameters. */
static float *clipped_step(uint32_t stages, float most, double *ret_norm, size_t *ret_n)
{
	struct job job;
	job_init(&job, stages, SKEP_ACTIVATION_TANH, 4, 8);
	job.plan.clip = most > 0;
	job.training.optimizer =
		(struct skep_optimizer){.kind = SKEP_OPTIMIZER_SGD, .learning_rate = 0.1f, .clip_norm = most};
	job_restart(&job);
	for (uint32_t m = 0; m < 3; m++)
		job_microbatch(&job, 0, m);
	float *gradient = job_gradients(&job, 0, ret_n);
	double squares = 0;
	for (size_t i = 0; i < *ret_n; i++)
		squares += (double)(gradient[i] / 3) * (double)(gradient[i] / 3);
	*ret_norm = sqrt(squares);
	free(gradient);
	job_step(&job, 0, 3);
	float *parameter = job_parameters(&job, ret_n);
	job_finish(&job);
	return parameter;
}

static void test_a_step_is_clipped_whatever_the_cut(void **state)
{
	(void)state;
	double norm, other;
	size_t n, m;
	float *first = clipped_step(1, 0, &norm, &n), *half = clipped_step(1, (float)(norm / 2), &other, &m);
	float *above = clipped_step(1, (float)(norm * 2), &other, &m),
	      *cut = clipped_step(3, (float)(norm / 2), &other, &m);
	struct job job;
	job_init(&job, 1, SKEP_ACTIVATION_TANH, 4, 8);
	float *start = job_parameters(&job, &m);
	assert_true(n == m && memcmp(above, first, n * sizeof *first) == 0);
	for (size_t i = 0; i < n; i++) {
		double step = (double)first[i] - (double)start[i], clipped = (double)half[i] - (double)start[i];
		assert_true(fabs(clipped - step / 2) < 3e-7);
		assert_true(fabs((double)cut[i] - (double)half[i]) < 1e-7);
	}
	job_finish(&job);
	free(first), free(half), free(above), free(cut), free(start);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums_and_quotients),
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_scale),
		cmocka_unit_test(test_what_is_finite),
		cmocka_unit_test(test_a_step_is_clipped_whatever_the_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
