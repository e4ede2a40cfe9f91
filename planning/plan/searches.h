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

/* even_groups.c: allocations by the cost of DT-FM (planning/search/published/dtfm.h) in place of the expected time of a
 * step, for `plan.objective: dt-fm`: groups of the same size, judged by links alone. Every method may minimise it; each
 * one's best is simulated, and what costs least is chosen, whatever the simulator says. */

/* False: workers cannot be shared out evenly, and `error` says why. */
bool skep_even_groups_possible(struct skep_planner *planner);

/* The first candidate is the scenario's own. False: no memory. */
bool skep_even_groups_search(struct skep_planner *planner);

/* recuts.c: candidates of a plan that cut the model elsewhere. */

/* Behind the searches and their trials: looks for other cuts, where the scenario leaves that open, and simulates the best few of
 * them. False: no memory. */
bool skep_recuts_run(struct skep_planner *planner);

/* published.c: plans by the planner of a publication (`plan.method`) in place of the searches: it says the number of stages,
 * the layers of each, and who serves it, and the simulator says what that comes to. */

/* The scenario was read; where its plan.method names a publication it is read again with that one's answer as its own cut and
 * allocation, and planner->published is set. Anything but STATUS_DONE: `error` says why. */
enum status skep_published_take(struct skep_planner *planner);
/* With what was added to planner->with, and no other cut is looked for. */
enum status skep_published_reopen(struct skep_planner *planner);

/* alpa.c: the same of Alpa, which also says how many GPUs each worker has. */
enum status skep_alpa_take(struct skep_planner *planner);
