/* SPDX-License-Identifier: Apache-2.0
 *
 * ring.h - ring all-reduce (Patarasuk and Yuan 2009): reduce-scatter, then all-gather, 2(n-1) hops of one chunk each. A chunk
 * travels in k segments, each of which goes on when it has arrived, whatever becomes of the others (as in NCCL and Gloo).
 *
 * The chunks travel independently. Rank i takes its own chunk i and sends it as hop 1. What arrives at rank i as hop h is
 * chunk (i - h) mod n: in hops 1 .. n-1 the rank adds its own share, in hops n .. 2n-2 the sum is complete and is stored.
 * It then goes on as hop h + 1 until hop 2n-2. No hop waits for another, so messages may arrive in any order, and a rank is
 * done when it has stored n chunks. Each rank sends 2(n-1) chunks: 2(n-1)/n of the vector.
 *
 * The two halves by themselves, numbered each from 0 as the hops of a ring are. Reduce-scatter: hops 0 .. n-1, as above; hop n-1
 * leaves chunk (i + 1) mod n whole at rank i, the chunk that the rank owns, and goes nowhere. All-gather: hop 0 takes the chunk
 * that the rank owns, and what arrives as hop h, 1 .. n-1, is chunk (i + 1 - h) mod n, which is stored and goes on as hop h + 1
 * until hop n-1. So both together send what a ring sends, message by message: n-1 chunks of each rank in each half.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SKEP_RING_SEGMENTS_MAX 8u      /* of a chunk, unless the plan says how many */
#define SKEP_RING_SEGMENT_BYTES 65536u /* no smaller, unless it does: a message costs its ends time besides its bytes */

/* Segments of a chunk of so many bytes, where a link carries `latency_bytes` during its latency. A link is busy with a chunk for
 * C / B, and a segment needs C / kB + a to the next rank. So the latency is hidden, and a hop takes no longer than its bytes do,
 * if C / k + aB <= C. One segment more hides what the device does with one; two are the least, as Gloo's ring has two in flight
 * (gloo/allreduce.cc). */
static inline uint32_t skep_ring_segments_for(uint64_t chunk_bytes, uint64_t latency_bytes)
{
	uint64_t segments = SKEP_RING_SEGMENTS_MAX, most = chunk_bytes / SKEP_RING_SEGMENT_BYTES;
	if (latency_bytes < chunk_bytes) {
		uint64_t left = chunk_bytes - latency_bytes;
		uint64_t needed = 1 + chunk_bytes / left + (chunk_bytes % left != 0);
		segments = needed < segments ? needed : segments;
	}
	segments = segments < most ? segments : most;
	return segments > 0 ? (uint32_t)segments : 1;
}

static inline uint32_t skep_ring_hops(uint32_t size)
{
	return size > 0 ? 2 * (size - 1) : 0;
}

static inline uint32_t skep_ring_chunk(uint32_t rank, uint32_t size, uint32_t hop)
{
	return (rank + 2 * size - hop) % size;
}

/* The chunk that is whole at the rank after a reduce-scatter. */
static inline uint32_t skep_ring_owned(uint32_t rank, uint32_t size)
{
	return (rank + 1) % size;
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
