/* SPDX-License-Identifier: Apache-2.0
 *
 * stage.c - lays a stage out in memory, draws its first parameters, and turns its state into bytes and back. The order of the
 * parameters in memory is the order in which reductions cut them into chunks, so it is the same on every worker.
 */
#include "models/stage/stage.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/sum.h"
#include "core/sums.h"
#include "models/layers/attention.h"

enum { ALIGN_FLOATS = SKEP_STAGE_LINE };

struct state_header {
	char magic[4];
	uint16_t stage;
	uint8_t moments, vstages; /* with another `vstages` the same numbers are of other layers */
	uint32_t chunk, chunks;
	uint64_t parameters, steps; /* of the whole stage */
};
static_assert(sizeof(struct state_header) == SKEP_STATE_HEADER_BYTES, "the header has no holes");

static const char state_magic[4] = "skp3";

/* With trainer routing in any case where the two passes are two visits. */
static bool recomputes(const struct skep_training *training, uint32_t stage)
{
	return skep_plan_recomputes(training->plan, training->checkpoint_activations, stage);
}

uint32_t skep_optimizer_moments(const struct skep_optimizer *optimizer)
{
	return optimizer->kind == SKEP_OPTIMIZER_SGD || optimizer->kind == SKEP_OPTIMIZER_NESTEROV ? 1 : 2;
}

bool skep_training_has_workspace(const struct skep_training *training, uint32_t stage)
{
	return skep_plan_is_frozen(training->plan, stage) || recomputes(training, stage);
}

const struct skep_optimizer *skep_training_stepper(const struct skep_training *training)
{
	return skep_plan_periodic(training->plan) ? &training->outer : &training->optimizer;
}

uint64_t skep_device_state_bytes(
	const struct skep_optimizer *optimizer, uint64_t parameters, uint64_t trained, uint32_t chunks)
{
	return (uint64_t)chunks * SKEP_STATE_HEADER_BYTES +
	       sizeof(float) * (parameters + trained * skep_optimizer_moments(optimizer));
}

/* ---- layout ------------------------------------------------------------------------------------------------- */

static size_t aligned(size_t floats)
{
	return (floats + ALIGN_FLOATS - 1) / ALIGN_FLOATS * ALIGN_FLOATS;
}

static size_t larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

/* In the order of fragments: layers 0, P, 2 P, .. of the virtual stage, then 1, P + 1, .. */
static void place_parameters(struct skep_stage *stage, struct skep_vstage *vstage)
{
	vstage->parameter = stage->parameters;
	for (uint32_t f = 0; f < stage->strides; f++)
		for (uint32_t l = f; l < vstage->layers; l += stage->strides) {
			struct skep_layer *layer = &stage->layer[vstage->layer + l];
			layer->parameter = stage->parameters;
			stage->parameters += layer->parameters;
		}
	vstage->parameters = stage->parameters - vstage->parameter;
}

/* Places the layers of a virtual stage, which begins with layer `first` of the model. */
static void place_layers(const struct skep_training *training, uint32_t first, struct skep_stage *stage,
	struct skep_vstage *vstage, struct skep_extent *extent)
{
	const struct skep_model *model = training->model;
	size_t samples = training->samples, stash = first ? 0 : aligned(samples * model->width[0]);
	extent->widest = larger(extent->widest, samples * model->width[first]);
	for (uint32_t l = 0; l < vstage->layers; l++) {
		struct skep_layer *layer = &stage->layer[vstage->layer + l];
		*layer = skep_layer_of(model, first + l);
		layer->value = stash;
		layer->kept = stash + (l + 1 < vstage->layers ? aligned(samples * layer->out) : 0);
		stash = layer->kept + aligned(samples * layer->type->inside(layer));
		extent->widest = larger(extent->widest, samples * layer->out);
		if (layer->type->work)
			extent->work = larger(extent->work, layer->type->work(layer, training->samples));
		if (layer->type->strips)
			extent->strips = larger(extent->strips, aligned(layer->type->strips(layer)));
	}
	place_parameters(stage, vstage);
	vstage->stash = stash;
	vstage->entering = samples * model->width[first];
	vstage->leaving = samples * model->width[first + vstage->layers];
	stage->stash_bytes = larger(stage->stash_bytes, stash * sizeof(skep_real));
	stage->entering = larger(stage->entering, vstage->entering);
	stage->leaving = larger(stage->leaving, vstage->leaving);
}

