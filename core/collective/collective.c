/* SPDX-License-Identifier: Apache-2.0
 *
 * collective.c - see collective.h. Each kind is two functions: a transfer by its number, and a hop of a transfer. A number that a
 * member has no use for is a transfer without an operation: so senders know a receiver's numbers without knowing its part. Those
 * of the butterfly are in collective_butterfly.c, those of rings and chains in collective_ring.c.
 */
#include "core/collective/collective.h"

#include <assert.h>

#include "core/collective/ring.h"
#include "core/collective/scheme.h"
#include "core/collective/shards.h"

/* ---- helpers -------------------------------------------------------------------------------------------------- */

static uint32_t log2_up(uint32_t n)
{
	uint32_t k = 0;
	while ((UINT64_C(1) << k) < n)
		k++;
	return k;
}

static uint32_t log2_down(uint32_t n)
{
	return log2_up(n / 2 + 1);
}

/* ---- parameter-server: rank 0 sums ------------------------------------------------------------------------------ */

/* The server: 0 its own, r that of rank r, n the sum (if it is made of gathered parts, one more). The others: 0 what they
 * have, 1 the sum. */
static struct skep_scheme_transfer server_transfer(const struct skep_scheme *s, const uint64_t *fact, uint32_t m)
{
	assert(s->rank < s->size);
	(void)fact;
	if (s->rank > 0)
		return m == 0 ? of_member(sends(whole(s, take(s)), 1), s->rank) : arrives(whole(s, SKEP_OP_STORE));
	if (m == 0)
		return of_member(whole(s, add(s, SKEP_OP_INIT_RESULT)), 0);
	if (m < s->size)
		return of_member(follows(arrives(whole(s, add(s, SKEP_OP_ADD_TO_RESULT)))), m);
	if (m == s->size && s->gather)
		return follows(whole(s, SKEP_OP_AGGREGATE));
	return follows(sends(whole(s, SKEP_OP_COPY_RESULT), s->size - 1));
}

static struct skep_hop server_hop(const struct skep_scheme *s, const uint64_t *fact, uint32_t m, uint32_t nth)
{
	assert(s->rank < s->size);
	(void)fact;
	(void)m;
	if (s->rank > 0)
		return (struct skep_hop){.to = 0, .number = s->rank};
	return (struct skep_hop){.to = nth + 1, .number = 1};
}

/* ---- all-to-all ------------------------------------------------------------------------------------------------- */

/* 0: what I have, to all and myself. 1 + r: that of rank r, in this order; if they are gathered, then what they make. */
static struct skep_scheme_transfer all_transfer(const struct skep_scheme *s, const uint64_t *fact, uint32_t m)
{
	assert(s->rank < s->size);
	(void)fact;
	if (m == 0)
		return of_member(sends(whole(s, take(s)), s->size), s->rank);
	if (m == 1)
		return of_member(arrives(whole(s, add(s, SKEP_OP_STORE))), 0);
	if (m > s->size)
		return follows(whole(s, SKEP_OP_AGGREGATE));
	return of_member(follows(arrives(whole(s, add(s, SKEP_OP_ADD_TO_RESULT)))), m - 1);
}

static struct skep_hop all_hop(const struct skep_scheme *s, const uint64_t *fact, uint32_t m, uint32_t nth)
{
	assert(s->rank < s->size);
	(void)fact;
	(void)m;
	return (struct skep_hop){.to = nth_after(s, nth), .number = 1 + s->rank};
}

/* ---- halving-doubling ------------------------------------------------------------------------------------------- */

/* In step k of the halving a member keeps one half of what it has, its partner the other; after all steps it has chunk `rank` of
 * p. The doubling is the same backwards. Which chunks a member has before step k: */
static struct skep_scheme_transfer halves(
	const struct skep_scheme *s, enum skep_op_kind op, uint32_t step, uint32_t rank)
{
	assert(s->rank < s->size);
	assert(rank < s->size);
	uint32_t steps = log2_down(s->size), p = 1u << steps, chunks = p >> step;
	struct skep_scheme_transfer transfer = block_part(s, op, rank / chunks * chunks, p);
	struct skep_scheme_transfer last = block_part(s, op, transfer.chunk + chunks - 1, p);
	transfer.count = last.first + last.count - transfer.first;
	return transfer;
}

