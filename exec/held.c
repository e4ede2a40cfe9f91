/* SPDX-License-Identifier: Apache-2.0
 *
 * held.c - see held.h. Of one (source, number) there is at most one entry: the half of the pair that came first.
 */
#include "exec/held.h"

#include <stdlib.h>
#include <string.h>

static struct skep_held_item *find(struct skep_held *held, uint32_t source, uint64_t number)
{
	for (size_t i = 0; i < held->count; i++) {
		if (held->item[i].source == source && held->item[i].number == number)
			return &held->item[i];
	}
	return NULL;
}

/* NULL: no memory. */
static struct skep_held_item *add(struct skep_held *held, uint32_t source, uint64_t number)
{
	if (held->count == held->room) {
		size_t room = 2 * held->room + 16;
		struct skep_held_item *bigger = realloc(held->item, room * sizeof *bigger);
		if (bigger == NULL) {
			held->no_memory = true;
			return NULL;
		}
		held->item = bigger;
		held->room = room;
	}
	struct skep_held_item *item = &held->item[held->count++];
	*item = (struct skep_held_item){.source = source, .number = number};
	return item;
}

static void drop(struct skep_held *held, struct skep_held_item *item)
{
	size_t behind = held->count - (size_t)(item - held->item) - 1;
	memmove(item, item + 1, behind * sizeof *item);
	held->count--;
}

void skep_held_finish(struct skep_held *held)
{
	free(held->item);
	*held = (struct skep_held){0};
}

bool skep_held_arrive(struct skep_held *held, uint64_t number, const struct skep_message *message)
{
	struct skep_held_item *item = find(held, message->from.index, number);
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

bool skep_held_release(struct skep_held *held, uint32_t source, uint64_t number, struct skep_message *ret)
{
	struct skep_held_item *item = find(held, source, number);
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

void skep_held_forget(struct skep_held *held, uint32_t source, uint64_t number)
{
	struct skep_held_item *item = find(held, source, number);
	if (item != NULL)
		drop(held, item);
}
