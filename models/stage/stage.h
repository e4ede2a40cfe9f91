/* SPDX-License-Identifier: Apache-2.0
 *
 * stage.h - what a device keeps of one stage of the model: where each layer lies, the parameters, the optimizer's
 * moments, the two accumulators and the result of a reduction, all in one allocation.
 *
 * With delayed updates there are two sets of parameters, since a round reads one while the step of the round before
 * makes the next. Without a flush between rounds there are skep_plan_versions() sets, since the backward pass of a
 * microbatch needs the parameters of its forward pass. In an interleaved pipeline the stage has several virtual stages,
 * one after the other in every array; else it has one.
 */
#pragma once

#include "models/layers/layer.h"

struct skep_layers { /* first .. end - 1 of a stage */
	uint32_t first, end;
};

struct skep_vstage {            /* consecutive layers of the model; offsets are into the arrays of the whole stage */
	uint32_t layer, layers; /* its first one, and how many */
	size_t parameter, parameters;
	size_t stash; /* floats of one microbatch; that of the model's first layers begins with the inputs */
	size_t entering, leaving; /* elements of a microbatch at its edges */
};

struct skep_range { /* elements of a stage's vector */
	size_t first, count;
};

enum { SKEP_MOMENTS_MAX = 2 };

struct skep_tensor_step { /* of the optimizer, of one tensor; optimizer.c says what is done */
	const struct skep_optimizer *o;
	skep_real rate, decay, divisor;
	skep_real unbias_mean, unbias_square;
	size_t n;
	const skep_real *sum;
	skep_real *w, *moment[SKEP_MOMENTS_MAX];
	bool scales;      /* LAMB, and the tensor is one of those that it scales */
	bool averages;    /* running averages, which go `rate` of the way to a mean; `sum` has minus that, */
	bool differences; /* or what they are beyond it */
	bool last;        /* delayed Nesterov: of its turns */
	/* Of a tensor that ranks have parts of, whose norms LAMB needs; NULL: it is whole here. */
	const struct skep_tensor_group *tensor_group;
};

/* The arithmetic on the arrays of a stage, in the memory of the host or of a device; `queue` is the stage's. */
struct skep_arrays {
	void (*copy)(void *queue, void *to, const void *from, size_t bytes); /* also from and to the host's memory */
	void (*clear)(void *queue, void *memory, size_t bytes);
	void (*step)(void *queue, const struct skep_tensor_step *step);
	/* ret[i] = (w[i] - v[i]) weight */
	void (*weigh)(void *queue, size_t n, const skep_real *w, const skep_real *v, skep_real weight, skep_real *ret);
	/* v[i] = mixing v[i] + (1 - mixing) w[i], 0 < mixing */
	void (*mix)(void *queue, size_t n, skep_real mixing, const skep_real *w, skep_real *v);
	/* v[i] += to[i] - from[i] */
	void (*shift)(void *queue, size_t n, const skep_real *from, const skep_real *to, skep_real *v);
	/* These are there when they return. */
	bool (*finite)(void *queue, size_t n, const skep_real *a);
	double (*squares)(void *queue, size_t n, const skep_real *a);
	/* With a tied table. ret[i] = a[i] / p + b[i] / q; p or q 0: without that part. */
	void (*blend)(
		void *queue, size_t n, const skep_real *a, uint32_t p, const skep_real *b, uint32_t q, skep_real *ret);
	/* The sum of those a[i] b[i] that are above 0, or of the others, without their sign; there when it returns. */
	double (*products)(void *queue, size_t n, const skep_real *a, const skep_real *b, bool above);
};

/* For arrays in the host's memory; the queue is a thread pool (thread_pool.h), or NULL. */
extern const struct skep_arrays skep_arrays_host;
void skep_step_tensor(const struct skep_tensor_step *step);

/* Elements of what the layers of a stage share, beside its arrays of parameters. */
struct skep_extent {
	size_t widest, work, rotation;
	size_t strips; /* of one thread */
};

