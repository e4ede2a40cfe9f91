/* SPDX-License-Identifier: Apache-2.0
 *
 * live_names.h - the machines of a trace that are present at the time that its reader has come to, found by name. Memory
 * grows with the largest number present at once.
 */
#pragma once

#include "core/skep.h"

struct skep_live_name {
	char *text; /* name, gpu, zone, each ended by a 0; one allocation */
	const char *gpu, *zone;
	uint64_t hash;
	skep_time joined_ns;
};

/* life[slot]: slots are dense, a slot is used again once its life has ended. */
struct skep_live_names {
	struct skep_live_name *life;
	uint32_t *unused; /* slots below `slots` without a life, a stack */
	uint32_t slots, room, count;
	uint32_t *table; /* [mask + 1]: slot + 1, or 0 */
	uint32_t mask;
};

void skep_live_names_finish(struct skep_live_names *live); /* an all-zero struct is an empty set */

#define SKEP_NOT_LIVE UINT32_MAX
uint32_t skep_live_names_find(const struct skep_live_names *live, const char *name);
/* `name` must not be alive. SKEP_NOT_LIVE: no memory. */
uint32_t skep_live_names_add(
	struct skep_live_names *live, const char *name, const char *gpu, const char *zone, skep_time joined_ns);
void skep_live_names_remove(struct skep_live_names *live, uint32_t slot);
