/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.c - numbers that core and worlds derive from the plan and must agree on, and what a message weighs.
 */
#include <assert.h>

#include "core/collective/ring.h"
#include "core/record.h"
#include "core/schedule/pipelines.h"
#include "core/skep.h"
#include "core/sums.h"

#define ELEMENT_BYTES 4u
#define CAPACITY_MOST (UINT16_MAX / 2u) /* of a table of microbatches in flight, whose slots are uint16_t */

void skep_chunk_range(uint64_t parameters, uint32_t chunk, uint32_t size, uint64_t *ret_first, uint64_t *ret_count)
{
	assert(size > 0 && chunk < size);
	uint64_t base = parameters / size, rest = parameters % size; /* the first `rest` chunks hold one element more */
	*ret_first = base * chunk + (chunk < rest ? chunk : rest);
	*ret_count = base + (chunk < rest);
}

uint32_t skep_state_chunks(const struct skep_plan *plan, uint32_t stage)
{
	assert(stage < plan->stages);
	uint32_t chunks = plan->stage[stage].state_chunks;
	return chunks > 0 ? chunks : 1;
}

uint64_t skep_state_chunk_bytes(const struct skep_plan *plan, uint32_t stage, uint32_t chunk)
{
	const struct skep_stage_plan *s = &plan->stage[stage];
	uint64_t first, count, chunks = skep_state_chunks(plan, stage);
	if (chunks == 1)
		return s->state_bytes;
	skep_chunk_range(s->parameters, chunk, (uint32_t)chunks, &first, &count);
	uint64_t all = s->state_bytes - chunks * SKEP_STATE_HEADER_BYTES, trained = skep_plan_trained(plan, stage);
	if (trained == s->parameters)
		return SKEP_STATE_HEADER_BYTES + all / s->parameters * count;
	uint64_t moments =
		trained > 0 ? (all - s->parameters * ELEMENT_BYTES) / trained : 0; /* bytes, of one element */
	uint64_t begin = first > s->frozen ? first : s->frozen, end = s->parameters - s->frozen_end;
	end = first + count < end ? first + count : end;
	return SKEP_STATE_HEADER_BYTES + count * ELEMENT_BYTES + (end > begin ? (end - begin) * moments : 0);
}

enum skep_codec skep_plan_codec(const struct skep_plan *plan, uint32_t stage)
{
	assert(stage < skep_plan_vstages(plan));
	return plan->reduction.codecs ? (enum skep_codec)plan->reduction.codecs[stage % plan->stages]
	                              : plan->reduction.codec;
}

bool skep_plan_compresses(const struct skep_plan *plan)
{
	for (uint32_t stage = 0; stage < plan->stages; stage++)
		if (skep_plan_codec(plan, stage) != SKEP_CODEC_NONE)
			return true;
	return false;
}

bool skep_plan_has_scales(const struct skep_plan *plan)
{
	for (uint32_t stage = 0; stage < plan->stages; stage++)
		if (skep_codec_blocks(skep_plan_codec(plan, stage)))
			return true;
	return false;
}

uint64_t skep_plan_encoded_bytes(const struct skep_plan *plan, uint32_t stage, uint64_t elements)
{
	return skep_codec_bytes(skep_plan_codec(plan, stage), plan->reduction.block, elements);
}

uint32_t skep_plan_buckets(const struct skep_plan *plan, uint32_t stage)
{
	assert(stage < plan->stages);
	bool whole = !plan->eager || skep_plan_fragments(plan) > 1;
	return !whole && plan->stage[stage].buckets > 1 ? plan->stage[stage].buckets : 1;
}

void skep_plan_bucket(
	const struct skep_plan *plan, uint32_t stage, uint32_t bucket, uint64_t *ret_first, uint64_t *ret_count)
{
	const struct skep_stage_plan *s = &plan->stage[stage];
	bool one = skep_plan_buckets(plan, stage) == 1;
	uint64_t end = bucket > 0 ? s->bucket_first[bucket - 1] : s->parameters - s->frozen_end;
	assert(bucket < skep_plan_buckets(plan, stage) &&
		(one || s->bucket_first[bucket] < end)); /* the last one comes first */
	*ret_first = one ? s->frozen : s->bucket_first[bucket];
	*ret_count = end - *ret_first;
}

void skep_plan_range(const struct skep_plan *plan, uint32_t stage, uint32_t round, uint32_t bucket, uint64_t *ret_first,
	uint64_t *ret_count)
{
	const struct skep_stage_plan *s = &plan->stage[stage];
	uint32_t fragments = skep_plan_fragments(plan), nth = round % fragments;
	if (fragments > 1 && s->fragment_first) {
		uint64_t end = nth + 1 < fragments ? s->fragment_first[nth + 1] : s->parameters;
		*ret_first = s->fragment_first[nth];
		*ret_count = end - *ret_first;
	} else if (fragments > 1) {
		skep_chunk_range(skep_plan_trained(plan, stage), nth, fragments, ret_first, ret_count);
		*ret_first += s->frozen;
	} else {
		skep_plan_bucket(plan, stage, bucket, ret_first, ret_count);
		*ret_count = skep_plan_sums(plan, stage, round) ? *ret_count : 0;
	}
}

