/* SPDX-License-Identifier: Apache-2.0
 *
 * wide.h - checks of what the kernels do for a BERT alone, as those of check_kernels.c: norms in fp32, GELU by erf, rows that are
 * gathered.
 */
#pragma once

#include "tests/cuda/arrays.h"

void check_norm_wide(struct arrays *all);
void check_wide(struct arrays *all);
