/* SPDX-License-Identifier: Apache-2.0
 *
 * pipelines.h - what a plan says of fixed pipelines: how many there are, which workers each passes, and how many microbatches a
 * worker has in a round and holds at a time. What the directory does for them is fixed.c.
 *
 * There are as many as the least common multiple of the numbers of workers r_s of the stages, SKEP_PIPELINES_MAX at most.
 * Pipeline p passes worker p mod r_s of stage s, counted from 0 in the order of the workers: so each worker is of one pipeline
 * where stages have equally many, and else of every r_s-th one. That is the deterministic round robin of PipeDream (Narayanan
 * et al. 2019, section 3.2, 1F1B-RR). `microbatches` is a multiple of their number.
 *
 * Where no worker is lost microbatch m of a round, of those that owner i is granted the n-th, m = i microbatches / r_0 + n, is of
 * pipeline (i + n r_0) mod pipelines.
 */
#pragma once

#include "core/derived.h"

#define SKEP_PIPELINES_MAX UINT32_MAX

static inline uint32_t skep_common_divisor(uint32_t a, uint32_t b)
{
	while (b > 0) {
		uint32_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

/* The least common multiple, SKEP_PIPELINES_MAX at most; 0 where either is 0. */
static inline uint32_t skep_common_multiple(uint32_t a, uint32_t b)
{
	uint64_t multiple = a == 0 || b == 0 ? 0 : (uint64_t)(a / skep_common_divisor(a, b)) * b;
	return multiple < SKEP_PIPELINES_MAX ? (uint32_t)multiple : SKEP_PIPELINES_MAX;
}

/* How many so many workers in each stage make; 0: a stage has none. */
static inline uint32_t skep_replicas_pipelines(const uint32_t *replicas, uint32_t stages)
{
	uint32_t pipelines = 1;
	for (uint32_t stage = 0; stage < stages && pipelines < SKEP_PIPELINES_MAX; stage++)
		pipelines = skep_common_multiple(pipelines, replicas[stage]);
	return pipelines;
}

/* Is there a pipeline through two workers, the one at this place among so many of its stage, the other in another stage? One
 * with both remainders: the Chinese remainder theorem. */
static inline bool skep_pipeline_joins(uint32_t place, uint32_t replicas, uint32_t other_place, uint32_t other_replicas)
{
	uint32_t divisor = skep_common_divisor(replicas, other_replicas);
	assert(place < replicas && other_place < other_replicas);
	return place % divisor == other_place % divisor;
}

static inline bool skep_pipeline_may_be_uneven(enum skep_pipeline pipeline)
{
	return pipeline == SKEP_PIPELINE_1F1B || pipeline == SKEP_PIPELINE_PIPEDREAM;
}

/* The same of a plan: how many there are; is it fixed, and have its stages unequal numbers of workers; r_s. */
uint32_t skep_plan_pipelines(const struct skep_plan *plan);
bool skep_plan_uneven(const struct skep_plan *plan);
uint32_t skep_plan_replicas(const struct skep_plan *plan, uint32_t stage);

/* Microbatches that each worker of the stage has in a round, and in each of its flushes: a multiple of their number. */
uint32_t skep_plan_share(const struct skep_plan *plan, uint32_t stage);
uint32_t skep_plan_flush_share(const struct skep_plan *plan, uint32_t stage);

/* The first pipeline that a worker belongs to, which is its place in its stage, and the worker that serves a stage in a
 * pipeline; SKEP_NO_INDEX: there is no such stage. */
uint32_t skep_plan_pipeline_of(const struct skep_plan *plan, uint32_t worker);
uint32_t skep_plan_place(const struct skep_plan *plan, uint32_t pipeline, uint32_t stage);

/* Most microbatches, times virtual stages, that a worker of the stage may hold between the begin of FORWARD and the end
 * of BACKWARD; 0: the schedule sets no bound but in_flight in the first stage. */
uint32_t skep_plan_held(const struct skep_plan *plan, uint32_t stage);
/* The same of a worker of stage `stage` that does so many microbatches in a flush. `depth`, of 1F1B and PipeDream: workers of
 * this stage and all after it, for each worker of this stage, rounded up: as many microbatches keep all of them busy
 * (PipeDream, section 3.2: NUM_OPT_ACTIVE_MINIBATCHES); K - s where stages have equally many. */
uint32_t skep_pipeline_held(enum skep_pipeline pipeline, uint32_t stages, uint32_t model_chunks, uint32_t depth,
	uint32_t share, uint32_t stage);

/* The same with waves of so many microbatches: all of one in the first stage, and one fewer behind each. */
static inline uint32_t skep_wave_held(uint32_t wave, uint32_t stage)
{
	return wave > stage ? wave - stage : 1;
}

/* What in_flight is with fixed pipelines: what the first stage may hold. */
uint32_t skep_plan_fixed_in_flight(const struct skep_plan *plan);
