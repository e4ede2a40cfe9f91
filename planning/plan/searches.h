/* SPDX-License-Identifier: Apache-2.0
 *
 * searches.h - the candidates of a plan: what each search finds by the expected time of a step, what the best of these come to in
 * the simulator, and which one is chosen. Cheap, then dear.
 */
#pragma once

#include "planning/trial/planner.h"

/* The scenario's own allocation, what searches find, and other cuts of the model; the best few simulated. False: no memory. */
bool skep_searches_run(struct skep_planner *planner);

/* Random allocations, for comparison: what is expected of some, and what the simulator says of a few. False: no memory. */
bool skep_searches_random(struct skep_planner *planner);
uint32_t skep_searches_randoms(const struct skep_planner *planner); /* that are to be simulated */

/* By the longer trials, if there are any. False: nothing that was found can be, and ... */
bool skep_searches_choose(struct skep_planner *planner);
void skep_searches_why(const struct skep_planner *planner, char *ret, size_t size); /* ... why */
