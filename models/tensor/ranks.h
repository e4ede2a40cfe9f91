/* SPDX-License-Identifier: Apache-2.0
 *
 * ranks.h - what the ranks of a tensor parallel group do together in a pass of a layer. A pass has `rows` of numbers, one for
 * each token of the microbatch, of which rank t of T has rows t rows / T .. (t + 1) rows / T - 1 between the products; inside
 * of them it has all rows, and a part of the columns. Of a whole model, all of this is nothing.
 */
#pragma once

#include "models/layers/layer.h"
#include "models/layers/tensor_group.h"

struct skep_ranks {
	const struct skep_tensor_group *group; /* NULL: the model is whole */
	uint32_t rank, count;
	size_t own;   /* rows of this rank: every count-th part of them all */
	size_t width; /* numbers of a row */
};

/* Of a pass whose rows have the hidden width. */
struct skep_ranks skep_ranks_of(const struct skep_layer *layer, const struct skep_pass *pass);

/* Where the own rows are among all. */
static inline skep_real *skep_ranks_own(const struct skep_ranks *ranks, skep_real *all)
{
	return all + ranks->rank * ranks->own * ranks->width;
}

/* Fills the other rows of all[count * own][width], whose own rows are there. */
void skep_ranks_gather(const struct skep_ranks *ranks, skep_real *all);
/* All rows: `own` itself of a whole model, else `room`, [count * own][width]. */
const skep_real *skep_ranks_gathered(const struct skep_ranks *ranks, const skep_real *own, skep_real *room);
/* ret[own][width]: the sum of what each rank has of the own rows. It may be skep_ranks_own() of `all`, and of a whole model is.
 * The rest of `all` is undefined afterwards. */
void skep_ranks_reduce(const struct skep_ranks *ranks, skep_real *all, skep_real *ret);

/* The gradients of tensors that each rank has all of, as n numbers one after the other: each rank has the sum over its own rows,
 * and is to have that over all. `sum` has room for skep_ranks_room(). */
size_t skep_ranks_room(const struct skep_model *model, size_t n);
void skep_ranks_sum(const struct skep_ranks *ranks, size_t n, skep_real *sum);
