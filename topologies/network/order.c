/* SPDX-License-Identifier: Apache-2.0
 *
 * order.c - see sender.h. An entry stays in the table when its time has passed; when the table is half full it is
 * rebuilt, in the size that suits them, with the entries that are still in the future.
 */
#include "topologies/network/sender.h"

#include <stdlib.h>

#define LEAST 64u

static struct skep_order_entry *slot_of(const struct skep_order *order, uint64_t key)
{
	uint32_t mask = order->size - 1, slot = (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & mask;
	while (order->entry[slot].key != 0 && order->entry[slot].key != key)
		slot = (slot + 1) & mask;
	return &order->entry[slot];
}

static bool make_anew(struct skep_order *order, skep_time now)
{
	struct skep_order fresh = {.size = LEAST};
	uint32_t live = 0;
	for (uint32_t i = 0; i < order->size; i++)
		live += order->entry[i].key != 0 && order->entry[i].latest > now;
	while (fresh.size < 4 * (live + 1)) /* room for as many again */
		fresh.size *= 2;
	fresh.entry = calloc(fresh.size, sizeof *fresh.entry);
	if (!fresh.entry)
		return false;
	for (uint32_t i = 0; i < order->size; i++)
		if (order->entry[i].key != 0 && order->entry[i].latest > now)
			*slot_of(&fresh, order->entry[i].key) = order->entry[i];
	fresh.used = live;
	free(order->entry);
	*order = fresh;
	return true;
}

bool skep_order_keep(struct skep_order *order, skep_time now, uint64_t key, skep_time *time)
{
	if (2 * order->used >= order->size && !make_anew(order, now))
		return false;
	struct skep_order_entry *entry = slot_of(order, key);
	order->used += entry->key == 0;
	entry->key = key;
	if (*time < entry->latest)
		*time = entry->latest;
	entry->latest = *time;
	return true;
}

void skep_order_finish(struct skep_order *order)
{
	free(order->entry);
	*order = (struct skep_order){0};
}
