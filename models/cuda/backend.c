/* SPDX-License-Identifier: Apache-2.0
 *
 * backend.c - CUDA as a back end: parameters, moments and sums are fp32; products and attention are bf16. Each lane has
 * a queue of its own, so that reductions and their copies run beside passes. Payloads lie in page-locked memory of the
 * host, which the kernels of the codecs read and write from the device.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/corpus/data.h"
#include "models/cuda/lane.h"

#define refuse(...) (skep_fail(reterr, __VA_ARGS__), false)

static struct skep_cuda_queue *queue_of(void *queue)
{
	return ((struct skep_cuda_lane *)queue)->queue;
}

/* ---- life ----------------------------------------------------------------------------------------------------------------- */

/* What there are no kernels for. */
static bool can_train(const struct skep_training *training, struct skep_diag *reterr)
{
	const struct skep_model *m = training->model;
	if (m->kind == SKEP_MODEL_RESNET)
		return refuse(
			"the CUDA device has no kernels for convolutions and batch norms, and model %s is a ResNet: "
			"use --device cpu",
			m->name);
	if (m->architecture == SKEP_ARCHITECTURE_NONE)
		return refuse("the CUDA device trains transformers that have an architecture, and model %s is none: "
			      "use --device cpu",
			m->name);
	if (m->hidden / m->heads > SKEP_CUDA_HEAD_MAX)
		return refuse("the CUDA device has attention for heads of up to %d numbers, and those of model %s have "
			      "%u: use --device cpu",
			SKEP_CUDA_HEAD_MAX, m->name, m->hidden / m->heads);
	if (skep_model_ranks(m) > 1)
		return refuse(
			"the CUDA device has no kernels for a shard of a model, and model %s is split among %u ranks: "
			"use --device cpu",
			m->name, skep_model_ranks(m));
	if (m->experts.count > 0)
		return refuse("the CUDA device has no kernels for experts, of which model %s has %u: use --device cpu",
			m->name, m->experts.count);
	if (skep_plan_moves_weights(training->plan))
		return refuse(
			"the CUDA device reads parameters as steps have left them, and %s asks for others: %s --device cpu",
			skep_plan_waves(training->plan) ? "sync.method: wsp" : "schedule.weights",
			skep_plan_waves(training->plan) ? "take" : "take `stashed`, `newest` or `vertical-sync`, or");
	return true;
}

static void destroy(void *queue[SKEP_LANES])
{
	for (int l = 0; l < SKEP_LANES; l++) {
		struct skep_cuda_lane *lane = queue[l];
		if (!lane)
			continue;
		if (lane->queue) {
			skep_cuda_give(lane->queue, SKEP_MEMORY_DEVICE, lane->norms);
			skep_cuda_give(lane->queue, SKEP_MEMORY_HOST, lane->sum);
			skep_cuda_give(lane->queue, SKEP_MEMORY_HOST, lane->inputs);
			skep_cuda_give(lane->queue, SKEP_MEMORY_HOST, lane->targets);
			skep_cuda_give(lane->queue, SKEP_MEMORY_HOST, lane->losses);
		}
		skep_cuda_queue_destroy(lane->down);
		skep_cuda_queue_destroy(lane->queue);
		free(lane->count);
		free(lane);
		queue[l] = NULL;
	}
}

/* What the lane of the passes has beside its queue. */
static bool equip(struct skep_cuda_lane *lane, const struct skep_training *training)
{
	const uint32_t samples = training->samples, sequence = training->model->sequence;
	lane->tokens = (size_t)samples * sequence;
	lane->count = calloc(training->model->vocabulary, sizeof *lane->count);
	lane->inputs = skep_cuda_take(
		lane->queue, SKEP_MEMORY_HOST, skep_cuda_inputs(samples, sequence) * sizeof *lane->inputs);
	lane->predicted = skep_cuda_predicted(training);
	lane->targets =
		skep_cuda_take(lane->queue, SKEP_MEMORY_HOST, skep_cuda_targets(training) * sizeof *lane->targets);
	lane->losses = skep_cuda_take(lane->queue, SKEP_MEMORY_HOST, lane->predicted * sizeof *lane->losses);
	return lane->count && lane->inputs && lane->targets && lane->losses;
}

