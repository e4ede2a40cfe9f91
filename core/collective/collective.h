/* SPDX-License-Identifier: Apache-2.0
 *
 * collective.h - the all-reduces that end a round, each as a scheme: what one member does, transfer by transfer; and the two
 * halves of a ring, reduce-scatter and all-gather, between which a shard of the optimizer steps (worker/shards.c).
 *
 * A transfer is an operation of the member's device (skep_op_kind), or a wait, on a range of the vector. Transfers are numbered
 * from 0. One that `arrives` needs a message of its number first; one that `follows` is not begun before the transfer with the
 * number below it is done. So transfers form chains that run side by side, and within a chain everything happens in a written
 * order: however messages are delayed, each sum adds the same numbers in the same order. When a transfer is done its tensor is
 * sent to those that its hops name, as the messages of the numbers that the hops name (a hop to oneself is an arrival without a
 * message). A transfer that `carries` has no operation and goes on with the tensor of the transfer before it.
 *
 * CHUNK_ACK is a message without a tensor. A member is not told when a message that it sent has left it, and messages
 * that are sent at one time share the link; so where the order of two sends to different members matters (tree, binomial
 * trees) the receiver says that it has the first. To one member they follow each other.
 *
 * Why all members end with the same bits. Each element's final value is made in one place and travels as an unaltered
 * payload, and the member that made it stores what that payload decodes to (ADD_STORE, COPY_RESULT). In `all-to-all`
 * each member sums for itself: the same n payloads, its own too, in the order of ranks. `halving-doubling` and
 * `hierarchical` encode finals once more, since ranges that came in parts go on as one. This changes no bit: what an
 * encoding decodes to encodes to the same, block by block (models/update/codec.h; tests/unit/test_codec_again.c), and
 * these two cut the vector between blocks. With one scale for each message there are no such cuts, so they are refused.
 *
 * A reduction reads the accumulator and never changes it; sums grow in the result. So it can begin anew with other members.
 *
 * With reduction.gather three of them do not add what comes but put it side by side: each INIT_RESULT and ADD_TO_RESULT is
 * an UNPACK_PART, each COPY_GRAD a PACK_PART, and an AGGREGATE follows the last part of a range. In `all-to-all` all members
 * make the same of the same n payloads; in the other two one of them does, and gives the others what it made.
 *
 * With n members, V bytes, up and down links of B bytes/s in a star that is idle otherwise, and one-way latency a:
 *
 *   kind               bytes, all together    time
 *   ring               2(n-1)V                (2n-3) max(V/nB, a + V/knB) + V/nB + a, in k segments    Patarasuk, Yuan 2009
 *   reduce-scatter,    (n-1)V                 (n-2) max(V/nB, a + V/knB) + V/nB + a, in k segments    the halves of a ring;
 *   all-gather                                                                                      with plan->sharded
 *   chain              2(n-1)V                max of (2n-2)(a + t) + (C-1)t and, n > 2, 2V/B +       pipelined reduction and
 *                                             (n-2)a + (n-3)t, t = V/CB, in C chunks                 broadcast
 *   parameter-server   2(n-1)V                2a + 2(n-1)V/B
 *   reduce-broadcast   2(n-1)V                2k(a + V/B) + (k-1)a, k = log2 n; see below           binomial trees
 *   all-to-all         n(n-1)V                a + (n-1)V/B
 *   halving-doubling   2(n-1)V                2ka + 2(p-1)/p V/B, p = 2^k <= n; if p < n and         Rabenseifner 2004
 *                                             2(a + V/B), to fold the others in and back, and at
 *                                             most ka in waits
 *   tree               2(n-1)V                2[d(a + bt) + (C-1)(2a + bt)], t = V/CB, of C chunks; pipelined binary tree
 *                                             n = 2^(d+1) - 1, b = 2; n = 2: d = b = 1
 *   butterfly          2(n-1)V                a + max(2T, a + T + T/C), T = (n-1)/n V/B, in C        Moshpit SGD 2021
 *                                             chunks; with shares w_i at least
 *                                             max_i V(1 + (n-2)w_i)/B_i
 *   hierarchical       2(n-1)V                reduce-broadcast inside a site, and between s leaders
 *                                             2(s-1)(a + V/sB)
 *
 * Each message has a header of SKEP_HEADER_BYTES more; CHUNK_ACK and ROSTER count as control. reduce-broadcast with other n:
 * members without children send at once, so the root's link is what they wait for: in the way up k(a + V/B) is replaced by
 * a + V/B times the number of the root's children if n = 2^j + 1 and (j-1)a < V/B; the way down takes
 * k(a + V/B) + (k-1)a with k = ceil(log2 n).
 *
 * A butterfly's shares are by link capacity (plan->link_Bps). The slowest member is fastest if all that have a share end
 * together, 1 + (n-2)w_i = T B_i, and those with T B_i <= 1 have none. In integers, so equal everywhere. With two members
 * the time does not depend on shares, and they are equal.
 */
