/* SPDX-License-Identifier: Apache-2.0
 *
 * lane.h - what the CUDA back end keeps: for each lane its queue and the buffers through which data goes between host
 * and device, for each stage the memory that only this back end needs beside the arrays of struct skep_stage.
 *
 * The passes of layers are written once more for the GPU, for the types of layers that transformers have. Parameters,
 * and the numbers at a layer's entry and exit, have the same layout as on the CPU; what a layer keeps between its
 * passes has another one.
 */
#pragma once

#include "models/cuda/kernels.h"
#include "models/cuda/product.h"
#include "models/cuda/runtime.h"
#include "models/device/backend.h"

struct skep_cuda_lane {
	struct skep_cuda_queue *queue;
	struct skep_cuda_queue *down;   /* copies gradients to the host beside passes; NULL: they stay on the device */
	struct skep_cuda_lane *other;   /* the other lane of the same device */
	const struct skep_stage *stage; /* the stage that this device steps */
	int32_t *count;                 /* [vocabulary] tokens by id, while inputs are drawn */
	int32_t *inputs, *targets;      /* on the host, on their way to the device */
	float *losses;                  /* [predicted], on the host */
	size_t predicted;               /* tokens of a microbatch that have a loss */
	double *norms, *sum; /* a sum of squares: skep_cuda_norms_bytes() on the device, one number on the host */
	size_t tokens;       /* tokens of a microbatch */
	double *loss;        /* receives the mean of the losses; NULL: the operation reports no loss */
};

/* Products over the vocabulary take up to so many rows more than its table has, for the matrix unit wants multiples of eight:
 * what lies behind the table is read too, and either not looked at or multiplied by 0. */
enum { SKEP_CUDA_ROWS_BEHIND = 7 };

struct skep_cuda_own {              /* memory of one stage; all but `host` lies on the device */
	skep_bf16 *narrowed;        /* [versions, and inner ones][stride]: the parameters, rounded */
	skep_bf16 *narrow_gradient; /* [tokens][hidden]: what scratch[0] holds, rounded */
	skep_bf16 *normed;          /* [tokens][hidden]: outputs of norms, or their gradients */
	skep_bf16 *at_up, *at_bent; /* backwards through a feed-forward part */
	skep_bf16 *at_qkv, *at_out; /* and through attention, in the same memory */
	float *along;               /* the same */
	float *partial;             /* of sums over rows */
	size_t partial_floats;
	void *host;       /* what is offloaded: moments, and accumulators and result; NULL: nothing */
	float *down[2];   /* gradients of a layer on their way there; NULL: they stay */
	double *norms;    /* of LAMB */
	float *losses;    /* [tokens] */
	int32_t *targets; /* skep_cuda_targets(): [samples][sequence + 1], or of a bert what layer_bert.c puts there */
	float *at_head;   /* of a bert, [predicted][hidden]: gradients within the head */
};

struct skep_cuda_pass { /* one operation on one layer */
	struct skep_cuda_queue *queue;
	const struct skep_cuda_own *own;
	struct skep_pass of;       /* the CPU's: parameters and gradients, here of the device's side */
	const skep_bf16 *narrowed; /* the layer's parameters, rounded */
	const skep_bf16 *shared;   /* of a tied head: the embedding's table, rounded */
	const struct skep_cuda_lane *lane;
};

struct skep_cuda_layer_type {
	const struct skep_layer_type *type;
	size_t (*inside)(const struct skep_layer *layer, uint32_t samples); /* floats of a stash, for all samples */
	void (*forward)(const struct skep_layer *layer, const struct skep_cuda_pass *pass, const float *in,
		float *ret_out, float *ret_inside);
	/* gradient[tokens][hidden], and rounded in own->narrow_gradient, becomes that at `in`. */
	void (*backward)(const struct skep_layer *layer, const struct skep_cuda_pass *pass, const float *in,
		const float *inside, float *gradient);
};

extern const struct skep_cuda_layer_type skep_cuda_embedding, skep_cuda_head;          /* layer_ends.c */
extern const struct skep_cuda_layer_type skep_cuda_blocks;                             /* layer_block.c */
extern const struct skep_cuda_layer_type skep_cuda_post_blocks, skep_cuda_masked_head; /* layer_bert.c */

/* Arrays begin at multiples of 256 bytes. */
enum { SKEP_CUDA_ALIGN_FLOATS = 64 };
static inline size_t skep_cuda_floats(size_t n)
{
	return (n + SKEP_CUDA_ALIGN_FLOATS - 1) / SKEP_CUDA_ALIGN_FLOATS * SKEP_CUDA_ALIGN_FLOATS;
}
static inline size_t skep_cuda_halves(size_t n)
{
	return skep_cuda_floats((n + 1) / 2);
}
static inline float *skep_cuda_carve(float **rest, size_t floats)
{
	float *piece = *rest;
	*rest += skep_cuda_floats(floats);
	return piece;
}
static inline skep_bf16 *skep_cuda_carve_halves(float **rest, size_t n)
{
	return (skep_bf16 *)(void *)skep_cuda_carve(rest, (n + 1) / 2);
}

/* Integers that come with the samples of the first stage, tokens by id after the ids: layer_ends.c. */
size_t skep_cuda_inputs(uint32_t samples, uint32_t sequence);
void skep_cuda_group_inputs(uint32_t samples, uint32_t sequence, uint32_t vocabulary, int32_t *count, int32_t *inputs);

/* Tokens of a microbatch that have a loss; integers that say what these are, with the samples that they are found in. */
static inline size_t skep_cuda_predicted(const struct skep_training *training)
{
	const struct skep_model *m = training->model;
	return (size_t)training->samples * (m->predicted > 0 ? m->predicted : m->sequence);
}
static inline size_t skep_cuda_targets(const struct skep_training *training)
{
	const size_t ids = (size_t)training->samples * ((size_t)training->model->sequence + 1);
	return ids + (training->model->predicted > 0 ? 2 * skep_cuda_predicted(training) + 1 : 0);
}

/* down.c. Backwards, before the pass of layer l, the `turn`th of the operation: where it adds its gradient; and after the last
 * one: all is done when all is in the accumulator. Floats: that a layer's gradient takes on its way. */
size_t skep_cuda_down_floats(const struct skep_stage *stage, const struct skep_layer *layer);
void skep_cuda_down_next(struct skep_cuda_lane *lane, const struct skep_stage *stage, const struct skep_op *op,
	uint32_t l, uint32_t turn, struct skep_pass *pass);
void skep_cuda_down_last(struct skep_cuda_lane *lane, const struct skep_stage *stage, const struct skep_op *op,
	uint32_t l, uint32_t turn);

/* stage.c */
const struct skep_cuda_layer_type *skep_cuda_layer(const struct skep_layer *layer);
bool skep_cuda_stage_begin(void *queue, const struct skep_training *training, uint32_t index, struct skep_stage *ret);
void skep_cuda_stage_finish(void *queue, struct skep_stage *stage);
