/* SPDX-License-Identifier: Apache-2.0
 *
 * scenario.c - reads a scenario file, key by key, and the model and topology that it names; checks what only holds for all
 * of them together. docs/reference/ lists the keys.
 *
 * Keeps true: every error stands at the key that has to be changed; what is returned needs no further check.
 */
#include "scenarios/read/scenario.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files/data.h"
#include "base/units.h"
#include "core/names.h"
#include "models/corpus/tokens.h"
#include "models/read/given.h"
#include "models/weights/safetensors.h"
#include "scenarios/outage/outage.h"
#include "scenarios/plan/links.h"
#include "scenarios/plan/loss.h"
#include "scenarios/plan/memory.h"
#include "scenarios/plan/overlap.h"
#include "scenarios/plan/plan.h"
#include "scenarios/plan/split.h"
#include "scenarios/read/groups.h"
#include "scenarios/read/job.h"
#include "scenarios/read/periodic.h"
#include "scenarios/read/planned.h"
#include "scenarios/read/pool.h"
#include "scenarios/scale/scaled.h"
#include "topologies/read/path.h"

enum {
	MICROBATCH_MAX = 1 << 20,   /* samples */
	MICROBATCHES_MAX = 1 << 20, /* per round */
	IN_FLIGHT_MAX = SKEP_IN_FLIGHT_MAX,
};
#define TRACE_S_MAX (10 * 365.25 * SKEP_DAY_S)
#define RUN_S_MAX (100 * 365.25 * SKEP_DAY_S)

struct draft { /* a scenario while it is read */
	struct skep_reader r;
	const struct skep_yaml_node *root;
	struct skep_scenario *s;
	FILE *details; /* or NULL */
	bool any_memory, real, pace;
};

/* Keys and words of earlier formats. */
static const struct skep_renamed RENAMED[] = {
	{"cluster.trace.heard_after", NULL, "detection_delay"},
	{"cluster.byzantine.lie", NULL, "attack"},
	{"cluster.allocation.stage_of", "out", "unused"},
	{"schedule.patience", NULL, "reissue_timeout"},
	{"schedule.chunks", NULL, "model_chunks"},
	{"sync.mean", NULL, "mean_inner_steps"},
	{"sync.parts", NULL, "group_size"},
	{"train.maths", NULL, "arithmetic"},
	{"train.schedule.least", NULL, "min_ratio"},
	{"train.init.keep", NULL, "select"},
	{"plan.cut", "as-written", "fixed"},
};

static const struct skep_yaml_node *group(struct draft *d, const char *key)
{
	return skep_read_map(&d->r, d->root, key, true);
}

/* ---- files ---------------------------------------------------------------------------------------------------- */

/* The file that `key` of `map` names; `in` is what the map is called in errors. */
static void find_file(
	struct draft *d, const struct skep_yaml_node *map, const char *in, const char *key, char *ret, size_t size)
{
	struct stat st;
	char called[64];
	snprintf(called, sizeof called, "%s.%s", in, key);
	const char *name = skep_read_path(&d->r, map, key, called, "file", d->s->path, ret, size);
	if (!d->r.diag->set && stat(ret, &st) == 0 && S_ISDIR(st.st_mode))
		skep_reader_fail_value(
			&d->r, map, key, "%s.%s: `%.200s` is a directory: expected a file", in, key, name);
}

