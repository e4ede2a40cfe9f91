/* SPDX-License-Identifier: Apache-2.0
 *
 * queue.h - the simulator's queue: a heap of small events, ordered by (time, sequence). A sequence number is drawn
 * when the cause of an event happens, so events at one time come in the order of their causes, and a run is the same
 * every time.
 */
#pragma once

#include "core/skep.h"

struct skep_queue_entry {
	skep_time time;
	uint64_t sequence;
	uint32_t kind, index; /* mean nothing to the queue */
};

#define SKEP_QUEUE_RISES 4u

struct skep_queue { /* all zero: empty */
	struct skep_queue_entry *entry;
	size_t count, capacity;
	size_t risen[SKEP_QUEUE_RISES + 1]; /* by the last removal, to so far below the first entry: a place; 0: none */
};

void skep_queue_finish(struct skep_queue *queue);

/* False: no memory, the queue is as before. */
bool skep_queue_push(struct skep_queue *queue, struct skep_queue_entry entry);

/* Removes the first entry; the queue must not be empty. */
struct skep_queue_entry skep_queue_pop(struct skep_queue *queue);

/* An entry that is removed soon: the one that the last removal moved up to row `level` of the heap, NULL if it
 * moved none. A row has 4^level places, so the entry is removed after about as many others. */
static inline const struct skep_queue_entry *skep_queue_risen(const struct skep_queue *queue, uint32_t level)
{
	size_t at = queue->risen[level];
	return at > 0 && at < queue->count ? &queue->entry[at] : NULL;
}

/* SKEP_TIME_NEVER when empty. */
static inline skep_time skep_queue_next(const struct skep_queue *queue)
{
	return queue->count > 0 ? queue->entry[0].time : SKEP_TIME_NEVER;
}
