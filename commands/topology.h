/* SPDX-License-Identifier: Apache-2.0
 *
 * topology.h - `skep topology`. It takes its own command line, argv[0] the sub-command's name.
 *
 * Results go to `out`, notes on what was taken and assumed to `warn`. False: `error` says what was wrong, with file, line and
 * caret if it was in a file. --help prints the help to `out`. Not for several threads at once: options are read with
 * getopt_long().
 */
#ifndef SKEP_COMMANDS_TOPOLOGY_H
#define SKEP_COMMANDS_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

bool skep_topology_command(int argc, char **argv, FILE *out, FILE *warn, char *error, size_t size);

#endif
