/* SPDX-License-Identifier: Apache-2.0
 *
 * device.h - the arithmetic of one worker: the operations of core/skep.h on real tensors.
 *
 * A device holds one stage's parameters (skep_plan_versions() of them, and with periodic sync inner ones), optimizer state (with
 * periodic sync that of both optimizers), accumulators (one per round parity), the result of a reduction, and a pool of buffers
 * named by handles with a generation. Both worlds use
 * it: the executor on its device thread, the simulator at once in virtual time. What a build lacks (CUDA) says so when
 * asked for. One thread at a time, except that buffer_* and run may be called from different threads if the caller hands
 * handles over with a lock.
 */
#pragma once

#include <assert.h>
#include <string.h>

#include "base/diag.h"
#include "core/record.h"
#include "models/checkpoint/checkpoint.h"
#include "models/device/pool.h"
#include "models/read/model.h"
#include "models/update/byzantine.h"
#include "models/update/robust.h"

enum skep_corpus {
	SKEP_CORPUS_QUADRATIC, /* y = x^2, x uniform on [-5, 5], per component */
	SKEP_CORPUS_TOKENS,    /* sequences of a text, and of each place what comes next */
	SKEP_CORPUS_IMAGES     /* images, and the class of each (corpus/images.h) */
};
enum skep_offload { /* what is in the host's memory, not in the device's */
	SKEP_OFFLOAD_NONE,
	SKEP_OFFLOAD_OPTIMIZER, /* moments, and parameters for the step */
	SKEP_OFFLOAD_GRADIENTS  /* these, and accumulators and results of reductions */
};
enum skep_optimizer_kind {
	SKEP_OPTIMIZER_SGD,
	SKEP_OPTIMIZER_ADAMW,
	SKEP_OPTIMIZER_NESTEROV,
	SKEP_OPTIMIZER_LAMB, /* not element by element: a newcomer steps along only on a whole state, in one chunk */
	SKEP_OPTIMIZER_DELAYED_NESTEROV /* the outer one of asynchronous periodic sync */
};
enum skep_rate_decay { SKEP_RATE_CONSTANT, SKEP_RATE_COSINE, SKEP_RATE_LINEAR };

/* The learning rate rises in a straight line over `warmup` steps, and then falls until step `steps` to `least` of what it
 * was. */
struct skep_rates {
	enum skep_rate_decay decay;
	uint32_t warmup, steps;
	float least;
	uint32_t
		by_staleness; /* steps in which the rate of a stage depends on how stale it is (moved.c); 0: it never does */
};

struct skep_optimizer {
	enum skep_optimizer_kind kind;
	float learning_rate, momentum, beta1, beta2, epsilon, weight_decay;
	float clip_norm; /* most that the norm of all gradients together may be; 0: it is not clipped */
	uint32_t turns;  /* delayed Nesterov: steps from one change of the momentum to the next */
	struct skep_rates rates;
};

/* The learning rate of the step that ends round `round`, of a stage that lacks no step. */
float skep_optimizer_rate(const struct skep_optimizer *optimizer, uint32_t round);

/* How many numbers the optimizer keeps for each parameter: means and squares, or a velocity, or a velocity and a
 * buffer. */
uint32_t skep_optimizer_moments(const struct skep_optimizer *optimizer);

struct skep_safetensors;
struct skep_tensor_group;
struct skep_tokens;

