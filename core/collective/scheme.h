/* SPDX-License-Identifier: Apache-2.0
 *
 * scheme.h - what the collectives have in common: transfers as they are written down, and the two functions that each kind is.
 */
#pragma once

#include <assert.h>

#include "core/collective/collective.h"

/* A transfer by its number; a hop of a transfer. */
typedef struct skep_scheme_transfer skep_scheme_transfer_fn(
	const struct skep_scheme *s, const uint64_t *fact, uint32_t m);
typedef struct skep_hop skep_scheme_hop_fn(const struct skep_scheme *s, const uint64_t *fact, uint32_t m, uint32_t nth);

skep_scheme_transfer_fn skep_scheme_butterfly_transfer, skep_scheme_ring_transfer, skep_scheme_chain_transfer,
	skep_scheme_broadcast_transfer, skep_scheme_scatter_transfer, skep_scheme_gather_transfer;
skep_scheme_hop_fn skep_scheme_butterfly_hop, skep_scheme_ring_hop, skep_scheme_chain_hop, skep_scheme_broadcast_hop;

static inline struct skep_scheme_transfer whole(const struct skep_scheme *s, enum skep_op_kind op)
{
	return (struct skep_scheme_transfer){.op = (uint8_t)op, .count = s->elements};
}

static inline struct skep_scheme_transfer part(
	const struct skep_scheme *s, enum skep_op_kind op, uint32_t chunk, uint32_t of)
{
	struct skep_scheme_transfer transfer = {.op = (uint8_t)op, .chunk = chunk};
	assert(chunk < of);
	skep_chunk_range(s->elements, chunk, of, &transfer.first, &transfer.count);
	return transfer;
}

/* The same, cut between blocks of the encoding: so that what came in parts encodes as one to the same bits. */
static inline struct skep_scheme_transfer block_part(
	const struct skep_scheme *s, enum skep_op_kind op, uint32_t chunk, uint32_t of)
{
	struct skep_scheme_transfer transfer = {.op = (uint8_t)op, .chunk = chunk};
	assert(chunk < of && s->block > 0);
	uint64_t blocks = s->elements / s->block + (s->elements % s->block != 0), end;
	skep_chunk_range(blocks, chunk, of, &transfer.first, &transfer.count);
	end = (transfer.first + transfer.count) * s->block;
	transfer.first = transfer.first * s->block < s->elements ? transfer.first * s->block : s->elements;
	transfer.count = (end < s->elements ? end : s->elements) - transfer.first;
	return transfer;
}

static inline struct skep_scheme_transfer nothing(void)
{
	return (struct skep_scheme_transfer){.op = 0};
}

static inline struct skep_scheme_transfer follows(struct skep_scheme_transfer transfer)
{
	transfer.follows = true;
	return transfer;
}

static inline struct skep_scheme_transfer arrives(struct skep_scheme_transfer transfer)
{
	transfer.arrives = true;
	return transfer;
}

static inline struct skep_scheme_transfer sends(struct skep_scheme_transfer transfer, uint32_t hops)
{
	transfer.hops = hops;
	return transfer;
}

/* What becomes of the parts that meet here: a sum that grows, or, to be gathered, the parts themselves. */
static inline enum skep_op_kind take(const struct skep_scheme *s)
{
	return s->gather ? SKEP_OP_PACK_PART : SKEP_OP_COPY_GRAD;
}

static inline enum skep_op_kind add(const struct skep_scheme *s, enum skep_op_kind kind)
{
	return s->gather ? SKEP_OP_UNPACK_PART : kind;
}

static inline struct skep_scheme_transfer of_member(struct skep_scheme_transfer transfer, uint32_t member)
{
	transfer.member = transfer.op == SKEP_OP_PACK_PART || transfer.op == SKEP_OP_UNPACK_PART ? member : 0;
	return transfer;
}

/* Each member once, from the next rank on; the last one is the member itself. */
static inline uint32_t nth_after(const struct skep_scheme *s, uint32_t nth)
{
	assert(s->rank < s->size && nth < s->size);
	return (s->rank + 1 + nth) % s->size;
}
