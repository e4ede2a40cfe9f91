/* SPDX-License-Identifier: Apache-2.0
 *
 * memory_advice.c - refuses a stage that does not fit, with the changes that would make it fit: each is tried by itself, the
 * nearest value of it that suffices, and with which the scenario can be read.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/schedule/pipelines.h"
#include "scenarios/plan/memory.h"

enum { STAGES_TRIED = 256, READS_MOST = 16 };
#define GB 1e9

struct advice {
	char text[256];
	bool any;
	const char *scenario; /* its file, with what replaces values of it; NULL: no memory for it */
	uint32_t reads;       /* of the key that is tried */
	const struct skep_memory_reading *reading;
	const struct skep_diag *diag; /* beside which changes are diagnosed */
};

/* The first worker that cannot hold its stage; of a spare the largest stage. SKEP_NO_INDEX: all can. */
static uint32_t overfull(const struct skep_scenario *s, uint32_t *ret_stage)
{
	uint32_t largest = 0;
	for (uint32_t stage = 1; stage < s->plan.stages; stage++)
		if (s->memory_bytes[stage] > s->memory_bytes[largest])
			largest = stage;
	for (uint32_t i = 0; i < s->plan.workers; i++) {
		uint32_t gpu = s->topology.machine[i].gpu;
		*ret_stage = s->first_stage_of[i] == SKEP_NO_STAGE ? largest : s->first_stage_of[i];
		if (!skep_memory_fits(s, &s->memory[(size_t)gpu * s->plan.stages + *ret_stage], gpu))
			return i;
	}
	return SKEP_NO_INDEX;
}

/* Has the scenario nothing against the value, and do its stages fit whom they fall to then? */
static bool can_be(struct advice *a, const struct skep_scenario *s, const char *key, const char *value)
{
	char text[96];
	const char *const set = text;
	const struct skep_scenario_options options = {
		.set = &set, .sets = 1, .any_memory = true, .root = s->files.root, .folder = s->files.folder};
	struct skep_scenario changed;
	struct skep_diag diag = skep_diag_beside(a->diag);
	uint32_t stage;
	if (a->scenario == NULL || a->reads++ >= READS_MOST)
		return false;
	snprintf(text, sizeof text, "%s=%s", key, value);
	bool can = a->reading->read(s->path, a->scenario, strlen(a->scenario), &options, &changed, &diag);
	can = can && (changed.unresolved || overfull(&changed, &stage) == SKEP_NO_INDEX);
	a->reading->finish(&changed);
	return can;
}

/* False: another value may do. */
static bool offer(struct advice *a, const struct skep_scenario *s, const char *key, const char *value)
{
	size_t used = strlen(a->text);
	if (!can_be(a, s, key, value))
		return false;
	snprintf(a->text + used, sizeof a->text - used, "%s%s: %s", a->any ? ", " : "", key, value);
	a->any = true;
	return true;
}

static bool offer_number(struct advice *a, const struct skep_scenario *s, const char *key, uint32_t value)
{
	char text[12];
	snprintf(text, sizeof text, "%u", value);
	return offer(a, s, key, text);
}

/* ---- what would help -------------------------------------------------------------------------------------------- */

/* A list of what each stage does says how many there are. Without a flush the versions that a stage keeps depend on who serves
 * it, so the scenario alone says it. */
static void try_stages(struct advice *a, const struct skep_scenario *s)
{
	struct skep_memory_terms terms = skep_memory_terms_of(s);
	uint32_t parts = s->model.layers / skep_plan_model_chunks(&s->plan);
	uint32_t most = parts < s->plan.workers ? parts : s->plan.workers;
	bool listed = s->plan.reduction.codecs != NULL || s->plan.inner.sum_every != NULL;
	for (terms.stages++; !listed && terms.stages <= most && terms.stages <= STAGES_TRIED; terms.stages++)
		if ((skep_plan_no_flush(&s->plan) || skep_memory_all_fit(s, &terms)) &&
			offer_number(a, s, "model.stages", terms.stages))
			return;
}

/* More GPUs of each machine. */
static void try_tensor_parallel(struct advice *a, const struct skep_scenario *s)
{
	uint32_t most = s->tensor_parallel;
	for (uint32_t gpu = 0; s->tensor_parallel > 0 && gpu < s->topology.gpus; gpu++)
		if (s->topology.gpu[gpu].board.gpus > most)
			most = s->topology.gpu[gpu].board.gpus;
	for (uint32_t gpus = s->tensor_parallel + 1; gpus <= most; gpus++)
		if (offer_number(a, s, "cluster.tensor_parallel", gpus))
			return;
}

static void try_zero(struct advice *a, const struct skep_scenario *s)
{
	for (uint32_t zero = s->zero + 1; zero <= 3; zero++)
		if (offer_number(a, s, "sync.zero", zero))
			return;
}

static void try_mixed(struct advice *a, const struct skep_scenario *s)
{
	if (!s->compute.mixed)
		offer(a, s, "cluster.compute.mixed", "true");
}

/* Of the divisors of the batch the largest that suffices. */
static void try_microbatch(struct advice *a, const struct skep_scenario *s)
{
	struct skep_memory_terms terms = skep_memory_terms_of(s);
	for (uint32_t parts = 2; parts <= s->samples; parts++) {
		if (s->samples / parts == terms.samples || s->batch % (s->samples / parts) != 0)
			continue;
		terms.samples = s->samples / parts;
		if (skep_memory_all_fit(s, &terms) && offer_number(a, s, "schedule.microbatch", terms.samples))
			return;
	}
}

