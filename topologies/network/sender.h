/* SPDX-License-Identifier: Apache-2.0
 *
 * sender.h - when a message that a machine sends begins to move its bytes: after the overhead of the messages sent
 * before it, and after the latency of its pair, which is drawn for each message where the link has jitter.
 */
#pragma once

#include <stdbool.h>

#include "core/skep.h"
#include "topologies/read/topology.h"

/* For each ordered pair of machines, when the latest of its messages ends its latency. For network.c.
 *
 * A pair is remembered only until that time has passed, so the memory needed grows with the in-flight messages. */
struct skep_order_entry {
	uint64_t key; /* 0: free */
	skep_time latest;
};

struct skep_order {                     /* all zero at first */
	struct skep_order_entry *entry; /* open addressing, a power of two, at most half full */
	uint32_t size, used;
};

/* *time: when a message of this pair (key not 0) would get there; brought up to that of those before it. False: no memory. */
bool skep_order_keep(struct skep_order *order, skep_time now, uint64_t key, skep_time *time);
void skep_order_finish(struct skep_order *order);

/* sender.c */

struct skep_sender {
	skep_time free_ns; /* the overhead of what it has sent is over */
	uint64_t sent;
};

/* When a message of `source`, whose sender this is, has its latency behind it. False: no memory. */
bool skep_sender_latency_end(struct skep_sender *sender, const struct skep_topology *topology, struct skep_order *order,
	skep_time now, uint32_t source, uint32_t destination, double latency_s, skep_time *ret);
