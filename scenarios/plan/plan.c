/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.c - decides which worker serves which stage and how long the operations of a stage take on each GPU, and fills
 * the plan that the core runs on. Memory is in memory.c; stages that are spread over GPUs or machines are in split.c.
 *
 * Keeps true: equal scenarios give equal plans on every machine; the time of an operation is a table look-up.
 */
#include "scenarios/plan/plan.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/units.h"
#include "core/random.h"
#include "core/sums.h"
#include "scenarios/plan/links.h"
#include "scenarios/plan/memory.h"
#include "scenarios/plan/overlap.h"
#include "scenarios/plan/prices.h"
#include "scenarios/plan/split.h"
#include "scenarios/read/periodic.h"
#include "topologies/read/path.h"
#include "topologies/read/uncertain.h"

#define STATE_CHUNKS_MAX 1048576.0

/* ---- allocation ----------------------------------------------------------------------------------------------- */

const char *const skep_allocation_names[] = {"contiguous", "strided", "random", "explicit", "greedy", "relaxed",
	"genetic", "anneal", "portfolio", "exact", NULL};

const char *skep_allocation_name(enum skep_allocation allocation)
{
	return skep_allocation_names[allocation];
}

/* Workers that a trace lets come later are spares. */
void skep_plan_allocate(struct skep_scenario *s)
{
	uint32_t stages = s->plan.stages, count = skep_scenario_has_absent(s) ? s->churn.presents : s->plan.workers;
	if (s->allocation == SKEP_ALLOCATION_EXPLICIT)
		return;
	for (uint32_t i = 0; i < s->plan.workers; i++)
		s->first_stage_of[i] = SKEP_NO_STAGE;
	for (uint32_t i = 0; i < count; i++) /* the stages of those who are there, packed to the front */
		s->first_stage_of[i] = s->allocation == SKEP_ALLOCATION_CONTIGUOUS
		                               ? (uint32_t)((uint64_t)i * stages / count)
		                               : i % stages;
	uint64_t random = skep_mix(s->seed ^ 0x616c6c6f63617465u); /* a stream of its own */
	if (s->allocation == SKEP_ALLOCATION_RANDOM)
		skep_random_shuffle(&random, s->first_stage_of, count);
	for (uint32_t i = count; skep_scenario_has_absent(s) &&
				 i-- > 0;) { /* present[] rises, so nothing is overwritten that is needed */
		uint32_t worker = s->churn.present[i], stage = s->first_stage_of[i];
		s->first_stage_of[i] = SKEP_NO_STAGE;
		s->first_stage_of[worker] = stage;
	}
}

uint32_t skep_plan_serving(const struct skep_scenario *s, uint32_t stage)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < s->plan.workers; i++)
		count += s->first_stage_of[i] == stage;
	return count;
}

uint32_t skep_plan_serving_most(const struct skep_scenario *s)
{
	uint32_t most = 0;
	for (uint32_t stage = 0; stage < s->plan.stages; stage++) {
		uint32_t count = skep_plan_serving(s, stage);
		most = count > most ? count : most;
	}
	return most;
}

uint64_t skep_plan_all_steps(const struct skep_scenario *s)
{
	return skep_plan_steps_before(&s->plan, s->plan.rounds);
}

uint64_t skep_plan_whole_steps(const struct skep_scenario *s, uint32_t steps)
{
	return skep_plan_steps_before(&s->plan, skep_plan_rounds_of(&s->plan, steps));
}

uint32_t skep_plan_empty_stage(const struct skep_scenario *s)
{
	for (uint32_t stage = 0; stage < s->plan.stages; stage++)
		if (skep_plan_serving(s, stage) == 0)
			return stage;
	return SKEP_NO_STAGE;
}

uint32_t skep_plan_usual_in_flight(uint32_t active, uint32_t first)
{
	uint32_t each = (2 * active + first - 1) / first;
	return each < 2 ? 2 : each < SKEP_IN_FLIGHT_MAX ? each : SKEP_IN_FLIGHT_MAX;
}

