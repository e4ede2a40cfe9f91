/* SPDX-License-Identifier: Apache-2.0
 *
 * attention_back.cu - the backward pass of attention, by the formulas of models/layers/attention.c, in three kernels.
 * The first one sums dO O over each row. The second one computes dQ: a block takes 64 queries and goes over the keys.
 * The third one computes dK and dV: a block takes 64 keys and goes over the queries of all heads that share these keys.
 *
 * The second and the third kernel each recompute the weights from what the forward pass kept. So every sum has one
 * block that writes it, and no kernel needs atomics.
 */
#include "models/cuda/attention.cuh"

/* along[samples][heads][sequence]: a warp has a token of a head. */
__global__ void sum_along(struct skep_cuda_attention a, const bf16 *out, const bf16 *gradient, float *along)
{
	const size_t number = (size_t)blockIdx.x * (THREADS / WARP) + threadIdx.x / WARP;
	const size_t token = number / a.heads, head = number % a.heads, at = number * a.width;
	float sum = 0;
	if (token >= (size_t)a.samples * a.sequence)
		return;
	for (unsigned j = threadIdx.x % WARP; j < a.width; j += WARP)
		sum += wide(out[at + j]) * wide(gradient[at + j]);
	sum = warp_sum(sum);
	if (threadIdx.x % WARP == 0)
		along[(token / a.sequence * a.heads + head) * a.sequence + token % a.sequence] = sum;
}

/* c[16][8 N] = the rows `first` on of x times those of y. */
template <int D, int N>
__device__ static inline void cross(
	const struct share &own, const struct tile<D> &x, unsigned first, const struct tile<D> &y, float c[N][4])
{
#pragma unroll
	for (int n = 0; n < N; n++)
		c[n][0] = c[n][1] = c[n][2] = c[n][3] = 0;
#pragma unroll
	for (int d = 0; d < D / 16; d++) {
		unsigned a[4], b[4];
		x.as_a(own, first, d * 16, a);
#pragma unroll
		for (int n = 0; n < N; n += 2) {
			y.as_columns(own, n * 8, d * 16, b);
			multiply(c[n], a, b);
			multiply(c[n + 1], a, b + 2);
		}
	}
}

/* sum[16][D] += c[16][8 N], rounded, times the rows of y. */
template <int D, int N>
__device__ static inline void add_product(
	const struct share &own, const float c[N][4], const struct tile<D> &y, float sum[D / 8][4])
{
#pragma unroll
	for (int k = 0; k < N / 2; k++) {
		const float *low = c[2 * k], *high = c[2 * k + 1];
		const unsigned a[4] = {
			join(low[0], low[1]), join(low[2], low[3]), join(high[0], high[1]), join(high[2], high[3])};
#pragma unroll
		for (int n = 0; n < D / 8; n += 2) {
			unsigned b[4];
			y.as_rows(own, k * 16, n * 8, b);
			multiply(sum[n], a, b);
			multiply(sum[n + 1], a, b + 2);
		}
	}
}

/* ---- queries -------------------------------------------------------------------------------------------------------- */

