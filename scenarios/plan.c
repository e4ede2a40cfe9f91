/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.c - who serves which stage, what a stage costs on each GPU in time and memory, and what the core needs to know of it.
 *
 * Keeps true: equal scenarios give equal plans on every machine; the time of an operation is a table look-up.
 */
#include "scenarios/plan.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "core/random.h"
#include "core/record.h"
#include "core/route.h"

#define FLOAT_BYTES sizeof(float)
#define STATE_CHUNKS_MAX 1048576.0
#define TIME_NS_MAX 1000000000000000000u /* 1e18, as in topologies/gpu.c */

/* ---- allocation ----------------------------------------------------------------------------------------------- */

static void shuffle(uint32_t *item, uint32_t count, uint64_t seed)
{
	uint64_t state = skep_mix(seed ^ 0x616c6c6f63617465u); /* a stream of its own */
	for (uint32_t i = count; i > 1; i--) {
		uint32_t j = skep_random_below(&state, i), swap = item[i - 1];
		item[i - 1] = item[j];
		item[j] = swap;
	}
}

/* Workers that a trace lets come later are spares. */
void skep_plan_allocate(struct skep_scenario *s)
{
	uint32_t stages = s->plan.stages, count = s->has_trace ? s->churn.presents : s->plan.workers;
	if (s->allocation == SKEP_ALLOCATION_EXPLICIT)
		return;
	for (uint32_t i = 0; i < s->plan.workers; i++)
		s->first_stage_of[i] = SKEP_NO_STAGE;
	for (uint32_t i = 0; i < count; i++) /* the stages of those who are there, packed to the front */
		s->first_stage_of[i] = s->allocation == SKEP_ALLOCATION_CONTIGUOUS
		                               ? (uint32_t)((uint64_t)i * stages / count)
		                               : i % stages;
	if (s->allocation == SKEP_ALLOCATION_RANDOM)
		shuffle(s->first_stage_of, count, s->seed);
	for (uint32_t i = count;
		s->has_trace && i-- > 0;) { /* present[] rises, so nothing is overwritten that is needed */
		uint32_t worker = s->churn.present[i], stage = s->first_stage_of[i];
		s->first_stage_of[i] = SKEP_NO_STAGE;
		s->first_stage_of[worker] = stage;
	}
}

static uint32_t serving(const struct skep_scenario *s, uint32_t stage)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < s->plan.workers; i++)
		count += s->first_stage_of[i] == stage;
	return count;
}

uint32_t skep_plan_empty_stage(const struct skep_scenario *s)
{
	for (uint32_t stage = 0; stage < s->plan.stages; stage++)
		if (serving(s, stage) == 0)
			return stage;
	return SKEP_NO_STAGE;
}

uint32_t skep_plan_in_flight(const struct skep_scenario *s)
{
	uint32_t active = s->plan.workers - serving(s, SKEP_NO_STAGE), first = serving(s, 0);
	uint32_t each = (2 * active + first - 1) / first;
	return each < 2 ? 2 : each;
}

/* ---- memory --------------------------------------------------------------------------------------------------- */

/* Microbatches that a worker of the stage holds: what a fixed pipeline's schedule says, or an estimate. The first stage holds
 * what it issued; behind it wiring is a draw, and twice the mean is seldom exceeded. */
static uint32_t held(const struct skep_scenario *s, uint32_t stage)
{
	uint64_t all = (uint64_t)serving(s, 0) * s->plan.in_flight, workers = serving(s, stage);
	uint64_t twice_mean = 2 * ((all + workers - 1) / workers);
	if (skep_plan_fixed(&s->plan))
		return skep_plan_held(&s->plan, stage);
	if (stage == 0)
		return s->plan.in_flight;
	return (uint32_t)(twice_mean < all ? twice_mean : all);
}