#pragma once

#include "core/skep.h"

#define SKEP_SYNC_CHUNKS 8u      /* unless the plan says otherwise */
#define SKEP_SYNC_CHUNKS_MAX 64u /* a worker has room for */
#define SKEP_ROSTER_MAX                                                                                                \
	512u /* members of a reduction that each knows all others: their links, 64 bits, hold the sums */

struct skep_scheme {  /* one member's part in one reduction */
	uint8_t kind; /* enum skep_collective */
	uint32_t size, rank,
		parts;  /* chunks of a tree or a chain, or of each share of a butterfly; segments of a ring's chunks */
	uint32_t block; /* elements that are encoded together */
	bool gather;    /* as in the plan */
	uint64_t elements;
	uint32_t sites, site, members,
		position; /* of this member's site: which, how many are there, which of them it is */
};

struct skep_scheme_transfer {
	uint8_t op; /* enum skep_op_kind, 0: none */
	bool arrives, follows, carries;
	uint32_t chunk;        /* which part of the vector, for messages and digests */
	uint32_t member;       /* PACK_PART, UNPACK_PART: whose part */
	uint64_t first, count; /* elements */
	uint32_t hops;         /* how many are sent when it is done */
};

struct skep_hop {
	uint32_t to, number; /* rank, and the transfer there */
	bool taken;          /* CHUNK_ACK: no tensor goes */
};

/* Needs each member to know all of them (ROSTER), not only the next one. */
bool skep_collective_has_roster(enum skep_collective kind);
/* Most transfers of a member of any reduction, and most sends when one is done, with at most `size` members. */
uint32_t skep_scheme_transfers_max(const struct skep_plan *plan, uint32_t size);

/* Most messages that may come to a member before it takes part itself. */
uint32_t skep_scheme_early_max(const struct skep_plan *plan, uint32_t size);
/* In how many segments each member's chunk travels round a ring of so many (ring.h); by reduction.chunks, or the rule there. */
uint32_t skep_ring_segments(const struct skep_plan *plan, uint32_t stage, uint64_t elements, uint32_t size);

/* Bytes of one member's chunk of so many elements in its segments, without headers. */
uint64_t skep_ring_chunk_bytes(const struct skep_plan *plan, uint32_t stage, uint64_t elements, uint32_t segments);

/* Does it encode finals that came in parts once more, as one? Then a scale must not be each message's own (SKEP_CODEC_TENSOR):
 * the members that got the parts would have other bits than those that got them as one. */
bool skep_collective_encodes_again(enum skep_collective kind);
/* Does it bring every member's part, unaltered, to where the whole is made? Those that do can gather (plan->reduction.gather). */
bool skep_collective_gathers(enum skep_collective kind);
/* Bytes of the tensor that a transfer of the stage sends. */
uint64_t skep_scheme_payload_bytes(
	const struct skep_plan *plan, uint32_t stage, const struct skep_scheme_transfer *transfer);

/* What follows from who takes part. `roster` [size] by rank, NULL for those without one. ret_fact [size + 1]: of a
 * butterfly, where each rank's share begins; hierarchical: the leader of each rank's site. It goes with the scheme wherever that
 * goes; a ring has none. */
void skep_scheme_init(struct skep_scheme *scheme, const struct skep_plan *plan, uint32_t stage, uint64_t elements,
	uint32_t rank, uint32_t size, const struct skep_peer *roster, uint64_t *ret_fact);
/* Makes one of the two halves of a ring of it: its chunks and segments are those of the ring. */
void skep_scheme_halve(struct skep_scheme *scheme, enum skep_collective half);
uint32_t skep_scheme_transfers(const struct skep_scheme *scheme); /* 0: there is nothing to do */
/* The first transfer from `from` on that waits for nothing; skep_scheme_transfers(): none. */
uint32_t skep_scheme_start(const struct skep_scheme *scheme, const uint64_t *fact, uint32_t from);
struct skep_scheme_transfer skep_scheme_transfer_at(
	const struct skep_scheme *scheme, const uint64_t *fact, uint32_t number);
/* Hop `nth` of the transfer, below its `hops`. One to oneself is the last. */
struct skep_hop skep_scheme_hop(const struct skep_scheme *scheme, const uint64_t *fact, uint32_t number, uint32_t nth);
