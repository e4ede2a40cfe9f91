/* SPDX-License-Identifier: Apache-2.0
 *
 * exponential.h - exp(-x) for x >= 0: from operations that IEEE 754 rounds in one way, so
 * equal on every compiler and machine.
 *
 * x = k ln 2 + r with 0 <= r < ln 2; exp(-r) by its series to r^17 / 17!, the next term being below 2^-60; then k halvings.
 * Where the result is below 2^-1000 it is 0.
 */
#pragma once

#include <stdint.h>
#include <string.h>

static inline double skep_exp_minus(double x)
{
	const double ln2 = 0.6931471805599453;
	if (!(x < 693))
		return 0;
	uint64_t k = (uint64_t)(x / ln2);
	double r = x - (double)k * ln2, sum = 1;
	for (int i = 17; i > 0; i--)
		sum = 1 - r * sum / i;
	uint64_t bits = (1023 - k) << 52;
	double half;
	memcpy(&half, &bits, sizeof half);
	return sum * half;
}