static uint32_t halving_partner(const struct skep_scheme *s, uint32_t step)
{
	return s->rank ^ (1u << log2_down(s->size)) >> (step + 1);
}

/* Ranks from p on: 0 what they have, to rank - p; 1 the sum. The others, in one chain: 0 their own, 1 that of rank + p; then for
 * each step of the halving a wait, give a half, fold the other one; from `doubling` on give what is final and store what the
 * partner has, with the steps from the last to the first; at last the sum for rank + p. The wait is for the partner to come to
 * this step: only if there are ranks from p on, for who has none to fold would be early, and take bandwidth from those. */
struct halving_place {
	uint32_t step, what;
	bool halving;
};
enum { HALVING_WAIT, HALVING_GIVE, HALVING_RECEIVE };

static struct halving_place halving_place(uint32_t steps, uint32_t m)
{
	uint32_t doubling = 2 + 3 * steps;
	if (m < doubling)
		return (struct halving_place){.step = (m - 2) / 3, .what = (m - 2) % 3, .halving = true};
	return (struct halving_place){
		.step = steps - 1 - (m - doubling) / 2, .what = HALVING_GIVE + (m - doubling) % 2};
}

static struct skep_scheme_transfer halving_transfer(const struct skep_scheme *s, const uint64_t *fact, uint32_t m)
{
	assert(s->rank < s->size);
	uint32_t steps = log2_down(s->size), p = 1u << steps;
	bool waits = s->size > p, has_other = s->rank + p < s->size;
	(void)fact;
	if (s->rank >= p)
		return m == 0 ? sends(whole(s, SKEP_OP_COPY_GRAD), 1) : arrives(whole(s, SKEP_OP_STORE));
	if (m == 0)
		return whole(s, SKEP_OP_INIT_RESULT);
	if (m == 1)
		return follows(sends(has_other ? arrives(whole(s, SKEP_OP_ADD_TO_RESULT)) : nothing(), waits));
	if (m == 2 + 5 * steps)
		return follows(has_other ? sends(whole(s, SKEP_OP_COPY_RESULT), 1) : nothing());
	struct halving_place at = halving_place(steps, m);
	uint32_t partner = halving_partner(s, at.step);
	if (at.what == HALVING_WAIT)
		return follows(waits ? arrives(nothing()) : nothing());
	if (at.what == HALVING_GIVE)
		return follows(sends(halves(s, SKEP_OP_COPY_RESULT, at.step + 1, at.halving ? partner : s->rank), 1));
	struct skep_scheme_transfer transfer = at.halving ? halves(s, SKEP_OP_ADD_TO_RESULT, at.step + 1, s->rank)
	                                                  : halves(s, SKEP_OP_STORE, at.step + 1, partner);
	return follows(arrives(sends(transfer, at.halving && waits && at.step + 1 < steps)));
}

static struct skep_hop halving_hop(const struct skep_scheme *s, const uint64_t *fact, uint32_t m, uint32_t nth)
{
	assert(s->rank < s->size);
	uint32_t steps = log2_down(s->size), p = 1u << steps;
	(void)fact;
	(void)nth;
	if (s->rank >= p)
		return (struct skep_hop){.to = s->rank - p, .number = 1};
	if (m == 2 + 5 * steps)
		return (struct skep_hop){.to = s->rank + p, .number = 1};
	struct halving_place at = m == 1 ? (struct halving_place){0} : halving_place(steps, m);
	if (at.what == HALVING_GIVE)
		return (struct skep_hop){.to = halving_partner(s, at.step), .number = m + 1};
	uint32_t next = m == 1 ? 0 : at.step + 1;
	return (struct skep_hop){.to = halving_partner(s, next), .number = 2 + 3 * next, .taken = true};
}

/* ---- tree: the children of rank r are 2r + 1 and 2r + 2 ----------------------------------------------------------- */

static bool has_child(const struct skep_scheme *s, uint32_t which)
{
	return 2 * s->rank + 1 + which < s->size;
}

/* Up, 5c and the next four, for chunk c: its own, that of each child, a wait until the parent has the chunk before, and the sum
 * goes to the parent. */
