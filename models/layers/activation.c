/* SPDX-License-Identifier: Apache-2.0
 *
 * activation.c - tanh, relu and gelu in plain single-precision sums, products and one division per element: no library
 * call, so that every compiler at every level gives the same bits, and a vectoriser has nothing in its way.
 */
#include "models/layers/feed.h"

SKEP_ANY_WIDTH static void tanh_row(
	uint32_t width, const skep_real *restrict bias, skep_real *restrict value, skep_real *restrict slope)
{
	for (uint32_t j = 0; j < width; j++) {
		skep_real t = skep_real_tanh(value[j] + bias[j]);
		value[j] = t;
		slope[j] = 1.0f - t * t;
	}
}

SKEP_ANY_WIDTH static void relu_row(
	uint32_t width, const skep_real *restrict bias, skep_real *restrict value, skep_real *restrict slope)
{
	for (uint32_t j = 0; j < width; j++) {
		skep_real x = value[j] + bias[j];
		value[j] = x < 0.0f ? 0.0f : x;
		slope[j] = x > 0.0f ? 1.0f : 0.0f;
	}
}

/* x/2 (1 + tanh(a (x + b x^3))), a = sqrt(2 / pi), b = 0.044715: Hendrycks and Gimpel, arXiv 1606.08415, section 2. */
SKEP_ANY_WIDTH static void gelu_row(
	uint32_t width, const skep_real *restrict bias, skep_real *restrict value, skep_real *restrict slope)
{
	const skep_real a = 0.797884560803f, ab = 0.0356774081363f;
	for (uint32_t j = 0; j < width; j++) {
		skep_real x = value[j] + bias[j];
		skep_real s = x * x;
		skep_real t = skep_real_tanh(x * (a + ab * s));
		value[j] = 0.5f * x * (1.0f + t);
		slope[j] = 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * (a + 3.0f * ab * s);
	}
}

void skep_activation_apply(enum skep_activation activation, uint32_t rows, uint32_t width, const skep_real *bias,
	skep_real *value, skep_real *ret_slope)
{
	static void (*const row[])(uint32_t, const skep_real *, skep_real *, skep_real *) = {
		[SKEP_ACTIVATION_TANH] = tanh_row,
		[SKEP_ACTIVATION_RELU] = relu_row,
		[SKEP_ACTIVATION_GELU] = gelu_row,
	};
	for (uint32_t i = 0; i < rows; i++)
		row[activation](width, bias, value + (size_t)i * width, ret_slope + (size_t)i * width);
}
