/* SPDX-License-Identifier: Apache-2.0
 *
 * collective_ring.c - rings and chains, in which each member sends to the next one alone and knows no other: the ring all-reduce
 * and its two halves (ring.h), the reduction along a chain with the broadcast that follows it, and the broadcast of one member's
 * vector.
 *
 * Nothing waits for anything but its message. Segments and chunks follow each other on the one connection from a member to the
 * next, in the order in which they were sent.
 */
#include "core/collective/ring.h"

#include <assert.h>

#include "core/collective/scheme.h"

/* ---- ring: transfer hop * k + j is segment j of k of the chunk that the hop brings ----------------------------------- */

/* Segment `nth` of the scheme's `parts` of a chunk, cut between the chunk's blocks: so that segments encode as the chunk does. */
static struct skep_scheme_transfer segment(
	const struct skep_scheme *s, enum skep_op_kind op, uint32_t chunk, uint32_t nth)
{
	assert(nth < s->parts);
	struct skep_scheme_transfer transfer = part(s, op, chunk, s->size);
	uint64_t end = transfer.first + transfer.count, first, count;
	uint64_t blocks = transfer.count / s->block + (transfer.count % s->block != 0);
	skep_chunk_range(blocks, nth, s->parts, &first, &count);
	uint64_t after = transfer.first + (first + count) * s->block;
	transfer.chunk = chunk * s->parts + nth;
	transfer.first += first * s->block;
	transfer.first = transfer.first < end ? transfer.first : end;
	transfer.count = (after < end ? after : end) - transfer.first;
	return transfer;
}

struct skep_scheme_transfer skep_scheme_ring_transfer(const struct skep_scheme *s, const uint64_t *fact, uint32_t m)
{
	assert(s->rank < s->size);
	uint32_t hop = m / s->parts, nth = m % s->parts;
	(void)fact;
	if (hop == 0)
		return sends(segment(s, SKEP_OP_COPY_GRAD, s->rank, nth), 1);
	enum skep_op_kind op = !skep_ring_adds(s->size, hop)    ? SKEP_OP_STORE
	                       : skep_ring_stores(s->size, hop) ? SKEP_OP_ADD_STORE
	                                                        : SKEP_OP_ADD;
	struct skep_scheme_transfer transfer = segment(s, op, skep_ring_chunk(s->rank, s->size, hop), nth);
	return arrives(sends(transfer, hop < skep_ring_hops(s->size)));
}

struct skep_hop skep_scheme_ring_hop(const struct skep_scheme *s, const uint64_t *fact, uint32_t m, uint32_t nth)
{
	assert(s->rank < s->size);
	(void)fact;
	(void)nth;
	return (struct skep_hop){.to = (s->rank + 1) % s->size, .number = m + s->parts};
}

/* ---- its halves: with the hops of ring.h, each numbered from 0 -------------------------------------------------------- */

struct skep_scheme_transfer skep_scheme_scatter_transfer(const struct skep_scheme *s, const uint64_t *fact, uint32_t m)
{
	assert(m < s->parts * s->size);
	struct skep_scheme_transfer transfer = skep_scheme_ring_transfer(s, fact, m);
	transfer.hops = m / s->parts + 1 < s->size;
	return transfer;
}

struct skep_scheme_transfer skep_scheme_gather_transfer(const struct skep_scheme *s, const uint64_t *fact, uint32_t m)
{
	assert(s->rank < s->size);
	uint32_t hop = m / s->parts, nth = m % s->parts, owned = skep_ring_owned(s->rank, s->size);
	enum skep_op_kind op = hop == 0 ? SKEP_OP_COPY_SHARD : SKEP_OP_STORE_SHARD;
	struct skep_scheme_transfer transfer = segment(s, op, skep_ring_chunk(owned, s->size, hop), nth);
	(void)fact;
	transfer.arrives = hop > 0;
	return sends(transfer, hop + 1 < s->size);
}

/* ---- chain: the sum grows from rank 0 to the last one, which sends it round to all others ------------------------------ */

/* Of C chunks transfer c adds chunk c to what comes and passes it on, transfer C + c stores what is whole. The last rank has no
 * use for what it has made itself. */
struct skep_scheme_transfer skep_scheme_chain_transfer(const struct skep_scheme *s, const uint64_t *fact, uint32_t m)
{
	assert(s->rank < s->size);
	uint32_t last = s->size - 1, chunk = m % s->parts;
	(void)fact;
	if (m >= s->parts)
		return arrives(sends(part(s, SKEP_OP_STORE, chunk, s->parts), s->rank + 1 < last));
	if (s->rank == 0)
		return sends(part(s, SKEP_OP_COPY_GRAD, chunk, s->parts), 1);
	return arrives(sends(part(s, s->rank < last ? SKEP_OP_ADD : SKEP_OP_ADD_STORE, chunk, s->parts), 1));
}

struct skep_hop skep_scheme_chain_hop(const struct skep_scheme *s, const uint64_t *fact, uint32_t m, uint32_t nth)
{
	assert(s->rank < s->size);
	(void)fact;
	(void)nth;
	bool whole = s->rank + 1 == s->size;
	return (struct skep_hop){.to = (s->rank + 1) % s->size, .number = m + (whole ? s->parts : 0)};
}

/* ---- broadcast: what rank 0 has, to all ---------------------------------------------------------------------------------- */

/* Rank 0, of C chunks: c takes it and brings it back to itself, C + c stores what all will store, and it goes on; the others
 * store chunk c and pass it on. */
struct skep_scheme_transfer skep_scheme_broadcast_transfer(
	const struct skep_scheme *s, const uint64_t *fact, uint32_t m)
{
	assert(s->rank < s->size);
	(void)fact;
	if (s->rank == 0 && m < s->parts)
		return sends(part(s, SKEP_OP_COPY_GRAD, m, s->parts), 1);
	struct skep_scheme_transfer transfer = part(s, SKEP_OP_STORE, m % s->parts, s->parts);
	return arrives(sends(transfer, s->rank + 1 < s->size));
}

struct skep_hop skep_scheme_broadcast_hop(const struct skep_scheme *s, const uint64_t *fact, uint32_t m, uint32_t nth)
{
	assert(s->rank < s->size);
	(void)fact;
	(void)nth;
	if (s->rank == 0 && m < s->parts)
		return (struct skep_hop){.to = 0, .number = s->parts + m};
	return (struct skep_hop){.to = s->rank + 1, .number = m % s->parts};
}