static struct skep_scheme_transfer tree_up(const struct skep_scheme *s, uint32_t m)
{
	assert(s->rank < s->size);
	uint32_t chunk = m / 5;
	bool leaf = !has_child(s, 0), root = s->rank == 0;
	switch (m % 5) {
	case 0:
		return leaf ? nothing() : part(s, SKEP_OP_INIT_RESULT, chunk, s->parts);
	case 1:
	case 2:
		if (!has_child(s, m % 5 - 1))
			return nothing();
		return sends(arrives(part(s, SKEP_OP_ADD_TO_RESULT, chunk, s->parts)), chunk + 1 < s->parts);
	case 3:
		return root || chunk == 0 ? nothing() : arrives(part(s, 0, chunk - 1, s->parts));
	default:
		if (root)
			return nothing();
		return sends(part(s, leaf ? SKEP_OP_COPY_GRAD : SKEP_OP_COPY_RESULT, chunk, s->parts), 1);
	}
}

/* Down, from 5C on three for each chunk: it goes to the children, and waits until each has it. The root begins when all chunks
 * are summed: in a star both ways share no link, and halfway up the tree they would. */
static struct skep_scheme_transfer tree_down(const struct skep_scheme *s, uint32_t m)
{
	assert(s->rank < s->size);
	uint32_t chunk = m / 3, which = m % 3;
	bool root = s->rank == 0, last = chunk + 1 == s->parts;
	if (which > 0)
		return follows(last || !has_child(s, which - 1) ? nothing() : arrives(part(s, 0, chunk, s->parts)));
	uint32_t children = has_child(s, 0) + has_child(s, 1);
	if (root)
		return follows(sends(part(s, SKEP_OP_COPY_RESULT, chunk, s->parts), children));
	struct skep_scheme_transfer transfer =
		arrives(sends(part(s, SKEP_OP_STORE, chunk, s->parts), children + !last));
	transfer.follows = chunk > 0;
	return transfer;
}

static struct skep_scheme_transfer tree_transfer(const struct skep_scheme *s, const uint64_t *fact, uint32_t m)
{
	assert(s->rank < s->size);
	(void)fact;
	if (m >= 5 * s->parts)
		return tree_down(s, m - 5 * s->parts);
	struct skep_scheme_transfer transfer = tree_up(s, m);
	transfer.follows = m > 0;
	return transfer;
}

static struct skep_hop tree_hop(const struct skep_scheme *s, const uint64_t *fact, uint32_t m, uint32_t nth)
{
	assert(s->rank < s->size);
	uint32_t down = 5 * s->parts, parent = (s->rank - 1) / 2, which = (s->rank - 1) % 2, chunk = m / 5;
	(void)fact;
	if (m < down && m % 5 == 4)
		return (struct skep_hop){.to = parent, .number = 5 * chunk + 1 + which};
	if (m < down)
		return (struct skep_hop){.to = 2 * s->rank + m % 5, .number = 5 * (chunk + 1) + 3, .taken = true};
	uint32_t children = has_child(s, 0) + has_child(s, 1);
	if (nth < children)
		return (struct skep_hop){.to = 2 * s->rank + 1 + nth, .number = m};
	return (struct skep_hop){.to = parent, .number = m + 1 + which, .taken = true};
}

/* ---- reduce-broadcast, hierarchical: binomial trees inside a site, a ring of their roots ------------------------------- */

/* Position q of m: its children are q + 2^k for all k below that of its own lowest bit; its parent lacks that bit. */
static uint32_t children_of(uint32_t position, uint32_t members)
{
	uint32_t k = 0;
	while (position + (1u << k) < members && (position >> k & 1) == 0)
		k++;
	return k;
}

static uint32_t lowest_bit(uint32_t position)
{
	uint32_t k = 0;
	while ((position >> k & 1) == 0)
		k++;
	return k;
}

static uint32_t leader_of(const struct skep_scheme *s, const uint64_t *fact, uint32_t rank)
{
	return s->kind == SKEP_COLLECTIVE_HIERARCHICAL ? (uint32_t)fact[rank] : 0;
}

static uint32_t rank_at(const struct skep_scheme *s, const uint64_t *fact, uint32_t position)
{
	assert(s->rank < s->size);
	assert(position < s->size);
	uint32_t leader = leader_of(s, fact, s->rank);
	for (uint32_t rank = 0;; rank++)
		if (leader_of(s, fact, rank) == leader && position-- == 0)
			return rank;
}

