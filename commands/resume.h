/* SPDX-License-Identifier: Apache-2.0
 *
 * resume.h - --resume and --write-checkpoints: what a run begins with, and where it keeps its states.
 */
#pragma once

#include "commands/arguments.h"

/* --resume, or --resume=auto, with which a run begins anew where there is nothing to go on with. */
enum skep_resuming { SKEP_ANEW, SKEP_RESUMES, SKEP_RESUMES_OR_BEGINS };
extern const char *const skep_resuming_words[2]; /* of the option's row */

/* The scenario continues from the newest checkpoint, if it is to. False: it is not to run, *ret is the exit status, and the
 * reason is said: there is no checkpoint, or the run has reached its end. */
bool skep_take_up(const struct arguments *arguments, enum skep_resuming resuming, struct skep_scenario *scenario,
	enum status *ret);
/* The same, and says so. */
bool skep_take_up_or_begin(const struct arguments *arguments, enum skep_resuming resuming,
	struct skep_scenario *scenario, enum status *ret);

/* The same for a simulation, which writes checkpoints only if it is to `keep` them. */
bool skep_begin_simulated(
	const struct arguments *arguments, bool resume, bool keep, struct skep_scenario *scenario, enum status *ret);

/* Collective, of all ranks of a run: skep_take_up() by rank 0, whose findings become all others', and the run's number;
 * limit_s as in skep_exec_tell_all(). */
bool skep_take_up_together(const struct arguments *arguments, enum skep_resuming resuming, uint32_t rank,
	uint32_t limit_s, struct skep_scenario *scenario, enum status *ret);

/* The run gets its number, if it keeps states. */
void skep_keep_as_of_now(struct skep_scenario *scenario);

/* What a user has to know before the run: what the weights of the scenario lacked, and what of its trace no machine plays. */
void skep_say_beforehand(const struct skep_scenario *scenario, bool quiet);
/* And of a real run that is not paced: that its passes are not those which cluster.compute_scale makes of the model's. */
void skep_say_unscaled(const struct skep_scenario *scenario, bool quiet);
