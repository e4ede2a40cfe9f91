/* SPDX-License-Identifier: Apache-2.0
 *
 * cost.h - the expected time of a step as the cost of a search. What a search cannot have, by its quick cost (throughput.h),
 * is not asked about.
 */
#pragma once

#include "planning/expected/expected.h"

#define SKEP_EXPECTED_COST_WORKERS_MAX 256u /* in larger pools too few could be asked about to find anything */

struct skep_expected_cost {
	struct skep_objective objective; /* self is this */
	const struct skep_planning *planning;
	const struct skep_objective *quick;
	/* [workers] the cost is the time of a step times the sum of these, and the price of its traffic; NULL: it is the time */
	const double *rent;
	uint32_t *stage_of; /* [workers] the current allocation */
	struct skep_change asked;
	bool lacking; /* memory, for one of those that were asked about: it went for one that cannot be */
};

/* Stays where it is while it is used. False: no memory. */
bool skep_expected_cost_make(const struct skep_planning *planning, const struct skep_objective *quick,
	const double *rent, struct skep_expected_cost *ret);
void skep_expected_cost_finish(struct skep_expected_cost *cost);

/* How many evaluations take about as long as one of the other searches. */
uint64_t skep_expected_cost_evaluations(const struct skep_planning *planning);