static void read_model(struct draft *d)
{
	char path[512];
	const struct skep_yaml_node *map = group(d, "model");
	find_file(d, map, "model", "file", path, sizeof path);
	d->s->plan.stages = (uint32_t)skep_read_integer(&d->r, map, "stages", 1, UINT16_MAX - 1, INT64_MIN);
	uint32_t sequence = (uint32_t)skep_read_integer(&d->r, map, "sequence", 1, UINT16_MAX, 0);
	const struct skep_yaml_node *cut = skep_read_list(&d->r, map, "cut", false);
	uint32_t frozen = (uint32_t)skep_read_integer(&d->r, map, "freeze", 0, UINT16_MAX, 0);
	skep_reader_close_map(&d->r, map);
	if (d->r.diag->set || !skep_model_read(path, &d->s->model, d->r.diag))
		return;
	skep_model_part(&d->s->model, d->s->plan.stages);
	d->s->plan.tied = skep_model_copied(&d->s->model);
	skep_freeze_set(&d->r, map, frozen, d->s);
	skep_cut_read(&d->r, cut, &d->s->model);
	if (sequence > 0)
		skep_train_set_sequence(&d->r, map, sequence, d->s);
	if (d->s->plan.stages > d->s->model.layers)
		skep_reader_fail(&d->r, map, "stages",
			"model.stages: %u stages cannot be cut from the %u layers of %.200s", d->s->plan.stages,
			d->s->model.layers, path);
}

/* ---- cluster -------------------------------------------------------------------------------------------------- */

static void read_allocation(struct draft *d, const struct skep_yaml_node *cluster)
{
	const struct skep_yaml_node *map = skep_read_map(&d->r, cluster, "allocation", false);
	d->s->allocation = (enum skep_allocation)skep_read_choice(
		&d->r, map, "method", skep_allocation_names, SKEP_ALLOCATION_CONTIGUOUS);
	if (d->s->allocation == SKEP_ALLOCATION_EXPLICIT)
		skep_pool_read(&d->r, map, d->s);
	d->s->unresolved = skep_allocation_searched(d->s->allocation);
	skep_reader_close_map(&d->r, map);
}

static void read_topology(struct draft *d, const struct skep_yaml_node *cluster)
{
	static const char *const uncertain[] = {"ignored", "drawn", NULL};
	char path[512];
	struct skep_scenario *s = d->s;
	find_file(d, cluster, "cluster", "topology", path, sizeof path);
	if (d->r.diag->set || !skep_topology_read(path, &s->topology, d->r.diag))
		return;
	s->topology.seed = s->seed;
	skep_links_read(&d->r, cluster, &s->topology);
	skep_gpus_read(&d->r, cluster, &s->model, &s->topology);
	s->extra_latency_s = skep_read_quantity(&d->r, cluster, "extra_latency", SKEP_TIME, 0, SKEP_DAY_S, 0);
	skep_topology_add_latency(&s->topology, s->extra_latency_s);
	s->draws_links = skep_read_choice(&d->r, cluster, "uncertainty", uncertain, 0) == 1;
	s->bandwidth_scale = skep_read_number(&d->r, cluster, "bandwidth_scale", 1e-6, 1e6, 1);
	skep_topology_scale_bandwidth(&s->topology, s->bandwidth_scale);
	if (skep_split_read_parts(&d->r, cluster, &s->topology))
		skep_path_join_relayed(&s->topology);
	s->plan.workers = s->topology.machines;
	s->first_stage_of = calloc(s->plan.workers, sizeof *s->first_stage_of);
	if (!s->first_stage_of)
		skep_reader_fail(&d->r, cluster, "topology", "not enough memory for %u workers", s->plan.workers);
	else if (s->plan.workers < s->plan.stages)
		skep_reader_fail(&d->r, group(d, "model"), "stages",
			"model.stages: %u stages need at least as many workers, %.200s has %u", s->plan.stages, path,
			s->plan.workers);
}

/* Where in the price histories of the topology the run starts. */
static void read_price_start(struct draft *d, const struct skep_yaml_node *cluster)
{
	double start_s = skep_read_quantity(&d->r, cluster, "price_start", SKEP_TIME, 0, TRACE_S_MAX, 0);
	if (d->r.diag->set)
		return;
	const struct skep_price_series *late = skep_topology_start_prices(&d->s->topology, (skep_time)(1e9 * start_s));
	if (late != NULL)
		skep_reader_fail(&d->r, cluster,
			skep_read_has(&d->r, cluster, "price_start") ? "price_start" : "topology",
			"cluster.price_start: the prices of %.100s%s%s begin %.0f s after the start of their file: "
			"start there, or later",
			late->path, late->type[0] ? ", " : "", late->type, ceil((double)late->step[0].at_ns / 1e9));
}

