/* SPDX-License-Identifier: Apache-2.0
 *
 * device.c - turns operations into arithmetic on the stage and on buffers of the pool. Every buffer that an operation
 * names is checked for its generation and exact size before any memory is touched. An operation that cannot be done
 * makes no buffer, changes nothing, and sets `failed` in its result.
 */
#include "models/device/device.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/corpus/data.h"
#include "models/device/device_internal.h"
#include "models/layers/random.h"

/* ---- life --------------------------------------------------------------------------------------------------- */

static const struct skep_backend *backend_of(enum skep_device_kind kind)
{
	static const struct skep_backend *const backends[] = {
		[SKEP_DEVICE_CPU] = &skep_backend_cpu, [SKEP_DEVICE_CUDA] = &skep_backend_cuda};
	return backends[kind];
}

bool skep_device_available(enum skep_device_kind kind, struct skep_diag *reterr)
{
	return backend_of(kind)->count(reterr) > 0;
}

uint32_t skep_device_count(enum skep_device_kind kind)
{
	struct skep_diag error = {0};
	return backend_of(kind)->count(&error);
}

void skep_device_describe(
	enum skep_device_kind kind, uint32_t ordinal, char *ret_name, size_t name_size, double *ret_memory_bytes)
{
	const struct skep_backend *backend = backend_of(kind);
	ret_name[0] = '\0';
	*ret_memory_bytes = 0;
	if (backend->describe)
		backend->describe(ordinal, ret_name, name_size, ret_memory_bytes);
}

/* Without a stage. */
static struct skep_device *create_bare(enum skep_device_kind kind, const struct skep_device_place *place,
	const struct skep_training *training, struct skep_diag *reterr)
{
	struct skep_memory_source source;
	struct skep_device *device = calloc(1, sizeof *device);
	struct skep_pool *pool = calloc(1, sizeof *pool);
	if (!device || !pool) {
		skep_fail(reterr, "not enough memory for a device");
	} else {
		*device = (struct skep_device){
			.training = training, .backend = backend_of(kind), .stage.index = SKEP_NO_STAGE, .pool = pool};
		if (device->backend->create(place, training, device->queue, &source, reterr)) {
			skep_pool_init(pool, &source);
			return device;
		}
	}
	free(device);
	free(pool);
	return NULL;
}

/* What is drawn comes from a seed of the candidate's own; that of the data is not its business. */
bool skep_device_begin_stage(struct skep_device *device, uint32_t candidate, uint32_t stage, struct skep_stage *ret)
{
	struct skep_plan plan = *device->training->plan;
	struct skep_training training = *device->training;
	plan.seed = skep_candidate_seed(plan.seed, candidate);
	training.plan = &plan;
	return device->backend->begin(device->queue[SKEP_LANE_COMPUTE], &training, stage, ret);
}

struct skep_device *skep_device_create_on(enum skep_device_kind kind, const struct skep_device_place *place,
	const struct skep_training *training, uint32_t stage, struct skep_diag *reterr)
{
	const char *expected;
	assert(stage == SKEP_NO_STAGE || stage < training->plan->stages);
	assert(training->samples > 0);
	assert((skep_model_ranks(training->model) > 1) == (training->tensor_group != NULL));
	if (!skep_device_available(kind, reterr))
		return NULL;
	if (!skep_corpus_fits(training->corpus, training->model, &expected)) {
		skep_fail(reterr, "model %s does not fit the corpus, which needs %s", training->model->name, expected);
		return NULL;
	}
	struct skep_device *device = create_bare(kind, place, training, reterr);
	if (!device)
		return NULL;
	if (stage == SKEP_NO_STAGE || skep_device_begin_stage(device, place->candidate, stage, &device->stage))
		return device;
	skep_device_destroy(device);
	skep_fail(reterr, "not enough memory for stage %u of model %s", stage, training->model->name);
	return NULL;
}

