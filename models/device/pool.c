/* SPDX-License-Identifier: Apache-2.0
 *
 * pool.c - a table of slots and one list of free slots per size class. The lock covers the table and the lists, never
 * the memory itself. A handle is live exactly while its generation is its slot's and the slot is marked live.
 */
#include "models/device/pool.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64, BYTES_MAX_LOG2 = 46 };

/* Class c holds (4 + c % 4) * 2^(4 + c / 4) bytes. */
static uint32_t class_of(uint64_t bytes)
{
	if (bytes <= ALIGNMENT)
		return 0;
	uint32_t exponent = 63u - (uint32_t)__builtin_clzll(bytes - 1);
	uint32_t quarter = (uint32_t)((bytes - 1) >> (exponent - 2)) & 3;
	return 4 * (exponent - 6) + quarter + 1;
}

static size_t class_bytes(uint32_t class)
{
	size_t bytes = (size_t)(4 + class % 4) << (4 + class / 4);
	return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

void skep_pool_init(struct skep_pool *pool, const struct skep_memory_source *source)
{
	*pool = (struct skep_pool){.slots = 1, .source = *source};
	int failed = pthread_mutex_init(&pool->lock, NULL);
	assert(!failed);
	(void)failed;
}

void skep_pool_finish(struct skep_pool *pool)
{
	for (uint32_t i = 1; i < pool->slots; i++)
		pool->source.give(pool->source.context, pool->slot[i].side, pool->slot[i].memory);
	free(pool->slot);
	pthread_mutex_destroy(&pool->lock);
}

/* A slot with memory of the class, 0 when memory lacks. */
static uint32_t new_slot(struct skep_pool *pool, enum skep_memory_side side, uint32_t class)
{
	if (pool->slots >= pool->capacity) {
		uint32_t capacity = pool->capacity ? 2 * pool->capacity : 64;
		struct skep_pool_slot *slot = realloc(pool->slot, capacity * sizeof *slot);
		if (!slot)
			return 0;
		pool->slot = slot;
		pool->capacity = capacity;
	}
	void *memory = pool->source.take(pool->source.context, side, class_bytes(class));
	if (!memory)
		return 0;
	pool->slot[pool->slots] = (struct skep_pool_slot){.memory = memory, .side = side, .generation = 1};
	return pool->slots++;
}

static uint32_t take_slot(struct skep_pool *pool, enum skep_memory_side side, uint32_t class)
{
	uint32_t slot = pool->free[side][class];
	if (!slot)
		return new_slot(pool, side, class);
	pool->free[side][class] = pool->slot[slot].next_free;
	return slot;
}

struct skep_buf skep_pool_take(struct skep_pool *pool, uint64_t bytes, void **ret_memory)
{
	return skep_pool_take_on(pool, SKEP_MEMORY_HOST, bytes, ret_memory);
}

struct skep_buf skep_pool_take_on(struct skep_pool *pool, enum skep_memory_side side, uint64_t bytes, void **ret_memory)
{
	struct skep_buf buf = {0};
	*ret_memory = NULL;
	if (bytes > UINT64_C(1) << BYTES_MAX_LOG2)
		return buf;
	pthread_mutex_lock(&pool->lock);
	uint32_t i = take_slot(pool, side, class_of(bytes));
	if (i) {
		struct skep_pool_slot *slot = &pool->slot[i];
		slot->bytes = bytes;
		slot->live = true;
		*ret_memory = slot->memory;
		buf = (struct skep_buf){i, slot->generation};
	}
	pthread_mutex_unlock(&pool->lock);
	return buf;
}

/* With the lock held. */
static struct skep_pool_slot *find(struct skep_pool *pool, struct skep_buf buf)
{
	if (!buf.slot || buf.slot >= pool->slots)
		return NULL;
	struct skep_pool_slot *slot = &pool->slot[buf.slot];
	return slot->live && slot->generation == buf.generation ? slot : NULL;
}

void *skep_pool_find(struct skep_pool *pool, struct skep_buf buf, uint64_t *ret_bytes)
{
	pthread_mutex_lock(&pool->lock);
	const struct skep_pool_slot *slot = find(pool, buf);
	void *memory = slot ? slot->memory : NULL;
	*ret_bytes = slot ? slot->bytes : 0;
	pthread_mutex_unlock(&pool->lock);
	return memory;
}

void skep_pool_release(struct skep_pool *pool, struct skep_buf buf)
{
	pthread_mutex_lock(&pool->lock);
	struct skep_pool_slot *slot = find(pool, buf);
	if (slot) {
		uint32_t class = class_of(slot->bytes);
		slot->live = false;
		slot->generation = slot->generation == UINT32_MAX ? 1 : slot->generation + 1;
		slot->next_free = pool->free[slot->side][class];
		pool->free[slot->side][class] = buf.slot;
	}
	pthread_mutex_unlock(&pool->lock);
}