static uint32_t leader_at(const struct skep_scheme *s, const uint64_t *fact, uint32_t site)
{
	assert(s->rank < s->size);
	for (uint32_t rank = 0;; rank++)
		if (leader_of(s, fact, rank) == rank && site-- == 0)
			return rank;
}

struct grouped {            /* where the parts of the one chain begin */
	uint32_t slots;     /* for children */
	uint32_t ring, end; /* the ring's first transfer, the sum's */
};

static struct grouped grouped_of(const struct skep_scheme *s)
{
	assert(s->rank < s->size);
	uint32_t slots = log2_up(s->size), ring = 2 + slots;
	return (struct grouped){.slots = slots, .ring = ring, .end = ring + 1 + 4 * (s->sites - 1)};
}

/* 0 my own, 1 + k that of child k, then the site's sum to the parent. */
static struct skep_scheme_transfer grouped_up(const struct skep_scheme *s, const struct grouped *g, uint32_t m)
{
	assert(s->rank < s->size);
	uint32_t children = children_of(s->position, s->members);
	bool leader = s->position == 0;
	if (m == 0)
		return leader || children > 0 ? whole(s, SKEP_OP_INIT_RESULT) : nothing();
	if (m <= g->slots)
		return m <= children ? arrives(whole(s, SKEP_OP_ADD_TO_RESULT)) : nothing();
	return leader ? nothing() : sends(whole(s, children > 0 ? SKEP_OP_COPY_RESULT : SKEP_OP_COPY_GRAD), 1);
}

/* The leaders': first their chunk; then each hop, and if it is no final one the sum goes on. */
static struct skep_scheme_transfer grouped_ring(const struct skep_scheme *s, uint32_t m)
{
	assert(s->rank < s->size);
	uint32_t hop = (m + 1) / 2, chunk = skep_ring_chunk(s->site, s->sites, hop);
	bool adds = skep_ring_adds(s->sites, hop);
	if (s->position > 0 || s->sites == 1)
		return nothing();
	if (m == 0)
		return sends(block_part(s, SKEP_OP_COPY_RESULT, s->site, s->sites), 1);
	if (m % 2 == 0)
		return adds ? sends(block_part(s, SKEP_OP_COPY_RESULT, chunk, s->sites), 1) : nothing();
	struct skep_scheme_transfer transfer =
		block_part(s, adds ? SKEP_OP_ADD_TO_RESULT : SKEP_OP_STORE, chunk, s->sites);
	return arrives(sends(transfer, !adds && hop < skep_ring_hops(s->sites)));
}

/* The sum, from the root: to the largest child, and to each other one when the child before has it. */
static struct skep_scheme_transfer grouped_down(const struct skep_scheme *s, const struct grouped *g, uint32_t m)
{
	assert(s->rank < s->size);
	uint32_t children = children_of(s->position, s->members);
	bool leader = s->position == 0;
	if (m == 0 && leader)
		return children > 0 ? sends(whole(s, SKEP_OP_COPY_RESULT), 1) : nothing();
	if (m == 0)
		return arrives(sends(whole(s, SKEP_OP_STORE), (children > 0) + (lowest_bit(s->position) > 0)));
	uint32_t child = g->slots - m;
	struct skep_scheme_transfer transfer = child < children ? arrives(sends(whole(s, 0), 1)) : whole(s, 0);
	transfer.carries = true;
	return transfer;
}

static struct skep_scheme_transfer grouped_transfer(const struct skep_scheme *s, const uint64_t *fact, uint32_t m)
{
	assert(s->rank < s->size);
	struct grouped g = grouped_of(s);
	(void)fact;
	struct skep_scheme_transfer transfer = m < g.ring  ? grouped_up(s, &g, m)
	                                       : m < g.end ? grouped_ring(s, m - g.ring)
	                                                   : grouped_down(s, &g, m - g.end);
	transfer.follows = m > 0;
	return transfer;
}