void skep_device_destroy(struct skep_device *device)
{
	if (!device)
		return;
	skep_device_gathered_finish(device);
	device->backend->finish(device->queue[SKEP_LANE_COMPUTE], &device->stage);
	skep_pool_finish(device->pool);
	device->backend->destroy(device->queue);
	free(device->pool);
	free(device);
}

/* ---- buffers ------------------------------------------------------------------------------------------------ */

struct skep_buf skep_device_buffer_create(struct skep_device *device, uint64_t bytes, void **ret_memory)
{
	return skep_pool_take(device->pool, bytes, ret_memory);
}

const void *skep_device_buffer_read(struct skep_device *device, struct skep_buf buf, uint64_t *ret_bytes)
{
	return skep_pool_find(device->pool, buf, ret_bytes);
}

void skep_device_buffer_release(struct skep_device *device, struct skep_buf buf)
{
	skep_pool_release(device->pool, buf);
}

static bool is_none(struct skep_buf buf)
{
	return !buf.slot && !buf.generation;
}

/* The memory of a live buffer of exactly so many bytes, else NULL. */
static void *find(struct skep_device *device, struct skep_buf buf, uint64_t bytes)
{
	uint64_t has;
	void *memory = skep_pool_find(device->pool, buf, &has);
	return has == bytes ? memory : NULL;
}

/* For an operand that only some have: NULL in *ret where it must be none. */
static bool find_if(struct skep_device *device, bool wanted, struct skep_buf buf, uint64_t bytes, const void **ret)
{
	*ret = wanted ? find(device, buf, bytes) : NULL;
	return wanted ? *ret != NULL : is_none(buf);
}

/* ---- passes ------------------------------------------------------------------------------------------------- */

/* The part of the stage that the operation is about: all of it, unless it has several virtual stages. */
struct skep_stage skep_device_part(const struct skep_device *device, const struct skep_op *op)
{
	uint32_t stages = device->training->plan->stages;
	struct skep_stage part = skep_stage_vstage(&device->stage, stages, op->stage / stages);
	part.queue = device_queue(device, op);
	if (!skep_training_has_workspace(device->training, part.index))
		part.workspace = NULL;
	return part;
}

static uint64_t in_bytes(const struct skep_device *device, const struct skep_stage *part)
{
	return skep_codec_bytes(device->training->activation_codec, device->training->activation_block, part->entering);
}

static uint64_t out_bytes(const struct skep_device *device, const struct skep_stage *part)
{
	return skep_codec_bytes(device->training->activation_codec, device->training->activation_block, part->leaving);
}

static bool is_last(const struct skep_device *device, const struct skep_stage *part)
{
	return part->index + 1 == skep_plan_vstages(device->training->plan);
}

/* A payload as n floats: itself if the stage has no `edge` for them, else decoded there. */
static const float *decoded(
	const struct skep_device *device, const struct skep_op *op, size_t n, const void *payload, float *edge)
{
	if (!payload || !edge)
		return payload;
	device->backend->decode(device_queue(device, op), device->training->activation_codec,
		device->training->activation_block, n, payload, edge);
	return edge;
}

/* Where to put the floats that encode() then turns into a payload. */
static float *to_encode(void *payload, float *edge)
{
	return payload && edge ? edge : payload;
}

static void encode(
	const struct skep_device *device, const struct skep_op *op, size_t n, const float *value, void *payload)
{
	if (value != payload)
		device->backend->encode(device_queue(device, op), device->training->activation_codec,
			device->training->activation_block, n, value, payload);
}

static int64_t loss_nano(double loss)
{
	double nano = loss * 1e9;
	return nano < 9.2e18 ? llround(nano) : INT64_MAX; /* NaN compares false */
}

/* The samples could not be drawn. */
static bool undrawn(struct skep_device *device, const struct skep_op *op, const struct skep_diag *diag)
{
	snprintf(device->why[op->lane], sizeof device->why[op->lane], "%.400s: %.500s", diag->file, diag->message);
	return false;
}

