/* SPDX-License-Identifier: Apache-2.0
 *
 * interval.h - means of runs with different seeds, and how sure they are: intervals that have the true mean with 95 %, by
 * Student's t.
 *
 * Pairs are runs of two scenarios with the same seed: they share the trace and the draws, so what is compared is the pair,
 * and what both have from their seed falls out.
 */
#pragma once

#include <stdint.h>

struct skep_interval {
	uint32_t count;         /* values that there are: what is not finite is left out */
	double mean, low, high; /* mean NAN: no value; the others NAN: fewer than two */
};

/* Half of the interval's width, in standard errors of the mean. */
double skep_student95(uint32_t freedom);

struct skep_interval skep_interval_of(const double *value, uint32_t count);

/* The same mean with an interval that has one more value with 95 %, where their logarithms are spread normally: times and sums of
 * money, which have long tails upwards and are above 0. By logarithms it is sqrt(n + 1) times as wide as that of their mean (Hahn
 * and Meeker: Statistical Intervals. 1991, section 4.7). */
struct skep_interval skep_interval_of_one_more(const double *value, uint32_t count);

/* Of a[i] - b[i], where both are there. */
struct skep_interval skep_interval_difference(const double *a, const double *b, uint32_t count);

/* Of a[i] / b[i], both above 0: the geometric mean, with the interval of the logarithms, so that b / a has the inverse of all
 * three. */
struct skep_interval skep_interval_ratio(const double *a, const double *b, uint32_t count);
