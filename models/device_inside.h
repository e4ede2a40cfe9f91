/* SPDX-License-Identifier: Apache-2.0
 *
 * device_inside.h - a device, for the files that make it up. An operation works on the queue of its lane; what it returns says
 * whether it could be asked for, and device->why[lane] why not.
 */
#ifndef SKEP_MODELS_DEVICE_INSIDE_H
#define SKEP_MODELS_DEVICE_INSIDE_H

#include "core/collective.h"
#include "models/backend.h"
#include "models/byzantine.h"
#include "models/pool.h"

struct skep_room { /* of the device's side; grows to the largest that was asked for */
	float *memory;
	size_t floats;
};

struct skep_gathered {                    /* the parts of a reduction side by side */
	struct skep_room parts;           /* [members][count], and behind them skep_robust_room() */
	uint32_t weight[SKEP_ROSTER_MAX]; /* microbatches of each */
};

struct skep_doubt {        /* what a pass makes; looked at when it is there */
	uint8_t fault;     /* enum skep_fault: what it is if it is not finite; none: there is nothing to look at */
	const float *made; /* [n], or NULL: a loss alone */
	size_t n;
	const float *stash; /* of FORWARD */
};

struct skep_device {
	const struct skep_training *training;
	const struct skep_backend *backend;
	void *queue[SKEP_LANES];
	double loss[SKEP_LANES]; /* of the forward pass under way */
	struct skep_doubt doubt[SKEP_LANES];
	struct skep_stage stage;
	struct skep_pool *pool;
	struct skep_keeper keeper; /* write NULL: none */
	struct skep_gathered gathered;
	struct skep_byzantine byzantine;
	struct skep_room lie;
	char why[SKEP_LANES][1024];
	char unkept[1024]; /* why a state could not be kept */
};

static inline void *device_queue(const struct skep_device *device, const struct skep_op *op)
{
	return device->queue[op->lane];
}

/* The slice of the stage that an operation is about; its queue is that of the operation's lane. */
struct skep_stage device_part(const struct skep_device *device, const struct skep_op *op);

/* device.c */
bool device_begin(struct skep_device *device, uint32_t candidate, uint32_t stage, struct skep_stage *ret);

/* device_state.c */
bool device_run_save(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret);
bool device_run_load(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret);
bool device_run_enter(struct skep_device *device, const struct skep_op *op);
bool device_run_checkpoint(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret);
bool device_run_restore(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret);

struct skep_chunk {
	const float *own; /* in the round's accumulator */
	float *result;
	size_t count;
	uint64_t bytes; /* encoded */
};

/* The elements that a reduction operation is about; false: there are no such, or no memory for what is told in their place. */
bool skep_device_chunk(struct skep_device *device, const struct skep_op *op, struct skep_chunk *ret);
/* What this device says it has in elements first .. first + n - 1 of the accumulator of the operation's round; NULL: no memory
 * to lie in. */
const float *skep_device_own(struct skep_device *device, const struct skep_op *op, uint64_t first, size_t n);

/* device_sound.c: is what it made finite? After the operation. */
void device_judge(const struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret);
/* Is something of the stage's state not finite? */
bool device_is_spoilt(const struct skep_device *device, const struct skep_op *op, uint16_t *ret_layer);

typedef bool skep_device_run_fn(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret);
skep_device_run_fn device_run_step, device_run_norm; /* device_sound.c */
skep_device_run_fn skep_device_offer, skep_device_collect, skep_device_aggregate;
void skep_device_gathered_finish(struct skep_device *device);

#endif
