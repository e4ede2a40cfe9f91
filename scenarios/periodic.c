/* SPDX-License-Identifier: Apache-2.0
 *
 * periodic.c - see periodic.h. DiLoCo (Douillard et al. 2023) and its defaults: outer Nesterov, rate 0.7, momentum 0.9.
 *
 * Keeps true: without `method: diloco` nothing in the plan says so, and its keys are refused, not ignored.
 */
#include "scenarios/periodic.h"

#include <string.h>

#include "scenarios/layout.h"

enum {
	EVERY_MAX = 100000,
	MICROBATCHES_MAX = 1 << 20 /* per round, as in scenario.c */
};

static const char *const methods[] = {"step", "diloco", NULL};
static const char *const optimizers[] = {"nesterov", "sgd", NULL};

/* Keys that mean something with `method: diloco` alone. */
static void refuse_keys(struct skep_reader *r, const struct skep_yaml_node *sync)
{
	static const char *const keys[] = {"every", "mean", "outer", "mixing"};
	for (size_t i = 0; i < sizeof keys / sizeof *keys && !r->diag->set; i++)
		if (skep_read_has(r, sync, keys[i]))
			skep_reader_fail(r, sync, keys[i], "sync.%s: comes with `method: diloco` alone", keys[i]);
}

static void read_every(struct skep_reader *r, const struct skep_yaml_node *sync, struct skep_plan *plan)
{
	const char *text = skep_read_string(r, sync, "every", NULL);
	plan->inner_by_share = !r->diag->set && strcmp(text, "auto") == 0;
	if (plan->inner_by_share)
		plan->inner_steps = (uint32_t)skep_read_integer(r, sync, "mean", 1, EVERY_MAX, INT64_MIN);
	else if (!r->diag->set)
		plan->inner_steps = (uint32_t)skep_read_integer(r, sync, "every", 1, EVERY_MAX, INT64_MIN);
	if (!r->diag->set && !plan->inner_by_share && skep_read_has(r, sync, "mean"))
		skep_reader_fail(r, sync, "mean",
			"sync.mean: comes with `every: auto` alone, where each worker makes as many inner steps as it "
			"can in the time of a round; with `every: %u` all make that many",
			plan->inner_steps);
}

static void read_outer(struct skep_reader *r, const struct skep_yaml_node *sync, struct skep_optimizer *ret)
{
	const struct skep_yaml_node *map = skep_read_map(r, sync, "outer", false);
	bool plain = skep_read_choice(r, map, "optimizer", optimizers, 0) == 1;
	*ret = (struct skep_optimizer){.kind = plain ? SKEP_OPTIMIZER_SGD : SKEP_OPTIMIZER_NESTEROV};
	ret->learning_rate = (float)skep_read_number(r, map, "lr", 1e-12, 1e3, plain ? 1 : 0.7);
	ret->momentum = (float)skep_read_number(r, map, "momentum", 0, 0.999999, plain ? 0 : 0.9);
	skep_reader_close_map(r, map);
}

static void check_batch(struct skep_reader *r, const struct skep_yaml_node *sync, struct skep_scenario *s)
{
	uint64_t microbatches = (uint64_t)s->plan.microbatches * s->plan.inner_steps;
	uint64_t samples = microbatches * s->samples;
	if (microbatches > MICROBATCHES_MAX || samples > UINT32_MAX)
		skep_reader_fail(r, sync, s->plan.inner_by_share ? "mean" : "every",
			"sync.every: %u inner steps of %u microbatches are %llu in a round, at most %d; take fewer, or "
			"a larger `microbatch`",
			s->plan.inner_steps, s->plan.microbatches, (unsigned long long)microbatches, MICROBATCHES_MAX);
	s->plan.microbatches = (uint32_t)microbatches;
	s->batch = (uint32_t)samples;
}

