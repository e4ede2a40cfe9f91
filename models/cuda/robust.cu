/* SPDX-License-Identifier: Apache-2.0
 *
 * robust.cu - what is made of parts that are gathered, and what is told in place of gradients: models/update/robust.c and
 * models/update/byzantine.c, to the bit; this file is compiled without contraction (meson.build), as these are. A thread has a column. What
 * the CPU sorts, it counts: the k-th of a few votes is the one that has k before it. The votes are in shared memory, each
 * thread's side by side, since there may be hundreds.
 *
 * Zeno's scores need the median of every column, which is put where the result will be, and then a sum over all of them: in the
 * spans and the sixteen lanes that the CPU has, so that it can be shared out.
 */
#include <math.h>

#include "core/collective/collective.h"
#include "core/random.h"
#include "models/cuda/portable.cuh"

extern "C" {
#include "models/update/byzantine.h"
#include "models/update/robust.h"
}

#define COLUMNS 256 /* of a block, where it needs no room for votes */
#define LANES 16    /* of a span */
#define SCORERS 64

struct votes { /* of those who have one, by rank */
	uint32_t count, all;
	uint16_t rank[SKEP_ROSTER_MAX];
	float weight[SKEP_ROSTER_MAX];
};

/* ---- lies --------------------------------------------------------------------------------------------------------------- */

__device__ static inline uint64_t mixed(uint64_t z)
{
	z += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

__global__ void tell(int attack, float scale, uint64_t seed, uint64_t first, size_t n, const float *own, float *ret)
{
	const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= n)
		return;
	const float drawn = (float)(mixed(seed ^ mixed(first + i)) >> 40) * 0x1p-23f - 1;
	float told = own[i];
	if (attack == SKEP_ATTACK_SIGN_FLIP)
		told = -scale * own[i];
	else if (attack == SKEP_ATTACK_NOISE)
		told = scale * (drawn * 1.7320508f) * own[i];
	else if (attack == SKEP_ATTACK_NAN)
		told = __uint_as_float(0x7fc00000);
	ret[i] = told;
}

/* ---- order: models/update/robust.c has the formulas ---------------------------------------------------------------------------- */

__device__ static inline int32_t key_of(float x)
{
	const int32_t bits = (int32_t)__float_as_uint(x);
	return bits ^ (bits >> 31 & INT32_MAX);
}

__device__ static inline float value_of(int32_t key)
{
	return __uint_as_float((uint32_t)(key ^ (key >> 31 & INT32_MAX)));
}

/* The thread's own column of keys[votes][threads]. */
__device__ static inline int32_t *load(const struct votes &votes, size_t n, size_t i, const float *part)
{
	int32_t *key = (int32_t *)shared_memory() + threadIdx.x;
	for (uint32_t v = 0; v < votes.count; v++)
		key[v * blockDim.x] = key_of(part[votes.rank[v] * n + i] / votes.weight[v]);
	return key;
}

/* With `place` votes before it, were they sorted. */
__device__ static inline int32_t key_at(uint32_t count, const int32_t *key, uint32_t place)
{
	for (uint32_t v = 0; v < count; v++) {
		const int32_t one = key[v * blockDim.x];
		uint32_t less = 0, equal = 0;
		for (uint32_t u = 0; u < count; u++) {
			less += key[u * blockDim.x] < one;
			equal += key[u * blockDim.x] == one;
		}
		if (less <= place && place < less + equal)
			return one;
	}
	return 0; /* there is one */
}

/* ---- trimmed mean ------------------------------------------------------------------------------------------------------- */

/* Least and largest key of a finite number. */
#define FINITE_LEAST ((int32_t)0x80800000)
#define FINITE_MOST 0x7f7fffff

struct bounds {
	int32_t low, high;
	uint32_t lows, highs; /* that equal these, and are still to be left out */
};

