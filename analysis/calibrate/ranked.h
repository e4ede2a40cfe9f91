/* SPDX-License-Identifier: Apache-2.0
 *
 * ranked.h - what samples of a run bear: a median with its interval, and a line with the intervals of its slope and of its
 * intercept. Pure: numbers in, an estimate out.
 *
 * Everything is made of order statistics, which no few wild samples move: other work on a host delays an operation or a message
 * now and then, by any amount. Intervals hold with a probability of 95 % (of an intercept at least that) whatever the law of the
 * samples, if these are independent; of fewer than six samples no interval is that sure, and what is given is their range.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct skep_ranked { /* of `samples` samples; 0 samples: nothing, and the rest is NAN */
	double value, low, high;
	uint32_t samples;
};

/*
 * The sign test's interval: from the k-th smallest to the k-th largest sample, where k is the largest number for which
 * fewer than k of n fair coins show heads with a probability of at most 0.025 (Conover, Practical Nonparametric Statistics,
 * 1999, section 3.2). Sorts the samples, which are finite.
 */
struct skep_ranked skep_ranked_median(double *sample, uint32_t count);

/*
 * The same of samples with weights, all above 0: half of the weight lies on each side of the value, and the interval is where the
 * weight of the samples below is half of all, give or take 1.96 times half the root of the sum of squares: the deviation of
 * that weight where each sample lies below by a fair coin. Sorts samples and weights.
 */
struct skep_ranked skep_ranked_weighted_median(double *sample, double *weight, uint32_t count);

struct skep_ranked_point {
	double x, y;
};

struct skep_ranked_line { /* y = intercept + slope x */
	struct skep_ranked slope, intercept;
	uint32_t
		sizes; /* clusters of x: values within a twentieth of the range of x, or a tenth of themselves, are one */
};

/*
 * The Theil-Sen line: the slope is the median of the slopes between all pairs of points of different clusters, its interval
 * that of Kendall's tau with ties (Sen, Estimates of the regression coefficient based on Kendall's tau, Journal of the
 * American Statistical Association 63, 1968). The intercept is the median of y - slope x. Its interval has what the error of
 * the slope makes of it: from the low end of the sign test's interval at the highest slope to the high end at the lowest, both
 * of 97.5 %, so that 95 % are left whatever the two have to do with each other; x is at least 0. A cluster has a slope to none
 * of its own, for that would be noise. One cluster alone: the slope has no samples, and the intercept is the median of y.
 * Sorts the points by x. Of more than SKEP_RANKED_POINTS_MAX points each n-th counts. False: no memory.
 */
#define SKEP_RANKED_POINTS_MAX 1200u
bool skep_ranked_line(struct skep_ranked_point *point, uint32_t count, struct skep_ranked_line *ret);

/* With a slope that is known: the intercept as above. False: no memory. */
bool skep_ranked_intercept(
	const struct skep_ranked_point *point, uint32_t count, double slope, struct skep_ranked *ret);

/* The deviation of samples about their median: 1.4826 times the median of the absolute ones, which is the standard deviation
 * where they are normal. Overwrites the samples. Fewer than two: NAN. */
double skep_ranked_deviation(double *sample, uint32_t count);
