/* SPDX-License-Identifier: Apache-2.0
 *
 * gpu_fit.c - fits the three laws by least squares of the logarithm of predicted over measured, so that an error of 10 %
 * weighs the same for a product of microseconds and one of seconds.
 *
 *     ANALYTIC    t = max(flop / peak, bytes / B) / lambda, whose best lambda is a mean of logarithms
 *     REGRESSION  t = t0 + flop / F + bytes / B
 *     SHAPE       t = t0 + ((flop / (F e))^4 + (bytes / B)^4)^(1/4),
 *                 1 / e = (1 + a / m) (1 + b / n) (1 + c / k) (1 + w / (batch m n))
 *
 * e is below 1 where a side does not fill the tiles of the multipliers, the inner side is too short to hide the loads, or
 * the output has too few tiles for all processors. The fourth powers round off the edge of the roofline, which has no
 * derivative. Coefficients are above 0: the search (Levenberg-Marquardt, GSL) is over their logarithms, and each is
 * tied to its start by a spring too weak to be seen where the points say anything.
 *
 * What is kept true: coefficients have six digits, so that the last bits of a library do not decide about a nanosecond.
 */
#include "topologies/gpu/gpu_fit.h"
#include "base/order.h"

#include <assert.h>
#include <gsl/gsl_blas.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define SPRING 0.003
#define TOLERANCE 1e-9
enum { ITERATIONS_MAX = 500 };

enum { T0, RATE, BANDWIDTH, SIDE_M, SIDE_N, SIDE_K, WAVE }; /* coefficients of REGRESSION, the first three, and SHAPE */

/* A timing model needs at least as many points. */
static uint32_t coefficient_count(enum skep_timing_model law)
{
	return law == SKEP_FIT_ANALYTIC ? 1 : law == SKEP_FIT_REGRESSION ? 3 : SKEP_FIT_COEFFICIENTS_MAX;
}

/* ---- the laws ---------------------------------------------------------------------------------------------------- */

static double shape_seconds(const double *c, const struct skep_fit_point *point)
{
	const struct skep_product *p = &point->product;
	double wasted = (1 + c[SIDE_M] / p->m) * (1 + c[SIDE_N] / p->n) * (1 + c[SIDE_K] / p->k) *
	                (1 + c[WAVE] / (p->batch * p->m * p->n));
	double arithmetic = point->flop / c[RATE] * wasted, memory = point->bytes / c[BANDWIDTH];
	double high = fmax(arithmetic, memory), ratio = fmin(arithmetic, memory) / high;
	return c[T0] + high * sqrt(sqrt(1 + ratio * ratio * ratio * ratio));
}

double skep_fit_seconds(const struct skep_fit *fit, const struct skep_fit_point *point)
{
	const double *c = fit->coefficient;
	switch (fit->law) {
	case SKEP_FIT_ANALYTIC:
		return fmax(point->flop / fit->peak, point->bytes / fit->memory_Bps) / c[0];
	case SKEP_FIT_REGRESSION:
		return c[T0] + point->flop / c[RATE] + point->bytes / c[BANDWIDTH];
	case SKEP_FIT_SHAPE:
		return shape_seconds(c, point);
	}
	assert(false);
	return NAN;
}

/* ---- the search -------------------------------------------------------------------------------------------------- */

struct problem {
	struct skep_fit fit;
	const struct skep_fit_point *point;
	uint32_t points, coefficients;
	double start[SKEP_FIT_COEFFICIENTS_MAX]; /* logarithms */
	double least_s;                          /* the shortest measured time */
};

static int residuals(const gsl_vector *x, void *context, gsl_vector *ret)
{
	struct problem *p = context;
	for (uint32_t i = 0; i < p->coefficients; i++)
		p->fit.coefficient[i] = exp(gsl_vector_get(x, i));
	for (uint32_t i = 0; i < p->points; i++)
		gsl_vector_set(ret, i, log(skep_fit_seconds(&p->fit, &p->point[i]) / p->point[i].seconds));
	for (uint32_t i = 0; i < p->coefficients; i++)
		gsl_vector_set(ret, p->points + i, SPRING * (gsl_vector_get(x, i) - p->start[i]));
	return GSL_SUCCESS;
}

