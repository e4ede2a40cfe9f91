/* SPDX-License-Identifier: Apache-2.0
 *
 * derived.h - the numbers that core and worlds derive from the plan and must agree on: who holds which elements, how many steps,
 * microbatches and versions a round has, and what follows from the pipeline that is on. All of it is pure.
 */
#pragma once

#include <assert.h>

#include "core/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* First chunk element and length of chunk `chunk` of `size` over `parameters` elements; worlds and core must agree. */
void skep_chunk_range(uint64_t parameters, uint32_t chunk, uint32_t size, uint64_t *ret_first, uint64_t *ret_count);

/* Elements of a stage's vector that are trained, and so have gradients and are summed. */
static inline uint64_t skep_plan_trained(const struct skep_plan *plan, uint32_t stage)
{
	const struct skep_stage_plan *s = &plan->stage[stage];
	assert(stage < plan->stages && s->frozen + s->frozen_end <= s->parameters);
	return s->parameters - s->frozen - s->frozen_end;
}

/* Is nothing trained in this virtual stage, nor in any before it? */
static inline bool skep_plan_is_frozen(const struct skep_plan *plan, uint32_t vstage)
{
	return vstage < plan->frozen_vstages;
}

/* Chunks that the state of a stage is downloaded in, and bytes of one of them. */
#define SKEP_STATE_HEADER_BYTES 32u /* of each chunk */
uint32_t skep_state_chunks(const struct skep_plan *plan, uint32_t stage);
uint64_t skep_state_chunk_bytes(const struct skep_plan *plan, uint32_t stage, uint32_t chunk);
/* With `sharded`: the elements of a stage's vector that rank `rank` of `size` members steps, which are those of the chunk that it
 * has when a ring's reduce-scatter is done (collective/ring.h). Without, or of one member: all that is trained. */
void skep_plan_shard(const struct skep_plan *plan, uint32_t stage, uint32_t rank, uint32_t size, uint64_t *ret_first,
	uint64_t *ret_count);
/* So many (without `sharded` 1); the number of a shard's state among those of all stages, and how many; a worker's first rank. */
uint32_t skep_plan_shards(const struct skep_plan *plan, uint32_t stage);
uint32_t skep_plan_part(const struct skep_plan *plan, uint32_t stage, uint32_t rank);
uint32_t skep_plan_parts(const struct skep_plan *plan);
uint32_t skep_plan_first_rank(const struct skep_plan *plan, uint32_t worker);

/* The worker in place `nth`, below plan->workers, of the order in which the members of a stage follow each other. */
static inline uint32_t skep_plan_in_ring(const struct skep_plan *plan, uint32_t stage, uint32_t nth)
{
	assert(stage < plan->stages && nth < plan->workers);
	return plan->reduction.order ? plan->reduction.order[(size_t)stage * plan->workers + nth] : nth;
}

/* Most workers that a stage may have at a time, so members of a reduction, whichever workers come and go. Where
 * newcomers go to those that have the fewest, only the first allocation can make a stage larger than the average: the
 * directory sees to that. */
uint32_t skep_stage_size_max(const struct skep_plan *plan);

/* Workers of another stage that one worker knows at most, to choose among (wiring.h). */
uint32_t skep_view_capacity(const struct skep_plan *plan);

/* How long the activations of a microbatch are expected to take from one worker to another; 0 where the plan does not say. */
skep_time skep_plan_transfer_ns(const struct skep_plan *plan, uint32_t from, uint32_t to);

/* Parts in which a stage's gradients are made and summed, and the elements of one of them. */
uint32_t skep_plan_buckets(const struct skep_plan *plan, uint32_t stage);
void skep_plan_bucket(
	const struct skep_plan *plan, uint32_t stage, uint32_t bucket, uint64_t *ret_first, uint64_t *ret_count);

/* The version of the parameters that a round works on: its own, or with delayed updates that of one step earlier. Not with
 * rounds without a flush: there FORWARD takes the newest at hand. */
uint32_t skep_plan_version(const struct skep_plan *plan, uint32_t round);
/* The version of the parameters that a run begins with. With `async` versions count the outer updates of this run. */
static inline uint32_t skep_plan_first_version(const struct skep_plan *plan)
{
	return plan->async.on ? 0 : plan->first_round;
}

