/* SPDX-License-Identifier: Apache-2.0
 *
 * curves.h - a figure of runs (training or validation loss, perplexity) against what it took (time, steps, tokens, bytes), as
 * a picture wants it: few points, comparable over runs. Private to analysis/.
 */
#pragma once

#include "analysis/plot/plot_script.h"
#include "base/diag.h"

enum skep_curve_x {
	SKEP_CURVE_TIME,       /* seconds on the world's clock */
	SKEP_CURVE_STEPS,      /* of the (inner) optimizer */
	SKEP_CURVE_TOKENS,     /* counted in the last stage; of models without sequences samples */
	SKEP_CURVE_BYTES,      /* sent until then, pipeline and reductions */
	SKEP_CURVE_SYNC_BYTES, /* reductions alone */
	SKEP_CURVE_COST,       /* USD, of all workers */
	SKEP_CURVE_XS
};

struct skep_curve_kind {
	enum skep_curve_x x;
	bool perplexity; /* exp(loss) */
	bool validation; /* instead of the training loss of each round */
};

struct skep_curve_range {       /* of the points of one run or of several */
	double least_x, most_x; /* least above 0 */
	double least_end_x;     /* of the run that ends first */
	double least_y, most_y;
	double usual_y; /* the greatest first or last one: what is more is a peak */
	uint32_t points;
};

/* Extends *range by the run; refuses a run without points, or without tokens where perplexity is asked for. */
bool skep_curve_extend(struct skep_store *store, const struct skep_plot_run *run, const struct skep_curve_kind *kind,
	struct skep_curve_range *range, struct skep_diag *reterr);

#define SKEP_CURVE_BINS 200u
struct skep_curve { /* the points of a run that fall into one bin of the axis, put together */
	double x[SKEP_CURVE_BINS], y[SKEP_CURVE_BINS];
	uint32_t bins;    /* that hold any, in their order */
	uint32_t densest; /* most points in one */
};

struct skep_curve_axis { /* bins from `from` to `to`, of equal length or equal ratio */
	double from, to;
	bool logarithmic;
};
bool skep_curve_read(struct skep_store *store, const struct skep_plot_run *run, const struct skep_curve_kind *kind,
	const struct skep_curve_axis *axis, struct skep_curve *ret, struct skep_diag *reterr);

double skep_curve_bin(const struct skep_curve_axis *axis, uint32_t bin); /* its middle */

/* Between the points beside x, in a straight line of the axis; NAN before the first and behind the last one. */
double skep_curve_at(const struct skep_curve *curve, const struct skep_curve_axis *axis, double x);
