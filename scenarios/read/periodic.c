/* SPDX-License-Identifier: Apache-2.0
 *
 * periodic.c - see periodic.h. DiLoCo (Douillard et al. 2023) and its defaults: outer Nesterov, rate 0.7, momentum 0.9.
 *
 * `gossip` (NoLoCo, Kolehmainen et al. 2025) has heavy-ball descent, rate 0.7, momentum 0.5, as its authors' code.
 *
 * `async` (Liu et al. 2024) has delayed Nesterov, which with one turn is Nesterov. Workers never wait for it, so for the core it
 * is also `delayed`.
 *
 * Keeps true: without `method: diloco` nothing in the plan says so, and its keys are refused, not ignored.
 */
#include "scenarios/read/periodic.h"

#include <stdlib.h>
#include <string.h>

#include "base/layout.h"
#include "core/collective/collective.h"
#include "core/names.h"
#include "core/schedule/pipelines.h"
#include "core/sums.h"
#include "scenarios/plan/plan.h"

enum {
	EVERY_MAX = 100000,
	FRAGMENTS_MAX = 4096,
	TURNS_MAX = 1 << 20,
	MICROBATCHES_MAX = 1 << 20 /* per round, as in scenario.c */
};

enum { METHOD_STEP, METHOD_DILOCO, METHOD_STREAMING, METHOD_ASYNC, METHOD_GOSSIP, METHOD_WSP };
static const char *const methods[] = {"step", "diloco", "streaming", "async", "gossip", "wsp", NULL};
static const char *const optimizers[] = {"nesterov", "sgd", NULL};

/* Keys that mean something with other methods alone. */
static void refuse_keys(
	struct skep_reader *r, const struct skep_yaml_node *sync, const char *const *keys, const char *others)
{
	for (; *keys && !r->diag->set; keys++)
		if (skep_read_has(r, sync, *keys))
			skep_reader_fail(r, sync, *keys, "sync.%s: comes with `method: %s` alone", *keys, others);
}

static void check_pair(struct skep_reader *r, const struct skep_yaml_node *item, uint32_t one, uint32_t other)
{
	if (!r->diag->set && one % other != 0 && other % one != 0)
		skep_reader_fail(r, item, NULL,
			"sync.every: of two stages one would sum every %u steps and one every %u; the longer has to be a "
			"multiple of the shorter, such as %u and %u",
			other, one, other, 2 * other);
}

/* A round has the steps of the shortest period, of which the others are multiples; and of each other, so that the longest one is
 * where all of them end. */
static void count_rounds(struct skep_reader *r, const struct skep_yaml_node *list, struct skep_scenario *s)
{
	struct skep_plan *plan = &s->plan;
	uint32_t shortest = UINT32_MAX, longest = 0;
	for (uint32_t stage = 0; stage < plan->stages; stage++) {
		shortest = s->sum_every[stage] < shortest ? s->sum_every[stage] : shortest;
		longest = s->sum_every[stage] > longest ? s->sum_every[stage] : longest;
	}
	for (uint32_t a = 0; a < plan->stages; a++)
		for (uint32_t b = 0; b < a; b++)
			check_pair(r, skep_yaml_item(list, a), s->sum_every[a], s->sum_every[b]);
	plan->inner.steps = shortest;
	for (uint32_t stage = 0; stage < plan->stages; stage++)
		s->sum_every[stage] /= shortest;
	plan->inner.sum_every = longest > shortest ? s->sum_every : NULL;
}

/* A number for each stage. */
static void read_each_every(struct skep_reader *r, const struct skep_yaml_node *sync, const struct skep_yaml_node *list,
	struct skep_scenario *s)
{
	uint32_t stages = s->plan.stages, length = skep_yaml_length(list);
	if (length != stages) {
		skep_reader_fail(r, sync, "every",
			"sync.every: a list has the steps of each stage, %u of them, and here are %u; or take one number for "
			"all, such as `8`",
			stages, length);
		return;
	}
	s->sum_every = calloc(stages, sizeof *s->sum_every);
	for (uint32_t stage = 0; stage < stages && s->sum_every; stage++)
		s->sum_every[stage] =
			(uint32_t)skep_read_integer(r, skep_yaml_item(list, stage), NULL, 1, EVERY_MAX, INT64_MIN);
	if (!s->sum_every)
		skep_reader_fail(r, NULL, NULL, "not enough memory for this scenario");
	if (!r->diag->set && skep_read_has(r, sync, "mean_inner_steps"))
		skep_reader_fail(r, sync, "mean_inner_steps",
			"sync.mean_inner_steps: comes with `every: auto` alone, where each worker makes as many inner steps as "
			"it can in the time of a round");
	if (!r->diag->set)
		count_rounds(r, list, s);
}

