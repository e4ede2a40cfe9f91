/* SPDX-License-Identifier: Apache-2.0
 *
 * runs.h - where the parameters of a shard's layer are in the whole layer. Both lie tensor by tensor; of each tensor the shard
 * has runs of consecutive elements: all of it, some rows, or of each row a piece of each group of columns.
 */
#pragma once

#include "models/layers/layer.h"

struct skep_run {
	const struct skep_tensor *tensor; /* of the whole layer */
	size_t at;                        /* its first element in that tensor, ... */
	size_t own;                       /* ... and in the parameters of the shard's layer */
	size_t count;
};

/* Of a whole model's layer each tensor is one run. */
void skep_layer_runs(
	const struct skep_layer *layer, void (*take)(void *context, const struct skep_run *run), void *context);

/* Puts the parameters of the shard's layer where they are in the whole one; what puts those of all ranks has put it all. */
void skep_layer_put_shard(const struct skep_layer *layer, const skep_real *shard, skep_real *ret_whole);
