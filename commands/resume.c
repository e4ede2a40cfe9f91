/* SPDX-License-Identifier: Apache-2.0
 *
 * resume.c - see resume.h. One process looks into the folder, and all others are told what it has found: another moment, or
 * another machine, might find something else.
 */
#include "commands/resume.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "exec/exec.h"
#include "models/checkpoint/checkpoint_folder.h"
#include "scenarios/read/groups.h"
#include "scenarios/resume/resume.h"

static uint64_t steps_of(const struct skep_scenario *scenario, uint32_t rounds)
{
	return skep_plan_steps_before(&scenario->plan, rounds);
}

static void say_over(const struct arguments *arguments, const struct skep_scenario *scenario, uint32_t version)
{
	if (arguments->json)
		printf("{\"resumed\":false,\"steps\":%" PRIu64 "}\n", steps_of(scenario, version));
	if (!arguments->quiet)
		fprintf(stderr,
			"skep: the run that has kept its states in %s has reached its end, step %" PRIu64
			": nothing is left to do (--set train.until.steps=... makes it longer)\n",
			scenario->checkpoint_to, steps_of(scenario, version));
}

/* `begins`: where nothing is kept, --resume=auto does not fail. */
static bool find(
	const struct arguments *arguments, bool says, bool begins, struct skep_scenario *scenario, enum status *ret)
{
	struct skep_diag diag = {0};
	struct skep_resume from;
	if (!skep_resume_find(scenario, &from, &diag)) {
		size_t said = strlen(diag.message);
		if (begins && from.nothing)
			snprintf(diag.message + said, sizeof diag.message - said,
				"; --resume=auto begins with the first step");
		*ret = skep_report_diag(STATUS_BAD_INPUT, &diag);
		return false;
	}
	*ret = STATUS_DONE;
	if (from.damaged[0] != '\0')
		fprintf(stderr,
			"skep: warning: %s is damaged (its sum is not that of its contents) and is passed over: step %" PRIu64
			" is the newest of which the states of all stages are whole\n",
			from.damaged, steps_of(scenario, from.version));
	if (skep_resume_is_over(scenario, &from)) {
		say_over(arguments, scenario, from.version);
		return false;
	}
	skep_resume_from(scenario, &from);
	if (says && !arguments->quiet)
		fprintf(stderr, "skep: goes on behind step %" PRIu64 ", of which %s has the states\n",
			steps_of(scenario, from.version), scenario->checkpoint_to);
	return true;
}

/* `says`: that nothing is kept, or from where it goes on. */
static bool take_up(const struct arguments *arguments, enum skep_resuming resuming, bool says,
	struct skep_scenario *scenario, enum status *ret)
{
	struct skep_diag diag = {0};
	struct skep_resume from;
	*ret = STATUS_DONE;
	if (resuming == SKEP_ANEW)
		return true;
	if (resuming == SKEP_RESUMES_OR_BEGINS && !skep_resume_find(scenario, &from, &diag) && from.nothing) {
		if (says && !arguments->quiet)
			fputs("skep: nothing is kept of an earlier run: begins with the first step\n", stderr);
		return true;
	}
	return find(arguments, says, true, scenario, ret);
}

bool skep_take_up(const struct arguments *arguments, enum skep_resuming resuming, struct skep_scenario *scenario,
	enum status *ret)
{
	return take_up(arguments, resuming, false, scenario, ret);
}

const char *const skep_resuming_words[2] = {"auto"};

bool skep_take_up_or_begin(const struct arguments *arguments, enum skep_resuming resuming,
	struct skep_scenario *scenario, enum status *ret)
{
	return take_up(arguments, resuming, true, scenario, ret);
}

void skep_keep_as_of_now(struct skep_scenario *scenario)
{
	if (scenario->plan.checkpoint_every > 0)
		scenario->kept_as = skep_date_now() > scenario->kept_from ? skep_date_now() : scenario->kept_from + 1;
}

static bool keep_simulated(struct skep_scenario *scenario)
{
	struct skep_diag diag = {0};
	struct skep_diag error = {0};
	uint32_t moved;
	if (scenario->plan.checkpoint_every == 0)
		skep_diag_set(&diag, scenario->path, 0, 0, NULL,
			"--write-checkpoints: the scenario does not say where: add `checkpoint: {every: 100, to: FOLDER}`");
	else if (scenario->arithmetic != SKEP_ARITHMETIC_REAL)
		skep_diag_set(&diag, scenario->path, 0, 0, NULL,
			"--write-checkpoints: without arithmetic there are no states to keep: take `--set "
			"train.arithmetic=real`");
	skep_keep_as_of_now(scenario);
	const struct skep_checkpoint_folder folder = skep_scenario_folder(scenario);
	if (!diag.set && !skep_checkpoint_folder_usable(&folder, &moved, &error))
		skep_diag_set(&diag, scenario->path, 0, 0, NULL, "%s", error.message);
	else if (!diag.set)
		skep_checkpoint_say_moved(&folder, moved, stderr);
	if (!diag.set)
		skep_resume_note_files(scenario, &diag);
	if (diag.set)
		skep_report_diag(STATUS_BAD_INPUT, &diag);
	return !diag.set;
}

bool skep_begin_simulated(
	const struct arguments *arguments, bool resume, bool keep, struct skep_scenario *scenario, enum status *ret)
{
	if (resume && !find(arguments, true, false, scenario, ret))
		return false;
	*ret = STATUS_BAD_INPUT;
	return !keep || keep_simulated(scenario);
}

bool skep_take_up_together(const struct arguments *arguments, enum skep_resuming resuming, uint32_t rank,
	uint32_t limit_s, struct skep_scenario *scenario, enum status *ret)
{
	enum { GOES, STATUS, ROUND, FROM, AS, NUMBERS };
	uint64_t number[NUMBERS] = {0};
	if (rank == 0) {
		*ret = STATUS_DONE;
		skep_keep_as_of_now(scenario);
		number[GOES] = take_up(arguments, resuming, true, scenario, ret);
		number[STATUS] = *ret;
		number[ROUND] = scenario->plan.first_round;
		number[FROM] = scenario->kept_from;
		number[AS] = scenario->kept_as;
	}
	skep_exec_tell_all(number, NUMBERS, limit_s);
	const struct skep_resume from = {.run = number[FROM], .version = (uint32_t)number[ROUND]};
	*ret = (enum status)number[STATUS];
	scenario->kept_as = number[AS];
	skep_resume_from(scenario, &from);
	return number[GOES] != 0;
}

void skep_say_beforehand(const struct skep_scenario *scenario, bool quiet)
{
	char left_out[320];
	const char *table = skep_train_head_from(scenario);
	if (skep_traced_left_out(scenario, left_out, sizeof left_out) && !quiet)
		fprintf(stderr, "skep: warning: %s\n", left_out);
	if (table != NULL && !quiet)
		fprintf(stderr, "skep: %s has no lm_head.weight: the head begins as a copy of %s\n",
			scenario->weights_path, table);
}

void skep_say_unscaled(const struct skep_scenario *scenario, bool quiet)
{
	if (!quiet && scenario->compute_scale != 1)
		fprintf(stderr,
			"skep: cluster.compute_scale is %g, and a real run without --pace computes the model as it is; so does "
			"`sim` with --set cluster.compute_scale=null\n",
			scenario->compute_scale);
}