struct skep_plan_memory skep_plan_memory(const struct skep_scenario *s, uint32_t stage)
{
	const struct skep_cost *cost = &s->cost[stage];
	uint64_t in_bytes = stage > 0 ? s->stage[stage - 1].activation_bytes : 0;
	uint64_t microbatch_bytes = in_bytes + s->samples * cost->stash_bytes + s->stage[stage].activation_bytes;
	if (stage == 0 && s->plan.routing == SKEP_ROUTING_TRAINER) /* an owner keeps what went into every later stage */
		for (uint32_t later = 1; later + 1 < s->plan.stages; later++)
			microbatch_bytes += s->stage[later].activation_bytes;
	struct skep_plan_memory m = {.microbatches = held(s, stage)};
	m.state_bytes = (double)s->stage[stage].state_bytes;
	if (s->plan.delayed)
		m.state_bytes += (double)(FLOAT_BYTES * cost->parameters);
	m.gradient_bytes = (double)(3 * FLOAT_BYTES * cost->parameters);
	m.activation_bytes =
		(double)m.microbatches * (double)microbatch_bytes + (double)(s->samples * cost->workspace_bytes);
	return m;
}

uint32_t skep_plan_overfull(const struct skep_scenario *s, uint32_t *ret_stage)
{
	uint32_t largest = 0;
	for (uint32_t stage = 1; stage < s->plan.stages; stage++)
		if (s->memory_bytes[stage] > s->memory_bytes[largest])
			largest = stage;
	for (uint32_t i = 0; i < s->plan.workers; i++) {
		uint32_t stage = s->first_stage_of[i] == SKEP_NO_STAGE ? largest : s->first_stage_of[i];
		*ret_stage = stage;
		if (s->memory_bytes[stage] > s->topology.gpu[s->topology.machine[i].gpu].memory_bytes)
			return i;
	}
	return SKEP_NO_INDEX;
}

/* ---- time ----------------------------------------------------------------------------------------------------- */

static uint64_t clamp_ns(double ns)
{
	return ns < 1 ? 1 : ns < (double)TIME_NS_MAX ? (uint64_t)(ns + 0.5) : TIME_NS_MAX;
}

static uint64_t op_ns(const struct skep_scenario *s, const struct skep_gpu *gpu, double flop, double bytes)
{
	return skep_gpu_time_ns(gpu, flop * s->compute_scale, bytes * s->compute_scale);
}

/* STEP reads the sum, reads and writes parameters and moments, and clears the accumulator. SAVE and LOAD copy a
 * chunk, ENTER fills what all of them make. */
static struct skep_op_time time_stage(const struct skep_scenario *s, const struct skep_gpu *gpu, uint32_t stage)
{
	const struct skep_cost *c = &s->cost[stage];
	double n = s->samples, state = (double)s->stage[stage].state_bytes;
	double parameters = (double)(FLOAT_BYTES * c->parameters);
	bool encoded = s->activation_codec != SKEP_CODEC_NONE; /* encoding and decoding, beside the passes themselves */
	double in = encoded && stage > 0 ? (double)s->stage[stage - 1].activation_bytes : 0;
	double out = encoded ? (double)s->stage[stage].activation_bytes : 0;
	return (struct skep_op_time){
		.forward_ns = op_ns(s, gpu, n * c->forward_flop, c->forward_bytes + n * c->sample_bytes + in + out),
		.backward_ns = op_ns(
			s, gpu, n * c->backward_flop, c->backward_bytes + n * c->backward_sample_bytes + 2 * in + out),
		/* with checkpoint_activations backward is both of these in one (skep_cost_checkpoint) */
		.recompute_ns = op_ns(s, gpu, n * c->forward_flop, c->forward_bytes + n * c->sample_bytes + in),
		.recomputed_ns = op_ns(s, gpu, n * (c->backward_flop - c->forward_flop),
			c->backward_bytes - c->forward_bytes + n * (c->backward_sample_bytes - c->sample_bytes) +
				2 * in + out),
		.step_ns = op_ns(s, gpu, 0, 2 * parameters + 2 * state),
		.state_ns = op_ns(s, gpu, 0, 2 * state),
	};
}

/* What a reduction operation moves through memory, for `count` elements: TAKE encodes a copy; ADD decodes, adds its own and
 * encodes; ADD_STORE writes the sum as well; STORE decodes. */