struct skep_stage {
	uint32_t index; /* SKEP_NO_STAGE: everything else is 0 */
	uint32_t vstages;
	uint32_t strides;         /* layers lie in the order of so many strided fragments; 1: one after the other */
	uint32_t layers, moments; /* moments per parameter: skep_optimizer_moments() */
	size_t parameters;        /* elements of each array below but scratch, and ... */
	/* ... but moments, accumulators and result, which have the elements that are trained alone; element i is at [i] there
	 * too, and what is before the first one is not theirs. */
	struct skep_range trained;
	/* What its steps step: `trained`, or with plan->sharded the worker's shard, which its first STEP names; before that
	 * `first` means nothing, and `count` is that of the largest shard. */
	struct skep_range shard;
	bool sharded, shard_named;
	uint32_t shard_rank;  /* whose it is, once named */
	size_t shared;        /* of a tied head: where the embedding's table begins; SIZE_MAX: no head is tied here */
	uint64_t steps;       /* optimizer steps taken */
	bool stepped;         /* in this step a virtual stage that has stepped had gradients */
	uint64_t stash_bytes; /* the largest of the virtual stages' */
	size_t entering, leaving;   /* the largest of the virtual stages' */
	struct skep_vstage *vstage; /* [vstages] */
	struct skep_layer *layer;   /* [layers] */
	void *memory;               /* the one allocation that holds the arrays below */
	bool differs;               /* what stands in the place of running averages' gradients: vision/batch_norm.h */
	uint32_t versions;          /* of the parameters that are kept */
	skep_real *parameter;       /* [versions][stride], by version modulo versions, layer by layer */
	size_t stride;              /* elements from one version to the next */
	uint32_t version;           /* of the newest parameters */
	/* AdamW: mean of g and of g^2; SGD: velocity. Of a shard element i is at [i - shard.first]. */
	skep_real *moment[SKEP_MOMENTS_MAX];
	skep_real *inner;       /* periodic sync: what passes read, and INNER_STEP changes; else NULL */
	uint32_t inner_moments; /* of the inner optimizer: */
	skep_real *inner_moment[SKEP_MOMENTS_MAX];
	uint64_t inner_steps;            /* that it has made */
	uint32_t inner_began;            /* of the run, before the round in which it made the first of them */
	bool inner_kept;                 /* a round sums a fragment alone, or nothing */
	bool older_kept;                 /* a round reads the parameters of one step earlier */
	skep_real *base;                 /* async: where `inner` started from (outer_step.c); else NULL */
	uint32_t staleness, synchronous; /* steps that passes lack, but for so many rounds at the start (moved.c): */
	skep_real *moved; /* [parameters] what a pass reads that the newest parameters are moved for; else NULL */
	/* With waves: what the pass under way reads, which is kept behind its stash (moved.c); else NULL. */
	const skep_real *local;
	skep_real *drift; /* what a step has changed, smoothed, of those that are trained; NULL: nothing reads it */
	/* By round modulo their number, skep_plan_accumulators(): sum of the microbatches' gradients. Async: [1] is the
	 * pseudo-gradient. */
	skep_real *accumulator[SKEP_ACCUMULATORS_MAX];
	uint32_t accumulators;
	skep_real *result; /* of the reduction under way */
	/* [tied.count] of a tied table: what the other stage has summed, and in STEP the gradient; else NULL */
	skep_real *tied_peer;
	struct skep_tied {
		size_t first, count; /* elements of the stage's vector */
	} tied;
	skep_real *scratch[2];   /* [samples][widest layer of the stage] */
	skep_real *entry, *exit; /* [entering] and [leaving], decoded; NULL without an activation codec */
	skep_real *rotation;     /* of rotary positions; NULL where there are none */
	skep_real *work;         /* what a layer needs during a pass; NULL: scratch does */
	skep_real *strips;       /* the same, [threads][strips of a thread] */
	skep_real *workspace;    /* a stash, with checkpoint_activations or where nothing is trained; else NULL */
	struct skep_expert_use *experts;              /* what the forward pass under way adds to; NULL: nothing */
	const struct skep_tensor_group *tensor_group; /* the training's */
	const struct skep_arrays *arrays;
	void *queue; /* where `arrays` do their work */
	void *own;   /* what the back end keeps beside all this */
};

/* Elements first .. first + count - 1 that are in the range. */
static inline struct skep_range skep_range_meet(struct skep_range range, size_t first, size_t count)
{
	size_t begin = first > range.first ? first : range.first, end = first + count;
	size_t most = range.first + range.count;
	end = end < most ? end : most;
	return (struct skep_range){begin, end > begin ? end - begin : 0};
}

/* What is trained of elements first .. first + count - 1. */
static inline struct skep_range skep_stage_trained_of(const struct skep_stage *stage, size_t first, size_t count)
{
	return skep_range_meet(stage->trained, first, count);
}

/* What is stepped here of elements first .. first + count - 1. */
static inline struct skep_range skep_stage_shard_of(const struct skep_stage *stage, size_t first, size_t count)
{
	return skep_range_meet(stage->shard, first, count);
}

/* The moments of a shard have no elements before it. */
static inline size_t skep_stage_moment_at(const struct skep_stage *stage, size_t element)
{
	return stage->sharded ? element - stage->shard.first : element;
}