static struct skep_hop grouped_hop(const struct skep_scheme *s, const uint64_t *fact, uint32_t m, uint32_t nth)
{
	assert(s->rank < s->size);
	struct grouped g = grouped_of(s);
	uint32_t children = children_of(s->position, s->members), down = m - g.end;
	uint32_t bit = s->position > 0 ? lowest_bit(s->position) : 0, parent = s->position - (1u << bit);
	if (m < g.ring)
		return (struct skep_hop){.to = rank_at(s, fact, parent), .number = 1 + bit};
	if (m < g.end) /* COPY_RESULT is the second transfer of its hop, STORE the first and the only one */
		return (struct skep_hop){.to = leader_at(s, fact, (s->site + 1) % s->sites),
			.number = g.ring + 2 * ((m - g.ring + 1) / 2 + 1) - 1};
	if (m == g.end && nth == (children > 0))
		return (struct skep_hop){
			.to = rank_at(s, fact, parent), .number = g.end + g.slots - bit, .taken = true};
	uint32_t child = m == g.end ? children - 1 : g.slots - down - 1;
	return (struct skep_hop){.to = rank_at(s, fact, s->position + (1u << child)), .number = g.end};
}

/* ---- the public face ------------------------------------------------------------------------------------------------- */

static const struct kind {
	skep_scheme_transfer_fn *transfer;
	skep_scheme_hop_fn *hop;
} KIND[] = {
	[SKEP_COLLECTIVE_RING] = {skep_scheme_ring_transfer, skep_scheme_ring_hop},
	[SKEP_COLLECTIVE_PARAMETER_SERVER] = {server_transfer, server_hop},
	[SKEP_COLLECTIVE_REDUCE_BROADCAST] = {grouped_transfer, grouped_hop},
	[SKEP_COLLECTIVE_ALL_TO_ALL] = {all_transfer, all_hop},
	[SKEP_COLLECTIVE_HALVING_DOUBLING] = {halving_transfer, halving_hop},
	[SKEP_COLLECTIVE_TREE] = {tree_transfer, tree_hop},
	[SKEP_COLLECTIVE_HIERARCHICAL] = {grouped_transfer, grouped_hop},
	[SKEP_COLLECTIVE_BUTTERFLY] = {skep_scheme_butterfly_transfer, skep_scheme_butterfly_hop},
	[SKEP_COLLECTIVE_CHAIN] = {skep_scheme_chain_transfer, skep_scheme_chain_hop},
	[SKEP_COLLECTIVE_BROADCAST] = {skep_scheme_broadcast_transfer, skep_scheme_broadcast_hop},
	[SKEP_COLLECTIVE_REDUCE_SCATTER] = {skep_scheme_scatter_transfer, skep_scheme_ring_hop},
	[SKEP_COLLECTIVE_ALL_GATHER] = {skep_scheme_gather_transfer, skep_scheme_ring_hop},
};
static_assert(sizeof KIND / sizeof KIND[0] == SKEP_COLLECTIVE_KINDS, "each kind has a scheme, but for WHOLE");

bool skep_collective_has_roster(enum skep_collective kind)
{
	return kind != SKEP_COLLECTIVE_RING && kind != SKEP_COLLECTIVE_FUSED && kind != SKEP_COLLECTIVE_CHAIN &&
	       kind != SKEP_COLLECTIVE_BROADCAST;
}

bool skep_collective_gathers(enum skep_collective kind)
{
	return kind == SKEP_COLLECTIVE_PARAMETER_SERVER || kind == SKEP_COLLECTIVE_ALL_TO_ALL ||
	       kind == SKEP_COLLECTIVE_BUTTERFLY;
}

bool skep_collective_encodes_again(enum skep_collective kind)
{
	return kind == SKEP_COLLECTIVE_HALVING_DOUBLING || kind == SKEP_COLLECTIVE_HIERARCHICAL;
}

uint64_t skep_scheme_payload_bytes(
	const struct skep_plan *plan, uint32_t stage, const struct skep_scheme_transfer *transfer)
{
	uint64_t header = transfer->op == SKEP_OP_PACK_PART ? SKEP_PART_HEADER_BYTES : 0;
	return header + skep_plan_encoded_bytes(plan, stage, transfer->count);
}

static uint32_t parts_of(const struct skep_plan *plan)
{
	return plan->reduction.chunks > 0 ? plan->reduction.chunks : SKEP_SYNC_CHUNKS;
}