static void read_cluster(struct draft *d)
{
	const struct skep_yaml_node *map = group(d, "cluster");
	read_topology(d, map);
	if (!d->r.diag->set)
		skep_traced_read(&d->r, map, d->s);
	read_price_start(d, map);
	read_allocation(d, map);
	skep_scaled_read(&d->r, map, d->s);
	skep_compute_read(&d->r, map, &d->s->compute);
	if (!d->r.diag->set)
		skep_split_read_cluster(&d->r, map, d->s);
	if (!d->r.diag->set)
		skep_robust_read_byzantine(&d->r, map, d->s);
	d->s->compute_scale = skep_read_number(&d->r, map, "compute_scale", 1e-6, 1e9, 1);
	d->s->threads = (uint32_t)skep_read_integer(&d->r, map, "threads", 1, 1024, 1);
	d->s->plan.liveness.wait_for_join_ns = (skep_time)(1e9 * skep_read_quantity(&d->r, map, "wait_for_join",
									 SKEP_TIME, 0, 365 * SKEP_DAY_S, 3600));
	skep_reader_close_map(&d->r, map);
	if (!d->r.diag->set)
		skep_plan_allocate(d->s);
}

/* ---- schedule, sync, directory -------------------------------------------------------------------------------- */

static void read_batch(struct draft *d, const struct skep_yaml_node *map)
{
	int64_t micro = skep_read_integer(&d->r, map, "microbatch", 1, MICROBATCH_MAX, INT64_MIN);
	int64_t batch = skep_read_integer(&d->r, map, "global_batch", 1, UINT32_MAX, INT64_MIN);
	int64_t below = batch / micro * micro;
	if (!d->r.diag->set && below == 0)
		skep_reader_fail(&d->r, map, "global_batch",
			"schedule.global_batch: %lld is not a multiple of the microbatch, %lld; the nearest is %lld",
			(long long)batch, (long long)micro, (long long)micro);
	else if (!d->r.diag->set && below != batch)
		skep_reader_fail(&d->r, map, "global_batch",
			"schedule.global_batch: %lld is not a multiple of the microbatch, %lld; the nearest are %lld "
			"and %lld",
			(long long)batch, (long long)micro, (long long)below, (long long)(below + micro));
	else if (!d->r.diag->set && batch / micro > MICROBATCHES_MAX)
		skep_reader_fail(&d->r, map, "global_batch",
			"schedule.global_batch: %lld microbatches in a round, at most %d", (long long)(batch / micro),
			MICROBATCHES_MAX);
	d->s->samples = (uint32_t)micro;
	d->s->batch = (uint32_t)batch;
	d->s->plan.microbatches = (uint32_t)(batch / micro);
}