uint32_t skep_plan_cycle(const struct skep_plan *plan)
{
	uint32_t rounds = skep_plan_fragments(plan);
	for (uint32_t stage = 0; plan->inner.sum_every && stage < plan->stages; stage++)
		rounds = plan->inner.sum_every[stage] > rounds ? plan->inner.sum_every[stage] : rounds;
	return rounds;
}

/* The workers that begin in the stage. */
uint32_t skep_plan_shards(const struct skep_plan *plan, uint32_t stage)
{
	uint32_t members = 0;
	assert(stage < plan->stages);
	for (uint32_t i = 0; plan->sharded && i < plan->workers; i++)
		members += plan->first_stage_of[i] == stage;
	return members > 0 ? members : 1;
}

/* Stage by stage, and of each by rank; without shards part and stage are the same number. */
uint32_t skep_plan_part(const struct skep_plan *plan, uint32_t stage, uint32_t rank)
{
	uint32_t part = plan->sharded ? rank : 0;
	assert(stage < plan->stages);
	for (uint32_t before = 0; before < stage; before++)
		part += skep_plan_shards(plan, before);
	return part;
}

uint32_t skep_plan_parts(const struct skep_plan *plan)
{
	uint32_t last = plan->stages - 1;
	return skep_plan_part(plan, last, 0) + skep_plan_shards(plan, last);
}

/* In its first stage, while members stay as at the start; 0 if it has no stage then. */
uint32_t skep_plan_first_rank(const struct skep_plan *plan, uint32_t worker)
{
	uint32_t stage = worker < plan->workers ? plan->first_stage_of[worker] : SKEP_NO_STAGE, rank = 0;
	for (uint32_t nth = 0; stage != SKEP_NO_STAGE && skep_plan_in_ring(plan, stage, nth) != worker; nth++)
		rank += plan->first_stage_of[skep_plan_in_ring(plan, stage, nth)] == stage;
	return rank;
}

void skep_plan_shard(const struct skep_plan *plan, uint32_t stage, uint32_t rank, uint32_t size, uint64_t *ret_first,
	uint64_t *ret_count)
{
	assert(rank < size);
	*ret_first = 0;
	*ret_count = skep_plan_trained(plan, stage);
	if (plan->sharded && size > 1)
		skep_chunk_range(*ret_count, skep_ring_owned(rank, size), size, ret_first, ret_count);
	*ret_first += plan->stage[stage].frozen;
}

/* Behind which step of a cycle its round `turn` sums. */
static uint32_t due_behind(const struct skep_plan *plan, uint32_t turn)
{
	assert(plan->inner.cycle > 0 && turn <= skep_plan_fragments(plan));
	return (uint32_t)((uint64_t)turn * plan->inner.cycle / skep_plan_fragments(plan));
}

uint32_t skep_plan_steps(const struct skep_plan *plan, uint32_t round)
{
	uint32_t turn = round % skep_plan_fragments(plan);
	if (!skep_plan_periodic(plan))
		return 1;
	return plan->inner.cycle == 0 ? plan->inner.steps : due_behind(plan, turn + 1) - due_behind(plan, turn);
}

uint64_t skep_plan_steps_before(const struct skep_plan *plan, uint32_t round)
{
	uint32_t fragments = skep_plan_fragments(plan);
	if (!skep_plan_periodic(plan) || plan->inner.cycle == 0)
		return (uint64_t)round * skep_plan_steps(plan, 0);
	return (uint64_t)(round / fragments) * plan->inner.cycle + due_behind(plan, round % fragments);
}

double skep_plan_mean_steps(const struct skep_plan *plan)
{
	uint32_t fragments = skep_plan_fragments(plan);
	return (double)skep_plan_steps_before(plan, fragments) / fragments;
}

uint32_t skep_plan_rounds_of(const struct skep_plan *plan, uint32_t steps)
{
	uint32_t fragments = skep_plan_fragments(plan);
	uint64_t cycle = skep_plan_steps_before(plan, fragments);
	assert(cycle > 0);
	uint32_t rounds = (uint32_t)(steps / cycle) * fragments;
	while (skep_plan_steps_before(plan, rounds) < steps)
		rounds++;
	return rounds;
}

