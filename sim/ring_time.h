/* SPDX-License-Identifier: Apache-2.0
 *
 * ring_time.h - how long the chunks of a ring all-reduce (core/ring.h) take on their ways round, if each link is busy for a
 * known time with each of them.
 */
#ifndef SKEP_SIM_RING_TIME_H
#define SKEP_SIM_RING_TIME_H

#include "topologies/path.h"

struct skep_ring_link {    /* from a rank to the next */
	double ready_ns;   /* the sender begins then */
	double chunk_ns;   /* it is busy so long with one chunk */
	double latency_ns; /* before that, without being busy */
	double add_ns,
		store_ns;    /* what the receiver does with a chunk before it goes on, one at a time: ADD, STORE ... */
	double add_store_ns; /* ... and the hop on which a sum is whole */
	double take_ns;      /* of the sender, once, before anything else */
	double cap_ns;       /* no chunk takes less, however few are on the link */
	double overhead_ns;  /* of the sender for each chunk, one at a time, before the latency */
	const struct skep_topology *topology; /* of the trait */
	const struct skep_trait *trait;       /* whose jitter the latency has; NULL: none */
	uint64_t random;                      /* to draw from */
};

/* ret_ns[rank]: when that rank has stored all chunks. False: no memory. */
bool skep_ring_time(const struct skep_ring_link *link, uint32_t size, double *ret_ns);

#endif
