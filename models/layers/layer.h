/* SPDX-License-Identifier: Apache-2.0
 *
 * layer.h - a layer as a value with a table of functions, by which a stage runs passes, finds parameters and counts
 * costs. A stage is a loop over its layers and does not know their types.
 *
 * Memory. Every size here is a number of elements (skep_real) of one sample or one layer. A layer's parameters are its
 * tensors one after the other. Between its forward and its backward pass a layer keeps `inside` elements a sample, and
 * its output as well unless the output leaves the stage. What it needs only during a pass is `work`.
 */
#pragma once

#include "base/process/thread_pool.h"
#include "models/device/device.h"
#include "models/layers/real.h"

enum { SKEP_TENSORS_MAX = 16 };
enum skep_draw {
	SKEP_DRAW_UNIFORM, /* on [-size, size) */
	SKEP_DRAW_NORMAL,  /* of mean 0 and deviation `size` */
	SKEP_DRAW_CONSTANT /* `size` */
};

enum skep_tensor_role {
	SKEP_TENSOR_VECTOR, /* a bias, or what a norm multiplies by */
	SKEP_TENSOR_MATRIX, /* [in][out] of a product */
	SKEP_TENSOR_TABLE   /* a row for each token or position: [out][in] of the product with its one-hot vectors */
};

/* How the ranks of a tensor parallel group have a tensor. */
enum skep_tensor_cut {
	SKEP_TENSOR_REPLICATED, /* each has all of it */
	SKEP_TENSOR_BY_COLUMNS, /* each has some columns, the same part of each group of them */
	SKEP_TENSOR_BY_ROWS     /* each has some rows, one behind the other */
};
enum { SKEP_TENSOR_GROUPS_MAX = 3 };

struct skep_tensor { /* rows, columns and offset are those of the shard, where the model is one */
	const char *name;
	uint32_t rows, columns; /* row-major; a vector has one row */
	uint32_t stacked;       /* equal matrices, one behind the other, of which `rows` has all; 0: it is one */
	size_t offset;          /* in the layer's parameters */
	enum skep_draw draw;    /* how its first values are drawn */
	float size;
	enum skep_tensor_role role;
	bool decays;   /* weight decay applies to it */
	bool averaged; /* running averages, which no gradient reaches and no optimizer sees (vision/batch_norm.h) */
	bool copied;   /* its first values are those of the first tensor of the model's first layer */
	enum skep_tensor_cut cut;
	uint32_t group
		[SKEP_TENSOR_GROUPS_MAX]; /* BY_COLUMNS: columns of each group in the whole tensor; 0: there is none */
};

struct skep_layer;

struct skep_pass { /* one operation on one layer */
	const struct skep_training *training;
	const struct skep_op *op;
	const skep_real *parameter; /* the layer's */
	const skep_real *shared;    /* the embedding's table, for a tied head; else NULL */
	skep_real *gradient; /* BACKWARD: the layer's part of the accumulator; NULL: the gradient is not counted */
	skep_real *shared_gradient;
	bool differs; /* BACKWARD: it adds running averages less what the microbatch has, and not minus that alone */
	const skep_real *rotation;       /* [sequence][head width]: see attention.h; NULL where nothing is rotated */
	skep_real *work;                 /* type->work() numbers for all samples */
	skep_real *strips;               /* type->strips() numbers for each member of the thread pool */
	struct skep_expert_use *experts; /* mixture.h; NULL: nothing counts it */
	struct skep_thread_pool *thread_pool; /* shares the loops out; NULL: the calling thread does all */
};

struct skep_layer_type {
	const char *name;
	/* Names, shapes and first values; returns how many. */
	uint32_t (*tensors)(const struct skep_layer *layer, struct skep_tensor ret[SKEP_TENSORS_MAX]);
	size_t (*inside)(const struct skep_layer *layer); /* per sample ... */
	/* ... of which so much is not inside of products that ranks split: on each, or by its own tokens. NULL: nothing */
	size_t (*between)(const struct skep_layer *layer);
	size_t (*work)(const struct skep_layer *layer, uint32_t samples); /* NULL: as much as the output, forwards */
	size_t (*strips)(const struct skep_layer *layer);                 /* the same, of each thread; NULL: nothing */
	/* FLOPs per sample; `ret_attention`: the part of them that is attention, whose backward pass is 2.5 times as much
	 * where that of the rest is twice. */
	uint64_t (*flop)(const struct skep_layer *layer, uint64_t *ret_attention);
	/* in[samples][in], or a stage's samples. out[samples][out]; NULL for a layer that ends a model, which returns its
	 * loss and keeps what its backward pass begins with. */
	double (*forward)(const struct skep_layer *layer, const struct skep_pass *pass, const void *in,
		skep_real *ret_out, skep_real *ret_inside);
	/* gradient[samples][out], which it may overwrite, NULL for a layer that ends a model. ret[samples][in], NULL: nothing
	 * before it is trained. */
	void (*backward)(const struct skep_layer *layer, const struct skep_pass *pass, const void *in,
		const skep_real *inside, skep_real *gradient, skep_real *ret);
};

struct skep_layer {
	const struct skep_layer_type *type;
	const struct skep_model *model;
	uint32_t number;    /* in the model */
	uint32_t in, out;   /* numbers per sample; `out` of one that ends a model: what it predicts */
	size_t parameters;  /* numbers */
	size_t parameter;   /* offsets: in the stage's parameters ... */
	size_t value, kept; /* ... and in a stash; the layer that leaves the stage has no value */
};

/* Layer `number` of the model, not placed in any stage. */
struct skep_layer skep_layer_of(const struct skep_model *model, uint32_t number);

/* models/tensor/init.c. What the model's `init` changes in how the first values of a tensor are drawn. */
void skep_tensor_init(const struct skep_model *model, struct skep_tensor *tensor);

/* The layer's first parameters, drawn from (seed, layer), whatever the cut. */
void skep_layer_draw(const struct skep_layer *layer, uint64_t seed, skep_real *ret_parameters);

/* Appends a tensor behind the others; returns their number. */
uint32_t skep_tensor_add(struct skep_tensor *list, uint32_t count, const struct skep_tensor *tensor);

/* head.c. The cross-entropy of one token in nats; its scores become the gradient at them of the mean over so many tokens. */
double skep_token_loss(uint32_t vocabulary, int32_t target, skep_real tokens, skep_real *score);

extern const struct skep_layer_type skep_layer_dense, skep_layer_squares; /* dense.c */
extern const struct skep_layer_type skep_layer_embedding;                 /* embedding.c */
extern const struct skep_layer_type skep_layer_blocks;                    /* block.c */
extern const struct skep_layer_type skep_layer_head;                      /* head.c */
extern const struct skep_layer_type skep_layer_post_blocks;               /* post_block.c */
extern const struct skep_layer_type skep_layer_masked_head;               /* masked_head.c */
extern const struct skep_layer_type skep_layer_resnet_block;              /* resnet_block.c */
extern const struct skep_layer_type skep_layer_resnet_head;               /* resnet_head.c */
