/* SPDX-License-Identifier: Apache-2.0
 *
 * queue.c - a heap of four children in one array: half as deep as one of two, and children lie side by side. Kept true:
 * no entry comes before its parent (n - 1) / 4.
 */
#include "sim/queue.h"

#include <assert.h>
#include <stdlib.h>

static bool sooner(const struct skep_queue_entry *a, const struct skep_queue_entry *b)
{
	return a->time < b->time || (a->time == b->time && a->sequence < b->sequence);
}

void skep_queue_finish(struct skep_queue *queue)
{
	free(queue->entry);
	*queue = (struct skep_queue){0};
}

bool skep_queue_push(struct skep_queue *queue, struct skep_queue_entry entry)
{
	if (queue->count == queue->capacity) {
		size_t capacity = queue->capacity ? queue->capacity * 2 : 256;
		struct skep_queue_entry *grown = realloc(queue->entry, capacity * sizeof *grown);
		if (!grown)
			return false;
		queue->entry = grown;
		queue->capacity = capacity;
	}
	size_t at = queue->count++;
	while (at > 0 && sooner(&entry, &queue->entry[(at - 1) / 4])) {
		queue->entry[at] = queue->entry[(at - 1) / 4];
		at = (at - 1) / 4;
	}
	queue->entry[at] = entry;
	return true;
}

struct skep_queue_entry skep_queue_pop(struct skep_queue *queue)
{
	assert(queue->count > 0);
	struct skep_queue_entry first = queue->entry[0], last = queue->entry[--queue->count];
	size_t at = 0;
	for (;;) {
		size_t child = 4 * at + 1, end = child + 4 < queue->count ? child + 4 : queue->count;
		if (child >= end)
			break;
		for (size_t other = child + 1; other < end; other++)
			if (sooner(&queue->entry[other], &queue->entry[child]))
				child = other;
		if (!sooner(&queue->entry[child], &last))
			break;
		queue->entry[at] = queue->entry[child];
		at = child;
	}
	queue->entry[at] = last;
	return first;
}
