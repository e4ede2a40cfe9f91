/* SPDX-License-Identifier: Apache-2.0
 *
 * turn.h - what happens next in virtual time, from a queue of events and a network of flows.
 *
 * Order at one instant: first what the queue holds for it, by sequence; only when nothing is left the network is asked, so that
 * all flows that begin or end at one instant are solved together.
 */
#ifndef SKEP_SIM_TURN_H
#define SKEP_SIM_TURN_H

#include "sim/queue.h"
#include "topologies/network.h"

enum skep_turn {
	SKEP_TURN_NONE,    /* nothing is left to happen */
	SKEP_TURN_EVENT,   /* *ret_entry, which has left the queue */
	SKEP_TURN_NETWORK, /* ask skep_network_advance(); the queue may hold more for this instant */
};

/* Moves *now to what happens next. */
static inline enum skep_turn skep_turn_next(
	struct skep_queue *queue, struct skep_network *network, skep_time *now, struct skep_queue_entry *ret_entry)
{
	skep_time queued = skep_queue_next(queue);
	if (queued > *now) {
		skep_time flows = skep_network_next(network);
		if (flows == SKEP_TIME_NEVER && queued == SKEP_TIME_NEVER)
			return SKEP_TURN_NONE;
		if (flows <= queued) {
			*now = flows;
			return SKEP_TURN_NETWORK;
		}
	}
	*ret_entry = skep_queue_pop(queue);
	*now = ret_entry->time;
	return SKEP_TURN_EVENT;
}

#endif