static bool equip_squares(struct skep_cuda_lane *lane)
{
	lane->norms = skep_cuda_take(lane->queue, SKEP_MEMORY_DEVICE, skep_cuda_norms_bytes());
	lane->sum = skep_cuda_take(lane->queue, SKEP_MEMORY_HOST, sizeof *lane->sum);
	return lane->norms && lane->sum;
}

static void *take(void *context, enum skep_memory_side side, size_t bytes)
{
	return skep_cuda_take(context, side, bytes);
}

static void give(void *context, enum skep_memory_side side, void *memory)
{
	skep_cuda_give(context, side, memory);
}

static bool create(const struct skep_device_place *place, const struct skep_training *training,
	void *ret_queue[SKEP_LANES], struct skep_memory_source *ret_source, struct skep_diag *reterr)
{
	memset(ret_queue, 0, SKEP_LANES * sizeof *ret_queue);
	const uint32_t count = skep_cuda_count(reterr), ordinal = place->ordinal;
	if (count == 0 || !can_train(training, reterr))
		return false;
	if (ordinal >= count)
		return refuse("this machine has %u GPUs, and no number %u", count, ordinal);
	bool good = true;
	for (int l = 0; good && l < SKEP_LANES; l++) {
		struct skep_cuda_lane *lane = ret_queue[l] = calloc(1, sizeof *lane);
		if (lane)
			lane->queue = skep_cuda_queue_create(ordinal, l == SKEP_LANE_COMPUTE, reterr);
		good = lane && lane->queue && equip_squares(lane);
	}
	if (!good)
		skep_fail(reterr, "not enough memory to use a GPU");
	for (int l = 0; good && l < SKEP_LANES; l++) {
		struct skep_cuda_lane *lane = ret_queue[l];
		lane->other = ret_queue[SKEP_LANES - 1 - l];
	}
	if (good && training->offload == SKEP_OFFLOAD_GRADIENTS) {
		struct skep_cuda_lane *lane = ret_queue[SKEP_LANE_COMPUTE];
		lane->down = skep_cuda_queue_create(ordinal, false, reterr);
		good = lane->down != NULL;
	}
	if (good && !equip(ret_queue[SKEP_LANE_COMPUTE], training))
		good = refuse("not enough memory for what goes between host and GPU");
	if (!good)
		destroy(ret_queue);
	else
		*ret_source = (struct skep_memory_source){
			.take = take, .give = give, .context = queue_of(ret_queue[SKEP_LANE_COMPUTE])};
	return good;
}

static bool wait(void *queue, char *why, size_t why_size)
{
	struct skep_cuda_lane *lane = queue;
	double *loss = lane->loss, sum = 0;
	lane->loss = NULL;
	if (!skep_cuda_wait(lane->queue, why, why_size))
		return false;
	for (size_t i = 0; loss && i < lane->predicted; i++)
		sum += (double)lane->losses[i];
	if (loss)
		*loss = sum / (double)lane->predicted;
	return true;
}

/* ---- passes --------------------------------------------------------------------------------------------------------------- */

static struct skep_cuda_pass pass_of(struct skep_cuda_lane *lane, const struct skep_stage *stage,
	const struct skep_training *training, const struct skep_op *op, const struct skep_layer *layer)
{
	const struct skep_cuda_own *own = stage->own;
	const float *parameter = skep_stage_read(stage, training, op);
	const skep_bf16 *narrowed = own->narrowed + (parameter - stage->parameter);
	const bool ties = stage->shared != SIZE_MAX && layer->number + 1 == layer->model->layers;
	return (struct skep_cuda_pass){.queue = lane->queue,
		.own = own,
		.lane = lane,
		.of = {.training = training,
			.op = op,
			.parameter = parameter + layer->parameter,
			.shared = ties ? parameter + stage->shared : NULL,
			.rotation = stage->rotation},
		.narrowed = narrowed + layer->parameter,
		.shared = ties ? narrowed + stage->shared : NULL};
}

