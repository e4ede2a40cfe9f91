/* SPDX-License-Identifier: Apache-2.0
 *
 * device.h - symbolic tensors and devices for the cluster tests.
 *
 * Nothing is trained here. A gradient is a hash of (round, version of the parameters, virtual stage, microbatch, element) and
 * sums wrap in uint64, so a sum is right exactly when the set of microbatches in it is right and each was computed on the right
 * parameters, in whatever order they were added. A device keeps device_versions() of them: two with delayed updates, more
 * without a flush, version v where the remainder of v by that number says. Every tensor
 * also says what it is, and each operation refuses an input that is not what the operation needs.
 *
 * Kept true: a handle is used only while it is live, by the machine that owns it, in its generation; a tensor that a
 * queued operation needs is neither sent nor released. A worker that breaks that gets a verdict, never undefined
 * behaviour.
 */
#pragma once

#include "core/names.h"
#include "core/skep.h"

#define CLUSTER_ELEMENTS 8u /* most parameters of a stage */
#define CLUSTER_ROUNDS 13u
#define CLUSTER_STAGES 8u
#define CLUSTER_VSTAGES 24u /* stages * chunks */
#define CLUSTER_WORKERS 48u
#define CLUSTER_VERSIONS 8u  /* most that a device keeps; at least as many as CLUSTER_STAGES */
#define IN_FLIGHT UINT32_MAX /* owner of a tensor that travels */

/* The first thing found wrong in a run; later ones are consequences. */
struct verdict {
	bool broken;
	char invariant[8];                 /* as in README.md: I1, I1b, ... */
	uint32_t round, stage, microbatch; /* SKEP_NO_INDEX: no particular one */
	char text[240];
};
void verdict_break(struct verdict *verdict, const char *invariant, uint32_t round, uint32_t stage, uint32_t microbatch,
	const char *format, ...) __attribute__((format(printf, 6, 7)));

uint64_t mix64(uint64_t x); /* a bijection that scatters */
uint64_t symbol_gradient(uint32_t round, uint32_t version, uint32_t stage, uint32_t microbatch, uint32_t element);
/* Before any step. */
uint64_t symbol_parameter(const struct skep_plan *plan, uint32_t candidate, uint32_t stage, uint32_t element);
int64_t symbol_loss(uint32_t candidate, uint32_t round, uint32_t microbatch); /* 1e-9 units, in [0, 2) */

/* Of those elements of a virtual stage's sum, and as core/square.h has it (finite.c). */
double symbol_squares(const struct skep_plan *plan, uint32_t vstage, uint32_t elements, const uint64_t *sum);
uint64_t symbol_square(double squares);
/* Of what two stages have summed of a table of so many elements: the products above 0 (part 1), and the others. */
double symbol_products(uint64_t tied, const uint64_t *first, const uint64_t *last, uint32_t part);

enum tensor_kind {
	TENSOR_ACTIVATION = 1,
	TENSOR_STASH,
	TENSOR_GRADIENT,
	TENSOR_CHUNK,
	TENSOR_STATE,
	TENSOR_TIED,
	TENSOR_SHARD
};

struct tensor {
	uint8_t kind;
	/* Activation, gradient: the stage that made the activation; otherwise the stage it belongs to. */
	uint16_t stage;
	uint32_t round, microbatch; /* state: round = the version of the parameters */
	uint32_t chunk, size;       /* state */
	uint64_t first, count;      /* chunk: elements */
	uint64_t name;              /* activation: unique */
	uint64_t answer;    /* gradient: name of the activation it is for; stash: name of the activation that left */
	uint64_t input;     /* stash: name of the activation that came in */
	uint32_t version;   /* stash: of the parameters that FORWARD read */
	bool part;          /* chunk: it was OFFERed; `microbatch` is the member, and ... */
	uint32_t weight;    /* ... so many microbatches are in it; of an AGGREGATE: in all */
	uint32_t candidate; /* activation, state: whose */
	uint64_t value[CLUSTER_ELEMENTS];
};

struct slot {
	uint32_t generation, owner, pins, next_free;
	bool live;
	struct tensor tensor;
};

struct kept { /* a checkpoint */
	bool is;
	uint64_t by; /* workers that have, bit by bit */
	uint64_t parameter[CLUSTER_ELEMENTS];
};

