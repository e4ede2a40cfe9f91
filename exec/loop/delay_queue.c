/* SPDX-License-Identifier: Apache-2.0
 *
 * delay_queue.c - see delay_queue.h. Of one (source, number) there is at most one entry: the half of the pair that came first.
 */
#include "exec/loop/delay_queue.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

static struct skep_delay_queue_item *find(struct skep_delay_queue *held, uint32_t source, uint64_t number)
{
	for (size_t i = 0; i < held->count; i++) {
		if (held->item[i].source == source && held->item[i].number == number)
			return &held->item[i];
	}
	return NULL;
}

/* NULL: no memory. */
static struct skep_delay_queue_item *add(struct skep_delay_queue *held, uint32_t source, uint64_t number)
{
	if (!skep_grow(&held->item, held->count, sizeof *held->item)) {
		held->no_memory = true;
		return NULL;
	}
	struct skep_delay_queue_item *item = &held->item[held->count++];
	*item = (struct skep_delay_queue_item){.source = source, .number = number};
	return item;
}

static void drop(struct skep_delay_queue *held, struct skep_delay_queue_item *item)
{
	assert(item >= held->item && item < held->item + held->count);
	size_t behind = held->count - (size_t)(item - held->item) - 1;
	memmove(item, item + 1, behind * sizeof *item);
	held->count--;
}

void skep_delay_queue_finish(struct skep_delay_queue *held)
{
	free(held->item);
	*held = (struct skep_delay_queue){0};
}

bool skep_delay_queue_arrive(struct skep_delay_queue *held, uint64_t number, const struct skep_message *message)
{
	struct skep_delay_queue_item *item = find(held, message->from.index, number);
	if (item != NULL && !item->here) {
		drop(held, item);
		return true;
	}
	if (item == NULL)
		item = add(held, message->from.index, number);
	if (item == NULL)
		return false;
	item->here = true;
	item->message = *message;
	return false;
}

bool skep_delay_queue_release(struct skep_delay_queue *held, uint32_t source, uint64_t number, struct skep_message *ret)
{
	struct skep_delay_queue_item *item = find(held, source, number);
	if (item == NULL) {
		add(held, source, number);
		return false;
	}
	if (!item->here)
		return false;
	*ret = item->message;
	drop(held, item);
	return true;
}

void skep_delay_queue_forget(struct skep_delay_queue *held, uint32_t source, uint64_t number)
{
	struct skep_delay_queue_item *item = find(held, source, number);
	if (item != NULL)
		drop(held, item);
}
