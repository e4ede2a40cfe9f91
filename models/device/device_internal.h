/* SPDX-License-Identifier: Apache-2.0
 *
 * device_internal.h - struct skep_device, for the files that implement it. An operation works on the queue of its lane
 * and returns whether its work could be enqueued; if not, device->why[lane] says why.
 */
#pragma once

#include "core/collective/collective.h"
#include "models/device/backend.h"
#include "models/device/pool.h"
#include "models/update/byzantine.h"

struct skep_scratch { /* memory on the device; grows to the largest size that was needed */
	float *memory;
	size_t floats;
};

struct skep_gathered {                    /* the parts of a reduction side by side */
	struct skep_scratch parts;        /* [members][count], and behind them skep_robust_scratch() */
	uint32_t weight[SKEP_ROSTER_MAX]; /* microbatches that each member has counted */
};

struct skep_finite_check { /* what a pass makes; looked at when it is there */
	uint8_t fault;     /* enum skep_fault: what it is if it is not finite; none: there is nothing to look at */
	const float *made; /* [n], or NULL: a loss alone */
	size_t n;
	const float *stash; /* of FORWARD */
};

struct skep_device {
	const struct skep_training *training;
	const struct skep_backend *backend;
	void *queue[SKEP_LANES];
	double loss[SKEP_LANES]; /* of each lane's operation; 0 if it computes none */
	struct skep_finite_check finite_check[SKEP_LANES];
	struct skep_stage stage;
	struct skep_pool *pool;
	struct skep_keeper keeper; /* write NULL: none */
	struct skep_gathered gathered;
	struct skep_byzantine byzantine;
	struct skep_scratch attack, honest; /* of what a Byzantine one sends in place of it; what it has computed */
	char why[SKEP_LANES][1024];
	struct skep_diag unkept; /* why the last checkpoint failed */
};

/* With waves a pass's parameters are behind its stash; where nothing is trained there is none. */
static inline bool device_keeps_own(const struct skep_device *device, const struct skep_stage *stage)
{
	return skep_plan_waves(device->training->plan) && !stage->workspace;
}

static inline uint64_t device_stash_bytes(const struct skep_device *device, const struct skep_stage *stage)
{
	return stage->stash_bytes + (device_keeps_own(device, stage) ? stage->parameters * sizeof(skep_real) : 0);
}

static inline skep_real *device_behind_stash(
	const struct skep_device *device, const struct skep_stage *stage, void *stash)
{
	return device_keeps_own(device, stage) ? (skep_real *)((char *)stash + stage->stash_bytes) : NULL;
}

static inline void *device_queue(const struct skep_device *device, const struct skep_op *op)
{
	return device->queue[op->lane];
}

/* Of what its stage reduces. */
static inline enum skep_codec skep_device_codec(const struct skep_device *device)
{
	const struct skep_training *training = device->training;
	return training->reduction_codecs ? (enum skep_codec)training->reduction_codecs[device->stage.index]
	                                  : training->reduction_codec;
}

/* The virtual stage that an operation is about; its queue is that of the operation's lane. */
struct skep_stage skep_device_part(const struct skep_device *device, const struct skep_op *op);

/* device.c */
bool skep_device_begin_stage(struct skep_device *device, uint32_t candidate, uint32_t stage, struct skep_stage *ret);

/* device_state.c */
bool skep_device_run_save(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret);
bool skep_device_run_load(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret);
bool skep_device_run_enter(struct skep_device *device, const struct skep_op *op);
bool skep_device_run_checkpoint(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret);
bool skep_device_run_restore(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret);

struct skep_chunk {
	const float *own; /* in the round's accumulator */
	float *result;
	size_t count;
	uint64_t bytes; /* encoded */
};

/* The elements that a reduction operation is about; false: there are no such, or no memory for what is told in their place. */
bool skep_device_chunk(struct skep_device *device, const struct skep_op *op, struct skep_chunk *ret);
/* Where a forward pass puts the activations that are sent from `told`: there, or, where this device lies about them, beside it;
 * NULL: there is nothing to send, or no memory. */
float *skep_device_honest(struct skep_device *device, size_t n, float *told);
/* Makes what is sent of them, if that is something else. */
void skep_device_mislead(
	struct skep_device *device, const struct skep_op *op, size_t n, const float *honest, float *told);
/* What this device says it has in elements first .. first + n - 1 of the accumulator of the operation's round; NULL: no memory
 * to lie in. */
const float *skep_device_own(struct skep_device *device, const struct skep_op *op, uint64_t first, size_t n);
/* The same of all that is trained, element i at [i]. */
const float *skep_device_own_all(struct skep_device *device, const struct skep_op *op);

/* device_finite.c. After an operation: sets the fault in *ret if what the operation made is not finite. */
void skep_device_check_finite(
	const struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret);
/* True: some number of the stage's state is not finite; *ret_layer has it. */
bool skep_device_is_tainted(const struct skep_device *device, const struct skep_op *op, uint16_t *ret_layer);

/* device_state.c. Behind the STEP of a stage's last virtual stage, on its lane: the sum of the parameters, as SKEP_MESSAGE_TALLY
 * has it. False: of those that each rank of a tensor parallel group has, they have not all the same; all of them find that. */
bool skep_device_end_step(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret);

typedef bool skep_device_run_fn(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret);
skep_device_run_fn skep_device_run_step, skep_device_run_norm; /* device_finite.c */
skep_device_run_fn skep_device_pack_part, skep_device_unpack_part, skep_device_aggregate;
skep_device_run_fn skep_device_copy_shard, skep_device_store_shard; /* device_shard.c */
/* Names the shard that a STEP steps. False: the moments here are those of another one. */
bool skep_device_name_shard(struct skep_device *device, const struct skep_op *op);
void skep_device_gathered_finish(struct skep_device *device);
