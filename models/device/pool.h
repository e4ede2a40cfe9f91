/* SPDX-License-Identifier: Apache-2.0
 *
 * pool.h - buffers behind handles with a generation. A released buffer keeps its memory for the next one of its size
 * class, so a run that has seen all its sizes allocates no more. Every function may be called from any thread; the
 * memory behind a live handle belongs to the holder of the handle.
 *
 * Memory has two sides: the host's, which can be read and sent, and a device's own, which only the device can touch.
 * The back end's struct skep_memory_source provides both.
 */
#pragma once

#include <pthread.h>

#include "core/skep.h"

enum skep_memory_side { SKEP_MEMORY_DEVICE, SKEP_MEMORY_HOST, SKEP_MEMORY_SIDES };

struct skep_memory_source { /* called from any thread */
	void *(*take)(
		void *context, enum skep_memory_side side, size_t bytes); /* aligned to 64 bytes; NULL: none left */
	void (*give)(void *context, enum skep_memory_side side, void *memory);
	void *context;
};

/* Four size classes per power of two from 64 bytes to 2^46: at most a quarter of a block is unused. */
#define SKEP_POOL_CLASSES 161

struct skep_pool_slot {
	void *memory; /* of its class's size, kept for the life of the pool */
	uint64_t bytes;
	enum skep_memory_side side;
	uint32_t generation; /* of the present or, when free, of the next holder; never 0 */
	uint32_t next_free;  /* in the class's list; 0 ends it */
	bool live;
};

struct skep_pool {
	pthread_mutex_t lock;
	struct skep_pool_slot *slot; /* [capacity]; slot 0 is no buffer's */
	uint32_t slots, capacity;
	struct skep_memory_source source;
	uint32_t free[SKEP_MEMORY_SIDES][SKEP_POOL_CLASSES]; /* first free slot of a class, 0 none */
};

void skep_pool_init(struct skep_pool *pool, const struct skep_memory_source *source);
void skep_pool_finish(struct skep_pool *pool);

/* Aligned to 64 bytes, not cleared. {0, 0} and NULL when memory lacks. 0 bytes make a real handle. */
struct skep_buf skep_pool_take(struct skep_pool *pool, uint64_t bytes, void **ret_memory); /* of the host's side */
struct skep_buf skep_pool_take_on(
	struct skep_pool *pool, enum skep_memory_side side, uint64_t bytes, void **ret_memory);
void *skep_pool_find(struct skep_pool *pool, struct skep_buf buf, uint64_t *ret_bytes); /* NULL and 0 if stale */
void skep_pool_release(struct skep_pool *pool, struct skep_buf buf);                    /* nothing if stale */
