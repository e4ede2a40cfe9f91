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
 * A row of a tile is 8 numbers longer than it needs to be: then eight rows of eight numbers, which the warp reads at once
 * (ldmatrix), lie in 32 different banks.
 *
 * Tiles are loaded without waiting (cp.async): a thread commits what it has asked for, goes on with other work, waits until it
 * is there, and then meets the others at a barrier.
 */
#pragma once

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

/* Four matrices of 8 x 8: each lane names a row, of the first matrix those of lanes 0 to 7, and gets of each matrix the word
 * of row lane / 4 that begins in column 2 (lane % 4), or, `across`, of the transposed matrix. */
template <bool across> __device__ static inline void read_matrices(const bf16 *row, unsigned ret[4])
{
#ifdef __CUDACC__
	const unsigned at = (unsigned)__cvta_generic_to_shared(row);
	if (across)
		asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
			     : "=r"(ret[0]), "=r"(ret[1]), "=r"(ret[2]), "=r"(ret[3])
			     : "r"(at)
			     : "memory");
	else
		asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
			     : "=r"(ret[0]), "=r"(ret[1]), "=r"(ret[2]), "=r"(ret[3])
			     : "r"(at)
			     : "memory");
#else
	emulate_ldmatrix(across, row, ret);
#endif
}

/* 16 bytes to shared memory, or zeros. */
__device__ static inline void bring(bf16 *to, const bf16 *from, bool there)
{
#ifdef __CUDACC__
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"((unsigned)__cvta_generic_to_shared(to)),
		     "l"(from), "r"(there ? 16 : 0)
		     : "memory");
#else
	emulate_bring(to, from, there);
#endif
}

/* What this thread has asked for since the last time belongs together. */
__device__ static inline void commit()
{
#ifdef __CUDACC__
	asm volatile("cp.async.commit_group;\n" ::: "memory");
#else
	emulate_commit();
#endif
}

/* Until all but the `later` last commits of this thread are there. */
template <int later> __device__ static inline void await()
{
#ifdef __CUDACC__
	asm volatile("cp.async.wait_group %0;\n" ::"n"(later) : "memory");
#else
	emulate_await(later);
#endif
}

struct share { /* of this thread; and of which matrix it names which row */
	unsigned group, pair, matrix, row;
};

__device__ static inline struct share own_share()
{
	const unsigned lane = threadIdx.x % WARP;
	return {lane / 4, lane % 4 * 2, lane / 8, lane % 8};
}

template <int D> struct tile {
	static const int row = D + TILE_PAD;
	bf16 *at; /* [rows][row] */

	/* Its rows first .. first + 15 and columns column .. column + 15 as an a. */
	__device__ void as_a(const struct share &own, unsigned first, unsigned column, unsigned ret[4]) const
	{
		const unsigned i = first + own.row + own.matrix % 2 * 8, j = column + own.matrix / 2 * 8;
		read_matrices<false>(at + i * row + j, ret);
	}
	/* As two b, one behind the other, of which these are the columns: rows first .. first + 7 and first + 8 .. first + 15,
	 * columns column .. column + 15. */
	__device__ void as_columns(const struct share &own, unsigned first, unsigned column, unsigned ret[4]) const
	{
		const unsigned i = first + own.row + own.matrix / 2 * 8, j = column + own.matrix % 2 * 8;
		read_matrices<false>(at + i * row + j, ret);
	}
	/* As two b: rows first .. first + 15, columns column .. column + 7 and column + 8 .. column + 15. */
	__device__ void as_rows(const struct share &own, unsigned first, unsigned column, unsigned ret[4]) const
	{
		const unsigned i = first + own.row + own.matrix % 2 * 8, j = column + own.matrix / 2 * 8;
		read_matrices<true>(at + i * row + j, ret);
	}
};

template <int D> __device__ static inline struct tile<D> tile_at(void *memory) {
	return {(bf16 *)memory};
}

/* Rows of `width` numbers, `step` apart, of which `there` are there; the rest of the tile is 0. By all threads of the block,
 * each of which then commits. */
template <int D>
__device__ static inline void load_tile(
	const struct tile<D> &t, unsigned rows, unsigned there, unsigned width, const bf16 *from, size_t step)
{
	if (width % 8 == 0) { /* then rows begin at multiples of 16 bytes */
		for (unsigned i = threadIdx.x; i < rows * (D / 8); i += blockDim.x) {
			const unsigned r = i / (D / 8), j = i % (D / 8) * 8;
			const bool has = r < there && j < width;
			bring(t.at + r * t.row + j, has ? from + r * step + j : from, has);
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
