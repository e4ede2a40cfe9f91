/* SPDX-License-Identifier: Apache-2.0
 *
 * launch.h - starts the processes of `skep run`.
 */
#ifndef SKEP_COMMANDS_LAUNCH_H
#define SKEP_COMMANDS_LAUNCH_H

#include "commands/arguments.h"

/* As skep_exec_launch(). An allocation that was searched for goes along, as one more --set. */
int skep_launch(const struct arguments *arguments, const struct skep_scenario *scenario, char *reterr, size_t size);

#endif
