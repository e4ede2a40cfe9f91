/* SPDX-License-Identifier: Apache-2.0
 *
 * free_list.h - items in an array that grows, of which those that are free are a list: each has the number of the next one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "topologies/network/large_pages.h"

/* Doubles an array, from `least` items, and puts the new ones, which are 0 but for their `next`, before those in *first. `items`
 * is the address of the pointer to it, which may move, and `next_at` where an item has its uint32_t `next`. False: no memory, and
 * nothing has changed. */
static inline bool skep_free_list_grow(
	void *items, size_t item_bytes, size_t next_at, uint32_t least, uint32_t *capacity, uint32_t *first)
{
	uint32_t room = *capacity ? *capacity * 2 : least;
	char *grown;
	memcpy(&grown, items, sizeof grown);
	grown = realloc(grown, room * item_bytes);
	if (!grown)
		return false;
	skep_large_pages(grown, room * item_bytes);
	memset(grown + *capacity * item_bytes, 0, (room - *capacity) * item_bytes);
	for (uint32_t i = room; i-- > *capacity;) {
		memcpy(grown + i * item_bytes + next_at, first, sizeof *first);
		*first = i;
	}
	memcpy(items, &grown, sizeof grown);
	*capacity = room;
	return true;
}
