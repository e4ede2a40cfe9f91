/* SPDX-License-Identifier: Apache-2.0
 *
 * state.h - what the network model keeps: flows, the times of their next changes, the connections of ordered pairs. For the
 * files of this folder alone; network.c says what is kept true of it.
 */
#pragma once

#include "topologies/network/connections.h"
#include "topologies/network/network.h"
#include "topologies/network/sender.h"
#include "topologies/network/sharing.h"

#define SKEP_NO_FLOW UINT32_MAX

struct skep_flow { /* a small transfer that need not wait for its turn has none */
	uint64_t tag, sequence;
	skep_time since;
	double left, rate; /* bytes at `since`, bytes per ns from then on */
	double cap;        /* bytes per ns; INFINITY: none */
	uint32_t source, destination;
	uint32_t
		position; /* in the heap; of one that waits for a stream: the next one; in the free list: the next free flow */
	bool sharing; /* its message is on its way through the links */
	bool in_turn; /* its message takes its turn on the connections of its pair */
};

struct skep_relay { /* a message that goes through the directory (relays.h) */
	uint64_t tag, bytes;
	skep_time late_ns; /* from its coming to the directory until its latency from there is over */
	uint32_t source, destination;
	uint32_t of, pieces; /* in so many it goes; so many have not arrived at the end or were ended; 0: free */
	uint32_t passed;     /* pieces that are on the second way, or behind it */
	uint32_t next;       /* free: the next free one */
	bool ended;          /* it will not arrive */
};

struct skep_due { /* an entry of the line or the heap */
	skep_time time;
	uint64_t sequence, tag;
	uint32_t flow; /* SKEP_NO_FLOW: a small transfer, this is all of it */
};

struct skep_network {
	const struct skep_topology *topology;
	skep_time clock;
	uint64_t sequence;
	struct skep_flow *flow;
	struct skep_due *due;
	uint32_t transfers; /* under way, small ones and flows */
	uint32_t flow_capacity, free_flow;
	uint32_t dues, due_capacity; /* of the heap; room for all transfers */
	struct skep_due *line;       /* [due_capacity], a ring */
	uint32_t line_first, lined;
	struct skep_sharing sharing;
	struct skep_sender *sender; /* [machines + 1]; NULL: no link has overhead or jitter */
	uint32_t rows;              /* how many rows ahead entries are prefetched; 0: none */
	uint64_t soon[SKEP_NETWORK_ROWS + 1];
	struct skep_order order;
	struct skep_connections connections;
	struct skep_relay *relay; /* [relay_capacity] */
	uint32_t relay_capacity, free_relay;
	bool relays; /* some messages go through the directory */
	bool failed; /* memory ran out for one of them on its way */
};

/* network.c: when the latency of what is sent now is over, its sender's overhead and jitter included; and a transfer for which it
 * is over then, for which skep_due_grow() has made room. False: no memory. */
bool skep_network_due(
	struct skep_network *network, skep_time now, uint32_t source, uint32_t destination, skep_time *ret);
bool skep_network_put(struct skep_network *network, skep_time due, uint32_t source, uint32_t destination,
	uint64_t bytes, uint64_t tag);
