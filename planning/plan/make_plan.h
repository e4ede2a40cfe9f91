/* SPDX-License-Identifier: Apache-2.0
 *
 * make_plan.h - a plan from beginning to end, for the command: begin, make, confirm if that is wanted, end. What is
 * wrong is in the planner's error, as a user is to see it; the status is that of the command.
 */
#pragma once

#include "planning/trial/planner.h"

/* Reads the scenario; the options must stay where they are. To be ended in any case. */
enum status skep_plan_begin(struct skep_planner *planner, const struct skep_planner_options *options);
/* Chooses settings where some are free, then an allocation, and says what is to be expected of it. */
enum status skep_plan_choose(struct skep_planner *planner);
/* Simulates it with other seeds. */
enum status skep_plan_confirm(struct skep_planner *planner);
void skep_plan_end(struct skep_planner *planner);
