/* SPDX-License-Identifier: Apache-2.0
 *
 * feed.h - what bends: in the feed-forward part of a block GELU in its tanh form (Hendrycks and Gimpel, arXiv 1606.08415,
 * section 2), of rows of `width` numbers, and SwiGLU (Shazeer, arXiv 2002.05202), g / (1 + exp(-g)) u of rows that hold
 * `width` gates g, then as many u. Backwards the value is made again with the slope.
 */
#pragma once

#include "models/layers/real.h"
#include "models/read/model.h"

void skep_gelu_forward(size_t rows, size_t width, const skep_real *in, skep_real *ret);
/* `gradient`: at the value. It has the width of the value; ret_gradient that of `in`, and may not be `gradient`. */
void skep_gelu_backward(size_t rows, size_t width, const skep_real *in, const skep_real *gradient, skep_real *ret_value,
	skep_real *ret_gradient);

/* GELU as it is defined, x (1 + erf(x / sqrt(2))) / 2: that of BERT. */
void skep_gelu_erf_forward(size_t rows, size_t width, const skep_real *in, skep_real *ret);
void skep_gelu_erf_backward(size_t rows, size_t width, const skep_real *in, const skep_real *gradient,
	skep_real *ret_value, skep_real *ret_gradient);

void skep_swiglu_forward(size_t rows, size_t width, const skep_real *in, skep_real *ret);
void skep_swiglu_backward(size_t rows, size_t width, const skep_real *in, const skep_real *gradient,
	skep_real *ret_value, skep_real *ret_gradient);

/* The elementwise functions of a perceptron's layer, with their slopes, on arrays. */

/* value[rows * width] += bias[width] row by row, then slope = f'(value), value = f(value). */
void skep_activation_apply(enum skep_activation activation, uint32_t rows, uint32_t width, const skep_real *bias,
	skep_real *value, skep_real *ret_slope);
