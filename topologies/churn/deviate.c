/* SPDX-License-Identifier: Apache-2.0
 *
 * deviate.c - see deviate.h. Logarithm: x = m 2^k with m near 1, and ln m = 2 artanh((m - 1) / (m + 1)) by its series.
 * Exponential: x = r + k ln 2, and e^r by its series. Normal: the polar method (Marsaglia and Bray 1964).
 */
#include "topologies/churn/deviate.h"

#include <assert.h>
#include <math.h>

#include "core/random.h"

#define LN2 0.693147180559945309417232

double skep_deviate_log(double x)
{
	int power;
	double m = frexp(x, &power); /* [0.5, 1) */
	assert(x > 0 && x < INFINITY);
	if (m < 0.70710678) {
		m *= 2;
		power--;
	}
	double z = (m - 1) / (m + 1), square = z * z, sum = 0; /* |z| <= 0.172: the 11th term is below 1e-17 */
	for (int odd = 21; odd >= 1; odd -= 2)
		sum = sum * square + 1.0 / odd;
	return power * LN2 + 2 * z * sum;
}

double skep_deviate_exp(double x)
{
	assert(x >= -700 && x <= 700);
	int power = (int)(x / LN2 + (x < 0 ? -0.5 : 0.5));
	double r = x - power * LN2, sum = 1; /* |r| <= 0.35: the 15th term is below 1e-18 */
	for (int n = 14; n >= 1; n--)
		sum = 1 + sum * r / n;
	return ldexp(sum, power);
}

static double between_minus_one_and_one(uint64_t *state)
{
	return (double)(skep_random_next(state) >> 11) * 0x1p-52 - 1;
}

double skep_deviate_normal(uint64_t *state)
{
	double u, v, square;
	do {
		u = between_minus_one_and_one(state);
		v = between_minus_one_and_one(state);
		square = u * u + v * v;
	} while (square >= 1 || square <= 0);
	return u * sqrt(-2 * skep_deviate_log(square) / square);
}
