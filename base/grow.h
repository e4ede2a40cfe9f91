/* SPDX-License-Identifier: Apache-2.0
 *
 * grow.h - arrays that grow by one item at a time. How much room one has follows from its count, so that none has to be kept.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SKEP_GROW_LEAST 16u

/* Room for item number `count` in an array whose earlier items were all added this way; `items` is the address of the pointer to
 * it, which may move. False: no memory, and nothing has changed. */
static inline bool skep_grow(void *items, size_t count, size_t item_bytes)
{
	bool full = count == 0 || (count >= SKEP_GROW_LEAST && (count & (count - 1)) == 0);
	if (!full)
		return true;
	size_t room = count == 0 ? SKEP_GROW_LEAST : 2 * count;
	void *old, *moved;
	memcpy(&old, items, sizeof old);
	moved = room <= SIZE_MAX / item_bytes ? realloc(old, room * item_bytes) : NULL;
	if (moved != NULL)
		memcpy(items, &moved, sizeof moved);
	return moved != NULL;
}