static bool bring_inputs(struct skep_cuda_lane *lane, const struct skep_training *training, const struct skep_op *op,
	float *ret_stash, struct skep_diag *reterr)
{
	const uint32_t samples = training->samples, sequence = training->model->sequence;
	if (!skep_corpus_inputs(training, op->round, op->microbatch, lane->inputs, reterr))
		return false;
	skep_cuda_group_inputs(samples, sequence, training->model->vocabulary, lane->count, lane->inputs);
	skep_cuda_copy(
		lane->queue, ret_stash, lane->inputs, skep_cuda_inputs(samples, sequence) * sizeof *lane->inputs);
	return true;
}

static bool recompute(void *queue, const struct skep_stage *stage, const struct skep_training *training,
	const struct skep_op *op, const skep_real *in, skep_real *ret_stash, struct skep_diag *reterr)
{
	struct skep_cuda_lane *lane = queue;
	const float *x = in ? in : ret_stash;
	if (!in && !bring_inputs(lane, training, op, ret_stash, reterr))
		return false;
	for (uint32_t l = 0; l < stage->layers; l++) {
		const struct skep_layer *layer = &stage->layer[l];
		const struct skep_cuda_pass pass = pass_of(lane, stage, training, op, layer);
		float *value = l + 1 < stage->layers ? ret_stash + layer->value : stage->exit;
		skep_cuda_layer(layer)->forward(layer, &pass, x, value, ret_stash + layer->kept);
		x = value;
	}
	return true;
}

/* What leaves is at the stage's exit, where recompute() puts it. */
static bool forward(void *queue, const struct skep_stage *stage, const struct skep_training *training,
	const struct skep_op *op, const skep_real *in, skep_real *ret_out, skep_real *ret_stash, double *ret_loss,
	struct skep_diag *reterr)
{
	struct skep_cuda_lane *lane = queue;
	(void)ret_out;
	*ret_loss = 0;
	if (!recompute(queue, stage, training, op, in, ret_stash, reterr))
		return false;
	if (stage->layer[stage->layers - 1].number + 1 == training->model->layers)
		lane->loss = ret_loss;
	return true;
}

static const skep_real *backward(void *queue, struct skep_stage *stage, const struct skep_training *training,
	const struct skep_op *op, const struct skep_layers *layers, const skep_real *in, const skep_real *stash,
	skep_real *ret_out)
{
	struct skep_cuda_lane *lane = queue;
	const struct skep_cuda_own *own = stage->own;
	float *gradient = stage->scratch[0];
	const size_t numbers = lane->tokens * training->model->hidden;
	skep_cuda_queue_set_partial(lane->queue, own->partial, own->partial_floats);
	skep_cuda_narrow(lane->queue, numbers, gradient, own->narrow_gradient);
	for (uint32_t l = layers->end; l-- > layers->first;) {
		const struct skep_layer *layer = &stage->layer[l];
		const float *x = l > 0 ? stash + layer[-1].value : in ? in : stash;
		struct skep_cuda_pass pass = pass_of(lane, stage, training, op, layer);
		if (!op->uncounted)
			skep_cuda_down_next(lane, stage, op, l, layers->end - 1 - l, &pass.of);
		skep_cuda_layer(layer)->backward(layer, &pass, x, stash + layer->kept, gradient);
	}
	if (!op->uncounted)
		skep_cuda_down_last(lane, stage, op, layers->first, layers->end - 1 - layers->first);
	if (ret_out)
		skep_cuda_copy(lane->queue, ret_out, gradient, numbers * sizeof *ret_out);
	return gradient;
}

/* ---- arrays --------------------------------------------------------------------------------------------------------------- */

static void copy(void *queue, void *to, const void *from, size_t bytes)
{
	if (bytes > 0)
		skep_cuda_copy(queue_of(queue), to, from, bytes);
}

static void clear(void *queue, void *memory, size_t bytes)
{
	skep_cuda_clear(queue_of(queue), memory, bytes);
}

