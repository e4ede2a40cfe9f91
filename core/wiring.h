/* SPDX-License-Identifier: Apache-2.0
 *
 * wiring.h - stochastic wiring: which worker of the next stage gets a microbatch.
 *
 * A view is what one worker has heard about its next stage. It keeps at most SKEP_VIEW_MAX of them, so that memory stays
 * linear in the number of workers; of a larger stage it keeps a random sample, which leaves the choice uniform overall. When
 * half of a sample is gone its owner asks the directory for the rest.
 */
#ifndef SKEP_CORE_WIRING_H
#define SKEP_CORE_WIRING_H

#include "core/skep.h"

#ifndef SKEP_VIEW_MAX /* a test makes it small */
#define SKEP_VIEW_MAX 128u
#endif

struct skep_view {
	uint32_t count;
	uint32_t heard;          /* members heard of since the view was emptied, about: news may come twice */
	bool sample;             /* there was no room for some of them */
	struct skep_peer peer[]; /* [count] */
};

uint32_t skep_view_capacity(const struct skep_plan *plan);
void skep_view_clear(struct skep_view *view);
/* Adds a worker, or raises the epoch of one that is there. An older epoch than the one known is ignored. */
void skep_view_add(struct skep_view *view, uint32_t capacity, struct skep_peer peer, uint64_t *random);
/* Removes the worker if it is there with this or an older epoch. True: the view is a sample that has grown thin; hear of all
 * of them again. */
bool skep_view_remove(struct skep_view *view, uint32_t capacity, struct skep_peer peer);
/* index SKEP_NO_INDEX when the view is empty. */
struct skep_peer skep_view_choose(const struct skep_view *view, enum skep_wiring wiring, uint64_t *random);

#endif