/* The largest product of the members of a ring and the segments of a chunk, with at most `size` members. */
static uint32_t ring_segments_max(const struct skep_plan *plan, uint32_t size)
{
	if (plan->reduction.chunks > 0)
		return plan->reduction.chunks * size;
	uint64_t most_bytes = 0;
	for (uint32_t stage = 0; stage < plan->stages; stage++) {
		uint64_t bytes = skep_plan_encoded_bytes(plan, stage, plan->stage[stage].parameters);
		most_bytes = bytes > most_bytes ? bytes : most_bytes;
	}
	uint64_t segments = most_bytes / SKEP_RING_SEGMENT_BYTES, most = (uint64_t)SKEP_RING_SEGMENTS_MAX * size;
	segments = segments < most ? segments : most;
	return segments > size ? (uint32_t)segments : size;
}

uint32_t skep_ring_segments(const struct skep_plan *plan, uint32_t stage, uint64_t elements, uint32_t size)
{
	if (plan->reduction.chunks > 0 || size < 2)
		return plan->reduction.chunks > 0 ? plan->reduction.chunks : 1;
	uint64_t bytes = skep_plan_encoded_bytes(plan, stage, elements);
	return skep_ring_segments_for(bytes / size, plan->reduction.latency_bytes);
}

uint64_t skep_ring_chunk_bytes(const struct skep_plan *plan, uint32_t stage, uint64_t elements, uint32_t segments)
{
	if (!skep_codec_blocks(skep_plan_codec(plan, stage)) || plan->reduction.block != SKEP_CODEC_TENSOR)
		return skep_plan_encoded_bytes(plan, stage, elements);
	uint64_t bytes = 0;
	for (uint32_t nth = 0; nth < segments; nth++) {
		uint64_t first, count;
		skep_chunk_range(elements, nth, segments, &first, &count);
		bytes += skep_plan_encoded_bytes(plan, stage, count);
	}
	return bytes;
}

uint32_t skep_scheme_transfers_max(const struct skep_plan *plan, uint32_t size)
{
	switch (plan->reduction.collective) {
	case SKEP_COLLECTIVE_RING:
		return 2 * ring_segments_max(plan, size);
	case SKEP_COLLECTIVE_CHAIN:
	case SKEP_COLLECTIVE_BROADCAST:
		return 2 * parts_of(plan);
	case SKEP_COLLECTIVE_BUTTERFLY:
		return parts_of(plan) * (3 * size + 2 + plan->reduction.gather);
	case SKEP_COLLECTIVE_TREE:
		return 8 * parts_of(plan);
	case SKEP_COLLECTIVE_FUSED:
		return 0;
	default:
		return 4 * size + 5 * log2_up(size) + 4;
	}
}

uint32_t skep_scheme_early_max(const struct skep_plan *plan, uint32_t size)
{
	switch (plan->reduction.collective) {
	case SKEP_COLLECTIVE_FUSED:
		return 0;
	case SKEP_COLLECTIVE_RING:
		return ring_segments_max(plan, size);
	case SKEP_COLLECTIVE_CHAIN:
	case SKEP_COLLECTIVE_BROADCAST:
		return skep_scheme_transfers_max(plan, size);
	case SKEP_COLLECTIVE_BUTTERFLY:
		return parts_of(plan) * size;
	default:
		return size;
	}
}

/* A scale for each message needs no cut between blocks, and no kind may encode a final once more. */
static uint32_t block_of(const struct skep_plan *plan, uint32_t stage)
{
	if (!skep_codec_blocks(skep_plan_codec(plan, stage)))
		return 1;
	if (plan->reduction.block != SKEP_CODEC_TENSOR)
		return (uint32_t)skep_codec_block_of(plan->reduction.block, 0);
	assert(!skep_collective_encodes_again(plan->reduction.collective));
	return 1;
}

