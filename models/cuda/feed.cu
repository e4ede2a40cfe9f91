/* SPDX-License-Identifier: Apache-2.0
 *
 * feed.cu - what is done element by element: what bends in the feed-forward part (the formulas are those of
 * models/layers/feed.c), biases, rounding to bf16, and rotary positions. A thread has one element, or one pair of them.
 */
#include "models/cuda/portable.cuh"

#define THREADS 256
#define GELU_A 0.79788456080286536f /* sqrt(2 / pi) */
#define GELU_B 0.044715f
#define ROOT_HALF 0.70710678118654752f
#define DENSITY 0.39894228040143268f /* 1 / sqrt(2 pi) */

/* Number of the thread among all: more than 2^31 of them are possible. */
__device__ static inline size_t own()
{
	return (size_t)blockIdx.x * blockDim.x + threadIdx.x;
}

__global__ void narrow_all(size_t n, const float *x, bf16 *y)
{
	const size_t i = own();
	if (i < n)
		y[i] = narrow(x[i]);
}

__global__ void accumulate_all(size_t n, const float *x, float *sum)
{
	const size_t i = own();
	if (i < n)
		sum[i] += x[i];
}

__global__ void gelu_forward(size_t n, const bf16 *in, bf16 *out)
{
	const size_t i = own();
	if (i >= n)
		return;
	const float x = wide(in[i]);
	out[i] = narrow(0.5f * x * (1 + tanhf(x * (GELU_A + GELU_A * GELU_B * x * x))));
}

__global__ void gelu_backward(size_t n, const bf16 *in, const bf16 *gradient, bf16 *out)
{
	const size_t i = own();
	if (i >= n)
		return;
	const float x = wide(in[i]), t = tanhf(x * (GELU_A + GELU_A * GELU_B * x * x));
	const float slope = 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * (GELU_A + 3 * GELU_A * GELU_B * x * x);
	out[i] = narrow(wide(gradient[i]) * slope);
}

__device__ static inline void put(float x, bf16 *to)
{
	*to = narrow(x);
}

__device__ static inline void put(float x, float *to)
{
	*to = x;
}

template <typename Number> __global__ void gelu_erf_forward(size_t n, const Number *in, Number *out)
{
	const size_t i = own();
	if (i >= n)
		return;
	const float x = wide(in[i]);
	put(0.5f * x * (1 + erff(x * ROOT_HALF)), out + i);
}

template <typename Number>
__global__ void gelu_erf_backward(size_t n, const Number *in, const Number *gradient, Number *out)
{
	const size_t i = own();
	if (i >= n)
		return;
	const float x = wide(in[i]), below = 0.5f * (1 + erff(x * ROOT_HALF));
	put(wide(gradient[i]) * (below + x * DENSITY * expf(-0.5f * x * x)), out + i);
}

__global__ void swiglu_forward(size_t n, size_t width, const bf16 *in, bf16 *out)
{
	const size_t i = own();
	if (i >= n)
		return;
	const size_t at = i / width * 2 * width + i % width;
	const float gate = wide(in[at]);
	out[i] = narrow(gate / (1 + expf(-gate)) * wide(in[at + width]));
}

__global__ void swiglu_backward(size_t n, size_t width, const bf16 *in, const bf16 *gradient, bf16 *out)
{
	const size_t i = own();
	if (i >= n)
		return;
	const size_t at = i / width * 2 * width + i % width;
	const float gate = wide(in[at]), up = wide(in[at + width]), g = wide(gradient[i]);
	const float s = 1 / (1 + expf(-gate)), bent = gate * s;
	out[at] = narrow(g * up * (s + bent * (1 - s)));
	out[at + width] = narrow(g * bent);
}

__global__ void add_bias(size_t n, size_t width, const bf16 *bias, bf16 *y)
{
	const size_t i = own();
	if (i < n)
		y[i] = narrow(wide(y[i]) + wide(bias[i % width]));
}

__global__ void add_wide_bias(size_t n, size_t width, const float *bias, float *y)
{
	const size_t i = own();
	if (i < n)
		y[i] += bias[i % width];
}