/* The epoch of a machine's first process: 0 for a spare, which holds nothing. */
static inline uint32_t skep_plan_first_epoch(const struct skep_plan *plan, uint32_t index)
{
	assert(index <= plan->workers); /* the directory has the last one */
	return index == plan->workers || plan->first_stage_of[index] != SKEP_NO_STAGE;
}

/* The codec of the chunks of the reductions of a stage, or of the one that a virtual stage is part of; is that of any stage other
 * than `none`; has that of any stage scales, each for several elements? */
enum skep_codec skep_plan_codec(const struct skep_plan *plan, uint32_t stage);
bool skep_plan_compresses(const struct skep_plan *plan);
bool skep_plan_has_scales(const struct skep_plan *plan);
/* Bytes of so many elements of a stage that a reduction sends in one message. */
uint64_t skep_plan_encoded_bytes(const struct skep_plan *plan, uint32_t stage, uint64_t elements);

/* Is stage `stage` visited twice, forwards and backwards, and told its input both times? */
static inline bool skep_plan_visits_twice(const struct skep_plan *plan, uint32_t stage)
{
	return plan->routing == SKEP_ROUTING_TRAINER && stage > 0 && stage + 1 < plan->stages;
}

/* ---- rounds without a flush (SKEP_PIPELINE_PIPEDREAM) ------------------------------------------------------------- */

static inline bool skep_plan_no_flush(const struct skep_plan *plan)
{
	return plan->pipeline == SKEP_PIPELINE_PIPEDREAM;
}

/* Versions of the parameters that a worker of the stage keeps, version v where v - skep_plan_versions() was: 1, with delayed
 * updates 2 (with periodic sync 1, since passes read the inner ones), and one more than the staleness without a flush if
 * versions wait there for BACKWARD, else 1. */
uint32_t skep_plan_versions(const struct skep_plan *plan, uint32_t stage);

/* Rounds that may be open at once, without a flush; and of how many a listener keeps what it hears, since word of one may be
 * late. */
uint32_t skep_plan_window(const struct skep_plan *plan);
static inline uint32_t skep_plan_heard(const struct skep_plan *plan)
{
	return skep_plan_no_flush(plan) ? 2 * skep_plan_window(plan) : 2;
}

/* ---- periodic sync ------------------------------------------------------------------------------------------------ */

static inline bool skep_plan_periodic(const struct skep_plan *plan)
{
	return plan->inner.steps > 0;
}

/* Is a STEP made beside the next round's passes? Else on their lane: with periodic sync it changes what they read. */
static inline bool skep_plan_steps_beside(const struct skep_plan *plan)
{
	return plan->delayed && !skep_plan_periodic(plan);
}

/* What a round sums and steps, of a stage's vector: the elements of bucket `bucket`, or of the round's fragment. */
void skep_plan_range(const struct skep_plan *plan, uint32_t stage, uint32_t round, uint32_t bucket, uint64_t *ret_first,
	uint64_t *ret_count);

static inline uint32_t skep_plan_fragments(const struct skep_plan *plan)
{
	return plan->inner.fragments > 1 ? plan->inner.fragments : 1;
}

/* Microbatches of one inner step, by all workers of a stage together. */
static inline uint32_t skep_plan_inner_batch(const struct skep_plan *plan)
{
	assert(plan->inner.steps > 0);
	uint32_t batch = plan->microbatches / plan->inner.steps;
	return batch > 0 ? batch : 1;
}

/* Optimizer steps of a round, at most, of all rounds before one, and on the mean; 1 for each round without periodic sync. */
uint32_t skep_plan_steps(const struct skep_plan *plan, uint32_t round);
static inline uint32_t skep_plan_most_steps(const struct skep_plan *plan)
{
	return skep_plan_periodic(plan) ? plan->inner.steps : 1;
}
uint64_t skep_plan_steps_before(const struct skep_plan *plan, uint32_t round);
double skep_plan_mean_steps(const struct skep_plan *plan);
/* Rounds, from the first one on, that have so many steps at least. */
uint32_t skep_plan_rounds_of(const struct skep_plan *plan, uint32_t steps);

