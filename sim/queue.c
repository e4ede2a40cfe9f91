/* SPDX-License-Identifier: Apache-2.0
 *
 * queue.c - a heap with four children per node in one array: half as deep as a binary heap, and children lie side by
 * side.
 *
 * Kept true: no entry comes before its parent, which has index (n - 1) / 4. Which of four children comes first is as
 * good as random, so it is found without a branch, which the processor would mispredict. Without a branch the
 * processor fetches no children speculatively either, so they are prefetched.
 */
#include "sim/queue.h"

#include <assert.h>
#include <stdlib.h>

enum { NEAR = 4096 }; /* so many entries stay in a core's own cache */

static bool sooner(const struct skep_queue_entry *a, const struct skep_queue_entry *b)
{
	return (a->time < b->time) | ((a->time == b->time) & (a->sequence < b->sequence));
}

void skep_queue_finish(struct skep_queue *queue)
{
	free(queue->entry);
	*queue = (struct skep_queue){0};
}

bool skep_queue_push(struct skep_queue *queue, struct skep_queue_entry entry)
{
	assert(queue->count <= queue->capacity);
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

/* The first of four entries that lie side by side. It is found by arithmetic, as a branch would often be
 * mispredicted. */
static size_t first_of_four(const struct skep_queue_entry *entry, size_t at)
{
	size_t one = at + sooner(&entry[at + 1], &entry[at]);
	size_t other = at + 2 + sooner(&entry[at + 3], &entry[at + 2]);
	return one + (other - one) * sooner(&entry[other], &entry[one]);
}

/* The first child of the hole at `at`, which has `count` entries below and beside it; count: it has none. */
static size_t first_child(const struct skep_queue_entry *entry, size_t at, size_t count)
{
	assert(at < count || count == 0);
	size_t child = 4 * at + 1, best = child;
	if (child + 4 > count) {
		for (size_t other = child + 1; other < count; other++)
			best = sooner(&entry[other], &entry[best]) ? other : best;
		return best < count ? best : count;
	}
	size_t below = 4 * child + 1; /* the children of all four, lest the next level waits */
	for (size_t line = 0; count > NEAR && below < count && line < 16 * sizeof *entry; line += 64)
		__builtin_prefetch((const char *)&entry[below] + line);
	return first_of_four(entry, child);
}

/* The hole goes all the way down and the last entry up from there: it was late, and mostly belongs there. */
struct skep_queue_entry skep_queue_pop(struct skep_queue *queue)
{
	assert(queue->count > 0);
	struct skep_queue_entry *entry = queue->entry;
	struct skep_queue_entry first = entry[0], last = entry[--queue->count];
	size_t at = 0, child;
	uint32_t level = 0;
	while ((child = first_child(entry, at, queue->count)) < queue->count) {
		entry[at] = entry[child];
		if (level <= SKEP_QUEUE_RISES)
			queue->risen[level] = at;
		level++;
		at = child;
	}
	for (; level <= SKEP_QUEUE_RISES; level++)
		queue->risen[level] = 0;
	while (at > 0 && sooner(&last, &entry[(at - 1) / 4])) {
		entry[at] = entry[(at - 1) / 4];
		at = (at - 1) / 4;
	}
	entry[at] = last;
	return first;
}
