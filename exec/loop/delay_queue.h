/* SPDX-License-Identifier: Apache-2.0
 *
 * delay_queue.h - messages that are here but have not arrived: the shaper on rank 0 has the say. A release may come before its
 * message, or after. Few are held at a time (what one receiver's links carry), so they are searched in order.
 */
#pragma once

#include "core/skep.h"

struct skep_delay_queue_item {
	uint32_t source; /* machine index */
	uint64_t number;
	bool here; /* message is valid; false: only its release has come */
	struct skep_message message;
};

struct skep_delay_queue {
	struct skep_delay_queue_item *item; /* [count], in order of coming */
	size_t count;
	bool no_memory; /* an entry was lost */
};

void skep_delay_queue_finish(struct skep_delay_queue *held);

/* The message is here. True: it has been released already, deliver it now. */
bool skep_delay_queue_arrive(struct skep_delay_queue *held, uint64_t number, const struct skep_message *message);

/* The message may be delivered. True: it is here, in *ret. */
bool skep_delay_queue_release(
	struct skep_delay_queue *held, uint32_t source, uint64_t number, struct skep_message *ret);

/* The message will not come: drops its entry. */
void skep_delay_queue_forget(struct skep_delay_queue *held, uint32_t source, uint64_t number);
