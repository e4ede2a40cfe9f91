/* SPDX-License-Identifier: Apache-2.0
 *
 * ring_time.h - computes how long the segments of the chunks of a ring all-reduce (core/collective/ring.h) take on their ways
 * round, when it is known for how long each link is busy with one segment.
 */
#pragma once

#include "topologies/read/path.h"

struct skep_ring_link {    /* from a rank to the next */
	double ready_ns;   /* when the sender begins */
	double segment_ns; /* how long one segment keeps the link busy */
	uint32_t streams;  /* segments that it moves at a time, the others wait for their turn; 0: one */
	double latency_ns; /* of one segment, before that; the link is not busy meanwhile */
	double add_ns,
		store_ns; /* what the receiver does with a segment before it goes on, one at a time: ADD, STORE ... */
	double add_store_ns;                  /* ... and the hop on which a sum is whole */
	double take_ns;                       /* of the sender, once for each segment of its own, before it goes */
	double cap_ns;                        /* no segment takes less, however few are on the link */
	double overhead_ns;                   /* of the sender for each segment, one at a time, before the latency */
	const struct skep_topology *topology; /* that the link profile belongs to */
	const struct skep_link_profile *link_profile; /* whose jitter the latency has; NULL: none */
	uint64_t random;                              /* state of the generator that jitter is drawn from */
};

/* ret_ns[rank]: when that rank has stored all chunks, of so many segments each. False: no memory. */
bool skep_ring_time(const struct skep_ring_link *link, uint32_t size, uint32_t segments, double *ret_ns);
