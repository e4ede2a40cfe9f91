/* SPDX-License-Identifier: Apache-2.0
 *
 * bits.h - sets of small numbers as words of 64 bits.
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t skep_bits_words(uint32_t bits)
{
	return (bits + 63) / 64;
}

static inline bool skep_bits_has(const uint64_t *set, uint32_t bit)
{
	return set[bit / 64] >> bit % 64 & 1;
}

static inline void skep_bits_add(uint64_t *set, uint32_t bit)
{
	set[bit / 64] |= (uint64_t)1 << bit % 64;
}

static inline void skep_bits_clear(uint64_t *set, uint32_t words)
{
	memset(set, 0, words * sizeof *set);
}

static inline uint32_t skep_bits_count(uint64_t word)
{
	word -= word >> 1 & 0x5555555555555555u;
	word = (word & 0x3333333333333333u) + (word >> 2 & 0x3333333333333333u);
	word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fu;
	return (uint32_t)(word * 0x0101010101010101u >> 56);
}

/* The lowest bit of a word that is not 0. */
static inline uint32_t skep_bits_lowest(uint64_t word)
{
	assert(word != 0);
	return skep_bits_count((word & -word) - 1);
}

/* The first member from `bit` on, or `end` if there is none before. */
static inline uint32_t skep_bits_next(const uint64_t *set, uint32_t bit, uint32_t end)
{
	while (bit < end) {
		uint64_t word = set[bit / 64] >> bit % 64;
		if (word != 0) {
			bit += skep_bits_lowest(word);
			return bit < end ? bit : end;
		}
		bit += 64 - bit % 64;
	}
	return end;
}