static bool run_forward(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	struct skep_stage part = skep_device_part(device, op), *const stage = &part;
	const void *in;
	void *out = NULL, *stash = stage->workspace;
	part.experts = &ret->experts;
	if (!find_if(device, stage->index > 0, op->in, in_bytes(device, stage), &in))
		return false;
	if (!stash)
		ret->stash =
			skep_pool_take_on(device->pool, SKEP_MEMORY_DEVICE, device_stash_bytes(device, stage), &stash);
	if (!stash)
		return false;
	skep_real *own = device_behind_stash(device, stage, stash);
	if (own)
		skep_stage_step_alone(stage, device->training, op, own);
	part.local = own;
	if (!is_last(device, stage))
		ret->out = skep_pool_take(device->pool, out_bytes(device, stage), &out);
	const float *x = decoded(device, op, stage->entering, in, stage->entry);
	float *told = to_encode(out, stage->exit), *y = skep_device_honest(device, stage->leaving, told);
	struct skep_diag diag = {0};
	if (!y && !is_last(device, stage))
		return false;
	device->finite_check[op->lane] =
		(struct skep_finite_check){.fault = out ? SKEP_FAULT_ACTIVATIONS : SKEP_FAULT_LOSS,
			.made = y,
			.n = stage->leaving,
			.stash = stash};
	if (!device->backend->forward(
		    device_queue(device, op), stage, device->training, op, x, y, stash, &device->loss[op->lane], &diag))
		return undrawn(device, op, &diag);
	skep_device_mislead(device, op, stage->leaving, y, told);
	encode(device, op, stage->leaving, told, out);
	return true;
}

/* What a part of BACKWARD leaves for the part below, between two layers. */
static uint64_t between_bytes(const struct skep_device *device, const struct skep_stage *stage, uint32_t layer)
{
	return sizeof(float) * device->training->samples * stage->layer[layer].in;
}

/* All layers, or those of a part. */
static bool layers_of(const struct skep_stage *stage, const struct skep_op *op, struct skep_layers *ret)
{
	*ret = (struct skep_layers){skep_stage_first_trained(stage), stage->layers};
	return op->parts == 0 || skep_stage_layers(stage, op->first, op->count, ret);
}

/* The gradient where these layers end: a payload at the stage's edge, else what the part above has left. */
static bool find_gradient(struct skep_device *device, const struct skep_stage *stage, const struct skep_op *op,
	const struct skep_layers *layers, const void **ret)
{
	bool leaves = layers->end == stage->layers;
	uint64_t bytes = leaves ? out_bytes(device, stage) : between_bytes(device, stage, layers->end);
	return find_if(device, !leaves || !is_last(device, stage), op->gradient, bytes, ret);
}

/* To where the backward pass looks for it. */
static void take_gradient(const struct skep_device *device, const struct skep_stage *stage, const struct skep_op *op,
	const struct skep_layers *layers, const void *gradient)
{
	const struct skep_backend *backend = device->backend;
	void *queue = device_queue(device, op);
	if (gradient && layers->end == stage->layers)
		backend->decode(queue, device->training->activation_codec, device->training->activation_block,
			stage->leaving, gradient, stage->scratch[0]);
	else if (gradient)
		backend->copy(queue, stage->scratch[0], gradient, between_bytes(device, stage, layers->end));
}

static bool recompute(struct skep_device *device, const struct skep_stage *stage, const struct skep_op *op,
	const float *x, struct skep_diag *reterr)
{
	return device->backend->recompute(
		device_queue(device, op), stage, device->training, op, x, stage->workspace, reterr);
}

/* The last step of a round, where that follows a part of BACKWARD. */
static bool step_behind(struct skep_device *device, const struct skep_op *op)
{
	return op->inner == 0 ||
	       device->backend->periodic(device_queue(device, op), &device->stage, device->training, op, NULL);
}