static void step_tensor(void *queue, const struct skep_tensor_step *s)
{
	static const enum skep_cuda_rule rules[] = {[SKEP_OPTIMIZER_SGD] = SKEP_CUDA_SGD,
		[SKEP_OPTIMIZER_ADAMW] = SKEP_CUDA_ADAMW,
		[SKEP_OPTIMIZER_NESTEROV] = SKEP_CUDA_NESTEROV,
		[SKEP_OPTIMIZER_LAMB] = SKEP_CUDA_LAMB,
		[SKEP_OPTIMIZER_DELAYED_NESTEROV] = SKEP_CUDA_DELAYED_NESTEROV};
	const struct skep_cuda_lane *lane = queue;
	const struct skep_cuda_own *own = lane->stage->own;
	const bool plain = s->o->kind == SKEP_OPTIMIZER_LAMB && !s->scales;
	skep_cuda_step(lane->queue,
		&(struct skep_cuda_step){.rule = plain ? SKEP_CUDA_ADAMW : rules[s->o->kind],
			.rate = s->rate,
			.decay = s->decay,
			.divisor = s->divisor,
			.unbias_mean = s->unbias_mean,
			.unbias_square = s->unbias_square,
			.momentum = s->o->momentum,
			.beta1 = s->o->beta1,
			.beta2 = s->o->beta2,
			.epsilon = s->o->epsilon,
			.turns = (float)s->o->turns,
			.last = s->last,
			.n = s->n,
			.sum = s->sum,
			.w = s->w,
			.moment = {s->moment[0], s->moment[1]},
			.narrowed = own->narrowed + (s->w - lane->stage->parameter)},
		own->norms);
}

static void weigh(void *queue, size_t n, const skep_real *w, const skep_real *v, skep_real weight, skep_real *ret)
{
	skep_cuda_weigh(queue_of(queue), n, w, v, weight, ret);
}

static void mix(void *queue, size_t n, skep_real mixing, const skep_real *w, skep_real *v)
{
	skep_cuda_mix(queue_of(queue), n, mixing, w, v);
}

static void shift(void *queue, size_t n, const skep_real *from, const skep_real *to, skep_real *v)
{
	skep_cuda_shift(queue_of(queue), n, from, to, v);
}

static void blend(void *queue, size_t n, const skep_real *a, uint32_t p, const skep_real *b, uint32_t q, skep_real *ret)
{
	skep_cuda_blend(queue_of(queue), n, a, (float)p, b, (float)q, ret);
}

/* What a sum over an array has left in the lane's norms. */
static double summed(const struct skep_cuda_lane *lane)
{
	char why[256]; /* the wait of the operation tells */
	skep_cuda_copy(lane->queue, lane->sum, lane->norms, sizeof *lane->sum);
	return skep_cuda_wait(lane->queue, why, sizeof why) ? *lane->sum : 0;
}

static double squares(void *queue, size_t n, const skep_real *a)
{
	const struct skep_cuda_lane *lane = queue;
	if (n == 0)
		return 0;
	skep_cuda_squares(lane->queue, n, a, lane->norms);
	return summed(lane);
}

static double products(void *queue, size_t n, const skep_real *a, const skep_real *b, bool above)
{
	const struct skep_cuda_lane *lane = queue;
	skep_cuda_products(lane->queue, n, a, b, above, lane->norms);
	return summed(lane);
}

static bool all_finite(void *queue, size_t n, const skep_real *a)
{
	return isfinite(squares(queue, n, a));
}

static const struct skep_arrays arrays = {.copy = copy,
	.clear = clear,
	.step = step_tensor,
	.weigh = weigh,
	.mix = mix,
	.shift = shift,
	.finite = all_finite,
	.squares = squares,
	.blend = blend,
	.products = products};

static bool begin(void *queue, const struct skep_training *training, uint32_t index, struct skep_stage *ret)
{
	if (!skep_cuda_stage_begin(queue, training, index, ret))
		return false;
	ret->arrays = &arrays;
	ret->queue = queue;
	return true;
}

/* Rounds n parameters, or inner ones. */
static void narrow(struct skep_cuda_lane *lane, const struct skep_stage *stage, size_t n, const float *w)
{
	const struct skep_cuda_own *own = stage->own;
	skep_cuda_narrow(lane->queue, n, w, own->narrowed + (w - stage->parameter));
}