static void read_schedule(struct draft *d)
{
	static const char *const wirings[] = {"uniform", "throughput", "latency", "fixed", NULL}, *const routings[] = {
													  "peer",
													  "trainer",
													  NULL};
	struct skep_plan *plan = &d->s->plan;
	const struct skep_yaml_node *map = group(d, "schedule");
	const char *pipelines[SKEP_PIPELINES + 1] = {NULL};
	for (uint8_t i = 0; i < SKEP_PIPELINES; i++)
		pipelines[i] = skep_pipeline_name(i);
	plan->pipeline = (enum skep_pipeline)skep_read_choice(&d->r, map, "pipeline", pipelines, SKEP_PIPELINE_SWARM);
	skep_pipelines_read_keys(&d->r, map, d->s);
	const char *answers[SKEP_ON_LOSSES + 1] = {NULL};
	for (uint8_t i = 0; i < SKEP_ON_LOSSES; i++)
		answers[i] = skep_on_loss_name(i);
	plan->on_loss = (enum skep_on_loss)skep_read_choice(&d->r, map, "on_loss", answers, SKEP_ON_LOSS_REPORT);
	plan->wiring = (enum skep_wiring)skep_read_choice(&d->r, map, "wiring", wirings, SKEP_WIRING_UNIFORM);
	plan->routing = (enum skep_routing)skep_read_choice(&d->r, map, "routing", routings, SKEP_ROUTING_PEER);
	read_batch(d, map);
	skep_sync_read_codec(&d->r, map, "schedule", false, &d->s->activation_codec, &d->s->activation_block);
	static const char *const checkpointing[] = {"false", "true", "all", NULL};
	d->s->checkpoint_activations = (enum skep_checkpointing)skep_read_choice(
		&d->r, map, "checkpoint_activations", checkpointing, SKEP_CHECKPOINTING_NONE);
	if (skep_read_has(&d->r, map, "reissue_timeout"))
		plan->liveness.reissue_after_ns = (skep_time)(1e9 * skep_read_quantity(&d->r, map, "reissue_timeout",
									    SKEP_TIME, 1e-3, SKEP_DAY_S, NAN));
	static const char *const bans[] = {"directory", "at-once", NULL};
	plan->liveness.ban = (enum skep_ban)skep_read_choice(&d->r, map, "ban", bans, SKEP_BAN_DIRECTORY);
	static const char *const joins[] = {"needed", "random", NULL};
	plan->joins = (enum skep_joins)skep_read_choice(&d->r, map, "joins", joins, SKEP_JOINS_NEEDED);
	const struct skep_yaml_node *rebalance = skep_read_map(&d->r, map, "rebalance", false);
	if (rebalance) {
		plan->rebalance.period_ns = (skep_time)(1e9 * skep_read_quantity(&d->r, rebalance, "period", SKEP_TIME,
								      1e-3, SKEP_DAY_S, NAN));
		plan->rebalance.horizon_ns = (skep_time)(1e9 * skep_read_quantity(&d->r, rebalance, "horizon",
								       SKEP_TIME, 0, 365 * SKEP_DAY_S, 0));
		static const char *const loads[] = {"rate", "queue", NULL};
		plan->rebalance.by =
			(enum skep_rebalance_by)skep_read_choice(&d->r, rebalance, "by", loads, SKEP_REBALANCE_BY_RATE);
		skep_reader_close_map(&d->r, rebalance);
	}
	d->s->usual_in_flight = !skep_read_has(&d->r, map, "in_flight");
	uint32_t usual = d->r.diag->set ? 1 : skep_plan_in_flight(d->s);
	plan->in_flight = (uint32_t)skep_read_integer(&d->r, map, "in_flight", 1, IN_FLIGHT_MAX, usual);
	skep_reader_close_map(&d->r, map);
}

static void read_sync(struct draft *d)
{
	const struct skep_yaml_node *map = skep_read_map(&d->r, d->root, "sync", false);
	skep_sync_read_codecs(&d->r, map, d->s);
	skep_sync_read_collective(&d->r, map, &d->s->plan);
	skep_robust_read_sync(&d->r, map, d->s);
	d->s->plan.delayed = skep_read_bool(&d->r, map, "delayed", false);
	if (d->s->plan.delayed && d->s->plan.on_loss == SKEP_ON_LOSS_RERUN)
		skep_reader_fail(&d->r, map, "delayed",
			"sync.delayed: a round that is reduced while the next one runs cannot be run again: leave out "
			"either this or `on_loss: rerun`");
	skep_pipelines_read(&d->r, group(d, "schedule"), map, d->s);
	skep_periodic_read(&d->r, map, d->s);
	d->s->state_chunk_bytes =
		skep_read_quantity(&d->r, map, "state_chunk", SKEP_BYTES, 1024, 0x1p40, 16.0 * 0x1p20);
	skep_overlap_read(&d->r, map, d->s);
	skep_split_read_sync(&d->r, map, d->s);
	skep_sync_read_ring_order(&d->r, map, d->s);
	if (d->s->zero > 0)
		skep_periodic_refuse(&d->r, map, "sync", "zero",
			"each worker steps on all of its parameters by itself; leave out either", d->s);
	skep_reader_close_map(&d->r, map);
}

