/* SPDX-License-Identifier: Apache-2.0
 *
 * square.h - sums of squares as the core carries them: numbers that are not negative, without floating point, so that every
 * compiler gets the same ones from the same ones.
 *
 * 48 bits of mantissa below 16 of exponent: m * 2^(e - 32768 - 48), the mantissa's top bit set; 0 is 0, and all ones is what is
 * not finite. A world makes them of doubles and back (models/update/squares.h). Relative error: of a sum
 * 2^-47; of a quotient 2^-47,
 * or 2^-31 for a divisor near 2^32.
 */
#pragma once

#include <stdint.h>

#define SKEP_SQUARE_BITS 48u
#define SKEP_SQUARE_BIAS 32768
#define SKEP_SQUARE_INFINITE UINT64_MAX
#define SKEP_SQUARE_UNKNOWN (UINT64_MAX - 1) /* no such number was told yet */

static inline uint64_t skep_square_make(uint64_t mantissa, int64_t exponent)
{
	if (mantissa == 0)
		return 0;
	for (; mantissa >> SKEP_SQUARE_BITS; exponent++)
		mantissa >>= 1;
	for (; !(mantissa >> (SKEP_SQUARE_BITS - 1)); exponent--)
		mantissa <<= 1;
	if (exponent >= 65535)
		return SKEP_SQUARE_INFINITE;
	return exponent < 0 ? 0 : (uint64_t)exponent << SKEP_SQUARE_BITS | mantissa;
}

static inline uint64_t skep_square_mantissa(uint64_t a)
{
	return a & (((uint64_t)1 << SKEP_SQUARE_BITS) - 1);
}

static inline uint64_t skep_square_add(uint64_t a, uint64_t b)
{
	uint64_t large = a > b ? a : b, small = a > b ? b : a; /* they compare as what they stand for */
	uint64_t shift = (large >> SKEP_SQUARE_BITS) - (small >> SKEP_SQUARE_BITS);
	if (small == 0 || shift >= SKEP_SQUARE_BITS || large == SKEP_SQUARE_INFINITE)
		return large;
	uint64_t sum = skep_square_mantissa(large) + (skep_square_mantissa(small) >> shift);
	return skep_square_make(sum, (int64_t)(large >> SKEP_SQUARE_BITS));
}

/* a - b, 0 if b is more: of what cannot be below 0 but for rounding. */
static inline uint64_t skep_square_subtract(uint64_t a, uint64_t b)
{
	uint64_t shift = (a >> SKEP_SQUARE_BITS) - (b >> SKEP_SQUARE_BITS);
	if (b == 0 || a == SKEP_SQUARE_INFINITE)
		return a;
	if (a <= b)
		return 0;
	uint64_t large = skep_square_mantissa(a) << 15, small = skep_square_mantissa(b) << 15;
	return skep_square_make(large - (shift < 64 ? small >> shift : 0), (int64_t)(a >> SKEP_SQUARE_BITS) - 15);
}

/* 0 by nothing is 0: a sum of no gradients. */
static inline uint64_t skep_square_divide(uint64_t a, uint32_t divisor)
{
	if (a == SKEP_SQUARE_INFINITE || a == 0 || divisor == 0)
		return a;
	return skep_square_make((skep_square_mantissa(a) << 15) / divisor, (int64_t)(a >> SKEP_SQUARE_BITS) - 15);
}
