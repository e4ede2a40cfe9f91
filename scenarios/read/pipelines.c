/* SPDX-License-Identifier: Apache-2.0
 *
 * pipelines.c - fixed pipelines: pipeline p is worker p mod r of each stage of r workers (core/plan.h), each is granted the same
 * number of microbatches, and there are no spares. With `gpipe` and `interleaved` all stages have equally many workers.
 * Interleaved ones have `model_chunks` virtual stages of the model on each worker, and take the microbatches in groups of as
 * many as there are stages. Several flushes in a step have the same number of microbatches each.
 *
 * Keeps true: what these schedules have no use for is refused at its key, not ignored.
 */
#include "scenarios/read/groups.h"

#include <string.h>

#include "core/names.h"
#include "core/schedule/pipelines.h"
#include "scenarios/plan/plan.h"

enum {
	SHARE_MAX = 4096, /* microbatches that a worker may have to hold, as schedule.in_flight */
	CHUNKS_MAX = 64   /* virtual stages of a worker */
};

/* Keys of a group that say something about a swarm. */
static void refuse(struct skep_reader *r, const struct skep_yaml_node *map, const char *group, const char *key,
	const char *pipeline, const char *why)
{
	if (!r->diag->set && map && skep_read_has(r, map, key))
		skep_reader_fail(r, map, key, "%s.%s: not with `pipeline: %s`: %s", group, key, pipeline, why);
}

static void check_places(struct skep_reader *r, const struct skep_yaml_node *map, const struct skep_scenario *s)
{
	const char *name = skep_pipeline_name((uint8_t)s->plan.pipeline);
	uint32_t first = skep_plan_serving(s, 0), spares = skep_plan_serving(s, SKEP_NO_STAGE);
	bool divides = (s->plan.workers - spares) % s->plan.stages == 0;
	bool uneven = skep_pipeline_may_be_uneven(s->plan.pipeline);
	for (uint32_t stage = 1; stage < s->plan.stages && !r->diag->set && !uneven; stage++)
		if (skep_plan_serving(s, stage) != first)
			skep_reader_fail(r, map, "pipeline",
				"schedule.pipeline: %s has pipelines of one worker from each stage, but stage 0 has %u "
				"workers and stage %u has %u; %s, or take `1f1b`, of which stages may have unequal numbers",
				name, first, stage, skep_plan_serving(s, stage),
				divides ? "give each stage the same number in cluster.allocation"
					: "take as many machines as make equal stages, or another model.stages");
	if (!r->diag->set && spares > 0)
		skep_reader_fail(r, map, "pipeline",
			"schedule.pipeline: %s has no place for %u worker%s that %s; a worker of a pipeline that is lost "
			"can only be replaced in its own place",
			name, spares, spares == 1 ? "" : "s",
			s->has_trace  ? "the trace lets come later"
			: spares == 1 ? "is a spare"
				      : "are spares");
}

/* What passes read without a flush, and from when on there is none. */
static void read_weights(struct skep_reader *r, const struct skep_yaml_node *map, struct skep_plan *plan)
{
	static const char *const keys[] = {"weights", "synchronous_steps"};
	const char *names[SKEP_WEIGHTS + 1] = {NULL};
	for (uint8_t i = 0; i < SKEP_WEIGHTS_CHOICES; i++)
		names[i] = skep_weights_name(i);
	plan->no_flush.weights = (enum skep_weights)skep_read_choice(r, map, "weights", names, SKEP_WEIGHTS_STASHED);
	plan->no_flush.synchronous = (uint32_t)skep_read_integer(r, map, "synchronous_steps", 0, SKEP_STEPS_MAX, 0);
	for (size_t i = 0; i < sizeof keys / sizeof keys[0] && !r->diag->set && !skep_plan_no_flush(plan); i++)
		if (skep_read_has(r, map, keys[i]))
			skep_reader_fail(r, map, keys[i],
				"schedule.%s: goes with `pipeline: pipedream` alone: with `%s` both passes of a microbatch "
				"read the same parameters, and no step comes between them",
				keys[i], skep_pipeline_name((uint8_t)plan->pipeline));
}