static bool run_backward(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	struct skep_stage part = skep_device_part(device, op), *stage = &part;
	bool first = stage->index == 0;
	bool ends =
		first || skep_plan_is_frozen(device->training->plan, stage->index - 1); /* nothing is trained before */
	struct skep_layers layers;
	const void *in, *gradient, *stash;
	void *out = NULL;
	if (skep_plan_is_frozen(device->training->plan, stage->index))
		return is_none(op->stash) && is_none(op->gradient) && step_behind(device, op);
	if (!layers_of(stage, op, &layers) ||
		!find_if(device, !stage->workspace, op->stash, device_stash_bytes(device, stage), &stash) ||
		!find_if(device, !first, op->in, in_bytes(device, stage), &in) ||
		!find_gradient(device, stage, op, &layers, &gradient))
		return false;
	bool enters = layers.first == skep_stage_first_trained(stage);
	if (!ends || !enters) {
		uint64_t bytes = enters ? in_bytes(device, stage) : between_bytes(device, stage, layers.first);
		enum skep_memory_side side = enters ? SKEP_MEMORY_HOST : SKEP_MEMORY_DEVICE;
		ret->out = skep_pool_take_on(device->pool, side, bytes, &out);
		if (!out)
			return false;
	}
	const float *x = decoded(device, op, stage->entering, in, stage->entry);
	struct skep_diag diag = {0};
	part.local = stash ? device_behind_stash(device, stage, (void *)(uintptr_t)stash) : NULL;
	if (!stash) { /* recomputed: it is there, no pass was made since */
		bool there = op->recomputed || op->part > 0;
		if (!there && !recompute(device, stage, op, x, &diag))
			return undrawn(device, op, &diag);
		stash = stage->workspace;
	}
	take_gradient(device, stage, op, &layers, gradient);
	bool encodes = enters && stage->entry;
	const float *x_gradient = device->backend->backward(
		device_queue(device, op), stage, device->training, op, &layers, x, stash, encodes ? NULL : out);
	uint64_t floats = enters ? stage->entering : between_bytes(device, stage, layers.first) / sizeof *x_gradient;
	if (out)
		device->finite_check[op->lane] =
			(struct skep_finite_check){.fault = SKEP_FAULT_GRADIENT, .made = x_gradient, .n = floats};
	if (out && enters)
		encode(device, op, stage->entering, x_gradient, out);
	return step_behind(device, op);
}

static bool run_recompute(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	const struct skep_stage part = skep_device_part(device, op), *stage = &part;
	const void *in;
	struct skep_diag diag = {0};
	(void)ret;
	if (!stage->workspace || !find_if(device, stage->index > 0, op->in, in_bytes(device, stage), &in))
		return false;
	const float *x = decoded(device, op, stage->entering, in, stage->entry);
	return recompute(device, stage, op, x, &diag) || undrawn(device, op, &diag);
}

/* ---- reduction and step ------------------------------------------------------------------------------------- */

/* A part with nothing in it has no vote, and what lies in its place may be written meanwhile (outer_step.c). */
static bool reads_own(const struct skep_op *op)
{
	bool part = op->kind == SKEP_OP_PACK_PART || op->kind == SKEP_OP_UNPACK_PART;
	if (op->kind == SKEP_OP_COPY_TIED) /* else it gives the sum */
		return op->members == 1;
	return (!part || op->microbatches > 0) && op->kind != SKEP_OP_STORE && op->kind != SKEP_OP_ADD_TO_RESULT &&
	       op->kind != SKEP_OP_COPY_RESULT && op->kind != SKEP_OP_AGGREGATE &&
	       (op->kind != SKEP_OP_UNPACK_PART || is_none(op->in));
}

bool skep_device_chunk(struct skep_device *device, const struct skep_op *op, struct skep_chunk *ret)
{
	uint64_t all = device->stage.parameters;
	if (op->first > all || op->count > all - op->first)
		return false;
	ret->own = reads_own(op) ? skep_device_own(device, op, op->first, op->count) : NULL;
	ret->result = device->stage.result + op->first;
	ret->count = op->count;
	ret->bytes = skep_codec_bytes(skep_device_codec(device), device->training->reduction_block, op->count);
	return ret->own || !reads_own(op);
}

/* COPY_RESULT leaves in the result what the others will have there, as ADD_STORE does; so does COPY_TIED, whose sum is the
 * own part where the stage has one member. */
