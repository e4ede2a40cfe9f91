/* SPDX-License-Identifier: Apache-2.0
 *
 * runtime.h - GPUs, queues of work and memory, for files in C. A queue remembers the first failure of anything that was
 * enqueued on it, and the next skep_cuda_wait() reports it; until then further work is enqueued all the same.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "models/device/pool.h"

#ifdef __cplusplus
extern "C" {
#endif

struct skep_cuda_queue;

/* The number of GPUs that can be used; with 0, `reterr` says why there is none. */
uint32_t skep_cuda_count(struct skep_diag *reterr);
/* The name and the memory of GPU `ordinal`; "" and 0 if they cannot be found out. */
void skep_cuda_describe(uint32_t ordinal, char *ret_name, size_t name_size, double *ret_memory_bytes);
/* A queue on GPU `ordinal`; `products`: matrix products will be enqueued on it. NULL: `reterr` says why. */
struct skep_cuda_queue *skep_cuda_queue_create(uint32_t ordinal, bool products, struct skep_diag *reterr);
void skep_cuda_queue_destroy(struct skep_cuda_queue *queue); /* NULL is fine */
/* Gives the queue memory of the device for sums over rows. */
void skep_cuda_queue_set_partial(struct skep_cuda_queue *queue, float *partial, size_t floats);

/* Memory of the device, or page-locked memory of the host, which kernels can read and write too. NULL: there is none left.
 * skep_cuda_give() waits for all queues before it frees the memory. */
void *skep_cuda_take(struct skep_cuda_queue *queue, enum skep_memory_side side, size_t bytes);
void skep_cuda_give(struct skep_cuda_queue *queue, enum skep_memory_side side, void *memory);

/* Both work on memory of skep_cuda_take(). */
void skep_cuda_copy(struct skep_cuda_queue *queue, void *to, const void *from, size_t bytes);
void skep_cuda_clear(struct skep_cuda_queue *queue, void *memory, size_t bytes);

/* Work enqueued on `queue` after this call waits for all work that is already enqueued on `first`. */
void skep_cuda_follow(struct skep_cuda_queue *queue, struct skep_cuda_queue *first);

/* Waits until all work of the queue is done. False: some of it failed, and `why` says what. */
bool skep_cuda_wait(struct skep_cuda_queue *queue, char *why, size_t why_size);

/* Waits as well, also for the queue of another lane. It reports no failure: skep_cuda_wait() on that queue does. */
void skep_cuda_settle(struct skep_cuda_queue *queue);

#ifdef __cplusplus
}
#endif
