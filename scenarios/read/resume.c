/* SPDX-License-Identifier: Apache-2.0
 *
 * resume.c - see resume.h. Samples of a microbatch, learning rates, validations and the rounds of checkpoints depend
 * on the number of the round alone. So a run is continued by a plan that begins with another round than 0.
 */
#include "scenarios/read/resume.h"

#include <string.h>

#include "base/reader.h"
#include "models/checkpoint/checkpoint_folder.h"

#define fail(file, ...) (skep_diag_set(reterr, file, 0, 0, NULL, __VA_ARGS__), false)

static bool choose(const struct skep_scenario *s, const struct skep_checkpoints *list, struct skep_resume *ret,
	struct skep_diag *reterr)
{
	char why[512];
	if (list->damaged[0] != '\0')
		return fail(list->damaged, "no checkpoint: it is damaged; remove it, and the one before it is taken");
	if (list->versions == 0) {
		skep_checkpoints_say_none(list, s->plan.stages, why, sizeof why);
		return fail(s->checkpoint_to, "%s", why);
	}
	*ret = (struct skep_resume){list->run, list->version[list->versions - 1]};
	if (ret->version < s->plan.candidate_rounds)
		return fail(s->checkpoint_to,
			"has states of step %u, which is within the trial of train.init.candidates, of which nothing is kept: "
			"they are another run's",
			ret->version);
	return true;
}

bool skep_resume_find(const struct skep_scenario *scenario, struct skep_resume *ret, struct skep_diag *reterr)
{
	struct skep_checkpoints list;
	*ret = (struct skep_resume){0};
	if (scenario->plan.checkpoint_every == 0)
		return fail(scenario->path,
			"keeps no states to go on with: add `checkpoint: {every: 100, to: FOLDER}`, and run it once "
			"without --resume");
	if (!skep_checkpoints_find(scenario->checkpoint_to, scenario->job, scenario->plan.stages, &list))
		return fail(scenario->checkpoint_to, "not enough memory");
	bool good = choose(scenario, &list, ret, reterr);
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
	scenario->plan.candidates = from->version > 0 ? 0 : scenario->plan.candidates;
	scenario->kept_from = from->run;
}
