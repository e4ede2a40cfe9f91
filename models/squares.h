/* SPDX-License-Identifier: Apache-2.0
 *
 * squares.h - what is asked of an array of numbers as a whole: is all of it finite, and what do its squares come to. Squares are
 * summed in double, sixteen sums side by side, so that neither their order nor their size depends on registers, and a float of
 * any size has one; and they travel as core/square.h says.
 */
#ifndef SKEP_MODELS_SQUARES_H
#define SKEP_MODELS_SQUARES_H

#include "core/square.h"
#include "models/device.h"
#include "models/stage.h"

/* On the host. */
bool skep_squares_finite(size_t n, const skep_real *a);
double skep_squares_sum(size_t n, const skep_real *a);
/* Of the products of two arrays, those above 0, or the others without their sign. */
double skep_squares_products(size_t n, const skep_real *a, const skep_real *b, bool above);

uint64_t skep_squares_encode(double squares); /* >= 0, or not finite */
double skep_squares_decode(uint64_t square);  /* INFINITY: not finite */

/* By what all gradients are multiplied so that their norm is at most `most`: 1 if it is, or if most is 0. As
 * torch.nn.utils.clip_grad_norm_ has it: most / (norm + 1e-6). */
double skep_squares_scale(double most, uint64_t square);

/* The first layer of the part whose outputs in the stash are not finite, or the last one; from 1, as the model counts them. */
uint16_t skep_squares_forward_layer(const struct skep_stage *part, uint32_t samples, const skep_real *stash);
/* The last layer of the part whose numbers in an array of the stage's parameters are not finite; 0: none. */
uint16_t skep_squares_backward_layer(const struct skep_stage *part, const skep_real *array);

#endif
