/* SPDX-License-Identifier: Apache-2.0
 *
 * emulate.hpp - so much of CUDA as models/cuda/portable.cuh lists, in C++ on the CPU.
 *
 * A launch runs its blocks one after the other and the threads of a block as fibers, of which each runs until it waits for
 * others: at a barrier, or to hand a number around in its warp. What is kept true, so that tests see what a GPU would not
 * forgive:
 *   - A block's shared memory has exactly the bytes that were asked for, and is full of NaNs when the block begins.
 *   - The order of threads is forwards in one run and backwards in the next, if a test says so: what depends on it lacks a
 * barrier.
 *   - Threads that wait for others that never come end the program, with the kernel's name.
 *   - Work on a stream is done when somebody waits for the stream, not before: memory that is used again too early shows. A
 *     stream that follows another has the other do just so much as it follows. Where threads run backwards the other streams
 *     are as fast as they may be: what should have followed and does not shows too.
 *   - Memory of the device is not there for the host but in the midst of that work, and copies take only what they could
 * take on a
 *     GPU: memory of the device, or of the host and page-locked.
 */
#ifndef SKEP_TESTS_CUDA_EMULATE_H
#define SKEP_TESTS_CUDA_EMULATE_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <functional>

#define __global__ static
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(bytes) alignas(bytes)

/* ---- threads ------------------------------------------------------------------------------------------------------ */

struct dim3 {
	unsigned x, y, z;
	dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_)
	{
	}
};

struct emulate_thread {
	dim3 thread, block, block_size, grid_size;
};
const emulate_thread &emulate_self();
#define threadIdx (emulate_self().thread)
#define blockIdx (emulate_self().block)
#define blockDim (emulate_self().block_size)
#define gridDim (emulate_self().grid_size)

unsigned char *emulate_shared();
void emulate_barrier();
void emulate_warp_barrier();
/* Some bytes of the thread's own that its warp can see, of lane `lane`: those of this exchange. After the warp's barrier they
 * are those of the last one, which can be read until the thread comes to the next barrier. */
enum { EMULATE_MAILBOX_BYTES = 32 }; /* those of all lanes lie one after the other */
unsigned char *emulate_mailbox(unsigned lane);
unsigned char *emulate_mailbox_before(unsigned lane);
unsigned emulate_lane();
/* For tests, in C as well. Threads run backwards from now on; products with anything fused are refused; launches so far. */
extern "C" void emulate_backwards(bool backwards);
extern "C" void emulate_refuses(bool refuses);
extern "C" uint64_t emulate_launches(void);

static inline void __syncthreads()
{
	emulate_barrier();
}

static inline void __syncwarp()
{
	emulate_warp_barrier();
}

template <typename Number> static inline Number __shfl_sync(unsigned, Number value, int lane)
{
	Number other;
	memcpy(emulate_mailbox(emulate_lane()), &value, sizeof value);
	emulate_warp_barrier();
	memcpy(&other, emulate_mailbox_before((unsigned)lane % 32), sizeof other);
	return other;
}

template <typename Number> static inline Number __shfl_xor_sync(unsigned mask, Number value, int distance)
{
	return __shfl_sync(mask, value, (int)(emulate_lane() ^ (unsigned)distance));
}

/* ---- numbers ------------------------------------------------------------------------------------------------------ */

struct __nv_bfloat16 {
	uint16_t bits;
};
struct float2 {
	float x, y;
};
struct alignas(16) uint4 {
	unsigned x, y, z, w;
};