static void read_every(struct skep_reader *r, const struct skep_yaml_node *sync, struct skep_scenario *s)
{
	struct skep_plan *plan = &s->plan;
	const struct skep_yaml_node *node = skep_read_any(r, sync, "every");
	if (skep_yaml_kind(node) == SKEP_YAML_LIST) {
		read_each_every(r, sync, node, s);
		return;
	}
	const char *text = skep_read_string(r, sync, "every", NULL);
	plan->inner.by_share = !r->diag->set && strcmp(text, "auto") == 0;
	if (plan->inner.by_share && !skep_read_has(r, sync, "mean_inner_steps"))
		skep_reader_fail(r, sync, "every",
			"sync.every: `auto` needs sync.mean_inner_steps beside it, the inner steps that workers make in "
			"a round on average, such as `mean_inner_steps: 8`");
	else if (plan->inner.by_share)
		plan->inner.steps = (uint32_t)skep_read_integer(r, sync, "mean_inner_steps", 1, EVERY_MAX, INT64_MIN);
	else if (!r->diag->set)
		plan->inner.steps = (uint32_t)skep_read_integer(r, sync, "every", 1, EVERY_MAX, INT64_MIN);
	if (!r->diag->set && !plan->inner.by_share && skep_read_has(r, sync, "mean_inner_steps"))
		skep_reader_fail(r, sync, "mean_inner_steps",
			"sync.mean_inner_steps: comes with `every: auto` alone, where each worker makes as many inner "
			"steps as it can in the time of a round; with `every: %u` all make that many",
			plan->inner.steps);
}

static void refuse_list(struct skep_reader *r, const struct skep_yaml_node *sync, const char *what, bool method)
{
	skep_reader_fail(r, sync, "every",
		"sync.every: a number for each stage goes with `method: diloco` alone, whose workers wait for their sum, and not "
		"with `%s%s`; take one for all",
		method ? "method: " : "", what);
}

/* Steps of the same number for each worker, whatever its speed: each is dealt a part of every step. */
static void read_steps(struct skep_reader *r, const struct skep_yaml_node *sync, int method, struct skep_plan *plan)
{
	static const char *const kinds[] = {"shared", "fixed", NULL};
	plan->inner.fixed = skep_read_choice(r, sync, "steps", kinds, 0) == 1;
	if (r->diag->set || !plan->inner.fixed)
		return;
	if (plan->inner.by_share)
		skep_reader_fail(r, sync, "steps",
			"sync.steps: with `every: auto` each worker makes as many inner steps as it can; take a number for "
			"`every`, or leave this out");
	else if (method == METHOD_ASYNC)
		skep_reader_fail(r, sync, "steps",
			"sync.steps: with `method: async` each worker merges after as many steps of its own, and a slow one "
			"merges less often; leave this out");
}

static void read_outer(struct skep_reader *r, const struct skep_yaml_node *sync, int method, struct skep_optimizer *ret)
{
	const struct skep_yaml_node *map = skep_read_map(r, sync, "outer", false);
	const bool async = method == METHOD_ASYNC, gossip = method == METHOD_GOSSIP;
	bool plain = skep_read_choice(r, map, "optimizer", optimizers, gossip) == 1;
	*ret = (struct skep_optimizer){.kind = plain ? SKEP_OPTIMIZER_SGD : SKEP_OPTIMIZER_NESTEROV};
	if (async)
		ret->kind = SKEP_OPTIMIZER_DELAYED_NESTEROV;
	if (async && plain && !r->diag->set)
		skep_reader_fail(r, map, "optimizer",
			"sync.outer.optimizer: with `method: async` it is `nesterov`, delayed; `momentum: 0` makes plain "
			"descent of it");
	if (gossip && !plain && !r->diag->set)
		skep_reader_fail(r, map, "optimizer",
			"sync.outer.optimizer: with `method: gossip` it is `sgd`, with momentum, which moves a worker towards "
			"the mean of a pair; leave this out");
	if (async)
		ret->turns = (uint32_t)skep_read_integer(r, map, "buffer", 1, TURNS_MAX, 0);
	else if (!r->diag->set && skep_read_has(r, map, "buffer"))
		skep_reader_fail(r, map, "buffer",
			"sync.outer.buffer: comes with `method: async` alone, where the momentum changes once in so many "
			"merges");
	ret->learning_rate = (float)skep_read_number(r, map, "lr", 1e-12, 1e3, plain && !gossip ? 1 : 0.7);
	ret->momentum = (float)skep_read_number(r, map, "momentum", 0, 0.999999, gossip ? 0.5 : plain ? 0 : 0.9);
	skep_reader_close_map(r, map);
}

