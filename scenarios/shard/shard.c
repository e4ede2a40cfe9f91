/* SPDX-License-Identifier: Apache-2.0
 *
 * shard.c - see shard.h. What is refused is what one rank would decide or compute by its own shard alone, and another one
 * otherwise.
 */
#include "scenarios/shard/shard.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "scenarios/plan/split.h"

/* A GPU type of the topology that has a worker. */
static bool is_used(const struct skep_scenario *s, uint32_t gpu)
{
	for (uint32_t worker = 0; worker < s->plan.workers; worker++) {
		if (s->topology.machine[worker].gpu == gpu)
			return true;
	}
	return false;
}

uint32_t skep_shard_degree(const struct skep_scenario *scenario)
{
	uint32_t most = 1;
	for (uint32_t gpu = 0; gpu < scenario->topology.gpus; gpu++) {
		uint32_t gpus = is_used(scenario, gpu) ? skep_split_of(scenario, gpu).gpus : 1;
		most = gpus > most ? gpus : most;
	}
	return most;
}

uint32_t skep_shard_ranks(const struct skep_scenario *scenario)
{
	return scenario->split ? skep_shard_degree(scenario) : 1;
}

uint32_t skep_shard_processes(const struct skep_scenario *scenario)
{
	return (scenario->plan.workers + 1) * skep_shard_ranks(scenario);
}

uint32_t skep_shard_parts(const struct skep_scenario *scenario)
{
	return skep_plan_parts(&scenario->plan) * skep_shard_ranks(scenario);
}

struct refusal {
	bool is;
	const char *key[2], *why;
};

/* False if some worker has another number of GPUs than the others. */
static bool is_uniform(const struct skep_scenario *s, uint32_t ranks)
{
	for (uint32_t gpu = 0; gpu < s->topology.gpus; gpu++) {
		if (is_used(s, gpu) && skep_split_of(s, gpu).gpus != ranks)
			return false;
	}
	return true;
}

static const char *model_refuses(const struct skep_scenario *s, uint32_t ranks)
{
	return ranks > 1 ? skep_model_refuses_shard(&s->model, ranks) : NULL;
}

bool skep_shard_runs(const struct skep_scenario *s, const char *ret_key[2], struct skep_diag *reterr)
{
	const uint32_t ranks = skep_shard_degree(s);
	const struct skep_plan *plan = &s->plan;
	const char *why = model_refuses(s, ranks);
	const struct refusal refusal[] = {
		{why != NULL, {"model", "file"}, why},
		{!s->split, {"cluster", "tensor_parallel"},
			"only `skep run` starts as many: `--set cluster.tensor_parallel=1`"},
		{!is_uniform(s, ranks), {"cluster", "tensor_parallel"},
			"all workers need the same degree: say it with cluster.tensor_parallel"},
		{!s->sequence_parallel, {"cluster", "sequence_parallel"},
			"the ranks of a worker split the sequence too: say `sequence_parallel: true`"},
		{s->has_trace, {"cluster", "trace"}, "a rank that is lost ends the run: leave out cluster.trace"},
		{plan->reduction.gather || s->liar, {"sync", "aggregate"},
			"each rank would judge the gradients of others by its own shard: leave out sync.aggregate and "
			"Byzantine workers"},
		{skep_plan_has_scales(plan), {"sync", "compression"},
			"numbers that share a scale are others in each rank's gradients: take `fp16`, or none"},
		{plan->eager, {"sync", "overlap"}, "leave out sync.overlap"},
		{plan->inner.strided, {"sync", "fragment_pattern"}, "take `fragment_pattern: sequential`"},
		{skep_plan_steps_beside(plan), {"sync", "delayed"},
			"ranks that step beside passes would wait for each other in another order: leave out sync.delayed"},
		{s->offload != SKEP_OFFLOAD_NONE, {"train", "optimizer"}, "leave out train.optimizer.offload"},
	};
	for (size_t i = 0; ranks > 1 && i < sizeof refusal / sizeof refusal[0]; i++) {
		if (!refusal[i].is)
			continue;
		ret_key[0] = refusal[i].key[0];
		ret_key[1] = refusal[i].key[1];
		return skep_fail(reterr,
			"a worker splits its stage over %u ranks: %s%.60s%s%.120s; or run with --pace, so that one process does "
			"its arithmetic and takes as long as %u GPUs",
			ranks, i == 0 ? "model " : "", i == 0 ? s->model.name : "", i == 0 ? " " : "", refusal[i].why,
			ranks);
	}
	return true;
}

/* Of a stage, the parameters and activations of the shard; the number of chunks of its state stays. */
static void take_stage(struct skep_shard *shard, uint32_t stage)
{
	struct skep_scenario *s = &shard->scenario;
	struct skep_stage_plan *plan = &s->stage[stage];
	uint64_t parameters = 0, trained = 0, activation_bytes = 0, frozen = 0;
	for (uint32_t vstage = stage; vstage < skep_plan_vstages(&s->plan); vstage += s->plan.stages) {
		struct skep_cost cost;
		skep_model_cost(&shard->model, skep_plan_vstages(&s->plan), vstage, &cost);
		parameters += cost.parameters;
		trained += cost.trained;
		frozen += cost.frozen;
		uint64_t bytes = skep_cost_payload_bytes(&cost, s->activation_codec, s->activation_block, s->samples);
		s->vstage_bytes[vstage] = bytes;
		activation_bytes = bytes > activation_bytes ? bytes : activation_bytes;
	}
	plan->parameters = parameters;
	plan->frozen = frozen;
	plan->frozen_end = parameters - frozen - trained;
	plan->activation_bytes = activation_bytes;
	plan->state_bytes = skep_device_state_bytes(
		skep_training_stepper(&s->training), parameters, trained, skep_state_chunks(&s->plan, stage));
}

struct skep_shard *skep_shard_create(
	const struct skep_scenario *whole, uint32_t rank, uint32_t ranks, const struct skep_tensor_group *group)
{
	assert(ranks > 1 && rank < ranks);
	struct skep_shard *shard = calloc(1, sizeof *shard);
	if (shard == NULL)
		return NULL;
	struct skep_scenario *s = &shard->scenario;
	const uint32_t stages = whole->plan.stages, vstages = skep_plan_vstages(&whole->plan);
	*s = *whole;
	s->stage = calloc(stages, sizeof *s->stage);
	s->vstage_bytes = calloc(vstages, sizeof *s->vstage_bytes);
	if (s->stage == NULL || s->vstage_bytes == NULL ||
		!skep_model_shard(&whole->model, rank, ranks, &shard->model)) {
		skep_shard_destroy(shard);
		return NULL;
	}
	memcpy(s->stage, whole->stage, stages * sizeof *s->stage);
	s->plan.stage = s->stage;
	s->plan.vstage_bytes = whole->plan.vstage_bytes != NULL ? s->vstage_bytes : NULL;
	s->plan.tied = whole->plan.tied > 0 ? skep_model_copied(&shard->model) : 0;
	s->training.model = &shard->model;
	s->training.plan = &s->plan;
	s->training.tensor_group = group;
	for (uint32_t stage = 0; stage < stages; stage++)
		take_stage(shard, stage);
	return shard;
}

void skep_shard_destroy(struct skep_shard *shard)
{
	if (shard == NULL)
		return;
	free(shard->scenario.stage);
	free(shard->scenario.vstage_bytes);
	skep_model_finish(&shard->model);
	free(shard);
}
