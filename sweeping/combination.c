/* SPDX-License-Identifier: Apache-2.0
 *
 * combination.c - see combination.h.
 *
 * Keeps true: a run whose identity is not the one that was checked is refused: a file has changed meanwhile, or is another one
 * on this host.
 */
#include "sweeping/combination.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "analysis/store/store_sweep.h"
#include "analysis/summary/recording.h"
#include "core/sums.h"
#include "planning/problem/resolve.h"
#include "planning/trial/simulate.h"
#include "scenarios/plan/loss.h"
#include "scenarios/plan/plan.h"

/* ---- the scenario ------------------------------------------------------------------------------------------------ */

static void free_sets(char **set, uint32_t sets)
{
	for (uint32_t i = 0; set != NULL && i < sets; i++)
		free(set[i]);
	free(set);
}

/* NULL: no memory. */
static char **all_sets(const struct skep_sweep *sweep, uint32_t number, uint32_t *ret_sets)
{
	const struct skep_sweep_request *given = sweep->request;
	uint32_t seeds = sweep->vary.seeds > 0 ? sweep->vary.seeds : 1, sets = given->sets + sweep->vary.keys;
	char **set = calloc(sets + 1, sizeof *set);
	bool ok = set != NULL;
	for (uint32_t i = 0; ok && i < given->sets; i++)
		ok = (set[i] = strdup(given->set[i])) != NULL;
	for (uint32_t i = 0; ok && i < sweep->vary.keys; i++) {
		char **to = &set[given->sets + i];
		const char *value = skep_vary_value(&sweep->vary, number / seeds, i);
		if (asprintf(to, "%s=%s", sweep->vary.key[i].key, value) < 0)
			ok = (*to = NULL) != NULL;
	}
	*ret_sets = sets;
	if (!ok)
		free_sets(set, sets);
	return ok ? set : NULL;
}

/* A value that --vary gave is named so in an error, not as the --set that it became. */
static void name_vary(const struct skep_sweep *sweep, struct skep_diag *diag)
{
	static const char set[] = "--set ";
	const size_t length = sizeof set - 1;
	char rest[sizeof diag->file];
	if (strncmp(diag->file, set, length) != 0)
		return;
	for (uint32_t i = 0; i < sweep->vary.keys; i++) {
		size_t key = strlen(sweep->vary.key[i].key);
		if (strncmp(diag->file + length, sweep->vary.key[i].key, key) != 0 || diag->file[length + key] != '=')
			continue;
		memcpy(rest, diag->file + length, sizeof rest - length);
		snprintf(diag->file, sizeof diag->file, "--vary %.*s", (int)(sizeof diag->file - sizeof set - 2), rest);
		if (strncmp(diag->text, set, length) == 0 && strlen(diag->text) + 1 < sizeof diag->text) {
			memmove(diag->text + length + 1, diag->text + length, strlen(diag->text + length) + 1);
			memcpy(diag->text, "--vary ", length + 1);
			diag->caret++;
		}
		return;
	}
}

static bool read_combination(
	const struct skep_sweep *sweep, uint32_t number, struct skep_scenario *ret, struct skep_diag *reterr)
{
	struct skep_scenario_options options = {.has_seed = sweep->request->has_seed, .seed = sweep->request->seed};
	char **set = all_sets(sweep, number, &options.sets);
	bool read = false;
	options.set = (const char *const *)set;
	if (skep_vary_seed(&sweep->vary, number, &options.seed))
		options.has_seed = true;
	if (set != NULL)
		read = skep_scenario_read_text(sweep->path, sweep->text, sweep->text_bytes, &options, ret, reterr) &&
		       skep_resolve(ret, &options, reterr);
	else
		skep_fail(reterr, "not enough memory to read the scenario");
	if (!read)
		name_vary(sweep, reterr);
	free_sets(set, options.sets);
	return read;
}

bool skep_sweep_fails_alone(const struct skep_sweep *sweep, const struct skep_diag *error)
{
	struct skep_scenario scenario;
	struct skep_diag diag = {0};
	const struct skep_scenario_options options = {.set = sweep->request->set,
		.sets = sweep->request->sets,
		.has_seed = sweep->request->has_seed,
		.seed = sweep->request->seed};
	if (skep_scenario_read_text(sweep->path, sweep->text, sweep->text_bytes, &options, &scenario, &diag)) {
		skep_scenario_finish(&scenario);
		return false;
	}
	return diag.line == error->line && strcmp(diag.file, error->file) == 0 &&
	       strcmp(diag.message, error->message) == 0;
}

/* What is known before: the machines; with real arithmetic also what each worker keeps of its stage. */
static uint64_t memory_of(const struct skep_scenario *scenario)
{
	const struct skep_plan *plan = &scenario->plan;
	double bytes = 0;
	for (uint32_t i = 0; i <= plan->workers; i++)
		bytes += (double)skep_node_size(plan, i);
	for (uint32_t i = 0; scenario->arithmetic == SKEP_ARITHMETIC_REAL && i < plan->workers; i++)
		if (plan->first_stage_of[i] != SKEP_NO_STAGE)
			bytes += scenario->memory_bytes[plan->first_stage_of[i]];
	return (uint64_t)bytes;
}