uint32_t skep_plan_in_flight(const struct skep_scenario *s)
{
	uint32_t active = s->plan.workers - skep_plan_serving(s, SKEP_NO_STAGE);
	return skep_plan_usual_in_flight(active, skep_plan_serving(s, 0));
}

/* ---- time ----------------------------------------------------------------------------------------------------- */

static uint64_t op_ns(const struct skep_scenario *s, const struct skep_gpu *gpu, double flop, double bytes)
{
	return skep_gpu_time_ns(gpu, flop * s->compute_scale, bytes * s->compute_scale);
}

/* A time that the model gives is that of any GPU; else it is by the roofline. */
static uint64_t given_or(const struct skep_scenario *s, uint64_t given_ns, uint64_t op_ns)
{
	return given_ns > 0 ? skep_ns_clamp((double)given_ns * s->compute_scale) : op_ns;
}

double skep_plan_state_bytes(const struct skep_scenario *s, uint32_t vstage)
{
	const struct skep_stage_plan *stage = &s->stage[vstage % s->plan.stages];
	const struct skep_cost *cost = &s->cost[vstage];
	if (stage->frozen + stage->frozen_end > 0)
		return SKEP_FLOAT_BYTES * (double)cost->trained *
		       (1 + skep_optimizer_moments(skep_periodic_stepper(s)));
	if (skep_plan_model_chunks(&s->plan) == 1)
		return (double)stage->state_bytes;
	return (double)stage->state_bytes * ((double)cost->parameters / (double)stage->parameters);
}

/* STEP makes the gradient of a tied table of two sums. */
static double blend_bytes(const struct skep_scenario *s, uint32_t vstage)
{
	return skep_plan_is_tied_vstage(&s->plan, vstage) ? 3.0 * SKEP_FLOAT_BYTES * (double)s->plan.tied : 0;
}

/* Of the gradients of a stage as passes leave them, and of one element of what is reduced: a pseudo-gradient is the difference
 * of master copies. */
static double gradient_bytes(const struct skep_scenario *s, uint64_t parameters)
{
	return (double)(skep_model_number_bytes(&s->model) * parameters);
}

static double reduced_bytes(const struct skep_scenario *s, uint64_t elements)
{
	return (double)((skep_plan_periodic(&s->plan) ? SKEP_FLOAT_BYTES : skep_model_number_bytes(&s->model)) *
			elements);
}

/* In mixed precision a step writes the parameters that passes read beside the master copies. */
static double rounded_bytes(const struct skep_scenario *s, uint64_t parameters)
{
	return s->model.halves ? gradient_bytes(s, parameters) : 0;
}

/* What an inner step of so many parameters moves: reads and clears the sum; reads and writes parameters and moments. */
static double inner_bytes(const struct skep_scenario *s, uint64_t count)
{
	double parameters = (double)(SKEP_FLOAT_BYTES * count);
	return 2 * gradient_bytes(s, count) + 2 * (1 + skep_optimizer_moments(&s->optimizer)) * parameters +
	       rounded_bytes(s, count);
}

/* Of a pseudo-gradient, for parameters of so many bytes: reads both kinds of them, writes the accumulator; with `async`
 * copies the inner ones, with `gossip` clears the accumulator, and reads it in place of one kind. */
static double pseudo_bytes(const struct skep_scenario *s, double parameters)
{
	return (s->plan.async.on ? 5 : s->plan.gossip ? 4 : 3) * parameters;
}

/* Behind a STEP, for parameters of so many bytes: writes the inner ones; to mix them it reads them first. */
static double follow_bytes(const struct skep_scenario *s, double parameters)
{
	if (!skep_plan_periodic(&s->plan))
		return 0;
	if (s->plan.async.on) /* its own merge: what it did since is added, and copied where it starts from */
		return 5 * parameters;
	if (s->plan.gossip) /* before the step: makes a mean of the sum, and how far the parameters are from it */
		return 6 * parameters;
	return s->plan.delayed && s->mixing > 0 ? 2 * parameters : parameters;
}