void skep_pipelines_read_keys(struct skep_reader *r, const struct skep_yaml_node *map, struct skep_scenario *s)
{
	uint32_t stages = s->plan.stages;
	s->plan.accumulate = (uint32_t)skep_read_integer(r, map, "accumulate", 1, SHARE_MAX, 1);
	s->plan.barrier = skep_read_bool(r, map, "barrier", false);
	read_weights(r, map, &s->plan);
	if (s->plan.pipeline != SKEP_PIPELINE_INTERLEAVED) {
		if (!r->diag->set && skep_read_has(r, map, "model_chunks"))
			skep_reader_fail(r, map, "model_chunks",
				"schedule.model_chunks: comes with `pipeline: interleaved` alone; with `%s` a worker has one "
				"piece of the model",
				skep_pipeline_name((uint8_t)s->plan.pipeline));
		return;
	}
	s->plan.model_chunks = (uint32_t)skep_read_integer(r, map, "model_chunks", 2, CHUNKS_MAX, INT64_MIN);
	if (!r->diag->set && stages < 2)
		skep_reader_fail(r, map, "pipeline",
			"schedule.pipeline: interleaved needs two stages at least, so that there is another worker to "
			"go on to; raise model.stages, or take `1f1b`");
	else if (!r->diag->set && (uint64_t)s->plan.model_chunks * stages > s->model.layers)
		skep_reader_fail(r, map, "model_chunks",
			"schedule.model_chunks: %u chunks in each of %u stages are %llu virtual stages, %.60s has %u "
			"layers; take fewer stages, %s",
			s->plan.model_chunks, stages, (unsigned long long)s->plan.model_chunks * stages, s->model.name,
			s->model.layers,
			s->plan.model_chunks > 2 && s->model.layers / stages >= 2 ? "or fewer chunks"
										  : "or `pipeline: 1f1b`");
}

/* The flushes of a pipeline have as many microbatches as each other; and Megatron-LM's order takes them in groups of as many as
 * there are stages. */
static void check_flushes(struct skep_reader *r, const struct skep_yaml_node *map, const struct skep_scenario *s)
{
	bool groups = s->plan.pipeline == SKEP_PIPELINE_INTERLEAVED;
	uint32_t flushes = skep_plan_flushes(&s->plan), pipelines = skep_plan_pipelines(&s->plan),
		 share = s->plan.microbatches / pipelines, size = groups ? s->plan.stages : 1;
	uint64_t unit = (uint64_t)pipelines * s->samples * flushes * size, below = s->batch / unit * unit;
	char why[96] = "", nearest[96];
	if (r->diag->set || below == s->batch)
		return;
	if (groups)
		snprintf(why, sizeof why, ", taken in groups of %u, one for each stage", size);
	snprintf(nearest, sizeof nearest, "%s %llu%s%.0llu", below > 0 ? "are" : "is",
		(unsigned long long)(below > 0 ? below : unit), below > 0 ? " and " : "",
		(unsigned long long)(below > 0 ? below + unit : 0));
	if (flushes > 1)
		skep_reader_fail(r, map, "accumulate",
			"schedule.accumulate: a pipeline has %u microbatch%s a step, which are not %u equal flushes%s; take "
			"another number, or another global_batch: the nearest %s",
			share, share == 1 ? "" : "es", flushes, why, nearest);
	else
		skep_reader_fail(r, map, "global_batch",
			"schedule.global_batch: interleaved takes the %u microbatches of a pipeline in groups of %u, one for "
			"each stage, and they are no multiple of that; the nearest %s",
			share, size, nearest);
}

/* Several flushes in a step say something where a pipeline runs empty, and where it does so by itself. */
static void check_accumulate(struct skep_reader *r, const struct skep_yaml_node *map, const struct skep_plan *plan)
{
	if (r->diag->set || skep_plan_flushes(plan) == 1)
		return;
	if (!skep_plan_fixed(plan))
		skep_reader_fail(r, map, "accumulate",
			"schedule.accumulate: a swarm is not flushed within a step: it keeps no more than `in_flight` "
			"microbatches for each worker of the first stage; lower that, or take `pipeline: gpipe`, "
			"`1f1b` or `interleaved`");
	else if (skep_plan_no_flush(plan))
		skep_reader_fail(r, map, "accumulate",
			"schedule.accumulate: `pipedream` never flushes, and steps after each microbatch; for larger steps "
			"take a larger `microbatch`, or `pipeline: 1f1b`");
	else if (plan->barrier)
		skep_reader_fail(r, map, "barrier",
			"schedule.barrier: not with `accumulate`: each pipeline begins its next flush when it has run empty, "
			"whatever the others do; leave out either");
}

/* What pipelines there are, for messages. */
static const char *pipelines_text(const struct skep_scenario *s, char *text, size_t size)
{
	uint32_t pipelines = skep_plan_pipelines(&s->plan);
	int at = snprintf(text, size, "the %u pipeline%s", pipelines, pipelines == 1 ? "" : "s");
	for (uint32_t stage = 0; skep_plan_uneven(&s->plan) && stage < s->plan.stages && (size_t)at < size; stage++)
		at += snprintf(text + at, size - (size_t)at, "%s%u%s", stage == 0 ? " that stages of " : ", ",
			skep_plan_replicas(&s->plan, stage), stage + 1 == s->plan.stages ? " workers make" : "");
	return text;
}

