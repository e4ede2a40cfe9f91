/* SPDX-License-Identifier: Apache-2.0
 *
 * portable.cuh - what kernels are written in: CUDA C++ under nvcc, and under any other compiler C++ with <emulate.hpp>,
 * which runs the threads of a block one after the other on the CPU. Kernels use no more of CUDA than is here, so that each
 * of them is run by tests on machines without a GPU. The warp is 32 threads wide.
 *
 * Shared memory is what the launch asks for and nothing else (shared_memory()), so that its bounds can be checked.
 */
#pragma once

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#else
#include <emulate.hpp>
#endif

#include <stddef.h>
#include <stdint.h>

#include "models/cuda/kernels.h"
#include "models/cuda/product.h"
#include "models/cuda/runtime.h"

typedef __nv_bfloat16 bf16;

struct skep_cuda_queue {
	cudaStream_t stream;
	cudaEvent_t event; /* of who follows it, until it is asked to be followed again */
	cudaError_t error; /* the first one since the last wait */
	const char *what;  /* was asked for then */
	int ordinal;
	float *partial;        /* of sums over rows: skep_cuda_partial_floats() of the widest; the stage's */
	size_t partial_floats; /* of it */
	struct skep_lt *lt;    /* products (lt.cu); NULL on a queue that has none */
};

#define WARP 32
#define ALL_LANES 0xffffffffu

static inline void note_error(struct skep_cuda_queue *queue, cudaError_t error, const char *what)
{
	if (error == cudaSuccess || queue->error != cudaSuccess)
		return;
	queue->error = error;
	queue->what = what;
}

static inline unsigned blocks_for(size_t n, unsigned each)
{
	return (unsigned)((n + each - 1) / each);
}

/* ---- launching ------------------------------------------------------------------------------------------------ */

#ifdef __CUDACC__

__device__ static inline unsigned char *shared_memory()
{
	extern __shared__ __align__(16) unsigned char shared[];
	return shared;
}

template <typename... Parameters, typename... Arguments>
static void launch(struct skep_cuda_queue *queue, const char *what, void (*kernel)(Parameters...), dim3 grid,
	dim3 block, size_t shared_bytes, Arguments... argument)
{
	if (shared_bytes > 48 * 1024)
		note_error(queue,
			cudaFuncSetAttribute(
				(const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes),
			what);
	kernel<<<grid, block, shared_bytes, queue->stream>>>(argument...);
	note_error(queue, cudaGetLastError(), what);
}

#else

static inline unsigned char *shared_memory()
{
	return emulate_shared();
}

template <typename... Parameters, typename... Arguments>
static void launch(struct skep_cuda_queue *queue, const char *what, void (*kernel)(Parameters...), dim3 grid,
	dim3 block, size_t shared_bytes, Arguments... argument)
{
	emulate_launch(queue->stream, what, grid, block, shared_bytes, [=] { kernel(argument...); });
}

#endif

/* ---- within a warp and a block ---------------------------------------------------------------------------------- */

__device__ static inline float warp_sum(float x)
{
	for (int distance = WARP / 2; distance > 0; distance /= 2)
		x += __shfl_xor_sync(ALL_LANES, x, distance);
	return x;
}

__device__ static inline double warp_sum(double x)
{
	for (int distance = WARP / 2; distance > 0; distance /= 2)
		x += __shfl_xor_sync(ALL_LANES, x, distance);
	return x;
}

__device__ static inline unsigned long long warp_sum(unsigned long long x)
{
	for (int distance = WARP / 2; distance > 0; distance /= 2)
		x += __shfl_xor_sync(ALL_LANES, x, distance);
	return x;
}

__device__ static inline float warp_most(float x)
{
	for (int distance = WARP / 2; distance > 0; distance /= 2)
		x = fmaxf(x, __shfl_xor_sync(ALL_LANES, x, distance));
	return x;
}

/* Of all threads of the block, whose number is a multiple of 32; everybody has it. `room` is for 32 numbers and free again
 * afterwards. */
template <typename Number> __device__ static inline Number block_sum(Number x, Number *room)
{
	const unsigned warps = blockDim.x / WARP, warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
	x = warp_sum(x);
	if (lane == 0)
		room[warp] = x;
	__syncthreads();
	x = warp_sum(lane < warps ? room[lane] : Number(0));
	__syncthreads();
	return x;
}

__device__ static inline float block_most(float x, float *room)
{
	const unsigned warps = blockDim.x / WARP, warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
	x = warp_most(x);
	if (lane == 0)
		room[warp] = x;
	__syncthreads();
	x = warp_most(room[lane < warps ? lane : 0]);
	__syncthreads();
	return x;
}

/* ---- numbers ---------------------------------------------------------------------------------------------------- */

__device__ static inline float wide(bf16 x)
{
	return __bfloat162float(x);
}

__device__ static inline float wide(float x)
{
	return x;
}

__device__ static inline bf16 narrow(float x)
{
	return __float2bfloat16(x);
}

__device__ static inline unsigned bits_of(bf16 x)
{
	return *reinterpret_cast<const uint16_t *>(&x);
}

/* Two numbers side by side, the first in the low half. */
__device__ static inline unsigned join(float low, float high)
{
	return bits_of(narrow(low)) | bits_of(narrow(high)) << 16;
}

__host__ __device__ static inline bf16 *halves(skep_bf16 *x)
{
	return reinterpret_cast<bf16 *>(x);
}

__host__ __device__ static inline const bf16 *halves(const skep_bf16 *x)
{
	return reinterpret_cast<const bf16 *>(x);
}