/* Without a flush, where a pass reads what is made of the newest parameters (models/update/moved.c): a FORWARD copies them and
 * subtracts what it makes of each moment (of waves what accumulators hold); a BACKWARD copies them and subtracts the drift; and
 * a step copies them and smoothes what it has changed. */
struct moved_bytes {
	double forward, backward, step;
};

static struct moved_bytes moved_bytes(const struct skep_scenario *s, uint32_t vstage, const struct skep_cost *c)
{
	const double trained = (double)(SKEP_FLOAT_BYTES * c->trained), all = gradient_bytes(s, c->parameters);
	if (!skep_plan_moves_weights(&s->plan) || skep_plan_staleness(&s->plan, vstage % s->plan.stages) == 0)
		return (struct moved_bytes){0};
	if (skep_plan_waves(&s->plan)) /* of what it has counted of two waves */
		return (struct moved_bytes){.forward = 2 * all + 2 * 5 * trained};
	if (s->plan.no_flush.weights == SKEP_WEIGHTS_PREDICTED)
		return (struct moved_bytes){.forward = 2 * all + (2 + skep_optimizer_moments(&s->optimizer)) * trained};
	return (struct moved_bytes){.backward = 2 * all + 3 * trained, .step = 2 * all + 4 * trained};
}

/* Of each GPU. STEP reads the sum, reads and writes parameters and moments, and clears the accumulator; with ZeRO of its shard.
 * What a model gives is the step of `train.optimizer`, which is the inner one with periodic sync. SAVE and LOAD copy a chunk,
 * ENTER fills what all of them make. */
static struct skep_op_time time_vstage(const struct skep_scenario *s, uint32_t type, uint32_t vstage)
{
	const struct skep_gpu *gpu = &s->topology.gpu[type];
	struct skep_cost share, *c = &share;
	skep_split_share(s, type, vstage, &share);
	double n = s->samples, state = (double)s->stage[vstage % s->plan.stages].state_bytes;
	double own_state = skep_plan_state_bytes(s, vstage) / skep_split_of(s, type).gpus,
	       trained = (double)(SKEP_FLOAT_BYTES * c->trained);
	uint32_t owners = skep_split_owners(s, vstage % s->plan.stages);
	bool encoded = skep_scenario_encodes(s); /* encoding and decoding, beside the passes themselves */
	double in = encoded && vstage > 0 ? (double)skep_plan_vstage_bytes(&s->plan, vstage - 1) : 0;
	double out = encoded ? (double)skep_plan_vstage_bytes(&s->plan, vstage) : 0;
	const struct moved_bytes moved = moved_bytes(s, vstage, c);
	return (struct skep_op_time){
		.forward_ns = given_or(s, c->forward_ns,
			op_ns(s, gpu, n * c->forward_flop,
				c->forward_bytes + n * c->sample_bytes + in + out + moved.forward)),
		.backward_ns = given_or(s, c->backward_ns,
			op_ns(s, gpu, n * c->backward_flop,
				c->backward_bytes + n * c->backward_sample_bytes + 2 * in + out + moved.backward)),
		/* with checkpoint_activations backward is both of these in one (skep_cost_checkpoint) */
		.recompute_ns = given_or(s, c->forward_ns,
			op_ns(s, gpu, n * c->forward_flop, c->forward_bytes + n * c->sample_bytes + in)),
		.recomputed_ns = given_or(s, c->backward_ns > c->forward_ns ? c->backward_ns - c->forward_ns : 0,
			op_ns(s, gpu, n * fmax(0, c->backward_flop - c->forward_flop),
				fmax(0, c->backward_bytes - c->forward_bytes) +
					n * fmax(0, c->backward_sample_bytes - c->sample_bytes) + 2 * in + out)),
		.step_ns = given_or(s, skep_plan_periodic(&s->plan) ? 0 : (c->step_ns + owners - 1) / owners,
			op_ns(s, gpu, 0,
				(2 * reduced_bytes(s, c->trained) + 2 * own_state + rounded_bytes(s, c->trained) +
					follow_bytes(s, trained) + moved.step +
					blend_bytes(s, vstage) / skep_split_of(s, type).gpus) /
					owners)),
		.inner_ns = given_or(s, c->step_ns, op_ns(s, gpu, 0, inner_bytes(s, c->trained))),
		.pseudo_ns = op_ns(s, gpu, 0, pseudo_bytes(s, trained)),
		.state_ns = skep_split_migrate_ns(s, type, SKEP_PART_STATE, 2 * state),
	};
}