struct skep_training { /* constant, shared */
	const struct skep_model *model;
	const struct skep_plan *plan;
	enum skep_corpus corpus;
	uint64_t points;                  /* of the quadratic corpus: it has so many samples; 0: no end of them */
	const struct skep_tokens *tokens; /* of a corpus of tokens, or of images in files; else NULL */
	struct skep_optimizer optimizer;  /* with periodic sync the inner one */
	struct skep_optimizer outer;      /* with periodic sync, of STEP */
	float mixing; /* the same, with delayed updates: the part of its own parameters that a worker keeps in a STEP */
	uint32_t samples;                 /* per microbatch */
	enum skep_codec activation_codec; /* of the payloads of FORWARD and BACKWARD: activations and their gradients */
	enum skep_codec reduction_codec;  /* of the payloads of reductions, */
	const uint8_t *reduction_codecs;  /* or of those of each stage, as in the plan; NULL: that one */
	uint32_t activation_block, reduction_block; /* the same: elements with a scale in common (core/codec.h) */
	struct skep_robust robust; /* what is made of parts that are gathered (plan->reduction.gather) */
	enum skep_offload offload;
	/* FORWARD keeps no stash in these stages; BACKWARD, given none, does the forward pass again. */
	enum skep_checkpointing checkpoint_activations;
	const struct skep_safetensors *weights; /* the first parameters, which fit the model; NULL: they are drawn */
	const struct skep_tensor_group
		*tensor_group; /* of a shard, in whose passes the ranks meet; NULL: the model is whole */
};

/* The one whose numbers are in the state of a stage: that of STEP. */
const struct skep_optimizer *skep_training_stepper(const struct skep_training *training);

/* Is what a pass makes in this virtual stage kept by the device alone, and no stash? So it is too where nothing is trained. */
bool skep_training_has_workspace(const struct skep_training *training, uint32_t stage);

/* A payload is a buffer that is encoded as a whole: samples * width elements, or a chunk. The first stage's samples, states and
 * stashes are no payloads. ADD decodes, sums in fp32 and encodes again; what ADD_STORE stores is what it puts out, decoded: the
 * same bits as in those who STORE it, and so with COPY_RESULT. Before a part that is OFFERed stands the number of
 * microbatches in it, SKEP_PART_HEADER_BYTES in the byte order of the machine. A STEP with size 1 takes the accumulator as
 * it is. */

/* Bytes of the state of a stage of so many parameters in so many chunks: parameters, optimizer moments of those that are
 * trained and a header for each chunk. */
uint64_t skep_device_state_bytes(
	const struct skep_optimizer *optimizer, uint64_t parameters, uint64_t trained, uint32_t chunks);

struct skep_device;

enum skep_device_kind { SKEP_DEVICE_CPU, SKEP_DEVICE_CUDA };

/* Can this build make such a device; if not, `error` says what is missing and what to do. */
bool skep_device_available(enum skep_device_kind kind, struct skep_diag *reterr);

/* On this machine and among candidates. */
struct skep_device_place {
	uint32_t ordinal;   /* among several such devices, from 0 */
	uint32_t threads;   /* of a CPU, which change no bit; 0 and 1: none but those who call */
	uint32_t candidate; /* that its worker begins in (core/plan.h); 0 is the one of a run without a trial */
};
/* Parameters of `stage` are initialised from the plan's seed: equal on every worker of the stage. SKEP_NO_STAGE: no stage
 * yet, ENTER brings one. Returns NULL and fills error (what is missing, what to do) when the kind is not built or has no
 * hardware. */
struct skep_device *skep_device_create_on(enum skep_device_kind kind, const struct skep_device_place *place,
	const struct skep_training *training, uint32_t stage, struct skep_diag *reterr);
void skep_device_destroy(struct skep_device *device); /* NULL is fine */

/* The number of devices of this kind on which skep_device_create_on() can create one. */
uint32_t skep_device_count(enum skep_device_kind kind);
/* What the processor or GPU number `ordinal` is called, and the memory that it computes in, bytes (a processor shares it with all
 * others of its host); "" and 0 where that cannot be told. */
void skep_device_describe(
	enum skep_device_kind kind, uint32_t ordinal, char *ret_name, size_t name_size, double *ret_memory_bytes);

