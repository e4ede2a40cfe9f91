/* SPDX-License-Identifier: Apache-2.0
 *
 * plot_complexity.h - how many bytes training moves, against stages, parameters and steps: of passes and of
 * reductions, in the closed form (planning/search/complexity.h) and by class of link. The caller, which has the
 * allocations, fills the numbers in.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

#define SKEP_COMPLEXITY_CLASSES_MAX 8u
#define SKEP_COMPLEXITY_CUTS_MAX 64u

struct skep_complexity_cut { /* bytes of a step with so many stages */
	uint32_t stages;
	double closed[2];                          /* pipeline, reduction */
	double on[SKEP_COMPLEXITY_CLASSES_MAX][2]; /* the same of the links of a class */
};

struct skep_complexity_figure {
	char title[128];
	const char *name[SKEP_COMPLEXITY_CLASSES_MAX]; /* of the classes */
	uint32_t classes;
	struct skep_complexity_cut cut[SKEP_COMPLEXITY_CUTS_MAX]; /* by rising stages */
	uint32_t cuts, own;                                       /* own: which is the scenario's */
	double parameters;                                        /* of the model */
	uint32_t steps;                                           /* of the run */
	double period;                                            /* steps from reduction to reduction, on the mean */
};

/* The format follows the ending of `target`: .png .svg .pdf. */
bool skep_plot_complexity(const struct skep_complexity_figure *figure, const char *target, struct skep_diag *reterr);