/* What a reduction operation moves through memory, for `count` elements: COPY_GRAD encodes a copy; ADD decodes, adds its own and
 * encodes; ADD_STORE writes the sum as well; STORE decodes; INIT_RESULT copies; ADD_TO_RESULT decodes and adds to the
 * result; COPY_RESULT encodes the result, and decodes it again if that may change it. */
static double chunk_traffic(uint8_t kind, bool encodes, double plain_bytes, double encoded_bytes)
{
	switch (kind) {
	case SKEP_OP_ADD:
		return plain_bytes + 2 * encoded_bytes;
	case SKEP_OP_ADD_STORE:
		return 2 * plain_bytes + 2 * encoded_bytes;
	case SKEP_OP_INIT_RESULT:
		return 2 * plain_bytes;
	case SKEP_OP_ADD_TO_RESULT:
		return 2 * plain_bytes + encoded_bytes;
	case SKEP_OP_COPY_RESULT:
	case SKEP_OP_COPY_TIED:
		return plain_bytes + encoded_bytes + (encodes ? plain_bytes + encoded_bytes : 0);
	default:
		return plain_bytes + encoded_bytes;
	}
}

/* The same where parts are gathered: PACK_PART encodes a copy, UNPACK_PART copies one's own part or decodes another's,
 * AGGREGATE reads them all, for a score twice, and writes what it makes of them. Sorting them costs at most ten comparisons
 * for each byte that is read, with 512 members, which GPUs do beside that. */
static double gather_traffic(
	const struct skep_scenario *s, const struct skep_op *op, double plain_bytes, double encoded)
{
	double passes = s->robust.method == SKEP_ROBUST_ZENO ? 2 : 1;
	if (op->kind == SKEP_OP_AGGREGATE)
		return (passes * op->members + 1) * plain_bytes;
	bool own = op->kind == SKEP_OP_UNPACK_PART && op->in.slot == 0 && op->in.generation == 0;
	return plain_bytes + (own ? plain_bytes : encoded);
}

static uint64_t reduce_ns(const struct skep_scenario *s, uint32_t gpu, const struct skep_op *op)
{
	bool encodes = skep_scenario_encodes_sums(s, op->stage);
	double plain = reduced_bytes(s, op->count);
	double encoded = (double)skep_plan_encoded_bytes(&s->plan, op->stage, op->count);
	bool gathers = op->kind >= SKEP_OP_PACK_PART && op->kind <= SKEP_OP_AGGREGATE;
	return skep_split_migrate_ns(s, gpu, SKEP_PART_GRADIENT,
		gathers ? gather_traffic(s, op, plain, encoded) : chunk_traffic(op->kind, encodes, plain, encoded));
}

static uint64_t chunk_bytes(const struct skep_scenario *s, const struct skep_op *op)
{
	uint64_t all = s->stage[op->stage].state_bytes;
	return op->chunks > 1 ? skep_state_chunk_bytes(&s->plan, op->stage, op->chunk) : all;
}

/* What an operation has of all that is trained of its stage. */
static double part_of_trained(const struct skep_scenario *s, const struct skep_op *op)
{
	uint64_t trained = skep_plan_trained(&s->plan, op->stage);
	return trained > 0 ? (double)op->count / (double)trained : 0;
}

/* Of what takes so long for the whole vector: what the operation does, which may be a fragment, or nothing. */
static uint64_t part_of(const struct skep_scenario *s, const struct skep_op *op, uint64_t ns)
{
	if (!skep_plan_sums(&s->plan, op->stage, op->round))
		return 0;
	if (skep_plan_fragments(&s->plan) == 1)
		return ns;
	return skep_ns_clamp((double)ns * part_of_trained(s, op));
}

