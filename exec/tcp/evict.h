/* SPDX-License-Identifier: Apache-2.0
 *
 * evict.h - whom to evict when processes that are all heard by rank 0 complain that they do not hear each other.
 *
 * Disconnects are the edges of a graph. Who has most of them goes first, for one bad machine cannot reach many good ones; of
 * equals the one with the higher rank, which has been there for a shorter time. What is left has no edge.
 */
#ifndef SKEP_EXEC_TCP_EVICT_H
#define SKEP_EXEC_TCP_EVICT_H

#include <stdint.h>

struct skep_disconnect {
	uint32_t by, about;
};

/* The next to go, or UINT32_MAX: no edge is left. Edges of it are taken out of `disconnect`, and *count is lowered. */
uint32_t skep_evict_next(struct skep_disconnect *disconnect, uint32_t *count);

#endif