static bool run_take(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	const enum skep_codec codec = skep_device_codec(device);
	const uint32_t block = device->training->reduction_block;
	const bool gives = op->kind == SKEP_OP_COPY_RESULT || op->kind == SKEP_OP_COPY_TIED;
	struct skep_chunk chunk;
	void *out;
	if (!skep_device_chunk(device, op, &chunk))
		return false;
	ret->out = skep_pool_take(device->pool, chunk.bytes, &out);
	if (!out)
		return false;
	if (gives && chunk.own)
		device->backend->copy(
			device_queue(device, op), chunk.result, chunk.own, chunk.count * sizeof *chunk.result);
	device->backend->encode(
		device_queue(device, op), codec, block, chunk.count, gives ? chunk.result : chunk.own, out);
	if (gives && codec != SKEP_CODEC_NONE)
		device->backend->decode(device_queue(device, op), codec, block, chunk.count, out, chunk.result);
	return true;
}

/* ADD, ADD_STORE and STORE consume `in` by handing it back as `out`. What is stored is always decoded from `out`, so
 * that the worker that made the sum has the same bits as the workers that receive it. */
static bool run_receive(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	const enum skep_codec codec = skep_device_codec(device);
	const uint32_t block = device->training->reduction_block;
	struct skep_chunk chunk;
	void *in = skep_device_chunk(device, op, &chunk) ? find(device, op->in, chunk.bytes) : NULL;
	if (!in) {
		skep_pool_release(device->pool, op->in);
		return false;
	}
	if (op->kind == SKEP_OP_STORE)
		device->backend->decode(device_queue(device, op), codec, block, chunk.count, in, chunk.result);
	else
		device->backend->add(device_queue(device, op), codec, block, chunk.count, chunk.own, in,
			op->kind == SKEP_OP_ADD_STORE ? chunk.result : NULL);
	ret->out = op->in;
	return true;
}

static bool run_keep(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	struct skep_chunk chunk;
	(void)ret;
	if (!skep_device_chunk(device, op, &chunk))
		return false;
	device->backend->copy(device_queue(device, op), chunk.result, chunk.own, chunk.count * sizeof *chunk.result);
	return true;
}

static bool run_fold(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	struct skep_chunk chunk;
	const void *in = skep_device_chunk(device, op, &chunk) ? find(device, op->in, chunk.bytes) : NULL;
	(void)ret;
	if (in)
		device->backend->fold(device_queue(device, op), skep_device_codec(device),
			device->training->reduction_block, chunk.count, in, chunk.result);
	else
		skep_pool_release(device->pool, op->in);
	return in != NULL;
}

/* What the other stage has summed of a tied table. */
static bool run_take_tied_peer(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	const struct skep_stage *stage = &device->stage;
	const enum skep_codec codec = skep_device_codec(device);
	const uint32_t block = device->training->reduction_block;
	bool ours = stage->tied_peer && op->first == stage->tied.first && op->count == stage->tied.count;
	const void *in = ours ? find(device, op->in, skep_codec_bytes(codec, block, op->count)) : NULL;
	(void)ret;
	if (in)
		device->backend->decode(device_queue(device, op), codec, block, op->count, in, stage->tied_peer);
	else
		skep_pool_release(device->pool, op->in);
	return in != NULL;
}

static bool run_inner(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	(void)ret;
	return device->backend->periodic(device_queue(device, op), &device->stage, device->training, op, NULL);
}

static bool run_discard(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	(void)ret;
	device->backend->discard(device_queue(device, op), &device->stage, op->round);
	return true;
}

/* ---- the rest ----------------------------------------------------------------------------------------------------- */

void skep_device_set_keeper(struct skep_device *device, const struct skep_keeper *keeper)
{
	device->keeper = *keeper;
}

/* A device does not know the others. */
static bool run_apart(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	(void)device, (void)op, (void)ret;
	return false;
}

/* ---- one operation ------------------------------------------------------------------------------------------ */

