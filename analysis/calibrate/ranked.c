/* SPDX-License-Identifier: Apache-2.0
 *
 * ranked.c - see ranked.h.
 */
#include "analysis/calibrate/ranked.h"

#include <assert.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>

/* What an interval leaves at each of its ends, and how many deviations of the normal law that is: of 95 %; and of the two that
 * the interval of an intercept is made of, so that they leave no more together (Bonferroni). */
struct tail {
	double part, deviations;
};
static const struct tail WHOLE = {0.025, 1.959963984540054}, HALF = {0.0125, 2.241402727604947};
/* Sizes count as one if they are nearer than a twentieth of their range or a tenth of themselves: a line through them would tell
 * noise. Chosen, not measured. */
#define RANGE_PART 0.05
#define OWN_PART 0.1

/* Of n fair coins fewer than k show heads with a probability of at most so much; 0: not even for 1. */
static uint32_t rank_of(uint32_t n, double most)
{
	uint32_t low = 0, high = n / 2 + 1;
	while (high - low > 1) {
		uint32_t k = low + (high - low) / 2;
		if (gsl_cdf_binomial_P(k - 1, 0.5, n) <= most)
			low = k;
		else
			high = k;
	}
	return low;
}

static struct skep_ranked median(double *sample, uint32_t count, struct tail tail)
{
	if (count == 0)
		return (struct skep_ranked){NAN, NAN, NAN, 0};
	gsl_sort(sample, 1, count);
	uint32_t k = rank_of(count, tail.part), from = k > 0 ? k - 1 : 0;
	return (struct skep_ranked){
		gsl_stats_median_from_sorted_data(sample, 1, count), sample[from], sample[count - 1 - from], count};
}

struct skep_ranked skep_ranked_median(double *sample, uint32_t count)
{
	return median(sample, count, WHOLE);
}

/* The first of the samples, which are sorted, up to which there is so much weight. */
static double at_weight(const double *sample, const double *weight, uint32_t count, double most)
{
	double sum = 0;
	for (uint32_t i = 0; i + 1 < count; i++) {
		sum += weight[i];
		if (sum >= most)
			return sample[i];
	}
	return sample[count - 1];
}

struct skep_ranked skep_ranked_weighted_median(double *sample, double *weight, uint32_t count)
{
	double sum = 0, squares = 0;
	if (count == 0)
		return (struct skep_ranked){NAN, NAN, NAN, 0};
	gsl_sort2(sample, 1, weight, 1, count);
	for (uint32_t i = 0; i < count; i++) {
		sum += weight[i];
		squares += weight[i] * weight[i];
	}
	double reach = WHOLE.deviations * sqrt(squares) / 2;
	return (struct skep_ranked){at_weight(sample, weight, count, sum / 2),
		at_weight(sample, weight, count, sum / 2 - reach), at_weight(sample, weight, count, sum / 2 + reach),
		count};
}

double skep_ranked_deviation(double *sample, uint32_t count)
{
	if (count < 2)
		return NAN;
	double median = skep_ranked_median(sample, count).value;
	for (uint32_t i = 0; i < count; i++)
		sample[i] = fabs(sample[i] - median);
	return 1.4826 * skep_ranked_median(sample, count).value;
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static int by_x(const void *a, const void *b)
{
	const struct skep_ranked_point *left = a, *right = b;
	return left->x != right->x ? (left->x > right->x) - (left->x < right->x)
	                           : (left->y > right->y) - (left->y < right->y);
}

/* Keeps each n-th of the points, which are sorted, so that the ends stay. */
static uint32_t thin(struct skep_ranked_point *point, uint32_t count)
{
	if (count <= SKEP_RANKED_POINTS_MAX)
		return count;
	for (uint32_t i = 0; i < SKEP_RANKED_POINTS_MAX; i++)
		point[i] = point[(uint64_t)i * (count - 1) / (SKEP_RANKED_POINTS_MAX - 1)];
	return SKEP_RANKED_POINTS_MAX;
}

/* cluster[i]: of the points, which are sorted by x. */
static uint32_t find_clusters(const struct skep_ranked_point *point, uint32_t count, uint32_t *cluster)
{
	uint32_t clusters = 0;
	double first = 0, range = point[count - 1].x - point[0].x;
	for (uint32_t i = 0; i < count; i++) {
		if (i == 0 || point[i].x - first > fmax(RANGE_PART * range, OWN_PART * fabs(first))) {
			first = point[i].x;
			clusters++;
		}
		cluster[i] = clusters - 1;
	}
	return clusters;
}

/* The variance of the number of rising pairs less that of falling ones, if y has nothing to do with x. */
static double variance_of_tau(const uint32_t *cluster, uint32_t count)
{
	double n = count, sum = n * (n - 1) * (2 * n + 5);
	for (uint32_t i = 0, end; i < count; i = end) {
		for (end = i; end < count && cluster[end] == cluster[i]; end++)
			;
		double t = end - i;
		sum -= t * (t - 1) * (2 * t + 5);
	}
	return sum / 18;
}

static size_t slopes_between(
	const struct skep_ranked_point *point, const uint32_t *cluster, uint32_t count, double *ret)
{
	size_t slopes = 0;
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t j = i + 1; j < count; j++)
			if (cluster[i] != cluster[j])
				ret[slopes++] = (point[j].y - point[i].y) / (point[j].x - point[i].x);
	return slopes;
}

