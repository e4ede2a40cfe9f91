/* SPDX-License-Identifier: Apache-2.0
 *
 * feed.c - see feed.h.
 */
#include "models/layers/feed.h"

#define GELU_A ((skep_real)0.79788456080286536) /* sqrt(2 / pi) */
#define GELU_B ((skep_real)0.044715)

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

void skep_swiglu_forward(size_t rows, size_t width, const skep_real *in, skep_real *ret)
{
	swiglu_forward(rows, width, in, ret);
}

void skep_swiglu_backward(size_t rows, size_t width, const skep_real *in, const skep_real *gradient,
	skep_real *ret_value, skep_real *ret_gradient)
{
	swiglu_backward(rows, width, in, gradient, ret_value, ret_gradient);
}
