/* SPDX-License-Identifier: Apache-2.0
 *
 * trace.h - what the commands of `skep trace` share.
 */
#pragma once

#include "commands/arguments.h"
#include "topologies/churn/trace_stats.h"

struct trace_arguments { /* begins those of each command */
	struct arguments common;
	struct skep_trace_options trace;
	double gap_s; /* of the format gaps; 0: not given */
	const char *gpu;
};

extern const struct skep_option skep_trace_rows[8]; /* how a trace is read, and the seed */
extern const struct skep_option skep_trace_output_row[1];
#define SKEP_TRACE_OPTIONS                                                                                             \
	{                                                                                                              \
		"Reading the trace", skep_trace_rows, 8, 0                                                             \
	}

extern const struct skep_command skep_command_trace_generate, skep_command_trace_jobs;

/* As skep_arguments_read(). */
bool skep_trace_arguments_read(struct skep_command_line *line, struct trace_arguments *ret, enum status *ret_status);
/* True if `what` can be written: an output file is named, it is not the file that is read (NULL: none is), which messages call
 * `read_as`, and it is no file without the mark `written`. Else prints what is wrong. */
bool skep_trace_output_ready(
	const struct arguments *a, const char *what, const char *written, const char *read, const char *read_as);
/* A GPU type is a cell of a CSV file. */
bool skep_trace_is_gpu(const char *text);
/* What was put right in reading, unless the user wants to know of nothing. */
void skep_trace_say_repairs(const struct arguments *a, const struct skep_trace_report *report, const char *path);
enum status skep_trace_print_stats(
	const struct arguments *a, const char *path, const struct skep_trace_options *options);