static void read_checkpoint(struct draft *d)
{
	static const char *const keys[] = {"every", "to", "bandwidth"};
	const struct skep_yaml_node *map = skep_read_map(&d->r, d->root, "checkpoint", false);
	struct skep_scenario *s = d->s;
	if (!map)
		return;
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
		skep_read_has(&d->r, map, keys[i]);
	skep_reader_close_map(&d->r, map); /* a key that is none stands for one that is missing */
	s->plan.checkpoint_every = (uint32_t)skep_read_integer(&d->r, map, "every", 1, SKEP_STEPS_MAX, INT64_MIN);
	const char *to = skep_read_string(&d->r, map, "to", NULL);
	s->checkpoint_Bps = skep_read_quantity(&d->r, map, "bandwidth", SKEP_BANDWIDTH, 1, 1e15, 1e9);
	if (!d->r.diag->set && (to[0] == '\0' || snprintf(s->checkpoint_to, sizeof s->checkpoint_to, "%s", to) >=
							 (int)sizeof s->checkpoint_to))
		skep_reader_fail(&d->r, map, "to", "checkpoint.to: expected the name of a folder, at most %zu bytes",
			sizeof s->checkpoint_to - 1);
}

static void read_directory(struct draft *d)
{
	const struct skep_yaml_node *map = skep_read_map(&d->r, d->root, "directory", false);
	double heartbeat_s = skep_read_quantity(&d->r, map, "heartbeat", SKEP_TIME, 1e-3, 3600, 1);
	double timeout_s =
		skep_read_quantity(&d->r, map, "timeout", SKEP_TIME, 2e-3, SKEP_DAY_S, fmax(10, 2 * heartbeat_s));
	skep_outage_read(&d->r, map, d->s);
	skep_reader_close_map(&d->r, map);
	double least_s = 2 * (heartbeat_s + skep_links_to_directory_s(d->s));
	if (!d->r.diag->set && timeout_s < least_s)
		skep_reader_fail(&d->r, map, "timeout",
			"directory.timeout: %g s is less than two heartbeats and the way to the directory and back, %g "
			"s: workers that live would be fenced",
			timeout_s, least_s);
	d->s->plan.liveness.heartbeat_ns = (skep_time)(heartbeat_s * 1e9 + 0.5);
	d->s->plan.liveness.fence_after_ns = (skep_time)(timeout_s * 1e9 + 0.5);
}

/* ---- train ---------------------------------------------------------------------------------------------------- */

static void read_train(struct draft *d)
{
	static const char *const arithmetic[] = {"none", "real", "law", NULL};
	const struct skep_yaml_node *map = group(d, "train");
	d->s->arithmetic =
		(enum skep_arithmetic)skep_read_choice(&d->r, map, "arithmetic", arithmetic, SKEP_ARITHMETIC_REAL);
	skep_given_check(&d->r, group(d, "schedule"), &d->s->model, d->s->samples);
	skep_train_check_computes(&d->r, map, d->s);
	skep_loss_read(&d->r, map, d->s);
	if (d->s->arithmetic == SKEP_ARITHMETIC_SCALING_LAW)
		skep_periodic_refuse_async(&d->r, map, "train", "arithmetic",
			"a law knows of rounds that end together; take `arithmetic: real` or `none`", d->s);
	if (d->s->arithmetic == SKEP_ARITHMETIC_SCALING_LAW)
		skep_periodic_refuse_gossip(&d->r, map, "train", "arithmetic",
			"a law knows of replicas that are equal after each round; take `arithmetic: real` or `none`",
			d->s);
	skep_train_read_data(&d->r, map, d->s);
	skep_init_read(&d->r, map, d->s, d->details);
	skep_train_read_optimizer(&d->r, map, d->s);
	skep_train_read_until(&d->r, map, d->s);
	skep_train_read_validation(&d->r, map, d->s);
	skep_train_read_schedule(&d->r, map, d->s);
	skep_reader_close_map(&d->r, map);
}

