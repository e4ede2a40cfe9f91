/* SPDX-License-Identifier: Apache-2.0
 *
 * batch_norm.h - batch normalisation (Ioffe and Szegedy 2015, arXiv 1502.03167) of images [samples][channels][pixels]: of each
 * channel, y = weight (x - mean) / sqrt(variance + epsilon) + bias, with mean and variance over the samples and pixels of the
 * microbatch that the worker has at hand, which it shares with no other worker. Where a model is judged they are its running
 * averages.
 *
 * Running averages are parameters of the layer that no gradient reaches (skep_tensor.averaged), so that they are reduced, sent,
 * kept and taken up as all parameters are. With running averages r and what a microbatch has, b, in their place in the
 * accumulator stands
 *
 *     r - b   where all passes of a round read the r that the step behind it changes;
 *     - b     elsewhere. With r of an older version they would swing, and with a momentum that is not small grow without end.
 *
 * So from the sum of a round over its microbatches and workers the step has the mean of b, whatever the passes read, and takes
 * r to it, by `momentum` of the way (update/optimizer.c). Where nothing is rounded, and all are in the mean, both are the same
 * but for the order of sums. A codec that rounds does less to differences, which are small once r is near: with one of these and
 * updates that are delayed by a step it is r - b as well, up to a momentum of 1/2, with which a swing halves in two steps.
 */
#pragma once

#include <stdbool.h>

#include "base/process/thread_pool.h"
#include "models/layers/real.h"

enum { SKEP_BATCH_NORM_KEPT = 3 }; /* numbers for each channel: means, 1 / deviations, variances */

struct skep_batch_norm {
	size_t samples, channels, pixels;
	const skep_real *weight, *bias; /* [channels] */
	skep_real epsilon;
	skep_real *kept; /* [SKEP_BATCH_NORM_KEPT][channels] */
	struct skep_thread_pool *thread_pool;
};

/* Fills `kept` from the microbatch, or from running averages. */
void skep_batch_norm_measure(const struct skep_batch_norm *norm, const skep_real *x);
void skep_batch_norm_recall(const struct skep_batch_norm *norm, const skep_real *mean, const skep_real *variance);

/* Of a sample's planes from channel `first` on, x[channels][pixels]: ret = relu(y). */
void skep_batch_norm_bend(
	const struct skep_batch_norm *norm, size_t first, size_t channels, const skep_real *x, skep_real *ret);
/* Of all planes of a sample: ret = y, or ret += y. */
void skep_batch_norm_apply(const struct skep_batch_norm *norm, const skep_real *x, bool adds, skep_real *ret);

/* Given the gradient at y, or with `bends` at relu(y), makes that at x, of a microbatch that was measured; it may lie in the same
 * place. Adds to the gradients of weight and bias, unless NULL. */
void skep_batch_norm_backward(const struct skep_batch_norm *norm, const skep_real *x, bool bends, const skep_real *at_y,
	skep_real *weight_gradient, skep_real *bias_gradient, skep_real *ret);

/* Adds running averages less those of the microbatch, or with NULL minus these; the variance is that without bias, over n - 1. */
void skep_batch_norm_average(const struct skep_batch_norm *norm, const skep_real *mean, const skep_real *variance,
	skep_real *mean_sum, skep_real *variance_sum);
