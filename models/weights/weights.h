/* SPDX-License-Identifier: Apache-2.0
 *
 * weights.h - the parameters of a model as files name and shape them, wherever they lie in memory.
 *
 * A weight says what it is called in a file and its shape there, and where its element [row][column] is kept: that is
 * at[row * step[0] + column * step[1]]. So a matrix that is kept transposed has steps {1, rows}, and one that is a part of
 * a wider matrix has the width of that one as a step. A weight without numbers (`at` NULL) is another worker's: its name
 * and shape are compared, nothing is copied.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/reader.h"

enum { SKEP_WEIGHT_NAME = 96 };

struct skep_weight {
	char name[SKEP_WEIGHT_NAME];
	uint32_t dimensions; /* 1 or 2 */
	uint64_t shape[2];   /* of a vector {length, 1} */
	float *at;           /* or NULL */
	size_t step[2];      /* in floats */
	/* Rows and columns of it that are kept, where a shard has a part: at[0] is the first of them. count[0] 0: all of it. */
	uint64_t first[2], count[2];
};

struct skep_safetensor;
struct skep_safetensors;

/* How names may differ from those of the weights. */
struct skep_weight_names {
	const char *prefix;                   /* "transformer.": the file may leave it out of all names; or NULL */
	bool (*is_ignored)(const char *name); /* of no weight, and not missed: buffers, copies of tied ones; or NULL */
	/* Writes the name that older files have instead, if they have another one; or NULL. */
	bool (*older)(const char *name, char ret[SKEP_WEIGHT_NAME]);
	const char *head, *table; /* a weight that the file may lack, and the one whose tensor it then takes; or NULL */
};

/* The tensor that the file has for `head`, if it is that of `table`; else NULL. */
const struct skep_safetensor *skep_weights_stand_in(
	const struct skep_safetensors *set, const struct skep_weight_names *names);

/* Do names and shapes agree, all of them both ways? If not, the diagnosis counts what differs and *ret_list, which the caller
 * frees, has a line for each difference. */
bool skep_weights_match(const struct skep_safetensors *set, const struct skep_weight *weight, uint32_t weights,
	const struct skep_weight_names *names, char **ret_list, struct skep_diag *reterr);

/* Copies the numbers of weights that match. */
void skep_weights_read(const struct skep_safetensors *set, const struct skep_weight *weight, uint32_t weights,
	const struct skep_weight_names *names);
