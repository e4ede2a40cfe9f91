/* SPDX-License-Identifier: Apache-2.0
 *
 * combination.h - one combination of a sweep, in the process that checks or simulates it.
 */
#pragma once

#include "analysis/summary/sweep_table.h"
#include "base/process/process_pool.h"
#include "scenarios/read/scenario.h"
#include "scenarios/vary/vary.h"
#include "sweeping/sweep.h"

enum { SKEP_SWEEP_CHECK = 1, SKEP_SWEEP_RUN }; /* kinds of jobs; the word of a RUN is its combination's identity */

struct skep_sweep { /* the same in all processes */
	const struct skep_sweep_request *request;
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
	char failure[200];               /* RUN that is not done: why */
	struct skep_diag error;          /* not ok: why */
	uint64_t samples;                /* CHECK: that the run is to do ... */
	uint32_t steps, cycle,           /* ... in so many steps; `cycle`: any run's steps are a multiple of it */
		asked_steps;             /* train.until.steps */
	uint32_t leaves;                 /* CHECK: in which quantities it leaves its law: skep_loss_leaves() */
	char law[512], law_model[64];
	double asked[SKEP_SWEEP_QUANTITIES], fitted[SKEP_SWEEP_QUANTITIES][2]; /* NAN: it is no number */
};

/* Is this error the scenario's own: does it come without --vary, too? */
bool skep_sweep_fails_alone(const struct skep_sweep *sweep, const struct skep_diag *error);

/* For a pool; `context` is a struct skep_sweep. */
bool skep_sweep_work_on(void *context, const struct skep_process_pool_job *job, void **ret, uint64_t *ret_count);