__device__ static inline struct bounds bounds_of(uint32_t count, uint32_t out, const int32_t *key)
{
	uint32_t below = 0, above = 0;
	for (uint32_t v = 0; v < count; v++) {
		below += key[v * blockDim.x] < FINITE_LEAST;
		above += key[v * blockDim.x] > FINITE_MOST;
	}
	uint32_t more = below + above < out ? out - below - above : 0;
	if (below + above == count)
		below = above = more = 0;
	struct bounds b = {0, 0, below + more, above + more};
	b.low = key_at(count, key, b.lows);
	b.high = key_at(count, key, count - 1 - b.highs);
	for (uint32_t v = 0; v < count; v++) {
		b.lows -= key[v * blockDim.x] < b.low;
		b.highs -= key[v * blockDim.x] > b.high;
	}
	return b;
}

__global__ void trim(struct votes votes, uint32_t out, size_t n, const float *part, float *ret)
{
	const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= n)
		return;
	const int32_t *key = load(votes, n, i, part);
	struct bounds b = bounds_of(votes.count, out, key);
	float sum = -0.0f, weight = 0;
	for (uint32_t v = 0; v < votes.count; v++) {
		const int32_t one = key[v * blockDim.x];
		const bool low = one == b.low && b.lows > 0, high = one == b.high && b.highs > 0 && !low;
		b.lows -= low;
		b.highs -= high;
		if (low || high || one < b.low || one > b.high)
			continue;
		sum += part[votes.rank[v] * n + i];
		weight += votes.weight[v];
	}
	ret[i] = sum * ((float)votes.all / weight);
}

/* ---- zeno --------------------------------------------------------------------------------------------------------------- */

__global__ void find_medians(struct votes votes, size_t n, const float *part, float *ret)
{
	const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= n)
		return;
	const int32_t *key = load(votes, n, i, part);
	const int32_t below = key_at(votes.count, key, (votes.count - 1) / 2);
	const int32_t above = key_at(votes.count, key, votes.count / 2);
	ret[i] = 0.5f * value_of(below) + 0.5f * value_of(above);
}

/* scores[votes][spans], sixteen threads for each. */
__global__ void sum_scores(
	struct votes votes, double rho, size_t n, const float *part, const float *median, double *scores)
{
	const size_t spans = (n + SKEP_ROBUST_SPAN - 1) / SKEP_ROBUST_SPAN;
	const size_t at = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) / LANES;
	const bool has = at < votes.count * spans;
	const uint32_t v = has ? (uint32_t)(at / spans) : 0;
	const size_t first = has ? at % spans * SKEP_ROBUST_SPAN : n;
	const size_t end = first + SKEP_ROBUST_SPAN < n ? first + SKEP_ROBUST_SPAN : n;
	double sum = 0;
	for (size_t i = first + threadIdx.x % LANES; i < end; i += LANES) {
		const double g = (double)(part[votes.rank[v] * n + i] / votes.weight[v]);
		sum += g * ((double)median[i] - rho * g);
	}
	for (int distance = LANES / 2; distance > 0; distance /= 2)
		sum += __shfl_xor_sync(ALL_LANES, sum, distance);
	if (has && threadIdx.x % LANES == 0)
		scores[at] = sum;
}

/* One block, a thread for each vote: kept[votes], those with the highest scores. */
__global__ void choose(uint32_t count, uint32_t stay, size_t spans, const double *scores, uint32_t *kept)
{
	double *sums = (double *)shared_memory(), sum = 0;
	const uint32_t vote = threadIdx.x;
	uint32_t ahead = 0;
	for (size_t s = 0; vote < count && s < spans; s++)
		sum += scores[vote * spans + s];
	sum = isfinite(sum) ? sum : -INFINITY;
	sums[vote] = sum;
	__syncthreads();
	for (uint32_t v = 0; v < count; v++)
		ahead += sums[v] > sum || (sums[v] == sum && v < vote);
	if (vote < count)
		kept[vote] = ahead < stay;
}

