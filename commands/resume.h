/* SPDX-License-Identifier: Apache-2.0
 *
 * resume.h - --resume and --keep: what a run begins with, and where it keeps its states.
 */
#ifndef SKEP_COMMANDS_RESUME_H
#define SKEP_COMMANDS_RESUME_H

#include "commands/arguments.h"

/* With --resume the scenario goes on with what is kept; without it nothing is done. False: it is not to run, *ret says with which
 * status, and the reason is said: there is nothing to go on with, or the end is reached. `says`: also where it goes on. */
bool skep_take_up(const struct arguments *arguments, bool says, struct skep_scenario *scenario, enum status *ret);

/* The same for a simulation, whose states go to files with --keep alone. */
bool skep_begin_simulated(const struct arguments *arguments, struct skep_scenario *scenario, enum status *ret);

/* Collective, of all ranks of a run: skep_take_up() by rank 0, whose findings become all others', and the run's number. */
bool skep_take_up_together(
	const struct arguments *arguments, uint32_t rank, struct skep_scenario *scenario, enum status *ret);

#endif
