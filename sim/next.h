/* SPDX-License-Identifier: Apache-2.0
 *
 * next.h - decides what happens next in virtual time: an event of the queue, or a flow that ends in the network.
 *
 * Order at one instant: first the events that the queue holds for it, by sequence; only when none is left the network
 * is asked, so that all flows that begin or end at one instant are solved together.
 */
#pragma once

#include "sim/queue.h"
#include "topologies/network/network.h"

enum skep_next {
	SKEP_NEXT_NONE,    /* nothing is left to happen */
	SKEP_NEXT_EVENT,   /* *ret_entry, which has left the queue */
	SKEP_NEXT_NETWORK, /* ask skep_network_advance(); the queue may hold more for this instant */
};

/* Decides what happens next and moves *now to its time. */
static inline enum skep_next skep_next_event(
	struct skep_queue *queue, struct skep_network *network, skep_time *now, struct skep_queue_entry *ret_entry)
{
	skep_time queued = skep_queue_next(queue);
	if (queued > *now) {
		skep_time flows = skep_network_next(network);
		if (flows == SKEP_TIME_NEVER && queued == SKEP_TIME_NEVER)
			return SKEP_NEXT_NONE;
		if (flows <= queued) {
			*now = flows;
			return SKEP_NEXT_NETWORK;
		}
	}
	*ret_entry = skep_queue_pop(queue);
	*now = ret_entry->time;
	return SKEP_NEXT_EVENT;
}
