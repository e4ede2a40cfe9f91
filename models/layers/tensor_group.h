/* SPDX-License-Identifier: Apache-2.0
 *
 * tensor_group.h - the ranks that share a stage by tensor parallelism (Shoeybi et al. 2019), with what lies between the split
 * products split along the sequence (Korthikanti et al. 2022): each has a part of every matrix, and of the tokens between them.
 *
 * Each of them runs the same passes in the same order. Where a layer needs what the others have, all of them call the same
 * function of the group at the same place, and it returns when it is done; a rank that does not call blocks the others. What a
 * failure of the connection does is up to the group: these functions return only when they have done what they say.
 *
 * What goes through it. N tokens of a microbatch, h numbers each, on T ranks: a gather or reduction of all rows, in which each
 * rank sends (T - 1) N h / T numbers of 4 bytes, is done
 *     forwards    1 by the embedding, 4 by a block, and 1 by the head, which also sends 3 (T - 1) N numbers for the loss
 *     backwards   1 by the embedding, 6 by a block, 2 by the head; of what is not counted 0, 4 and 1
 * and with recomputation those of the forward pass again. Backwards each group of blocks and the head also send 2 (T - 1)
 * ceil(n / T) numbers, n = 6 h and 2 h of gpt2, 2 h and h of llama. A device asks for a sum once in each FORWARD and NORM,
 * in BACKWARD where that puts a gradient out, and three times in STEP, where two compare what all ranks have (norms, biases): one
 * STEP of each stage, and not where the optimizer is in shards; LAMB for two more for each matrix and table that is split.
 */
#pragma once

#include <stddef.h>

#include "models/layers/real.h"

struct skep_tensor_group {
	void *context;
	/* ret[size * n]: own[n] of rank 0, then that of rank 1, ...; `own` may already lie at its place in `ret`. */
	void (*all_gather)(void *context, size_t n, const skep_real *own, skep_real *ret);
	/* ret[n]: the sum, over all ranks, of what they have at full[rank * n] .. [rank * n + n - 1], with `rank` the caller's;
	 * added up in the order of the ranks. `ret` may be that place of `full`, which is undefined afterwards. */
	void (*reduce_scatter)(void *context, size_t n, skep_real *full, skep_real *ret);
	/* The sum over all ranks, in their order: the same bits on each. */
	double (*sum)(void *context, double own);
};
