/* SPDX-License-Identifier: Apache-2.0
 *
 * quantity.h - what the reader needs to know of units beyond reader.h. Not for other folders.
 */
#ifndef SKEP_SCENARIOS_QUANTITY_H
#define SKEP_SCENARIOS_QUANTITY_H

#include "scenarios/reader/reader.h"

const char *skep_quantity_base(enum skep_dimension dimension); /* "s", "B", "B/s" ... */

#endif
