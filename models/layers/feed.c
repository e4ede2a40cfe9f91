/* SPDX-License-Identifier: Apache-2.0
 *
 * feed.c - see feed.h. All of it is sums, products, divisions and what real.h makes of them: no library call, so that every
 * compiler at every level gives the same bits, and a vectoriser has nothing in its way.
 */
#include "models/layers/feed.h"

#define GELU_A ((skep_real)0.79788456080286536) /* sqrt(2 / pi) */
#define GELU_B ((skep_real)0.044715)
#define ROOT_HALF ((skep_real)0.70710678118654752)
#define DENSITY ((skep_real)0.39894228040143268) /* 1 / sqrt(2 pi) */

SKEP_ANY_WIDTH static void gelu_forward(
	size_t rows, size_t width, const skep_real *restrict in, skep_real *restrict ret)
{
	const skep_real half = (skep_real)0.5, one = 1;
	for (size_t i = 0; i < rows * width; i++) {
		skep_real x = in[i];
		skep_real t = skep_real_tanh(x * (GELU_A + GELU_A * GELU_B * x * x));
		ret[i] = half * x * (one + t);
	}
}

SKEP_ANY_WIDTH static void gelu_backward(size_t rows, size_t width, const skep_real *restrict in,
	const skep_real *restrict gradient, skep_real *restrict ret_value, skep_real *restrict ret_gradient)
{
	const skep_real half = (skep_real)0.5, one = 1;
	for (size_t i = 0; i < rows * width; i++) {
		skep_real x = in[i], s = x * x;
		skep_real t = skep_real_tanh(x * (GELU_A + GELU_A * GELU_B * s));
		skep_real both = half * (one + t);
		ret_value[i] = x * both;
		ret_gradient[i] = gradient[i] * (both + half * x * (one - t * t) * (GELU_A + 3 * GELU_A * GELU_B * s));
	}
}

/* x times the part of a standard normal distribution that is below x. */
SKEP_ANY_WIDTH static void gelu_erf_forward(
	size_t rows, size_t width, const skep_real *restrict in, skep_real *restrict ret)
{
	const skep_real half = (skep_real)0.5, one = 1;
	for (size_t i = 0; i < rows * width; i++) {
		skep_real x = in[i];
		ret[i] = half * x * (one + skep_real_erf(x * ROOT_HALF));
	}
}

/* The slope is that part, and x times the density at x. */
SKEP_ANY_WIDTH static void gelu_erf_backward(size_t rows, size_t width, const skep_real *restrict in,
	const skep_real *restrict gradient, skep_real *restrict ret_value, skep_real *restrict ret_gradient)
{
	const skep_real half = (skep_real)0.5, one = 1;
	for (size_t i = 0; i < rows * width; i++) {
		skep_real x = in[i];
		skep_real below = half * (one + skep_real_erf(x * ROOT_HALF));
		ret_value[i] = x * below;
		ret_gradient[i] = gradient[i] * (below + x * (DENSITY * skep_real_exp(-half * x * x)));
	}
}

static inline void swiglu_row(
	size_t width, const skep_real *restrict gate, const skep_real *restrict up, skep_real *restrict ret)
{
	const skep_real one = 1;
	for (size_t j = 0; j < width; j++)
		ret[j] = gate[j] / (one + skep_real_exp(-gate[j])) * up[j];
}

SKEP_ANY_WIDTH static void swiglu_forward(size_t rows, size_t width, const skep_real *in, skep_real *ret)
{
	for (size_t i = 0; i < rows; i++)
		swiglu_row(width, in + 2 * i * width, in + 2 * i * width + width, ret + i * width);
}

/* With s = 1 / (1 + exp(-g)): the slope of g s is s + g s (1 - s). */
static inline void swiglu_row_backward(size_t width, const skep_real *restrict gate, const skep_real *restrict up,
	const skep_real *restrict gradient, skep_real *restrict ret_value, skep_real *restrict ret_site_link,
	skep_real *restrict ret_up)
{
	const skep_real one = 1;
	for (size_t j = 0; j < width; j++) {
		skep_real s = one / (one + skep_real_exp(-gate[j])), bent = gate[j] * s;
		ret_value[j] = bent * up[j];
		ret_up[j] = gradient[j] * bent;
		ret_site_link[j] = gradient[j] * up[j] * (s + bent * (one - s));
	}
}

SKEP_ANY_WIDTH static void swiglu_backward(size_t rows, size_t width, const skep_real *in, const skep_real *gradient,
	skep_real *ret_value, skep_real *ret_gradient)
{
	for (size_t i = 0; i < rows; i++) {
		const skep_real *gate = in + 2 * i * width;
		skep_real *back = ret_gradient + 2 * i * width;
		swiglu_row_backward(
			width, gate, gate + width, gradient + i * width, ret_value + i * width, back, back + width);
	}
}

/* ---- for any width ------------------------------------------------------------------------------------------------ */

void skep_gelu_forward(size_t rows, size_t width, const skep_real *in, skep_real *ret)
{
	gelu_forward(rows, width, in, ret);
}

void skep_gelu_backward(size_t rows, size_t width, const skep_real *in, const skep_real *gradient, skep_real *ret_value,
	skep_real *ret_gradient)
{
	gelu_backward(rows, width, in, gradient, ret_value, ret_gradient);
}

void skep_gelu_erf_forward(size_t rows, size_t width, const skep_real *in, skep_real *ret)
{
	gelu_erf_forward(rows, width, in, ret);
}

void skep_gelu_erf_backward(size_t rows, size_t width, const skep_real *in, const skep_real *gradient,
	skep_real *ret_value, skep_real *ret_gradient)
{
	gelu_erf_backward(rows, width, in, gradient, ret_value, ret_gradient);
}

void skep_swiglu_forward(size_t rows, size_t width, const skep_real *in, skep_real *ret)
{
	swiglu_forward(rows, width, in, ret);
}

void skep_swiglu_backward(size_t rows, size_t width, const skep_real *in, const skep_real *gradient,
	skep_real *ret_value, skep_real *ret_gradient)
{
	swiglu_backward(rows, width, in, gradient, ret_value, ret_gradient);
}

/* ---- of perceptrons ------------------------------------------------------------------------------------------------- */

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
