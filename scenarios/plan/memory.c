/* SPDX-License-Identifier: Apache-2.0
 *
 * memory.c - what a stage takes of the memory of each GPU and host that serves it. docs/costs.md has the formulas and
 * where they come from; models/read/layer_cost.c those of a layer.
 *
 * Keeps true: on a CPU device weights, gradients, optimizer and the result of a reduction are what
 * models/stage/stage.c allocates.
 */
#include "scenarios/plan/memory.h"

#include <math.h>
#include <stdlib.h>

#include "core/schedule/pipelines.h"
#include "scenarios/plan/plan.h"
#include "scenarios/plan/split.h"
#include "scenarios/read/periodic.h"

#define MODEL_CHUNKS_MAX 64u /* as in pipelines.c */

struct terms { /* of one stage on one kind of machine */
	const struct skep_scenario *s;
	const struct skep_memory_terms *of;
	struct skep_plan plan; /* with the stages that are asked for */
	struct skep_cost share;
	double in, out; /* bytes of a microbatch on one GPU, encoded; of several virtual stages the largest */
	double decoded; /* of these two, as floats */
	double model_chunk
		[MODEL_CHUNKS_MAX]; /* bytes that one microbatch takes in each virtual stage between its passes */
	double gpus;
	bool whole; /* every GPU has all of what comes in and goes out */
};

/* ---- microbatches held ------------------------------------------------------------------------------------------ */

static uint32_t serving(const struct skep_scenario *s, const struct skep_memory_terms *of, uint32_t stage)
{
	uint32_t stages = of->stages;
	if (of->serving)
		return of->serving[stage];
	uint32_t active = s->plan.workers - skep_plan_serving(s, SKEP_NO_STAGE);
	return stages == s->plan.stages ? skep_plan_serving(s, stage) : active / stages > 0 ? active / stages : 1;
}

/* So many more than undisturbed: while it makes up for what was lost (core/schedule/interleaved.c), or while all that it holds
 * waits for a slower sender of the oldest round (core/schedule/pipedream.c). */
static uint32_t held_beyond(const struct skep_scenario *s, const struct skep_memory_terms *of, uint32_t stage)
{
	uint32_t first = serving(s, of, 0), pipelines = first;
	bool equal = true;
	for (uint32_t other = 1; other < of->stages; other++) {
		pipelines = skep_common_multiple(pipelines, serving(s, of, other));
		equal = equal && serving(s, of, other) == first;
	}
	if (skep_plan_no_flush(&s->plan) && !equal)
		return pipelines / serving(s, of, stage);
	return skep_plan_model_chunks(&s->plan) - 1;
}

static uint32_t held_of_pipelines(const struct skep_scenario *s, const struct skep_memory_terms *of, uint32_t stage)
{
	uint64_t round = (uint64_t)s->plan.microbatches * s->samples / of->samples, workers = serving(s, of, stage);
	uint64_t from_here = 0;
	if (skep_plan_waves(&s->plan))
		return skep_wave_held((uint32_t)(round / workers), stage);
	for (uint32_t later = stage; later < of->stages; later++)
		from_here += serving(s, of, later);
	return skep_pipeline_held(s->plan.pipeline, of->stages, skep_plan_model_chunks(&s->plan),
		       (uint32_t)((from_here + workers - 1) / workers), (uint32_t)(round / workers / of->flushes),
		       stage) +
	       held_beyond(s, of, stage);
}

/* The first stage holds what it issued; behind it wiring is a draw, and twice the mean is seldom exceeded. */
uint32_t skep_memory_held(const struct skep_scenario *s, const struct skep_memory_terms *of, uint32_t stage)
{
	uint64_t all = (uint64_t)serving(s, of, 0) * of->in_flight, workers = serving(s, of, stage);
	uint64_t twice_mean = 2 * ((all + workers - 1) / workers);
	if (skep_plan_fixed(&s->plan))
		return held_of_pipelines(s, of, stage);
	if (stage == 0)
		return of->in_flight;
	return (uint32_t)(twice_mean < all ? twice_mean : all);
}

/* ---- the columns ------------------------------------------------------------------------------------------------ */

static double payload(const struct terms *t, uint32_t vstage, enum skep_codec codec)
{
	struct skep_cost cost;
	skep_model_cost(&t->s->model, skep_plan_vstages(&t->plan), vstage, &cost);
	double bytes = (double)skep_cost_payload_bytes(&cost, codec, t->s->activation_block, t->of->samples);
	return t->whole ? bytes : bytes / t->gpus;
}