uint32_t skep_plan_quota(const struct skep_plan *plan, uint32_t round)
{
	uint32_t steps = skep_plan_steps(plan, round);
	assert(steps <= skep_plan_most_steps(plan));
	bool whole = !skep_plan_periodic(plan) || steps == plan->inner.steps;
	return whole ? plan->microbatches : steps * skep_plan_inner_batch(plan);
}

skep_time skep_plan_transfer_ns(const struct skep_plan *plan, uint32_t from, uint32_t to)
{
	if (plan->places.count == 0)
		return 0;
	assert(plan->places.of[from] < plan->places.count && plan->places.of[to] < plan->places.count);
	return plan->places.transfer_ns[(size_t)plan->places.of[from] * plan->places.count + plan->places.of[to]];
}

uint32_t skep_plan_version(const struct skep_plan *plan, uint32_t round)
{
	return plan->delayed && round > 0 ? round - 1 : round;
}

uint32_t skep_plan_versions(const struct skep_plan *plan, uint32_t stage)
{
	bool waits =
		plan->no_flush.weights == SKEP_WEIGHTS_STASHED || plan->no_flush.weights == SKEP_WEIGHTS_VERTICAL_SYNC;
	return skep_plan_periodic(plan) || !waits ? 1 : skep_plan_staleness(plan, stage) + 1;
}

/* A pipeline of K stages works on K at once; as many again, and some, are granted while word travels to the directory and
 * back, so that the first stage never waits for it unless the way takes longer than K + 4 microbatches. With waves a virtual
 * worker works on those of D + 2 rounds. */
uint32_t skep_plan_window(const struct skep_plan *plan)
{
	assert(skep_plan_no_flush(plan));
	return skep_plan_waves(plan) ? plan->no_flush.distance + 4 : 2 * plan->stages + 4;
}

uint32_t skep_plan_candidate_of(const struct skep_plan *plan, uint32_t worker)
{
	assert(worker < plan->workers);
	if (!skep_plan_has_candidates(plan) || plan->first_stage_of[worker] == SKEP_NO_STAGE)
		return 0;
	return skep_plan_pipeline_of(plan, worker) % plan->candidates.count;
}

uint64_t skep_plan_vstage_bytes(const struct skep_plan *plan, uint32_t vstage)
{
	assert(vstage < skep_plan_vstages(plan));
	return plan->vstage_bytes ? plan->vstage_bytes[vstage] : plan->stage[vstage % plan->stages].activation_bytes;
}

uint32_t skep_plan_credit(const struct skep_plan *plan, uint32_t in_flight)
{
	if (skep_plan_fixed(plan))
		return skep_plan_share(plan, 0);
	return in_flight + (in_flight < 4 ? 2 : in_flight / 2);
}

/* All that the first stage may have in flight at once, if it were to meet on one worker; else four times the fair
 * share. */
uint32_t skep_swarm_capacity(const struct skep_plan *plan, uint32_t owners, uint32_t workers)
{
	assert(workers > 0 && owners <= workers);
	uint32_t balanced = workers / plan->stages + 1; /* joins may bring the first stage there */
	if (plan->rebalance.period_ns > 0)
		balanced = workers; /* ... or moves */
	uint64_t all = (uint64_t)plan->in_flight * (owners > balanced ? owners : balanced);
	uint64_t room = 32 + 4 * (all * plan->stages / workers + 1);
	uint64_t capacity = all < room ? all : room;
	return capacity < CAPACITY_MOST ? (uint32_t)capacity : CAPACITY_MOST;
}

uint32_t skep_plan_validation(const struct skep_plan *plan, uint32_t microbatch)
{
	assert(skep_plan_validates(plan, microbatch) && plan->validation.microbatches > 0);
	return (microbatch - skep_round_capacity(plan)) % plan->validation.microbatches;
}

bool skep_plan_validation_due(const struct skep_plan *plan, uint32_t closed)
{
	return plan->validation.every > 0 && closed >= plan->candidates.rounds &&
	       (closed % plan->validation.every == 0 || closed == plan->rounds);
}

enum skep_traffic skep_message_traffic(const struct skep_message *message)
{
	assert(message->kind > 0 && message->kind < SKEP_MESSAGE_KINDS);
	switch (message->kind) {
	case SKEP_MESSAGE_FORWARD:
	case SKEP_MESSAGE_BACKWARD:
	case SKEP_MESSAGE_OUTPUT:
	case SKEP_MESSAGE_INPUT:
		return SKEP_TRAFFIC_PIPELINE;
	case SKEP_MESSAGE_CHUNK:
		return SKEP_TRAFFIC_SYNC;
	case SKEP_MESSAGE_STATE:
		return SKEP_TRAFFIC_STATE;
	default:
		return SKEP_TRAFFIC_CONTROL;
	}
}

uint64_t skep_message_bytes(const struct skep_message *message)
{
	return message->payload_bytes + SKEP_HEADER_BYTES;
}
