/* SPDX-License-Identifier: Apache-2.0
 *
 * plot.h - pictures of a scenario itself, for which nothing has to have run: `skep plot complexity` and `skep plot search`.
 */
#ifndef SKEP_COMMANDS_PLOT_H
#define SKEP_COMMANDS_PLOT_H

#include "commands/arguments.h"

bool skep_plot_is_of_scenario(const char *kind);

/* The kind is positional[0]. Says itself what is wrong. */
enum status skep_plot_scenario_command(const struct arguments *arguments);

#endif
