/* SPDX-License-Identifier: Apache-2.0
 *
 * fragments.h - layers of a stage in strided fragments (sync.fragment_pattern).
 */
#pragma once

#include <stdbool.h>

struct skep_scenario;

/* Fills fragment_first of each stage of the plan if plan.strided; false: no memory. */
bool skep_fragments_make(struct skep_scenario *s);