static void check_batch(struct skep_reader *r, const struct skep_yaml_node *sync, struct skep_scenario *s)
{
	uint64_t microbatches = (uint64_t)s->plan.microbatches * s->plan.inner.steps;
	uint64_t samples = microbatches * s->samples;
	if (microbatches > MICROBATCHES_MAX || samples > UINT32_MAX)
		skep_reader_fail(r, sync, s->plan.inner.by_share ? "mean_inner_steps" : "every",
			"sync.every: %u inner steps of %u microbatches are %llu in a round, at most %d; take fewer, or "
			"a larger `microbatch`",
			s->plan.inner.steps, s->plan.microbatches, (unsigned long long)microbatches, MICROBATCHES_MAX);
	s->plan.microbatches = (uint32_t)microbatches;
	s->batch = (uint32_t)samples;
}

/* The steps between two sums of a fragment are shared out among as many rounds as there are fragments, as evenly as can be
 * (skep_plan_steps()). With fewer steps than fragments each step has a round, and there are as many fragments as steps. */
static void read_fragments(struct skep_reader *r, const struct skep_yaml_node *sync, struct skep_plan *plan)
{
	uint32_t steps = plan->inner.steps;
	plan->inner.fragments = (uint32_t)skep_read_integer(r, sync, "fragments", 2, FRAGMENTS_MAX, INT64_MIN);
	if (r->diag->set)
		return;
	plan->inner.fragments = plan->inner.fragments < steps ? plan->inner.fragments : steps;
	plan->inner.steps = (steps + plan->inner.fragments - 1) / plan->inner.fragments;
	plan->inner.cycle = steps % plan->inner.fragments > 0 ? steps : 0;
	static const char *const patterns[] = {"sequential", "strided", NULL};
	plan->inner.strided = skep_read_choice(r, sync, "fragment_pattern", patterns, 0) == 1;
	plan->inner.overlap =
		(uint32_t)skep_read_integer(r, sync, "overlap_steps", 0, steps / plan->inner.fragments, 1);
	if (!r->diag->set && skep_read_has(r, sync, "delayed"))
		skep_reader_fail(r, sync, "delayed",
			"sync.delayed: with `streaming` workers go on while a fragment is summed, and overlap_steps says "
			"for how long; leave this out");
	plan->delayed = plan->inner.overlap > 0;
	plan->inner.deadline = skep_read_bool(r, sync, "overlap_deadline", true) && plan->delayed;
	if (!r->diag->set && !plan->delayed && skep_read_has(r, sync, "overlap_deadline"))
		skep_reader_fail(r, sync, "overlap_deadline",
			"sync.overlap_deadline: with `overlap_steps: 0` a worker waits for the sum of a fragment before the "
			"next step; leave this out");
	if (!r->diag->set && plan->delayed && plan->on_loss == SKEP_ON_LOSS_RERUN)
		skep_reader_fail(r, sync, skep_read_has(r, sync, "overlap_steps") ? "overlap_steps" : "method",
			"sync.overlap_steps: a round that is reduced while the next one runs cannot be run again: leave "
			"out `on_loss: rerun`, or take `overlap_steps: 0`");
}

/* The fewest of which as many can be left out as the scenario says, of a share one. */
static uint32_t usual_parts(const struct skep_robust *robust)
{
	uint32_t wanted = robust->trim > 0 ? robust->trim : 1, parts = 1;
	while (parts < SKEP_ROSTER_MAX && skep_robust_left_out(robust, parts) < wanted)
		parts++;
	return parts;
}

