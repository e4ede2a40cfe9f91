/* SPDX-License-Identifier: Apache-2.0
 *
 * arguments.h - options and operands that several commands share.
 */
#pragma once

#include "base/options.h"
#include "scenarios/read/scenario.h"
#include "scenarios/vary/vary.h"

#define SETS_MAX 64
#define RUNS_MAX 256
#define SKEP_RUN_WORDS                                                                                                 \
	" RUN: a number, or a name by `skep runs name`; @TAG: all runs with it." /* ends the text of help */

struct arguments { /* the first member of each command's own */
	const char *set[SETS_MAX];
	struct skep_scenario_options scenario;
	char time_scale[64]; /* as --set has it */
	const char *db, *output;
	bool has_db, force; /* force: -o may replace what skep has not written */
	bool json, quiet;
	uint32_t jobs; /* 0: not given */
	char **positional;
	uint32_t positionals;
};

extern const struct skep_option skep_scenario_rows[3]; /* --set, --seed, --time-scale */
extern const struct skep_option skep_result_rows[3];   /* --db, --json, --quiet */
extern const struct skep_option skep_jobs_row[1], skep_force_row[1];
extern const char *const skep_device_words[];

#define SKEP_SCENARIO_OPTIONS                                                                                          \
	{                                                                                                              \
		.title = "Scenario", .row = skep_scenario_rows, .rows = 2                                              \
	}
#define SKEP_SCENARIO_AND_TRACE_OPTIONS                                                                                \
	{                                                                                                              \
		.title = "Scenario", .row = skep_scenario_rows, .rows = 3                                              \
	}
#define SKEP_FORCE_OPTION                                                                                              \
	{                                                                                                              \
		.title = "Output", .row = skep_force_row, .rows = 1                                                    \
	}
#define SKEP_OUTPUT_OPTIONS                                                                                            \
	{                                                                                                              \
		.title = "Output", .row = skep_result_rows + 1, .rows = 2                                              \
	}
#define SKEP_DATABASE_OPTIONS                                                                                          \
	{                                                                                                              \
		.title = "Output", .row = skep_result_rows, .rows = 3                                                  \
	}
/* Of a table of rows for a command's own struct. */
#define SKEP_OWN_OPTIONS(title, table) SKEP_OPTION_GROUP(title, table, 0)

/* *ret begins the command's struct, which has the command's defaults. As skep_options_read(). */
bool skep_arguments_read(struct skep_command_line *line, struct arguments *ret, enum status *ret_status);

/* The scenario that the first operand names, with what --set and --seed say; false: it was said what is wrong. */
bool skep_arguments_scenario(const struct arguments *arguments, struct skep_scenario *ret);
/* The same for a real run: what it cannot do is wrong at its line. */
bool skep_arguments_scenario_for(const struct arguments *arguments, bool real, bool pace, struct skep_scenario *ret);

/* Operands `first` and on name one run each (analysis/runs/runs.h); false: one does not, and it was said. */
bool skep_arguments_runs(const struct arguments *arguments, uint32_t first, int64_t *ret, uint32_t *ret_count);
/* The same, and 3..14 and @TAG stand for all of these; at most RUNS_MAX. */
bool skep_arguments_run_ranges(const struct arguments *arguments, uint32_t first, int64_t *ret, uint32_t *ret_count);
