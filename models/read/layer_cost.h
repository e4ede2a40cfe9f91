/* SPDX-License-Identifier: Apache-2.0
 *
 * layer_cost.h - what one layer of a model costs each of the GPUs that share it. A stage is their sum (model.c).
 */
#pragma once

#include "models/read/model.h"

struct skep_layer_cost { /* per sample, of one of the GPUs that share it; numbers are floats */
	uint64_t parameters, trained, forward_flop, backward_flop;
	uint64_t numbers;    /* that a forward pass reads and writes, parameters left out */
	uint64_t kept_bytes; /* from forward to backward */
	/* The same if only the inputs of blocks are kept, and one block at a time is done again ... */
	uint64_t recompute_bytes;
	uint64_t block_bytes; /* ... that has so many */
	uint64_t widest;      /* array */
	uint64_t work;        /* numbers, beside the two widest arrays */
	uint32_t forward_gathers, backward_gathers;
	uint64_t forward_gathered, backward_gathered; /* numbers */
	uint64_t forward_ns, backward_ns, step_ns;    /* of a microbatch, where that is given */
};

struct skep_layer_cost skep_layer_cost_of(const struct skep_model *model, uint32_t l, const struct skep_split *split);
