/* SPDX-License-Identifier: Apache-2.0
 *
 * observed_device.h - what tests look at in a device, and no caller of it asks for.
 */
#pragma once

#include "models/device/device_internal.h"

/* Buffers that were made and not released. */
static inline uint32_t pool_live(struct skep_pool *pool)
{
	uint32_t live = 0;
	pthread_mutex_lock(&pool->lock);
	for (uint32_t i = 1; i < pool->slots; i++)
		live += pool->slot[i].live;
	pthread_mutex_unlock(&pool->lock);
	return live;
}

static inline uint32_t buffers_live(const struct skep_device *device)
{
	return pool_live(device->pool);
}

/* Hash of the stage's newest parameters: equal among the members of a stage after a reduction. */
static inline uint64_t parameters_digest(const struct skep_device *device)
{
	return device->backend->digest(device->queue[SKEP_LANE_COMPUTE], &device->stage);
}

struct device_memory { /* what the arrays of its stage take, as allocated */
	uint64_t weights_bytes, gradients_bytes, optimizer_bytes, result_bytes;
};

/* Of a CPU device, in the memory of its host, offloaded or not. */
static inline struct device_memory device_memory_of(const struct skep_device *device)
{
	const struct skep_stage *stage = &device->stage;
	uint64_t array = sizeof(float) * stage->parameters, trained = sizeof(float) * stage->trained.count;
	uint32_t arrays = stage->versions + (stage->inner != NULL) + (stage->base != NULL) + (stage->moved != NULL);
	return (struct device_memory){
		.weights_bytes = arrays * array + (stage->drift ? trained : 0),
		.gradients_bytes = 2 * trained,
		.optimizer_bytes = stage->moments * sizeof(float) * stage->shard.count + stage->inner_moments * trained,
		.result_bytes = trained + sizeof(float) * stage->tied.count,
	};
}
