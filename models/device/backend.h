/* SPDX-License-Identifier: Apache-2.0
 *
 * backend.h - the interface between operations (device.c) and arithmetic: what a kind of device can do, as a table of
 * functions. device.c checks operands and says what is done; it never asks which kind it has.
 *
 * The back end chooses the memory for the arrays of a stage (struct skep_stage) and for buffers on the device; both are
 * touched through this table alone. Payloads lie on the host and can be sent as they are.
 *
 * Work is enqueued on a queue, one for each lane, and done in order, at the latest when wait() returns; queues run side
 * by side. The compute lane's queue has the stage's operations; the reduce lane's has reductions and delayed steps.
 */
#pragma once

#include "base/diag.h"
#include "models/stage/stage.h"

struct skep_backend {
	const char *name;
	/* The number of such devices; if 0, `reterr` says what is missing and what to do. */
	uint32_t (*count)(struct skep_diag *reterr);
	/* What number `ordinal` is called, and the memory that it computes in, bytes; "" and 0 where that cannot be told. */
	void (*describe)(uint32_t ordinal, char *ret_name, size_t name_size, double *ret_memory_bytes);
	/* One of them: its queues, and where buffers come from. */
	bool (*create)(const struct skep_device_place *place, const struct skep_training *training,
		void *ret_queue[SKEP_LANES], struct skep_memory_source *ret_source, struct skep_diag *reterr);
	void (*destroy)(void *queue[SKEP_LANES]);

	/* skep_stage_begin() and skep_stage_finish(). Where payloads have to be brought to the device and back the stage has
	 * `entry` and `exit`, whatever the codec. */
	bool (*begin)(void *queue, const struct skep_training *training, uint32_t index, struct skep_stage *ret);
	void (*finish)(void *queue, struct skep_stage *stage);

	/* device_cpu.h says what these do. `in` and `out` are at the stage's entry and exit, or payloads where it has none;
	 * stashes are of the device's side. *ret_loss is there when wait() has returned. */
	bool (*forward)(void *queue, const struct skep_stage *stage, const struct skep_training *training,
		const struct skep_op *op, const skep_real *in, skep_real *ret_out, skep_real *ret_stash,
		double *ret_loss, struct skep_diag *reterr);
	bool (*recompute)(void *queue, const struct skep_stage *stage, const struct skep_training *training,
		const struct skep_op *op, const skep_real *in, skep_real *ret_stash, struct skep_diag *reterr);
	const skep_real *(*backward)(void *queue, struct skep_stage *stage, const struct skep_training *training,
		const struct skep_op *op, const struct skep_layers *layers, const skep_real *in, const skep_real *stash,
		skep_real *ret_out);
	void (*step)(void *queue, struct skep_stage *stage, const struct skep_optimizer *optimizer,
		const struct skep_vstage_step *turn, const skep_real *sum);

	/* Elements first .. first + n - 1 of the parameters of that version are what the payload says. */
	void (*put)(void *queue, struct skep_stage *stage, uint32_t version, uint64_t first, size_t n,
		const skep_real *payload);

	/* Clears the round's accumulator. */
	void (*discard)(void *queue, struct skep_stage *stage, uint32_t round);
	/* skep_stage_periodic() */
	bool (*periodic)(void *queue, struct skep_stage *stage, const struct skep_training *training,
		const struct skep_op *op, const skep_real *sum);

	/* codec.h: values are of a stage, encoded ones are payloads. */
	void (*encode)(
		void *queue, enum skep_codec codec, uint32_t block, size_t n, const float *value, void *ret_encoded);
	void (*decode)(
		void *queue, enum skep_codec codec, uint32_t block, size_t n, const void *encoded, float *ret_value);
	void (*add)(void *queue, enum skep_codec codec, uint32_t block, size_t n, const float *value, void *encoded,
		float *ret_sum);
	void (*fold)(void *queue, enum skep_codec codec, uint32_t block, size_t n, const void *encoded, float *sum);
	/* byzantine.h, robust.h; weights are of the host's side, `room` is for skep_robust_scratch() numbers. */
	void (*tell)(void *queue, const struct skep_byzantine *byzantine, uint32_t round, uint64_t first, size_t n,
		const float *own, float *ret);
	void (*aggregate)(void *queue, const struct skep_robust *robust, uint32_t members, size_t n, const float *part,
		const uint32_t *weight, float *room, float *ret);
	/* Copies between any two memories. */
	void (*copy)(void *queue, void *to, const void *from, size_t bytes);

	/* stage.h; the state is of the host's side. skep_stage_save() and skep_stage_keep() are the same for all. */
	bool (*load)(void *queue, struct skep_stage *stage, uint32_t version, uint32_t chunk, uint32_t chunks,
		const void *state, uint64_t bytes);
	bool (*take_up)(void *queue, struct skep_stage *stage, uint32_t version, const void *state, uint64_t bytes);
	uint64_t (*digest)(void *queue, const struct skep_stage *stage);
	uint8_t arithmetic; /* 0 or 1: equal steps make equal bits on all devices of one */
	/* Of the parameters that a step has made: equal for all of this arithmetic if these are, to the bit; 0: it could not be
	 * told. */
	uint64_t (*sum)(void *queue, const struct skep_stage *stage);

	/* Waits until all work of the queue is done; false, with the reason in `why`, if some of it failed. */
	bool (*wait)(void *queue, char *why, size_t why_size);
};

extern const struct skep_backend skep_backend_cpu, skep_backend_cuda;
