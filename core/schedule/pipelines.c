/* SPDX-License-Identifier: Apache-2.0
 *
 * pipelines.c - see pipelines.h. All workers are looked at for each answer: who asks often keeps it.
 */
#include "core/schedule/pipelines.h"

uint32_t skep_plan_replicas(const struct skep_plan *plan, uint32_t stage)
{
	uint32_t replicas = 0;
	for (uint32_t i = 0; i < plan->workers; i++)
		replicas += plan->first_stage_of[i] == stage;
	return replicas;
}

uint32_t skep_plan_pipelines(const struct skep_plan *plan)
{
	uint32_t pipelines = 1;
	for (uint32_t stage = 0; stage < plan->stages; stage++)
		pipelines = skep_common_multiple(pipelines, skep_plan_replicas(plan, stage));
	return pipelines;
}

bool skep_plan_uneven(const struct skep_plan *plan)
{
	if (!skep_plan_fixed(plan))
		return false;
	uint32_t stage = 1, replicas = skep_plan_replicas(plan, 0);
	while (stage < plan->stages && skep_plan_replicas(plan, stage) == replicas)
		stage++;
	return stage < plan->stages;
}

uint32_t skep_plan_share(const struct skep_plan *plan, uint32_t stage)
{
	assert(skep_plan_fixed(plan) && skep_plan_replicas(plan, stage) > 0);
	return plan->microbatches / skep_plan_replicas(plan, stage);
}

uint32_t skep_plan_flush_share(const struct skep_plan *plan, uint32_t stage)
{
	assert(skep_plan_share(plan, stage) % skep_plan_flushes(plan) == 0);
	return skep_plan_share(plan, stage) / skep_plan_flushes(plan);
}

uint32_t skep_plan_pipeline_of(const struct skep_plan *plan, uint32_t worker)
{
	assert(worker < plan->workers);
	uint32_t before = 0;
	for (uint32_t i = 0; i < worker; i++)
		before += plan->first_stage_of[i] == plan->first_stage_of[worker];
	return before;
}

uint32_t skep_plan_place(const struct skep_plan *plan, uint32_t pipeline, uint32_t stage)
{
	uint32_t replicas = skep_plan_replicas(plan, stage), nth = replicas > 0 ? pipeline % replicas : 0;
	for (uint32_t i = 0; i < plan->workers; i++) {
		if (plan->first_stage_of[i] == stage && nth-- == 0)
			return i;
	}
	return SKEP_NO_INDEX;
}

static uint32_t depth_of(const struct skep_plan *plan, uint32_t stage)
{
	uint32_t here = skep_plan_replicas(plan, stage), from_here = 0;
	assert(here > 0);
	for (uint32_t later = stage; later < plan->stages; later++)
		from_here += skep_plan_replicas(plan, later);
	return (from_here + here - 1) / here;
}

/* Interleaved: one more than what it warms up with (interleaved.c). */
uint32_t skep_pipeline_held(enum skep_pipeline pipeline, uint32_t stages, uint32_t model_chunks, uint32_t depth,
	uint32_t share, uint32_t stage)
{
	assert(pipeline != SKEP_PIPELINE_SWARM && stage < stages && depth > 0);
	uint64_t held = share, all = (uint64_t)share * (model_chunks > 1 ? model_chunks : 1);
	if (pipeline == SKEP_PIPELINE_PIPEDREAM) /* of several rounds */
		return depth;
	if (pipeline == SKEP_PIPELINE_1F1B)
		held = depth;
	else if (pipeline == SKEP_PIPELINE_INTERLEAVED)
		held = 2 * (uint64_t)(stages - stage - 1) + (uint64_t)(model_chunks - 1) * stages + 1;
	return (uint32_t)(held < all ? held : all);
}

uint32_t skep_plan_held(const struct skep_plan *plan, uint32_t stage)
{
	if (!skep_plan_fixed(plan))
		return 0;
	if (skep_plan_waves(plan))
		return skep_wave_held(skep_plan_wave(plan), stage);
	return skep_pipeline_held(plan->pipeline, plan->stages, skep_plan_model_chunks(plan), depth_of(plan, stage),
		skep_plan_flush_share(plan, stage), stage);
}

/* Interleaved: a microbatch leaves when its slot in the third group after its own begins, at the latest. */
uint32_t skep_plan_fixed_in_flight(const struct skep_plan *plan)
{
	uint32_t share = skep_plan_flush_share(plan, 0);
	if (plan->pipeline != SKEP_PIPELINE_INTERLEAVED)
		return skep_plan_held(plan, 0);
	return share / 3 < plan->stages ? share : 3 * plan->stages;
}
