/* SPDX-License-Identifier: Apache-2.0
 *
 * resume.c - see resume.h. Samples of a microbatch, learning rates, validations and the rounds of checkpoints depend
 * on the number of the round alone. So a run is continued by a plan that begins with another round than 0.
 */
#include "scenarios/resume/resume.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/outputs.h"
#include "base/reader.h"
#include "base/yaml/settings.h"
#include "models/checkpoint/checkpoint_folder.h"
#include "scenarios/read/job.h"
#include "scenarios/shard/shard.h"

#define fail(file, ...) (skep_diag_set(reterr, file, 0, 0, NULL, __VA_ARGS__), false)

/* ---- what it is learnt from ------------------------------------------------------------------------------------- */

enum { LEARNT_FROM = 4, SCENARIO_PATH_BYTES = 600, SCENARIO_BYTES_MAX = 1 << 24 };

static void list_files(const struct skep_scenario *s, struct skep_learnt_from ret[LEARNT_FROM])
{
	ret[0] = (struct skep_learnt_from){"model", s->model.path};
	ret[1] = (struct skep_learnt_from){"data", s->data_path};
	ret[2] = (struct skep_learnt_from){"validation", s->validation_path};
	ret[3] = (struct skep_learnt_from){"weights", s->weights_path}; /* of several files: their index */
}

static void path_of_scenario(const struct skep_scenario *s, char ret[SCENARIO_PATH_BYTES])
{
	snprintf(ret, SCENARIO_PATH_BYTES, "%.560s/scenario.yaml", s->checkpoint_to);
}

static bool note_scenario(const struct skep_scenario *s, struct skep_diag *reterr)
{
	struct skep_outputs outputs = {.diag = reterr};
	char path[SCENARIO_PATH_BYTES];
	path_of_scenario(s, path);
	FILE *file = skep_outputs_begin(&outputs, path);
	if (file != NULL)
		fputs(s->text, file);
	return skep_outputs_commit(&outputs);
}

bool skep_resume_note_files(const struct skep_scenario *scenario, struct skep_diag *reterr)
{
	struct skep_learnt_from from[LEARNT_FROM];
	list_files(scenario, from);
	return skep_checkpoints_note_files(scenario->checkpoint_to, from, LEARNT_FROM, reterr) &&
	       note_scenario(scenario, reterr);
}

/* "0.01", or "not set". */
static const char *value_or_none(const char *value)
{
	return value[0] != '\0' ? value : "not set";
}

void skep_resume_differs(
	const struct skep_scenario *scenario, const struct skep_diag *diag, char ret[SKEP_RESUME_DIFFERS_BYTES])
{
	char path[SCENARIO_PATH_BYTES], *text = NULL, more[32] = "";
	size_t size;
	struct skep_differences d;
	struct skep_diag unreadable = skep_diag_beside(diag);
	ret[0] = '\0';
	path_of_scenario(scenario, path);
	if (scenario->checkpoint_to[0] == '\0' || !skep_file_read(path, SCENARIO_BYTES_MAX, &text, &size, &unreadable))
		return;
	skep_settings_compare_written(scenario->text, text, skep_job_counts, &d);
	free(text);
	if (d.count > 1)
		snprintf(more, sizeof more, ", and %zu more", d.count - 1);
	if (d.count > 0)
		snprintf(ret, SKEP_RESUME_DIFFERS_BYTES, "; %s is %s, and was %s%s", d.item[0].key,
			value_or_none(d.item[0].first), value_or_none(d.item[0].second), more);
}

static bool same_files(const struct skep_scenario *s, struct skep_diag *reterr)
{
	struct skep_learnt_from from[LEARNT_FROM];
	list_files(s, from);
	const struct skep_learnt_from *other = skep_checkpoints_other_file(s->checkpoint_to, from, LEARNT_FROM);
	return other == NULL ||
	       fail(other->path,
		       "is not the %s%s that the states in %.400s were learnt from, though it has its name: put "
		       "that one back, or begin anew with another checkpoint.to",
		       strcmp(other->what, "weights") == 0 ? "file of " : "", other->what, s->checkpoint_to);
}

/* ---- which version --------------------------------------------------------------------------------------------------- */

