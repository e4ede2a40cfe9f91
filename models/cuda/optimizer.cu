/* SPDX-License-Identifier: Apache-2.0
 *
 * optimizer.cu - one step of one tensor, by the formulas of models/update/optimizer.c; what periodic sync does to parameters
 * (models/update/inner.c, models/update/outer_step.c); the gradient of a tied table; and sums of squares. Parameters stay in fp32; what they round
 * to in bf16 is written beside them, for the products. LAMB needs two norms before it steps: blocks write partial sums, and every
 * block that steps adds these up in the same order.
 *
 * But for LAMB's norms all has the bits of the CPU's loops: the order of operations is theirs, and this file is compiled
 * without contraction (meson.build), as they are.
 */
#include "models/cuda/portable.cuh"

#define THREADS 256
#define PARTS 128      /* blocks that share the norms of LAMB */
#define SUM_PARTS 1024 /* blocks at most that share a sum: so many keep all of a large GPU waiting for memory */
enum { AHEAD = 8 };

/* As Nesterov's, spread over turns. */
__device__ static inline void go_by_turns(const struct skep_cuda_step &s, size_t i)
{
	const float g = s.sum[i] / s.divisor, buffer = s.moment[1][i] + g;
	float w = s.w[i] - s.rate * (g / s.turns);
	if (s.last) {
		const float velocity = s.moment[0][i] = s.momentum * s.moment[0][i] + buffer / s.turns;
		w -= s.rate * (s.momentum * velocity);
	}
	s.moment[1][i] = s.last ? 0 : buffer;
	s.w[i] = w;
	halves(s.narrowed)[i] = narrow(w);
}

/* How far to go, as a multiple of the rate. Moves the moments on. */
__device__ static inline float direction(const struct skep_cuda_step &s, size_t i)
{
	const float g = s.sum[i] / s.divisor, decay = s.decay * s.w[i];
	if (s.rule == SKEP_CUDA_SGD || s.rule == SKEP_CUDA_NESTEROV) {
		const float velocity = s.moment[0][i] = s.momentum * s.moment[0][i] + g;
		return (s.rule == SKEP_CUDA_SGD ? velocity : g + s.momentum * velocity) + decay;
	}
	const float mean = s.moment[0][i] = s.beta1 * s.moment[0][i] + (1 - s.beta1) * g;
	const float square = s.moment[1][i] = s.beta2 * s.moment[1][i] + (1 - s.beta2) * (g * g);
	return mean * s.unbias_mean / (sqrtf(square * s.unbias_square) + s.epsilon) + decay;
}

/* The same from moments that have been moved on. */
__device__ static inline float direction_again(const struct skep_cuda_step &s, size_t i)
{
	const float root = sqrtf(s.moment[1][i] * s.unbias_square) + s.epsilon;
	return s.moment[0][i] * s.unbias_mean / root + s.decay * s.w[i];
}

__device__ static inline void go(const struct skep_cuda_step &s, size_t i, float rate, float way)
{
	const float w = s.w[i] - rate * way;
	s.w[i] = w;
	halves(s.narrowed)[i] = narrow(w);
}

__global__ void step_plainly(struct skep_cuda_step s)
{
	const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
	if (i < s.n && s.rule == SKEP_CUDA_DELAYED_NESTEROV)
		go_by_turns(s, i);
	else if (i < s.n)
		go(s, i, s.rate, direction(s, i));
}

__global__ void weigh_all(size_t n, const float *w, const float *v, float weight, float *ret)
{
	const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		ret[i] = (w[i] - v[i]) * weight;
}

__global__ void mix_all(size_t n, float mixing, const float *w, float *v)
{
	const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
	const float rest = 1 - mixing;
	if (i < n)
		v[i] = mixing * v[i] + rest * w[i];
}

__global__ void shift_all(size_t n, const float *from, const float *to, float *v)
{
	const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		v[i] += to[i] - from[i];
}

/* `ret` may be one of them. */
__global__ void blend_all(size_t n, const float *a, float p, const float *b, float q, float *ret)
{
	const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= n)
		return;
	const float x = p > 0 ? a[i] / p : 0, y = q > 0 ? b[i] / q : 0;
	ret[i] = x + y;
}

/* norms[PARTS][2]: of the squares of parameters, and of where they would go. */
__global__ void measure(struct skep_cuda_step s, double *norms)
{
	double *room = (double *)shared_memory(), parameters = 0, ways = 0;
	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < s.n; i += (size_t)PARTS * blockDim.x) {
		const float way = direction(s, i);
		parameters += (double)s.w[i] * s.w[i];
		ways += (double)way * way;
	}
	parameters = block_sum(parameters, room);
	ways = block_sum(ways, room);
	if (threadIdx.x == 0) {
		norms[2 * blockIdx.x] = parameters;
		norms[2 * blockIdx.x + 1] = ways;
	}
}

__global__ void step_scaled(struct skep_cuda_step s, const double *norms)
{
	double *room = (double *)shared_memory();
	const bool has = threadIdx.x < PARTS;
	const double parameters = block_sum(has ? norms[2 * threadIdx.x] : 0.0, room);
	const double ways = block_sum(has ? norms[2 * threadIdx.x + 1] : 0.0, room);
	const float scale = parameters > 0 && ways > 0 ? (float)sqrt(parameters / ways) : 1;
	const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
	if (i < s.n)
		go(s, i, s.rate * scale, direction_again(s, i));
}

/* Threads of the whole grid. */
__device__ static inline size_t stride(void)
{
	return (size_t)gridDim.x * blockDim.x;
}

