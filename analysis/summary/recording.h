/* SPDX-License-Identifier: Apache-2.0
 *
 * recording.h - one run on its way into the database: what a world reports goes to the store, the summary and the progress bar.
 */
#pragma once

#include "analysis/store/store.h"
#include "analysis/summary/progress.h"
#include "analysis/summary/summary.h"
#include "base/diag.h"

struct skep_recording_options {
	const char *db, *world, *device; /* device: "cpu" or "cuda" */
	bool pace, shape;                /* of a real run */
	bool details;                    /* of a simulated one: keep as many operations as of a real one */
	bool json, quiet;                /* how the result is printed, and whether progress is */
};

struct skep_recording {
	struct skep_recording_options options;
	const struct skep_scenario *scenario; /* borrowed until the end */
	struct skep_store *store;
	struct skep_tally *tally;
	struct skep_progress progress;
	struct skep_recorder_pair results, all;
	struct skep_recorder recorder; /* what the world reports to */
	double begin_s;
	int64_t run;
	char failure[512]; /* once the run has ended, and not well: why */
};

/* False: the database takes no run, and reterr says why; nothing is to be ended. *ret stays where it is until then. */
bool skep_recording_begin(struct skep_recording *ret, const struct skep_recording_options *options,
	const struct skep_scenario *scenario, struct skep_diag *reterr);

/* Why a run failed whose summary does not say: a stage was empty, or lacked a worker. */
const char *skep_recording_loss(const struct skep_plan *plan);

/* Writes what there is, and prints the result. `stopped`: what ended the run before its time, such as "ended by SIGINT", or
 * NULL. False: the run was not recorded, which is said, or it failed, and the reason is in r->failure. */
bool skep_recording_end(
	struct skep_recording *r, skep_time end_ns, uint64_t events, enum skep_outcome outcome, const char *stopped);
