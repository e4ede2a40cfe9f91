/* SPDX-License-Identifier: Apache-2.0
 *
 * stage.c - a stage on a GPU: models/stage/stage.c says where its layers lie, this lays out the arrays, all carved from one
 * allocation of the device's memory and, what is offloaded, one of page-locked memory of the host, and brings the first
 * parameters there. What a layer keeps inside is other than on the CPU, so stashes are laid out anew; edges are always decoded
 * and encoded, since payloads are the host's.
 */
#include <stdlib.h>
#include <string.h>

#include "models/cuda/lane.h"
#include "models/layers/attention.h"
#include "models/stage/stage_weights.h"

const struct skep_cuda_layer_type *skep_cuda_layer(const struct skep_layer *layer)
{
	static const struct skep_cuda_layer_type *const types[] = {&skep_cuda_embedding, &skep_cuda_blocks,
		&skep_cuda_head, &skep_cuda_post_blocks, &skep_cuda_masked_head};
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
		if (types[i]->type == layer->type)
			return types[i];
	return NULL; /* create() has refused such a model */
}

/* ---- stashes -------------------------------------------------------------------------------------------------------------- */

static void place_vstage(const struct skep_training *training, struct skep_stage *stage, struct skep_vstage *vstage)
{
	const struct skep_model *m = training->model;
	const uint32_t samples = training->samples;
	struct skep_layer *layer = &stage->layer[vstage->layer];
	size_t stash = layer->number == 0 ? skep_cuda_floats(skep_cuda_inputs(samples, m->sequence)) : 0;
	for (uint32_t l = 0; l < vstage->layers; l++) {
		layer[l].value = stash;
		layer[l].kept = stash + (l + 1 < vstage->layers ? skep_cuda_floats((size_t)samples * layer[l].out) : 0);
		stash = layer[l].kept + skep_cuda_layer(&layer[l])->inside(&layer[l], samples);
	}
	vstage->stash = stash;
	if (stash * sizeof(float) > stage->stash_bytes)
		stage->stash_bytes = stash * sizeof(float);
}

static void place_stashes(const struct skep_training *training, struct skep_stage *stage)
{
	stage->stash_bytes = 0;
	for (uint32_t nth = 0; nth < stage->vstages; nth++)
		place_vstage(training, stage, &stage->vstage[nth]);
}

/* ---- arrays --------------------------------------------------------------------------------------------------------------- */

struct sizes {
	size_t tokens, hidden, heads, qkv, feed, up, widest;
	size_t predicted; /* of a bert */
};

static struct sizes sizes_of(const struct skep_training *training)
{
	const struct skep_model *m = training->model;
	const size_t width = m->hidden / m->heads;
	struct sizes s = {.tokens = (size_t)training->samples * m->sequence,
		.hidden = m->hidden,
		.heads = m->heads,
		.qkv = (m->heads + 2 * m->kv_heads) * width,
		.feed = m->feed_forward,
		.up = (m->architecture == SKEP_ARCHITECTURE_LLAMA ? 2 : 1) * (size_t)m->feed_forward};
	s.widest = s.qkv > s.up ? s.qkv : s.up;
	s.widest = s.hidden > s.widest ? s.hidden : s.widest;
	s.predicted = m->predicted > 0 ? skep_cuda_predicted(training) : 0;
	if (s.predicted > 0 && m->vocabulary > s.widest) /* the head of a bert has a bias for each token */
		s.widest = m->vocabulary;
	return s;
}

struct arena { /* counts, and then gives out */
	float *base;
	size_t floats;
};

static float *carve(struct arena *arena, size_t floats)
{
	float *piece = arena->base ? arena->base + arena->floats : NULL;
	arena->floats += skep_cuda_floats(floats);
	return piece;
}

/* Of what is trained alone. In the device's memory all parameters lie before it, so no pointer leaves the allocation; nothing is
 * offloaded where a part is frozen. */
static float *carve_trained(struct arena *arena, const struct skep_stage *stage)
{
	return skep_stage_array(stage, carve(arena, skep_stage_trained_floats(stage)));
}

