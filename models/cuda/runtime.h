/* SPDX-License-Identifier: Apache-2.0
 *
 * runtime.h - GPUs, queues of work and memory, as C sees them. Whatever cannot be asked for is remembered by its queue and
 * said by the next wait; until then the rest is asked for all the same.
 */
#ifndef SKEP_MODELS_CUDA_RUNTIME_H
#define SKEP_MODELS_CUDA_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "models/pool.h"

#ifdef __cplusplus
extern "C" {
#endif

struct skep_cuda_queue;

/* GPUs that can be used; 0: none, and `error` says why. */
uint32_t skep_cuda_count(char *error, size_t error_size);
/* Its name and memory; "" and 0: that cannot be told. */
void skep_cuda_describe(uint32_t ordinal, char *ret_name, size_t name_size, double *ret_memory_bytes);
/* On GPU `ordinal`. With products if it shall have them. */
struct skep_cuda_queue *skep_cuda_queue_create(uint32_t ordinal, bool products, char *error, size_t error_size);
void skep_cuda_queue_destroy(struct skep_cuda_queue *queue); /* NULL is fine */
/* Of the device's side, for sums over rows. */
void skep_cuda_queue_set_partial(struct skep_cuda_queue *queue, float *partial, size_t floats);

/* Memory of the device, or page-locked memory of the host, which kernels can read and write too. NULL: there is none left.
 * Giving waits for all queues. */
void *skep_cuda_take(struct skep_cuda_queue *queue, enum skep_memory_side side, size_t bytes);
void skep_cuda_give(struct skep_cuda_queue *queue, enum skep_memory_side side, void *memory);

/* From and to memory of skep_cuda_take(). */
void skep_cuda_copy(struct skep_cuda_queue *queue, void *to, const void *from, size_t bytes);
void skep_cuda_clear(struct skep_cuda_queue *queue, void *memory, size_t bytes);

/* What `queue` is asked for from now on is done after what `first` was asked for until now. */
void skep_cuda_follow(struct skep_cuda_queue *queue, struct skep_cuda_queue *first);

/* Until all that was asked for has been done. False: something could not be. */
bool skep_cuda_wait(struct skep_cuda_queue *queue, char *why, size_t why_size);

/* The same, whoever's the queue is, and without a word of what could not be. */
void skep_cuda_settle(struct skep_cuda_queue *queue);

#ifdef __cplusplus
}
#endif

#endif
