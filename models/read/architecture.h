/* SPDX-License-Identifier: Apache-2.0
 *
 * architecture.h - reads what a transformer says that can be trained: its architecture, and the keys that each of them has.
 */
#pragma once

#include "base/reader.h"
#include "models/read/model.h"

/* `map` is that of the transformer, of which hidden, sequence and vocabulary are known. False: it has no architecture. Errors are
 * the reader's. */
bool skep_architecture_read(struct skep_reader *r, const struct skep_yaml_node *map, struct skep_model *ret);
