/* SPDX-License-Identifier: Apache-2.0
 *
 * traffic.h - how many bytes a step moves with an allocation: by the closed form (planning/search/complexity.h), which links
 * carry how much of it, and what their senders pay. Without headers, acknowledgements and control, validation and downloads.
 *
 * Links are classed by what one flow gets on them, in powers of ten: sites or not, that is what tells them apart.
 */
#pragma once

#include "planning/problem/problem.h"

#define SKEP_LINK_CLASSES 5u

struct skep_planning_bytes {
	double pipeline, reduction;
};

struct skep_planning_traffic {
	/* What goes past the widest cut, as often as microbatches are sent ... */
	uint32_t sent;                                      /* times that a microbatch is, there and back */
	double microbatches, samples, tokens, number_bytes; /* B, b, L; bytes for the H numbers of a token */
	struct skep_planning_bytes closed;
	struct skep_planning_bytes
		on[SKEP_LINK_CLASSES]; /* ... and what really moves: passes, and what skep_round_bytes() has */
};

extern const char *const skep_link_class_name[SKEP_LINK_CLASSES];

/* False: no memory. */
bool skep_planning_traffic(
	const struct skep_planning *planning, const uint32_t *stage_of, struct skep_planning_traffic *ret);

/* What a step pays for its traffic, in USD; 0 if the topology has no prices of it. NAN: a price is not known, or no memory. */
double skep_planning_egress_usd(const struct skep_planning *planning, const uint32_t *stage_of);
