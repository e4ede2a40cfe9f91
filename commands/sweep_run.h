/* SPDX-License-Identifier: Apache-2.0
 *
 * sweep_run.h - one combination of a sweep, in the process that checks or simulates it.
 */
#ifndef SKEP_COMMANDS_SWEEP_RUN_H
#define SKEP_COMMANDS_SWEEP_RUN_H

#include "analysis/store.h"
#include "analysis/summary.h"
#include "commands/arguments.h"
#include "commands/sweep_pool.h"
#include "scenarios/vary.h"

enum { SKEP_SWEEP_CHECK = 1, SKEP_SWEEP_RUN }; /* kinds of jobs; the word of a RUN is its combination's identity */

struct skep_sweep { /* the same in all processes */
	const struct arguments *arguments;
	struct skep_vary vary;
	const char *path;
	char *text; /* of the scenario's file, read once */
	size_t text_bytes;
};

struct skep_sweep_reply { /* the beginning of every answer; after that of a RUN comes the image of its database */
	bool ok;          /* CHECK: the combination can be run; RUN: it was, to whatever end */
	bool done;        /* RUN: and it reached its goal */
	uint64_t identity, seed; /* CHECK */
	uint64_t memory_bytes;   /* CHECK: that the run takes at least; RUN: the most that its process has had */
	char name[64];           /* CHECK: of the scenario */
	double throughput, time_s, loss; /* RUN */
	char error[2048];                /* not ok: why; ends with a newline */
};

/* Of two runs that are the same: the scenario's text with its overrides and its seed, the bytes of the files that it names,
 * and the version of the code. */
uint64_t skep_sweep_identity(const struct skep_scenario *scenario);

/* Simulates it as `skep sim` does. `store`: one in memory, which has the run afterwards; NULL: nothing is kept. */
bool skep_sweep_simulate(const struct skep_scenario *scenario, struct skep_store *store, bool details,
	struct skep_summary *ret, char *reterr, size_t size);

/* For a pool; `context` is a struct skep_sweep. */
bool skep_sweep_work_on(void *context, const struct skep_sweep_job *job, void **ret, uint64_t *ret_count);

#endif
