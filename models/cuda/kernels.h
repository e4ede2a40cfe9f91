/* SPDX-License-Identifier: Apache-2.0
 *
 * kernels.h - what the GPU is asked to do, one C function per kernel or pair of kernels: each puts work on a queue and returns at
 * once. Arrays are of the device's side but where it says otherwise. Numbers that travel between kernels of a block are bf16,
 * sums along the residual, parameters, their gradients and moments are fp32; all sums are made in fp32, in an order that the
 * shapes alone decide: the same input gives the same bits.
 *
 * A token is a row. Sizes are of arrays as they lie; `adds` says that a result is added to what is there.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/codec.h"

/* Bits of a bf16 number. */
typedef struct {
	uint16_t bits;
} skep_bf16;

#ifdef __cplusplus
extern "C" {
#endif

struct skep_cuda_queue;

enum { SKEP_CUDA_SLABS = 64 };
/* Numbers of the device's side that a queue needs for sums over rows of up to so many columns. */
static inline size_t skep_cuda_partial_floats(size_t columns)
{
	return 2 * (size_t)SKEP_CUDA_SLABS * columns;
}

/* ---- norm.cu: LayerNorm, and with bias NULL RMSNorm; norm.h says what is kept ------------------------------------- */

struct skep_cuda_norm {
	size_t rows, width;
	const float *weight, *bias; /* [width] */
	float epsilon;
};
/* ret_kept[rows][2], ret_y[rows][width] */
void skep_cuda_norm_forward(struct skep_cuda_queue *queue, const struct skep_cuda_norm *norm, const float *x,
	float *ret_kept, skep_bf16 *ret_y);
void skep_cuda_norm_apply(struct skep_cuda_queue *queue, const struct skep_cuda_norm *norm, const float *x,
	const float *kept, skep_bf16 *ret_y);
/* sum[rows][width] += the gradient at x, or, if fresh, is it; ret_sum is the same in bf16. Adds to the gradients of weight and
 * bias; NULL: not wanted. */
void skep_cuda_norm_backward(struct skep_cuda_queue *queue, const struct skep_cuda_norm *norm, const float *x,
	const float *kept, const skep_bf16 *y_gradient, float *weight_gradient, float *bias_gradient, bool fresh,
	float *sum, skep_bf16 *ret_sum);

/* The same as skep_cuda_norm_forward(), and what it makes in fp32 too; ret_y NULL: in fp32 alone. */
void skep_cuda_norm_forward_wide(struct skep_cuda_queue *queue, const struct skep_cuda_norm *norm, const float *x,
	float *ret_kept, skep_bf16 *ret_y, float *ret_wide);
/* gradient[rows][width], at y, becomes that at x; ret_sum is the same in bf16. Adds to the gradients of weight and bias; NULL:
 * not wanted. */
void skep_cuda_norm_backward_wide(struct skep_cuda_queue *queue, const struct skep_cuda_norm *norm, const float *x,
	const float *kept, float *gradient, float *weight_gradient, float *bias_gradient, skep_bf16 *ret_sum);

/* ---- feed.cu: element by element, and sums over rows --------------------------------------------------------------- */

void skep_cuda_narrow(struct skep_cuda_queue *queue, size_t n, const float *x, skep_bf16 *ret);
/* sum[n] += x[n] */
void skep_cuda_accumulate(struct skep_cuda_queue *queue, size_t n, const float *x, float *sum);
/* sum[width] += the rows of x[rows][width]. */
void skep_cuda_add_rows(struct skep_cuda_queue *queue, size_t rows, size_t width, const skep_bf16 *x, float *sum);
void skep_cuda_add_wide_rows(struct skep_cuda_queue *queue, size_t rows, size_t width, const float *x, float *sum);
/* The same where a row is followed by the next one `stride` numbers on. */
void skep_cuda_add_strided_rows(
	struct skep_cuda_queue *queue, size_t rows, size_t width, size_t stride, const skep_bf16 *x, float *sum);
/* GELU by erf; the backward pass may write where the gradient is. */
void skep_cuda_gelu_erf_forward(struct skep_cuda_queue *queue, size_t n, const skep_bf16 *in, skep_bf16 *ret);
void skep_cuda_gelu_erf_backward(
	struct skep_cuda_queue *queue, size_t n, const skep_bf16 *in, const skep_bf16 *gradient, skep_bf16 *ret);
void skep_cuda_wide_gelu_erf_forward(struct skep_cuda_queue *queue, size_t n, const float *in, float *ret);
void skep_cuda_wide_gelu_erf_backward(
	struct skep_cuda_queue *queue, size_t n, const float *in, const float *gradient, float *ret);
/* GELU in its tanh form. `in` may be `ret`. */
void skep_cuda_gelu_forward(struct skep_cuda_queue *queue, size_t n, const skep_bf16 *in, skep_bf16 *ret);
void skep_cuda_gelu_backward(
	struct skep_cuda_queue *queue, size_t n, const skep_bf16 *in, const skep_bf16 *gradient, skep_bf16 *ret);
/* in[rows][2 width]: gates, then what they are for. */
void skep_cuda_swiglu_forward(
	struct skep_cuda_queue *queue, size_t rows, size_t width, const skep_bf16 *in, skep_bf16 *ret);
void skep_cuda_swiglu_backward(struct skep_cuda_queue *queue, size_t rows, size_t width, const skep_bf16 *in,
	const skep_bf16 *gradient, skep_bf16 *ret);
/* y[rows][width] += bias[width] */
void skep_cuda_add_bias(struct skep_cuda_queue *queue, size_t rows, size_t width, const skep_bf16 *bias, skep_bf16 *y);
void skep_cuda_add_wide_bias(struct skep_cuda_queue *queue, size_t rows, size_t width, const float *bias, float *y);

/* ---- attention.cu, attention_back.cu ------------------------------------------------------------------------------ */

enum { SKEP_CUDA_HEAD_MAX = 128 }; /* the widest head */
struct skep_cuda_attention {       /* as struct skep_attention */
	uint32_t samples, sequence, heads, kv_heads, width;
	bool bidirectional;
};
/* qkv[tokens][(heads + 2 kv_heads) width], out[tokens][heads width], kept[samples][heads][sequence]: attention.h. */
void skep_cuda_attention_forward(struct skep_cuda_queue *queue, const struct skep_cuda_attention *a,
	const skep_bf16 *qkv, skep_bf16 *ret_out, float *ret_kept);
/* along[samples][heads][sequence] is used up. */
void skep_cuda_attention_backward(struct skep_cuda_queue *queue, const struct skep_cuda_attention *a,
	const skep_bf16 *qkv, const skep_bf16 *out, const float *kept, const skep_bf16 *gradient,
	skep_bf16 *ret_gradient, float *along);
/* rotation[sequence][width / 2][2] */
void skep_cuda_rotate(struct skep_cuda_queue *queue, const struct skep_cuda_attention *a, const float *rotation,
	bool back, skep_bf16 *qkv);

/* ---- ends.cu: where a model begins and ends ----------------------------------------------------------------------- */

/* id[samples][sequence + 1], ret[samples * sequence][width]; positions NULL: there are none. */
void skep_cuda_embed(struct skep_cuda_queue *queue, uint32_t samples, uint32_t sequence, size_t width,
	const int32_t *id, const float *table, const float *positions, float *ret);

/* Tokens by id: *count ids, at most `most`, and of each the tokens order[start[g]] .. order[start[g + 1] - 1] that have it. */
struct skep_cuda_groups {
	uint32_t most;
	const int32_t *count, *id, *start, *order;
};
/* table[id] += the gradients of the tokens that have it, in the order given; positions as well, unless NULL. */
void skep_cuda_embed_backward(struct skep_cuda_queue *queue, uint32_t samples, uint32_t sequence, size_t width,
	const struct skep_cuda_groups *groups, const float *gradient, float *table, float *positions);

/* ret[rows][width] = rows `place` of x; and back: rows `place` of ret[..][width] = x[rows][width], no two of them the same. */
void skep_cuda_gather(
	struct skep_cuda_queue *queue, size_t rows, size_t width, const int32_t *place, const float *x, skep_bf16 *ret);
void skep_cuda_scatter(
	struct skep_cuda_queue *queue, size_t rows, size_t width, const int32_t *place, const float *x, float *ret);

/* score[samples * sequence][stride] become the gradient of the mean cross-entropy; of the stride, a multiple of eight,
 * `vocabulary` are used, and the rest become 0. ret_loss[samples * sequence] in nats. id[samples][sequence + 1]: a token's
 * target is the id that follows. */
void skep_cuda_surprise(struct skep_cuda_queue *queue, uint32_t samples, uint32_t sequence, uint32_t vocabulary,
	size_t stride, const int32_t *id, skep_bf16 *score, float *ret_loss);

/* ---- optimizer.cu ------------------------------------------------------------------------------------------------- */

enum skep_cuda_rule { SKEP_CUDA_SGD, SKEP_CUDA_NESTEROV, SKEP_CUDA_ADAMW, SKEP_CUDA_LAMB, SKEP_CUDA_DELAYED_NESTEROV };
struct skep_cuda_step { /* of one tensor: struct skep_tensor_step, in numbers */
	enum skep_cuda_rule rule;
	float rate, decay, divisor, unbias_mean, unbias_square;
	float momentum, beta1, beta2, epsilon;
	float turns; /* delayed Nesterov: how many, */
	bool last;   /* and is it the last of them */
	size_t n;
	const float *sum;
	float *w, *moment[2];
	skep_bf16 *narrowed; /* of w */
};
/* Needs skep_cuda_norms_bytes() at `norms` for LAMB. */
size_t skep_cuda_norms_bytes(void);
void skep_cuda_step(struct skep_cuda_queue *queue, const struct skep_cuda_step *step, double *norms);

/* struct skep_arrays has the formulas. */
void skep_cuda_weigh(struct skep_cuda_queue *queue, size_t n, const float *w, const float *v, float weight, float *ret);
void skep_cuda_mix(struct skep_cuda_queue *queue, size_t n, float mixing, const float *w, float *v);
void skep_cuda_shift(struct skep_cuda_queue *queue, size_t n, const float *from, const float *to, float *v);
void skep_cuda_blend(
	struct skep_cuda_queue *queue, size_t n, const float *a, float p, const float *b, float q, float *ret);

/* ret[0] = the sum of the squares of n numbers; the rest of skep_cuda_norms_bytes() is used up. */
void skep_cuda_squares(struct skep_cuda_queue *queue, size_t n, const float *x, double *ret);
/* The same of a hash of each number and its place: arrays of the same bits have the same sum, on any GPU, and others another
 * one but by a chance of 2^-64. A number's place is told up to 2^32. */
void skep_cuda_sum_bits(struct skep_cuda_queue *queue, size_t n, const float *x, uint64_t *ret);
/* The sum of those products a[i] b[i] that are above 0, or of the others, without their sign. */
void skep_cuda_products(
	struct skep_cuda_queue *queue, size_t n, const float *a, const float *b, bool above, double *ret);

/* ---- codec.cu: codec.h to the bit; `encoded` may be of the host's side ---------------------- */

void skep_cuda_encode(struct skep_cuda_queue *queue, enum skep_codec codec, uint32_t block, size_t n,
	const float *value, void *ret_encoded);
void skep_cuda_decode(struct skep_cuda_queue *queue, enum skep_codec codec, uint32_t block, size_t n,
	const void *encoded, float *ret_value);
void skep_cuda_add(struct skep_cuda_queue *queue, enum skep_codec codec, uint32_t block, size_t n, const float *value,
	void *encoded, float *ret_sum);
void skep_cuda_fold(struct skep_cuda_queue *queue, enum skep_codec codec, uint32_t block, size_t n, const void *encoded,
	float *sum);

/* ---- robust.cu: byzantine.h and robust.h, to the bit ----------------------------------------------------------------- */

struct skep_byzantine;
void skep_cuda_tell(struct skep_cuda_queue *queue, const struct skep_byzantine *byzantine, uint32_t round,
	uint64_t first, size_t n, const float *own, float *ret);

/* part[members][n] and ret[n]; `room` is for skep_robust_scratch(members, n) numbers. */
struct skep_robust;
void skep_cuda_aggregate(struct skep_cuda_queue *queue, const struct skep_robust *robust, uint32_t members, size_t n,
	const float *part, const uint32_t *weight, float *room, float *ret);

#ifdef __cplusplus
}
#endif
