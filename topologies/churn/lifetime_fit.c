/* SPDX-License-Identifier: Apache-2.0
 *
 * lifetime_fit.c - maximum likelihood for exponential and Weibull lives with right censoring.
 *
 * With d ended lives, E the sum over them, S the sum over all, weights understood:
 *     log L = d ln k - d k ln c + (k - 1) E ln t - S (t / c)^k
 * For a given shape k the best scale is c^k = S t^k / d. What is left is one equation in k,
 *     g(k) = S t^k ln t / S t^k - 1 / k - E ln t / d = 0,
 * whose left side rises with k (its first term is a mean of ln t under weights that move to the longer lives), so that
 * Brent's method finds the one root. Times are divided by the longest, so that t^k cannot overflow. Errors: the
 * inverse of the matrix of second derivatives of -log L in (k, ln c), at the maximum.
 */
#include "topologies/churn/lifetime_fit.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_roots.h>
#include <math.h>

#define SHAPE_LOW 1e-2
#define SHAPE_HIGH 1e3

const char *const skep_lifetime_distribution_names[] = {"exponential", "weibull", NULL};

struct problem {
	const struct skep_lifetime_sample *sample;
	size_t samples;
	double longest_s;
	double ended;    /* d */
	double mean_log; /* E ln(t / longest) / d */
};

/* Sums over all lives of (t/c)^k times 1, z and z^2, where z = ln(t / c). */
struct sums {
	double power, first, second;
};

static struct sums sum(const struct problem *p, double shape, double unit_s)
{
	struct sums s = {0, 0, 0};
	for (size_t i = 0; i < p->samples; i++) {
		double z = log(p->sample[i].seconds / unit_s), power = p->sample[i].weight * exp(shape * z);
		s.power += power;
		s.first += power * z;
		s.second += power * z * z;
	}
	return s;
}

static double slope(double shape, void *problem)
{
	const struct problem *p = problem;
	struct sums s = sum(p, shape, p->longest_s);
	return s.first / s.power - 1 / shape - p->mean_log;
}

/* The end of the range if the root lies beyond it (all lives equal: no spread, an infinite shape). */
static double solve(struct problem *p)
{
	if (slope(SHAPE_LOW, p) >= 0)
		return SHAPE_LOW;
	if (slope(SHAPE_HIGH, p) <= 0)
		return SHAPE_HIGH;
	gsl_function f = {slope, p};
	gsl_root_fsolver *solver = gsl_root_fsolver_alloc(gsl_root_fsolver_brent);
	if (!solver)
		return NAN;
	gsl_root_fsolver_set(solver, &f, SHAPE_LOW, SHAPE_HIGH);
	double shape = 1;
	for (int i = 0; i < 200; i++) {
		gsl_root_fsolver_iterate(solver);
		shape = gsl_root_fsolver_root(solver);
		if (gsl_root_test_interval(gsl_root_fsolver_x_lower(solver), gsl_root_fsolver_x_upper(solver), 0,
			    1e-10) == GSL_SUCCESS)
			break;
	}
	gsl_root_fsolver_free(solver);
	return shape;
}

static void set_errors(const struct problem *p, struct skep_lifetime_fit *fit)
{
	double k = fit->shape, d = p->ended;
	if (fit->law == SKEP_LIFETIME_EXPONENTIAL) {
		fit->scale_error_s = fit->scale_s / sqrt(d);
		return;
	}
	struct sums s = sum(p, k, fit->scale_s);
	double kk = d / (k * k) + s.second, cc = k * k * s.power, kc = d - s.power - k * s.first;
	double determinant = kk * cc - kc * kc;
	fit->shape_error = determinant > 0 ? sqrt(cc / determinant) : INFINITY;
	fit->scale_error_s = determinant > 0 ? fit->scale_s * sqrt(kk / determinant) : INFINITY;
}

bool skep_lifetime_fit(enum skep_lifetime_distribution law, const struct skep_lifetime_sample *sample, size_t samples,
	struct skep_lifetime_fit *ret)
{
	struct problem p = {.sample = sample, .samples = samples};
	double logs = 0;
	*ret = (struct skep_lifetime_fit){.law = law, .shape = 1};
	for (size_t i = 0; i < samples; i++) {
		p.longest_s = fmax(p.longest_s, sample[i].seconds);
		if (sample[i].ended) {
			p.ended += sample[i].weight;
			logs += sample[i].weight * log(sample[i].seconds);
		}
	}
	if (!(p.ended > 0))
		return false;
	p.mean_log = logs / p.ended - log(p.longest_s);
	if (law == SKEP_LIFETIME_WEIBULL)
		ret->shape = solve(&p);
	if (!isfinite(ret->shape))
		return false;
	ret->scale_s = p.longest_s * pow(sum(&p, ret->shape, p.longest_s).power / p.ended, 1 / ret->shape);
	ret->log_likelihood =
		p.ended * (log(ret->shape) - ret->shape * log(ret->scale_s) - 1) + (ret->shape - 1) * logs;
	set_errors(&p, ret);
	return true;
}

double skep_lifetime_mean_s(const struct skep_lifetime_fit *fit)
{
	return fit->scale_s * tgamma(1 + 1 / fit->shape);
}

double skep_lifetime_quantile_s(const struct skep_lifetime_fit *fit, double u)
{
	return fit->scale_s * pow(-log1p(-u), 1 / fit->shape);
}
