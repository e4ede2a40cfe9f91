/* SPDX-License-Identifier: Apache-2.0
 *
 * sent.h - the messages that the machines of a replay have sent, each with its time, to be found when their receivers'
 * logs come to them.
 */
#pragma once

#include "core/skep.h"

struct skep_replay_message { /* in the table */
	uint64_t hash;       /* 0: free */
	skep_time at;        /* SKEP_TIME_NEVER: two alike were sent, or the time is not known */
};

struct skep_replay_sent { /* open addressing; begin with {0} */
	struct skep_replay_message *message;
	size_t count, room; /* room: a power of 2, or 0 */
};

void skep_replay_sent_finish(struct skep_replay_sent *sent);

/* `now`: SKEP_TIME_NEVER where it is not known. False: no memory. */
bool skep_replay_send(struct skep_replay_sent *sent, const struct skep_message *message, skep_time now);
bool skep_replay_was_sent(const struct skep_replay_sent *sent, const struct skep_message *message);
/* Of a message that was sent; SKEP_TIME_NEVER: it is not known. */
skep_time skep_replay_sent_at(const struct skep_replay_sent *sent, const struct skep_message *message);
