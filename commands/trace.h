/* SPDX-License-Identifier: Apache-2.0
 *
 * trace.h - `skep trace`. It takes its own command line, argv[0] the sub-command's name.
 *
 * Results go to `out`, warnings (repairs) and the usage to `warn`. False: `error` says what was wrong, with file, line and
 * caret if it was in a file. --help prints the help to `out`. Not for several threads at once: options are read with
 * getopt_long().
 */
#ifndef SKEP_COMMANDS_TRACE_H
#define SKEP_COMMANDS_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

bool skep_trace_command(int argc, char **argv, FILE *out, FILE *warn, char *error, size_t size);

#endif
