/* SPDX-License-Identifier: Apache-2.0
 *
 * ring.h - ring all-reduce (Patarasuk and Yuan 2009): reduce-scatter, then all-gather, 2(n-1) hops of one chunk each.
 *
 * The chunks travel independently. Rank i takes its own chunk i and sends it as hop 1. What arrives at rank i as hop h is
 * chunk (i - h) mod n: in hops 1 .. n-1 the rank adds its own share, in hops n .. 2n-2 the sum is complete and is stored.
 * It then goes on as hop h + 1 until hop 2n-2. No hop waits for another, so messages may arrive in any order, and a rank is
 * done when it has stored n chunks. Each rank sends 2(n-1) chunks: 2(n-1)/n of the vector.
 */
#ifndef SKEP_CORE_RING_H
#define SKEP_CORE_RING_H

#include <stdbool.h>
#include <stdint.h>

static inline uint32_t skep_ring_hops(uint32_t size)
{
	return size > 0 ? 2 * (size - 1) : 0;
}

static inline uint32_t skep_ring_chunk(uint32_t rank, uint32_t size, uint32_t hop)
{
	return (rank + 2 * size - hop) % size;
}

static inline bool skep_ring_adds(uint32_t size, uint32_t hop)
{
	return hop < size;
}

/* The sum (or the copy) that this hop makes is the final one. */
static inline bool skep_ring_stores(uint32_t size, uint32_t hop)
{
	return hop >= size - 1;
}

#endif