template <int D>
__global__ void __launch_bounds__(THREADS) back_to_queries(struct skep_cuda_attention a, const bf16 *qkv,
	const float *kept, const bf16 *gradient, const float *along, bf16 *ret)
{
	const struct tile<D> q = tile_at<D>(shared_memory());
	const struct tile<D> g = tile_at<D>(q.at + ROWS * q.row);
	struct tile<D> k = tile_at<D>(g.at + ROWS * g.row), next_k = tile_at<D>(k.at + 2 * ROWS * k.row);
	struct tile<D> v = tile_at<D>(k.at + ROWS * k.row), next_v = tile_at<D>(next_k.at + ROWS * k.row);
	const struct head_at h = find_head(a, blockIdx.z, blockIdx.y);
	const struct share own = own_share();
	const unsigned first = (gridDim.x - 1 - blockIdx.x) * ROWS, mine = threadIdx.x / WARP * 16;
	const float root = 1 / sqrtf((float)a.width), scale = LOG2_E * root, scales[2] = {root, root};
	float dq[D / 8][4] = {}, s[ROWS / 8][4], dp[ROWS / 8][4], log_sum[2] = {0, 0}, mean[2] = {0, 0};
	load_tile(q, ROWS, rows_left(a, first), a.width, qkv + h.q + first * h.row, h.row);
	load_tile(g, ROWS, rows_left(a, first), a.width, gradient + h.out + first * h.out_row, h.out_row);
	load_keys(a, h, qkv, 0, k, v);
	for (int half = 0; half < 2; half++) {
		const unsigned i = first + mine + own.group + 8 * half;
		if (i < a.sequence) {
			log_sum[half] = kept[h.kept + i] * LOG2_E;
			mean[half] = along[h.kept + i];
		}
	}
	for (unsigned key = 0; key < keys_end(a, first); key += ROWS) {
		load_keys(a, h, qkv, key + ROWS < keys_end(a, first) ? key + ROWS : a.sequence, next_k, next_v);
		await<1>();
		__syncthreads();
		cross<D, ROWS / 8>(own, q, mine, k, s);
		cross<D, ROWS / 8>(own, g, mine, v, dp);
#pragma unroll
		for (int n = 0; n < ROWS / 8; n++)
#pragma unroll
			for (int e = 0; e < 4; e++) {
				const unsigned i = first + mine + own.group + e / 2 * 8;
				const unsigned j = key + n * 8 + own.pair + e % 2;
				const bool seen = sees(a, i, j) && i < a.sequence;
				const float p = seen ? exp2f(s[n][e] * scale - log_sum[e / 2]) : 0;
				s[n][e] = p * (dp[n][e] - mean[e / 2]);
			}
		add_product<D, ROWS / 8>(own, s, k, dq);
		__syncthreads();
		swap(k, next_k);
		swap(v, next_v);
	}
	store_rows<D>(own, dq, mine, rows_left(a, first), a.width, scales, ret + h.q + first * h.row, h.row);
}

/* ---- keys and values ------------------------------------------------------------------------------------------------ */

/* Wide heads leave fewer registers for scores: so many queries at a time. */
template <int D> struct queries {
	static const int rows = D > 64 ? 32 : 64;
	static const size_t tiles = 2 * rows * tile<D>::row, bytes = tiles * sizeof(bf16) + 2 * rows * sizeof(float);
	struct tile<D> q, g; /* g: the gradients at their outputs */
	float *log_sum, *mean;
};

template <int D> __device__ static inline struct queries<D> queries_at(void *memory) {
	bf16 *at = (bf16 *)memory;
	float *sums = (float *)(at + queries<D>::tiles);
	return {{at}, {at + queries<D>::tiles / 2}, sums, sums + queries<D>::rows};
}

/* What a block goes over: all queries that see its keys, those from its first key on or all, of one head after the other. */
struct walk {
	unsigned first, steps; /* of a head */
};

template <int D>
__device__ static inline void load_queries(const struct skep_cuda_attention &a, const struct walk &w, unsigned nth,
	const bf16 *qkv, const float *kept, const bf16 *gradient, const float *along, const struct queries<D> &to)
{
	const unsigned rows = queries<D>::rows, heads = a.heads / a.kv_heads, n = nth / w.steps;
	if (n < heads) {
		const struct head_at h = find_head(a, blockIdx.z, blockIdx.y * heads + n);
		const unsigned query = w.first + nth % w.steps * rows, there = rows_left(a, query);
		load_tile(to.q, rows, there, a.width, qkv + h.q + query * h.row, h.row);
		load_tile(to.g, rows, there, a.width, gradient + h.out + query * h.out_row, h.out_row);
		for (unsigned i = threadIdx.x; i < rows; i += THREADS) {
			to.log_sum[i] = i < there ? kept[h.kept + query + i] * LOG2_E : 0;
			to.mean[i] = i < there ? along[h.kept + query + i] : 0;
		}
	}
	commit();
}

