/* SPDX-License-Identifier: Apache-2.0
 *
 * microbench.h - measures how fast a device is at training: it times passes and steps of small models through the
 * operations of device.h, so that all costs that a worker has are part of the figures.
 *
 * A CPU runs the layers of perceptrons of several sizes, whose passes are one product forwards and two backwards. A
 * CUDA device, which has the layers of transformers alone, runs blocks of GPT-2, wide ones and narrow ones: products take the
 * time of the former and memory much of that of the latter.
 */
#pragma once

#include "base/diag.h"
#include "models/device/device.h"

enum { SKEP_MICROBENCH_PRODUCTS_MAX = 27 };

struct skep_microbench_product { /* C (m x n) = A (m x k) B (k x n): layers from k to m numbers and back, with n samples */
	uint32_t m, k, n;
	double seconds; /* the mean of the products of their passes, without the overhead of the operations */
};

struct skep_microbench {
	double flops; /* the best rate of passes that was seen, FLOP/s, overhead taken off */
	/* Of a step of more than stays in a cache, as the time of one is told from its bytes (scenarios/plan/plan.c); on a GPU of
	 * a pass or a step, the best rate that was seen, since the time of a pass is told from its bytes as well. */
	double memory_Bps;
	double overhead_s; /* of the smallest operation that there is */
	struct skep_microbench_product
		product[SKEP_MICROBENCH_PRODUCTS_MAX]; /* rising in m, then k, then n; of a CPU */
	uint32_t products;
};

#define SKEP_MICROBENCH_SIZE_MIN 64u
#define SKEP_MICROBENCH_SIZE_MAX 8192u

/* Both passes of a microbatch through a stage: what they do, as scenarios/plan/plan.c counts it, and their time. */
struct skep_microbench_passes {
	double flop, bytes, seconds;
};

/* Of two stages of a GPU that differ in their number of blocks alone: the rates rise where a plan would tell more from them
 * than the blocks took that the deeper one has more. */
void skep_microbench_note(struct skep_microbench *microbench, const struct skep_microbench_passes *shallow,
	const struct skep_microbench_passes *deep);

/* `size`: of the largest layer, a multiple of 64. Takes some seconds. False: the device cannot be had, or memory lacks. */
bool skep_microbench_measure(enum skep_device_kind kind, const struct skep_device_place *place, uint32_t size,
	struct skep_microbench *ret, struct skep_diag *reterr);

/* One stage of which a pass takes about a millisecond on a core, asked for one at a time. */
struct skep_single_passes;

/* NULL: the device cannot be had, or memory lacks. *ret_bytes: of a payload into that stage, and out of it. */
struct skep_single_passes *skep_single_passes_begin(enum skep_device_kind kind, const struct skep_device_place *place,
	uint64_t *ret_bytes, struct skep_diag *reterr);
/* A forward pass, or the backward pass of the one before; by one thread at a time. False: it failed. */
bool skep_single_passes_next(struct skep_single_passes *passes, struct skep_diag *reterr);
void skep_single_passes_finish(struct skep_single_passes *passes);