/* Names the shard: that of rank `rank` of `members`. False: the moments are those of another one. What is kept of a stage in
 * shards is all parameters and the moments of the shard, so it has to be named before. */
bool skep_stage_name_shard(struct skep_stage *stage, const struct skep_plan *plan, uint32_t rank, uint32_t members);

/* Its first layer that is trained; `layers` if none is. */
static inline uint32_t skep_stage_first_trained(const struct skep_stage *stage)
{
	uint32_t l = 0;
	while (l < stage->layers && stage->layer[l].number < stage->layer[l].model->frozen)
		l++;
	return l;
}

/* The floats that an array of the trained elements alone takes, in which each is as far from the begin of a cache line as in an
 * array of all; and where element 0 of such an array would be that lies at `piece`. The parameters lie before it in the same
 * allocation, so that is within it. */
enum { SKEP_STAGE_LINE = 16 }; /* floats of a cache line */
static inline size_t skep_stage_trained_floats(const struct skep_stage *stage)
{
	return stage->trained.first % SKEP_STAGE_LINE + stage->trained.count;
}
/* The floats of one array of moments. */
static inline size_t skep_stage_moment_floats(const struct skep_stage *stage)
{
	return stage->sharded ? stage->shard.count : skep_stage_trained_floats(stage);
}
static inline skep_real *skep_stage_array(const struct skep_stage *stage, skep_real *piece)
{
	return piece ? piece - (stage->trained.first - stage->trained.first % SKEP_STAGE_LINE) : NULL;
}

/* The stage as if it were only its virtual stage `nth`: `index` is the number of the virtual stage in the model, and
 * layer, layers, stash_bytes, entering and leaving are those of the virtual stage. It has no memory of its own. */
struct skep_stage skep_stage_vstage(const struct skep_stage *stage, uint32_t stages, uint32_t nth);

static inline skep_real *skep_stage_parameters(const struct skep_stage *stage, uint32_t version)
{
	return stage->parameter + version % stage->versions * stage->stride;
}

/* What BACKWARD of a round adds to, and what a member brings to its reduction. */
static inline skep_real *skep_stage_sum(const struct skep_stage *stage, uint32_t round)
{
	return stage->accumulator[stage->base ? 0 : round & (stage->accumulators - 1)];
}

static inline skep_real *skep_stage_own(const struct skep_stage *stage, uint32_t round)
{
	return stage->accumulator[stage->base ? 1 : round & (stage->accumulators - 1)];
}

/* What FORWARD and BACKWARD read: inner parameters where there are any, but what is judged are those of the stage. */
const skep_real *skep_stage_read(
	const struct skep_stage *stage, const struct skep_training *training, const struct skep_op *op);

/* The stage's parameters at the start: a layer's are drawn from (seed, layer), whatever the cut. Returns false when memory
 * lacks; *ret is then empty. */
bool skep_stage_init(const struct skep_training *training, uint32_t index, struct skep_stage *ret);
/* The same for a device with a thread pool (thread_pool.h): its threads get their strips, and the pool is the queue
 * of the arrays. */
bool skep_stage_init_for(const struct skep_training *training, struct skep_thread_pool *thread_pool, uint32_t index,
	struct skep_stage *ret);
/* The parts of it: all but memory, and the first parameters of a stage that has some, in the memory of the host. */
bool skep_stage_place(
	const struct skep_training *training, uint32_t index, struct skep_stage *ret, struct skep_extent *ret_extent);
void skep_stage_draw(const struct skep_training *training, const struct skep_stage *stage);
void skep_stage_finish(struct skep_stage *stage);

/* The layers whose trained parameters are first .. first + count - 1; false: these do not begin and end with layers. */
bool skep_stage_layers(const struct skep_stage *stage, uint64_t first, uint64_t count, struct skep_layers *ret);

/* One chunk of the state, skep_stage_state_bytes() bytes. Save writes the newest parameters; load takes them for those of
 * `version`, puts them into all places, and refuses, changing nothing, unless this is the very chunk of this very stage. */
uint64_t skep_stage_state_bytes(const struct skep_stage *stage, uint32_t chunk, uint32_t chunks);
void skep_stage_save(const struct skep_stage *stage, uint32_t chunk, uint32_t chunks, void *ret_state);
bool skep_stage_load(
	struct skep_stage *stage, uint32_t version, uint32_t chunk, uint32_t chunks, const void *state, uint64_t bytes);

/* What is kept for good: the state in one chunk, and behind it what else a run needs that goes on with it. Where a step is made
 * beside the passes of the next round: the parameters that these read, one version older. With periodic sync: what the inner
 * optimizer of this worker knows, which is steps, moments and, where a round sums a fragment alone, the inner parameters, most of
 * which no sum has had yet. Without a fragment passes begin anew at the parameters of the stage, as behind any STEP; with delayed
 * updates what is under way of the next round goes with that, for the round is done again. */