static inline float __uint_as_float(unsigned bits)
{
	float x;
	memcpy(&x, &bits, sizeof x);
	return x;
}
static inline unsigned __float_as_uint(float x)
{
	unsigned bits;
	memcpy(&bits, &x, sizeof bits);
	return bits;
}
static inline float __bfloat162float(__nv_bfloat16 x)
{
	return __uint_as_float((unsigned)x.bits << 16);
}
/* To nearest, ties to even; a NaN is the one of the hardware. */
static inline __nv_bfloat16 __float2bfloat16(float x)
{
	unsigned bits = __float_as_uint(x);
	if (x != x)
		return {0x7fff};
	return {(uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
/* The hardware has one NaN, whichever an operand is. */
static inline float emulate_result(float x)
{
	return x == x ? x : __uint_as_float(0x7fffffff);
}
static inline float __fadd_rn(float a, float b)
{
	return emulate_result(a + b);
}
static inline float __fmul_rn(float a, float b)
{
	return emulate_result(a * b);
}
static inline float __fdiv_rn(float a, float b)
{
	return emulate_result(a / b);
}
static inline float rsqrtf(float x)
{
	return 1 / sqrtf(x);
}

/* ---- the runtime: only what is called --------------------------------------------------------------------------------- */

enum cudaError_t {
	cudaSuccess = 0,
	cudaErrorInvalidValue = 1,
	cudaErrorMemoryAllocation = 2,
	cudaErrorInsufficientDriver = 35
};
enum cudaMemcpyKind { cudaMemcpyDefault = 4 };
enum { cudaHostAllocDefault = 0, cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2 };
typedef struct emulate_stream *cudaStream_t;
typedef struct emulate_event *cudaEvent_t;
struct cudaDeviceProp {
	char name[256];
	int major, minor;
	size_t totalGlobalMem;
};

void emulate_launch(cudaStream_t stream, const char *what, dim3 grid, dim3 block, size_t shared_bytes,
	std::function<void()> kernel);
/* Something of the host's to be done when the stream comes to it, with memory of the device at hand. */
void emulate_enqueue(cudaStream_t stream, std::function<void()> work);

const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetDeviceCount(int *ret);
cudaError_t cudaSetDevice(int ordinal);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *ret, int ordinal);
cudaError_t cudaMalloc(void **ret, size_t bytes);
cudaError_t cudaFree(void *memory);
cudaError_t cudaHostAlloc(void **ret, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void *memory);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *ret, unsigned flags);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *ret, unsigned flags);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaGetLastError();

/* ---- on the way to shared memory ---------------------------------------------------------------------------------- */

/* cp.async: what a thread has asked for is there when it has waited for it, and not before. */
void emulate_bring(void *to, const void *from, bool there);
void emulate_commit();
void emulate_await(int later);

/* ---- the matrix unit ---------------------------------------------------------------------------------------------- */

/* mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32: c[16][8] += a[16][16] b[16][8], each lane with its share (PTX ISA). */
static inline float emulate_half_of(const unsigned *words, unsigned half)
{
	return __uint_as_float(half ? words[0] & 0xffff0000u : words[0] << 16);
}

/* ldmatrix.x4, .trans if across: matrix m has the rows that lanes 8 m to 8 m + 7 name. */
static inline void emulate_ldmatrix(bool across, const __nv_bfloat16 *row, unsigned ret[4])
{
	const unsigned lane = emulate_lane(), group = lane / 4, pair = lane % 4 * 2;
	memcpy(emulate_mailbox(lane), row, 16);
	emulate_warp_barrier();
	for (unsigned m = 0; m < 4; m++)
		for (unsigned half = 0; half < 2; half++) {
			const unsigned i = across ? pair + half : group, j = across ? group : pair + half;
			memcpy((unsigned char *)&ret[m] + 2 * half, emulate_mailbox_before(8 * m + i) + 2 * j, 2);
		}
}

static inline void emulate_mma(float c[4], const unsigned a[4], const unsigned b[2])
{
	const unsigned lane = emulate_lane(), row = lane / 4, column = lane % 4 * 2;
	unsigned char *mine = emulate_mailbox(lane);
	memcpy(mine, a, 16);
	memcpy(mine + 16, b, 8);
	emulate_warp_barrier();
	const unsigned char *all = emulate_mailbox_before(0);
	for (unsigned e = 0; e < 4; e++) {
		const unsigned i = row + e / 2 * 8, j = column + e % 2;
		float sum = c[e];
		for (unsigned k = 0; k < 16; k++) {
			unsigned word;
			memcpy(&word, all + (i % 8 * 4 + k % 8 / 2) * EMULATE_MAILBOX_BYTES + 4 * (i / 8 + k / 8 * 2), 4);
			float x = emulate_half_of(&word, k % 2);
			memcpy(&word, all + (j * 4 + k % 8 / 2) * EMULATE_MAILBOX_BYTES + 16 + 4 * (k / 8), 4);
			sum += x * emulate_half_of(&word, k % 2);
		}
		c[e] = sum;
	}
}

#endif
