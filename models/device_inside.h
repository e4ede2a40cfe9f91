/* SPDX-License-Identifier: Apache-2.0
 *
 * device_inside.h - a device, for the files that make it up. An operation works on the queue of its lane; what it returns says
 * whether it could be asked for, and device->why[lane] why not.
 */
#ifndef SKEP_MODELS_DEVICE_INSIDE_H
#define SKEP_MODELS_DEVICE_INSIDE_H

#include "models/backend.h"
#include "models/pool.h"

struct skep_device {
	const struct skep_training *training;
	const struct skep_backend *backend;
	void *queue[SKEP_LANES];
	double loss[SKEP_LANES]; /* of the forward pass under way */
	struct skep_stage stage;
	struct skep_pool *pool;
	struct skep_keeper keeper; /* write NULL: none */
	char why[SKEP_LANES][1024];
};

static inline void *device_queue(const struct skep_device *device, const struct skep_op *op)
{
	return device->queue[op->lane];
}

/* device_state.c */
bool device_run_save(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret);
bool device_run_load(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret);
bool device_run_enter(struct skep_device *device, const struct skep_op *op);
bool device_run_checkpoint(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret);
bool device_run_restore(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret);

#endif