/* Elements of a stage whose moments are in the shards of other workers. */
static double not_sharded(const struct skep_scenario *s, uint32_t stage)
{
	uint64_t first, largest, trained = skep_plan_trained(&s->plan, stage);
	skep_chunk_range(trained, 0, skep_plan_shards(&s->plan, stage), &first, &largest);
	return (double)(trained - largest);
}

/* What is kept of a stage is more than its state (skep_stage_keep()). */
static uint64_t kept_ns(const struct skep_scenario *s, uint32_t stage)
{
	const struct skep_stage_plan *of = &s->stage[stage];
	uint32_t moments = skep_plan_periodic(&s->plan) ? skep_optimizer_moments(&s->optimizer) : 0;
	uint32_t more = skep_plan_inner_kept(&s->plan, stage) + skep_plan_steps_beside(&s->plan);
	double numbers = moments * (double)skep_plan_trained(&s->plan, stage) + more * (double)of->parameters;
	numbers -= skep_optimizer_moments(&s->optimizer) * not_sharded(s, stage);
	return skep_ns_clamp(1e9 * ((double)of->state_bytes + SKEP_FLOAT_BYTES * numbers) / s->checkpoint_Bps);
}

/* The inner step and the pseudo-gradient of the elements of a part. */
static uint64_t inner_part_ns(const struct skep_scenario *s, const struct skep_op *op, const struct skep_op_time *time)
{
	return skep_ns_clamp(part_of_trained(s, op) * (double)(time->inner_ns + time->pseudo_ns));
}

uint64_t skep_scenario_op_ns(const struct skep_scenario *s, uint32_t worker, const struct skep_op *op)
{
	assert(worker < s->plan.workers);
	assert(op->stage < (skep_op_sliced(op->kind) ? skep_plan_vstages(&s->plan) : s->plan.stages));
	uint32_t gpu = s->topology.machine[worker].gpu;
	const struct skep_op_time *time = &s->op_time[(size_t)gpu * skep_plan_vstages(&s->plan) + op->stage];
	uint64_t ns;
	switch (op->kind) {
	case SKEP_OP_FORWARD:
		return skep_compute_noisy_ns(s->compute.noise, s->seed, worker, op, time->forward_ns);
	case SKEP_OP_BACKWARD:
		ns = skep_compute_noisy_ns(s->compute.noise, s->seed, worker, op,
			op->recomputed ? time->recomputed_ns : time->backward_ns);
		ns = s->plan.eager && op->chunks > 1 ? skep_overlap_part_ns(s, gpu, op, ns) : ns;
		return op->inner == 0 ? ns : ns + inner_part_ns(s, op, time);
	case SKEP_OP_RECOMPUTE:
		return skep_compute_noisy_ns(s->compute.noise, s->seed, worker, op, time->recompute_ns);
	case SKEP_OP_STEP:
		return part_of(s, op, skep_compute_noisy_ns(s->compute.noise, s->seed, worker, op, time->step_ns));
	case SKEP_OP_INNER_STEP:
		return skep_compute_noisy_ns(s->compute.noise, s->seed, worker, op, time->inner_ns);
	case SKEP_OP_PSEUDO_GRAD:
		return part_of(s, op, skep_compute_noisy_ns(s->compute.noise, s->seed, worker, op, time->pseudo_ns));
	case SKEP_OP_DISCARD:
		return skep_split_migrate_ns(
			s, gpu, SKEP_PART_GRADIENT, reduced_bytes(s, skep_plan_trained(&s->plan, op->stage)));
	case SKEP_OP_ENTER:
		return time->state_ns;
	case SKEP_OP_CHECKPOINT:
		return kept_ns(s, op->stage);
	case SKEP_OP_RESTORE:
		if (op->checkpoint == 0)
			return time->state_ns;
		return kept_ns(s, op->stage);
	case SKEP_OP_SAVE:
	case SKEP_OP_LOAD:
		return skep_split_migrate_ns(s, gpu, SKEP_PART_STATE, 2 * (double)chunk_bytes(s, op));
	default:
		return reduce_ns(s, gpu, op);
	}
}

