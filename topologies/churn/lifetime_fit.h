/* SPDX-License-Identifier: Apache-2.0
 *
 * lifetime_fit.h - lifetime distributions of machines, fitted by maximum likelihood. A censored life, whose end the
 * trace does not have, counts as "at least so long".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum skep_lifetime_distribution { SKEP_LIFETIME_EXPONENTIAL, SKEP_LIFETIME_WEIBULL };
extern const char *const skep_lifetime_distribution_names[]; /* NULL at the end */

struct skep_lifetime_sample {
	double seconds; /* above 0 */
	double weight;  /* stands for so many lives */
	bool ended;     /* else censored */
};

/* P(life > t) = exp(-(t / scale)^shape); shape is 1 for the exponential law. */
struct skep_lifetime_fit {
	enum skep_lifetime_distribution law;
	double shape, scale_s;
	double shape_error,
		scale_error_s; /* standard errors: from the curvature of the likelihood; 0 for a given value */
	double log_likelihood;
};

/* False: no life has ended, or there is nothing to fit. */
bool skep_lifetime_fit(enum skep_lifetime_distribution law, const struct skep_lifetime_sample *sample, size_t samples,
	struct skep_lifetime_fit *ret);

double skep_lifetime_mean_s(const struct skep_lifetime_fit *fit);
/* The life that a share of 1 - u of all machines outlives; u in [0, 1). */
double skep_lifetime_quantile_s(const struct skep_lifetime_fit *fit, double u);