template <int D>
__global__ void __launch_bounds__(THREADS) back_to_keys(struct skep_cuda_attention a, const bf16 *qkv,
	const float *kept, const bf16 *gradient, const float *along, bf16 *ret)
{
	const int Q = queries<D>::rows;
	const struct tile<D> k = tile_at<D>(shared_memory());
	const struct tile<D> v = tile_at<D>(k.at + ROWS * k.row);
	struct queries<D> at = queries_at<D>(v.at + ROWS * v.row),
			  next = queries_at<D>((unsigned char *)at.q.at + queries<D>::bytes);
	const unsigned heads = a.heads / a.kv_heads, first = blockIdx.x * ROWS, mine = threadIdx.x / WARP * 16;
	const unsigned begin = a.bidirectional ? 0 : first;
	const struct walk w = {begin, (rows_left(a, begin) + Q - 1) / Q};
	const struct share own = own_share();
	const float root = 1 / sqrtf((float)a.width), scale = LOG2_E * root;
	const float one[2] = {1, 1}, roots[2] = {root, root};
	float dk[D / 8][4] = {}, dv[D / 8][4] = {}, s[Q / 8][4], dp[Q / 8][4];
	const struct head_at h = find_head(a, blockIdx.z, blockIdx.y * heads);
	load_tile(k, ROWS, rows_left(a, first), a.width, qkv + h.k + first * h.row, h.row);
	load_tile(v, ROWS, rows_left(a, first), a.width, qkv + h.v + first * h.row, h.row);
	load_queries<D>(a, w, 0, qkv, kept, gradient, along, at);
	for (unsigned nth = 0; nth < heads * w.steps; nth++) {
		const unsigned query = begin + nth % w.steps * Q, there = rows_left(a, query);
		load_queries<D>(a, w, nth + 1, qkv, kept, gradient, along, next);
		await<1>();
		__syncthreads();
		cross<D, Q / 8>(own, k, mine, at.q, s);
		cross<D, Q / 8>(own, v, mine, at.g, dp);
#pragma unroll
		for (int c = 0; c < Q / 8; c++)
#pragma unroll
			for (int e = 0; e < 4; e++) {
				const unsigned j = first + mine + own.group + e / 2 * 8;
				const unsigned i = c * 8 + own.pair + e % 2;
				const bool seen = sees(a, query + i, j) && i < there;
				s[c][e] = seen ? exp2f(s[c][e] * scale - at.log_sum[i]) : 0;
				dp[c][e] = s[c][e] * (dp[c][e] - at.mean[i]);
			}
		add_product<D, Q / 8>(own, s, at.g, dv);
		add_product<D, Q / 8>(own, dp, at.q, dk);
		__syncthreads();
		const struct queries<D> used = at;
		at = next;
		next = used;
	}
	store_rows<D>(own, dk, mine, rows_left(a, first), a.width, roots, ret + h.k + first * h.row, h.row);
	store_rows<D>(own, dv, mine, rows_left(a, first), a.width, one, ret + h.v + first * h.row, h.row);
}

void skep_cuda_attention_backward(struct skep_cuda_queue *queue, const struct skep_cuda_attention *a,
	const skep_bf16 *qkv, const skep_bf16 *out, const float *kept, const skep_bf16 *gradient,
	skep_bf16 *ret_gradient, float *along)
{
	const size_t rows = (size_t)a->samples * a->sequence * a->heads;
	const dim3 to_queries(blocks_for(a->sequence, ROWS), a->heads, a->samples);
	const dim3 to_keys(blocks_for(a->sequence, ROWS), a->kv_heads, a->samples);
	launch(queue, "attention's sums", sum_along, dim3(blocks_for(rows, THREADS / WARP)), dim3(THREADS), 0, *a,
		halves(out), halves(gradient), along);
#define BACK(D)                                                                                                        \
	do {                                                                                                           \
		launch(queue, "attention back to queries", back_to_queries<D>, to_queries, dim3(THREADS),              \
			6 * ROWS * sizeof(bf16) * tile<D>::row, *a, halves(qkv), kept, halves(gradient),               \
			(const float *)along, halves(ret_gradient));                                                   \
		launch(queue, "attention back to keys", back_to_keys<D>, to_keys, dim3(THREADS),                       \
			2 * ROWS * sizeof(bf16) * tile<D>::row + 2 * queries<D>::bytes, *a, halves(qkv), kept,         \
			halves(gradient), (const float *)along, halves(ret_gradient));                                 \
	} while (0)
	FOR_WIDTH(a->width, BACK);
}
