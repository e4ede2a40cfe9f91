/* SPDX-License-Identifier: Apache-2.0
 *
 * pool.h - the largest of each 3 x 3 pixels, with a stride of 2 and nothing around the image; of several that are largest the
 * first one has the gradient.
 */
#pragma once

#include "models/layers/real.h"

/* x[channels][from][from], ret[channels][to][to], to = (from - 1) / 2 + 1 */
void skep_pool_forward(size_t channels, size_t from, const skep_real *x, skep_real *ret);
void skep_pool_backward(size_t channels, size_t from, const skep_real *x, const skep_real *at_out, skep_real *ret);
