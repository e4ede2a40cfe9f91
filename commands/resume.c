/* SPDX-License-Identifier: Apache-2.0
 *
 * resume.c - see resume.h. One process looks into the folder, and all others are told what it has found: another moment, or
 * another machine, might find something else.
 */
#include "commands/resume.h"

#include <inttypes.h>
#include <time.h>

#include "exec/exec.h"
#include "models/checkpoint_folder.h"
#include "scenarios/periodic.h"
#include "scenarios/resume.h"

static void complain(const struct skep_diag *diag)
{
	char text[2048];
	skep_diag_print(diag, text, sizeof text);
	fputs(text, stderr);
}

static uint64_t steps_of(const struct skep_scenario *scenario, uint32_t rounds)
{
	return (uint64_t)rounds * skep_periodic_steps(&scenario->plan);
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

bool skep_take_up(const struct arguments *arguments, bool says, struct skep_scenario *scenario, enum status *ret)
{
	struct skep_diag diag = {0};
	struct skep_resume from;
	if (!arguments->resume)
		return true;
	*ret = STATUS_BAD_INPUT;
	if (!skep_resume_find(scenario, &from, &diag)) {
		complain(&diag);
		return false;
	}
	*ret = STATUS_DONE;
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

/* The run gets its number, if it keeps states. */
static void keep_as_of_now(struct skep_scenario *scenario)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	if (scenario->plan.checkpoint_every > 0)
		scenario->kept_as = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool keep_simulated(const struct arguments *arguments, struct skep_scenario *scenario)
{
	struct skep_diag diag = {0};
	char error[1024];
	uint32_t moved;
	if (!arguments->keep)
		return true;
	if (scenario->plan.checkpoint_every == 0)
		skep_diag_set(&diag, scenario->path, 0, 0, NULL,
			"--keep: the scenario does not say where: add `checkpoint: {every: 100, to: FOLDER}`");
	else if (scenario->maths != SKEP_MATHS_REAL)
		skep_diag_set(&diag, scenario->path, 0, 0, NULL,
			"--keep: without arithmetic there are no states to keep: take `--set train.maths=real`");
	keep_as_of_now(scenario);
	const struct skep_checkpoint_folder folder = skep_scenario_folder(scenario);
	if (!diag.set && !skep_checkpoint_folder_usable(&folder, &moved, error, sizeof error))
		skep_diag_set(&diag, scenario->path, 0, 0, NULL, "%s", error);
	else if (!diag.set)
		skep_checkpoint_say_moved(&folder, moved, stderr);
	if (diag.set)
		complain(&diag);
	return !diag.set;
}

bool skep_begin_simulated(const struct arguments *arguments, struct skep_scenario *scenario, enum status *ret)
{
	if (!skep_take_up(arguments, true, scenario, ret))
		return false;
	*ret = STATUS_BAD_INPUT;
	return keep_simulated(arguments, scenario);
}

bool skep_take_up_together(
	const struct arguments *arguments, uint32_t rank, struct skep_scenario *scenario, enum status *ret)
{
	enum { GOES, STATUS, ROUND, FROM, AS, NUMBERS };
	uint64_t number[NUMBERS] = {0};
	if (rank == 0) {
		*ret = STATUS_DONE;
		keep_as_of_now(scenario);
		number[GOES] = skep_take_up(arguments, true, scenario, ret);
		number[STATUS] = *ret;
		number[ROUND] = scenario->plan.first_round;
		number[FROM] = scenario->kept_from;
		number[AS] = scenario->kept_as;
	}
	skep_exec_tell_all(number, NUMBERS);
	const struct skep_resume from = {number[FROM], (uint32_t)number[ROUND]};
	*ret = (enum status)number[STATUS];
	scenario->kept_as = number[AS];
	skep_resume_from(scenario, &from);
	return number[GOES] != 0;
}
