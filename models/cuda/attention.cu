/* SPDX-License-Identifier: Apache-2.0
 *
 * attention.cu - attention forwards (Dao et al., arXiv 2205.14135 and 2307.08691). A block has 64 queries of a head and goes
 * over the keys up to the last of them, or over all where it is bidirectional, 64 at a time; a warp has 16 of the queries. Scores and weights stay in
 * registers; the sum so far is scaled down whenever a larger score is met. What is kept of a query is the logarithm of its
 * sum.
 */
#include "models/cuda/attention.cuh"

#define KEYS (ROWS / 8) /* columns of scores, in eights */

struct softmax { /* of two rows: group and group + 8 */
	float most[2], sum[2];
};

/* Scores become weights against the largest so far; returns by what everything before is to be multiplied. Scores are in units
 * of ln 2. */
__device__ static inline void soften(struct softmax *soft, float s[KEYS][4], float ret_factor[2])
{
#pragma unroll
	for (int half = 0; half < 2; half++) {
		float most = soft->most[half], sum = 0;
#pragma unroll
		for (int n = 0; n < KEYS; n++)
			most = fmaxf(most, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
		most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, 1));
		most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, 2));
#pragma unroll
		for (int n = 0; n < KEYS; n++) {
			s[n][2 * half] = exp2f(s[n][2 * half] - most);
			s[n][2 * half + 1] = exp2f(s[n][2 * half + 1] - most);
			sum += s[n][2 * half] + s[n][2 * half + 1];
		}
		ret_factor[half] = exp2f(soft->most[half] - most);
		soft->sum[half] = soft->sum[half] * ret_factor[half] + sum;
		soft->most[half] = most;
	}
}

template <int D>
__device__ static inline void score(
	const struct share &own, const unsigned q[D / 16][4], const struct tile<D> &k, float s[KEYS][4])
{
#pragma unroll
	for (int n = 0; n < KEYS; n += 2) {
#pragma unroll
		for (int e = 0; e < 4; e++)
			s[n][e] = s[n + 1][e] = 0;
#pragma unroll
		for (int d = 0; d < D / 16; d++) {
			unsigned b[4];
			k.as_columns(own, n * 8, d * 16, b);
			multiply(s[n], q[d], b);
			multiply(s[n + 1], q[d], b + 2);
		}
	}
}

/* Units of ln 2, and no query sees a later key, or one that is not there: of queries `first` on only the keys from there on can be
 * later. */
__device__ static inline void scale_and_mask(const struct share &own, const struct skep_cuda_attention &a,
	unsigned first, unsigned mine, unsigned key, float scale, float s[KEYS][4])
{
	const unsigned query = first + mine;
	if (a.bidirectional ? key + ROWS <= a.sequence : key < first) {
#pragma unroll
		for (int n = 0; n < KEYS; n++)
#pragma unroll
			for (int e = 0; e < 4; e++)
				s[n][e] *= scale;
		return;
	}
#pragma unroll
	for (int n = 0; n < KEYS; n++)
#pragma unroll
		for (int e = 0; e < 4; e++) {
			const unsigned i = query + own.group + e / 2 * 8, j = key + n * 8 + own.pair + e % 2;
			s[n][e] = sees(a, i, j) ? s[n][e] * scale : -INFINITY;
		}
}

template <int D>
__device__ static inline void add_values(const struct share &own, const float weight[KEYS][4], const struct tile<D> &v,
	const float factor[2], float o[D / 8][4])
{
#pragma unroll
	for (int n = 0; n < D / 8; n++)
#pragma unroll
		for (int e = 0; e < 4; e++)
			o[n][e] *= factor[e / 2];
#pragma unroll
	for (int k = 0; k < KEYS / 2; k++) {
		const float *low = weight[2 * k], *high = weight[2 * k + 1];
		const unsigned a[4] = {
			join(low[0], low[1]), join(low[2], low[3]), join(high[0], high[1]), join(high[2], high[3])};
#pragma unroll
		for (int n = 0; n < D / 8; n += 2) {
			unsigned b[4];
			v.as_rows(own, k * 16, n * 8, b);
			multiply(o[n], a, b);
			multiply(o[n + 1], a, b + 2);
		}
	}
}

template <int D>
__global__ void __launch_bounds__(THREADS) attend(struct skep_cuda_attention a, const bf16 *qkv, bf16 *out, float *kept)
{
	const struct tile<D> q = tile_at<D>(shared_memory());
	struct tile<D> k = tile_at<D>(q.at + ROWS * q.row), next_k = tile_at<D>(k.at + 2 * ROWS * k.row);
	struct tile<D> v = tile_at<D>(k.at + ROWS * k.row), next_v = tile_at<D>(next_k.at + ROWS * k.row);
	const struct head_at h = find_head(a, blockIdx.z, blockIdx.y);
	const struct share own = own_share();
	const unsigned first = (gridDim.x - 1 - blockIdx.x) * ROWS; /* those with most keys begin first */
	const unsigned mine = threadIdx.x / WARP * 16;
	const float scale = LOG2_E / sqrtf((float)a.width);
	struct softmax soft = {{-INFINITY, -INFINITY}, {0, 0}};
	float o[D / 8][4] = {}, s[KEYS][4], factor[2];
	unsigned own_q[D / 16][4];
	load_tile(q, ROWS, rows_left(a, first), a.width, qkv + h.q + first * h.row, h.row);
	commit();
	load_keys(a, h, qkv, 0, k, v);
	await<1>();
	__syncthreads();
#pragma unroll
	for (int d = 0; d < D / 16; d++)
		q.as_a(own, mine, d * 16, own_q[d]);
	for (unsigned key = 0; key < keys_end(a, first); key += ROWS) {
		load_keys(a, h, qkv, key + ROWS < keys_end(a, first) ? key + ROWS : a.sequence, next_k, next_v);
		await<1>();
		__syncthreads();
		score<D>(own, own_q, k, s);
		scale_and_mask(own, a, first, mine, key, scale, s);
		soften(&soft, s, factor);
		add_values<D>(own, s, v, factor, o);
		__syncthreads();
		swap(k, next_k);
		swap(v, next_v);
	}
#pragma unroll
	for (int half = 0; half < 2; half++) {
		float sum = soft.sum[half];
		sum += __shfl_xor_sync(ALL_LANES, sum, 1);
		sum += __shfl_xor_sync(ALL_LANES, sum, 2);
		factor[half] = 1 / sum;
		const unsigned i = mine + own.group + 8 * half;
		if (own.pair == 0 && i < rows_left(a, first))
			kept[h.kept + first + i] = logf(sum) + soft.most[half] / LOG2_E;
	}
	store_rows<D>(own, o, mine, rows_left(a, first), a.width, factor, out + h.out + first * h.out_row, h.out_row);
}

void skep_cuda_attention_forward(struct skep_cuda_queue *queue, const struct skep_cuda_attention *a,
	const skep_bf16 *qkv, skep_bf16 *ret_out, float *ret_kept)
{
	const dim3 grid(blocks_for(a->sequence, ROWS), a->heads, a->samples);
#define ATTEND(D)                                                                                                      \
	launch(queue, "attention", attend<D>, grid, dim3(THREADS), 5 * ROWS * sizeof(bf16) * tile<D>::row, *a,         \
		halves(qkv), halves(ret_out), ret_kept)
	FOR_WIDTH(a->width, ATTEND);
}
