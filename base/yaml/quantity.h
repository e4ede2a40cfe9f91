/* SPDX-License-Identifier: Apache-2.0
 *
 * quantity.h - what the reader needs to know of units beyond reader.h. Not for other folders.
 */
#pragma once

#include "base/reader.h"

/* Formats a bound (in the base unit) in the units that `text` uses: a bandwidth in bits if `text` is in bits. */
void skep_quantity_bound(const char *text, enum skep_dimension dimension, double bound, char *ret, size_t size);
