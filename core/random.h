/* SPDX-License-Identifier: Apache-2.0
 *
 * random.h - seeded streams of integers. Splitmix64 (Steele, Lea, Flood 2014): one word of state, equal on every compiler.
 */
#pragma once

#include <stdint.h>

static inline uint64_t skep_mix(uint64_t z)
{
	z += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static inline uint64_t skep_random_next(uint64_t *state)
{
	uint64_t value = skep_mix(*state);
	*state += 0x9e3779b97f4a7c15u;
	return value;
}

/* Uniform in [0, n), n >= 1. The bias of the multiplication is below n / 2^32. */
static inline uint32_t skep_random_below(uint64_t *state, uint32_t n)
{
	return (uint32_t)((skep_random_next(state) >> 32) * n >> 32);
}

/* Fisher and Yates: all orders are equally likely. */
static inline void skep_random_shuffle(uint64_t *state, uint32_t *item, uint32_t count)
{
	for (uint32_t i = count; i > 1; i--) {
		uint32_t j = skep_random_below(state, i), swapped = item[i - 1];
		item[i - 1] = item[j];
		item[j] = swapped;
	}
}

/* Uniform in [0, 1): one of 2^53 numbers, each of which a double holds exactly. */
static inline double skep_random_unit(uint64_t *state)
{
	return (double)(skep_random_next(state) >> 11) * 0x1p-53;
}
