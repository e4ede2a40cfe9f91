/* SPDX-License-Identifier: Apache-2.0
 *
 * gathered.h - parts of a reduction that are put side by side, in symbols.
 */
#pragma once

#include "tests/cluster/device.h"

/* What a reduction operation does to them, and what is wrong with that; else NULL. `in`: the tensor that it takes in, if any;
 * `part`: what the device brings itself, NULL: nothing is gathered. */
const char *gathered_run(
	struct device *device, const struct skep_op *op, const struct tensor *in, const uint64_t *part);
