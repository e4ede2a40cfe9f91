/* SPDX-License-Identifier: Apache-2.0
 *
 * attention.h - attention with several heads, causal or bidirectional, of which groups may share one head of keys and values
 * (grouped queries: Ainslie et al., arXiv 2305.13245), and rotary positions (Su et al., arXiv 2104.09864).
 *
 * No matrix of sequence x sequence is ever in memory: a pass takes SKEP_ATTENTION_ROWS queries at a time with the keys
 * up to the last of them, or with all, so beside the operands it needs two strips of so many rows. For the backward pass one
 * number is kept for each query and head, the logarithm of the sum of its exponentials, from which the weights are recomputed
 * (Dao et al., arXiv 2205.14135). A thread pool shares out the heads of all samples; the backward pass keeps the heads
 * that share keys on one thread. Each thread has two strips of its own.
 */
#pragma once

#include <stdbool.h>

#include "base/process/thread_pool.h"
#include "models/layers/real.h"

enum { SKEP_ATTENTION_ROWS = 64 };

struct skep_attention {
	uint32_t samples, sequence;
	uint32_t heads, kv_heads;             /* the first is a multiple of the second */
	uint32_t width;                       /* numbers of one head */
	struct skep_thread_pool *thread_pool; /* shares the loops out; NULL: the calling thread does all */
	bool bidirectional;                   /* a query sees all keys, not those up to its own place alone */
};

/* Numbers of the two strips. `work` below has so many for each member of the thread pool. */
size_t skep_attention_work(const struct skep_attention *a);

/* qkv[tokens][(heads + 2 kv_heads) width]: of each token its queries, keys and values. out[tokens][heads width],
 * kept[samples][heads][sequence]. */
void skep_attention_forward(
	const struct skep_attention *a, const skep_real *qkv, skep_real *ret_out, skep_real *ret_kept, skep_real *work);

/* ret_gradient: at qkv. `gradient`: at out. */
void skep_attention_backward(const struct skep_attention *a, const skep_real *qkv, const skep_real *out,
	const skep_real *kept, const skep_real *gradient, skep_real *ret_gradient, skep_real *work);

/* cos and sin of position p times base^(-2 i / width), i < width / 2: ret[sequence][width / 2][2]. From the C library in
 * double precision. */
void skep_rotation_fill(uint32_t sequence, uint32_t width, double base, skep_real *ret);

/* Turns numbers i and i + width / 2 of every query and key as a pair, by their position; `back`: the other way round, which is
 * what gradients want. */
void skep_rotation_apply(const struct skep_attention *a, const skep_real *rotation, int back, skep_real *qkv);
