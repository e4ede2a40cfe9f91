/* SPDX-License-Identifier: Apache-2.0
 *
 * estimate.c - see estimate.h.
 */
#include "exec/probe/estimate.h"

#include <assert.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <string.h>

#define TAIL 0.005      /* probability that a median is beyond one end of its interval */
#define FACTOR_MOST 2.0 /* by which a rate may be off that is written at all */
#define AGREE_WITHIN 20e-6
#define HANDOVER_MOST 100e-6
#define COURSE_LEAST 0.10 /* by which two halves differ if the rate is not steady */

/* ---- a median ---------------------------------------------------------------------------------------------------- */

/* How many samples at each end are out of the interval and at its end: the largest k for which fewer than k of `count` fair
 * coins show heads with a probability of TAIL at most. */
static uint32_t rank_of_end(uint32_t count)
{
	double exactly = ldexp(1, -(int)count), fewer = exactly;
	uint32_t k = 0;
	while (fewer <= TAIL) {
		k++;
		exactly *= (double)(count - k + 1) / k;
		fewer += exactly;
	}
	return k;
}

struct skep_median skep_median_of(double *sample, uint32_t count)
{
	assert(count > 0 && count <= 1000);
	gsl_sort(sample, 1, count);
	uint32_t k = rank_of_end(count);
	return (struct skep_median){gsl_stats_median_from_sorted_data(sample, 1, count),
		k > 0 ? sample[k - 1] : -INFINITY, k > 0 ? sample[count - k] : INFINITY};
}

/* ---- a bandwidth ------------------------------------------------------------------------------------------------- */

/* Seconds for a byte. */
static struct skep_median slope(
	const struct skep_transfers *t, const struct skep_median *at, uint32_t from, uint32_t to)
{
	const double bytes = (double)(t->bytes[to] - t->bytes[from]);
	assert(from < to && to < SKEP_TRANSFERS_SIZES && bytes > 0);
	return (struct skep_median){(at[to].value - at[from].value) / bytes, (at[to].low - at[from].high) / bytes,
		(at[to].high - at[from].low) / bytes};
}

static double spread_of(const struct skep_median *slope)
{
	if (!(slope->low > 0))
		return INFINITY;
	return fmax(slope->value / slope->low, slope->high / slope->value) - 1;
}

static enum skep_rate_course course_of(const struct skep_median *first, const struct skep_median *last)
{
	if (last->low > first->high && last->value > (1 + COURSE_LEAST) * first->value)
		return SKEP_RATE_FALLS;
	if (first->low > last->high && first->value > (1 + COURSE_LEAST) * last->value)
		return SKEP_RATE_RISES;
	return SKEP_RATE_STEADY;
}

struct skep_bandwidth skep_bandwidth_estimate(const struct skep_transfers *transfers)
{
	struct skep_median at[SKEP_TRANSFERS_SIZES];
	double sample[SKEP_TRANSFERS_ROUNDS_MAX];
	const uint32_t middle = SKEP_TRANSFERS_SIZES / 2, end = SKEP_TRANSFERS_SIZES - 1, rounds = transfers->rounds;
	assert(rounds > 0 && rounds <= SKEP_TRANSFERS_ROUNDS_MAX);
	for (uint32_t i = 0; i < SKEP_TRANSFERS_SIZES; i++) {
		assert(i == 0 || transfers->bytes[i] > transfers->bytes[i - 1]);
		memcpy(sample, transfers->taken_s[i], rounds * sizeof *sample);
		at[i] = skep_median_of(sample, rounds);
	}
	const struct skep_median first = slope(transfers, at, 0, middle), last = slope(transfers, at, middle, end);
	const struct skep_median all = slope(transfers, at, 0, end);
	struct skep_bandwidth ret = {.course = course_of(&first, &last), .samples = SKEP_TRANSFERS_SIZES * rounds};
	const struct skep_median *taken = ret.course == SKEP_RATE_FALLS ? &last : &all;
	ret.spread = spread_of(taken);
	if (ret.course == SKEP_RATE_FALLS) {
		const double fall = first.value > 0 ? last.value / first.value - 1 : INFINITY;
		ret.spread = fmax(ret.spread, transfers->in_memory ? fmin(fall, FACTOR_MOST - 1) : fall);
	}
	if (ret.spread > FACTOR_MOST - 1) {
		ret.Bps = NAN;
		ret.spread = INFINITY;
		return ret;
	}
	ret.Bps = 1 / taken->value;
	ret.kind = ret.spread > SKEP_PROBED_SPREAD_MOST ? SKEP_ESTIMATE_UNCERTAIN : SKEP_ESTIMATE_KNOWN;
	return ret;
}

/* ---- a rehearsal --------------------------------------------------------------------------------------------------- */

static double agreed(double value[SKEP_REHEARSED_ROUNDS], double most)
{
	for (uint32_t i = 0; i < SKEP_REHEARSED_ROUNDS; i++)
		if (isnan(value[i]))
			return NAN;
	gsl_sort(value, 1, SKEP_REHEARSED_ROUNDS);
	const double median = fmax(0, value[SKEP_REHEARSED_ROUNDS / 2]);
	const double distance = value[SKEP_REHEARSED_ROUNDS - 2] - value[1];
	return median <= most && distance <= AGREE_WITHIN + median ? median : NAN;
}

struct skep_probed_costs skep_costs_estimate(
	const struct skep_rehearsed round[SKEP_REHEARSED_ROUNDS], uint64_t small, uint64_t large)
{
	double handover[SKEP_REHEARSED_ROUNDS], least[SKEP_REHEARSED_ROUNDS], most[SKEP_REHEARSED_ROUNDS],
		pass_s = INFINITY;
	assert(large > small);
	for (uint32_t i = 0; i < SKEP_REHEARSED_ROUNDS; i++) {
		pass_s = fmin(pass_s, round[i].bare_s);
		handover[i] = round[i].handover_s;
		least[i] = round[i].small_s;
		most[i] = round[i].large_s;
	}
	const double small_s = agreed(least, pass_s), large_s = agreed(most, pass_s);
	struct skep_probed_costs ret = {agreed(handover, fmax(HANDOVER_MOST, pass_s / 4)), NAN, NAN};
	if (isnan(small_s) || isnan(large_s))
		return ret;
	ret.payload_s = small_s;
	ret.byte_s = fmax(0, large_s - small_s) / (double)(large - small);
	return ret;
}