/* Microbatches after which the directory closes the round. */
uint32_t skep_plan_quota(const struct skep_plan *plan, uint32_t round);

/* The inner step of its round that a microbatch belongs to, by its number; what replaces others belongs to the last one. */
static inline uint32_t skep_plan_inner_step(const struct skep_plan *plan, uint32_t round, uint32_t microbatch)
{
	uint32_t nth = microbatch / skep_plan_inner_batch(plan), steps = skep_plan_steps(plan, round);
	assert(steps > 0);
	return nth < steps ? nth : steps - 1;
}

/* ---- fixed pipelines: no spares; no rebalancing, no trainer routing, no delay ------------------------------------- */

static inline bool skep_plan_fixed(const struct skep_plan *plan)
{
	return plan->pipeline != SKEP_PIPELINE_SWARM;
}

/* Flushes in a round. */
static inline uint32_t skep_plan_flushes(const struct skep_plan *plan)
{
	return plan->accumulate > 1 ? plan->accumulate : 1;
}

/* Who works with whom in them, and how much each holds: schedule/pipelines.h. */

/* ---- a trial of several candidates ------------------------------------------------------------------------------- */

static inline bool skep_plan_has_candidates(const struct skep_plan *plan)
{
	return plan->candidates.count > 1;
}

/* Of so many rounds, >= 2, those whose losses count; the last ones. */
static inline uint32_t skep_candidate_window(uint32_t rounds)
{
	assert(rounds > 1); /* a slope takes two */
	return rounds > 4 ? (rounds + 1) / 2 : 2;
}

/* For which a worker works at the start: by its place among the workers of its stage. A spare: 0. */
uint32_t skep_plan_candidate_of(const struct skep_plan *plan, uint32_t worker);

/* ---- a tied table ------------------------------------------------------------------------------------------------ */

static inline bool skep_plan_is_tied(const struct skep_plan *plan, uint32_t stage)
{
	assert(stage < plan->stages);
	return plan->tied > 0 && (stage == 0 || stage + 1 == plan->stages);
}

/* The other one that holds a copy. */
static inline uint32_t skep_plan_tied_peer(const struct skep_plan *plan, uint32_t stage)
{
	assert(skep_plan_is_tied(plan, stage) && plan->stages > 1);
	return plan->stages - 1 - stage;
}

/* Where the stage's copy begins in its vector. */
static inline uint64_t skep_plan_tied_first(const struct skep_plan *plan, uint32_t stage)
{
	assert(skep_plan_is_tied(plan, stage) && plan->tied <= plan->stage[stage].parameters);
	return stage == 0 ? 0 : plan->stage[stage].parameters - plan->tied;
}

/* ---- virtual stages: as many as stages, unless interleaved; q is chunk q / stages of stage q % stages -------------- */

static inline uint32_t skep_plan_model_chunks(const struct skep_plan *plan)
{
	return plan->model_chunks > 1 ? plan->model_chunks : 1;
}

static inline uint32_t skep_plan_vstages(const struct skep_plan *plan)
{
	return plan->stages * skep_plan_model_chunks(plan);
}

/* Does BACKWARD of a microbatch follow its FORWARD at once? In the last virtual stage, but for GPipe's, where all forward
 * passes come first. */
static inline bool skep_plan_turns_at_once(const struct skep_plan *plan, uint32_t vstage)
{
	assert(vstage < skep_plan_vstages(plan));
	return vstage + 1 == skep_plan_vstages(plan) && plan->pipeline != SKEP_PIPELINE_GPIPE;
}

/* True if BACKWARD recomputes the activations of this virtual stage, because FORWARD kept none. A model in one stage is no
 * pipeline: it recomputes to save what its layers keep. */
static inline bool skep_plan_recomputes(
	const struct skep_plan *plan, enum skep_checkpointing checkpointing, uint32_t vstage)
{
	bool keeps = checkpointing == SKEP_CHECKPOINTING_WAITING && skep_plan_vstages(plan) > 1 &&
	             skep_plan_turns_at_once(plan, vstage);
	return !skep_plan_is_frozen(plan, vstage) &&
	       ((checkpointing != SKEP_CHECKPOINTING_NONE && !keeps) || skep_plan_visits_twice(plan, vstage));
}