static double chunk_traffic(uint8_t kind, double plain_bytes, double encoded_bytes)
{
	switch (kind) {
	case SKEP_OP_ADD:
		return plain_bytes + 2 * encoded_bytes;
	case SKEP_OP_ADD_STORE:
		return 2 * plain_bytes + 2 * encoded_bytes;
	default:
		return plain_bytes + encoded_bytes;
	}
}

static uint64_t chunk_bytes(const struct skep_scenario *s, const struct skep_op *op)
{
	uint64_t all = s->stage[op->stage].state_bytes;
	return op->size > 1 ? skep_state_chunk_bytes(&s->plan, op->stage, op->chunk) : all;
}

uint64_t skep_scenario_op_ns(const struct skep_scenario *s, uint32_t worker, const struct skep_op *op)
{
	assert(worker < s->plan.workers && op->stage < s->plan.stages);
	uint32_t gpu = s->topology.machine[worker].gpu;
	const struct skep_op_time *time = &s->op_time[(size_t)gpu * s->plan.stages + op->stage];
	uint64_t first, count;
	switch (op->kind) {
	case SKEP_OP_FORWARD:
		return time->forward_ns;
	case SKEP_OP_BACKWARD:
		return op->recomputed ? time->recomputed_ns : time->backward_ns;
	case SKEP_OP_RECOMPUTE:
		return time->recompute_ns;
	case SKEP_OP_STEP:
		return time->step_ns;
	case SKEP_OP_ENTER:
		return time->state_ns;
	case SKEP_OP_CHECKPOINT:
		return clamp_ns(1e9 * (double)s->stage[op->stage].state_bytes / s->checkpoint_Bps);
	case SKEP_OP_RESTORE:
		if (op->microbatch == 0)
			return time->state_ns;
		return clamp_ns(1e9 * (double)s->stage[op->stage].state_bytes / s->checkpoint_Bps);
	case SKEP_OP_SAVE:
	case SKEP_OP_LOAD:
		return op_ns(s, &s->topology.gpu[gpu], 0, 2 * (double)chunk_bytes(s, op));
	default:
		skep_chunk_range(s->stage[op->stage].parameters, op->chunk, op->size, &first, &count);
		return op_ns(s, &s->topology.gpu[gpu], 0,
			chunk_traffic(op->kind, (double)(FLOAT_BYTES * count),
				(double)skep_codec_bytes(s->plan.reduction_codec, count)));
	}
}

double skep_plan_least_seconds(const struct skep_scenario *s)
{
	double round_ns = 0;
	for (uint32_t stage = 0; stage < s->plan.stages; stage++) {
		double best = INFINITY;
		for (uint32_t gpu = 0; gpu < s->topology.gpus; gpu++) {
			const struct skep_op_time *time = &s->op_time[(size_t)gpu * s->plan.stages + stage];
			double ns = (double)time->forward_ns + (double)time->backward_ns;
			best = ns < best ? ns : best;
		}
		round_ns += best * s->plan.microbatches;
	}
	return 1e-9 * s->plan.rounds * round_ns / s->plan.workers;
}

/* ---- all of it ------------------------------------------------------------------------------------------------ */

/* What a newcomer can count on for its download. */
static double thinnest_Bps(const struct skep_scenario *s)
{
	const struct skep_topology *t = &s->topology;
	double least = INFINITY;
	for (uint32_t i = 0; i < s->plan.workers; i++)
		least = fmin(least, fmin(t->machine[i].up_Bps, t->machine[i].down_Bps));
	for (uint32_t i = 0; i < t->places * t->places; i++)
		least = fmin(least, fmin(t->pair[i].capacity_Bps, t->pair[i].shared_Bps));
	return least;
}

/* So that no chunk has more than the scenario says. */
static uint32_t state_chunks(const struct skep_scenario *s, uint64_t parameters)
{
	double element = (double)(skep_device_state_bytes(&s->optimizer, 1, 1) - SKEP_STATE_HEADER_BYTES);
	double most = floor(fmax(1, (s->state_chunk_bytes - SKEP_STATE_HEADER_BYTES) / element));
	double chunks = fmin(fmin(ceil((double)parameters / most), (double)parameters), STATE_CHUNKS_MAX);
	return chunks < 1 ? 1 : (uint32_t)chunks;
}

