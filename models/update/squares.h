/* SPDX-License-Identifier: Apache-2.0
 *
 * squares.h - two questions about a whole array of numbers: whether all are finite, and the sum of their squares.
 * Squares are summed in double, in sixteen sums side by side, so that the order does not depend on the width of
 * registers and no float overflows. Sums travel as core/square.h says.
 */
#pragma once

#include "core/square.h"
#include "models/device/device.h"
#include "models/stage/stage.h"

/* On the host. */
bool skep_squares_finite(size_t n, const skep_real *a);
double skep_squares_sum(size_t n, const skep_real *a);
/* The sum of those products a[i] b[i] that are above 0, or of the others without their sign. */
double skep_squares_products(size_t n, const skep_real *a, const skep_real *b, bool above);

/* The sum over the ranks of a tensor parallel group, the same bits on each; of a whole model `own`. All ranks call it. */
double skep_squares_of_group(const struct skep_training *training, double own);
/* This rank's term of that sum: the squares of elements a[first] .. a[first + count - 1] of the stage, of which those that each
 * rank has count for a part of `ranks`. */
double skep_squares_own(const struct skep_stage *stage, struct skep_range range, const skep_real *a);

uint64_t skep_squares_encode(double squares); /* >= 0, or not finite */
double skep_squares_decode(uint64_t square);  /* INFINITY: not finite */

/* The factor that brings the norm of all gradients to at most `most`: 1 if it is so already or `most` is 0, else
 * most / (norm + 1e-6) as in torch.nn.utils.clip_grad_norm_. */
double skep_squares_scale(double most, uint64_t square);

/* The first layer of the part whose outputs in the stash are not finite, or the last one; from 1, as the model counts them. */
uint16_t skep_squares_forward_layer(const struct skep_stage *part, uint32_t samples, const skep_real *stash);
/* The last layer of the part whose numbers in an array of the stage's parameters are not finite, as far as they are trained;
 * 0: none. */
uint16_t skep_squares_backward_layer(const struct skep_stage *part, const skep_real *array);