/* Each pipeline gets as many microbatches as the others. */
static void check_shares(struct skep_reader *r, const struct skep_yaml_node *map, const struct skep_scenario *s)
{
	uint64_t unit = (uint64_t)skep_plan_pipelines(&s->plan) * s->samples, below = s->batch / unit * unit;
	char text[128];
	pipelines_text(s, text, sizeof text);
	uint32_t most = 0;
	for (uint32_t stage = 0; stage < s->plan.stages; stage++)
		most = skep_plan_share(&s->plan, stage) > most ? skep_plan_share(&s->plan, stage) : most;
	if (skep_plan_waves(&s->plan) && below == s->batch && s->batch < 2 * unit)
		skep_reader_fail(r, map, "global_batch",
			"schedule.global_batch: with `sync.method: wsp` a wave has the microbatches that a virtual worker has "
			"under way, 2 at least: %llu samples for %s, or more; a usual wave has as many as stages, %llu samples",
			(unsigned long long)(2 * unit), text, (unsigned long long)(unit * s->plan.stages));
	else if (skep_plan_no_flush(&s->plan) && !skep_plan_waves(&s->plan) && s->batch != unit)
		skep_reader_fail(r, map, "global_batch",
			"schedule.global_batch: with `pipeline: pipedream` each microbatch of a pipeline is followed by "
			"a step, so this is one of each of %s: %llu samples, not %u; for larger steps "
			"take a larger `microbatch`, or `pipeline: 1f1b`; for waves of several `sync.method: wsp`",
			text, (unsigned long long)unit, s->batch);
	else if (below == 0)
		skep_reader_fail(r, map, "global_batch",
			"schedule.global_batch: %u samples are not the same number of microbatches for each of %s; the "
			"nearest is %llu",
			s->batch, text, (unsigned long long)unit);
	else if (below != s->batch)
		skep_reader_fail(r, map, "global_batch",
			"schedule.global_batch: %u samples are not the same number of microbatches for each of %s; the "
			"nearest are %llu and %llu",
			s->batch, text, (unsigned long long)below, (unsigned long long)(below + unit));
	else if (most > SHARE_MAX)
		skep_reader_fail(r, map, "global_batch", "schedule.global_batch: %u microbatches for %s, at most %d",
			most, skep_plan_uneven(&s->plan) ? "a worker" : "each pipeline", SHARE_MAX);
}

/* What goes with a flush alone. */
static void check_stream(struct skep_reader *r, const struct skep_yaml_node *schedule,
	const struct skep_yaml_node *sync, const struct skep_plan *plan)
{
	if (r->diag->set || !skep_plan_no_flush(plan))
		return;
	if (plan->on_loss != SKEP_ON_LOSS_REPORT)
		skep_reader_fail(r, schedule, "on_loss",
			"schedule.on_loss: with `pipeline: pipedream` later steps are under way when a loss is known, "
			"so nothing can be run again, made void or held back; leave this out or take `report`, or "
			"`pipeline: 1f1b`");
	else if (plan->reduction.collective != SKEP_COLLECTIVE_RING)
		skep_reader_fail(r, sync, "collective",
			"sync.collective: with `pipeline: pipedream` several rounds are about to be summed at once, and "
			"only a ring's members need not be named for each: leave this out or take `ring`");
}

/* Waves (core/methods/wsp.c): virtual workers are pipelines that are never flushed. */
static void read_waves(struct skep_reader *r, const struct skep_yaml_node *schedule, const struct skep_yaml_node *sync,
	struct skep_scenario *s)
{
	struct skep_plan *plan = &s->plan;
	const char *method = skep_read_string(r, sync, "method", "step");
	const bool waves = !r->diag->set && strcmp(method, "wsp") == 0;
	if (!r->diag->set && !waves && skep_read_has(r, sync, "distance"))
		skep_reader_fail(r, sync, "distance",
			"sync.distance: comes with `method: wsp` alone, whose virtual workers may be so many waves apart");
	if (!waves)
		return;
	plan->no_flush.distance = (uint32_t)skep_read_integer(r, sync, "distance", 0, SKEP_DISTANCE_MAX, 0);
	const struct {
		bool asked;
		const struct skep_yaml_node *map;
		const char *key, *why;
	} never[] = {{!skep_plan_no_flush(plan), sync, "method",
			     "sync.method: the virtual workers of `wsp` are pipelines that never wait for a step: take "
			     "`schedule.pipeline: pipedream`"},
		{skep_read_has(r, schedule, "weights"), schedule, "weights",
			"schedule.weights: with `sync.method: wsp` both passes read what their own virtual worker has made; "
			"leave this out"},
		{skep_read_has(r, schedule, "synchronous_steps"), schedule, "synchronous_steps",
			"schedule.synchronous_steps: with `sync.method: wsp` each microbatch of a wave goes forwards before the "
			"wave is summed; leave this out, or take `method: step`"},
		{s->checkpoint_activations != SKEP_CHECKPOINTING_NONE, schedule, "checkpoint_activations",
			"schedule.checkpoint_activations: with `sync.method: wsp` what a microbatch reads is kept with its "
			"activations; leave this out, or take fewer microbatches for a wave in schedule.global_batch"}};
	for (size_t i = 0; i < sizeof never / sizeof never[0] && !r->diag->set; i++)
		if (never[i].asked)
			skep_reader_fail(r, never[i].map, never[i].key, "%s", never[i].why);
	plan->no_flush.weights = SKEP_WEIGHTS_WAVES;
}

