/* SPDX-License-Identifier: Apache-2.0
 *
 * model.h - the model that is trained: its description file, how it is cut into stages, and what each stage costs.
 */
#pragma once

#include "base/reader.h"
#include "models/update/codec.h"

enum skep_model_kind { SKEP_MODEL_MLP, SKEP_MODEL_TRANSFORMER, SKEP_MODEL_GIVEN, SKEP_MODEL_RESNET };

struct skep_given {                       /* a layer of a model whose figures are given */
	uint64_t parameters, kept_bytes;  /* elements; per sample, from forward to backward */
	uint64_t forward_ns, backward_ns; /* of a microbatch, on any GPU */
	uint64_t step_ns;                 /* of an optimizer step; 0: not given */
};

enum skep_dropout { SKEP_DROPOUT_ALL, SKEP_DROPOUT_RESIDUAL, SKEP_DROPOUT_NONE };
enum skep_architecture {
	SKEP_ARCHITECTURE_NONE,
	SKEP_ARCHITECTURE_GPT2,
	SKEP_ARCHITECTURE_LLAMA,
	SKEP_ARCHITECTURE_BERT
};
/* How first parameters are drawn; the default is the architecture's own. */
enum skep_init {
	SKEP_INIT_DEFAULT,
	SKEP_INIT_NORMAL,
	SKEP_INIT_XAVIER_UNIFORM,
	SKEP_INIT_XAVIER_NORMAL,
	SKEP_INIT_KAIMING_UNIFORM,
	SKEP_INIT_KAIMING_NORMAL
};
#define SKEP_MASKED_USUALLY 0.15 /* of a sequence, by a BERT that does not say it */
enum skep_activation { SKEP_ACTIVATION_TANH, SKEP_ACTIVATION_RELU, SKEP_ACTIVATION_GELU };

/* Of feed-forward parts that are mixtures of experts: layers/mixture.h says what each does. */
struct skep_experts {
	uint32_t count, per_token; /* count 0: there are none */
	bool renormalized;         /* the weights of a token's experts sum to 1 */
	double capacity_factor;    /* 0: none is dropped */
	double aux_loss, z_loss;   /* coefficients, for each block */
};

/* Of a residual network: vision/shape.h says what its layers are. */
enum { SKEP_RESNET_GROUPS_MAX = 8, SKEP_RESNET_COLOURS = 3 };
struct skep_resnet {
	uint32_t groups, blocks[SKEP_RESNET_GROUPS_MAX];
	uint32_t channels;       /* of the first group, between the convolutions of a block */
	uint32_t image, classes; /* the side of an image, in pixels */
	bool bottleneck, projected, large;
	double momentum; /* of running averages: the part of the way that they go in a step */
};

/* Which of the shards of a model this is, of `size` ranks that share each stage by tensor parallelism; size 0 or 1: it is
 * whole. */
struct skep_tensor_shard {
	uint32_t rank, size;
};

/* A multi-layer perceptron: layer i maps width[i] -> width[i+1], activation after every layer but the last.
 *
 * A transformer's sample is one sequence. Its layers, as cuts see them, are groups of `shared` blocks that have the same
 * parameters, each mapping sequence * hidden numbers to as many, and at last the head. Without an architecture it is known by
 * its cost alone. With one it can be trained: its first layer is the embedding, and a sample comes as sequence + 1 tokens,
 * of which the last is a target alone; bert, which predicts tokens within the sequence (corpus/masking.h), passes it over.
 *
 * A residual network's sample is one image, and what leaves a layer is its channels, plane by plane. */
struct skep_model {
	char name[64];
	char path[512]; /* where it was read; "": nowhere */
	enum skep_model_kind kind;
	enum skep_activation activation;
	uint32_t layers;                               /* the unit at which the model is cut */
	uint32_t *width;                               /* [layers + 1]; width[0] inputs, width[layers] outputs */
	uint32_t hidden, sequence, shared, vocabulary; /* of a transformer, else 0 */
	uint32_t heads;                                /* 0: not said */
	bool keeps_attention;      /* the matrices of the attention are kept for the backward pass, not made anew */
	enum skep_dropout dropout; /* whose masks are kept */
	bool relus;                /* relu, whose input need not be kept */
	enum skep_architecture architecture; /* the rest is 0 without one */
	uint32_t kv_heads, feed_forward;     /* heads of keys and values; the width within the feed-forward part */
	uint32_t context;                    /* the longest sequence, of which gpt2 has positions; 0: `sequence` */
	bool tied;                           /* the head takes the embedding's table; of a model in one stage */
	bool halves; /* its parameters, activations and gradients have 2 bytes each, as in mixed precision; else 4 */
	bool copied; /* the same of one in several: the head has a copy, which begins as the table and is stepped as that is */
	uint32_t frozen; /* layers, from the first one on, that are not trained; fewer than `layers` */
	double norm_epsilon, rotary_base;
	struct skep_experts experts; /* of llama, each as wide as feed_forward says */
	double masked;               /* of bert, which part of a sequence is predicted, ... */
	uint32_t predicted;          /* ... and how many of its tokens that are; else 0 */
	uint32_t mask_token;         /* of bert: what stands in their place */
	struct skep_resnet resnet;   /* of SKEP_MODEL_RESNET, else 0 */
	enum skep_init init;
	float init_deviation;           /* of SKEP_INIT_NORMAL */
	struct skep_given *given;       /* [layers] of SKEP_MODEL_GIVEN, else NULL */
	uint32_t given_samples;         /* of the microbatches that they are of */
	struct skep_tensor_shard shard; /* the other fields but `width` are those of the whole model */
	uint32_t *cut,
		cuts; /* [cuts] layers of each stage, where a scenario says so; of any other number the cut is even */
};

