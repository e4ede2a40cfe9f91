/* SPDX-License-Identifier: Apache-2.0
 *
 * thread_pool.h - threads that share the loops of one CPU device.
 *
 * A loop over n things is cut into ranges whose size does not depend on the number of threads, and any free thread
 * takes the next range. A loop may be shared if no range reads what another one writes; then it gives the same bits
 * with any number of threads. Where a result is a sum over ranges, each range stores its own sum and the caller adds
 * them up in the order of the ranges.
 *
 * The threads start with the pool and end with it; between, nothing is allocated. The calling thread works on the loop
 * too. If the pool is busy with another thread's loop, or is NULL, the calling thread does the whole loop.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct skep_thread_pool;

/* The cores that this process may use, at least 1, by its affinity mask, which batch systems and containers set. */
uint32_t skep_thread_pool_cores(void);

/* A pool of `members` >= 1 threads, the caller's included. NULL: no memory, or no more threads can be started. */
struct skep_thread_pool *skep_thread_pool_create(uint32_t members);
void skep_thread_pool_destroy(struct skep_thread_pool *thread_pool);        /* NULL is fine */
uint32_t skep_thread_pool_size(const struct skep_thread_pool *thread_pool); /* of NULL: 1 */

/* Does things first .. end - 1 on member `member` of the pool, which has its own scratch; 0 is the calling thread. */
typedef void skep_thread_pool_fn(const void *context, size_t first, size_t end, uint32_t member);
/* Does all n things in ranges of `grain` >= 1, and returns when they are done. */
void skep_thread_pool_for(
	struct skep_thread_pool *thread_pool, size_t n, size_t grain, skep_thread_pool_fn *fn, const void *context);