double skep_plan_least_seconds(const struct skep_scenario *s)
{
	double round_ns = 0;
	uint32_t vstages = skep_plan_vstages(&s->plan);
	for (uint32_t vstage = 0; vstage < vstages; vstage++) {
		double best = INFINITY;
		for (uint32_t gpu = 0; gpu < s->topology.gpus; gpu++) {
			const struct skep_op_time *time = &s->op_time[(size_t)gpu * vstages + vstage];
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
	for (uint32_t i = 0; i < t->places; i++)
		for (uint32_t j = 0; j < t->places; j++)
			least = fmin(least, fmin(skep_path_least_Bps(t, i, j), skep_path_cap_Bps(t, i, j)));
	return least;
}

/* So that no chunk has more than the scenario says. */
static uint32_t state_chunks(const struct skep_scenario *s, uint64_t parameters)
{
	double element = (double)(skep_device_state_bytes(skep_periodic_stepper(s), 1, 1, 1) - SKEP_STATE_HEADER_BYTES);
	double most = floor(fmax(1, (s->state_chunk_bytes - SKEP_STATE_HEADER_BYTES) / element));
	double chunks = fmin(fmin(ceil((double)parameters / most), (double)parameters), STATE_CHUNKS_MAX);
	return chunks < 1 ? 1 : (uint32_t)chunks;
}

static uint64_t moved(uint64_t ns, int64_t by_ns)
{
	return by_ns < 0 && ns <= (uint64_t)-by_ns ? 1 : ns + (uint64_t)by_ns;
}

/* The two halves of a backward pass that computes anew change as the forward pass and the rest of the backward one did. */
static void follow_recompute(struct skep_op_time *time, const struct skep_op_time *plain)
{
	int64_t forward = (int64_t)(time->forward_ns - plain->forward_ns);
	int64_t backward = (int64_t)(time->backward_ns - plain->backward_ns);
	time->recompute_ns = moved(plain->recompute_ns, forward);
	time->recomputed_ns = moved(plain->recomputed_ns, backward - forward);
}

static void make_vstage(struct skep_scenario *s, uint32_t vstage)
{
	struct skep_cost *cost = &s->cost[vstage];
	skep_model_cost(&s->model, skep_plan_vstages(&s->plan), vstage, cost);
	if (skep_plan_recomputes(&s->plan, s->checkpoint_activations, vstage))
		skep_cost_checkpoint(cost);
	s->vstage_bytes[vstage] = skep_cost_payload_bytes(cost, s->activation_codec, s->activation_block, s->samples);
}

static void make_times(struct skep_scenario *s, uint32_t vstage)
{
	for (uint32_t gpu = 0; gpu < s->topology.gpus; gpu++) {
		struct skep_op_time *time = &s->op_time[(size_t)gpu * skep_plan_vstages(&s->plan) + vstage], plain;
		*time = plain = time_vstage(s, gpu, vstage);
		skep_compute_predict(s, gpu, vstage);
		skep_split_time(s, gpu, vstage, time);
		follow_recompute(time, &plain);
		skep_compute_take_measured(s, gpu, vstage);
		if (skep_plan_is_frozen(&s->plan, vstage))
			time->backward_ns = time->recomputed_ns = 1;
	}
}

/* All of its virtual stages. What leaves it is of the largest of them; `link_Bps` is what a newcomer can count on. */
static void make_stage(struct skep_scenario *s, uint32_t stage, double link_Bps)
{
	uint64_t parameters = 0, trained = 0, frozen = 0, activation_bytes = 0;
	for (uint32_t vstage = stage; vstage < skep_plan_vstages(&s->plan); vstage += s->plan.stages) {
		parameters += s->cost[vstage].parameters;
		trained += s->cost[vstage].trained;
		frozen += s->cost[vstage].frozen;
		activation_bytes =
			s->vstage_bytes[vstage] > activation_bytes ? s->vstage_bytes[vstage] : activation_bytes;
	}
	uint32_t chunks = state_chunks(s, parameters);
	uint64_t state_bytes = skep_device_state_bytes(skep_periodic_stepper(s), parameters, trained, chunks);
	s->stage[stage] = (struct skep_stage_plan){
		.parameters = parameters,
		.frozen = frozen,
		.frozen_end = parameters - frozen - trained,
		.activation_bytes = activation_bytes,
		.state_bytes = state_bytes,
		.migrate_ns = skep_ns_clamp(1e9 * (double)state_bytes / link_Bps),
		.state_chunks = chunks,
	};
}

void skep_plan_cut(struct skep_scenario *s, double link_Bps)
{
	uint32_t vstages = skep_plan_vstages(&s->plan);
	s->plan.frozen_vstages = skep_model_frozen_stages(&s->model, vstages);
	for (uint32_t vstage = 0; vstage < vstages; vstage++)
		make_vstage(s, vstage);
	for (uint32_t stage = 0; stage < s->plan.stages; stage++)
		make_stage(s, stage, link_Bps);
	for (uint32_t vstage = 0; vstage < vstages; vstage++)
		make_times(s, vstage);
}

void skep_plan_cut_vstage(struct skep_scenario *s, uint32_t vstage)
{
	s->plan.frozen_vstages = skep_model_frozen_stages(&s->model, skep_plan_vstages(&s->plan));
	if (vstage > 0)
		make_vstage(s, vstage - 1);
	make_vstage(s, vstage);
	make_stage(s, vstage % s->plan.stages, INFINITY);
	make_times(s, vstage);
}

void skep_scenario_draw(struct skep_scenario *s)
{
	assert(!s->unresolved);
	if (!s->draws_links)
		return;
	skep_topology_draw(&s->topology, s->seed, s->extra_latency_s);
	for (uint32_t vstage = 0; vstage < skep_plan_vstages(&s->plan); vstage++)
		make_times(s, vstage);
}

bool skep_plan_make(struct skep_scenario *s)
{
	uint32_t stages = s->plan.stages, vstages = skep_plan_vstages(&s->plan);
	size_t pairs = (size_t)vstages * s->topology.gpus;
	s->stage = calloc(stages, sizeof *s->stage);
	s->cost = calloc(vstages, sizeof *s->cost);
	s->vstage_bytes = calloc(vstages, sizeof *s->vstage_bytes);
	s->op_time = calloc(pairs, sizeof *s->op_time);
	s->timing = s->predictor ? calloc(pairs, sizeof *s->timing) : NULL;
	if (!s->stage || !s->cost || !s->vstage_bytes || !s->op_time || (s->predictor && !s->timing))
		return false;
	s->plan.stage = s->stage;
	s->plan.vstage_bytes = vstages > stages ? s->vstage_bytes : NULL;
	s->plan.first_stage_of = s->first_stage_of;
	skep_plan_cut(s, thinnest_Bps(s));
	s->training = (struct skep_training){
		.model = &s->model,
		.plan = &s->plan,
		.corpus = s->corpus,
		.points = s->points,
		.tokens = s->tokens,
		.weights = s->weights,
		.optimizer = s->optimizer,
		.outer = s->outer,
		.mixing = s->mixing,
		.samples = s->samples,
		.activation_codec = s->activation_codec,
		.reduction_codec = s->plan.reduction.codec,
		.reduction_codecs = s->plan.reduction.codecs,
		.activation_block = s->activation_block,
		.reduction_block = s->plan.reduction.block,
		.robust = s->robust,
		.checkpoint_activations = s->checkpoint_activations,
		.offload = s->offload,
	};
	s->plan.samples = s->samples;
	if (!skep_plan_make_collective(s) || !skep_overlap_make(s) || !skep_fragments_make(s) || !skep_memory_make(s) ||
		!skep_dealing_make(s) || !skep_prices_make(s))
		return false;
	return s->plan.wiring != SKEP_WIRING_LATENCY || skep_plan_make_transfers(s);
}