/* How the GPUs of one worker share its stage: tensor parallel (Shoeybi et al. 2019), with `sequence` also what lies between the
 * split products (Korthikanti et al. 2022). */
struct skep_split {
	uint32_t gpus;
	bool sequence;
};
#define SKEP_SPLIT_NONE ((struct skep_split){.gpus = 1})

/* Why the model cannot be split so, in words that fit behind "model NAME ", or NULL. */
const char *skep_model_refuses(const struct skep_model *model, const struct skep_split *split);

/* A description file, or a config.json of Hugging Face, whose sequence is then its context. */
bool skep_model_read(const char *path, struct skep_model *ret, struct skep_diag *reterr);
void skep_model_finish(struct skep_model *model);
/* Lays out the layers of a transformer of `blocks` blocks once the rest of it is known. False when memory lacks. */
bool skep_model_place(struct skep_model *model, uint32_t blocks);
/* Samples of another length, at most the context. */
void skep_model_set_sequence(struct skep_model *model, uint32_t sequence);

/* Among how many ranks is it split? */
static inline uint32_t skep_model_ranks(const struct skep_model *model)
{
	return model->shard.size > 1 ? model->shard.size : 1;
}
/* Of n equal things, which ranks share as evenly as they can in their order: how many are those of the ranks before, and ... */
static inline uint32_t skep_model_first_of(const struct skep_model *model, uint32_t n)
{
	return (uint32_t)((uint64_t)n * model->shard.rank / skep_model_ranks(model));
}
/* ... how many are its own. */
static inline uint32_t skep_model_own_of(const struct skep_model *model, uint32_t n)
{
	return (uint32_t)((uint64_t)n * (model->shard.rank + 1) / skep_model_ranks(model)) -
	       skep_model_first_of(model, n);
}
/* Of the n rows of a tensor: so many have their place on each rank, `first` is the first of its own, which are `count`. All
 * shards are of one size, so a rank may have places without a row, the last ones; they are 0 and stay so. */
struct skep_own_rows {
	uint32_t places, first, count;
};
static inline struct skep_own_rows skep_model_own_rows(const struct skep_model *model, uint32_t n)
{
	uint32_t places = (n + skep_model_ranks(model) - 1) / skep_model_ranks(model);
	uint32_t first = model->shard.rank * places, left = n > first ? n - first : 0;
	struct skep_own_rows ret = {places, first, left < places ? left : places};
	return ret;
}
/* What it is a shard of, but for `width`, which stays the shard's; it shares the memory of the shard. */
static inline struct skep_model skep_model_whole(const struct skep_model *model)
{
	struct skep_model whole = *model;
	whole.shard.rank = whole.shard.size = 0;
	return whole;
}
/* shard.c. Why the model has no shards of so many ranks, in words that fit behind "model NAME ", or NULL. */
const char *skep_model_refuses_shard(const struct skep_model *model, uint32_t size);
/* The shard of rank `rank` of `size`, for skep_model_finish(). Between its layers it has the numbers of sequence / size tokens of
 * each sample. The model is whole, and has shards of so many. False when memory lacks. */
bool skep_model_shard(const struct skep_model *whole, uint32_t rank, uint32_t size, struct skep_model *ret);

/* Is there arithmetic for it? */
static inline bool skep_model_computes(const struct skep_model *model)
{
	return model->kind == SKEP_MODEL_MLP || model->kind == SKEP_MODEL_RESNET ||
	       model->architecture != SKEP_ARCHITECTURE_NONE;
}

/* Before anything is asked of a model in several stages: a tied head has its copy. */
void skep_model_part(struct skep_model *model, uint32_t stages);
/* Elements of the table of which both ends hold a copy, core/plan.h's `tied`, or of the shard's rows of it; 0: none. */
static inline uint64_t skep_model_copied(const struct skep_model *model)
{
	return model->copied ? (uint64_t)skep_model_own_rows(model, model->vocabulary).places * model->hidden : 0;
}

