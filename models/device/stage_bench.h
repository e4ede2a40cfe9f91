/* SPDX-License-Identifier: Apache-2.0
 *
 * stage_bench.h - times the passes and steps of one stage of a model on a device, through the operations of device.h: what an
 * operation costs a worker besides its arithmetic is in the times.
 *
 * The stage is the first, the middle or the last of three: the middle one receives a payload and sends one, as the inner stages
 * of a pipeline do; the first draws its samples, and the last has the loss. While a pass is timed, other microbatches of the
 * stage are under way, as in a pipeline: what a backward pass reads was written some passes before, and may have left the
 * caches since.
 *
 * A time is the mean over blocks of passes, less those that took much longer than the median of them. So the load that other
 * processes put on the host all the time is part of the result, and a short disturbance is not.
 */
#pragma once

#include "base/diag.h"
#include "models/device/device.h"

#define SKEP_STAGE_BENCH_STAGES 3u
#define SKEP_STAGE_BENCH_UNDER_WAY 3u /* microbatches at most, the one whose passes are timed included */

struct skep_stage_bench { /* not to be moved: the device keeps pointers into it */
	struct skep_plan plan;
	struct skep_training training;
	struct skep_device *device;
	struct skep_buf in, gradient; /* what the stage receives from its neighbours, where it has them */
	uint32_t stage;
	uint64_t forwards, backwards; /* passes that were made */
	/* Of forward pass i, at i % SKEP_STAGE_BENCH_UNDER_WAY. */
	struct skep_buf out[SKEP_STAGE_BENCH_UNDER_WAY], stash[SKEP_STAGE_BENCH_UNDER_WAY];
};

struct skep_pass_times {
	double forward_s, backward_s;
};

/* What is timed. `model` has cuts of three stages and is borrowed until the bench is finished, as are the tokens, which a first
 * and a last stage of a transformer need. */
struct skep_stage_bench_setup {
	enum skep_device_kind kind;
	const struct skep_device_place *place;
	const struct skep_model *model;
	const struct skep_tokens *tokens; /* NULL: none */
	uint32_t stage, samples;
};

/* False, with nothing to finish: the device cannot be had, or memory lacks. */
bool skep_stage_bench_begin(
	struct skep_stage_bench *ret, const struct skep_stage_bench_setup *setup, struct skep_diag *reterr);
void skep_stage_bench_finish(struct skep_stage_bench *bench);

/* Either pass; the backward one is of the microbatch that is under way for longest. At most SKEP_STAGE_BENCH_UNDER_WAY are.
 * False: it failed, most often for want of memory. */
bool skep_stage_bench_forward(struct skep_stage_bench *bench, double *ret_s, struct skep_diag *reterr);
bool skep_stage_bench_backward(struct skep_stage_bench *bench, double *ret_s, struct skep_diag *reterr);

/* A forward pass with the others under way, and a backward pass. */
bool skep_stage_bench_pass(struct skep_stage_bench *bench, struct skep_pass_times *ret, struct skep_diag *reterr);
/* The same over blocks, as above; a first pass is not counted. */
bool skep_stage_bench_passes(struct skep_stage_bench *bench, struct skep_pass_times *ret, struct skep_diag *reterr);
/* An optimizer step of AdamW, the mean of several, each behind passes, as in a run. A first one is not counted: in it a GPU loads
 * what it runs, and a CPU touches the moments for the first time. */
bool skep_stage_bench_step(struct skep_stage_bench *bench, double *ret_s, struct skep_diag *reterr);
