/* SPDX-License-Identifier: Apache-2.0
 *
 * robust.c - see robust.h. A tile of columns at a time, which stay in registers and the first-level cache: their votes are
 * sorted by Batcher's network (Knuth, The Art of Computer Programming 3, 5.2.2, algorithm M), which exchanges whole rows of
 * the tile whatever they hold; then one pass over the ranks, in their order, sums what is kept.
 */
#include "models/update/robust.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>

#include "core/collective/collective.h"
#include "models/layers/vector.h"

enum { COLUMNS = 16 };

struct votes { /* of those who have one, by rank */
	uint32_t count;
	uint32_t rank[SKEP_ROSTER_MAX];
	float weight[SKEP_ROSTER_MAX];
	uint32_t all; /* microbatches */
};

typedef int32_t tile[SKEP_ROSTER_MAX][COLUMNS];

uint32_t skep_robust_left_out(const struct skep_robust *robust, uint32_t votes)
{
	double share = floor(robust->share * votes * (1 + 0x1p-40)); /* 20 % of 5 is 1 */
	uint32_t most = votes > 0 ? (votes - 1) / 2 : 0;
	double wanted = robust->trim + share;
	return wanted < most ? (uint32_t)wanted : most;
}

static struct votes votes_of(uint32_t members, const uint32_t *weight)
{
	struct votes votes = {0};
	assert(members <= SKEP_ROSTER_MAX);
	for (uint32_t r = 0; r < members; r++) {
		if (weight[r] == 0)
			continue;
		votes.rank[votes.count] = r;
		votes.weight[votes.count++] = (float)weight[r];
		votes.all += weight[r];
	}
	return votes;
}

/* ---- order ---------------------------------------------------------------------------------------------------- */

/* A float as an integer of the same order, and back: -NaN < -infinity < .. < -0 < 0 < .. < infinity < NaN. */
static inline int32_t key_of(float x)
{
	int32_t bits = skep_float_bits(x);
	return bits ^ (bits >> 31 & INT32_MAX);
}

static inline float value_of(int32_t key)
{
	return skep_float_of(key ^ (key >> 31 & INT32_MAX));
}

static inline void exchange(int32_t *restrict low, int32_t *restrict high)
{
	for (int j = 0; j < COLUMNS; j++) {
		int32_t a = low[j], b = high[j];
		low[j] = a < b ? a : b;
		high[j] = a < b ? b : a;
	}
}

static inline void sort(uint32_t rows, tile key)
{
	uint32_t top = 1;
	while (top < rows)
		top *= 2;
	for (uint32_t p = top / 2; p > 0; p /= 2) {
		uint32_t distance = p, rest = 0;
		for (uint32_t q = top / 2;; q /= 2) {
			for (uint32_t i = 0; i + distance < rows; i++)
				if ((i & p) == rest)
					exchange(key[i], key[i + distance]);
			if (q == p)
				break;
			distance = q - p;
			rest = p;
		}
	}
}

/* g of each vote; columns beyond n hold 0. */
static inline void load(const struct votes *votes, uint32_t columns, size_t n, const float *part, tile key)
{
	for (uint32_t v = 0; v < votes->count; v++) {
		const float *sum = part + votes->rank[v] * n;
		float row[COLUMNS] = {0};
		for (uint32_t j = 0; j < columns; j++)
			row[j] = sum[j];
		for (int j = 0; j < COLUMNS; j++)
			key[v][j] = key_of(row[j] / votes->weight[v]);
	}
}

/* ---- trimmed mean --------------------------------------------------------------------------------------------- */

struct bounds { /* of the keys that are kept; of those that equal one of these, how many are still to be left out */
	int32_t low[COLUMNS], high[COLUMNS];
	int32_t lows[COLUMNS], highs[COLUMNS];
};

/* Least and largest key of a finite number. */
#define FINITE_LEAST ((int32_t)0x80800000)
#define FINITE_MOST 0x7f7fffff

/* Where the votes that are kept begin and end in the sorted column. */
static inline void window(
	uint32_t votes, uint32_t out, int32_t below, int32_t above, int32_t *ret_low, int32_t *ret_high)
{
	int32_t odd = below + above, more = odd < (int32_t)out ? (int32_t)out - odd : 0;
	if (odd == (int32_t)votes)
		below = above = more = 0;
	*ret_low = below + more;
	*ret_high = (int32_t)votes - 1 - above - more;
}