/* What the blocks of a sum read they read many numbers ahead: else they would wait for memory most of the time. */
__global__ void square_parts(size_t n, const float *x, double *parts)
{
	double *room = (double *)shared_memory(), sum = 0;
#pragma unroll AHEAD
	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride())
		sum += (double)x[i] * x[i];
	sum = block_sum(sum, room);
	if (threadIdx.x == 0)
		parts[blockIdx.x] = sum;
}

/* What is no number is not left out. */
__global__ void product_parts(size_t n, const float *a, const float *b, bool above, double *parts)
{
	double *room = (double *)shared_memory(), sum = 0;
	const double sign = above ? 1 : -1;
	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride()) {
		const double product = sign * (double)a[i] * b[i];
		if (!(product <= 0))
			sum += product;
	}
	sum = block_sum(sum, room);
	if (threadIdx.x == 0)
		parts[blockIdx.x] = sum;
}

/* Splitmix64 (core/random.h) of the bits of a number and of its place. */
__device__ static inline unsigned long long mix(uint64_t z)
{
	z += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

__global__ void bit_parts(size_t n, const float *x, unsigned long long *parts)
{
	unsigned long long *room = (unsigned long long *)shared_memory(), sum = 0;
#pragma unroll AHEAD
	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride())
		sum += mix((uint64_t)i << 32 | __float_as_uint(x[i]));
	sum = block_sum(sum, room);
	if (threadIdx.x == 0)
		parts[blockIdx.x] = sum;
}

template <typename Number> __global__ void sum_parts(unsigned count, Number *parts)
{
	Number *room = (Number *)shared_memory(), sum = 0;
	for (unsigned i = threadIdx.x; i < count; i += blockDim.x)
		sum += parts[i];
	sum = block_sum(sum, room);
	if (threadIdx.x == 0)
		parts[0] = sum;
}

/* ---- asked for ------------------------------------------------------------------------------------------------------ */

size_t skep_cuda_norms_bytes(void)
{
	static_assert(2 * PARTS <= SUM_PARTS, "the norms of LAMB have room where sums have it");
	return SUM_PARTS * sizeof(double);
}

static unsigned sum_blocks(size_t n)
{
	const unsigned blocks = blocks_for(n, THREADS);
	return blocks < SUM_PARTS ? blocks : SUM_PARTS;
}

void skep_cuda_step(struct skep_cuda_queue *queue, const struct skep_cuda_step *step, double *norms)
{
	const dim3 grid(blocks_for(step->n, THREADS)), block(THREADS);
	if (step->rule != SKEP_CUDA_LAMB) {
		launch(queue, "step", step_plainly, grid, block, 0, *step);
		return;
	}
	launch(queue, "norms of a step", measure, dim3(PARTS), block, WARP * sizeof(double), *step, norms);
	launch(queue, "scaled step", step_scaled, grid, block, WARP * sizeof(double), *step, norms);
}

void skep_cuda_squares(struct skep_cuda_queue *queue, size_t n, const float *x, double *ret)
{
	const unsigned blocks = sum_blocks(n);
	launch(queue, "squares", square_parts, dim3(blocks), dim3(THREADS), WARP * sizeof(double), n, x, ret);
	launch(queue, "sum of squares", sum_parts<double>, dim3(1), dim3(THREADS), WARP * sizeof(double), blocks, ret);
}

void skep_cuda_sum_bits(struct skep_cuda_queue *queue, size_t n, const float *x, uint64_t *ret)
{
	unsigned long long *parts = (unsigned long long *)ret;
	const unsigned blocks = sum_blocks(n);
	launch(queue, "bits", bit_parts, dim3(blocks), dim3(THREADS), WARP * sizeof *parts, n, x, parts);
	launch(queue, "sum of bits", sum_parts<unsigned long long>, dim3(1), dim3(THREADS), WARP * sizeof *parts,
		blocks, parts);
}

void skep_cuda_products(
	struct skep_cuda_queue *queue, size_t n, const float *a, const float *b, bool above, double *ret)
{
	const dim3 block(THREADS);
	const unsigned blocks = sum_blocks(n);
	launch(queue, "products of sums", product_parts, dim3(blocks), block, WARP * sizeof(double), n, a, b, above,
		ret);
	launch(queue, "sum of products", sum_parts<double>, dim3(1), block, WARP * sizeof(double), blocks, ret);
}

void skep_cuda_weigh(struct skep_cuda_queue *queue, size_t n, const float *w, const float *v, float weight, float *ret)
{
	launch(queue, "pseudo-gradient", weigh_all, dim3(blocks_for(n, THREADS)), dim3(THREADS), 0, n, w, v, weight,
		ret);
}

void skep_cuda_mix(struct skep_cuda_queue *queue, size_t n, float mixing, const float *w, float *v)
{
	launch(queue, "mixing", mix_all, dim3(blocks_for(n, THREADS)), dim3(THREADS), 0, n, mixing, w, v);
}

void skep_cuda_shift(struct skep_cuda_queue *queue, size_t n, const float *from, const float *to, float *v)
{
	launch(queue, "shifting", shift_all, dim3(blocks_for(n, THREADS)), dim3(THREADS), 0, n, from, to, v);
}

void skep_cuda_blend(
	struct skep_cuda_queue *queue, size_t n, const float *a, float p, const float *b, float q, float *ret)
{
	launch(queue, "gradient of a tied table", blend_all, dim3(blocks_for(n, THREADS)), dim3(THREADS), 0, n, a, p, b,
		q, ret);
}
