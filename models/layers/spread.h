/* SPDX-License-Identifier: Apache-2.0
 *
 * spread.h - products and sums shared out to a thread pool (thread_pool.h), with the same bits for any number of
 * threads.
 *
 * A product is cut into blocks of the rows of its result: how many depends on its shape alone. OpenBLAS sums the products of one
 * number in an order that depends on where it lies among the rows of a call, in groups of 4, 8 or 12; so blocks begin at
 * multiples of 12 rows, and no bit is another than that of the product in one piece, as far as its kernels were tried
 * (those for Nehalem, Sandy Bridge, Haswell and Skylake-X). That the numbers of threads agree does not depend on it.
 */
#pragma once

#include "base/process/thread_pool.h"
#include "models/layers/real.h"

/* The size of a range, in numbers, of a loop that takes about a nanosecond for each number. */
enum { SKEP_SPREAD_NUMBERS = 32768 };

/* The size of a range in rows of `width` numbers. */
static inline size_t skep_spread_rows(size_t width)
{
	return width < SKEP_SPREAD_NUMBERS ? SKEP_SPREAD_NUMBERS / width : 1;
}

/* Columns of a sum over `rows` rows in a range: a few cache lines of each row. */
static inline size_t skep_spread_columns(size_t rows, size_t width)
{
	return rows * width < SKEP_SPREAD_NUMBERS ? width : 128;
}

/* skep_real_product(), of dense matrices: C[rows][columns] = op(A) op(B) + beta C. */
void skep_spread_product(struct skep_thread_pool *thread_pool, enum CBLAS_TRANSPOSE ta, enum CBLAS_TRANSPOSE tb,
	size_t rows, size_t columns, size_t inner, const skep_real *a, const skep_real *b, skep_real beta,
	skep_real *c);

/* ret[rows][width] = residual[rows][width] + bias[width], either of which may be NULL: where a product that is added to them
 * begins. */
void skep_spread_begin(struct skep_thread_pool *thread_pool, size_t rows, size_t width, const skep_real *residual,
	const skep_real *bias, skep_real *ret);

/* sum[width] += each row of from[rows][width], in their order: each range has some of the columns. */
void skep_spread_add_rows(
	struct skep_thread_pool *thread_pool, size_t rows, size_t width, const skep_real *from, skep_real *sum);
