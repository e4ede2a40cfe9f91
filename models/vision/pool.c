/* SPDX-License-Identifier: Apache-2.0
 *
 * pool.c - see pool.h.
 */
#include "models/vision/pool.h"

#include <assert.h>

/* Of the pixels that pixel (row, column) of the result sees, where the largest lies in the plane. */
static size_t largest(size_t from, size_t row, size_t column, const skep_real *x)
{
	const size_t top = row > 0 ? 2 * row - 1 : 0, left = column > 0 ? 2 * column - 1 : 0;
	size_t best = top * from + left;
	for (size_t i = top; i < 2 * row + 2 && i < from; i++)
		for (size_t j = left; j < 2 * column + 2 && j < from; j++)
			best = x[i * from + j] > x[best] ? i * from + j : best;
	return best;
}

void skep_pool_forward(size_t channels, size_t from, const skep_real *x, skep_real *ret)
{
	const size_t to = (from - 1) / 2 + 1;
	assert(from > 0);
	for (size_t c = 0; c < channels; c++, x += from * from, ret += to * to)
		for (size_t i = 0; i < to * to; i++)
			ret[i] = x[largest(from, i / to, i % to, x)];
}

void skep_pool_backward(size_t channels, size_t from, const skep_real *x, const skep_real *at_out, skep_real *ret)
{
	const size_t to = (from - 1) / 2 + 1;
	assert(from > 0);
	memset(ret, 0, channels * from * from * sizeof *ret);
	for (size_t c = 0; c < channels; c++, x += from * from, ret += from * from, at_out += to * to)
		for (size_t i = 0; i < to * to; i++)
			ret[largest(from, i / to, i % to, x)] += at_out[i];
}
