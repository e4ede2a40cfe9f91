/* SPDX-License-Identifier: Apache-2.0
 *
 * describe_json.c - see describe_groups.h. Words are those of the scenario's keys, times in seconds.
 */
#include "scenarios/describe/describe_groups.h"

#include <math.h>

#include "base/units.h"
#include "core/names.h"
#include "core/schedule/pipelines.h"
#include "scenarios/outage/outage.h"
#include "scenarios/plan/plan.h"
#include "scenarios/plan/split.h"

static void add_cluster(const struct skep_scenario *s, cJSON *root)
{
	double usd_per_h;
	cJSON_AddStringToObject(root, "model", s->model.name);
	cJSON_AddNumberToObject(root, "layers", s->model.layers);
	cJSON_AddStringToObject(root, "topology", s->topology.name);
	cJSON_AddStringToObject(root, "source", s->topology.source);
	cJSON_AddNumberToObject(root, "extra_latency_s", s->extra_latency_s);
	cJSON_AddNumberToObject(root, "bandwidth_scale", s->bandwidth_scale);
	cJSON_AddNumberToObject(root, "compute_scale", s->compute_scale);
	cJSON_AddStringToObject(root, "allocation", skep_allocation_name(s->allocation));
	skep_pool_add_json(s, root);
	skep_traced_add_json(s, root);
	skep_scaled_add_json(s, root);
	skep_outage_add_json(s, root);
	skep_json_add_number(root, "price_usd_per_h", skep_scenario_price(s, &usd_per_h) ? usd_per_h : NAN);
	cJSON_AddBoolToObject(root, "price_changes", s->topology.prices > 0);
	skep_egress_describe_json(&s->topology, root);
}

static void add_by_stage(const struct skep_plan *plan, uint32_t (*of)(const struct skep_plan *, uint32_t),
	cJSON *object, const char *key)
{
	cJSON *list = cJSON_AddArrayToObject(object, key);
	for (uint32_t stage = 0; stage < plan->stages; stage++)
		cJSON_AddItemToArray(list, cJSON_CreateNumber(of(plan, stage)));
}

static void add_pipelines(const struct skep_scenario *s, cJSON *root)
{
	const struct skep_plan *plan = &s->plan;
	cJSON *pipelines = skep_json_add_object(root, "pipelines", skep_plan_fixed(plan));
	if (pipelines == NULL)
		return;
	uint32_t count = skep_plan_pipelines(plan), flush = skep_plan_flush_share(plan, 0);
	cJSON_AddNumberToObject(pipelines, "count", count);
	cJSON_AddNumberToObject(pipelines, "microbatches", plan->microbatches / count);
	add_by_stage(plan, skep_plan_replicas, pipelines, "replicas");
	cJSON_AddNumberToObject(pipelines, "flushes", skep_plan_flushes(plan));
	double ramp = skep_plan_no_flush(plan) ? 0 : (plan->stages - 1.0) / skep_plan_model_chunks(plan);
	cJSON_AddStringToObject(pipelines, "schedule", skep_pipeline_name((uint8_t)plan->pipeline));
	cJSON_AddNumberToObject(pipelines, "chunks", skep_plan_model_chunks(plan));
	cJSON_AddBoolToObject(pipelines, "barrier", plan->barrier);
	skep_json_add_number(pipelines, "fill_and_drain", skep_plan_uneven(plan) ? NAN : ramp / (flush + ramp));
	add_by_stage(plan, skep_plan_held, pipelines, "held");
	add_by_stage(plan, skep_plan_versions, pipelines, "versions");
	add_by_stage(plan, skep_plan_staleness, pipelines, "staleness");
	cJSON_AddStringToObject(pipelines, "weights", skep_weights_name((uint8_t)plan->no_flush.weights));
	cJSON_AddNumberToObject(pipelines, "synchronous_steps", plan->no_flush.synchronous);
	cJSON *waves = skep_json_add_object(pipelines, "waves", skep_plan_waves(plan));
	if (waves != NULL) {
		cJSON_AddNumberToObject(waves, "microbatches", skep_plan_wave(plan));
		cJSON_AddNumberToObject(waves, "distance", plan->no_flush.distance);
		cJSON_AddNumberToObject(waves, "local_staleness", skep_plan_local_staleness(plan));
		cJSON_AddNumberToObject(waves, "global_staleness", skep_plan_global_staleness(plan));
	}
	cJSON_AddNumberToObject(pipelines, "open_rounds", skep_plan_no_flush(plan) ? skep_plan_window(plan) : 1);
}

/* Numbers with a scale in common, "tensor", or null where there is no scale. */
static void add_block(cJSON *root, const char *key, bool scales, uint32_t block)
{
	if (!scales)
		cJSON_AddNullToObject(root, key);
	else if (block == SKEP_CODEC_TENSOR)
		cJSON_AddStringToObject(root, key, "tensor");
	else
		cJSON_AddNumberToObject(root, key, block);
}

static const char *const codecs[] = {"none", "fp16", "int8", "e3m0"};

/* As the file says it: of all stages, or a list. */
static void add_reduction_codecs(const struct skep_scenario *s, cJSON *root)
{
	if (!s->codecs) {
		cJSON_AddStringToObject(root, "reduction_compression", codecs[skep_scenario_codec(s, 0)]);
		return;
	}
	cJSON *list = cJSON_AddArrayToObject(root, "reduction_compression");
	for (uint32_t stage = 0; stage < s->plan.stages; stage++)
		cJSON_AddItemToArray(list, cJSON_CreateString(codecs[skep_scenario_codec(s, stage)]));
}

