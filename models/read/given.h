/* SPDX-License-Identifier: Apache-2.0
 *
 * given.h - models of `kind: given`, which are known by what was measured of their layers alone: parameters, bytes and seconds.
 */
#pragma once

#include "base/reader.h"
#include "models/read/model.h"

/* Reads `given` of a model file: fills layers, width and given. Errors are the reader's. */
void skep_given_read(struct skep_reader *r, const struct skep_yaml_node *root, struct skep_model *ret);

/* Refuses microbatches of another size than that which the figures are of, at `key` of `map`. */
void skep_given_check(
	struct skep_reader *r, const struct skep_yaml_node *map, const struct skep_model *model, uint32_t samples);