/* The workers of a stage are as many as the virtual workers. */
static void check_waves(struct skep_reader *r, const struct skep_yaml_node *sync, const struct skep_plan *plan)
{
	if (!r->diag->set && skep_plan_waves(plan) && skep_plan_uneven(plan))
		skep_reader_fail(r, sync, "method",
			"sync.method: a virtual worker of `wsp` has one worker of each stage, so all stages have as many: give "
			"each the same number in cluster.allocation, or take `method: step`");
}

void skep_pipelines_read(struct skep_reader *r, const struct skep_yaml_node *schedule,
	const struct skep_yaml_node *sync, struct skep_scenario *s)
{
	struct skep_plan *plan = &s->plan;
	const char *name = skep_pipeline_name((uint8_t)plan->pipeline);
	if (!r->diag->set && plan->barrier && plan->pipeline != SKEP_PIPELINE_GPIPE)
		skep_reader_fail(r, schedule, "barrier",
			"schedule.barrier: with `%s` there is nothing to keep apart: only `gpipe` goes forwards with "
			"all of a round before it goes backwards",
			name);
	check_accumulate(r, schedule, plan);
	read_waves(r, schedule, sync, s);
	if (r->diag->set)
		return;
	if (!skep_plan_fixed(plan)) {
		if (plan->wiring == SKEP_WIRING_FIXED)
			skep_reader_fail(r, schedule, "wiring",
				"schedule.wiring: `fixed` comes with `pipeline: gpipe`, `1f1b`, `interleaved` and "
				"`pipedream`; a swarm chooses, so take `uniform`, `throughput` or `latency`");
		return;
	}
	if (skep_read_has(r, schedule, "wiring") && plan->wiring != SKEP_WIRING_FIXED)
		skep_reader_fail(r, schedule, "wiring",
			"schedule.wiring: a worker of a fixed pipeline has one partner and no choice; leave this out or "
			"take `fixed`, or `pipeline: swarm`");
	if (!r->diag->set && plan->routing != SKEP_ROUTING_PEER)
		skep_reader_fail(r, schedule, "routing",
			"schedule.routing: in a fixed pipeline activations go from worker to worker: leave this out or "
			"take `peer`, or `pipeline: swarm`");
	refuse(r, schedule, "schedule", "reissue_timeout", name, "there is no other worker to send a microbatch to");
	refuse(r, schedule, "schedule", "ban", name, "there is no other worker to choose");
	refuse(r, schedule, "schedule", "joins", name, "a newcomer returns to its own place");
	refuse(r, schedule, "schedule", "rebalance", name, "no worker leaves its pipeline");
	refuse(r, schedule, "schedule", "in_flight", name, "it follows from the schedule");
	if (!r->diag->set && plan->delayed)
		skep_reader_fail(r, sync, "delayed",
			"sync.delayed: not with `pipeline: %s`, which %s; take `pipeline: swarm`", name,
			skep_plan_no_flush(plan) ? "never waits for a step"
						 : "waits for its pipelines to run empty and then steps");
	check_stream(r, schedule, sync, plan);
	plan->first_stage_of = s->first_stage_of;
	if (!r->diag->set)
		check_places(r, schedule, s);
	check_waves(r, sync, plan);
	if (!r->diag->set)
		check_shares(r, schedule, s);
	if (!r->diag->set)
		check_flushes(r, schedule, s);
	plan->wiring = SKEP_WIRING_FIXED;
	plan->recompute = plan->pipeline == SKEP_PIPELINE_GPIPE && s->checkpoint_activations != SKEP_CHECKPOINTING_NONE;
	if (!r->diag->set)
		plan->in_flight = skep_plan_fixed_in_flight(plan);
}