/* The stage that the operation is about, or one of its virtual stages. */
static bool holds(const struct skep_device *device, const struct skep_op *op)
{
	const struct skep_plan *plan = device->training->plan;
	if (!skep_op_sliced(op->kind))
		return device->stage.index == op->stage;
	return op->stage < skep_plan_vstages(plan) && device->stage.index == op->stage % plan->stages;
}

static bool run(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	static skep_device_run_fn *const runs[SKEP_OP_KINDS] = {
		[SKEP_OP_FORWARD] = run_forward,
		[SKEP_OP_BACKWARD] = run_backward,
		[SKEP_OP_RECOMPUTE] = run_recompute,
		[SKEP_OP_INNER_STEP] = run_inner,
		[SKEP_OP_PSEUDO_GRAD] = run_inner,
		[SKEP_OP_DISCARD] = run_discard,
		[SKEP_OP_STEP] = skep_device_run_step,
		[SKEP_OP_NORM] = skep_device_run_norm,
		[SKEP_OP_SAVE] = skep_device_run_save,
		[SKEP_OP_LOAD] = skep_device_run_load,
		[SKEP_OP_CHECKPOINT] = skep_device_run_checkpoint,
		[SKEP_OP_RESTORE] = skep_device_run_restore,
		[SKEP_OP_COPY_GRAD] = run_take,
		[SKEP_OP_ADD] = run_receive,
		[SKEP_OP_ADD_STORE] = run_receive,
		[SKEP_OP_STORE] = run_receive,
		[SKEP_OP_INIT_RESULT] = run_keep,
		[SKEP_OP_ADD_TO_RESULT] = run_fold,
		[SKEP_OP_COPY_RESULT] = run_take,
		[SKEP_OP_COPY_TIED] = run_take,
		[SKEP_OP_STORE_TIED] = run_take_tied_peer,
		[SKEP_OP_ALLREDUCE] = run_apart,
		[SKEP_OP_COPY_SHARD] = skep_device_copy_shard,
		[SKEP_OP_STORE_SHARD] = skep_device_store_shard,
		[SKEP_OP_PACK_PART] = skep_device_pack_part,
		[SKEP_OP_UNPACK_PART] = skep_device_unpack_part,
		[SKEP_OP_AGGREGATE] = skep_device_aggregate,
	};
	if (op->kind == SKEP_OP_ENTER)
		return skep_device_run_enter(device, op);
	assert(op->kind < SKEP_OP_KINDS && runs[op->kind]);
	return holds(device, op) && runs[op->kind](device, op, ret);
}

static void fail(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	const char *why = device->why[op->lane];
	skep_pool_release(device->pool, ret->out);
	skep_pool_release(device->pool, ret->stash);
	*ret = (struct skep_device_result){.failed = true, .why = why[0] ? why : NULL, .loss_nano = INT64_MAX};
}

void skep_device_start(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	assert(op->lane < SKEP_LANES);
	*ret = (struct skep_device_result){0};
	device->why[op->lane][0] = '\0';
	device->loss[op->lane] = 0;
	device->finite_check[op->lane] = (struct skep_finite_check){0};
	if (!run(device, op, ret))
		fail(device, op, ret);
}

/* The operand of ADD_TO_RESULT, UNPACK_PART and STORE_TIED is the device's until it has been read. */
void skep_device_wait(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	if (ret->failed)
		return;
	bool done =
		device->backend->wait(device_queue(device, op), device->why[op->lane], sizeof device->why[op->lane]);
	if (op->kind == SKEP_OP_ADD_TO_RESULT || op->kind == SKEP_OP_UNPACK_PART || op->kind == SKEP_OP_STORE_TIED)
		skep_pool_release(device->pool, op->in);
	if (!done || !skep_device_end_step(device, op, ret)) {
		fail(device, op, ret);
		return;
	}
	if (op->kind == SKEP_OP_FORWARD)
		ret->loss_nano = loss_nano(device->loss[op->lane]);
	skep_device_check_finite(device, op, ret);
}

void skep_device_run(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	skep_device_start(device, op, ret);
	skep_device_wait(device, op, ret);
}