/* ---- what concerns the simulator alone ---------------------------------------------------------------------------- */

static void read_simulate(struct draft *d)
{
	static const char *const collectives[] = {"messages", "flows", NULL};
	const struct skep_yaml_node *map = skep_read_map(&d->r, d->root, "simulate", false);
	d->s->collectives_as_flows = skep_read_choice(&d->r, map, "collectives", collectives, 0) == 1;
	skep_reader_close_map(&d->r, map);
	if (d->s->collectives_as_flows)
		skep_sync_check_flows(&d->r, map, &d->s->plan);
	if (!d->r.diag->set && d->s->collectives_as_flows && d->s->topology.dials_out != NULL)
		skep_reader_fail(&d->r, map, "collectives",
			"simulate.collectives: flows do not go through the directory, and the topology has sites with "
			"`reach: out`; take `messages`");
	if (!d->r.diag->set && d->s->collectives_as_flows && d->s->arithmetic == SKEP_ARITHMETIC_REAL)
		skep_reader_fail(&d->r, map, "collectives",
			"simulate.collectives: flows carry no numbers, so there is nothing to add up; take `messages`, "
			"or `arithmetic: none`");
}

/* ---- all together --------------------------------------------------------------------------------------------- */

static void read_head(struct draft *d)
{
	struct skep_scenario *s = d->s;
	skep_reader_refuse_renamed(&d->r, d->root, RENAMED, sizeof RENAMED / sizeof RENAMED[0]);
	const char *name = skep_read_string(&d->r, d->root, "name", NULL);
	if (snprintf(s->name, sizeof s->name, "%s", name) >= (int)sizeof s->name)
		skep_reader_fail(&d->r, d->root, "name", "name: expected at most %zu bytes", sizeof s->name - 1);
	s->plan.seed = s->seed = (uint64_t)skep_read_integer(&d->r, d->root, "seed", 0, INT64_MAX, 1);
	skep_mistaken_refuse(
		&d->r, d->root); /* behind those two keys, which stand first in the list of those that there are */
}

/* Samples are numbered through the whole run (core/skep.h); the numbers times the inputs must not wrap. */
static void check_stream(struct draft *d)
{
	const struct skep_scenario *s = d->s;
	double numbers = (double)s->plan.rounds * skep_round_capacity(&s->plan) * s->samples * s->model.width[0];
	if (numbers >= 0x1p63)
		skep_reader_fail(&d->r, group(d, "train"), "until",
			"train.until.steps: numbers of samples and their inputs would not fit in 63 bits: take fewer steps, or "
			"a smaller schedule.global_batch");
}

static void check_time(struct draft *d)
{
	double least_s = skep_plan_least_seconds(d->s);
	if (least_s > RUN_S_MAX)
		skep_reader_fail(&d->r, group(d, "train"), "until",
			"train.until.steps: the GPUs of this cluster would compute for at least %.3g years",
			least_s / (365.25 * SKEP_DAY_S));
}

/* A silent worker does not answer, and fencing frees what it has. */
static void check_reissue_timeout(struct draft *d)
{
	const struct skep_plan *plan = &d->s->plan;
	if (!d->r.diag->set && plan->liveness.reissue_after_ns >= plan->liveness.fence_after_ns)
		skep_reader_fail(&d->r, group(d, "schedule"), "reissue_timeout",
			"schedule.reissue_timeout: %g s is not below directory.timeout, %g s: a worker that is silent for so "
			"long is fenced anyway",
			(double)plan->liveness.reissue_after_ns / 1e9, (double)plan->liveness.fence_after_ns / 1e9);
	if (!d->r.diag->set && plan->liveness.ban == SKEP_BAN_AT_ONCE && plan->liveness.reissue_after_ns == 0)
		skep_reader_fail(&d->r, group(d, "schedule"), "ban",
			"schedule.ban: `at-once` bans a worker whose answer is late, and without schedule.reissue_timeout none "
			"is: say after what time");
}