/* The search ends at points that differ by some 1e-6 from processor to processor, since exp() and log() of a C library round
 * differently where there are fused products; in sides of less than one, which hardly matter, by 1e-4. In three digits, far
 * finer than the errors of a fit, they are alike nearly always, and with them all that a simulation decides by these times. */
static double three_digits(double value)
{
	char text[32];
	snprintf(text, sizeof text, "%.2e", value);
	return strtod(text, NULL);
}

/* What depends on the speed of the GPU in parts of what was measured or published: so half a GPU takes twice as long. */
static double rounded(const struct problem *p, uint32_t coefficient, double value)
{
	const double unit[] = {p->least_s, p->fit.peak, p->fit.memory_Bps};
	if (coefficient < SIDE_M)
		return three_digits(value / unit[coefficient]) * unit[coefficient];
	return coefficient <= SIDE_K && value < 10 ? round(10 * value) / 10 : three_digits(value);
}

/* Where the search starts: the shortest measured time as overhead, the published rates, tiles of 64, and as many of them as
 * a hundred processors want. */
static void set_start(struct problem *p)
{
	p->least_s = INFINITY;
	for (uint32_t i = 0; i < p->points; i++)
		p->least_s = fmin(p->least_s, p->point[i].seconds);
	const double start[] = {p->least_s / 2, 0.8 * p->fit.peak, 0.8 * p->fit.memory_Bps, 32, 32, 64, 100 * 64 * 64};
	for (uint32_t i = 0; i < p->coefficients; i++)
		p->start[i] = log(start[i]);
}

static bool search(struct problem *p)
{
	size_t n = p->points + p->coefficients, k = p->coefficients;
	gsl_multifit_nlinear_parameters parameters = gsl_multifit_nlinear_default_parameters();
	gsl_multifit_nlinear_fdf f = {.f = residuals, .n = n, .p = k, .params = p};
	gsl_multifit_nlinear_workspace *work =
		gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &parameters, n, k);
	if (!work)
		return false;
	int why;
	gsl_vector_const_view start = gsl_vector_const_view_array(p->start, k);
	gsl_multifit_nlinear_init(&start.vector, &f, work);
	gsl_multifit_nlinear_driver(ITERATIONS_MAX, TOLERANCE, TOLERANCE, TOLERANCE, NULL, NULL, &why, work);
	for (uint32_t i = 0; i < k; i++)
		p->fit.coefficient[i] = rounded(p, i, exp(gsl_vector_get(gsl_multifit_nlinear_position(work), i)));
	gsl_multifit_nlinear_free(work);
	return true;
}

static double best_lambda(const struct problem *p)
{
	struct skep_fit plain = p->fit;
	double sum = 0;
	plain.coefficient[0] = 1;
	for (uint32_t i = 0; i < p->points; i++)
		sum += log(skep_fit_seconds(&plain, &p->point[i]) / p->point[i].seconds);
	return exp(sum / p->points);
}

/* ---- how good it is ---------------------------------------------------------------------------------------------- */

double skep_fit_quantile(double *error, uint32_t count, double share)
{
	assert(count > 0);
	gsl_sort(error, 1, count);
	return skep_order_quantile(error, count, share);
}

static bool set_errors(struct problem *p)
{
	double *error = malloc(p->points * sizeof *error);
	if (!error)
		return false;
	for (uint32_t i = 0; i < p->points; i++)
		error[i] = fabs(skep_fit_seconds(&p->fit, &p->point[i]) / p->point[i].seconds - 1);
	p->fit.median_error = skep_fit_quantile(error, p->points, 0.5);
	p->fit.p90_error = skep_fit_quantile(error, p->points, 0.9);
	free(error);
	return true;
}

bool skep_fit_make(enum skep_timing_model law, double peak, double memory_Bps, const struct skep_fit_point *point,
	uint32_t points, struct skep_fit *ret)
{
	assert(peak > 0 && memory_Bps > 0);
	struct problem p = {.fit = {.law = law, .peak = peak, .memory_Bps = memory_Bps},
		.point = point,
		.points = points,
		.coefficients = coefficient_count(law)};
	*ret = p.fit;
	if (points < p.coefficients)
		return false;
	set_start(&p);
	if (law == SKEP_FIT_ANALYTIC)
		p.fit.coefficient[0] = three_digits(best_lambda(&p));
	else if (!search(&p))
		return false;
	if (!set_errors(&p))
		return false;
	p.fit.points = points;
	*ret = p.fit;
	return true;
}