static skep_bf16 *carve_halves(struct arena *arena, size_t n)
{
	return (skep_bf16 *)(void *)carve(arena, (n + 1) / 2);
}

/* Backwards through a feed-forward part, and then through attention, in the same memory. */
static void carve_work(const struct sizes *s, struct arena *arena, struct skep_cuda_own *own)
{
	const size_t before = arena->floats;
	own->at_up = carve_halves(arena, s->tokens * s->up);
	own->at_bent = carve_halves(arena, s->tokens * s->feed);
	const size_t feed = arena->floats;
	arena->floats = before;
	own->at_qkv = carve_halves(arena, s->tokens * s->qkv);
	own->at_out = carve_halves(arena, s->tokens * s->hidden);
	own->along = carve(arena, s->tokens * s->heads);
	arena->floats = arena->floats > feed ? arena->floats : feed;
}

/* Where they are of the host's side, gradients go there by way of two arrays for the largest layer. */
static void carve_sums(const struct skep_training *training, struct arena *arena, struct arena *host,
	struct skep_stage *stage, struct skep_cuda_own *own)
{
	const bool goes = training->offload == SKEP_OFFLOAD_GRADIENTS;
	struct arena *sums = goes ? host : arena;
	size_t largest = 0;
	for (uint32_t i = 0; i < stage->accumulators; i++)
		stage->accumulator[i] = carve_trained(sums, stage);
	stage->result = carve_trained(sums, stage);
	if (stage->tied.count > 0)
		stage->tied_peer = carve(sums, stage->tied.count);
	for (uint32_t l = 0; l < stage->layers; l++) {
		const size_t floats = skep_cuda_down_floats(stage, &stage->layer[l]);
		largest = floats > largest ? floats : largest;
	}
	for (int turn = 0; goes && turn < 2; turn++)
		own->down[turn] = carve(arena, largest);
}

/* In the device's memory, and what is offloaded in the host's. */
static void carve_stage(const struct skep_training *training, const struct skep_extent *extent, struct arena *arena,
	struct arena *host, struct skep_stage *stage, struct skep_cuda_own *own)
{
	const struct sizes s = sizes_of(training);
	const size_t partial = skep_cuda_partial_floats(s.widest);
	const bool periodic = skep_plan_periodic(training->plan);
	const size_t copies =
		stage->versions + periodic; /* inner parameters lie behind the stage's, and both are rounded */
	stage->parameter = carve(arena, copies * stage->stride);
	stage->inner = periodic && arena->base ? stage->parameter + stage->versions * stage->stride : NULL;
	stage->base = training->plan->async.on ? carve(arena, stage->parameters) : NULL;
	struct arena *moments = training->offload != SKEP_OFFLOAD_NONE ? host : arena;
	for (uint32_t m = 0; m < stage->moments; m++)
		stage->moment[m] = stage->sharded ? carve(moments, stage->shard.count) : carve_trained(moments, stage);
	for (uint32_t m = 0; m < stage->inner_moments; m++)
		stage->inner_moment[m] = carve_trained(moments, stage);
	carve_sums(training, arena, host, stage, own);
	stage->scratch[0] = carve(arena, s.tokens * s.hidden);
	stage->entry = carve(arena, stage->entering);
	stage->exit = carve(arena, stage->leaving);
	if (extent->rotation > 0)
		stage->rotation = carve(arena, extent->rotation);
	if (skep_training_has_workspace(training, stage->index))
		stage->workspace = carve(arena, stage->stash_bytes / sizeof(float));
	own->narrowed = carve_halves(arena, copies * stage->stride + SKEP_CUDA_ROWS_BEHIND * s.hidden);
	own->narrow_gradient = carve_halves(arena, s.tokens * s.hidden);
	own->normed = carve_halves(arena, s.tokens * s.hidden);
	carve_work(&s, arena, own);
	own->norms = (double *)(void *)carve(arena, skep_cuda_norms_bytes() / sizeof(float));
	own->losses = carve(arena, s.tokens);
	own->targets = (int32_t *)(void *)carve(arena, skep_cuda_targets(training));
	own->partial = carve(arena, partial);
	own->partial_floats = partial;
	own->at_head = carve(arena, s.predicted * s.hidden);
}