/* The slopes are sorted. */
static struct skep_ranked slope_of(
	const double *slope, size_t slopes, double variance, uint32_t count, struct tail tail)
{
	double half = (double)slopes / 2, reach = tail.deviations * sqrt(variance) / 2;
	size_t low = half > reach ? (size_t)(half - reach) : 0;
	assert(low < slopes);
	return (struct skep_ranked){
		gsl_stats_median_from_sorted_data(slope, 1, slopes), slope[low], slope[slopes - 1 - low], count};
}

/* rest: room for as many numbers. */
static struct skep_ranked rest_of(
	const struct skep_ranked_point *point, uint32_t count, double slope, struct tail tail, double *rest)
{
	for (uint32_t i = 0; i < count; i++)
		rest[i] = point[i].y - slope * point[i].x;
	return median(rest, count, tail);
}

bool skep_ranked_intercept(const struct skep_ranked_point *point, uint32_t count, double slope, struct skep_ranked *ret)
{
	double *rest = calloc(count + 1u, sizeof *rest);
	if (rest == NULL)
		return false;
	*ret = rest_of(point, count, slope, WHOLE, rest);
	free(rest);
	return true;
}

/* What the steepest slope of the interval leaves is least, since no x is below 0. */
static struct skep_ranked intercept_of(
	const struct skep_ranked_point *point, uint32_t count, const struct skep_ranked *slope, double *rest)
{
	assert(point[0].x >= 0 && slope->low <= slope->high);
	struct skep_ranked ret = rest_of(point, count, slope->value, HALF, rest);
	ret.low = rest_of(point, count, slope->high, HALF, rest).low;
	ret.high = rest_of(point, count, slope->low, HALF, rest).high;
	return ret;
}

bool skep_ranked_line(struct skep_ranked_point *point, uint32_t count, struct skep_ranked_line *ret)
{
	*ret = (struct skep_ranked_line){.slope = {NAN, NAN, NAN, 0}, .intercept = {NAN, NAN, NAN, 0}};
	if (count == 0)
		return true;
	qsort(point, count, sizeof *point, by_x);
	count = thin(point, count);
	uint32_t *cluster = calloc(count, sizeof *cluster);
	double *number = calloc((size_t)count * count / 2 + 1, sizeof *number); /* slopes, then what they leave */
	bool fine = cluster != NULL && number != NULL;
	if (fine) {
		ret->sizes = find_clusters(point, count, cluster);
		size_t slopes = slopes_between(point, cluster, count, number);
		if (slopes > 0) {
			double variance = variance_of_tau(cluster, count);
			gsl_sort(number, 1, slopes);
			ret->slope = slope_of(number, slopes, variance, count, WHOLE);
			const struct skep_ranked wider = slope_of(number, slopes, variance, count, HALF);
			ret->intercept = intercept_of(point, count, &wider, number);
		} else
			ret->intercept = rest_of(point, count, 0, WHOLE, number);
	}
	free(cluster);
	free(number);
	return fine;
}