/* ---- check ------------------------------------------------------------------------------------------------------- */

static_assert(SKEP_SWEEP_QUANTITIES == SKEP_LAW_AXES + 1, "the model is behind the axes of a law");

static void check_law(const struct skep_scenario *s, struct skep_sweep_reply *ret)
{
	ret->leaves = skep_loss_leaves(s, ret->asked);
	if (ret->leaves == 0)
		return;
	bool powers = s->law->terms > 0;
	for (uint32_t i = 0; i < SKEP_LAW_AXES; i++) {
		ret->fitted[i][0] = s->law->least[i];
		ret->fitted[i][1] = s->law->most[i];
	}
	ret->asked[SKEP_LAW_AXES] = powers ? s->law->size : NAN;
	ret->fitted[SKEP_LAW_AXES][0] = powers ? s->law->size_least : NAN;
	ret->fitted[SKEP_LAW_AXES][1] = powers ? s->law->size_most : NAN;
	memcpy(ret->law, s->law->path, sizeof ret->law);
	memcpy(ret->law_model, s->law->model, sizeof ret->law_model);
}

/* Steps of which a run may make any multiple: of a round, or of as many as have all lengths, where rounds differ, or in which all
 * stages sum, where they have periods of their own. */
static uint32_t cycle_of(const struct skep_plan *plan)
{
	uint32_t cycle = skep_plan_cycle(plan), all = (uint32_t)skep_plan_steps_before(plan, cycle);
	return !plan->inner.sum_every && all % cycle == 0 ? all / cycle : all;
}

static void check(const struct skep_sweep *sweep, uint32_t number, struct skep_sweep_reply *ret)
{
	struct skep_scenario scenario;
	ret->ok = read_combination(sweep, number, &scenario, &ret->error);
	if (!ret->ok)
		return;
	ret->identity = skep_sweep_identity(&scenario);
	ret->seed = scenario.seed;
	ret->memory_bytes = memory_of(&scenario);
	check_law(&scenario, ret);
	ret->cycle = cycle_of(&scenario.plan);
	ret->steps = (uint32_t)skep_plan_all_steps(&scenario);
	ret->asked_steps = scenario.until_steps;
	ret->samples = (uint64_t)ret->steps * (scenario.batch / skep_plan_most_steps(&scenario.plan));
	snprintf(ret->name, sizeof ret->name, "%s", scenario.name);
	skep_scenario_finish(&scenario);
}

/* ---- run --------------------------------------------------------------------------------------------------------- */

static bool simulate(const struct skep_sweep *sweep, const struct skep_scenario *scenario, struct skep_store *store,
	struct skep_sweep_reply *ret)
{
	struct skep_summary summary;
	const struct skep_simulate_options options = {.store = store, .details = sweep->request->details};
	if (!skep_simulate(scenario, &options, &summary, &ret->error))
		return skep_fail(&ret->error,
			"not enough memory to simulate this combination: take fewer processes with --jobs");
	ret->done = summary.ok;
	if (!summary.ok)
		snprintf(ret->failure, sizeof ret->failure, "%s",
			summary.failure[0] != '\0' ? summary.failure : skep_recording_loss(&scenario->plan));
	ret->throughput = summary.throughput_samples_per_s;
	ret->time_s = summary.time_s;
	ret->loss = summary.final_loss;
	return true;
}

/* The reply and, behind it, the image. */
static void run(const struct skep_sweep *sweep, const struct skep_process_pool_job *job, struct skep_sweep_reply *ret,
	void **ret_image, size_t *ret_bytes)
{
	struct skep_scenario scenario;
	if (!read_combination(sweep, job->number, &scenario, &ret->error))
		return;
	struct skep_store *store = NULL;
	if (skep_sweep_identity(&scenario) != job->word)
		skep_fail(&ret->error, "a file of the scenario is not what it was when the sweep began");
	else if ((store = skep_store_open_memory(&ret->error)) != NULL) {
		skep_scenario_draw(&scenario);
		ret->ok = simulate(sweep, &scenario, store, ret);
	}
	if (ret->ok)
		ret->ok = skep_sweep_image(store, ret_image, ret_bytes, &ret->error);
	skep_store_close(store);
	skep_scenario_finish(&scenario);
	struct rusage usage;
	if (getrusage(RUSAGE_SELF, &usage) == 0)
		ret->memory_bytes = (uint64_t)usage.ru_maxrss << 10;
}

bool skep_sweep_work_on(void *context, const struct skep_process_pool_job *job, void **ret, uint64_t *ret_count)
{
	struct skep_sweep_reply *reply = calloc(1, sizeof *reply);
	void *image = NULL;
	size_t bytes = 0;
	if (reply == NULL)
		return false;
	if (job->kind == SKEP_SWEEP_CHECK)
		check(context, job->number, reply);
	else
		run(context, job, reply, &image, &bytes);
	char *answer = realloc(reply, sizeof *reply + bytes);
	if (answer == NULL) {
		free(reply);
		skep_sweep_image_free(image);
		return false;
	}
	if (bytes > 0)
		memcpy(answer + sizeof *reply, image, bytes);
	skep_sweep_image_free(image);
	*ret = answer;
	*ret_count = sizeof *reply + bytes;
	return true;
}
