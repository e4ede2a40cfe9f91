/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.h - from what a scenario says to the tables that the core and the worlds run on. For scenario.c, and for recut.c.
 */
#ifndef SKEP_SCENARIOS_PLAN_H
#define SKEP_SCENARIOS_PLAN_H

#include "scenarios/scenario.h"

extern const char *const skep_allocation_names[]; /* by enum skep_allocation, and a NULL behind them */

/* Fills first_stage_of, except for an explicit allocation, which the file gives. Needs plan.workers, stages, seed. */
void skep_plan_allocate(struct skep_scenario *scenario);

/* The first stage that no worker serves, or SKEP_NO_STAGE. */
uint32_t skep_plan_empty_stage(const struct skep_scenario *scenario);

/* Microbatches per first-stage worker such that the swarm holds about two per worker: while one is computed the next is on
 * its way. */
#define SKEP_IN_FLIGHT_MAX 4096u
uint32_t skep_plan_in_flight(const struct skep_scenario *scenario);
/* The same of so many workers, and so many in the first stage. */
uint32_t skep_plan_usual_in_flight(uint32_t active, uint32_t first);

/* Fills stage, cost, op_time, memory (all allocated here) and training. False: no memory. */
bool skep_plan_make(struct skep_scenario *scenario);

/* What follows from where the model is cut: cost, slice_bytes, stage, op_time, of tables that are there. `link_Bps`: what a
 * newcomer's download can count on, INFINITY where nobody asks for move_ns. */
void skep_plan_cut(struct skep_scenario *scenario, double link_Bps);
/* The same of one slice, and of its stage, if that is all of it: the rest stays what it was. */
void skep_plan_cut_slice(struct skep_scenario *scenario, uint32_t slice);

/* A slice's part of its stage's state. */
double skep_plan_state_bytes(const struct skep_scenario *scenario, uint32_t slice);

/* Workers that serve the stage at the start; SKEP_NO_STAGE: spares. */
uint32_t skep_plan_serving(const struct skep_scenario *scenario, uint32_t stage);

/* Time that the run takes at least if every GPU computes without a pause. */
double skep_plan_least_seconds(const struct skep_scenario *scenario);

#endif