/* The layer of the model with which virtual stage `nth` of the stage begins. */
static uint32_t first_layer(
	const struct skep_training *training, const struct skep_stage *stage, uint32_t nth, uint32_t *ret_layers)
{
	uint32_t first, number = nth * training->plan->stages + stage->index;
	skep_model_cut(training->model, skep_plan_vstages(training->plan), number, &first, ret_layers);
	return first;
}

/* Allocates the virtual stages and their layers. */
static bool cut(const struct skep_training *training, struct skep_stage *stage)
{
	stage->vstage = calloc(stage->vstages, sizeof *stage->vstage);
	for (uint32_t nth = 0; stage->vstage && nth < stage->vstages; nth++) {
		struct skep_vstage *vstage = &stage->vstage[nth];
		first_layer(training, stage, nth, &vstage->layers);
		vstage->layer = stage->layers;
		stage->layers += vstage->layers;
	}
	stage->layer = calloc(stage->layers, sizeof *stage->layer);
	return stage->vstage && stage->layer;
}

static skep_real *carve(skep_real **rest, size_t floats)
{
	skep_real *piece = *rest;
	*rest += aligned(floats);
	return piece;
}

/* The stage's queue is the device's thread pool. */
static bool allocate(const struct skep_training *training, struct skep_stage *stage, const struct skep_extent *extent)
{
	const size_t strips = skep_thread_pool_size(stage->queue) * extent->strips;
	const bool encodes = training->activation_codec != SKEP_CODEC_NONE,
		   checkpoints = skep_training_has_workspace(training, stage->index);
	const size_t trained = skep_stage_trained_floats(stage);
	const bool periodic = skep_plan_periodic(training->plan);
	const bool async = training->plan->async.on;
	const size_t moment = skep_stage_moment_floats(stage);
	size_t arrays = stage->versions + (periodic ? 1 + async : 0),
	       part = stage->inner_moments + stage->accumulators + 1;
	const bool moves = skep_plan_moves_weights(training->plan) && !skep_plan_waves(training->plan),
		   drifts = training->plan->no_flush.weights == SKEP_WEIGHTS_CORRECTED;
	size_t floats = (arrays + moves) * aligned(stage->parameters) + part * aligned(trained) +
	                stage->moments * aligned(moment) + 2 * aligned(extent->widest) + aligned(extent->work) +
	                aligned(extent->rotation) + strips;
	floats += aligned(stage->tied.count) + (drifts ? aligned(trained) : 0);
	floats += encodes ? aligned(stage->entering) + aligned(stage->leaving) : 0;
	floats += checkpoints ? stage->stash_bytes / sizeof(skep_real) : 0;
	skep_real *rest = stage->memory = aligned_alloc(ALIGN_FLOATS * sizeof *rest, floats * sizeof *rest);
	if (!rest)
		return false;
	memset(rest, 0, floats * sizeof *rest);
	stage->parameter = carve(&rest, stage->versions * stage->stride);
	for (uint32_t m = 0; m < stage->moments; m++)
		stage->moment[m] =
			stage->sharded ? carve(&rest, moment) : skep_stage_array(stage, carve(&rest, moment));
	if (periodic)
		stage->inner = carve(&rest, stage->parameters);
	if (async)
		stage->base = carve(&rest, stage->parameters);
	for (uint32_t m = 0; m < stage->inner_moments; m++)
		stage->inner_moment[m] = skep_stage_array(stage, carve(&rest, trained));
	for (uint32_t i = 0; i < stage->accumulators; i++)
		stage->accumulator[i] = skep_stage_array(stage, carve(&rest, trained));
	stage->result = skep_stage_array(stage, carve(&rest, trained));
	if (moves)
		stage->moved = carve(&rest, stage->parameters);
	if (drifts)
		stage->drift = skep_stage_array(stage, carve(&rest, trained));
	if (stage->tied.count > 0)
		stage->tied_peer = carve(&rest, stage->tied.count);
	stage->scratch[0] = carve(&rest, extent->widest);
	stage->scratch[1] = carve(&rest, extent->widest);
	if (extent->work > 0)
		stage->work = carve(&rest, extent->work);
	if (strips > 0)
		stage->strips = carve(&rest, strips);
	if (extent->rotation > 0)
		stage->rotation = carve(&rest, extent->rotation);
	if (encodes) {
		stage->entry = carve(&rest, stage->entering);
		stage->exit = carve(&rest, stage->leaving);
	}
	if (checkpoints)
		stage->workspace = carve(&rest, stage->stash_bytes / sizeof(skep_real));
	return true;
}