static void check_real(struct draft *d)
{
	const char *key[2];
	struct skep_diag error = {0};
	if (d->real && !d->r.diag->set && !skep_scenario_runs(d->s, d->pace, key, &error))
		skep_reader_fail(&d->r, skep_read_map(&d->r, d->root, key[0], false), key[1], "%s", error.message);
}

static void read_root(struct draft *d)
{
	read_head(d);
	read_model(d);
	read_cluster(d);
	read_schedule(d);
	skep_scaled_check(&d->r, group(d, "cluster"), d->s); /* before its pipelines are: of spares they know nothing */
	skep_cut_check(&d->r, group(d, "model"), d->s);
	read_sync(d);
	read_directory(d);
	check_reissue_timeout(d);
	read_checkpoint(d);
	read_train(d);
	skep_losses_check(&d->r, group(d, "schedule"), &d->s->plan);
	skep_scaled_check(&d->r, group(d, "cluster"), d->s);
	read_simulate(d);
	skep_compute_choose_types(d->s, &d->r, group(d, "cluster"));
	skep_compute_prepare(d->s, &d->r, group(d, "cluster"));
	skep_planned_read(&d->r, d->root, d->s);
	if (!d->r.diag->set)
		skep_freeze_check(&d->r, group(d, "model"), d->s);
	skep_reader_close_map(&d->r, d->root);
	if (d->r.diag->set)
		return;
	if (!skep_plan_make(d->s)) {
		skep_reader_fail(&d->r, NULL, NULL, "not enough memory for this scenario");
		return;
	}
	skep_scaled_make(d->s);
	skep_train_check(&d->r, group(d, "model"), group(d, "train"), d->s);
	skep_split_check_zero(&d->r, skep_read_map(&d->r, d->root, "sync", false), d->s);
	skep_compute_check(d->s, &d->r, group(d, "cluster"));
	const struct skep_yaml_node *sync = skep_read_map(&d->r, d->root, "sync", false);
	skep_sync_check_members(&d->r, sync, &d->s->plan);
	skep_robust_check(&d->r, sync, group(d, "cluster"), d->s);
	skep_periodic_check(&d->r, sync, d->s);
	skep_candidates_check(&d->r, group(d, "train"), d->s);
	skep_outage_check(&d->r, skep_read_map(&d->r, d->root, "directory", false), d->s);
	check_stream(d);
	check_time(d);
	check_real(d);
	if (!d->any_memory && !d->s->unresolved)
		skep_memory_check(&d->r, group(d, "model"), d->s,
			&(struct skep_memory_reading){skep_scenario_read_text, skep_scenario_finish});
}

static void apply_options(struct skep_yaml *yaml, const struct skep_scenario_options *options, struct skep_diag *reterr)
{
	for (uint32_t i = 0; options && i < options->sets; i++)
		skep_yaml_override(yaml, options->set[i], reterr);
	if (options && options->has_seed) {
		char seed[32];
		snprintf(seed, sizeof seed, "seed=%llu", (unsigned long long)options->seed);
		skep_yaml_override(yaml, seed, reterr);
	}
}

static bool path_fits(const struct skep_scenario *scenario, const char *path, struct skep_diag *reterr)
{
	if (strlen(path) >= sizeof scenario->path)
		skep_diag_set(reterr, path, 0, 0, NULL, "the path is too long: expected at most %zu bytes",
			sizeof scenario->path - 1);
	return !reterr->set;
}

static void clear(struct skep_scenario *ret, const struct skep_scenario_options *options)
{
	*ret = (struct skep_scenario){.target_loss = NAN};
	if (options != NULL && options->root != NULL)
		ret->files = (struct skep_files){.root = options->root, .folder = options->folder};
}