struct tensors { /* of the whole cluster; slot 0 stays unused, so that {0, 0} is no handle */
	struct slot *slot;
	uint32_t count, capacity, first_free;
	uint32_t live;
	struct kept kept[CLUSTER_STAGES][CLUSTER_ROUNDS + 1]; /* by version */
};

void tensors_clear(struct tensors *tensors);
struct tensor *tensors_add(struct tensors *tensors, uint32_t owner, struct skep_buf *ret);
/* NULL, and a verdict, if `who` may not use the handle. */
struct slot *tensors_use(struct tensors *tensors, struct skep_buf buf, uint32_t who, struct verdict *verdict);
void tensors_free(struct tensors *tensors, struct skep_buf buf);
uint32_t tensors_owned(const struct tensors *tensors, uint32_t owner);
uint32_t tensors_idle(const struct tensors *tensors, uint32_t owner); /* of these, needed by no queued operation */
void tensors_free_all(struct tensors *tensors);
void tensors_free_owned(struct tensors *tensors, uint32_t owner);
static inline bool buf_none(struct skep_buf buf)
{
	return buf.slot == 0 && buf.generation == 0;
}

struct gathered { /* parts beside each other: who has brought one, what they come to */
	uint32_t round, attempt, weight;
	uint64_t first, count, member, value[CLUSTER_ELEMENTS];
};

struct drift { /* asynchronous periodic sync (async.c) */
	uint64_t added[CLUSTER_ELEMENTS], drift[CLUSTER_ELEMENTS], part[CLUSTER_ELEMENTS];
	uint32_t added_count, drift_count; /* since the last INNER_STEP; in inner steps since the last PSEUDO_GRAD */
	uint32_t base;                     /* version that the inner parameters started from */
	bool written;                      /* `part` is there, and its STEP has not been */
};

struct device {                             /* what one process holds */
	uint32_t stage;                     /* SKEP_NO_STAGE before the first ENTER of a newcomer */
	uint32_t candidate;                 /* of a trial: that it began with, or has loaded */
	uint32_t newest;                    /* the version that the last STEP, LOAD or RESTORE made */
	uint32_t oldest;                    /* of this stage that it ever had: it began with that */
	uint32_t version[CLUSTER_VERSIONS]; /* in each place; only the first is used if one is kept */
	uint64_t parameter[CLUSTER_VERSIONS][CLUSTER_ELEMENTS];
	uint32_t known[CLUSTER_VERSIONS]; /* bit e: element e there is the stage's; else it means nothing until LOAD */
	bool recomputed;                  /* RECOMPUTE was the last of the operations on the compute lane, for ... */
	uint32_t recomputed_round, recomputed_microbatch; /* ... this one */
	bool fresh; /* nothing was loaded and no step made since ENTER: its version is that of its next operation */
	uint64_t accumulator[CLUSTER_ROUNDS][CLUSTER_ELEMENTS];
	uint64_t result[CLUSTER_ROUNDS][CLUSTER_ELEMENTS];    /* of a reduction of several members */
	uint64_t tied_peer[CLUSTER_ROUNDS][CLUSTER_ELEMENTS]; /* what the other stage has summed of a tied table */
	/* periodic sync: what the inner steps of a round have come to, and of how many microbatches; what BACKWARD added since;
	 * is that of all in the accumulator now? */
	uint64_t inner[CLUSTER_ROUNDS][CLUSTER_ELEMENTS];
	uint32_t inner_total[CLUSTER_ROUNDS], inner_counted[CLUSTER_ROUNDS];
	bool pseudo[CLUSTER_ROUNDS];
	uint32_t pseudo_from[CLUSTER_ROUNDS]; /* of the elements from there on, where not of all; 0: of none */
	struct drift drift;
	struct gathered gathered;
	/* of the parts that the result of the round was made of in this attempt: microbatches, as they say */
	uint32_t weight[CLUSTER_ROUNDS], weight_attempt[CLUSTER_ROUNDS];
};

struct effect { /* what an operation did, for the ledger */
	struct skep_buf out, stash;
	int64_t loss_nano;
	uint64_t square;                      /* NORM */
	uint32_t version;                     /* of the parameters it ran on; LOAD: that it brought */
	uint64_t applied[CLUSTER_ELEMENTS];   /* STEP: the sum, */
	uint64_t tied_peer[CLUSTER_ELEMENTS]; /* and of a tied table the other stage's */
	uint64_t parameter[CLUSTER_ELEMENTS]; /* STEP and LOAD: afterwards, */
	uint32_t known;                       /* and which of them mean something */
};