/* What is not trained: the layers that begin the model, and at its end a copy of their table. */
static void find_trained(const struct skep_model *model, struct skep_stage *stage)
{
	const struct skep_layer *last = &stage->layer[stage->layers - 1];
	bool copy = last->number + 1 == model->layers && skep_model_table_is_frozen(model);
	for (uint32_t l = 0; l < stage->layers; l++)
		stage->trained.first += stage->layer[l].number < model->frozen ? stage->layer[l].parameters : 0;
	stage->trained.count = stage->parameters - stage->trained.first - (copy ? skep_model_copied(model) : 0);
}

/* The first chunks are the largest; without shards there is one. */
static void find_shard(const struct skep_plan *plan, struct skep_stage *stage)
{
	uint64_t first, count;
	skep_chunk_range(stage->trained.count, 0, skep_plan_shards(plan, stage->index), &first, &count);
	stage->sharded = plan->sharded;
	stage->shard = (struct skep_range){stage->trained.first, count};
}

bool skep_stage_name_shard(struct skep_stage *stage, const struct skep_plan *plan, uint32_t rank, uint32_t members)
{
	uint64_t first, count;
	if (!stage->sharded)
		return true;
	skep_plan_shard(plan, stage->index, rank, members, &first, &count);
	if (stage->shard_named)
		return stage->shard.first == first && stage->shard.count == count;
	if (count > stage->shard.count)
		return false;
	stage->shard = (struct skep_range){first, count};
	stage->shard_named = true;
	stage->shard_rank = rank;
	return true;
}

/* Delayed by a step differences swing, by the root of the momentum in each step: with a half they halve in two. */
static bool differs(const struct skep_training *training)
{
	const struct skep_plan *plan = training->plan;
	const double most = 0.5;
	if (skep_plan_no_flush(plan) || skep_plan_periodic(plan))
		return false;
	return !plan->delayed || (skep_plan_compresses(plan) && training->model->resnet.momentum <= most);
}

bool skep_stage_place(
	const struct skep_training *training, uint32_t index, struct skep_stage *ret, struct skep_extent *ret_extent)
{
	uint32_t layers;
	*ret_extent = (struct skep_extent){0};
	*ret = (struct skep_stage){.index = index,
		.vstages = skep_plan_model_chunks(training->plan),
		.strides = training->plan->inner.strided ? skep_plan_fragments(training->plan) : 1,
		.moments = skep_optimizer_moments(skep_training_stepper(training)),
		.inner_moments = skep_plan_periodic(training->plan) ? skep_optimizer_moments(&training->optimizer) : 0,
		.older_kept = skep_plan_steps_beside(training->plan),
		.inner_kept = skep_plan_inner_kept(training->plan, index),
		.shared = SIZE_MAX,
		.tensor_group = training->tensor_group,
		.arrays = &skep_arrays_host};
	if (!cut(training, ret))
		return false;
	for (uint32_t nth = 0; nth < ret->vstages; nth++)
		place_layers(training, first_layer(training, ret, nth, &layers), ret, &ret->vstage[nth], ret_extent);
	find_trained(training->model, ret);
	find_shard(training->plan, ret);
	if (training->model->architecture == SKEP_ARCHITECTURE_LLAMA)
		ret_extent->rotation =
			(size_t)training->model->sequence * (training->model->hidden / training->model->heads);
	if (training->model->tied && ret->layers == training->model->layers)
		ret->shared = 0;
	if (skep_plan_is_tied(training->plan, index))
		ret->tied = (struct skep_tied){
			index == 0 ? 0 : ret->parameters - training->plan->tied, training->plan->tied};
	ret->differs = differs(training);
	ret->versions = skep_plan_versions(training->plan, index);
	ret->accumulators = skep_plan_accumulators(training->plan);
	ret->staleness = skep_plan_staleness(training->plan, index);
	ret->synchronous = training->plan->no_flush.synchronous;
	ret->stride = aligned(ret->parameters);
	return true;
}

