/* SPDX-License-Identifier: Apache-2.0
 *
 * memory_limits.h - does a stage fit a machine if the stages have so many workers? What `skep check` would say
 * (scenarios/plan/memory.h), remembered, since searches ask a million times.
 */
#pragma once

#include "scenarios/read/scenario.h"

#define SKEP_MEMORY_LIMITS_ENTRIES 8192u

struct skep_memory_limits_entry {
	uint64_t asked;         /* which stage, type and workers of the stage; 0: nothing yet */
	uint32_t fits, exceeds; /* so many microbatches held do, and these do not */
};

struct skep_memory_limits {
	const struct skep_scenario *scenario;
	struct skep_scenario *
		spelt; /* the same with its cut written out, which else is found anew for each question; NULL: it is written */
	bool *waits; /* [gpus] some machine of this type waits without a stage, and so has to fit any */
	struct skep_memory_limits_entry *entry; /* [SKEP_MEMORY_LIMITS_ENTRIES] */
};

/* False: no memory. */
bool skep_memory_limits_make(const struct skep_scenario *scenario, struct skep_memory_limits *ret);
void skep_memory_limits_finish(struct skep_memory_limits *room);
void skep_memory_limits_forget(
	struct skep_memory_limits *room); /* what is remembered: the scenario has another cut now */

/* As struct skep_throughput wants it: `self` a room, `type` a GPU of the topology, `workers` [stages]. */
bool skep_memory_limits_fits(void *self, uint32_t stage, uint32_t type, const uint32_t *workers);

/* The same, worked out and not remembered. */
bool skep_memory_limits_queries(
	const struct skep_memory_limits *room, uint32_t stage, uint32_t type, const uint32_t *workers);

/* What the stage takes on such a machine at least, whatever the sizes are, of so many workers in all, but each stage has one. */
struct skep_memory skep_memory_limits_least(
	const struct skep_scenario *scenario, uint32_t stage, uint32_t gpu, uint32_t workers);