static bool choose(
	const struct skep_scenario *s, struct skep_checkpoints *list, struct skep_resume *ret, struct skep_diag *reterr)
{
	char why[512], differs[SKEP_RESUME_DIFFERS_BYTES] = "";
	uint32_t parts = skep_shard_parts(s);
	if (!skep_checkpoints_pass_over(s->checkpoint_to, s->job, parts, list))
		return fail(s->checkpoint_to, "not enough memory");
	if (list->damaged[0] != '\0' && list->versions == 0)
		return fail(list->damaged,
			"is no checkpoint, or damaged, and of no version before it the states of all %u stages are whole: "
			"remove it to begin anew",
			s->plan.stages);
	ret->nothing = list->versions == 0;
	bool other_parts = list->beyond > 0 || (ret->nothing && list->files > list->foreign + list->older);
	if (other_parts && skep_shard_ranks(s) > 1)
		return fail(s->checkpoint_to,
			"has states in another number of parts than the %u of a run in which %u ranks share each stage, or not "
			"all of any version: go on with the cluster.tensor_parallel of the run that kept them",
			parts, skep_shard_ranks(s));
	if (list->beyond > 0 && !s->plan.sharded)
		return fail(s->checkpoint_to,
			"has states of a run in which several ranks share each stage, and here one process has all of it: go on "
			"with the cluster.tensor_parallel of the run that kept them, or begin anew with another checkpoint.to");
	if (other_parts && s->plan.sharded)
		return fail(s->checkpoint_to,
			"has states in another number of shards than the %u of these workers, or not all of any version: "
			"with sync.zero each worker has kept its own part, so go on with as many workers in each stage as "
			"the run had that kept them",
			parts);
	if (ret->nothing) {
		skep_checkpoints_say_none(list, s->plan.stages, why, sizeof why);
		if (list->foreign > 0)
			skep_resume_differs(s, reterr, differs);
		return fail(s->checkpoint_to, "%s%s", why, differs);
	}
	ret->run = list->run;
	ret->version = list->version[list->versions - 1];
	if (list->damaged_version >= ret->version)
		snprintf(ret->damaged, sizeof ret->damaged, "%s", list->damaged);
	if (ret->version < s->plan.candidates.rounds)
		return fail(s->checkpoint_to,
			"has states of step %u, which is within the trial of train.init.candidates, of which nothing is kept: "
			"they are another run's",
			ret->version);
	return true;
}

bool skep_resume_find(const struct skep_scenario *scenario, struct skep_resume *ret, struct skep_diag *reterr)
{
	struct skep_checkpoints list;
	*ret = (struct skep_resume){.nothing = scenario->plan.checkpoint_every == 0};
	if (ret->nothing)
		return fail(scenario->path,
			"keeps no states to go on with: add `checkpoint: {every: 100, to: FOLDER}`, and run it once "
			"without --resume");
	if (!skep_checkpoints_find(scenario->checkpoint_to, scenario->job, skep_shard_parts(scenario), &list))
		return fail(scenario->checkpoint_to, "not enough memory");
	bool good = choose(scenario, &list, ret, reterr) && same_files(scenario, reterr);
	skep_checkpoints_finish(&list);
	return good;
}

bool skep_resume_is_over(const struct skep_scenario *scenario, const struct skep_resume *from)
{
	return from->version >= scenario->plan.rounds;
}

struct skep_checkpoint_folder skep_scenario_folder(const struct skep_scenario *scenario)
{
	return (struct skep_checkpoint_folder){.path = scenario->checkpoint_to,
		.job = scenario->job,
		.run = scenario->kept_as,
		.keep = SKEP_CHECKPOINTS_KEPT,
		.from = scenario->kept_from,
		.from_version = scenario->plan.first_round};
}

void skep_resume_from(struct skep_scenario *scenario, const struct skep_resume *from)
{
	scenario->plan.first_round = from->version;
	scenario->plan.candidates.count = from->version > 0 ? 0 : scenario->plan.candidates.count;
	scenario->kept_from = from->run;
	if (scenario->kept_as > 0 && scenario->kept_as <= from->run) /* a clock has been set back */
		scenario->kept_as = from->run + 1;
}