/* Who works on the arrays of the stage from now on; who did. */
static void *hand_to(struct skep_cuda_lane *lane, struct skep_stage *stage)
{
	void *usual = stage->queue;
	stage->queue = lane;
	lane->stage = stage;
	return usual;
}

/* The step runs on the queue of its lane, which may be the reduce lane. As on the CPU, no other work of the device
 * runs beside a step, so no pass reads parameters that are half updated. Only one lane enqueues at a time, so work
 * that is enqueued later runs after the step. */
static void step(void *queue, struct skep_stage *stage, const struct skep_optimizer *optimizer,
	const struct skep_vstage_step *turn, const skep_real *sum)
{
	struct skep_cuda_lane *lane = queue;
	const struct skep_vstage *vstage = &stage->vstage[turn->nth];
	const float *w = skep_stage_parameters(stage, turn->round + 1) + vstage->parameter;
	skep_cuda_settle(lane->other->queue);
	void *usual = hand_to(lane, stage);
	skep_stage_step(stage, optimizer, turn, sum);
	stage->queue = usual;
	if (turn->microbatches == 0) /* copied from version to version, not stepped */
		narrow(lane, stage, vstage->parameters, w);
	skep_cuda_settle(lane->queue);
}

/* What the products read is rounded beside it; passes that read this version come later, on a lane that waits for this one. */
static void put(
	void *queue, struct skep_stage *stage, uint32_t version, uint64_t first, size_t n, const skep_real *payload)
{
	float *w = skep_stage_parameters(stage, version) + first;
	copy(queue, w, payload, n * sizeof *payload);
	if (n > 0)
		narrow(queue, stage, n, w);
}

/* What a reduction that is void has read may be read still on the other lane. */
static void discard(void *queue, struct skep_stage *stage, uint32_t round)
{
	struct skep_cuda_lane *lane = queue;
	skep_cuda_settle(lane->other->queue);
	void *usual = hand_to(lane, stage);
	skep_stage_discard(stage, round);
	stage->queue = usual;
}

/* INNER_STEP and PSEUDO_GRAD touch nothing that reductions do, so these go on. Steps round what they change; inner
 * parameters that follow those of the stage are copied or mixed. */
static bool periodic(void *queue, struct skep_stage *stage, const struct skep_training *training,
	const struct skep_op *op, const skep_real *sum)
{
	struct skep_cuda_lane *lane = queue;
	const bool steps = op->kind == SKEP_OP_STEP;
	if (!stage->inner)
		return false;
	if (steps)
		skep_cuda_settle(lane->other->queue);
	void *usual = hand_to(lane, stage);
	skep_stage_periodic(stage, training, op, sum);
	stage->queue = usual;
	if (steps) {
		narrow(lane, stage, op->count > 0 ? op->count : stage->parameters, stage->inner + op->first);
		skep_cuda_settle(lane->queue);
	}
	return true;
}

static bool load(void *queue, struct skep_stage *stage, uint32_t version, uint32_t chunk, uint32_t chunks,
	const void *state, uint64_t bytes)
{
	uint64_t first, count;
	if (!skep_stage_load(stage, version, chunk, chunks, state, bytes))
		return false;
	skep_chunk_range(stage->parameters, chunk, chunks, &first, &count);
	for (uint32_t v = 0; count > 0 && v < stage->versions; v++)
		narrow(queue, stage, count, skep_stage_parameters(stage, v) + first);
	if (stage->base) /* then all of them begin anew */
		narrow(queue, stage, stage->parameters, stage->inner);
	else if (stage->inner && count > 0)
		narrow(queue, stage, count, stage->inner + first);
	return true;
}

static bool take_up(void *queue, struct skep_stage *stage, uint32_t version, const void *state, uint64_t bytes)
{
	if (!skep_stage_take_up(stage, version, state, bytes))
		return false;
	for (uint32_t v = 0; v < stage->versions; v++)
		narrow(queue, stage, stage->parameters, skep_stage_parameters(stage, v));
	if (stage->inner)
		narrow(queue, stage, stage->parameters, stage->inner);
	return true;
}

