/* SPDX-License-Identifier: Apache-2.0
 *
 * experts.h - reads `experts` of a transformer: how many there are in each block, how many a token goes to, and what keeps
 * their loads even.
 */
#pragma once

#include "base/reader.h"
#include "models/read/model.h"

enum { SKEP_EXPERTS_MAX = 1024 };

/* `map` is that of the transformer, whose architecture is known; without `experts` ret->experts.count stays 0. Errors are the
 * reader's. */
void skep_experts_read(struct skep_reader *r, const struct skep_yaml_node *map, struct skep_model *ret);
