/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.h - makes the tables that the core and both worlds run on from a scenario that has been read. For scenario.c
 * and recut.c.
 */
#pragma once

#include "scenarios/read/scenario.h"

extern const char *const skep_allocation_names[]; /* by enum skep_allocation, and a NULL behind them */

/* Fills first_stage_of, except for an explicit allocation, which the file gives. Needs plan.workers, stages, seed. */
void skep_plan_allocate(struct skep_scenario *scenario);

/* Of a number of accumulators, optimizer states and reductions without an encoding, whatever type the model computes in. */
#define SKEP_FLOAT_BYTES sizeof(float)

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

/* Fills what follows from where the model is cut: cost, vstage_bytes, stage and op_time; the tables are allocated
 * already. `link_Bps`: the bandwidth that a newcomer's download can count on, INFINITY where migrate_ns is not
 * used. */
void skep_plan_cut(struct skep_scenario *scenario, double link_Bps);
/* The same for one virtual stage alone, and for its stage if it is the only one of it; all others keep their values. */
void skep_plan_cut_vstage(struct skep_scenario *scenario, uint32_t vstage);

/* Figures of links and machines as the seed draws them (topologies/read/uncertain.h), and times that follow from them: for who is
 * about to simulate. All that is planned, the order of a ring or a timeout, stays as the stated figures have it. Nothing with
 * `cluster.uncertainty: ignored`. */
void skep_scenario_draw(struct skep_scenario *scenario);

/* A virtual stage's part of its stage's state, as far as a step changes it. */
double skep_plan_state_bytes(const struct skep_scenario *scenario, uint32_t vstage);

/* Workers that serve the stage at the start; SKEP_NO_STAGE: spares. */
uint32_t skep_plan_serving(const struct skep_scenario *scenario, uint32_t stage);
uint32_t skep_plan_serving_most(const struct skep_scenario *scenario); /* those of the stage that has most */

/* Steps of a run, whose rounds are whole, so that there may be more than were asked for; and of one that goes on until so many at
 * least are made, to the end of that round. */
uint64_t skep_plan_all_steps(const struct skep_scenario *scenario);
uint64_t skep_plan_whole_steps(const struct skep_scenario *scenario, uint32_t steps);

/* The plan of a simulated run: that of a real one, or with `simulate.collectives: flows` one with SKEP_COLLECTIVE_FUSED, where
 * one flow stands for both halves of a ring, and the step follows. */
static inline struct skep_plan skep_plan_simulated(const struct skep_scenario *scenario)
{
	struct skep_plan plan = scenario->plan;
	if (scenario->collectives_as_flows) {
		plan.reduction.collective = SKEP_COLLECTIVE_FUSED;
		plan.sharded = false;
	}
	return plan;
}

/* Do activations pass through a codec on their way? */
static inline bool skep_scenario_encodes(const struct skep_scenario *scenario)
{
	return scenario->activation_codec != SKEP_CODEC_NONE && !scenario->native_activations;
}

/* The codec of what a stage, or the one that a virtual stage is part of, reduces, as the file says; and does it pass through
 * that on its way? */
static inline enum skep_codec skep_scenario_codec(const struct skep_scenario *scenario, uint32_t stage)
{
	assert(stage < skep_plan_vstages(&scenario->plan));
	if (scenario->codecs)
		return (enum skep_codec)scenario->codecs[scenario->plan.stages + stage % scenario->plan.stages];
	return scenario->native_gradients ? SKEP_CODEC_NONE : scenario->plan.reduction.codec;
}
static inline bool skep_scenario_encodes_sums(const struct skep_scenario *scenario, uint32_t stage)
{
	return skep_scenario_codec(scenario, stage) != SKEP_CODEC_NONE;
}

/* Time that the run takes at least if every GPU computes without a pause. */
double skep_plan_least_seconds(const struct skep_scenario *scenario);

/* dealing.c: what the directory goes by when it deals microbatches to machines of several kinds (core/directory/dealing.c):
 * their expected speeds, and how many microbatches a fast one may have in flight. */

/* Fills plan.speed, and for wiring by speed plan.in_flight_limit: as many as the memory of the machine bears in the first stage,
 * up to eight times the mean. Nothing where machines are of one kind. Needs op_time and memory. False: no memory. */
bool skep_dealing_make(struct skep_scenario *s);

/* fragments.c: layers of a stage in strided fragments (sync.fragment_pattern). */

/* Fills fragment_first of each stage of the plan if plan.strided; false: no memory. */
bool skep_fragments_make(struct skep_scenario *s);
