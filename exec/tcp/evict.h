/* SPDX-License-Identifier: Apache-2.0
 *
 * evict.h - whom to evict when processes that are all heard by rank 0 complain that they do not hear each other.
 *
 * Disconnects are the edges of a graph. Who has most of them goes first, for one bad machine cannot reach many good ones; of
 * equals the one with the higher rank, which has been there for a shorter time. What is left has no edge. Of a run of which one
 * half has lost the other there are as many edges as pairs, and rank 0 hears no member while it looks for who goes: so each
 * eviction takes one look at every edge.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct skep_disconnect {
	uint32_t by, about;
};

struct skep_eviction {
	uint32_t rank;
	uint32_t edges; /* that it has */
	uint32_t other; /* the lowest rank that one of them leads to */
};

/* Leaves each pair once, whichever of the two complained and how often. Returns how many there are. */
uint32_t skep_evict_pairs(struct skep_disconnect *disconnect, uint32_t count);

/* The next to go, of pairs that are there once; false: no edge is left. Edges of it are taken out of `disconnect`, and *count is
 * lowered. `edges`: scratch, [ranks]. */
bool skep_evict_next(struct skep_disconnect *disconnect, uint32_t *count, uint32_t *edges, uint32_t ranks,
	struct skep_eviction *ret);
