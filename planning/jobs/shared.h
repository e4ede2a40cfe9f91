/* SPDX-License-Identifier: Apache-2.0
 *
 * shared.h - many jobs on one cluster under each of the policies of their file: what `skep jobs` does.
 */
#pragma once

#include <stdio.h>

#include "planning/jobs/rates.h"
#include "sim/jobs/figures.h"

struct skep_shared_run { /* under one policy */
	struct skep_cluster_result result;
	struct skep_cluster_figures figures;
};

struct skep_shared {
	struct skep_jobs_file file;
	struct skep_job_rates *rates;
	struct skep_job_basis *basis; /* [types] */
	struct skep_cluster cluster;  /* its policy is that of the run at hand */
	struct skep_cluster_job *job; /* [file.jobs] */
	uint32_t *host_of, *place_of, *machines_of, *free_of, *free_at;
	double **rate; /* [types] tables that jobs point into: of types of one group one alone, by its first type */
	struct skep_shared_run run[SKEP_JOBS_POLICIES_MAX]; /* [file.policies] */
};

/* Reads the file, and finds how fast each job is with each number of machines that it may have. It stays where it is. On failure
 * *ret is empty. */
bool skep_shared_make(
	const char *path, const struct skep_jobs_options *options, struct skep_shared *ret, struct skep_diag *reterr);
/* Simulates policy number `which`. */
bool skep_shared_simulate(struct skep_shared *shared, uint32_t which, struct skep_diag *reterr);
void skep_shared_finish(struct skep_shared *shared);

/* Writes all policies into the database, in one transaction. *ret_comparison: their number there. */
bool skep_shared_keep(
	const struct skep_shared *shared, const char *db, int64_t *ret_comparison, struct skep_diag *reterr);

/* The table of policies, or one object; `details`: each job too. */
void skep_shared_print(const struct skep_shared *shared, bool details, FILE *out);
bool skep_shared_print_json(const struct skep_shared *shared, bool details, int64_t comparison, FILE *out);
