/* SPDX-License-Identifier: Apache-2.0
 *
 * gpu_fit.h - timing models: formulas for the time of a product or a layer on one kind of GPU, fitted to measured
 * times.
 */
#pragma once

#include "topologies/gpu/gpu_table.h"

enum skep_timing_model {
	SKEP_FIT_ANALYTIC,   /* the roofline of the published peaks over lambda: one number is fitted */
	SKEP_FIT_REGRESSION, /* overhead + flop / rate + bytes / bandwidth: three */
	SKEP_FIT_SHAPE,      /* a roofline whose efficiency depends on the shape of the product: seven */
};
enum { SKEP_FIT_COEFFICIENTS_MAX = 7 };

struct skep_fit_point {
	struct skep_product product; /* of SHAPE alone */
	double flop, bytes, seconds;
};

struct skep_fit {
	enum skep_timing_model law;
	double peak, memory_Bps; /* of ANALYTIC: FLOP/s and bytes/s as published */
	double coefficient[SKEP_FIT_COEFFICIENTS_MAX];
	uint32_t points;                /* it was fitted to; 0: no fit */
	double median_error, p90_error; /* of |predicted / measured - 1| over these points */
};

/* Least squares of ln(predicted / measured). The constants peak and memory_Bps are used by ANALYTIC, and as the start of
 * the search by the others. False: too few points, or no memory. */
bool skep_fit_make(enum skep_timing_model law, double peak, double memory_Bps, const struct skep_fit_point *point,
	uint32_t points, struct skep_fit *ret);

/* Time of a point, whose own `seconds` are not looked at. */
double skep_fit_seconds(const struct skep_fit *fit, const struct skep_fit_point *point);

/* The `share` quantile of some errors (0.5: the median), which are sorted in place; `count` above 0. */
double skep_fit_quantile(double *error, uint32_t count, double share);
