/* SPDX-License-Identifier: Apache-2.0
 *
 * room.h - does a stage fit a machine if the stages have so many workers? What `skep check` would say (scenarios/memory.h),
 * remembered, since searches ask a million times.
 */
#ifndef SKEP_PLANNING_ROOM_H
#define SKEP_PLANNING_ROOM_H

#include "scenarios/scenario.h"

#define SKEP_ROOM_ENTRIES 8192u

struct skep_room_entry {
	uint64_t asked;         /* which stage, type and workers of the stage; 0: nothing yet */
	uint32_t fits, exceeds; /* so many microbatches held do, and these do not */
};

struct skep_room {
	const struct skep_scenario *scenario;
	struct skep_scenario *
		spelt; /* the same with its cut written out, which else is found anew for each question; NULL: it is written */
	bool *waits; /* [gpus] some machine of this type waits without a stage, and so has to fit any */
	struct skep_room_entry *entry; /* [SKEP_ROOM_ENTRIES] */
};

/* False: no memory. */
bool skep_room_make(const struct skep_scenario *scenario, struct skep_room *ret);
void skep_room_finish(struct skep_room *room);
void skep_room_forget(struct skep_room *room); /* what is remembered: the scenario has another cut now */

/* As struct skep_throughput wants it: `self` a room, `type` a GPU of the topology, `workers` [stages]. */
bool skep_room_fits(void *self, uint32_t stage, uint32_t type, const uint32_t *workers);

/* The same, worked out and not remembered. */
bool skep_room_asks(const struct skep_room *room, uint32_t stage, uint32_t type, const uint32_t *workers);

/* What the stage takes on such a machine at least, whatever the sizes are, of so many workers in all, but each stage has one. */
struct skep_memory skep_room_least(
	const struct skep_scenario *scenario, uint32_t stage, uint32_t gpu, uint32_t workers);

#endif
