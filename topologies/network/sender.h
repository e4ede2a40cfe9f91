/* SPDX-License-Identifier: Apache-2.0
 *
 * sender.h - when a message that a machine sends begins to move its bytes: after the overhead of the messages sent
 * before it, and after the latency of its pair, which is drawn for each message where the link has jitter.
 */
#pragma once

#include "topologies/network/order.h"
#include "topologies/read/topology.h"

struct skep_sender {
	skep_time free_ns; /* the overhead of what it has sent is over */
	uint64_t sent;
};

/* When a message of `source`, whose sender this is, has its latency behind it. False: no memory. */
bool skep_sender_latency_end(struct skep_sender *sender, const struct skep_topology *topology, struct skep_order *order,
	skep_time now, uint32_t source, uint32_t destination, double latency_s, skep_time *ret);
