/* SPDX-License-Identifier: Apache-2.0
 *
 * connections.h - for each ordered pair of machines, how many messages are on its connections, and which wait for one. For
 * network.c.
 *
 * A pair is remembered only while it has messages that take turns, so the memory needed grows with what is under way.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct skep_pair_queue {
	uint64_t key;         /* of the ordered pair; 0: free */
	uint32_t streams;     /* its connections, at least 1 */
	uint32_t under_way;   /* messages that take turns: they wait for their latency, for a stream, or are on one */
	uint32_t moving;      /* of these on a stream; less than streams: none waits for one */
	uint32_t first, last; /* flows that wait for a stream, in order; first SKEP_NO_FLOW: none */
};

struct skep_connections {              /* all zero at first */
	struct skep_pair_queue *queue; /* open addressing, a power of two, at most half full */
	uint32_t size, used;
};

/* Pointers to a queue hold until another one is made or dropped. */

/* NULL: the pair has none. */
struct skep_pair_queue *skep_connections_find(const struct skep_connections *connections, uint64_t key);
/* Finds or makes it; NULL: no memory. `streams` is that of every call with this key. */
struct skep_pair_queue *skep_connections_get(struct skep_connections *connections, uint64_t key, uint32_t streams);
/* One without messages. Another one may take its place in queue[]. */
void skep_connections_drop(struct skep_connections *connections, struct skep_pair_queue *queue);

void skep_connections_finish(struct skep_connections *connections);
