/* SPDX-License-Identifier: Apache-2.0
 *
 * resume.h - --resume and --write-checkpoints: what a run begins with, and where it keeps its states.
 */
#ifndef SKEP_COMMANDS_RESUME_H
#define SKEP_COMMANDS_RESUME_H

#include "commands/arguments.h"

/* With `resume` the scenario continues from the newest checkpoint; without it nothing is done. False: it is not to run, *ret is
 * the exit status, and the reason is said: there is no checkpoint, or the run has reached its end. */
bool skep_take_up(const struct arguments *arguments, bool resume, struct skep_scenario *scenario, enum status *ret);

/* The same for a simulation, which writes checkpoints only if it is to `keep` them. */
bool skep_begin_simulated(
	const struct arguments *arguments, bool resume, bool keep, struct skep_scenario *scenario, enum status *ret);

/* Collective, of all ranks of a run: skep_take_up() by rank 0, whose findings become all others', and the run's number. */
bool skep_take_up_together(const struct arguments *arguments, bool resume, uint32_t rank,
	struct skep_scenario *scenario, enum status *ret);

/* Says what the weights of the scenario lacked, if anything. */
void skep_say_copied_head(const struct skep_scenario *scenario, bool quiet);

#endif
