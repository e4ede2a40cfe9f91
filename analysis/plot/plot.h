/* SPDX-License-Identifier: Apache-2.0
 *
 * plot.h - pictures from the database through gnuplot.
 */
#pragma once

#include "analysis/store/store.h"
#include "base/diag.h"

struct skep_plot_rounds { /* the part of a run that a timeline shows */
	bool all;
	uint32_t first, last; /* not all: these and those between */
};

struct skep_plot_axes {  /* of accuracy; NULL: what suits */
	const char *x;   /* time, steps, tokens, bytes, sync-bytes, cost */
	const char *y;   /* loss, perplexity */
	const char *log; /* none, x, y, xy */
	bool validation; /* the loss of validations, not of training */
};

#define SKEP_PLOT_DRAWN_MAX 4096u

struct skep_plot_drawn { /* the runs that are in a picture; beyond SKEP_PLOT_DRAWN_MAX they are counted alone */
	int64_t run[SKEP_PLOT_DRAWN_MAX];
	uint32_t runs;
};

struct skep_plot_choice { /* NULL: what suits */
	const struct skep_plot_rounds *rounds;
	const char *metric;
	const struct skep_plot_axes *axes;
	struct skep_plot_drawn *ret_drawn; /* NULL: it is not asked for */
};

/* Draws runs of the database into the file `target`. Kinds: accuracy, cost, fit, matrix, pareto, sweep, throughput, timeline,
 * utilisation. Without runs accuracy, cost and utilisation take the pair of `skep compare` if the newest scenario
 * has one, else the newest run of each world of that scenario (accuracy
 * all of them if it was in one world alone), throughput and pareto all runs of that scenario, fit those that were computed,
 * sweep the newest one, the others the newest run; only runs that closed a round count. The format follows the file's ending:
 * .png .svg .pdf. `choice`: rounds of a timeline; the metric of a sweep, a key of --json (NULL: the throughput), or of pareto,
 * time_s or time_to_target_s (NULL: what the runs have); axes of accuracy. Refuses before it starts gnuplot: unknown kind, run
 * not there, target folder not writable, gnuplot missing, a choice for another kind. */
bool skep_plot_chosen(struct skep_store *store, const char *kind, const int64_t *run, uint32_t runs, const char *target,
	const struct skep_plot_choice *choice, struct skep_diag *reterr);

/* The same as the text of an SVG file without a background of its own, for a page; the caller frees *ret. */
bool skep_plot_inside(struct skep_store *store, const char *kind, const int64_t *run, uint32_t runs,
	const struct skep_plot_choice *choice, char **ret, struct skep_diag *reterr);

/* Can this file be made, by its ending and its folder? */
bool skep_plot_target(const char *target, struct skep_diag *reterr);

/* Is it a kind? Else says which there are; complexity, jobs and search are kinds too, of other things (commands/show/plot.c). */
bool skep_plot_knows(const char *kind, struct skep_diag *reterr);