/* Numbers i and i + width / 2 of each of the first `turned` heads of a token; a thread has one pair. */
__global__ void rotate(size_t n, uint32_t sequence, uint32_t turned, uint32_t heads, uint32_t width,
	const float *rotation, float sign, bf16 *qkv)
{
	const size_t i = own(), half = width / 2, token = i / (turned * half), pair = i % half;
	if (i >= n)
		return;
	const float *turn = rotation + token % sequence * width + 2 * pair;
	bf16 *x = qkv + (token * heads + i / half % turned) * width + pair;
	const float c = turn[0], s = sign * turn[1], a = wide(x[0]), b = wide(x[half]);
	x[0] = narrow(a * c - b * s);
	x[half] = narrow(b * c + a * s);
}

/* ---- asked for ------------------------------------------------------------------------------------------------------ */

#define EACH(queue, what, kernel, n, ...)                                                                              \
	launch(queue, what, kernel, dim3(blocks_for(n, THREADS)), dim3(THREADS), 0, n, __VA_ARGS__)

void skep_cuda_narrow(struct skep_cuda_queue *queue, size_t n, const float *x, skep_bf16 *ret)
{
	EACH(queue, "rounding", narrow_all, n, x, halves(ret));
}

void skep_cuda_accumulate(struct skep_cuda_queue *queue, size_t n, const float *x, float *sum)
{
	EACH(queue, "accumulating", accumulate_all, n, x, sum);
}

void skep_cuda_gelu_forward(struct skep_cuda_queue *queue, size_t n, const skep_bf16 *in, skep_bf16 *ret)
{
	EACH(queue, "gelu", gelu_forward, n, halves(in), halves(ret));
}

void skep_cuda_gelu_backward(
	struct skep_cuda_queue *queue, size_t n, const skep_bf16 *in, const skep_bf16 *gradient, skep_bf16 *ret)
{
	EACH(queue, "gelu backwards", gelu_backward, n, halves(in), halves(gradient), halves(ret));
}

void skep_cuda_gelu_erf_forward(struct skep_cuda_queue *queue, size_t n, const skep_bf16 *in, skep_bf16 *ret)
{
	EACH(queue, "gelu", gelu_erf_forward<bf16>, n, halves(in), halves(ret));
}

void skep_cuda_gelu_erf_backward(
	struct skep_cuda_queue *queue, size_t n, const skep_bf16 *in, const skep_bf16 *gradient, skep_bf16 *ret)
{
	EACH(queue, "gelu backwards", gelu_erf_backward<bf16>, n, halves(in), halves(gradient), halves(ret));
}

void skep_cuda_wide_gelu_erf_forward(struct skep_cuda_queue *queue, size_t n, const float *in, float *ret)
{
	EACH(queue, "gelu", gelu_erf_forward<float>, n, in, ret);
}

void skep_cuda_wide_gelu_erf_backward(
	struct skep_cuda_queue *queue, size_t n, const float *in, const float *gradient, float *ret)
{
	EACH(queue, "gelu backwards", gelu_erf_backward<float>, n, in, gradient, ret);
}

void skep_cuda_swiglu_forward(
	struct skep_cuda_queue *queue, size_t rows, size_t width, const skep_bf16 *in, skep_bf16 *ret)
{
	EACH(queue, "swiglu", swiglu_forward, rows * width, width, halves(in), halves(ret));
}

void skep_cuda_swiglu_backward(struct skep_cuda_queue *queue, size_t rows, size_t width, const skep_bf16 *in,
	const skep_bf16 *gradient, skep_bf16 *ret)
{
	EACH(queue, "swiglu backwards", swiglu_backward, rows * width, width, halves(in), halves(gradient),
		halves(ret));
}

void skep_cuda_add_bias(struct skep_cuda_queue *queue, size_t rows, size_t width, const skep_bf16 *bias, skep_bf16 *y)
{
	EACH(queue, "bias", add_bias, rows * width, width, halves(bias), halves(y));
}

void skep_cuda_add_wide_bias(struct skep_cuda_queue *queue, size_t rows, size_t width, const float *bias, float *y)
{
	EACH(queue, "bias", add_wide_bias, rows * width, width, bias, y);
}

void skep_cuda_rotate(struct skep_cuda_queue *queue, const struct skep_cuda_attention *a, const float *rotation,
	bool back, skep_bf16 *qkv)
{
	const uint32_t turned = a->heads + a->kv_heads;
	const size_t pairs = (size_t)a->samples * a->sequence * turned * (a->width / 2);
	EACH(queue, "rotation", rotate, pairs, a->sequence, turned, turned + a->kv_heads, a->width, rotation,
		back ? -1.0f : 1.0f, halves(qkv));
}