/* Is the table that a tied head shares, or has a copy of, frozen? */
static inline bool skep_model_table_is_frozen(const struct skep_model *model)
{
	return model->frozen > 0 && (model->tied || model->copied);
}
/* Stages of so many, from the first one on, of which no layer is trained. */
uint32_t skep_model_frozen_stages(const struct skep_model *model, uint32_t stages);

/* Stage `stage` of `stages` serves layers [first, first + count): as model->cut says of so many; else cut so that the largest
 * number of FLOPs of a stage is least, ties to the earlier cut; needs stages <= layers. */
void skep_model_cut(
	const struct skep_model *model, uint32_t stages, uint32_t stage, uint32_t *ret_first, uint32_t *ret_count);

/* What one stage costs, per sample where it says so. Numbers have skep_model_number_bytes(). Dense layer: 2*in*out FLOPs
 * forward; backward: 2*in*out for the
 * weights and, unless it is the model's first layer or all before it are frozen, 2*in*out for the input. A frozen layer has no
 * backward pass. */
struct skep_cost {
	uint64_t parameters, trained;         /* elements */
	uint64_t frozen;                      /* of those that are not trained, so many lie before all that are */
	double forward_flop, backward_flop;   /* per sample */
	double forward_bytes, backward_bytes; /* memory traffic: parameters read once per operation, and backwards
	                                         the accumulator read and written ... */
	double sample_bytes; /* ... and activations read and written, per sample and forward; twice that backward */
	double backward_sample_bytes;               /* that is, so much */
	uint64_t activation_bytes;                  /* leaving the stage in fp32, per sample; 0 for the last */
	uint64_t stash_bytes;                       /* kept from forward to backward, per sample */
	uint64_t workspace_bytes;                   /* used during a pass, per sample of the one microbatch ... */
	uint64_t recompute_bytes;                   /* ... and that much more if the forward pass is done again in it */
	uint64_t scratch_bytes;                     /* the two widest arrays that a pass holds at once, per sample */
	uint64_t largest_parameters;                /* of one layer */
	uint64_t forward_ns, backward_ns, step_ns;  /* as given, of a microbatch and of a step; 0: by the GPU */
	uint32_t forward_gathers, backward_gathers; /* among the GPUs of a worker; an all-reduce is two ... */
	uint64_t forward_gathered_bytes, backward_gathered_bytes; /* ... of so many bytes together, per sample */
};
static inline uint64_t skep_model_number_bytes(const struct skep_model *model)
{
	return model->halves ? 2 : sizeof(float);
}
void skep_model_cost(const struct skep_model *model, uint32_t stages, uint32_t stage, struct skep_cost *ret);
/* The same of each GPU of a worker that splits it; activation_bytes stays that of the whole worker. */
void skep_model_share(const struct skep_model *model, uint32_t stages, uint32_t stage, const struct skep_split *split,
	struct skep_cost *ret);

/* Turns the cost of a stage into that with checkpoint_activations: backward does the forward pass again, and the stash is
 * that of the one microbatch in work. */
void skep_cost_checkpoint(struct skep_cost *cost);

/* One layer, as matrix products and what is left: for predictors of time. Products are those of a forward pass of `samples`, C (m
 * x n) = A (m x k) B (k x n) with `batch` of them at once, all done `repeats` times. */
enum { SKEP_LAYER_PRODUCTS_MAX = 7 };
struct skep_layer_products {
	uint32_t repeats; /* blocks that share their parameters */
	uint32_t products;
	struct {
		double batch, m, k, n;
	} product[SKEP_LAYER_PRODUCTS_MAX];
	double backward;       /* times as many FLOPs as forward; 0: it is frozen */
	double parameters;     /* elements, of all repeats together */
	double trained;        /* of these */
	double numbers;        /* that one repeat reads and writes in memory ... */
	double other_numbers;  /* ... of which so many outside of its products */
	double matrix_numbers; /* of one repeat, on top: of attention matrices, where these go through memory */
	double flop;           /* of one repeat */
};
void skep_model_products(
	const struct skep_model *model, uint32_t layer, uint32_t samples, struct skep_layer_products *ret);
/* The same of each GPU of a worker that splits it. */
void skep_model_share_products(const struct skep_model *model, uint32_t layer, uint32_t samples,
	const struct skep_split *split, struct skep_layer_products *ret);

/* What leaves the stage for one microbatch, encoded; the gradient that comes back is of the same size. */
uint64_t skep_cost_payload_bytes(const struct skep_cost *cost, enum skep_codec codec, uint32_t block, uint32_t samples);
