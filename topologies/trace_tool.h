/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_tool.h - the sub-commands of `skep trace`. Each takes its own command line, argv[0] the sub-command's name.
 *
 * Results go to `out`, warnings (repairs) to `warn`. False: `error` says what was wrong, with file, line and caret if it was
 * in a file. --help prints the help to `out`. Not for several threads at once: options are read with getopt_long().
 */
#ifndef SKEP_TOPOLOGIES_TRACE_TOOL_H
#define SKEP_TOPOLOGIES_TRACE_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

bool skep_trace_tool_import(int argc, char **argv, FILE *out, FILE *warn, char *error, size_t size);
bool skep_trace_tool_stats(int argc, char **argv, FILE *out, FILE *warn, char *error, size_t size);
bool skep_trace_tool_generate(int argc, char **argv, FILE *out, FILE *warn, char *error, size_t size);

/* The one that argv[0] names. */
bool skep_trace_tool(int argc, char **argv, FILE *out, FILE *warn, char *error, size_t size);

#endif