uint64_t skep_stage_kept_bytes(const struct skep_stage *stage);
void skep_stage_keep(const struct skep_stage *stage, void *ret_state);
/* Refuses as load does. */
bool skep_stage_take_up(struct skep_stage *stage, uint32_t version, const void *state, uint64_t bytes);

uint64_t skep_stage_digest(const struct skep_stage *stage);
/* Of the tensors alone that each rank of a tensor parallel group has all of: equal on all of them, if these are. On the host. */
uint64_t skep_stage_replicated_digest(const struct skep_stage *stage);

/* models/update/moved.c, without a flush. The learning rate of the stage's step that ends round `round`. */
float skep_stage_rate(const struct skep_stage *stage, const struct skep_optimizer *optimizer, uint32_t round);
/* Before a pass: makes what it is to read of the newest parameters, if it is to read other ones (op->moved). */
void skep_stage_move(const struct skep_stage *stage, const struct skep_optimizer *optimizer, const struct skep_op *op);
/* With waves: makes what a FORWARD is to read, and its BACKWARD, of the newest parameters and what this worker has counted. */
void skep_stage_step_alone(
	const struct skep_stage *stage, const struct skep_training *training, const struct skep_op *op, skep_real *ret);
/* Around a step, from version `round` to the next one: what has it changed? */
void skep_stage_before_step(const struct skep_stage *stage, uint32_t round);
void skep_stage_after_step(const struct skep_stage *stage, uint32_t round);

struct skep_vstage_step { /* the step of one virtual stage */
	uint32_t nth, round, microbatches;
	double scale;          /* 1, or what clips the gradient */
	const skep_real *tied; /* the gradient of its copy of a tied table; NULL: it has none */
};

/* Steps virtual stage `nth`: gradient = scale * sum / microbatches, then one step of the optimizer: from version
 * `round` to the next one. Clears the round's accumulator. microbatches == 0: only that. `sum` is the whole stage's.
 * One number of steps serves all virtual stages, and the version becomes the next one when the last of them has
 * stepped. */
void skep_stage_step(struct skep_stage *stage, const struct skep_optimizer *optimizer,
	const struct skep_vstage_step *turn, const skep_real *sum);

/* Clears the round's accumulator. */
void skep_stage_discard(struct skep_stage *stage, uint32_t round);

/* models/update/inner.c, with periodic sync: INNER_STEP, PSEUDO_GRAD and STEP, which alone has a `sum`; false: there
 * are no inner parameters. */
bool skep_stage_periodic(
	struct skep_stage *stage, const struct skep_training *training, const struct skep_op *op, const skep_real *sum);
/* STEP of these: the outer optimizer's, on sum / microbatches; then the round's accumulator is cleared, which `sum` may
 * be, and the inner parameters follow. */
void skep_stage_outer(
	struct skep_stage *stage, const struct skep_training *training, const struct skep_op *op, const skep_real *sum);
/* After a step: inner = mixing * inner + (1 - mixing) * parameters; of elements first .. first + count - 1. */
void skep_stage_follow(struct skep_stage *stage, skep_real mixing, size_t first, size_t count);

/* models/update/gossip.c, in pairs: PSEUDO_GRAD and STEP. */
void skep_stage_gossip(
	struct skep_stage *stage, const struct skep_training *training, const struct skep_op *op, const skep_real *sum);

/* models/update/outer_step.c, async: PSEUDO_GRAD and STEP; and the inner parameters begin anew at those of the stage. */
void skep_stage_merge(
	struct skep_stage *stage, const struct skep_training *training, const struct skep_op *op, const skep_real *sum);
void skep_stage_settle(struct skep_stage *stage);

/* One step of an optimizer over layers first .. end - 1 of the stage, the `steps`th: optimizer.c has the formulas. */
struct skep_descent {
	const struct skep_optimizer *optimizer;
	float rate;
	uint64_t steps;
	uint32_t microbatches; /* the divisor, */
	double scale;          /* over this */
	size_t first, count; /* of the stage's elements alone, as one tensor that does not decay; count 0: all layers */
	bool outer;          /* the sum is of differences of parameters, and not of gradients */
	bool stays;          /* running averages do: of the microbatches the sum has some alone */
	const skep_real *sum;
	const skep_real *tied; /* as in a turn */
	skep_real *w, *moment[SKEP_MOMENTS_MAX];
};
void skep_stage_descend(const struct skep_stage *stage, struct skep_layers layers, const struct skep_descent *descent);
