/* SPDX-License-Identifier: Apache-2.0
 *
 * device_inside.h - a device, for the files that make it up.
 */
#ifndef SKEP_MODELS_DEVICE_INSIDE_H
#define SKEP_MODELS_DEVICE_INSIDE_H

#include "models/pool.h"
#include "models/stage.h"

struct skep_device {
	const struct skep_training *training;
	struct skep_stage stage;
	struct skep_pool *pool;
	struct skep_keeper keeper;    /* write NULL: none */
	char why[1024], unkept[1024]; /* of the newest operation; of a state that could not be kept */
};

/* device_state.c */
bool device_run_save(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret);
bool device_run_load(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret);
bool device_run_enter(struct skep_device *device, const struct skep_op *op);
bool device_run_checkpoint(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret);
bool device_run_restore(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret);

#endif
