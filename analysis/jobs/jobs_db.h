/* SPDX-License-Identifier: Apache-2.0
 *
 * jobs_db.h - many jobs on one cluster in the database: what one `skep jobs` has found, in one transaction, and pictures of it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"

#define SKEP_JOBS_FIGURES 15u

struct skep_jobs_kept_job {
	const char *name;
	uint32_t machines, preemptions, resizes;
	double arrival_s, start_s, end_s, alone_s, fair_s, machine_s, restart_machine_s, usd; /* usd NAN: not known */
};

struct skep_jobs_kept_span {
	uint32_t job, machines;
	double begin_s, end_s;
};

struct skep_jobs_kept { /* under one policy */
	const char *name, *path, *text, *policy, *topology;
	uint64_t seed;
	uint32_t machines, hosts, jobs, spans;
	double figure
		[SKEP_JOBS_FIGURES]; /* the columns of cluster_runs from completion_mean_s on to cluster_usd; NAN: NULL */
	uint64_t preemptions, resizes;
	const struct skep_jobs_kept_job *job;   /* [jobs] */
	const struct skep_jobs_kept_span *span; /* [spans] */
};

struct skep_jobs_db;

/* Opens the database, makes it if it is not there, and begins a transaction. NULL: see reterr. */
struct skep_jobs_db *skep_jobs_db_open(const char *path, struct skep_diag *reterr);
bool skep_jobs_db_put(struct skep_jobs_db *db, const struct skep_jobs_kept *kept, struct skep_diag *reterr);
/* Keeps all that was put, or nothing; frees it. *ret_comparison: their number. */
bool skep_jobs_db_close(struct skep_jobs_db *db, bool keep, int64_t *ret_comparison, struct skep_diag *reterr);

/* Draws the completion times of all policies of a comparison as distributions; 0: of the newest one. */
bool skep_plot_jobs(const char *db, int64_t comparison, const char *target, struct skep_diag *reterr);
/* The same for which job had how many machines when: a panel for each policy, six at most. */
bool skep_plot_gantt(const char *db, int64_t comparison, const char *target, struct skep_diag *reterr);
