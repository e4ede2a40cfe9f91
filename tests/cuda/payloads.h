/* SPDX-License-Identifier: Apache-2.0
 *
 * payloads.h - checks of the kernels that make payloads and read them, and of what is made of gathered ones: all have the bits
 * of the CPU, which a run may have beside GPUs.
 */
#pragma once

#include "tests/cuda/arrays.h"

void check_codecs(struct arrays *all);
void check_codec_blocks(struct arrays *all);
void check_robust(struct arrays *all);
void check_lies(struct arrays *all);
