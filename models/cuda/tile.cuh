/* SPDX-License-Identifier: Apache-2.0
 *
 * tile.cuh - tiles of bf16 numbers in shared memory, and products of them on the matrix unit: c[16][8] += a[16][16] b[16][8] by a
 * warp, of which each thread holds a share. With group = lane / 4 and pair = 2 (lane % 4), a thread has (PTX ISA, mma.m16n8k16)
 *
 *     of a: rows group and group + 8, columns pair, pair + 1, pair + 8, pair + 9;
 *     of b: rows pair, pair + 1, pair + 8, pair + 9 of column group;
 *     of c: rows group and group + 8, columns pair and pair + 1.
 *
 * So what two neighbours c hold side by side is, rounded, one a: weights of attention go into the next product as they are.
 * A row of a tile is 8 numbers longer than it needs to be: then the 32 threads that read a share hit 32 banks.
 */
#ifndef SKEP_MODELS_CUDA_TILE_CUH
#define SKEP_MODELS_CUDA_TILE_CUH

#include "models/cuda/portable.cuh"

#define TILE_PAD 8

__device__ static inline void multiply(float c[4], const unsigned a[4], const unsigned b[2])
{
#ifdef __CUDACC__
	asm volatile(
		"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
		"{%0, %1, %2, %3};\n"
		: "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
		: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
	emulate_mma(c, a, b);
#endif
}

__device__ static inline unsigned bits_of(bf16 x)
{
	return *reinterpret_cast<const uint16_t *>(&x);
}

/* Two numbers side by side, the first in the low half. */
__device__ static inline unsigned join(bf16 low, bf16 high)
{
	return bits_of(low) | bits_of(high) << 16;
}

__device__ static inline unsigned join(float low, float high)
{
	return join(narrow(low), narrow(high));
}

struct share { /* of this thread */
	unsigned group, pair;
};

__device__ static inline struct share own_share()
{
	const unsigned lane = threadIdx.x % WARP;
	return {lane / 4, lane % 4 * 2};
}

template <int D> struct tile {
	static const int row = D + TILE_PAD;
	bf16 *at; /* [rows][row] */

	__device__ unsigned word(unsigned i, unsigned j) const
	{
		return *reinterpret_cast<const unsigned *>(at + i * row + j);
	}
	/* Its rows first .. first + 15 and columns column .. column + 15 as an a. */
	__device__ void as_a(const struct share &own, unsigned first, unsigned column, unsigned ret[4]) const
	{
		const unsigned i = first + own.group, j = column + own.pair;
		ret[0] = word(i, j);
		ret[1] = word(i + 8, j);
		ret[2] = word(i, j + 8);
		ret[3] = word(i + 8, j + 8);
	}
	/* As a b of which these are the columns: rows first .. first + 7, columns column .. column + 15. */
	__device__ void as_columns(const struct share &own, unsigned first, unsigned column, unsigned ret[2]) const
	{
		ret[0] = word(first + own.group, column + own.pair);
		ret[1] = word(first + own.group, column + own.pair + 8);
	}
	/* As a b: rows first .. first + 15, columns column .. column + 7. */
	__device__ void as_rows(const struct share &own, unsigned first, unsigned column, unsigned ret[2]) const
	{
		const bf16 *from = at + (first + own.pair) * row + column + own.group;
		ret[0] = join(from[0], from[row]);
		ret[1] = join(from[8 * row], from[9 * row]);
	}
};

template <int D> __device__ static inline struct tile<D> tile_at(void *memory) {
	return {(bf16 *)memory};
}

/* Rows of `width` numbers, `step` apart, of which `there` are there; the rest of the tile is 0. By all threads of the block. */
template <int D>
__device__ static inline void load_tile(
	const struct tile<D> &t, unsigned rows, unsigned there, unsigned width, const bf16 *from, size_t step)
{
	if (width % 8 == 0) { /* then rows begin at multiples of 16 bytes */
		for (unsigned i = threadIdx.x; i < rows * (D / 8); i += blockDim.x) {
			const unsigned r = i / (D / 8), j = i % (D / 8) * 8;
			uint4 eight = {0, 0, 0, 0};
			if (r < there && j < width)
				eight = *reinterpret_cast<const uint4 *>(from + r * step + j);
			*reinterpret_cast<uint4 *>(t.at + r * t.row + j) = eight;
		}
		return;
	}
	for (unsigned i = threadIdx.x; i < rows * D; i += blockDim.x) {
		const unsigned r = i / D, j = i % D;
		t.at[r * t.row + j] = r < there && j < width ? from[r * step + j] : narrow(0);
	}
}

/* c[16][D], scaled, to rows first .. of `width` numbers, of which those below `there` are there. By a warp. */
template <int D>
__device__ static inline void store_rows(const struct share &own, const float c[D / 8][4], unsigned first,
	unsigned there, unsigned width, const float scale[2], bf16 *to, size_t step)
{
#pragma unroll
	for (unsigned half = 0; half < 2; half++) {
		const unsigned r = first + own.group + 8 * half;
		if (r >= there)
			continue;
#pragma unroll
		for (unsigned n = 0; n < D / 8; n++) {
			const unsigned j = n * 8 + own.pair;
			bf16 *at = to + r * step + j;
			const float low = c[n][2 * half] * scale[half], high = c[n][2 * half + 1] * scale[half];
			if (width % 2 == 0 && j < width)
				*reinterpret_cast<unsigned *>(at) = join(low, high);
			else if (j < width)
				at[0] = narrow(low);
			if (width % 2 != 0 && j + 1 < width)
				at[1] = narrow(high);
		}
	}
}

#endif