static inline bool any_odd(uint32_t rows, tile key)
{
	int32_t odd[COLUMNS] = {0}, all = 0;
	for (uint32_t v = 0; v < rows; v++)
		for (int j = 0; j < COLUMNS; j++)
			odd[j] |= -(int32_t)(key[v][j] < FINITE_LEAST) | -(int32_t)(key[v][j] > FINITE_MOST);
	for (int j = 0; j < COLUMNS; j++)
		all |= odd[j];
	return all != 0;
}

static inline void bound(const struct votes *votes, uint32_t out, tile key, tile sorted, struct bounds *ret)
{
	for (uint32_t v = 0; v < votes->count; v++)
		for (int j = 0; j < COLUMNS; j++)
			sorted[v][j] = key[v][j];
	sort(votes->count, sorted);
	for (int j = 0; j < COLUMNS; j++) {
		ret->low[j] = sorted[out][j];
		ret->high[j] = sorted[votes->count - 1 - out][j];
		ret->lows[j] = ret->highs[j] = (int32_t)out;
	}
	for (uint32_t v = 0; v < votes->count; v++)
		for (int j = 0; j < COLUMNS; j++) {
			ret->lows[j] -= key[v][j] < ret->low[j];
			ret->highs[j] -= key[v][j] > ret->high[j];
		}
}

/* The same where something is not finite, column by column: few tiles are such. */
static void bound_odd(uint32_t votes, uint32_t out, tile key, tile sorted, struct bounds *ret)
{
	for (int j = 0; j < COLUMNS; j++) {
		int32_t below = 0, above = 0, low, high;
		for (uint32_t v = 0; v < votes; v++) {
			below += key[v][j] < FINITE_LEAST;
			above += key[v][j] > FINITE_MOST;
		}
		window(votes, out, below, above, &low, &high);
		ret->low[j] = sorted[low][j];
		ret->high[j] = sorted[high][j];
		ret->lows[j] = low;
		ret->highs[j] = (int32_t)votes - 1 - high;
		for (uint32_t v = 0; v < votes; v++) {
			ret->lows[j] -= key[v][j] < ret->low[j];
			ret->highs[j] -= key[v][j] > ret->high[j];
		}
	}
}

/* One row more of sums and weights, where it is kept; all in masks, without a branch. -0 + x is x for all x. */
static inline void keep_row(const int32_t *restrict key, const float *restrict value, float its,
	struct bounds *restrict b, float *restrict sum, float *restrict weight)
{
	for (int j = 0; j < COLUMNS; j++) {
		int32_t low = -(int32_t)(key[j] == b->low[j]) & -(int32_t)(b->lows[j] > 0);
		int32_t high = -(int32_t)(key[j] == b->high[j]) & -(int32_t)(b->highs[j] > 0) & ~low;
		int32_t out = low | high | -(int32_t)(key[j] < b->low[j]) | -(int32_t)(key[j] > b->high[j]);
		b->lows[j] += low;
		b->highs[j] += high;
		sum[j] += skep_float_of((skep_float_bits(value[j]) & ~out) | (INT32_MIN & out));
		weight[j] += skep_float_of(skep_float_bits(its) & ~out);
	}
}

SKEP_ANY_WIDTH static void trimmed_mean(
	const struct votes *votes, uint32_t out, size_t n, const float *part, float *ret)
{
	tile key, sorted;
	for (size_t first = 0; first < n; first += COLUMNS) {
		uint32_t columns = n - first < COLUMNS ? (uint32_t)(n - first) : COLUMNS;
		struct bounds bounds;
		float sum[COLUMNS], weight[COLUMNS] = {0};
		load(votes, columns, n, part + first, key);
		bound(votes, out, key, sorted, &bounds);
		if (any_odd(votes->count, key))
			bound_odd(votes->count, out, key, sorted, &bounds);
		for (int j = 0; j < COLUMNS; j++)
			sum[j] = -0.0f;
		for (uint32_t v = 0; v < votes->count; v++) {
			float row[COLUMNS] = {0};
			for (uint32_t j = 0; j < columns; j++)
				row[j] = part[votes->rank[v] * n + first + j];
			keep_row(key[v], row, votes->weight[v], &bounds, sum, weight);
		}
		for (uint32_t j = 0; j < columns; j++)
			ret[first + j] = sum[j] * ((float)votes->all / weight[j]);
	}
}

/* ---- zeno ----------------------------------------------------------------------------------------------------- */

/* Of each column the middle one, or the mean of the middle two. */
static inline void median(uint32_t rows, tile sorted, float *ret)
{
	for (int j = 0; j < COLUMNS; j++)
		ret[j] = 0.5f * value_of(sorted[(rows - 1) / 2][j]) + 0.5f * value_of(sorted[rows / 2][j]);
}

