/* SPDX-License-Identifier: Apache-2.0
 *
 * arguments.c - rows of options that several commands share, and operands that are scenarios or numbers of runs.
 */
#include "commands/arguments.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/runs/runs.h"
#include "exec/exec.h"
#include "planning/problem/resolve.h"
#include "planning/problem/tried.h"

/* ---- options ----------------------------------------------------------------------------------------------------- */

/* As cluster.trace.scale has it, so that the option that was typed is named. */
static bool parse_time_scale(const char *text, void *ret)
{
	struct arguments *a = ret;
	char *end;
	double scale = strtod(text, &end);
	if (a->scenario.sets == SETS_MAX || strlen(text) > 30 || end == text || *end != '\0' || !(scale >= 1e-6) ||
		scale > 1e6)
		return false;
	snprintf(a->time_scale, sizeof a->time_scale, "cluster.trace.scale=%s", text);
	a->set[a->scenario.sets++] = a->time_scale;
	return true;
}

const struct skep_option skep_scenario_rows[3] = {
	{"set", 0, SKEP_OPTION_TEXTS, offsetof(struct arguments, set), "KEY=VALUE",
		.help = "replace a value of the scenario, as in train.until.steps=100; KEY=null removes the key; may "
			"be repeated",
		.given_at = offsetof(struct arguments, scenario.sets), .most = SETS_MAX},
	{"seed", 0, SKEP_OPTION_U64, offsetof(struct arguments, scenario.seed), "N", .help = "random seed",
		.given_at = offsetof(struct arguments, scenario.has_seed), .most = INT64_MAX,
		.usual = "the scenario's"},
	{"time-scale", 0, SKEP_OPTION_PARSED, 0, "X",
		.help = "stretch the preemption trace: 0.01 plays it 100 times as fast; short for --set "
			"cluster.trace.scale=X",
		.parse = parse_time_scale, .example = "0.01", .expected = "a number from 1e-6 to 1e6"},
};

const struct skep_option skep_result_rows[3] = {
	{"db", 0, SKEP_OPTION_PATH, offsetof(struct arguments, db), "FILE", .help = "SQLite database of runs",
		.given_at = offsetof(struct arguments, has_db), .usual = "skep.db", .environment = "SKEP_DB"},
	{"json", 0, SKEP_OPTION_FLAG, offsetof(struct arguments, json),
		.help = "print one JSON object on stdout and nothing else"},
	{"quiet", 'q', SKEP_OPTION_FLAG, offsetof(struct arguments, quiet),
		.help = "print nothing on stderr but errors"},
};

const struct skep_option skep_jobs_row[1] = {
	{"jobs", 0, SKEP_OPTION_U32, offsetof(struct arguments, jobs), "N",
		.help = "processes that simulate side by side", .least = 1, .most = 4096,
		.usual = "one per core; under mpirun one per rank",
		.expected = "a number of processes, from 1 to 4096"},
};

const struct skep_option skep_force_row[1] = {
	{"force", 0, SKEP_OPTION_FLAG, offsetof(struct arguments, force),
		.help = "let -o replace a file that skep did not write"},
};

const char *const skep_device_words[] = {"cpu", "cuda", NULL};

bool skep_arguments_read(struct skep_command_line *line, struct arguments *ret, enum status *ret_status)
{
	ret->db = "skep.db";
	if (!skep_options_read(line, ret, ret_status))
		return false;
	ret->scenario.set = ret->set;
	ret->positional = line->operand;
	ret->positionals = line->operands;
	return true;
}

/* ---- operands ---------------------------------------------------------------------------------------------------- */

bool skep_arguments_runs(const struct arguments *arguments, uint32_t first, int64_t *ret, uint32_t *ret_count)
{
	struct skep_diag error = {0};
	uint32_t one;
	*ret_count = arguments->positionals - first;
	for (uint32_t i = 0; i < *ret_count; i++)
		if (!skep_runs_find(arguments->db, arguments->positional[first + i], 1, &ret[i], &one, &error)) {
			skep_report_diag(STATUS_BAD_INPUT, &error);
			return false;
		}
	return true;
}

bool skep_arguments_run_ranges(const struct arguments *arguments, uint32_t first, int64_t *ret, uint32_t *ret_count)
{
	struct skep_diag error = {0};
	int64_t run[RUNS_MAX];
	*ret_count = 0;
	for (uint32_t i = first; i < arguments->positionals; i++) {
		uint32_t found = 0;
		if (skep_runs_find(arguments->db, arguments->positional[i], RUNS_MAX, run, &found, &error) &&
			*ret_count + found > RUNS_MAX)
			skep_fail(&error, "more than %d runs: name fewer", RUNS_MAX);
		if (error.set) {
			skep_report_diag(STATUS_BAD_INPUT, &error);
			return false;
		}
		memcpy(ret + *ret_count, run, found * sizeof *run);
		*ret_count += found;
	}
	return true;
}

bool skep_arguments_scenario_for(const struct arguments *arguments, bool real, bool pace, struct skep_scenario *ret)
{
	struct skep_diag diag = {0};
	struct skep_scenario_options options = arguments->scenario;
	options.details = stderr;
	options.real = real;
	options.pace = pace;
	options.split = real;
	bool first = !skep_exec_launched(); /* the process that starts the others tries the values of plan.search */
	if (skep_scenario_read(arguments->positional[0], &options, ret, &diag) &&
		(!first || skep_planning_try_values(ret, &options, &diag)) && skep_resolve(ret, &options, &diag))
		return true;
	skep_report_diag(STATUS_BAD_INPUT, &diag);
	return false;
}

bool skep_arguments_scenario(const struct arguments *arguments, struct skep_scenario *ret)
{
	return skep_arguments_scenario_for(arguments, false, false, ret);
}
