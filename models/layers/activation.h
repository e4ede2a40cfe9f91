/* SPDX-License-Identifier: Apache-2.0
 *
 * activation.h - the elementwise functions of a layer, with their slopes, on arrays.
 */
#pragma once

#include "models/layers/real.h"
#include "models/read/model.h"

/* value[rows * width] += bias[width] row by row, then slope = f'(value), value = f(value). */
void skep_activation_apply(enum skep_activation activation, uint32_t rows, uint32_t width, const skep_real *bias,
	skep_real *value, skep_real *ret_slope);
