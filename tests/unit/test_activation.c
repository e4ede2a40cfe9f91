/* SPDX-License-Identifier: Apache-2.0
 *
 * test_activation.c - values and slopes against the C library in double precision, and the same bits at every width.
 */
#include "models/layers/feed.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { N = 4001 };

static double value_of(enum skep_activation activation, double x)
{
	switch (activation) {
	case SKEP_ACTIVATION_TANH:
		return tanh(x);
	case SKEP_ACTIVATION_RELU:
		return fmax(x, 0.0);
	case SKEP_ACTIVATION_GELU:
		break;
	}
	return 0.5 * x * (1.0 + tanh(sqrt(2.0 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

static void test_values_and_slopes(void **state)
{
	(void)state;
	static float bias[N], value[N], slope[N];
	for (int a = SKEP_ACTIVATION_TANH; a <= SKEP_ACTIVATION_GELU; a++) {
		for (int j = 0; j < N; j++) {
			value[j] = (float)(j - N / 2) * 0.00625f + 0.001f; /* about -12.5 .. 12.5, 0 left out */
			bias[j] = j % 2 ? 0.25f : -0.25f;
		}
		skep_activation_apply((enum skep_activation)a, 1, N, bias, value, slope);
		for (int j = 0; j < N; j++) {
			double x = (double)((float)(j - N / 2) * 0.00625f + 0.001f) + (double)bias[j], h = 1e-5;
			double expected = value_of(a, x);
			double rise = (value_of(a, x + h) - value_of(a, x - h)) / (2 * h);
			if (fabs((double)value[j] - expected) > 4e-7 * fmax(1.0, fabs(x)))
				fail_msg("activation %d at %g: %.9g, not %.9g", a, x, (double)value[j], expected);
			if (fabs((double)slope[j] - rise) > 4e-6)
				fail_msg("activation %d at %g: slope %.9g, not %.9g", a, x, (double)slope[j], rise);
		}
	}
}

/* A row of one is computed in scalar registers, a long one in the widest there are. */
static void test_width_changes_no_bit(void **state)
{
	(void)state;
	static float bias[N], value[N], slope[N], one_value[N], one_slope[N];
	for (int a = SKEP_ACTIVATION_TANH; a <= SKEP_ACTIVATION_GELU; a++) {
		for (int j = 0; j < N; j++) {
			value[j] = one_value[j] = (float)(j - N / 2) * 0.0057f;
			bias[j] = (float)(j % 17) * 0.1f;
		}
		skep_activation_apply((enum skep_activation)a, 1, N, bias, value, slope);
		for (int j = 0; j < N; j++)
			skep_activation_apply((enum skep_activation)a, 1, 1, &bias[j], &one_value[j], &one_slope[j]);
		assert_memory_equal(value, one_value, sizeof value);
		assert_memory_equal(slope, one_slope, sizeof slope);
	}
}

static void test_far_out(void **state)
{
	(void)state;
	const float zero[6] = {0};
	for (int a = SKEP_ACTIVATION_TANH; a <= SKEP_ACTIVATION_GELU; a++) {
		float value[6] = {100.0f, -100.0f, 1e6f, -1e6f, NAN, 0.0f}, slope[6];
		skep_activation_apply((enum skep_activation)a, 1, 6, zero, value, slope);
		bool bounded = a == SKEP_ACTIVATION_TANH;
		assert_true(value[0] == (bounded ? 1.0f : 100.0f) && value[2] == (bounded ? 1.0f : 1e6f));
		assert_true(value[1] == (bounded ? -1.0f : 0.0f) && value[3] == (bounded ? -1.0f : 0.0f));
		assert_true(slope[0] == (bounded ? 0.0f : 1.0f) && slope[2] == (bounded ? 0.0f : 1.0f));
		assert_true(slope[1] == 0.0f && slope[3] == 0.0f);
		assert_true(isnan(value[4]) && value[5] == 0.0f);
	}
}

static double below(double x)
{
	return 0.5 * erfc(-x / sqrt(2.0));
}

/* GELU by erf, its slope, and the value that comes with the slope. */
static void test_exact_gelu(void **state)
{
	(void)state;
	static float x[N], one[N], value[N], again[N], slope[N];
	for (int j = 0; j < N; j++) {
		x[j] = (float)(j - N / 2) * 0.00625f + 0.001f;
		one[j] = 1.0f;
	}
	skep_gelu_erf_forward(1, N, x, value);
	skep_gelu_erf_backward(1, N, x, one, again, slope);
	for (int j = 0; j < N; j++) {
		const double at = (double)x[j], expected = at * below(at);
		const double rise = below(at) + at * exp(-at * at / 2) / sqrt(2 * acos(-1.0));
		if (fabs((double)value[j] - expected) > 2e-7 * fmax(1.0, fabs(at)))
			fail_msg("gelu at %g: %.9g, not %.9g", at, (double)value[j], expected);
		if (fabs((double)slope[j] - rise) > 4e-7)
			fail_msg("gelu at %g: slope %.9g, not %.9g", at, (double)slope[j], rise);
		float alone;
		skep_gelu_erf_forward(1, 1, &x[j], &alone);
		assert_true(alone == value[j] && again[j] == value[j]);
	}
	const float out[4] = {100.0f, -100.0f, NAN, 0.0f};
	skep_gelu_erf_forward(1, 4, out, value);
	assert_true(value[0] == 100.0f && value[1] == 0.0f && isnan(value[2]) && value[3] == 0.0f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values_and_slopes),
		cmocka_unit_test(test_width_changes_no_bit),
		cmocka_unit_test(test_far_out),
		cmocka_unit_test(test_exact_gelu),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
