/* SPDX-License-Identifier: Apache-2.0
 *
 * attention.cuh - for the kernels of attention: where the parts of a head lie, and which template has room for it.
 */
#pragma once

#include "models/cuda/tile.cuh"

#define ROWS 64 /* queries or keys of a block, 16 for each warp */
#define THREADS 128
#define LOG2_E 1.44269504088896341f

struct head_at {
	size_t row, out_row; /* from one token to the next */
	size_t q, k, v, out; /* of the sample's first token */
	size_t kept;         /* of the log-sums */
};

__device__ static inline struct head_at find_head(const struct skep_cuda_attention &a, unsigned sample, unsigned head)
{
	struct head_at h;
	const size_t group = head / (a.heads / a.kv_heads);
	h.row = (size_t)(a.heads + 2 * a.kv_heads) * a.width;
	h.out_row = (size_t)a.heads * a.width;
	h.q = sample * a.sequence * h.row + (size_t)head * a.width;
	h.k = sample * a.sequence * h.row + (a.heads + group) * a.width;
	h.v = h.k + (size_t)a.kv_heads * a.width;
	h.out = sample * a.sequence * h.out_row + (size_t)head * a.width;
	h.kept = ((size_t)sample * a.heads + head) * a.sequence;
	return h;
}

__device__ static inline unsigned rows_left(const struct skep_cuda_attention &a, unsigned first)
{
	return first < a.sequence ? a.sequence - first : 0;
}

/* The key behind the last one that queries `first` on see, or so many that are not there. */
__device__ static inline unsigned keys_end(const struct skep_cuda_attention &a, unsigned first)
{
	return a.bidirectional ? a.sequence : first + ROWS;
}

__device__ static inline bool sees(const struct skep_cuda_attention &a, unsigned query, unsigned key)
{
	return a.bidirectional ? key < a.sequence : key <= query;
}

/* Keys and values `key` on of a head; none where that is behind its last one. */
template <int D>
__device__ static inline void load_keys(const struct skep_cuda_attention &a, const struct head_at &h, const bf16 *qkv,
	unsigned key, const struct tile<D> &k, const struct tile<D> &v)
{
	const unsigned there = rows_left(a, key);
	if (there > 0) {
		load_tile(k, ROWS, there, a.width, qkv + h.k + key * h.row, h.row);
		load_tile(v, ROWS, there, a.width, qkv + h.v + key * h.row, h.row);
	}
	commit();
}

template <int D> __device__ static inline void swap(struct tile<D> &x, struct tile<D> &y)
{
	bf16 *at = x.at;
	x.at = y.at;
	y.at = at;
}

/* Calls `with` of the narrowest D that has room for a head. */
#define FOR_WIDTH(width, with)                                                                                         \
	do {                                                                                                           \
		if (width <= 16)                                                                                       \
			with(16);                                                                                      \
		else if (width <= 32)                                                                                  \
			with(32);                                                                                      \
		else if (width <= 64)                                                                                  \
			with(64);                                                                                      \
		else                                                                                                   \
			with(128);                                                                                     \
	} while (0)