/* The virtual stage that holds a copy of the tied embeddings. */
static inline bool skep_plan_is_tied_vstage(const struct skep_plan *plan, uint32_t vstage)
{
	return plan->tied > 0 && (vstage == 0 || vstage + 1 == skep_plan_vstages(plan));
}

/* Bytes of the activations that leave the virtual stage, and of the gradient that comes back. */
uint64_t skep_plan_vstage_bytes(const struct skep_plan *plan, uint32_t vstage);
static inline uint64_t skep_plan_gradient_bytes(const struct skep_plan *plan, uint32_t vstage)
{
	return skep_plan_is_frozen(plan, vstage) ? 0 : skep_plan_vstage_bytes(plan, vstage);
}

/* Most microbatches of a swarm that the directory has one owner have outstanding: what it may keep in flight, and some to
 * start while word travels to the directory and back. With fixed pipelines all of a pipeline's share: no other worker
 * is to have it. */
uint32_t skep_plan_credit(const struct skep_plan *plan, uint32_t in_flight);

/* Of a swarm with so many owners among so many workers: how many a worker's table of microbatches in flight has room for; and
 * how many the directory has outstanding in all, so that tables stay half empty though senders choose each by itself.
 * `fewest`: workers of the stage that has the fewest. */
uint32_t skep_swarm_capacity(const struct skep_plan *plan, uint32_t owners, uint32_t workers);
static inline uint64_t skep_swarm_outstanding(uint32_t fewest, uint32_t capacity)
{
	uint64_t limit = (uint64_t)fewest * ((capacity + 1) / 2);
	return limit > 0 ? limit : 1;
}

/* Most that any worker may have in flight. */
static inline uint32_t skep_plan_in_flight_most(const struct skep_plan *plan)
{
	return plan->in_flight_limit ? plan->in_flight_most : plan->in_flight;
}

#ifndef SKEP_VOIDS_WITH_OTHERS    /* a test makes it small */
#define SKEP_VOIDS_WITH_OTHERS 3u /* times that a round which is void is begun again with microbatches that are new */
#endif

/* Most microbatch numbers that one round may use, refills included. Sample j of (round, microbatch) is sample number
 * ((round * skep_round_capacity) + microbatch) * samples_per_microbatch + j of the stream: disjoint by construction. */
static inline uint32_t skep_round_capacity(const struct skep_plan *plan)
{
	if (skep_plan_no_flush(plan)) /* nothing is refilled: the next rounds are open already */
		return plan->microbatches;
	/* Room to refill every second microbatch; a round that loses more closes with what it has. And to begin a void round
	 * again with other ones: after so many times with the newest of these. */
	uint32_t begun = plan->on_loss == SKEP_ON_LOSS_VOID ? 1 + SKEP_VOIDS_WITH_OTHERS : 1;
	return begun * plan->microbatches + plan->microbatches / 2 + 64;
}

/* ---- validation: its microbatches have the numbers from skep_round_capacity() on ---------------------------------- */

#define SKEP_VALIDATION_TRIES 4u /* grants of one of them, each under a number of its own */

static inline bool skep_plan_validates(const struct skep_plan *plan, uint32_t microbatch)
{
	return microbatch >= skep_round_capacity(plan);
}

/* All numbers of a round, those of the validation before it included. */
static inline uint32_t skep_plan_numbers(const struct skep_plan *plan)
{
	uint32_t validated = plan->validation.every > 0 ? SKEP_VALIDATION_TRIES * plan->validation.microbatches : 0;
	return skep_round_capacity(plan) + validated;
}

/* Which one it is, from 0: equal in every validation, and in every try. Samples of it are sample number that * samples + j
 * of those that nothing is trained on. */
uint32_t skep_plan_validation(const struct skep_plan *plan, uint32_t microbatch);
/* Is there a validation when so many rounds have closed? Not while candidates are tried. */
bool skep_plan_validation_due(const struct skep_plan *plan, uint32_t closed);

#ifdef __cplusplus
}
#endif