static void make_stage(struct skep_scenario *s, uint32_t stage)
{
	struct skep_cost *cost = &s->cost[stage];
	skep_model_cost(&s->model, s->plan.stages, stage, cost);
	if (s->checkpoint_activations || route_visits_twice(&s->plan, stage))
		skep_cost_checkpoint(cost);
	uint32_t chunks = state_chunks(s, cost->parameters);
	uint64_t state_bytes = skep_device_state_bytes(&s->optimizer, cost->parameters, chunks);
	s->stage[stage] = (struct skep_stage_plan){
		.parameters = cost->parameters,
		.activation_bytes = skep_cost_payload_bytes(cost, s->activation_codec, s->samples),
		.state_bytes = state_bytes,
		.move_ns = clamp_ns(1e9 * (double)state_bytes / thinnest_Bps(s)),
		.state_chunks = chunks,
	};
	for (uint32_t gpu = 0; gpu < s->topology.gpus; gpu++)
		s->op_time[(size_t)gpu * s->plan.stages + stage] = time_stage(s, &s->topology.gpu[gpu], stage);
}

/* How long the activations of a microbatch take over an idle link, for every ordered pair of places. The largest boundary
 * stands for all: what counts is the difference between links. */
static bool make_transfers(struct skep_scenario *s)
{
	const struct skep_topology *t = &s->topology;
	double bytes = SKEP_HEADER_BYTES;
	s->place_of = calloc(s->plan.workers, sizeof *s->place_of);
	s->transfer_ns = calloc((size_t)t->places * t->places, sizeof *s->transfer_ns);
	if (!s->place_of || !s->transfer_ns)
		return false;
	for (uint32_t stage = 0; stage < s->plan.stages; stage++)
		bytes = fmax(bytes, (double)s->stage[stage].activation_bytes);
	for (uint32_t i = 0; i < t->places * t->places; i++) {
		const struct skep_pair *pair = &t->pair[i];
		s->transfer_ns[i] =
			clamp_ns(1e9 * (pair->latency_s + bytes / fmin(pair->capacity_Bps, pair->shared_Bps)));
	}
	for (uint32_t i = 0; i < s->plan.workers; i++)
		s->place_of[i] = t->machine[i].place;
	s->plan.places = t->places;
	s->plan.place_of = s->place_of;
	s->plan.transfer_ns = s->transfer_ns;
	return true;
}

bool skep_plan_make(struct skep_scenario *s)
{
	uint32_t stages = s->plan.stages;
	s->stage = calloc(stages, sizeof *s->stage);
	s->cost = calloc(stages, sizeof *s->cost);
	s->op_time = calloc((size_t)stages * s->topology.gpus, sizeof *s->op_time);
	s->memory_bytes = calloc(stages, sizeof *s->memory_bytes);
	if (!s->stage || !s->cost || !s->op_time || !s->memory_bytes)
		return false;
	s->plan.stage = s->stage;
	s->plan.first_stage_of = s->first_stage_of;
	for (uint32_t stage = 0; stage < stages; stage++)
		make_stage(s, stage);
	for (uint32_t stage = 0; stage < stages; stage++) {
		struct skep_plan_memory m = skep_plan_memory(s, stage);
		s->memory_bytes[stage] = m.state_bytes + m.gradient_bytes + m.activation_bytes;
	}
	s->training = (struct skep_training){
		.model = &s->model,
		.plan = &s->plan,
		.corpus = s->corpus,
		.optimizer = s->optimizer,
		.samples = s->samples,
		.activation_codec = s->activation_codec,
		.reduction_codec = s->plan.reduction_codec,
		.checkpoint_activations = s->checkpoint_activations,
	};
	s->plan.samples = s->samples;
	return s->plan.wiring != SKEP_WIRING_LATENCY || make_transfers(s);
}
