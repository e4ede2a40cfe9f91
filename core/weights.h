/* SPDX-License-Identifier: Apache-2.0
 *
 * weights.h - where nothing is flushed: which parameters the passes of a microbatch read, and how old these may be. Part of
 * plan.h, which includes it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct skep_plan;

/* core/methods/weights.c has the rules, and the functions below. */
enum skep_weights {
	SKEP_WEIGHTS_STASHED,       /* FORWARD the newest, BACKWARD the same ones: weight stashing */
	SKEP_WEIGHTS_NEWEST,        /* both passes the newest of their time, so that one version is kept */
	SKEP_WEIGHTS_VERTICAL_SYNC, /* both passes of all stages the version that was the first stage's newest */
	/* One version is kept, and what a pass reads is made of it: FORWARD what it will be when the microbatch steps ... */
	SKEP_WEIGHTS_PREDICTED,
	SKEP_WEIGHTS_CORRECTED, /* ... or FORWARD the newest, BACKWARD what FORWARD has read, as far as that can be told */
	SKEP_WEIGHTS_CHOICES,
	/* With waves (core/methods/wsp.c): FORWARD the newest, moved by what this worker has counted of waves that are in no step
	 * yet; BACKWARD the same, which is kept with the stash. */
	SKEP_WEIGHTS_WAVES = SKEP_WEIGHTS_CHOICES,
	SKEP_WEIGHTS
};

/* Most steps that the parameters of a FORWARD may lack in this stage: K - 1 - s, as published, with one pipeline; with
 * several one more, so that the sum of a round has the time of the next one's passes. With vertical sync as many as in the first
 * stage. */
uint32_t skep_plan_staleness(const struct skep_plan *plan, uint32_t stage);

/* Microbatches that each pipeline is granted of a round: 1, or with waves as many as a wave has. */
uint32_t skep_plan_wave(const struct skep_plan *plan);

/* The rounds behind the one that it is to step next whose FORWARD a worker of the stage may do. */
uint32_t skep_plan_ahead(const struct skep_plan *plan, uint32_t stage);

/* The oldest version that a FORWARD of the round may read which may lack so many steps. What comes behind the
 * rounds that are synchronous begins when all but the last of them are stepped. */
uint32_t skep_plan_oldest(const struct skep_plan *plan, uint32_t round, uint32_t staleness);

/* Virtual workers of which each steps by itself within a wave (HetPipe); with these: how many microbatches before it a FORWARD
 * may lack at most, of its own virtual worker and of each other one. A pipeline has several microbatches of a round, stages
 * have equally many workers, and no round is synchronous. */
bool skep_plan_waves(const struct skep_plan *plan);
uint32_t skep_plan_local_staleness(const struct skep_plan *plan);
uint32_t skep_plan_global_staleness(const struct skep_plan *plan);
#define SKEP_DISTANCE_MAX 6u

/* Rounds of which a worker may have counted something and not stepped: each has an accumulator of its own, the one of its number
 * modulo this, which is a power of two. 2 but with waves. */
uint32_t skep_plan_accumulators(const struct skep_plan *plan);
#define SKEP_ACCUMULATORS_MAX 8u

/* Does a world make what passes read of the newest version, and keep that in a place of its own? */
bool skep_plan_moves_weights(const struct skep_plan *plan);