void skep_stage_draw(const struct skep_training *training, const struct skep_stage *stage)
{
	for (uint32_t l = 0; l < stage->layers; l++)
		skep_layer_draw(&stage->layer[l], training->plan->seed, stage->parameter + stage->layer[l].parameter);
}

bool skep_stage_init(const struct skep_training *training, uint32_t index, struct skep_stage *ret)
{
	return skep_stage_init_for(training, NULL, index, ret);
}

bool skep_stage_init_for(const struct skep_training *training, struct skep_thread_pool *thread_pool, uint32_t index,
	struct skep_stage *ret)
{
	struct skep_extent extent;
	bool placed = skep_stage_place(training, index, ret, &extent);
	ret->queue = thread_pool;
	if (!placed || !allocate(training, ret, &extent)) {
		skep_stage_finish(ret);
		return false;
	}
	skep_stage_draw(training, ret);
	if (ret->base)
		skep_stage_settle(ret);
	else if (ret->inner)
		skep_stage_follow(ret, 0, 0, ret->parameters);
	if (ret->rotation)
		skep_rotation_fill(training->model->sequence, training->model->hidden / training->model->heads,
			training->model->rotary_base, ret->rotation);
	return true;
}

struct skep_stage skep_stage_vstage(const struct skep_stage *stage, uint32_t stages, uint32_t nth)
{
	const struct skep_vstage *vstage = &stage->vstage[nth];
	struct skep_stage part = *stage;
	part.index = nth * stages + stage->index;
	part.layer = stage->layer + vstage->layer;
	part.layers = vstage->layers;
	part.stash_bytes = vstage->stash * sizeof(skep_real);
	part.entering = vstage->entering;
	part.leaving = vstage->leaving;
	return part;
}

void skep_stage_finish(struct skep_stage *stage)
{
	free(stage->vstage);
	free(stage->layer);
	free(stage->memory);
	*stage = (struct skep_stage){.index = SKEP_NO_STAGE};
}

bool skep_stage_layers(const struct skep_stage *stage, uint64_t first, uint64_t count, struct skep_layers *ret)
{
	*ret = (struct skep_layers){skep_stage_first_trained(stage), 0};
	while (ret->first < stage->layers && stage->layer[ret->first].parameter < first)
		ret->first++;
	ret->end = ret->first;
	while (ret->end < stage->layers && stage->layer[ret->end].parameter < first + count)
		ret->end++;
	const struct skep_range all = stage->trained;
	uint64_t end = ret->end < stage->layers ? stage->layer[ret->end].parameter : all.first + all.count;
	return ret->first < ret->end && stage->layer[ret->first].parameter == first && end == first + count;
}

/* ---- state -------------------------------------------------------------------------------------------------- */

/* Of a chunk's elements those whose moments go with it: of a stage in shards the shard's, which is kept and never sent. */
static struct skep_range moments_of(const struct skep_stage *stage, uint64_t first, uint64_t count)
{
	return stage->sharded ? skep_stage_shard_of(stage, first, count) : skep_stage_trained_of(stage, first, count);
}

uint64_t skep_stage_state_bytes(const struct skep_stage *stage, uint32_t chunk, uint32_t chunks)
{
	uint64_t first, count;
	skep_chunk_range(stage->parameters, chunk, chunks, &first, &count);
	return SKEP_STATE_HEADER_BYTES +
	       sizeof(skep_real) * (count + stage->moments * moments_of(stage, first, count).count);
}