/* What is held grows with what is in flight. */
static void try_in_flight(struct advice *a, const struct skep_scenario *s)
{
	struct skep_memory_terms terms = skep_memory_terms_of(s);
	uint32_t fits = 0, fails = terms.in_flight;
	while (fails - fits > 1) {
		terms.in_flight = fits + (fails - fits) / 2;
		if (skep_memory_all_fit(s, &terms))
			fits = terms.in_flight;
		else
			fails = terms.in_flight;
	}
	if (fits > 0)
		offer_number(a, s, "schedule.in_flight", fits);
}

/* The fewest flushes that suffice, of equally many microbatches; interleaved pipelines take these in groups. */
static void try_accumulate(struct advice *a, const struct skep_scenario *s)
{
	struct skep_memory_terms terms = skep_memory_terms_of(s);
	uint32_t share = skep_plan_share(&s->plan, 0);
	uint32_t groups = s->plan.pipeline == SKEP_PIPELINE_INTERLEAVED ? share / s->plan.stages : share;
	for (terms.flushes++; terms.flushes <= groups; terms.flushes++) {
		if (groups % terms.flushes != 0 || !skep_memory_all_fit(s, &terms))
			continue;
		if (offer_number(a, s, "schedule.accumulate", terms.flushes))
			return;
	}
}

static void try_schedule(struct advice *a, const struct skep_scenario *s)
{
	if (!skep_plan_fixed(&s->plan)) /* whose schedule says it */
		try_in_flight(a, s);
	else if (!skep_plan_no_flush(&s->plan) && !s->plan.barrier)
		try_accumulate(a, s);
}

static void try_checkpoints(struct advice *a, const struct skep_scenario *s)
{
	struct skep_memory_terms terms = skep_memory_terms_of(s);
	static const char *const words[] = {"false", "true", "all"};
	while (terms.checkpoint_activations < SKEP_CHECKPOINTING_ALL) {
		terms.checkpoint_activations++;
		if (!skep_memory_all_fit(s, &terms))
			continue;
		if (offer(a, s, "schedule.checkpoint_activations", words[terms.checkpoint_activations]))
			return;
	}
}

static void try_offload(struct advice *a, const struct skep_scenario *s)
{
	struct skep_memory_terms terms = skep_memory_terms_of(s);
	for (uint32_t gpu = 0; gpu < s->topology.gpus; gpu++)
		if (!(s->topology.gpu[gpu].board.host_Bps > 0))
			return;
	if (s->offload != SKEP_OFFLOAD_NONE)
		return;
	terms.offload = SKEP_OFFLOAD_OPTIMIZER;
	if (skep_memory_all_fit(s, &terms) && offer(a, s, "train.optimizer.offload", "optimizer"))
		return;
	terms.offload = SKEP_OFFLOAD_GRADIENTS;
	if (skep_memory_all_fit(s, &terms))
		offer(a, s, "train.optimizer.offload", "gradients");
}

static void advise(struct advice *a, const struct skep_scenario *s)
{
	static void (*const tries[])(struct advice *, const struct skep_scenario *) = {try_stages, try_microbatch,
		try_checkpoints, try_schedule, try_offload, try_tensor_parallel, try_zero, try_mixed};
	for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
		a->reads = 0;
		tries[i](a, s);
	}
}

static void print(const struct advice *a, char *ret, size_t size)
{
	const char *help = a->any ? "any of these would do: "
	                          : "no single change that was tried would do: take smaller parts of all";
	snprintf(ret, size, "%s%s", help, a->text);
}

void skep_memory_advise(const struct skep_scenario *s, const struct skep_memory_reading *reading,
	const struct skep_diag *diag, char *ret, size_t size)
{
	struct advice a = {.scenario = s->text, .reading = reading, .diag = diag};
	advise(&a, s);
	print(&a, ret, size);
}

/* ---- refusal ---------------------------------------------------------------------------------------------------- */

void skep_memory_check(struct skep_reader *r, const struct skep_yaml_node *model, const struct skep_scenario *s,
	const struct skep_memory_reading *reading)
{
	uint32_t stage, worker = overfull(s, &stage);
	if (worker == SKEP_NO_INDEX || r->diag->set)
		return;
	char *text = skep_yaml_print(r->yaml);
	struct advice a = {.scenario = text, .reading = reading, .diag = r->diag};
	uint32_t gpu = s->topology.machine[worker].gpu;
	const struct skep_gpu *type = &s->topology.gpu[gpu];
	const struct skep_memory *m = &s->memory[(size_t)gpu * s->plan.stages + stage];
	advise(&a, s);
	free(text);
	char help[SKEP_MEMORY_ADVICE_BYTES];
	print(&a, help, sizeof help);
	if (m->total > type->memory_bytes)
		skep_reader_fail(r, model, "stages",
			"stage %u needs %.4g GB on worker %u, a %.31s with %.4g GB: weights %.3g, gradients %.3g, "
			"optimizer %.3g, %u microbatches in flight %.3g, buffers %.3g; %s",
			stage, m->total / GB, worker, type->name, type->memory_bytes / GB, m->weights / GB,
			m->gradients / GB, m->optimizer / GB, m->held, m->activations / GB, m->buffers / GB, help);
	else
		skep_reader_fail(r, model, "stages",
			"stage %u needs %.4g GB of host memory for what is offloaded, the machine of worker %u has %.4g "
			"GB; %s",
			stage, m->host / GB, worker, type->board.host_bytes / GB, help);
}
