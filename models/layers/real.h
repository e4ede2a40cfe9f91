/* SPDX-License-Identifier: Apache-2.0
 *
 * real.h - the type that the arithmetic of a stage is written in, and its functions. In skep it is float. The tests compile the
 * same sources with SKEP_REAL_DOUBLE, to compare gradients with finite differences: then it is double, and tanh, exp and
 * erf are the C library's.
 *
 * In float all three are sums, products and one division: no library call, so that every compiler at every level gives the same
 * bits and a vectoriser has nothing in its way.
 */
#pragma once

#include <cblas.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "models/layers/vector.h"

#ifdef SKEP_REAL_DOUBLE

typedef double skep_real;
#define SKEP_REAL_GEMM cblas_dgemm

static inline skep_real skep_real_tanh(skep_real x)
{
	return tanh(x);
}

static inline skep_real skep_real_exp(skep_real x)
{
	return exp(x);
}

static inline skep_real skep_real_erf(skep_real x)
{
	return erf(x);
}

static inline skep_real skep_real_root(skep_real x)
{
	return sqrt(x);
}

#else

typedef float skep_real;
#define SKEP_REAL_GEMM cblas_sgemm

/* x P(x^2) / Q(x^2), fitted to tanh by Remez exchange for least relative error on (0, 8.6]: 1.4e-8 before rounding. Beyond, it is
 * exactly 1 or -1, so that slopes vanish there however large their other factors are. A NaN stays one. */
static inline skep_real skep_real_tanh(skep_real x)
{
	float s = x * x;
	float p = 1.4082424601e-8f;
	p = p * s + 2.11223462127e-5f;
	p = p * s + 3.52639935822e-3f;
	p = p * s + 0.134068734012f;
	p = p * s + 0.999999986738f;
	float q = 8.07061729574e-7f;
	q = q * s + 3.336266673e-4f;
	q = q * s + 2.59938913986e-2f;
	q = q * s + 0.467401949379f;
	q = q * s + 1.0f;
	float t = x * p / q;
	t = x > 8.6f ? 1.0f : t;
	return x < -8.6f ? -1.0f : t;
}

/* 2^k (1 + r + r^2 P(r)), k the whole number nearest to x / ln 2, r the rest, P of degree 4 from the Chebyshev nodes of
 * |r| <= ln 2 / 2: 1.0e-8 before rounding. Below -87 it is that of -87, 1.6e-38; above 88 that of 88. A NaN stays one. */
static inline skep_real skep_real_exp(skep_real x)
{
	const float whole = 12582912.0f; /* 1.5 * 2^23: what is added to it is rounded to whole numbers */
	float y = x < -87.0f ? -87.0f : x;
	y = y > 88.0f ? 88.0f : y;
	float k = y * 1.44269504f + whole;
	int32_t power = (int32_t)((uint32_t)skep_float_bits(k) << 23);
	k -= whole;
	float r = y - k * 0.693359375f; /* ln 2 in two parts, the first of few bits */
	r = r + k * 2.12194440e-4f;
	float p = 1.3926213467e-3f;
	p = p * r + 8.3632029716e-3f;
	p = p * r + 4.1666554438e-2f;
	p = p * r + 1.6666576846e-1f;
	p = p * r + 0.5f;
	float e = 1.0f + (r + r * r * p);
	return skep_float_of((int32_t)((uint32_t)skep_float_bits(e) + (uint32_t)power));
}

/* x P(x^2) / Q(x^2), fitted to erf for least relative error on (0, 3.93]: 1.9e-8 before rounding. Beyond, it is exactly 1 or -1,
 * which erf there is when rounded. A NaN stays one. */
static inline skep_real skep_real_erf(skep_real x)
{
	float s = x * x;
	float p = 2.050397237e-6f;
	p = p * s + 2.848824376e-4f;
	p = p * s + 3.764987795e-3f;
	p = p * s + 5.274683174e-2f;
	p = p * s + 0.1903899499f;
	p = p * s + 1.128379146f;
	float q = 3.809490835e-5f;
	q = q * s + 1.16240869e-3f;
	q = q * s + 1.496794684e-2f;
	q = q * s + 0.1141025504f;
	q = q * s + 0.5020614425f;
	q = q * s + 1.0f;
	float e = x * p / q;
	e = x > 3.93f ? 1.0f : e;
	return x < -3.93f ? -1.0f : e;
}

static inline skep_real skep_real_root(skep_real x)
{
	return sqrtf(x);
}

#endif

/* ---- sums ------------------------------------------------------------------------------------------------------- */

/* Sixteen sums side by side, element i in sum i % 16, folded in halves at the end: an order that is written here, whatever
 * registers it runs in. */