static struct state_header header_of(const struct skep_stage *stage, uint32_t chunk, uint32_t chunks)
{
	struct state_header header = {
		.stage = (uint16_t)stage->index,
		.moments = (uint8_t)stage->moments,
		.vstages = (uint8_t)stage->vstages,
		.chunk = chunk,
		.chunks = chunks,
		.parameters = stage->parameters,
		.steps = stage->steps,
	};
	memcpy(header.magic, state_magic, sizeof header.magic);
	if (stage->strides > 1) { /* else the same numbers are of other layers */
		header.magic[2] = (char)(stage->strides & 0xff);
		header.magic[3] = (char)(stage->strides >> 8);
	}
	return header;
}

void skep_stage_save(const struct skep_stage *stage, uint32_t chunk, uint32_t chunks, void *ret_state)
{
	uint64_t first, count;
	struct state_header header = header_of(stage, chunk, chunks);
	skep_chunk_range(stage->parameters, chunk, chunks, &first, &count);
	const struct skep_range part = moments_of(stage, first, count);
	const size_t each = part.count * sizeof(skep_real), all = count * sizeof(skep_real);
	char *to = (char *)ret_state + sizeof header;
	memcpy(ret_state, &header, sizeof header);
	stage->arrays->copy(stage->queue, to, skep_stage_parameters(stage, stage->version) + first, all);
	to += all;
	for (uint32_t m = 0; m < stage->moments && each > 0; m++)
		stage->arrays->copy(
			stage->queue, to + m * each, stage->moment[m] + skep_stage_moment_at(stage, part.first), each);
}

bool skep_stage_load(
	struct skep_stage *stage, uint32_t version, uint32_t chunk, uint32_t chunks, const void *state, uint64_t bytes)
{
	uint64_t first, count;
	struct state_header header, expected = header_of(stage, chunk, chunks);
	if (bytes != skep_stage_state_bytes(stage, chunk, chunks))
		return false;
	memcpy(&header, state, sizeof header);
	expected.steps = header.steps;
	if (memcmp(&header, &expected, sizeof header) != 0)
		return false;
	skep_chunk_range(stage->parameters, chunk, chunks, &first, &count);
	const struct skep_range part = moments_of(stage, first, count);
	const size_t each = part.count * sizeof(skep_real), all = count * sizeof(skep_real);
	const char *from = (const char *)state + sizeof header;
	for (uint32_t place = 0; place < stage->versions; place++)
		stage->arrays->copy(stage->queue, skep_stage_parameters(stage, place) + first, from, all);
	from += all;
	for (uint32_t m = 0; m < stage->moments && each > 0; m++)
		stage->arrays->copy(stage->queue, stage->moment[m] + skep_stage_moment_at(stage, part.first),
			from + m * each, each);
	stage->steps = header.steps;
	stage->version = version;
	if (stage->drift && part.count > 0)
		stage->arrays->clear(stage->queue, stage->drift + part.first, part.count * sizeof *stage->drift);
	if (stage->base)
		skep_stage_settle(stage);
	else if (stage->inner)
		skep_stage_follow(stage, 0, first, count);
	return true;
}

/* ---- what is kept ------------------------------------------------------------------------------------------- */

struct more_header { /* behind the state, where there is more */
	char magic[4];
	uint32_t began;
	uint64_t steps;
};

static const char more_magic[4] = "more";

enum { MORE_MAX = SKEP_MOMENTS_MAX + 2 };

struct more { /* arrays behind that header, one after the other */
	uint32_t arrays;
	struct {
		skep_real *array;
		struct skep_range range;
	} of[MORE_MAX];
	uint64_t bytes;
};

static void add_array(struct more *more, skep_real *array, struct skep_range range)
{
	more->of[more->arrays].array = array;
	more->of[more->arrays++].range = range;
	more->bytes += range.count * sizeof *array;
}

