/* SPDX-License-Identifier: Apache-2.0
 *
 * fit.h - a law of losses (scenarios/plan/law.h) fitted to runs of the database.
 */
#pragma once

#include <stdio.h>

#include "analysis/store/store.h"
#include "base/diag.h"
#include "scenarios/plan/law.h"

#define SKEP_FIT_RUNS_MAX 256u
#define SKEP_FIT_FROM_USUAL UINT32_MAX

struct skep_loss_point {
	double at[SKEP_LAW_AXES];
	double loss;  /* above 0 */
	uint32_t run; /* which of the runs that are fitted, from 0; points of a run stand together, by tokens */
};

struct skep_loss_points {
	struct skep_loss_point *point;
	uint32_t count, runs;
	int64_t run[SKEP_FIT_RUNS_MAX];
	double first;       /* mean of the first losses of the runs */
	double most_tokens; /* behind the last round of one of them */
	char model[64];
};

/* How well a law fits a run. */
struct skep_fit_run {
	uint32_t points;
	double misfit;              /* root mean square of (loss - law) / law */
	double worst, worst_tokens; /* the same, with its sign, where it is largest */
};

/* The losses of these runs, or without runs of all that are done, with real arithmetic, of the newest scenario that has some,
 * from round `from` on (SKEP_FIT_FROM_USUAL: behind the warm-up of the learning rate and the first twentieth of each run: how
 * training begins is not in the law). Refuses a run that was not computed, diverged or did not end, and runs of several models.
 * The caller frees it. */
bool skep_loss_points_read(struct skep_store *store, const int64_t *run, uint32_t runs, uint32_t from,
	struct skep_loss_points *ret, struct skep_diag *reterr);
void skep_loss_points_finish(struct skep_loss_points *points);

/* Fits by nonlinear least squares of the relative residuals. What the points cannot tell is fixed, with the reason; if they
 * cannot tell what no law goes without, refuses and says what is missing. */
bool skep_law_fit(const struct skep_loss_points *points, struct skep_law *ret, struct skep_diag *reterr);
void skep_law_judge(const struct skep_law *law, const struct skep_loss_points *points, struct skep_fit_run *ret);

/* "0.43 %", "140 %". */
void skep_fit_percent(double share, char *ret, size_t size);

void skep_fit_print(const struct skep_law *law, const struct skep_loss_points *points, FILE *out);
void skep_fit_print_json(const struct skep_law *law, const struct skep_loss_points *points, FILE *out);