struct skep_device_result {
	struct skep_buf out, stash;
	bool failed;     /* it could not be done, */
	const char *why; /* and why, if there is more to say than that; the device's, until its next operation */
	int64_t loss_nano; /* FORWARD in the last stage: mean over the samples; INT64_MAX if it is not finite or too large */
	uint64_t square;     /* NORM (core/square.h) */
	uint64_t parameters; /* STEP: a sum of those that it has made, as core/skep.h has it; 0: not known */
	uint8_t fault; /* enum skep_fault: it was done, and what it made is not finite; or it could not be kept, and `why` */
	uint16_t layer;                 /* of the model, from 1, that made it so; 0: that cannot be told */
	struct skep_expert_use experts; /* FORWARD, on a CPU */
};
/* Sets where CHECKPOINT writes states and RESTORE reads them; without a keeper both operations fail. */
void skep_device_set_keeper(struct skep_device *device, const struct skep_keeper *keeper);
/* Before its first operation: has it a stage, it begins with the state that was kept as of the start of round `version`, if there
 * was a round before that; of a stage in shards with that of rank `rank` (skep_plan_first_rank()). False with the reason: that
 * state cannot be read. */
bool skep_device_take_up(struct skep_device *device, uint32_t version, uint32_t rank, struct skep_diag *reterr);
/* Makes the device Byzantine: from now on it reports wrong gradients. */
void skep_device_set_byzantine(struct skep_device *device, const struct skep_byzantine *byzantine);

/* Runs the operation to its end. ENTER gives the device a stage (op->stage), or another one. An operation that cannot
 * be done (an operand stale or of the wrong size, a state of another stage, memory lacking) changes nothing, yields no
 * buffer and loss_nano INT64_MAX, and is marked as failed: the world must not go on as if it had been done. */
void skep_device_run(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret);

/* The same in two halves, so that operations of several lanes can be under way at once: start one after the other, wait side
 * by side. What is between them belongs to the device. A lane starts its next operation when it has waited for the one
 * before. */
void skep_device_start(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret);
void skep_device_wait(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret);

/* OP_DONE, as a machine is to hear of an operation that did not fail. */
static inline struct skep_event skep_device_event(
	const struct skep_op *op, const struct skep_device_result *result, skep_time elapsed_ns)
{
	struct skep_event event;
	assert(!result->failed);
	memset(&event, 0, sizeof event);
	event.kind = SKEP_EVENT_OP_DONE;
	event.fault = result->fault;
	event.layer = result->layer;
	event.u.done.op = *op;
	event.u.done.out = result->out;
	event.u.done.stash = result->stash;
	event.u.done.loss_nano = result->loss_nano;
	if (op->kind == SKEP_OP_NORM)
		event.u.done.square = result->square;
	if (op->kind == SKEP_OP_STEP)
		event.u.done.parameters = result->parameters;
	event.u.done.elapsed_ns = elapsed_ns;
	return event;
}

/* A new buffer of `bytes` with its host memory for filling; {0, 0} and NULL when memory lacks. Release is idempotent: stale
 * handles are ignored. */
struct skep_buf skep_device_buffer_create(struct skep_device *device, uint64_t bytes, void **ret_memory);
const void *skep_device_buffer_read(
	struct skep_device *device, struct skep_buf buf, uint64_t *ret_bytes); /* NULL if stale */
void skep_device_buffer_release(struct skep_device *device, struct skep_buf buf);
/* The buffer's bytes in a new buffer of `to`, which may be the same device; {0, 0} when memory lacks. Not of a stale handle. */
static inline struct skep_buf skep_device_buffer_copy(
	struct skep_device *to, struct skep_device *from, struct skep_buf buf)
{
	uint64_t bytes;
	void *memory;
	const void *read = skep_device_buffer_read(from, buf, &bytes);
	assert(read); /* a machine names what it holds */
	struct skep_buf copy = skep_device_buffer_create(to, bytes, &memory);
	if (memory)
		memcpy(memory, read, bytes);
	return copy;
}