#define ALL_KNOWN ((1u << CLUSTER_ELEMENTS) - 1)
/* Bits of the elements that chunk `chunk` of `size` holds. */
uint32_t device_chunk_mask(const struct skep_plan *plan, uint32_t stage, uint32_t chunk, uint32_t size);
/* frozen.c: those that are trained; and has this virtual stage, or one before it, any? */
uint32_t device_trained_mask(const struct skep_plan *plan, uint32_t stage);
bool device_goes_back(const struct skep_plan *plan, uint32_t vstage);
/* Those of a virtual stage that are trained, among its stage's. */
uint32_t device_vstage_mask(const struct skep_plan *plan, uint32_t vstage);

/* Those that the operation's round sums and steps. */
uint32_t device_fragment_mask(const struct skep_plan *plan, const struct skep_op *op);

/* sharded.c: those that the member of this rank steps, all without shards; which of those that it knew it knows behind its STEP;
 * what COPY_SHARD gives and STORE_SHARD takes, or what is wrong about it. */
uint32_t device_shard_mask(const struct skep_plan *plan, const struct skep_op *op, uint32_t rank);
uint32_t device_known_after_step(const struct skep_plan *plan, const struct skep_op *op, uint32_t known);
const char *device_give_shard(
	const struct device *device, const struct skep_plan *plan, const struct skep_op *op, uint64_t *ret);
const char *device_take_shard(struct device *device, const struct skep_plan *plan, const struct skep_op *op,
	const struct tensor *in, struct effect *effect);

/* Versions that a worker of the stage keeps: 1, 2 with delayed updates, and without a flush what a microbatch may lack at
 * most, and the newest. */
/* Rounds without a flush (no_flush.c): steps that FORWARD may lack, versions that are kept, the one that this FORWARD is to
 * read; and does BACKWARD read the newest parameters, whatever FORWARD did? */
uint32_t stream_staleness(const struct skep_plan *plan, uint32_t stage);
uint32_t stream_wave(const struct skep_plan *plan); /* microbatches that a pipeline is granted of a round */
uint32_t stream_lacked(const struct skep_plan *plan, uint32_t round, uint32_t microbatch, uint32_t version);
uint32_t stream_versions(const struct skep_plan *plan, uint32_t stage);
uint32_t stream_forward(const struct skep_plan *plan, const struct device *device, const struct skep_op *op);
bool stream_moves_on(const struct skep_plan *plan);
uint32_t device_versions(const struct skep_plan *plan, uint32_t stage);
/* Where it keeps this one. */
uint32_t device_place(const struct skep_plan *plan, uint32_t stage, uint32_t version);

/* tied.c: what an element of the table is stepped on; `own` is what any other of this virtual stage would be. */
uint64_t tied_gradient(const struct device *device, const struct skep_plan *plan, const struct skep_op *op,
	uint32_t element, uint64_t own, struct effect *ret);

double tied_norm(const struct device *device, const struct skep_plan *plan, const struct skep_op *op);

/* inner.c: INNER_STEP and PSEUDO_GRAD, and what others must not do between them; what is wrong about it, or NULL. A
 * gradient that an inner step was made on stays a gradient, so the pseudo-gradient is the sum of all that were counted. */
const char *device_inner(struct device *device, const struct skep_plan *plan, const struct skep_op *op);
/* Both, of the elements of a part of BACKWARD. */
const char *device_inner_part(struct device *device, const struct skep_op *op);

/* gossip.c: what else PSEUDO_GRAD does with `gossip`. */
void device_pair(struct device *device, const struct skep_op *op);

/* async.c: the same with `async`. */
const char *device_drift(struct drift *drift, const struct skep_op *op);

/* resumed.c: plan->first_round of a seed; what a device begins with, which holds a stage, and what was kept before that */
void resumed_draw(struct skep_plan *plan, uint64_t seed);
void resumed_device(struct device *device, const struct skep_plan *plan);
void resumed_kept(struct tensors *tensors, const struct skep_plan *plan);

void device_reset(struct device *device, const struct skep_plan *plan, uint32_t candidate, uint32_t stage);
/* Inputs must be live and owned by `who`. Frees what the operation consumes. */
void device_run(struct device *device, struct tensors *tensors, const struct skep_plan *plan, uint32_t who,
	const struct skep_op *op, struct effect *ret, struct verdict *verdict);
