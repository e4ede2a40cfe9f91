/* SPDX-License-Identifier: Apache-2.0
 *
 * even_groups.h - allocations by the cost of DT-FM (planning/search/published/dtfm.h) in place of the expected time of a step,
 * for `plan.objective: dt-fm`: groups of the same size, judged by links alone. Every method may minimise it; each one's best
 * is simulated, and what costs least is chosen, whatever the simulator says.
 */
#pragma once

#include "planning/trial/planner.h"

/* False: workers cannot be shared out evenly, and `error` says why. */
bool skep_even_groups_possible(struct skep_planner *planner);

/* The first candidate is the scenario's own. False: no memory. */
bool skep_even_groups_search(struct skep_planner *planner);