static void read_parts(struct skep_reader *r, const struct skep_yaml_node *sync, struct skep_plan *plan,
	const struct skep_robust *robust)
{
	plan->async.group_size =
		(uint32_t)skep_read_integer(r, sync, "group_size", 1, SKEP_ROSTER_MAX, (int64_t)usual_parts(robust));
	if (!r->diag->set && skep_robust_left_out(robust, plan->async.group_size) == 0)
		skep_reader_fail(r, sync, skep_read_has(r, sync, "group_size") ? "group_size" : "aggregate",
			"sync.group_size: of %u part%s none can be left out: take at least 3, and with a share in "
			"sync.trim as many as make one",
			plan->async.group_size, skep_plural(plan->async.group_size));
}

/* Refuses the keys that `async` has no use for: an outer update that waits for no worker cannot be delayed, and it
 * reaches all workers as it is, so that no collective sums anything. */
static void read_async(struct skep_reader *r, const struct skep_yaml_node *sync, struct skep_plan *plan,
	const struct skep_robust *robust)
{
	static const struct {
		const char *key, *why;
	} never[] = {{"mixing", "a worker keeps all of what it did while its merge was under way; leave this out"},
		{"collective", "a merge has one part, which goes from each member to the next; add an `aggregate` that "
			       "compares several, or leave this out"},
		{"chunks", "there is nothing to choose; leave this out"}, {NULL, NULL}};
	if (plan->reduction.gather)
		read_parts(r, sync, plan, robust);
	for (uint32_t i = 0; never[i].key && !r->diag->set && !(plan->reduction.gather && i > 0); i++)
		if (skep_read_has(r, sync, never[i].key))
			skep_reader_fail(
				r, sync, never[i].key, "sync.%s: with `method: async` %s", never[i].key, never[i].why);
	if (!r->diag->set && plan->on_loss == SKEP_ON_LOSS_RERUN)
		skep_reader_fail(r, sync, "method",
			"sync.method: what a worker had counted is lost with it, and `async` goes on without it: leave out "
			"`on_loss: rerun`, or take `diloco`");
	plan->async.waits = skep_read_has(r, sync, "delayed") && !plan->delayed;
	if (!r->diag->set && plan->async.waits && plan->reduction.gather)
		skep_reader_fail(r, sync, "delayed",
			"sync.delayed: a worker whose part waits for those of others cannot wait for their merge with "
			"microbatches that they wait for; leave this out, or take `aggregate: mean`");
	plan->async.on = plan->delayed = true;
	if (plan->reduction.gather)
		return;
	plan->reduction.collective = SKEP_COLLECTIVE_BROADCAST;
	plan->reduction.chunks = SKEP_SYNC_CHUNKS;
}

/* Refuses what would need all members of a stage to hold the same, or more than one partner. */
static void read_gossip(struct skep_reader *r, const struct skep_yaml_node *sync, struct skep_plan *plan)
{
	const struct {
		bool asked;
		const char *key, *why;
	} never[] = {{plan->delayed, "delayed",
			     "a worker meets another one when the round ends, and waits for it; leave this out"},
		{skep_read_has(r, sync, "mixing"), "mixing",
			"a worker waits for its partner and has nothing of its own to mix; leave this out"},
		{plan->reduction.gather, "aggregate",
			"there are two parts, and nothing to compare them with; leave this out"},
		{skep_plan_compresses(plan), "compression",
			"workers exchange parameters, and would train on rounded ones; take `none`, or `diloco`, which sums "
			"differences"},
		{plan->inner.by_share, "every",
			"a worker knows its partner, and not how many others share the work with it; take a number, or `diloco`"},
		{plan->on_loss == SKEP_ON_LOSS_RERUN, "method",
			"what is computed again may be so on other parameters; leave out `on_loss: rerun`, or take `diloco`"}};
	for (size_t i = 0; i < sizeof never / sizeof never[0] && !r->diag->set; i++)
		if (never[i].asked)
			skep_reader_fail(
				r, sync, never[i].key, "sync.%s: with `method: gossip` %s", never[i].key, never[i].why);
	plan->gossip = true;
}

