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

#define TAIL 0.025                        /* at each end of an interval of 95 % */
#define TAIL_DEVIATIONS 1.959963984540054 /* of the normal law */
/* Sizes count as one if they are nearer than a twentieth of their range or a tenth of themselves: a line through them would tell
 * noise. Chosen, not measured. */
#define RANGE_PART 0.05
#define OWN_PART 0.1

/* Of n fair coins fewer than k show heads with a probability of at most TAIL; 0: not even for 1. */
static uint32_t rank_of(uint32_t n)
{
	uint32_t low = 0, high = n / 2 + 1;
	while (high - low > 1) {
		uint32_t k = low + (high - low) / 2;
		if (gsl_cdf_binomial_P(k - 1, 0.5, n) <= TAIL)
			low = k;
		else
			high = k;
	}
	return low;
}

struct skep_ranked skep_ranked_median(double *sample, uint32_t count)
{
	if (count == 0)
		return (struct skep_ranked){NAN, NAN, NAN, 0};
	gsl_sort(sample, 1, count);
	uint32_t k = rank_of(count), from = k > 0 ? k - 1 : 0;
	return (struct skep_ranked){
		gsl_stats_median_from_sorted_data(sample, 1, count), sample[from], sample[count - 1 - from], count};
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
	double reach = TAIL_DEVIATIONS * sqrt(squares) / 2;
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

static struct skep_ranked slope_of(double *slope, size_t slopes, double variance, uint32_t count)
{
	gsl_sort(slope, 1, slopes);
	double half = (double)slopes / 2, reach = TAIL_DEVIATIONS * sqrt(variance) / 2;
	size_t low = half > reach ? (size_t)(half - reach) : 0;
	assert(low < slopes);
	return (struct skep_ranked){
		gsl_stats_median_from_sorted_data(slope, 1, slopes), slope[low], slope[slopes - 1 - low], count};
}

bool skep_ranked_intercept(const struct skep_ranked_point *point, uint32_t count, double slope, struct skep_ranked *ret)
{
	double *rest = calloc(count + 1u, sizeof *rest);
	if (rest == NULL)
		return false;
	for (uint32_t i = 0; i < count; i++)
		rest[i] = point[i].y - slope * point[i].x;
	*ret = skep_ranked_median(rest, count);
	free(rest);
	return true;
}

bool skep_ranked_line(struct skep_ranked_point *point, uint32_t count, struct skep_ranked_line *ret)
{
	*ret = (struct skep_ranked_line){.slope = {NAN, NAN, NAN, 0}, .intercept = {NAN, NAN, NAN, 0}};
	if (count == 0)
		return true;
	qsort(point, count, sizeof *point, by_x);
	count = thin(point, count);
	uint32_t *cluster = calloc(count, sizeof *cluster);
	double *slope = calloc((size_t)count * count / 2 + 1, sizeof *slope);
	bool fine = cluster != NULL && slope != NULL;
	if (fine) {
		ret->sizes = find_clusters(point, count, cluster);
		size_t slopes = slopes_between(point, cluster, count, slope);
		if (slopes > 0)
			ret->slope = slope_of(slope, slopes, variance_of_tau(cluster, count), count);
		fine = skep_ranked_intercept(point, count, slopes > 0 ? ret->slope.value : 0, &ret->intercept);
	}
	free(cluster);
	free(slope);
	return fine;
}
