/* SPDX-License-Identifier: Apache-2.0
 *
 * observed_device.h - what tests look at in a device, and no caller of it asks for.
 */
#pragma once

#include "models/device/device_internal.h"

/* Buffers that were made and not released. */
static inline uint32_t buffers_live(const struct skep_device *device)
{
	return skep_pool_live(device->pool);
}

/* Hash of the stage's newest parameters: equal among the members of a stage after a reduction. */
static inline uint64_t parameters_digest(const struct skep_device *device)
{
	return device->backend->digest(device->queue[SKEP_LANE_COMPUTE], &device->stage);
}