/* A fixed pipeline runs empty before each step, so an inner step is a flush, or as many as `schedule.accumulate` says. */
static void read_fixed(struct skep_reader *r, const struct skep_yaml_node *sync, int method, struct skep_plan *plan)
{
	const struct {
		bool asked;
		const char *key, *why;
	} never[] = {{plan->pipeline == SKEP_PIPELINE_INTERLEAVED || skep_plan_no_flush(plan), "method",
			     "no fixed pipeline but `gpipe` and `1f1b`; take one of these, or `pipeline: swarm`"},
		{method == METHOD_ASYNC || method == METHOD_GOSSIP, "method",
			"no fixed pipeline; take `pipeline: swarm`"},
		{skep_plan_uneven(plan), "method",
			"`step`, unless all stages have equally many workers: else inner steps of some would be of more "
			"samples than those of others"},
		{plan->inner.by_share, "every", "a number: all pipelines make the same steps, whatever their speed"},
		{skep_read_has(r, sync, "steps"), "steps", "nothing else: all make the same steps; leave this out"},
		{plan->inner.overlap > 0, skep_read_has(r, sync, "overlap_steps") ? "overlap_steps" : "method",
			"`overlap_steps: 0`: a fixed pipeline has run empty before each step, and waits for the sum"},
		{plan->inner.cycle > 0, "every", "a multiple of sync.fragments: all rounds have as many microbatches"},
		{plan->barrier && plan->inner.steps > 1, "every",
			"1: `schedule.barrier` is about one flush in a round"}};
	for (size_t i = 0; i < sizeof never / sizeof never[0] && !r->diag->set; i++)
		if (never[i].asked)
			skep_reader_fail(r, sync, never[i].key, "sync.%s: with `schedule.pipeline: %s` it has to be %s",
				never[i].key, skep_pipeline_name((uint8_t)plan->pipeline), never[i].why);
	if (!r->diag->set)
		plan->accumulate = skep_plan_flushes(plan) * plan->inner.steps;
}

void skep_periodic_read(struct skep_reader *r, const struct skep_yaml_node *sync, struct skep_scenario *s)
{
	static const char *const periodic[] = {"every", "mean_inner_steps", "steps", "outer", "mixing", NULL};
	static const char *const streaming[] = {
		"fragments", "overlap_steps", "overlap_deadline", "fragment_pattern", NULL};
	struct skep_plan *plan = &s->plan;
	int method = skep_read_choice(r, sync, "method", methods, METHOD_STEP);
	const bool stepwise =
		method == METHOD_STEP || method == METHOD_WSP; /* pipelines.c reads the rest of the latter */
	if (stepwise)
		refuse_keys(r, sync, periodic, "diloco`, `streaming`, `async` or `gossip");
	static const char *const gathered[] = {"group_size", NULL};
	if (method != METHOD_STREAMING)
		refuse_keys(r, sync, streaming, "streaming");
	if (method != METHOD_ASYNC || !plan->reduction.gather)
		refuse_keys(r, sync, gathered, "async` and an `aggregate` other than `mean");
	if (stepwise)
		return;
	read_every(r, sync, s);
	if (!r->diag->set && plan->inner.sum_every && (method != METHOD_DILOCO || plan->delayed))
		refuse_list(
			r, sync, method != METHOD_DILOCO ? methods[method] : "delayed: true", method != METHOD_DILOCO);
	read_steps(r, sync, method, plan);
	if (method == METHOD_STREAMING)
		read_fragments(r, sync, plan);
	if (method == METHOD_ASYNC)
		read_async(r, sync, plan, &s->robust);
	if (method == METHOD_GOSSIP)
		read_gossip(r, sync, plan);
	read_outer(r, sync, method, &s->outer);
	s->mixing = (float)skep_read_number(r, sync, "mixing", 0, 1, 0.5);
	if (!r->diag->set && !plan->delayed && skep_read_has(r, sync, "mixing"))
		skep_reader_fail(r, sync, "mixing",
			"sync.mixing: a worker waits for the outer step and has nothing of its own to mix with it; add "
			"`%s`, or leave this out",
			method == METHOD_STREAMING ? "overlap_steps: 1" : "delayed: true");
	if (skep_plan_fixed(plan))
		read_fixed(r, sync, method, plan);
	if (!r->diag->set)
		check_batch(r, sync, s);
}