/* A run's first parameters are also those of one step earlier. */
static struct more more_of(const struct skep_stage *stage, uint32_t version)
{
	const struct skep_range all = {0, stage->parameters};
	struct more more = {0};
	if (stage->older_kept)
		add_array(&more, skep_stage_parameters(stage, version > 0 ? version - 1 : version), all);
	for (uint32_t m = 0; m < stage->inner_moments; m++)
		add_array(&more, stage->inner_moment[m], stage->trained);
	if (stage->inner_kept)
		add_array(&more, stage->inner, all);
	return more;
}

static bool has_more(const struct skep_stage *stage)
{
	return stage->older_kept || stage->inner;
}

uint64_t skep_stage_kept_bytes(const struct skep_stage *stage)
{
	uint64_t bytes = skep_stage_state_bytes(stage, 0, 1);
	return has_more(stage) ? bytes + sizeof(struct more_header) + more_of(stage, 0).bytes : bytes;
}

void skep_stage_keep(const struct skep_stage *stage, void *ret_state)
{
	const struct more more = more_of(stage, stage->version);
	struct more_header header = {.began = stage->inner_began, .steps = stage->inner_steps};
	char *to = (char *)ret_state + skep_stage_state_bytes(stage, 0, 1);
	skep_stage_save(stage, 0, 1, ret_state);
	if (!has_more(stage))
		return;
	memcpy(header.magic, more_magic, sizeof header.magic);
	memcpy(to, &header, sizeof header);
	to += sizeof header;
	for (uint32_t i = 0; i < more.arrays; i++) {
		const size_t bytes = more.of[i].range.count * sizeof(skep_real);
		if (bytes > 0)
			stage->arrays->copy(stage->queue, to, more.of[i].array + more.of[i].range.first, bytes);
		to += bytes;
	}
}

bool skep_stage_take_up(struct skep_stage *stage, uint32_t version, const void *state, uint64_t bytes)
{
	const struct more more = more_of(stage, version);
	struct more_header header;
	const uint64_t plain = skep_stage_state_bytes(stage, 0, 1);
	const char *from = (const char *)state + plain;
	if (bytes != skep_stage_kept_bytes(stage))
		return false;
	if (!has_more(stage))
		return skep_stage_load(stage, version, 0, 1, state, plain);
	memcpy(&header, from, sizeof header);
	if (memcmp(header.magic, more_magic, sizeof header.magic) != 0 ||
		!skep_stage_load(stage, version, 0, 1, state, plain))
		return false;
	from += sizeof header;
	stage->inner_began = header.began;
	stage->inner_steps = header.steps;
	for (uint32_t i = 0; i < more.arrays; i++) {
		const size_t each = more.of[i].range.count * sizeof(skep_real);
		if (each > 0)
			stage->arrays->copy(stage->queue, more.of[i].array + more.of[i].range.first, from, each);
		from += each;
	}
	return true;
}

uint64_t skep_stage_digest(const struct skep_stage *stage)
{
	const skep_real *parameter = skep_stage_parameters(stage, stage->version);
	return skep_sum(stage->index + UINT64_C(1), parameter, stage->parameters * sizeof *parameter);
}

uint64_t skep_stage_replicated_digest(const struct skep_stage *stage)
{
	const skep_real *parameter = skep_stage_parameters(stage, stage->version);
	uint64_t sum = stage->index + UINT64_C(1);
	for (uint32_t l = 0; l < stage->layers; l++) {
		const struct skep_layer *layer = &stage->layer[l];
		struct skep_tensor tensor[SKEP_TENSORS_MAX];
		const uint32_t tensors = layer->type->tensors(layer, tensor);
		assert(tensors <= SKEP_TENSORS_MAX);
		for (uint32_t t = 0; t < tensors; t++) {
			const size_t count = (size_t)tensor[t].rows * tensor[t].columns;
			if (tensor[t].cut == SKEP_TENSOR_REPLICATED)
				sum = skep_sum(sum, parameter + layer->parameter + tensor[t].offset,
					count * sizeof *parameter);
		}
	}
	return sum;
}
