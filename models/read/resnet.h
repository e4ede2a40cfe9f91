/* SPDX-License-Identifier: Apache-2.0
 *
 * resnet.h - reads a residual network; vision/shape.h says what it is.
 */
#pragma once

#include "base/reader.h"
#include "models/read/model.h"

/* Reads `resnet` of a model file: fills layers, width and resnet. Errors are the reader's. */
void skep_resnet_read(struct skep_reader *r, const struct skep_yaml_node *root, struct skep_model *ret);