/* Of a span, column by column into as many sums, which are folded in halves at the end. Adds to the scores. */
SKEP_ANY_WIDTH static void score_span(
	const struct votes *votes, double rho, size_t n, size_t first, size_t end, const float *part, double *score)
{
	tile key, sorted;
	double sum[SKEP_ROSTER_MAX][COLUMNS];
	for (uint32_t v = 0; v < votes->count; v++)
		for (int j = 0; j < COLUMNS; j++)
			sum[v][j] = 0;
	for (; first < end; first += COLUMNS) {
		uint32_t columns = end - first < COLUMNS ? (uint32_t)(end - first) : COLUMNS;
		float centre[COLUMNS];
		load(votes, columns, n, part + first, key);
		for (uint32_t v = 0; v < votes->count; v++)
			for (int j = 0; j < COLUMNS; j++)
				sorted[v][j] = key[v][j];
		sort(votes->count, sorted);
		median(votes->count, sorted, centre);
		for (uint32_t v = 0; v < votes->count; v++)
			for (int j = 0; j < COLUMNS; j++) {
				double g = (double)value_of(key[v][j]);
				sum[v][j] += g * ((double)centre[j] - rho * g);
			}
	}
	for (uint32_t v = 0; v < votes->count; v++) {
		for (int width = COLUMNS / 2; width > 0; width /= 2)
			for (int j = 0; j < width; j++)
				sum[v][j] += sum[v][j + width];
		score[v] += sum[v][0];
	}
}

/* How many are ahead of it: have a higher score, or an equal one and a lower rank. */
static uint32_t place_of(const struct votes *votes, const double *score, uint32_t vote)
{
	uint32_t ahead = 0;
	double own = isfinite(score[vote]) ? score[vote] : -INFINITY;
	for (uint32_t v = 0; v < votes->count; v++) {
		double other = isfinite(score[v]) ? score[v] : -INFINITY;
		ahead += other > own || (other == own && v < vote);
	}
	return ahead;
}

SKEP_ANY_WIDTH static void add_up(const struct votes *votes, const bool *kept, size_t n, const float *part, float *ret)
{
	uint32_t weight = 0;
	for (uint32_t v = 0; v < votes->count; v++)
		weight += kept[v] ? (uint32_t)votes->weight[v] : 0;
	float factor = (float)votes->all / (float)weight;
	for (size_t i = 0; i < n; i++)
		ret[i] = -0.0f;
	for (uint32_t v = 0; v < votes->count; v++)
		for (size_t i = 0; kept[v] && i < n; i++)
			ret[i] += part[votes->rank[v] * n + i];
	for (size_t i = 0; i < n; i++)
		ret[i] *= factor;
}

static void zeno(const struct skep_robust *robust, const struct votes *votes, size_t n, const float *part, float *ret)
{
	double score[SKEP_ROSTER_MAX] = {0};
	bool kept[SKEP_ROSTER_MAX];
	uint32_t stay = votes->count - skep_robust_left_out(robust, votes->count);
	for (size_t first = 0; first < n; first += SKEP_ROBUST_SPAN)
		score_span(votes, robust->rho, n, first, n - first < SKEP_ROBUST_SPAN ? n : first + SKEP_ROBUST_SPAN,
			part, score);
	for (uint32_t v = 0; v < votes->count; v++)
		kept[v] = place_of(votes, score, v) < stay;
	add_up(votes, kept, n, part, ret);
}

/* ---- any ------------------------------------------------------------------------------------------------------ */

void skep_robust_aggregate(const struct skep_robust *robust, uint32_t members, size_t n, const float *part,
	const uint32_t *weight, float *ret)
{
	struct votes votes = votes_of(members, weight);
	bool all[SKEP_ROSTER_MAX];
	uint32_t out = robust->method == SKEP_ROBUST_MEAN ? 0 : skep_robust_left_out(robust, votes.count);
	for (uint32_t v = 0; v < votes.count; v++)
		all[v] = true;
	for (size_t i = 0; votes.count == 0 && i < n; i++)
		ret[i] = 0;
	if (votes.count == 0)
		return;
	if (out == 0)
		add_up(&votes, all, n, part, ret);
	else if (robust->method == SKEP_ROBUST_TRIMMED_MEAN)
		trimmed_mean(&votes, out, n, part, ret);
	else
		zeno(robust, &votes, n, part, ret);
}
