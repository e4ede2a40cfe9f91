/* SPDX-License-Identifier: Apache-2.0
 *
 * store_sources.h - the files that the scenario of a run named, back from the database, and whether they are still the same.
 */
#pragma once

#include "analysis/store/store.h"
#include "base/diag.h"

struct skep_source_row {
	char *path;
	bool known; /* the two below */
	int64_t bytes, checksum;
};

struct skep_run_sources {
	uint32_t count;
	struct skep_source_row *row; /* [count] in the order of skep_scenario_source() */
};

bool skep_run_sources_read(
	struct skep_store *store, int64_t run, struct skep_run_sources *ret, struct skep_diag *reterr);
void skep_run_sources_finish(struct skep_run_sources *sources);

/* The path of the first file that is not as the run read it; NULL: all are. `scenario` is that of the run, read anew; NULL if it
 * cannot be read any more: then the paths of then are looked at, and what is not there is passed over. */
const char *skep_run_sources_changed(const struct skep_run_sources *sources, const struct skep_scenario *scenario);