void skep_periodic_read(struct skep_reader *r, const struct skep_yaml_node *sync, struct skep_scenario *s)
{
	struct skep_plan *plan = &s->plan;
	if (skep_read_choice(r, sync, "method", methods, 0) == 0) {
		refuse_keys(r, sync);
		return;
	}
	read_every(r, sync, plan);
	read_outer(r, sync, &s->outer);
	s->mixing = (float)skep_read_number(r, sync, "mixing", 0, 1, 0.5);
	if (!r->diag->set && !plan->delayed && skep_read_has(r, sync, "mixing"))
		skep_reader_fail(r, sync, "mixing",
			"sync.mixing: a worker waits for the outer step and has nothing of its own to mix with it; add "
			"`delayed: true`, or leave this out");
	if (!r->diag->set && skep_plan_fixed(plan))
		skep_reader_fail(r, sync, "method",
			"sync.method: with `diloco` workers step while others of their pipeline still have microbatches "
			"under way, and a fixed pipeline runs empty before each step: take `pipeline: swarm`");
	if (!r->diag->set)
		check_batch(r, sync, s);
}

void skep_periodic_refuse(struct skep_reader *r, const struct skep_yaml_node *map, const char *group, const char *key,
	const char *why, const struct skep_scenario *s)
{
	if (!r->diag->set && skep_plan_periodic(&s->plan))
		skep_reader_fail(r, map, key, "%s.%s: not with `sync.method: diloco`: %s", group, key, why);
}

/* ---- what it costs -------------------------------------------------------------------------------------------- */

/* Reads and clears the sum; reads and writes parameters and moments. */
double skep_periodic_inner_bytes(const struct skep_scenario *s, double parameters)
{
	return 2 * parameters + 2 * (1 + skep_optimizer_moments(&s->optimizer)) * parameters;
}

/* Reads both kinds of parameters, writes the accumulator. */
double skep_periodic_pseudo_bytes(double parameters)
{
	return 3 * parameters;
}

/* Writes the inner parameters; to mix them it reads them first. */
double skep_periodic_follow_bytes(const struct skep_scenario *s, double parameters)
{
	if (!skep_plan_periodic(&s->plan))
		return 0;
	return s->plan.delayed && s->mixing > 0 ? 2 * parameters : parameters;
}

/* ---- skep check ----------------------------------------------------------------------------------------------- */

void skep_periodic_print(const struct skep_scenario *s, FILE *out)
{
	const struct skep_plan *plan = &s->plan;
	if (!skep_plan_periodic(plan))
		return;
	uint32_t samples = s->batch / plan->inner_steps;
	fprintf(out, "  periodic  diloco: a round is %u inner step%s of %u sample%s; %s\n", plan->inner_steps,
		skep_plural(plan->inner_steps), samples, skep_plural(samples),
		plan->inner_by_share ? "a worker makes as many as it counts its part of, a fast one more"
				     : "each worker makes so many, on what it is sent");
	fprintf(out, "            outer optimizer %s, lr %g, momentum %g",
		s->outer.kind == SKEP_OPTIMIZER_SGD ? "sgd" : "nesterov", (double)s->outer.learning_rate,
		(double)s->outer.momentum);
	if (plan->delayed)
		fprintf(out, "; %g of what a worker did meanwhile is kept", (double)s->mixing);
	fprintf(out, "\n");
}

void skep_periodic_add_json(const struct skep_scenario *s, cJSON *root)
{
	const struct skep_plan *plan = &s->plan;
	cJSON_AddNumberToObject(root, "steps", (double)plan->rounds * skep_periodic_steps(plan));
	cJSON_AddNumberToObject(root, "samples_per_step", s->batch / skep_periodic_steps(plan));
	if (!skep_plan_periodic(plan)) {
		cJSON_AddNullToObject(root, "periodic");
		return;
	}
	cJSON *periodic = cJSON_AddObjectToObject(root, "periodic");
	cJSON_AddStringToObject(periodic, "method", "diloco");
	cJSON_AddNumberToObject(periodic, "inner_steps", plan->inner_steps);
	cJSON_AddStringToObject(periodic, "steps_by", plan->inner_by_share ? "share" : "progress");
	cJSON_AddStringToObject(periodic, "outer_optimizer", s->outer.kind == SKEP_OPTIMIZER_SGD ? "sgd" : "nesterov");
	cJSON_AddNumberToObject(periodic, "outer_learning_rate", (double)s->outer.learning_rate);
	cJSON_AddNumberToObject(periodic, "outer_momentum", (double)s->outer.momentum);
	cJSON_AddNumberToObject(periodic, "mixing", plan->delayed ? (double)s->mixing : 0);
}
