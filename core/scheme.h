/* SPDX-License-Identifier: Apache-2.0
 *
 * scheme.h - what the collectives have in common: moves as they are written down, and the two functions that each kind is.
 */
#ifndef SKEP_CORE_SCHEME_H
#define SKEP_CORE_SCHEME_H

#include "core/collective.h"

/* A move by its number; a hop of a move. */
typedef struct skep_scheme_move scheme_move_fn(const struct skep_scheme *s, const uint64_t *fact, uint32_t m);
typedef struct skep_hop scheme_hop_fn(const struct skep_scheme *s, const uint64_t *fact, uint32_t m, uint32_t nth);

scheme_move_fn scheme_butterfly_move;
scheme_hop_fn scheme_butterfly_hop;

static inline struct skep_scheme_move whole(const struct skep_scheme *s, enum skep_op_kind op)
{
	return (struct skep_scheme_move){.op = (uint8_t)op, .count = s->elements};
}

static inline struct skep_scheme_move part(
	const struct skep_scheme *s, enum skep_op_kind op, uint32_t chunk, uint32_t of)
{
	struct skep_scheme_move move = {.op = (uint8_t)op, .chunk = chunk};
	skep_chunk_range(s->elements, chunk, of, &move.first, &move.count);
	return move;
}

/* The same, cut between blocks of the encoding: so that what came in parts encodes as one to the same bits. */
static inline struct skep_scheme_move block_part(
	const struct skep_scheme *s, enum skep_op_kind op, uint32_t chunk, uint32_t of)
{
	struct skep_scheme_move move = {.op = (uint8_t)op, .chunk = chunk};
	uint64_t blocks = s->elements / s->block + (s->elements % s->block != 0), end;
	skep_chunk_range(blocks, chunk, of, &move.first, &move.count);
	end = (move.first + move.count) * s->block;
	move.first = move.first * s->block < s->elements ? move.first * s->block : s->elements;
	move.count = (end < s->elements ? end : s->elements) - move.first;
	return move;
}

static inline struct skep_scheme_move nothing(void)
{
	return (struct skep_scheme_move){.op = 0};
}

static inline struct skep_scheme_move follows(struct skep_scheme_move move)
{
	move.follows = true;
	return move;
}

static inline struct skep_scheme_move arrives(struct skep_scheme_move move)
{
	move.arrives = true;
	return move;
}

static inline struct skep_scheme_move sends(struct skep_scheme_move move, uint32_t hops)
{
	move.hops = hops;
	return move;
}

/* What becomes of the parts that meet here: a sum that grows, or, to be gathered, the parts themselves. */
static inline enum skep_op_kind take(const struct skep_scheme *s)
{
	return s->gather ? SKEP_OP_OFFER : SKEP_OP_TAKE;
}

static inline enum skep_op_kind add(const struct skep_scheme *s, enum skep_op_kind kind)
{
	return s->gather ? SKEP_OP_COLLECT : kind;
}

static inline struct skep_scheme_move of_member(struct skep_scheme_move move, uint32_t member)
{
	move.member = move.op == SKEP_OP_OFFER || move.op == SKEP_OP_COLLECT ? member : 0;
	return move;
}

/* Everybody once, from the next rank on; the last one is oneself. */
static inline uint32_t nth_after(const struct skep_scheme *s, uint32_t nth)
{
	return (s->rank + 1 + nth) % s->size;
}

#endif