/* What is read later, and is of one period. */
static void check_list(struct skep_reader *r, const struct skep_yaml_node *sync, const struct skep_scenario *s)
{
	const struct {
		bool asked;
		const char *what, *why;
	} never[] = {{s->plan.eager, "sync.overlap",
			     "sums begin beside the last backward pass of a round, and some stages have none in it"},
		{s->plan.tied > 0, "a head that is tied to its embedding",
			"the first stage and the last one have to make the same steps on their copies of the table"},
		{skep_plan_has_candidates(&s->plan), "train.init.candidates",
			"candidates are compared where all stages have summed"},
		{s->arithmetic == SKEP_ARITHMETIC_SCALING_LAW, "train.arithmetic: law",
			"a law knows one period for all"}};
	for (size_t i = 0; i < sizeof never / sizeof never[0] && s->plan.inner.sum_every && !r->diag->set; i++)
		if (never[i].asked)
			skep_reader_fail(r, sync, "every",
				"sync.every: a number for each stage does not go with %s: %s; take one for all",
				never[i].what, never[i].why);
}

void skep_periodic_check(struct skep_reader *r, const struct skep_yaml_node *sync, const struct skep_scenario *s)
{
	check_list(r, sync, s);
	uint64_t least = UINT64_MAX;
	uint32_t batch = skep_plan_periodic(&s->plan) ? skep_plan_inner_batch(&s->plan) : 0,
		 owners = skep_plan_serving(s, 0);
	if (!r->diag->set && s->plan.inner.fixed && batch < owners)
		skep_reader_fail(r, sync, "steps",
			"sync.steps: an inner step of %u microbatch%s has none for each of the %u workers of the first stage; "
			"take a larger schedule.global_batch or a smaller schedule.microbatch, or `shared`",
			batch, batch == 1 ? "" : "es", owners);
	for (uint32_t stage = 0; stage < s->plan.stages; stage++)
		if (skep_plan_trained(&s->plan, stage) > 0 && skep_plan_trained(&s->plan, stage) < least)
			least = skep_plan_trained(&s->plan, stage);
	if (!r->diag->set && skep_plan_fragments(&s->plan) > least)
		skep_reader_fail(r, sync, "fragments",
			"sync.fragments: %u fragments of a stage that has %llu parameters%s; take fewer",
			s->plan.inner.fragments, (unsigned long long)least, s->model.frozen > 0 ? " to train" : "");
	for (uint32_t stage = 0; stage < s->plan.stages && s->plan.inner.strided && !r->diag->set; stage++) {
		uint32_t first, layers;
		skep_model_cut(&s->model, s->plan.stages, stage, &first, &layers);
		if (!s->stage[stage].fragment_first)
			skep_reader_fail(r, sync, "fragment_pattern",
				"sync.fragment_pattern: %u fragments of whole layers with parameters of their own, of stage %u, "
				"which has %u layers; take fewer, or `sequential`",
				s->plan.inner.fragments, stage, layers);
	}
}

const char *skep_periodic_method(const struct skep_plan *plan)
{
	if (plan->gossip)
		return methods[METHOD_GOSSIP];
	bool streams = skep_plan_fragments(plan) > 1 || plan->inner.overlap > 0;
	return methods[plan->async.on ? METHOD_ASYNC : streams ? METHOD_STREAMING : METHOD_DILOCO];
}

void skep_periodic_refuse(struct skep_reader *r, const struct skep_yaml_node *map, const char *group, const char *key,
	const char *why, const struct skep_scenario *s)
{
	if (!r->diag->set && skep_plan_periodic(&s->plan))
		skep_reader_fail(r, map, key, "%s.%s: not with `sync.method: %s`: %s", group, key,
			skep_periodic_method(&s->plan), why);
}

void skep_periodic_refuse_async(struct skep_reader *r, const struct skep_yaml_node *map, const char *group,
	const char *key, const char *why, const struct skep_scenario *s)
{
	if (s->plan.async.on)
		skep_periodic_refuse(r, map, group, key, why, s);
}

void skep_periodic_refuse_gossip(struct skep_reader *r, const struct skep_yaml_node *map, const char *group,
	const char *key, const char *why, const struct skep_scenario *s)
{
	if (s->plan.gossip)
		skep_periodic_refuse(r, map, group, key, why, s);
}
