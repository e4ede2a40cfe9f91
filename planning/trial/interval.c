/* SPDX-License-Identifier: Apache-2.0
 *
 * interval.c - see interval.h. The quantile of Student's distribution is GSL's.
 */
#include "planning/trial/interval.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdbool.h>

double skep_student95(uint32_t freedom)
{
	return gsl_cdf_tdist_Pinv(0.975, freedom);
}

typedef double pair(const double *a, const double *b, uint32_t i);

/* Two passes: what differs little is not lost beside what it differs from. */
static struct skep_interval interval_of(pair *value, const double *a, const double *b, uint32_t count)
{
	struct skep_interval r = {.mean = NAN, .low = NAN, .high = NAN};
	double sum = 0, squares = 0;
	for (uint32_t i = 0; i < count; i++) {
		bool there = isfinite(value(a, b, i));
		r.count += there;
		sum += there ? value(a, b, i) : 0;
	}
	if (r.count == 0)
		return r;
	r.mean = sum / r.count;
	if (r.count < 2)
		return r;
	for (uint32_t i = 0; i < count; i++) {
		double off = value(a, b, i) - r.mean;
		squares += isfinite(off) ? off * off : 0;
	}
	double half = skep_student95(r.count - 1) * sqrt(squares / (r.count - 1) / r.count);
	r.low = r.mean - half;
	r.high = r.mean + half;
	return r;
}

static double alone(const double *a, const double *b, uint32_t i)
{
	(void)b;
	return a[i];
}

static double log_alone(const double *a, const double *b, uint32_t i)
{
	(void)b;
	return a[i] > 0 ? log(a[i]) : NAN;
}

static double difference(const double *a, const double *b, uint32_t i)
{
	return a[i] - b[i];
}

static double log_ratio(const double *a, const double *b, uint32_t i)
{
	return a[i] > 0 && b[i] > 0 ? log(a[i] / b[i]) : NAN;
}

struct skep_interval skep_interval_of(const double *value, uint32_t count)
{
	return interval_of(alone, value, value, count);
}

struct skep_interval skep_interval_of_one_more(const double *value, uint32_t count)
{
	struct skep_interval r = interval_of(alone, value, value, count),
			     logs = interval_of(log_alone, value, value, count);
	double half = sqrt(logs.count + 1.0) * (logs.high - logs.mean);
	r.low = fmin(
		r.mean, exp(logs.mean - half)); /* values that are all alike come back from their logarithms rounded */
	r.high = fmax(r.mean, exp(logs.mean + half));
	return r;
}

struct skep_interval skep_interval_difference(const double *a, const double *b, uint32_t count)
{
	return interval_of(difference, a, b, count);
}

struct skep_interval skep_interval_ratio(const double *a, const double *b, uint32_t count)
{
	struct skep_interval r = interval_of(log_ratio, a, b, count);
	r.mean = exp(r.mean);
	r.low = exp(r.low);
	r.high = exp(r.high);
	return r;
}
