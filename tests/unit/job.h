/* SPDX-License-Identifier: Apache-2.0
 *
 * job.h - a small model cut into stages, with one device per stage in this process, for the tests of the arithmetic.
 * Functions assert what must not fail.
 */
#pragma once

#include "models/device/device.h"

enum { STAGES_MAX = 5, SAMPLES = 16 };

struct job { /* not to be moved: the devices keep pointers into it */
	uint32_t width[12];
	struct skep_model model;
	struct skep_plan plan;
	struct skep_training training;
	enum skep_device_kind kind;             /* CPU, unless a test says otherwise before it starts them */
	uint32_t threads;                       /* of each device; 0: one */
	struct skep_device *device[STAGES_MAX]; /* one per stage */
};

/* AdamW; 1 -> hidden ... hidden -> 1. */
void job_init(struct job *job, uint32_t stages, enum skep_activation activation, uint32_t layers, uint32_t hidden);
void job_finish(struct job *job); /* no buffer may be left */

/* The devices again, with other settings in job->training. */
void job_restart(struct job *job);

struct job_passage { /* a microbatch between its forward and its backward pass */
	uint32_t round, microbatch;
	struct skep_buf in[STAGES_MAX], stash[STAGES_MAX]; /* per stage */
	int64_t loss_nano;
	uint32_t first, last; /* stages that job_backward() lets count it; job_forward() says all */
};
void job_forward(struct job *job, uint32_t round, uint32_t microbatch, struct job_passage *ret);
void job_backward(struct job *job, const struct job_passage *passage); /* releases the buffers */

/* Forward and backward of one microbatch through all stages; returns its loss in 1e-9 units. */
int64_t job_microbatch(struct job *job, uint32_t round, uint32_t microbatch);
void job_step(struct job *job, uint32_t round, uint32_t microbatches); /* as the only member */

/* The reduction of a round among the devices of a stage, one in each of job[0 .. members - 1]. */
void job_reduce(struct job *job, uint32_t members, uint32_t stage, uint32_t round);

struct skep_device_result job_run(struct skep_device *device, struct skep_op op);

/* The buffer of one device as a buffer of another; the first is released. */
struct skep_buf job_carry(struct skep_device *from, struct skep_buf buf, struct skep_device *to);

/* Shakespeare by bytes, in windows of so many. The caller closes it. */
struct skep_tokens *job_open_text(uint32_t length);

/* What the operation puts out, as a copy that the caller frees. */
float *job_dump(struct skep_device *device, struct skep_op op, uint64_t *ret_bytes);

/* A copy of this state into a buffer and from there into the device. */
struct skep_device_result job_load(struct skep_device *device, uint32_t stage, const void *state, uint64_t bytes);

/* Of all stages one after the other: parameters, and the accumulators of a round, of what is trained. The caller frees them. */
float *job_parameters(struct job *job, size_t *ret_n);
float *job_gradients(struct job *job, uint32_t round, size_t *ret_n);

/* A reduction's operation with the elements of its chunk `chunk` of `size`, of what is trained. */
struct skep_op job_chunk(const struct job *job, struct skep_op op);

/* A shipped model, models/NAME.yaml. The test fails where there is none. */
void job_read_model(const char *name, struct skep_model *ret);
