/* SPDX-License-Identifier: Apache-2.0
 *
 * connections.c - see connections.h. Linear probing without tombstones: entries behind the hole that a dropped one leaves
 * move up unless that puts them before their home.
 */
#include "topologies/network/connections.h"

#include <assert.h>
#include <stdlib.h>

#define LEAST 64u
#define NO_FLOW UINT32_MAX

static uint32_t home_of(const struct skep_connections *connections, uint64_t key)
{
	return (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (connections->size - 1);
}

static uint32_t slot_of(const struct skep_connections *connections, uint64_t key)
{
	uint32_t slot = home_of(connections, key);
	while (connections->queue[slot].key != 0 && connections->queue[slot].key != key)
		slot = (slot + 1) & (connections->size - 1);
	return slot;
}

static bool grow(struct skep_connections *connections)
{
	struct skep_connections grown = {.size = connections->size ? 2 * connections->size : LEAST};
	grown.queue = calloc(grown.size, sizeof *grown.queue);
	if (!grown.queue)
		return false;
	for (uint32_t i = 0; i < connections->size; i++)
		if (connections->queue[i].key != 0)
			grown.queue[slot_of(&grown, connections->queue[i].key)] = connections->queue[i];
	grown.used = connections->used;
	free(connections->queue);
	*connections = grown;
	return true;
}

struct skep_pair_queue *skep_connections_find(const struct skep_connections *connections, uint64_t key)
{
	if (connections->used == 0)
		return NULL;
	struct skep_pair_queue *queue = &connections->queue[slot_of(connections, key)];
	return queue->key != 0 ? queue : NULL;
}

struct skep_pair_queue *skep_connections_get(struct skep_connections *connections, uint64_t key, uint32_t streams)
{
	assert(key != 0 && streams > 0);
	if (2 * connections->used >= connections->size && !grow(connections))
		return NULL;
	struct skep_pair_queue *queue = &connections->queue[slot_of(connections, key)];
	if (queue->key == 0) {
		*queue = (struct skep_pair_queue){.key = key, .streams = streams, .first = NO_FLOW, .last = NO_FLOW};
		connections->used++;
	}
	assert(queue->streams == streams);
	return queue;
}

void skep_connections_drop(struct skep_connections *connections, struct skep_pair_queue *queue)
{
	assert(queue->under_way == 0 && queue->moving == 0 && queue->first == NO_FLOW);
	uint32_t mask = connections->size - 1, hole = (uint32_t)(queue - connections->queue);
	for (uint32_t slot = (hole + 1) & mask; connections->queue[slot].key != 0; slot = (slot + 1) & mask) {
		uint32_t home = home_of(connections, connections->queue[slot].key);
		if (((slot - home) & mask) >= ((slot - hole) & mask)) {
			connections->queue[hole] = connections->queue[slot];
			hole = slot;
		}
	}
	connections->queue[hole].key = 0;
	connections->used--;
}

void skep_connections_finish(struct skep_connections *connections)
{
	free(connections->queue);
	*connections = (struct skep_connections){0};
}
