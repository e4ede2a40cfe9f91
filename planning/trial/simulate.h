/* SPDX-License-Identifier: Apache-2.0
 *
 * simulate.h - one scenario simulated to its end, for its figures.
 */
#pragma once

#include "analysis/store/store.h"
#include "analysis/summary/summary.h"
#include "base/diag.h"
#include "scenarios/read/scenario.h"

struct skep_simulate_options {
	struct skep_store *store;         /* one in memory, which has the run afterwards; NULL: nothing is kept */
	bool details;                     /* the store keeps all that `skep sim` keeps */
	uint32_t warm_up;                 /* rounds that are not in the figures */
	const struct skep_recorder *also; /* hears all of it too; NULL: nothing does */
};

/* Simulates it as `skep sim` does. False: it could not be; reterr says why, "": not enough memory. */
bool skep_simulate(const struct skep_scenario *scenario, const struct skep_simulate_options *options,
	struct skep_summary *ret, struct skep_diag *reterr);
