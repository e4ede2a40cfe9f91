/* SPDX-License-Identifier: Apache-2.0
 *
 * make_plan.h - a plan from beginning to end, for the command: begin, make, confirm if that is wanted, end. What is
 * wrong is in the planner's error, as a user is to see it; the status is that of the command.
 */
#pragma once

#include <stdio.h>

#include "planning/trial/planner.h"

/* Reads the scenario; the options must stay where they are. To be ended in any case. */
enum status skep_plan_begin(struct skep_planner *planner, const struct skep_planner_options *options);
/* Chooses settings where some are free, then an allocation, and says what is to be expected of it. */
enum status skep_plan_choose(struct skep_planner *planner);
/* Simulates it with other seeds. */
enum status skep_plan_confirm(struct skep_planner *planner);
void skep_plan_end(struct skep_planner *planner);

/* compare.c: what each planner and objective makes of one scenario, side by side, by what the simulator says of it. */

/* Prints the table as text, or as JSON. What a planner cannot do is a row that says why. STATUS_BAD_INPUT: none of them
 * could plan it, and *reterr is the first one's reason. */
enum status skep_compare_print(
	const struct skep_planner_options *options, bool json, FILE *out, struct skep_diag *reterr);
