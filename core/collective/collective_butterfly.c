/* SPDX-License-Identifier: Apache-2.0
 *
 * collective_butterfly.c - each member owns a share of the vector: it gets every member's piece of it, and gives the sum back.
 */
#include "core/collective/scheme.h"

#include <assert.h>

static struct skep_scheme_transfer share(
	const struct skep_scheme *s, const uint64_t *fact, enum skep_op_kind op, uint32_t owner, uint32_t chunk)
{
	assert(s->rank < s->size);
	assert(owner < s->size);
	struct skep_scheme_transfer transfer = {.op = (uint8_t)op, .chunk = owner * s->parts + chunk};
	skep_chunk_range(fact[owner + 1] - fact[owner], chunk, s->parts, &transfer.first, &transfer.count);
	transfer.first += fact[owner];
	return transfer;
}

/* One chain for my share, n + 1 transfers for each chunk (one more to make the sum of gathered parts): my own piece, 1 + r that
 * of rank r but for mine, and the sum. Then, by themselves, my pieces for the others, chunk by chunk; and at last the sums of
 * each rank. All pieces are sent at once: those for one member follow each other on its connection, and the sums follow them, so
 * a link never waits for an answer. */
struct butterfly_place {
	uint32_t pieces, sums;
};

static uint32_t butterfly_chain(const struct skep_scheme *s)
{
	return s->size + 2 + s->gather;
}

static struct butterfly_place butterfly_place(const struct skep_scheme *s)
{
	assert(s->rank < s->size);
	uint32_t pieces = s->parts * butterfly_chain(s);
	return (struct butterfly_place){.pieces = pieces, .sums = pieces + s->parts * s->size};
}

static struct skep_scheme_transfer butterfly_own(const struct skep_scheme *s, const uint64_t *fact, uint32_t m)
{
	assert(s->rank < s->size);
	uint32_t chunk = m / butterfly_chain(s), what = m % butterfly_chain(s);
	if (what == 0)
		return of_member(share(s, fact, add(s, SKEP_OP_INIT_RESULT), s->rank, chunk), s->rank);
	if (what == s->size + 1 && s->gather)
		return share(s, fact, SKEP_OP_AGGREGATE, s->rank, chunk);
	if (what > s->size)
		return sends(share(s, fact, SKEP_OP_COPY_RESULT, s->rank, chunk), s->size - 1);
	if (what - 1 == s->rank)
		return nothing();
	return arrives(of_member(share(s, fact, add(s, SKEP_OP_ADD_TO_RESULT), s->rank, chunk), what - 1));
}

struct skep_scheme_transfer skep_scheme_butterfly_transfer(
	const struct skep_scheme *s, const uint64_t *fact, uint32_t m)
{
	assert(s->rank < s->size);
	struct butterfly_place at = butterfly_place(s);
	if (m >= at.sums) {
		uint32_t owner = (m - at.sums) / s->parts, chunk = (m - at.sums) % s->parts;
		return owner == s->rank ? nothing() : arrives(share(s, fact, SKEP_OP_STORE, owner, chunk));
	}
	if (m >= at.pieces) {
		uint32_t owner = nth_after(s, (m - at.pieces) % s->size), chunk = (m - at.pieces) / s->size;
		return owner == s->rank ? nothing()
		                        : sends(of_member(share(s, fact, take(s), owner, chunk), s->rank), 1);
	}
	struct skep_scheme_transfer transfer = butterfly_own(s, fact, m);
	transfer.follows = m > 0;
	return transfer;
}

struct skep_hop skep_scheme_butterfly_hop(const struct skep_scheme *s, const uint64_t *fact, uint32_t m, uint32_t nth)
{
	assert(s->rank < s->size);
	struct butterfly_place at = butterfly_place(s);
	(void)fact;
	if (m >= at.pieces) {
		uint32_t chunk = (m - at.pieces) / s->size;
		return (struct skep_hop){.to = nth_after(s, (m - at.pieces) % s->size),
			.number = chunk * butterfly_chain(s) + 1 + s->rank};
	}
	return (struct skep_hop){
		.to = nth_after(s, nth), .number = at.sums + s->rank * s->parts + m / butterfly_chain(s)};
}
