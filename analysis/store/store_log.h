/* SPDX-License-Identifier: Apache-2.0
 *
 * store_log.h - the log of a real run, back from the database.
 */
#pragma once

#include "analysis/store/store_sources.h"
#include "base/diag.h"

struct skep_run_log {
	char *path, *text; /* of the scenario; the text is that of the run, overrides included */
	uint32_t machines;
	uint32_t first_round; /* as plan.h has it */
	bool paced,
		shaped; /* its times, its network were imposed; with the latter all ranks are on one host, by one clock */
	struct skep_machine_log *machine; /* [machines], the directory last */
	struct skep_run_sources sources;  /* the files that the scenario named, as they were */
};

/* Refuses, with the reason and what to do: a run that is not there, was simulated, has no log, or one whose bytes are not those
 * that were written. Gives nothing then. */
bool skep_run_log_read(struct skep_store *store, int64_t run, struct skep_run_log *ret, struct skep_diag *reterr);
void skep_run_log_finish(struct skep_run_log *log);