static void add_schedule(const struct skep_scenario *s, cJSON *root)
{
	const struct skep_plan *plan = &s->plan;
	cJSON_AddNumberToObject(root, "samples_per_round", s->batch);
	if (s->points > 0)
		cJSON_AddNumberToObject(root, "points", (double)s->points);
	cJSON_AddNumberToObject(root, "in_flight", plan->in_flight);
	cJSON_AddNumberToObject(root, "in_flight_most", skep_plan_in_flight_most(plan));
	cJSON_AddStringToObject(root, "routing", plan->routing == SKEP_ROUTING_TRAINER ? "trainer" : "peer");
	cJSON_AddNumberToObject(root, "patience_s", skep_seconds(plan->liveness.reissue_after_ns));
	cJSON_AddStringToObject(root, "ban", plan->liveness.ban == SKEP_BAN_AT_ONCE ? "at-once" : "directory");
	add_pipelines(s, root);
	skep_overlap_add_json(s, root);
	skep_periodic_add_json(s, root);
	skep_train_add_json(s, root);
	skep_loss_add_json(s, root);
	cJSON *recomputed = cJSON_AddArrayToObject(root, "recomputes");
	for (uint32_t vstage = 0; vstage < skep_plan_vstages(plan); vstage++)
		cJSON_AddItemToArray(
			recomputed, cJSON_CreateBool(skep_plan_recomputes(plan, s->checkpoint_activations, vstage)));
	cJSON_AddStringToObject(
		root, "activation_compression", codecs[s->native_activations ? SKEP_CODEC_NONE : s->activation_codec]);
	add_reduction_codecs(s, root);
	add_block(root, "activation_compression_block", skep_codec_blocks(s->activation_codec), s->activation_block);
	add_block(root, "reduction_compression_block", skep_plan_has_scales(plan), plan->reduction.block);
	cJSON_AddNumberToObject(root, "sync_chunks", plan->reduction.chunks);
	skep_robust_add_json(s, root);
	cJSON_AddStringToObject(root, "collectives", s->collectives_as_flows ? "flows" : "messages");
	cJSON_AddNumberToObject(root, "noise", s->compute.noise);
	cJSON_AddNumberToObject(root, "threads", s->threads);
}

static void add_recovery(const struct skep_scenario *s, cJSON *root)
{
	const struct skep_plan *plan = &s->plan;
	double most = 0;
	uint32_t chunks = 0;
	for (uint32_t stage = 0; stage < plan->stages; stage++) {
		double bytes = (double)s->stage[stage].state_bytes;
		uint32_t n = skep_state_chunks(plan, stage);
		most = bytes > most ? bytes : most;
		chunks = n > chunks ? n : chunks;
	}
	cJSON *joins = cJSON_AddObjectToObject(root, "joins");
	cJSON_AddNumberToObject(joins, "state_bytes", most);
	cJSON_AddNumberToObject(joins, "chunks", chunks);
	cJSON_AddNumberToObject(joins, "wait_for_join_s", skep_seconds(plan->liveness.wait_for_join_ns));
	cJSON_AddStringToObject(joins, "to",
		skep_plan_fixed(plan)              ? "own_place"
		: plan->joins == SKEP_JOINS_RANDOM ? "random"
		: plan->rebalance.period_ns > 0    ? "most_loaded"
						   : "fewest_workers");
	cJSON_AddNumberToObject(root, "rebalance_s", skep_seconds(plan->rebalance.period_ns));
	cJSON_AddStringToObject(root, "rebalance_by", plan->rebalance.by == SKEP_REBALANCE_BY_QUEUE ? "queue" : "rate");
	cJSON_AddNumberToObject(root, "checkpoint_every", plan->checkpoint_every);
}

static void add_gpu(const struct skep_scenario *s, uint32_t gpu, cJSON *rows)
{
	const struct skep_gpu *type = &s->topology.gpu[gpu];
	struct skep_split split = skep_split_of(s, gpu);
	cJSON *row = skep_json_add_row(rows);
	cJSON_AddStringToObject(row, "gpu", type->name);
	cJSON_AddNumberToObject(row, "gpus_per_worker", split.gpus);
	cJSON_AddBoolToObject(row, "sequence_parallel", split.sequence);
	if (split.gpus > 1) {
		double forward, backward;
		skep_split_inner_bytes(s, gpu, 0, &forward, &backward);
		cJSON_AddNumberToObject(row, "inner_Bps", type->board.inner_Bps);
		cJSON_AddNumberToObject(row, "inner_latency_s", type->board.inner_latency_s);
		cJSON_AddNumberToObject(row, "forward_sent_bytes", forward);
		cJSON_AddNumberToObject(row, "backward_sent_bytes", backward);
	}
	cJSON_AddNumberToObject(row, "pcie_Bps", type->board.pcie_Bps);
	cJSON_AddBoolToObject(row, "pcie_assumed", type->board.pcie_assumed);
	cJSON_AddNumberToObject(row, "host_memory_bytes", type->board.host_bytes);
	cJSON_AddNumberToObject(row, "host_Bps", type->board.host_Bps);
}

void skep_describe_choices_json(const struct skep_scenario *s, cJSON *root)
{
	static const char *const offloads[] = {[SKEP_OFFLOAD_NONE] = "none",
		[SKEP_OFFLOAD_OPTIMIZER] = "optimizer",
		[SKEP_OFFLOAD_GRADIENTS] = "gradients"};
	add_cluster(s, root);
	add_schedule(s, root);
	if (s->zero == 0)
		add_recovery(s, root);
	skep_planned_add_json(s, root);
	cJSON_AddNumberToObject(root, "zero", s->zero);
	cJSON_AddStringToObject(root, "offload", offloads[s->offload]);
	cJSON *rows = cJSON_AddArrayToObject(root, "machines");
	for (uint32_t gpu = 0; gpu < s->topology.gpus; gpu++)
		add_gpu(s, gpu, rows);
}
