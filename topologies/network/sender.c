/* SPDX-License-Identifier: Apache-2.0
 *
 * sender.c - see sender.h. The jitter of a message follows from (seed, source, its number) alone, whatever other
 * machines send.
 */
#include "topologies/network/sender.h"

#include <math.h>
#include <stdlib.h>

#include "core/random.h"
#include "topologies/read/path.h"

#define JITTER_STREAM UINT64_C(0x6a6974746572) /* so that other draws of the same seed are others */
#define LEAST 64u

/* ---- messages of a pair get there in their order ----------------------------------------------------------------- */

/* An entry stays in the table when its time has passed; when the table is half full it is rebuilt, in the size that suits
 * them, with the entries that are still in the future. */

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

/* ---- when its latency is over ----------------------------------------------------------------------------------- */

bool skep_sender_latency_end(struct skep_sender *sender, const struct skep_topology *topology, struct skep_order *order,
	skep_time now, uint32_t source, uint32_t destination, double latency_s, skep_time *ret)
{
	const struct skep_link_profile *link_profile =
		skep_path_link_profile(topology, topology->machine[source].place, topology->machine[destination].place);
	uint64_t key = (uint64_t)source << 32 | destination;
	skep_time begin = now;
	sender->sent++;
	if (link_profile && link_profile->overhead_s > 0) {
		begin = (sender->free_ns > begin ? sender->free_ns : begin) +
		        (skep_time)llrint(link_profile->overhead_s * 1e9);
		sender->free_ns = begin;
	}
	if (!link_profile || link_profile->jitter.kind == SKEP_JITTER_NONE) {
		*ret = begin + (skep_time)llrint(latency_s * 1e9);
		return true;
	}
	uint64_t state = skep_mix(skep_mix(skep_mix(topology->seed ^ JITTER_STREAM) ^ source) ^ sender->sent);
	*ret = begin + (skep_time)llrint(skep_jitter_draw_s(topology, &link_profile->jitter, latency_s, &state) * 1e9);
	return link_profile->overtake || skep_order_keep(order, now, key + 1, ret);
}
