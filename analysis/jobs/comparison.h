/* SPDX-License-Identifier: Apache-2.0
 *
 * comparison.h - what one `skep jobs` has kept of each policy, for its pictures.
 */
#pragma once

#include "analysis/plot/plot_script.h"
#include "analysis/store/database.h"
#include "base/diag.h"

#define SKEP_JOBS_POLICIES_MAX 16u

struct skep_jobs_comparison {
	int64_t run[SKEP_JOBS_POLICIES_MAX]; /* rising, and no other comparison's between */
	char policy[SKEP_JOBS_POLICIES_MAX][32], name[128];
	double mean_s[SKEP_JOBS_POLICIES_MAX]; /* from arrival to end */
	uint32_t policies, jobs, machines;
};

/* 0: the newest one. False: there is none, or the database cannot be read. */
bool skep_jobs_comparison_find(
	struct skep_store *store, int64_t comparison, struct skep_jobs_comparison *ret, struct skep_diag *reterr);

struct skep_jobs_source { /* what `write` is given by skep_jobs_picture() */
	struct skep_store *store;
	int64_t comparison;
};

/* As skep_plot_picture(), with the database open. */
bool skep_jobs_picture(
	const char *db, int64_t comparison, const char *target, skep_picture_write *write, struct skep_diag *reterr);