static double encoded(const struct terms *t, uint32_t vstage)
{
	return payload(t, vstage, t->s->activation_codec);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Of what a stage holds once there is the sum of its virtual stages, of what it needs for each microbatch the largest. */
static void add_vstage(struct skep_cost *sum, const struct skep_cost *vstage)
{
	sum->parameters += vstage->parameters;
	sum->trained += vstage->trained;
	sum->stash_bytes = larger(sum->stash_bytes, vstage->stash_bytes);
	sum->workspace_bytes = larger(sum->workspace_bytes, vstage->workspace_bytes);
	sum->scratch_bytes = larger(sum->scratch_bytes, vstage->scratch_bytes);
	sum->largest_parameters = larger(sum->largest_parameters, vstage->largest_parameters);
}

static struct terms terms_of(
	const struct skep_scenario *s, const struct skep_memory_terms *of, uint32_t stage, uint32_t gpu)
{
	struct skep_split split = skep_split_of(s, gpu);
	struct terms t = {.s = s, .of = of, .plan = s->plan, .gpus = split.gpus, .whole = !split.sequence};
	t.plan.stages = of->stages;
	uint32_t vstages = skep_plan_vstages(&t.plan);
	t.plan.frozen_vstages = skep_model_frozen_stages(&s->model, vstages);
	for (uint32_t vstage = stage; vstage < vstages; vstage += of->stages) {
		struct skep_cost share;
		skep_model_share(&s->model, vstages, vstage, &split, &share);
		if (skep_plan_recomputes(&t.plan, of->checkpoint_activations, vstage))
			skep_cost_checkpoint(&share);
		double in = vstage > 0 ? encoded(&t, vstage - 1) : 0,
		       out = vstage + 1 < vstages ? encoded(&t, vstage) : 0;
		double floats = (vstage > 0 ? payload(&t, vstage - 1, SKEP_CODEC_NONE) : 0) +
		                (vstage + 1 < vstages ? payload(&t, vstage, SKEP_CODEC_NONE) : 0);
		add_vstage(&t.share, &share);
		t.model_chunk[vstage / of->stages] = in + out + of->samples * (double)share.stash_bytes;
		t.in = fmax(t.in, in);
		t.out = fmax(t.out, out);
		t.decoded = fmax(t.decoded, floats);
	}
	return t;
}

/* Microbatches between their two passes. Gradients go before activations (core/worker/schedule.c), so in the last stage the
 * backward pass is next; only what is run again may have to wait for a reduction first. */
static uint32_t stashes(const struct terms *t, uint32_t stage, uint32_t microbatches)
{
	bool again = t->plan.on_loss == SKEP_ON_LOSS_RERUN || t->plan.on_loss == SKEP_ON_LOSS_VOID;
	bool at_once = t->plan.pipeline == SKEP_PIPELINE_SWARM && !again;
	return at_once && stage + 1 == t->plan.stages ? 1 : microbatches;
}

/* Interleaved: the most at any time while the list of passes is done (core/schedule/interleaved.c), and once more
 * the largest virtual stage for each but
 * one of them, since so much more may be held while a pipeline makes up for what was lost. */
static double chunk_by_chunk(const struct terms *t, uint32_t most)
{
	uint32_t model_chunks = skep_plan_model_chunks(&t->plan), stages = t->of->stages, forwards = 0, backwards = 0;
	uint32_t all = 8 * model_chunks * stages; /* then it repeats itself */
	double held = 0, top = 0, largest = 0;
	for (uint32_t model_chunk = 0; model_chunk < model_chunks; model_chunk++)
		largest = fmax(largest, t->model_chunk[model_chunk]);
	while (forwards < all) {
		bool forward = forwards - backwards < most;
		held += forward ? t->model_chunk[forwards / stages % model_chunks]
		                : -t->model_chunk[model_chunks - 1 - backwards / stages % model_chunks];
		top = fmax(top, held);
		forwards += forward;
		backwards += !forward;
	}
	return top + (model_chunks - 1) * largest;
}

/* What came in, what is kept for the backward pass, and what went out or, later, its gradient. With trainer routing an owner
 * keeps what went into every later stage. */
static double activations(const struct terms *t, uint32_t stage, uint32_t microbatches)
{
	double samples = t->of->samples, each = t->in + t->out;
	uint32_t model_chunks = skep_plan_model_chunks(&t->plan);
	if (model_chunks > 1)
		return chunk_by_chunk(t, microbatches - (model_chunks - 1)) +
		       samples * (double)t->share.workspace_bytes;
	double kept = stashes(t, stage, microbatches) * samples * (double)t->share.stash_bytes;
	if (stage == 0 && t->plan.routing == SKEP_ROUTING_TRAINER)
		for (uint32_t later = 1; later + 1 < t->plan.stages; later++)
			each += encoded(t, later);
	return microbatches * each + kept + samples * (double)t->share.workspace_bytes;
}

/* Two chunks of a ring, one on its way in and one on its way out. A butterfly's pieces are all under way at once. */
static double chunks(const struct terms *t, uint32_t stage, double parameters)
{
	double n = serving(t->s, t->of, stage);
	if (n > 1 && t->plan.reduction.collective == SKEP_COLLECTIVE_BUTTERFLY)
		return 2 * (double)skep_plan_encoded_bytes(&t->plan, stage, (uint64_t)ceil(parameters * (n - 1) / n));
	double encoded = (double)skep_plan_encoded_bytes(&t->plan, stage, (uint64_t)ceil(parameters / n));
	return n > 1 ? 2 * encoded : 0;
}

/* Of a tied table: what the other stage has summed, that on its way in, and one's own on its way out. */
static double tied_peer(const struct terms *t, uint32_t stage)
{
	double plain = (double)(skep_model_number_bytes(&t->s->model) * t->plan.tied);
	bool ties = t->plan.tied > 0 && t->of->stages > 1 && (stage == 0 || stage + 1 == t->of->stages);
	return ties ? (plain + 2 * (double)skep_plan_encoded_bytes(&t->plan, stage, t->plan.tied)) / t->gpus : 0;
}

/* Two chunks of a newcomer's state, which it gets or gives away. */
static double download(const struct terms *t, double state)
{
	return 2 * fmin(t->s->state_chunk_bytes, state) / t->gpus;
}

/* What is on its way out, forwards and backwards; scratch; and the floats of what comes and goes encoded. */
static double passes(const struct terms *t)
{
	double samples = t->of->samples, scratch = samples * (double)t->share.scratch_bytes;
	return t->in + t->out + scratch + (skep_scenario_encodes(t->s) ? t->decoded : 0);
}

/* The most vectors, in units of its own, that a worker of a stage with so many members holds while it aggregates their parts. */
static double gathered_parts(const struct skep_plan *plan, double members)
{
	if (!plan->reduction.gather || members < 2)
		return 0;
	return plan->reduction.collective == SKEP_COLLECTIVE_BUTTERFLY ? 1.0 / plan->reduction.chunks : members;
}

struct skep_memory skep_memory_of(
	const struct skep_scenario *s, const struct skep_memory_terms *of, uint32_t stage, uint32_t gpu)
{
	struct terms t = terms_of(s, of, stage, gpu);
	double n = s->zero > 0 ? serving(s, of, stage) : 1, array = (double)(SKEP_FLOAT_BYTES * t.share.parameters),
	       trained = (double)(SKEP_FLOAT_BYTES * t.share.trained);
	double number = (double)skep_model_number_bytes(&s->model), small = number * (double)t.share.parameters,
	       sums = number * (double)t.share.trained;
	double layer = number * (double)t.share.largest_parameters;
	bool periodic =
		skep_plan_periodic(&t.plan); /* inner parameters beside those of the stage, and two optimizers */
	double moments = skep_optimizer_moments(skep_periodic_stepper(s));
	double inner = periodic ? skep_optimizer_moments(&s->optimizer) : 0;
	struct skep_memory m = {.held = skep_memory_held(s, of, stage)};
	double reduced = periodic ? trained : sums, master = s->model.halves ? trained / n : 0;
	m.weights = skep_plan_versions(&t.plan, stage) * small;
	m.weights += (periodic + t.plan.async.on) * array;
	const bool waves = skep_plan_waves(&t.plan); /* each microbatch has what it reads behind its stash */
	m.weights += skep_plan_moves_weights(&t.plan) * (waves ? m.held : 1) * small;
	m.weights += (t.plan.no_flush.weights == SKEP_WEIGHTS_CORRECTED) * trained;
	m.gradients = (sums + reduced) / (s->zero >= 2 ? n : 1) + (skep_plan_accumulators(&t.plan) - 2) * sums;
	m.optimizer = (moments + inner) * trained / n + master;
	m.activations = activations(&t, stage, m.held);
	double result = (s->zero > 0 ? reduced / n : reduced) + chunks(&t, stage, (double)t.share.trained);
	result += tied_peer(&t, stage);
	result += gathered_parts(&t.plan, serving(s, of, stage)) * reduced;
	m.buffers = download(&t, (array + moments * trained) * t.gpus) + passes(&t);
	if (s->zero == 3) {
		m.weights /= n;
		m.buffers += 2 * layer; /* gathered: one is computed with, the next is on its way */
	}
	if (s->zero >= 2)
		m.buffers += layer; /* its gradients, before they are reduced */
	if (of->offload != SKEP_OFFLOAD_NONE) {
		m.host = t.gpus * (m.optimizer + (array / n - master));
		m.host += of->offload == SKEP_OFFLOAD_GRADIENTS ? t.gpus * (m.gradients + result) : t.gpus * small / n;
		m.optimizer = 0;
	}
	if (of->offload == SKEP_OFFLOAD_GRADIENTS) {
		m.gradients = 0;
		m.buffers += 2 * layer; /* on the way down */
	} else {
		m.buffers += result;
	}
	m.total = m.weights + m.gradients + m.optimizer + m.activations + m.buffers;
	return m;
}

/* ---- all stages ------------------------------------------------------------------------------------------------- */

struct skep_memory_terms skep_memory_terms_of(const struct skep_scenario *s)
{
	return (struct skep_memory_terms){.stages = s->plan.stages,
		.samples = s->samples,
		.in_flight = s->plan.in_flight,
		.flushes = skep_plan_flushes(&s->plan),
		.checkpoint_activations = s->checkpoint_activations,
		.offload = s->offload};
}

bool skep_memory_make(struct skep_scenario *s)
{
	uint32_t stages = s->plan.stages, gpus = s->topology.gpus;
	struct skep_memory_terms terms = skep_memory_terms_of(s);
	s->memory_bytes = calloc(stages, sizeof *s->memory_bytes);
	s->memory = calloc((size_t)gpus * stages, sizeof *s->memory);
	uint32_t *workers = calloc((size_t)gpus * (stages + 1), sizeof *workers);
	if (!s->memory_bytes || !s->memory || !workers) {
		free(workers);
		return false;
	}
	for (uint32_t i = 0; i < s->plan.workers; i++) {
		uint32_t stage = s->first_stage_of[i] == SKEP_NO_STAGE ? stages : s->first_stage_of[i];
		workers[(size_t)s->topology.machine[i].gpu * (stages + 1) + stage]++;
	}
	for (uint32_t gpu = 0; gpu < gpus; gpu++)
		for (uint32_t stage = 0; stage < stages; stage++) {
			const uint32_t *row = &workers[(size_t)gpu * (stages + 1)];
			struct skep_memory *m = &s->memory[(size_t)gpu * stages + stage];
			*m = skep_memory_of(s, &terms, stage, gpu);
			m->workers = row[stage] + row[stages];
			if (m->workers > 0)
				s->memory_bytes[stage] = fmax(s->memory_bytes[stage], m->total);
		}
	free(workers);
	return true;
}

bool skep_memory_fits(const struct skep_scenario *s, const struct skep_memory *memory, uint32_t gpu)
{
	const struct skep_gpu *type = &s->topology.gpu[gpu];
	return memory->total <= type->memory_bytes && (memory->host <= 0 || memory->host <= type->board.host_bytes);
}

bool skep_memory_all_fit(const struct skep_scenario *s, const struct skep_memory_terms *terms)
{
	for (uint32_t gpu = 0; gpu < s->topology.gpus; gpu++)
		for (uint32_t stage = 0; stage < terms->stages; stage++) {
			bool same = terms->stages == s->plan.stages;
			struct skep_memory m = skep_memory_of(s, terms, stage, gpu);
			if (same && s->memory[(size_t)gpu * terms->stages + stage].workers == 0)
				continue;
			if (!skep_memory_fits(s, &m, gpu))
				return false;
		}
	return true;
}
