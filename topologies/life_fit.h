/* SPDX-License-Identifier: Apache-2.0
 *
 * life_fit.h - laws for how long a machine lives, fitted by maximum likelihood. A censored life, one whose end nobody saw,
 * counts as "at least so long".
 */
#ifndef SKEP_TOPOLOGIES_LIFE_FIT_H
#define SKEP_TOPOLOGIES_LIFE_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum skep_life_law { SKEP_LIFE_EXPONENTIAL, SKEP_LIFE_WEIBULL };
extern const char *const skep_life_law_names[]; /* NULL at the end */

struct skep_life_sample {
	double seconds; /* above 0 */
	double weight;  /* stands for so many lives */
	bool ended;     /* else censored */
};

/* P(life > t) = exp(-(t / scale)^shape); shape is 1 for the exponential law. */
struct skep_life_fit {
	enum skep_life_law law;
	double shape, scale_s;
	double shape_error,
		scale_error_s; /* standard errors: from the curvature of the likelihood; 0 for a given value */
	double log_likelihood;
};

/* False: no life has ended, or there is nothing to fit. */
bool skep_life_fit(
	enum skep_life_law law, const struct skep_life_sample *sample, size_t samples, struct skep_life_fit *ret);

double skep_life_mean_s(const struct skep_life_fit *fit);
/* The life that a share of 1 - u of all machines outlives; u in [0, 1). */
double skep_life_quantile_s(const struct skep_life_fit *fit, double u);

#endif
