/* SPDX-License-Identifier: Apache-2.0
 *
 * output.h - what -o may write over. A command asks before it does anything else, so that nothing is computed in vain, and says
 * itself what is wrong. --force lets it replace what skep has not written, but never what the command reads.
 */
#pragma once

#include "commands/arguments.h"

/* A file whose writer begins it with `head`; NULL: a picture. Not the database, and no operand either. */
bool skep_output_ready(const struct arguments *arguments, const char *head);
/* The folder that weights are exported into. */
bool skep_output_folder_ready(const struct arguments *arguments);
/* When the scenario is read: no file that it names, nor that a value in its plan.search does. */
bool skep_output_no_source(const struct arguments *arguments, const struct skep_scenario *scenario);