/* 0: it could not be read. */
static uint64_t digest(void *queue, const struct skep_stage *stage)
{
	const size_t bytes = stage->parameters * sizeof(float);
	struct skep_stage host = *stage;
	char why[256];
	uint64_t hash = 0;
	host.versions = 1;
	host.parameter = skep_cuda_take(queue_of(queue), SKEP_MEMORY_HOST, bytes);
	if (!host.parameter)
		return 0;
	copy(queue, host.parameter, skep_stage_parameters(stage, stage->version), bytes);
	if (skep_cuda_wait(queue_of(queue), why, sizeof why))
		hash = skep_stage_digest(&host);
	skep_cuda_give(queue_of(queue), SKEP_MEMORY_HOST, host.parameter);
	return hash;
}

/* By the device itself, for all parameters would have to go to the host's memory for the sum that a CPU takes. */
static uint64_t sum_of_parameters(void *queue, const struct skep_stage *stage)
{
	const struct skep_cuda_lane *lane = queue;
	uint64_t sum;
	char why[256];
	skep_cuda_sum_bits(lane->queue, stage->parameters, skep_stage_parameters(stage, stage->version),
		(uint64_t *)(void *)lane->norms);
	skep_cuda_copy(lane->queue, lane->sum, lane->norms, sizeof sum);
	if (!skep_cuda_wait(lane->queue, why, sizeof why))
		return 0;
	memcpy(&sum, lane->sum, sizeof sum);
	return sum;
}

/* ---- payloads ------------------------------------------------------------------------------------------------------------- */

static void encode(void *queue, enum skep_codec codec, uint32_t block, size_t n, const float *value, void *ret_encoded)
{
	if (codec == SKEP_CODEC_NONE)
		copy(queue, ret_encoded, value, n * sizeof *value);
	else
		skep_cuda_encode(queue_of(queue), codec, block, n, value, ret_encoded);
}

static void decode(void *queue, enum skep_codec codec, uint32_t block, size_t n, const void *encoded, float *ret_value)
{
	if (codec == SKEP_CODEC_NONE)
		copy(queue, ret_value, encoded, n * sizeof *ret_value);
	else
		skep_cuda_decode(queue_of(queue), codec, block, n, encoded, ret_value);
}

static void add(
	void *queue, enum skep_codec codec, uint32_t block, size_t n, const float *value, void *encoded, float *ret_sum)
{
	skep_cuda_add(queue_of(queue), codec, block, n, value, encoded, ret_sum);
}

static void fold(void *queue, enum skep_codec codec, uint32_t block, size_t n, const void *encoded, float *sum)
{
	skep_cuda_fold(queue_of(queue), codec, block, n, encoded, sum);
}

static void tell(void *queue, const struct skep_byzantine *byzantine, uint32_t round, uint64_t first, size_t n,
	const float *own, float *ret)
{
	skep_cuda_tell(queue_of(queue), byzantine, round, first, n, own, ret);
}

static void aggregate(void *queue, const struct skep_robust *robust, uint32_t members, size_t n, const float *part,
	const uint32_t *weight, float *room, float *ret)
{
	skep_cuda_aggregate(queue_of(queue), robust, members, n, part, weight, room, ret);
}

const struct skep_backend skep_backend_cuda = {.name = "CUDA",
	.count = skep_cuda_count,
	.describe = skep_cuda_describe,
	.create = create,
	.destroy = destroy,
	.begin = begin,
	.finish = skep_cuda_stage_finish,
	.forward = forward,
	.recompute = recompute,
	.backward = backward,
	.step = step,
	.put = put,
	.discard = discard,
	.periodic = periodic,
	.encode = encode,
	.decode = decode,
	.add = add,
	.fold = fold,
	.tell = tell,
	.aggregate = aggregate,
	.copy = copy,
	.load = load,
	.take_up = take_up,
	.digest = digest,
	.arithmetic = 1,
	.sum = sum_of_parameters,
	.wait = wait};
