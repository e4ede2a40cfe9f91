/* SPDX-License-Identifier: Apache-2.0
 *
 * recording.h - one run on its way into the database: what a world reports goes to the store, the summary and the progress bar.
 */
#ifndef SKEP_COMMANDS_RECORDING_H
#define SKEP_COMMANDS_RECORDING_H

#include "analysis/progress.h"
#include "analysis/store.h"
#include "analysis/summary.h"
#include "commands/arguments.h"

struct recording {
	struct skep_store *store;
	struct skep_tally *tally;
	struct skep_progress progress;
	struct skep_recorder_pair results, all;
	struct skep_recorder recorder; /* what the world reports to */
	double begin_s;
	int64_t run;
	char failure[512]; /* once it has ended, and not well: why */
};

/* False: the database takes no run, and reterr says why; nothing is to be ended. *ret stays where it is until then. */
bool skep_recording_begin(struct recording *ret, const struct arguments *arguments,
	const struct skep_scenario *scenario, const char *world, char *reterr, size_t size);

/* Writes what there is, and prints the result. `stopped` is who ended the run before its time, "ended by SIGINT" for one;
 * NULL: nobody. FAILED: that it was not recorded is said, any other reason is in r->failure. */
enum status skep_recording_end(struct recording *r, const struct arguments *arguments, skep_time end_ns,
	uint64_t events, enum skep_outcome outcome, const char *stopped);

#endif
