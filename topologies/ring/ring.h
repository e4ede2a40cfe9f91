/* SPDX-License-Identifier: Apache-2.0
 *
 * ring.h - in which order the members of a ring should follow each other, by the links between them.
 *
 * In each step of a ring all-reduce every member sends one chunk to the next, all at once. A hop takes its latency, and its bytes
 * at the least rate on its way: up and down of the two machines, their link, what a connection gets by window and loss, and its
 * part of each line that several machines share (between two sites, out of a site, into one), as many parts as there are hops of
 * this ring that cross it. The slowest hop sets the pace of a step, and the sum of all hops is what a chunk needs to come round.
 * Of two orders the better one has the faster slowest hop; of equal ones the one with the smaller sum.
 *
 * With up to SKEP_RING_EXACT_MAX members no order has a faster slowest hop, and where no line is shared by several hops none of
 * these a smaller sum either. Above, a local search finds a good one that is never worse than the one given. Times are rounded to
 * ns first and then compared as integers, so the same links give the same order everywhere.
 */
#pragma once

#include "topologies/read/topology.h"

#define SKEP_RING_EXACT_MAX 12u
#define SKEP_RING_MEMBERS_MAX 2048u /* whose links to each other are compared in about a second */

struct skep_ring_hop {
	uint32_t from, to; /* machines */
	double rate_Bps, latency_s;
	uint32_t
		crossings; /* hops of the ring, this one included, that share the line which limits its rate; 1: it is its own */
	uint64_t ns;
};

struct skep_ring_pace {
	struct skep_ring_hop slowest; /* the first of those that take the longest */
	uint64_t round_ns;            /* the sum over all hops */
};

/* What a step of the ring of these machines takes, each of which sends so many bytes to the next one, the last one to the first.
 * size > 1. False: no memory. */
bool skep_ring_pace(const struct skep_topology *topology, const uint32_t *machine, uint32_t size, double bytes,
	struct skep_ring_pace *ret);

/* Brings machine[size] into a good order, which begins with the machine that it begins with. At most SKEP_RING_MEMBERS_MAX.
 * *ret_exact: it is known that no other one has a faster slowest hop. False: no memory. */
bool skep_ring_arrange(
	const struct skep_topology *topology, uint32_t *machine, uint32_t size, double bytes, bool *ret_exact);

/* A hop between two machines of which nothing else shares a line. */
uint64_t skep_ring_alone_ns(const struct skep_topology *topology, uint32_t from, uint32_t to, double bytes);
