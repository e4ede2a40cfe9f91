/* SPDX-License-Identifier: Apache-2.0
 *
 * convolution.h - convolutions of images as matrix products. Images are [samples][channels][side][side]. The weight of one with
 * a kernel of k is [in k k][out]: so products have W^T[out][in k k] and, of each sample, the columns [in k k][pixels] that hold
 * what each pixel is made of (im2col; Chellapilla et al. 2006, "High performance convolutional neural networks for document
 * processing"). Columns are made in pieces of some rows of pixels, which stay in a core's cache, and nothing of them is kept.
 *
 * Samples are shared out to the thread pool; of a weight's gradient, which sums over all samples in their order, channels that
 * are read. No bit depends on the number of threads.
 */
#pragma once

#include "models/vision/batch_norm.h"
#include "models/vision/shape.h"

struct skep_convolution {
	struct skep_conv shape;
	size_t samples;
	/* What it reads: x itself, or with a norm what that and a relu make of it. */
	const skep_real *x;
	const struct skep_batch_norm *norm;
	const skep_real *weight;
	struct skep_thread_pool *thread_pool;
	skep_real *strips; /* [threads][skep_convolution_strip()], or more for each: */
	size_t strip;
};

size_t skep_convolution_strip(const struct skep_conv *shape);

/* ret[samples][out][to][to] */
void skep_convolution_forward(const struct skep_convolution *c, skep_real *ret);
/* Given the gradient at that, adds to the gradient of the weight ... */
void skep_convolution_weight(const struct skep_convolution *c, const skep_real *at_out, skep_real *sum);
/* ... and makes that at what the convolution reads, or adds to it. */
void skep_convolution_input(const struct skep_convolution *c, const skep_real *at_out, bool adds, skep_real *ret);