/* kept NULL: all. */
__global__ void add_up(struct votes votes, const uint32_t *kept, size_t n, const float *part, float *ret)
{
	const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= n)
		return;
	float sum = -0.0f;
	uint32_t weight = 0;
	for (uint32_t v = 0; v < votes.count; v++) {
		if (kept && !kept[v])
			continue;
		sum += part[votes.rank[v] * n + i];
		weight += (uint32_t)votes.weight[v];
	}
	ret[i] = sum * ((float)votes.all / (float)weight);
}

/* ---- asked for ---------------------------------------------------------------------------------------------------------- */

void skep_cuda_tell(struct skep_cuda_queue *queue, const struct skep_byzantine *byzantine, uint32_t round,
	uint64_t first, size_t n, const float *own, float *ret)
{
	const uint64_t seed = skep_mix(byzantine->seed ^ round);
	if (n > 0)
		launch(queue, "a lie", tell, dim3(blocks_for(n, COLUMNS)), dim3(COLUMNS), 0, (int)byzantine->attack,
			byzantine->scale, seed, first, n, own, ret);
}

static struct votes votes_of(uint32_t members, const uint32_t *weight)
{
	struct votes votes = {};
	for (uint32_t r = 0; r < members; r++) {
		if (weight[r] == 0)
			continue;
		votes.rank[votes.count] = (uint16_t)r;
		votes.weight[votes.count++] = (float)weight[r];
		votes.all += weight[r];
	}
	return votes;
}

/* Columns of a block that has room for their votes. */
static unsigned columns_for(const struct votes *votes)
{
	return votes->count <= 64 ? 128 : 32;
}

static void zeno(struct skep_cuda_queue *queue, const struct skep_robust *robust, const struct votes *votes,
	uint32_t out, size_t n, const float *part, float *room, float *ret)
{
	const unsigned columns = columns_for(votes), threads = blocks_for(votes->count, WARP) * WARP;
	const size_t spans = (n + SKEP_ROBUST_SPAN - 1) / SKEP_ROBUST_SPAN, scorers = votes->count * spans * LANES;
	double *scores = (double *)(void *)room;
	uint32_t *kept = (uint32_t *)(void *)(scores + votes->count * spans);
	launch(queue, "medians", find_medians, dim3(blocks_for(n, columns)), dim3(columns),
		votes->count * columns * sizeof(int32_t), *votes, n, part, ret);
	launch(queue, "scores", sum_scores, dim3(blocks_for(scorers, SCORERS)), dim3(SCORERS), 0, *votes, robust->rho,
		n, part, (const float *)ret, scores);
	launch(queue, "choosing", choose, dim3(1), dim3(threads), threads * sizeof(double), votes->count,
		votes->count - out, spans, (const double *)scores, kept);
	launch(queue, "sum of those kept", add_up, dim3(blocks_for(n, COLUMNS)), dim3(COLUMNS), 0, *votes,
		(const uint32_t *)kept, n, part, ret);
}

void skep_cuda_aggregate(struct skep_cuda_queue *queue, const struct skep_robust *robust, uint32_t members, size_t n,
	const float *part, const uint32_t *weight, float *room, float *ret)
{
	const struct votes votes = votes_of(members, weight);
	const uint32_t out = robust->method == SKEP_ROBUST_MEAN ? 0 : skep_robust_left_out(robust, votes.count);
	const unsigned columns = columns_for(&votes);
	if (n == 0)
		return;
	if (votes.count == 0)
		skep_cuda_clear(queue, ret, n * sizeof *ret);
	else if (out == 0)
		launch(queue, "sum of parts", add_up, dim3(blocks_for(n, COLUMNS)), dim3(COLUMNS), 0, votes,
			(const uint32_t *)NULL, n, part, ret);
	else if (robust->method == SKEP_ROBUST_TRIMMED_MEAN)
		launch(queue, "trimmed mean", trim, dim3(blocks_for(n, columns)), dim3(columns),
			votes.count * columns * sizeof(int32_t), votes, out, n, part, ret);
	else
		zeno(queue, robust, &votes, out, n, part, room, ret);
}
