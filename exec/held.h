/* SPDX-License-Identifier: Apache-2.0
 *
 * held.h - messages that are here but have not arrived: the shaper on rank 0 has the say. A release may come before its
 * message, or after. Few are held at a time (what one receiver's links carry), so they are searched in order.
 */
#ifndef SKEP_EXEC_HELD_H
#define SKEP_EXEC_HELD_H

#include "core/skep.h"

struct skep_held_item {
	uint32_t source; /* machine index */
	uint64_t number;
	bool here; /* message is valid; false: only its release has come */
	struct skep_message message;
};

struct skep_held {
	struct skep_held_item *item; /* [count], in order of coming */
	size_t count, room;
	bool no_memory; /* an entry was lost */
};

void skep_held_finish(struct skep_held *held);

/* The message is here. True: it has been released already, deliver it now. */
bool skep_held_arrive(struct skep_held *held, uint64_t number, const struct skep_message *message);

/* The message may be delivered. True: it is here, in *ret. */
bool skep_held_release(struct skep_held *held, uint32_t source, uint64_t number, struct skep_message *ret);

/* The message will not come: drops its entry. */
void skep_held_forget(struct skep_held *held, uint32_t source, uint64_t number);

#endif