/* ---- first parameters
 * ------------------------------------------------------------------------------------------------------- */

/* By the host, in memory from which they can be copied; all versions are the same, and inner ones begin there too. */
static bool bring_parameters(
	const struct skep_training *training, struct skep_cuda_lane *lane, const struct skep_stage *stage)
{
	const struct skep_cuda_own *own = stage->own;
	const struct skep_model *m = training->model;
	const size_t bytes = stage->parameters * sizeof(float);
	const size_t turns = stage->rotation ? (size_t)m->sequence * (m->hidden / m->heads) : 0;
	struct skep_stage host = *stage;
	char why[256];
	float *turn = skep_cuda_take(lane->queue, SKEP_MEMORY_HOST, turns * sizeof *turn + sizeof *turn);
	host.parameter = skep_cuda_take(lane->queue, SKEP_MEMORY_HOST, bytes);
	host.versions = 1;
	bool good = turn && host.parameter;
	if (good) {
		skep_stage_draw(training, &host);
		good = skep_stage_load_weights(training, &host);
	}
	for (uint32_t v = 0; good && v < stage->versions + (stage->inner != NULL); v++) {
		skep_cuda_copy(lane->queue, stage->parameter + v * stage->stride, host.parameter, bytes);
		skep_cuda_narrow(lane->queue, stage->parameters, stage->parameter + v * stage->stride,
			own->narrowed + v * stage->stride);
	}
	if (good && stage->base)
		skep_cuda_copy(lane->queue, stage->base, host.parameter, bytes);
	if (good && turns > 0) {
		skep_rotation_fill(m->sequence, m->hidden / m->heads, m->rotary_base, turn);
		skep_cuda_copy(lane->queue, stage->rotation, turn, turns * sizeof *turn);
	}
	good = skep_cuda_wait(lane->queue, why, sizeof why) && good;
	skep_cuda_give(lane->queue, SKEP_MEMORY_HOST, host.parameter);
	skep_cuda_give(lane->queue, SKEP_MEMORY_HOST, turn);
	return good;
}

/* ---- life
 * ------------------------------------------------------------------------------------------------------------------- */

bool skep_cuda_stage_begin(void *queue, const struct skep_training *training, uint32_t index, struct skep_stage *ret)
{
	struct skep_cuda_lane *lane = queue;
	struct skep_extent extent;
	struct arena arena = {0}, host = {0};
	struct skep_cuda_own *own = calloc(1, sizeof *own);
	bool good = skep_stage_place(training, index, ret, &extent) && own;
	ret->own = own;
	if (good) {
		place_stashes(training, ret);
		carve_stage(training, &extent, &arena, &host, ret, own);
		ret->memory = arena.base =
			skep_cuda_take(lane->queue, SKEP_MEMORY_DEVICE, arena.floats * sizeof(float));
		if (host.floats > 0)
			own->host = host.base =
				skep_cuda_take(lane->queue, SKEP_MEMORY_HOST, host.floats * sizeof(float));
		good = arena.base && (host.base || host.floats == 0);
	}
	if (good) {
		skep_cuda_clear(lane->queue, arena.base, arena.floats * sizeof(float));
		if (host.base)
			memset(host.base, 0, host.floats * sizeof(float));
		arena.floats = host.floats = 0;
		carve_stage(training, &extent, &arena, &host, ret, own);
		good = bring_parameters(training, lane, ret);
	}
	if (!good)
		skep_cuda_stage_finish(queue, ret);
	return good;
}

void skep_cuda_stage_finish(void *queue, struct skep_stage *stage)
{
	struct skep_cuda_lane *lane = queue;
	struct skep_cuda_own *own = stage->own;
	if (stage->memory)
		skep_cuda_give(lane->queue, SKEP_MEMORY_DEVICE, stage->memory);
	if (own && own->host)
		skep_cuda_give(lane->queue, SKEP_MEMORY_HOST, own->host);
	free(stage->own);
	stage->memory = NULL;
	skep_stage_finish(stage);
}
