/* SPDX-License-Identifier: Apache-2.0
 *
 * norm.h - LayerNorm (Ba et al., arXiv 1607.06450) and RMSNorm (Zhang and Sennrich, arXiv 1910.07467) of rows: y = w (x - m)
 * r + b, where m is the row's mean and r one over its deviation; RMSNorm has neither m nor b. Kept for the way back are r and
 * m r of each row, two numbers; y itself is made again from these.
 */
#pragma once

#include <stdbool.h>

#include "base/process/thread_pool.h"
#include "models/layers/real.h"

enum { SKEP_NORM_KEPT = 2 };

struct skep_norm {
	size_t rows, width;
	const skep_real *weight; /* [width] */
	const skep_real *bias;   /* [width]; NULL: RMSNorm */
	skep_real epsilon;
	struct skep_thread_pool *thread_pool; /* shares the loops out; NULL: the calling thread does all */
};

/* Finds ret_kept[rows][2]. */
void skep_norm_measure(const struct skep_norm *norm, const skep_real *x, skep_real *ret_kept);
/* y[rows][width] from x and what was kept. */
void skep_norm_apply(const struct skep_norm *norm, const skep_real *x, const skep_real *kept, skep_real *ret_y);
/* sum[rows][width] += the gradient at x, given that at y. Adds to those of weight and bias. NULL: not wanted. `y_gradient` is
 * used up. */
void skep_norm_backward(const struct skep_norm *norm, const skep_real *x, const skep_real *kept, skep_real *y_gradient,
	skep_real *weight_gradient, skep_real *bias_gradient, skep_real *sum);