enum { SKEP_REAL_LANES = 16 };
typedef skep_real skep_reals __attribute__((vector_size(SKEP_REAL_LANES * sizeof(skep_real))));

/* Of the lanes, which it uses up. */
static inline skep_real skep_real_fold(skep_real lane[SKEP_REAL_LANES])
{
	for (int width = SKEP_REAL_LANES / 2; width > 0; width /= 2)
		for (int j = 0; j < width; j++)
			lane[j] += lane[j + width];
	return lane[0];
}

static inline skep_real skep_real_sum(size_t n, const skep_real *a)
{
	skep_reals sum = {0}, next;
	skep_real lane[SKEP_REAL_LANES];
	size_t i = 0;
	for (; i + SKEP_REAL_LANES <= n; i += SKEP_REAL_LANES) {
		memcpy(&next, a + i, sizeof next);
		sum += next;
	}
	memcpy(lane, &sum, sizeof lane);
	for (size_t j = 0; i + j < n; j++)
		lane[j] += a[i + j];
	return skep_real_fold(lane);
}

/* Of what the numbers are beyond their mean. */
static inline skep_real skep_real_sum_of_squares(size_t n, const skep_real *a, skep_real mean)
{
	skep_reals sum = {0}, next;
	skep_real lane[SKEP_REAL_LANES];
	size_t i = 0;
	for (; i + SKEP_REAL_LANES <= n; i += SKEP_REAL_LANES) {
		memcpy(&next, a + i, sizeof next);
		next -= mean;
		sum += next * next;
	}
	memcpy(lane, &sum, sizeof lane);
	for (size_t j = 0; i + j < n; j++)
		lane[j] += (a[i + j] - mean) * (a[i + j] - mean);
	return skep_real_fold(lane);
}

static inline skep_real skep_real_dot(size_t n, const skep_real *a, const skep_real *b)
{
	skep_reals sum = {0}, x, y;
	skep_real lane[SKEP_REAL_LANES];
	size_t i = 0;
	for (; i + SKEP_REAL_LANES <= n; i += SKEP_REAL_LANES) {
		memcpy(&x, a + i, sizeof x);
		memcpy(&y, b + i, sizeof y);
		sum += x * y;
	}
	memcpy(lane, &sum, sizeof lane);
	for (size_t j = 0; i + j < n; j++)
		lane[j] += a[i + j] * b[i + j];
	return skep_real_fold(lane);
}

/* Of n >= 1 numbers. NaNs are passed over where they are not the first. */
static inline skep_real skep_real_most(size_t n, const skep_real *a)
{
	skep_real lane[SKEP_REAL_LANES], most;
	size_t i = 0;
	for (int j = 0; j < SKEP_REAL_LANES; j++)
		lane[j] = a[0];
	for (; i + SKEP_REAL_LANES <= n; i += SKEP_REAL_LANES)
		for (int j = 0; j < SKEP_REAL_LANES; j++)
			lane[j] = a[i + j] > lane[j] ? a[i + j] : lane[j];
	most = lane[0];
	for (int j = 1; j < SKEP_REAL_LANES; j++)
		most = lane[j] > most ? lane[j] : most;
	for (; i < n; i++)
		most = a[i] > most ? a[i] : most;
	return most;
}

/* ---- products ----------------------------------------------------------------------------------------------------- */

/* C[rows][columns] = scale op(A) op(B) + beta C; each leading dimension as given. */
static inline void skep_real_product_of(enum CBLAS_TRANSPOSE ta, enum CBLAS_TRANSPOSE tb, size_t rows, size_t columns,
	size_t inner, skep_real scale, const skep_real *a, size_t lda, const skep_real *b, size_t ldb, skep_real beta,
	skep_real *c, size_t ldc)
{
	SKEP_REAL_GEMM(CblasRowMajor, ta, tb, (int)rows, (int)columns, (int)inner, scale, a, (int)lda, b, (int)ldb,
		beta, c, (int)ldc);
}

/* The same of dense matrices. */
static inline void skep_real_product(enum CBLAS_TRANSPOSE ta, enum CBLAS_TRANSPOSE tb, size_t rows, size_t columns,
	size_t inner, const skep_real *a, const skep_real *b, skep_real beta, skep_real *c)
{
	skep_real_product_of(ta, tb, rows, columns, inner, 1, a, ta == CblasNoTrans ? inner : rows, b,
		tb == CblasNoTrans ? columns : inner, beta, c, columns);
}

/* sum[width] += each row of from[rows][width], in their order. */
static inline void skep_real_add_rows(
	size_t rows, size_t width, const skep_real *restrict from, skep_real *restrict sum)
{
	for (size_t i = 0; i < rows; i++)
		for (size_t j = 0; j < width; j++)
			sum[j] += from[i * width + j];
}