void skep_scheme_init(struct skep_scheme *scheme, const struct skep_plan *plan, uint32_t stage, uint64_t elements,
	uint32_t rank, uint32_t size, const struct skep_peer *roster, uint64_t *ret_fact)
{
	const struct skep_plan_reduction *sum = &plan->reduction;
	*scheme = (struct skep_scheme){.kind = (uint8_t)sum->collective,
		.size = size,
		.rank = rank,
		.parts = sum->collective == SKEP_COLLECTIVE_RING ? skep_ring_segments(plan, stage, elements, size)
	                                                         : parts_of(plan),
		.elements = elements,
		.gather = sum->gather,
		.block = block_of(plan, stage),
		.sites = 1,
		.members = size,
		.position = rank};
	assert(!skep_collective_has_roster(sum->collective) || size <= SKEP_ROSTER_MAX);
	assert(!sum->gather || (skep_collective_gathers(sum->collective) && skep_plan_model_chunks(plan) == 1));
	if (sum->collective == SKEP_COLLECTIVE_BUTTERFLY && size > 1)
		skep_shard_out(plan, size, roster, scheme->elements, ret_fact);
	else if (sum->collective == SKEP_COLLECTIVE_HIERARCHICAL && size > 1)
		skep_shard_sites(scheme, plan, roster, ret_fact);
}

void skep_scheme_halve(struct skep_scheme *scheme, enum skep_collective half)
{
	assert(scheme->kind == SKEP_COLLECTIVE_RING);
	assert(half == SKEP_COLLECTIVE_REDUCE_SCATTER || half == SKEP_COLLECTIVE_ALL_GATHER);
	scheme->kind = (uint8_t)half;
}

static bool of_ring(const struct skep_scheme *s)
{
	return s->kind == SKEP_COLLECTIVE_RING || s->kind == SKEP_COLLECTIVE_REDUCE_SCATTER ||
	       s->kind == SKEP_COLLECTIVE_ALL_GATHER;
}

uint32_t skep_scheme_transfers(const struct skep_scheme *s)
{
	struct grouped g;
	if (s->size <= 1)
		return 0;
	switch ((enum skep_collective)s->kind) {
	case SKEP_COLLECTIVE_RING:
		return s->parts * (1 + skep_ring_hops(s->size));
	case SKEP_COLLECTIVE_PARAMETER_SERVER:
		return s->rank == 0 ? s->size + 1 + s->gather : 2;
	case SKEP_COLLECTIVE_ALL_TO_ALL:
		return s->size + 1 + s->gather;
	case SKEP_COLLECTIVE_HALVING_DOUBLING:
		return s->rank < 1u << log2_down(s->size) ? 3 + 5 * log2_down(s->size) : 2;
	case SKEP_COLLECTIVE_TREE:
		return 8 * s->parts;
	case SKEP_COLLECTIVE_CHAIN:
		return s->rank + 1 < s->size ? 2 * s->parts : s->parts;
	case SKEP_COLLECTIVE_BROADCAST:
		return s->rank == 0 ? 2 * s->parts : s->parts;
	case SKEP_COLLECTIVE_BUTTERFLY:
		return s->parts * (3 * s->size + 2 + s->gather);
	case SKEP_COLLECTIVE_REDUCE_SCATTER:
	case SKEP_COLLECTIVE_ALL_GATHER:
		return s->parts * s->size;
	case SKEP_COLLECTIVE_REDUCE_BROADCAST:
	case SKEP_COLLECTIVE_HIERARCHICAL:
		g = grouped_of(s);
		return g.end + g.slots;
	case SKEP_COLLECTIVE_FUSED:
	case SKEP_COLLECTIVE_KINDS:
		break;
	}
	return 0;
}

uint32_t skep_scheme_start(const struct skep_scheme *scheme, const uint64_t *fact, uint32_t from)
{
	assert(scheme->rank < scheme->size);
	uint32_t transfers = skep_scheme_transfers(scheme);
	if (of_ring(scheme) && from >= scheme->parts)
		return transfers;
	for (; from < transfers; from++) {
		struct skep_scheme_transfer transfer = skep_scheme_transfer_at(scheme, fact, from);
		if (!transfer.arrives && !transfer.follows)
			break;
	}
	return from;
}

struct skep_scheme_transfer skep_scheme_transfer_at(
	const struct skep_scheme *scheme, const uint64_t *fact, uint32_t number)
{
	assert(scheme->rank < scheme->size);
	assert(number < skep_scheme_transfers(scheme));
	return KIND[scheme->kind].transfer(scheme, fact, number);
}

struct skep_hop skep_scheme_hop(const struct skep_scheme *scheme, const uint64_t *fact, uint32_t number, uint32_t nth)
{
	return KIND[scheme->kind].hop(scheme, fact, number, nth);
}
