/* SPDX-License-Identifier: Apache-2.0
 *
 * gauge.h - how fast a device is at what training does: the passes and the steps of small models of its own, through the very
 * operations of device.h, so that all that a worker pays for is in the figures.
 *
 * A CPU is asked for the layers of perceptrons of several sizes, whose passes are one product forwards and two backwards; a
 * CUDA device, which has transformers alone, for a block of GPT-2.
 */
#ifndef SKEP_MODELS_GAUGE_H
#define SKEP_MODELS_GAUGE_H

#include "models/device.h"

enum { SKEP_GAUGE_PRODUCTS_MAX = 27 };

struct skep_gauge_product { /* C (m x n) = A (m x k) B (k x n): a layer from k to m numbers, with n samples */
	uint32_t m, k, n;
	double seconds; /* the mean of the three products of its passes, without the overhead of the operations */
};

struct skep_gauge {
	double flops;      /* the best rate of passes that was seen, FLOP/s, overhead taken off */
	double memory_Bps; /* of a step, as the time of one is told from its bytes (scenarios/plan.c) */
	double overhead_s; /* of the smallest operation that there is */
	struct skep_gauge_product product[SKEP_GAUGE_PRODUCTS_MAX]; /* rising in m, then k, then n; of a CPU */
	uint32_t products;
};

#define SKEP_GAUGE_SIZE_MIN 64u
#define SKEP_GAUGE_SIZE_MAX 8192u

/* `size`: of the largest layer, a multiple of 64. Takes some seconds. False: the device cannot be had, or memory lacks. */
bool skep_gauge_measure(enum skep_device_kind kind, const struct skep_device_place *place, uint32_t size,
	struct skep_gauge *ret, char *error, size_t error_size);

#endif
