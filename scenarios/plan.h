/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.h - from what a scenario says to the tables that the core and the worlds run on. For scenario.c alone.
 */
#ifndef SKEP_SCENARIOS_PLAN_H
#define SKEP_SCENARIOS_PLAN_H

#include "scenarios/scenario.h"

/* Fills first_stage_of, except for an explicit allocation, which the file gives. Needs plan.workers, stages, seed. */
void skep_plan_allocate(struct skep_scenario *scenario);

/* The first stage that no worker serves, or SKEP_NO_STAGE. */
uint32_t skep_plan_empty_stage(const struct skep_scenario *scenario);

/* Microbatches per first-stage worker such that the swarm holds about two per worker: while one is computed the next is on
 * its way. */
uint32_t skep_plan_in_flight(const struct skep_scenario *scenario);

/* Fills stage, cost, op_time, memory_bytes (all allocated here) and training. False: no memory. */
bool skep_plan_make(struct skep_scenario *scenario);

/* The estimate behind memory_bytes, in its parts. */
struct skep_plan_memory {
	double state_bytes;      /* parameters and optimizer */
	double gradient_bytes;   /* the accumulators of two rounds and the result of a reduction */
	double activation_bytes; /* of the microbatches in flight */
	uint32_t microbatches;   /* held at once */
};
struct skep_plan_memory skep_plan_memory(const struct skep_scenario *scenario, uint32_t stage);

/* A worker that could not hold its stage (a spare: any stage), or SKEP_NO_INDEX. */
uint32_t skep_plan_overfull(const struct skep_scenario *scenario, uint32_t *ret_stage);

/* Time that the run takes at least if every GPU computes without a pause. */
double skep_plan_least_seconds(const struct skep_scenario *scenario);

#endif
