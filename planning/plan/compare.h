/* SPDX-License-Identifier: Apache-2.0
 *
 * compare.h - what each planner and objective makes of one scenario, side by side, by what the simulator says of it.
 */
#pragma once

#include <stdio.h>

#include "planning/trial/planner.h"

/* Prints the table as text, or as JSON. What a planner cannot do is a row that says why. STATUS_BAD_INPUT: none of them
 * could plan it, and *reterr is the first one's reason. */
enum status skep_compare_print(
	const struct skep_planner_options *options, bool json, FILE *out, struct skep_diag *reterr);