static void read_text(const char *path, const char *text, size_t size, const struct skep_scenario_options *options,
	struct skep_scenario *ret, struct skep_diag *reterr)
{
	if (!path_fits(ret, path, reterr))
		return;
	skep_files_note(&ret->files, path, true);
	snprintf(ret->path, sizeof ret->path, "%s", path);
	ret->split = options && options->split && !options->pace;
	struct draft d = {.r = {skep_yaml_parse(path, text, size, reterr), reterr},
		.s = ret,
		.details = options ? options->details : NULL,
		.any_memory = options && options->any_memory,
		.real = options && options->real,
		.pace = options && options->pace};
	if (!d.r.yaml)
		return;
	apply_options(d.r.yaml, options, reterr);
	d.root = skep_yaml_root(d.r.yaml);
	read_root(&d);
	if (!reterr->set) {
		skep_traced_admit(&d.r, ret);
		ret->job = skep_job_digest(&d.r, d.root, ret->seed);
		ret->text = skep_yaml_print(d.r.yaml);
		ret->source = strndup(text, size);
	}
	if (!reterr->set && (!ret->text || !ret->source))
		skep_reader_fail(&d.r, NULL, NULL, "not enough memory for this scenario");
	skep_yaml_destroy(d.r.yaml);
}

bool skep_scenario_read_text(const char *path, const char *text, size_t size,
	const struct skep_scenario_options *options, struct skep_scenario *ret, struct skep_diag *reterr)
{
	struct skep_files *outer = reterr->files;
	clear(ret, options);
	reterr->files = &ret->files;
	read_text(path, text, size, options, ret, reterr);
	reterr->files = outer;
	if (reterr->set)
		skep_scenario_finish(ret);
	return !reterr->set;
}

bool skep_scenario_read(const char *path, const struct skep_scenario_options *options, struct skep_scenario *ret,
	struct skep_diag *reterr)
{
	char *text = NULL, shipped[sizeof ret->path];
	size_t size;
	*ret = (struct skep_scenario){.target_loss = NAN};
	path = skep_data_or(path, shipped, sizeof shipped);
	bool ok = path_fits(ret, path, reterr) && !skep_mistaken_folder(path, reterr) &&
	          skep_file_read(path, SKEP_FILE_BYTES_MAX, &text, &size, reterr) &&
	          skep_scenario_read_text(path, text, size, options, ret, reterr);
	free(text);
	return ok;
}

void skep_scenario_finish(struct skep_scenario *scenario)
{
	skep_tokens_close(scenario->tokens);
	skep_safetensors_close(scenario->weights);
	free(scenario->law);
	skep_planned_destroy(scenario->planned);
	skep_files_finish(&scenario->files);
	skep_model_finish(&scenario->model);
	skep_topology_finish(&scenario->topology);
	skep_churn_finish(&scenario->churn);
	free(scenario->text);
	free(scenario->source);
	free(scenario->stage);
	free(scenario->first_stage_of);
	free(scenario->cost);
	free(scenario->vstage_bytes);
	free(scenario->op_time);
	free(scenario->predictor);
	free(scenario->draw);
	free(scenario->timing);
	free(scenario->memory_bytes);
	free(scenario->memory);
	free(scenario->in_flight_limit);
	free(scenario->speed);
	free(scenario->place_of);
	free(scenario->transfer_ns);
	free(scenario->site_of);
	free(scenario->link_Bps);
	free(scenario->ring_order);
	free(scenario->ring_exact);
	free(scenario->bucket_first);
	free(scenario->part_end);
	free(scenario->fragment_first);
	free(scenario->codecs);
	free(scenario->sum_every);
	free(scenario->liar);
	free(scenario->machine_of);
	free(scenario->stands_by);
	free(scenario->price_of);
	free(scenario->price);
	skep_scaled_finish(scenario);
	*scenario = (struct skep_scenario){.target_loss = NAN};
}
