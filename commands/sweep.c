/* SPDX-License-Identifier: Apache-2.0
 *
 * sweep.c - `skep sweep`: what is to vary; the rest is done in sweeping/.
 */
#include "sweeping/sweep.h"

#include "commands/arguments.h"
#include "commands/commands.h"

#define VARIES_MAX 64

struct sweep_arguments {
	struct arguments common;
	const char *vary[VARIES_MAX], *seeds; /* seeds NULL: not given */
	uint32_t varies;
	bool details;
};

static enum status run(struct skep_command_line *line)
{
	struct sweep_arguments a = {0};
	enum status status;
	if (!skep_arguments_read(line, &a.common, &status))
		return status;
	const struct skep_sweep_request request = {.path = a.common.positional[0],
		.set = a.common.set,
		.sets = a.common.scenario.sets,
		.vary = a.vary,
		.varies = a.varies,
		.has_seed = a.common.scenario.has_seed,
		.seed = a.common.scenario.seed,
		.seeds = a.seeds,
		.db = a.common.db,
		.jobs = a.common.jobs,
		.details = a.details,
		.json = a.common.json,
		.quiet = a.common.quiet};
	return skep_sweep(&request);
}

static const struct skep_option vary_rows[] = {
	{"vary", 0, SKEP_OPTION_TEXTS, offsetof(struct sweep_arguments, vary), "KEY=A,B,...",
		.help = "simulate with each of these values; repeated, with all combinations",
		.given_at = offsetof(struct sweep_arguments, varies), .most = VARIES_MAX},
	{"seeds", 0, SKEP_OPTION_TEXT, offsetof(struct sweep_arguments, seeds), "A..B",
		.help = "each combination with each of these seeds; also 1,2,5", .usual = "the scenario's seed"},
};

static const struct skep_option details_rows[] = {
	{"details", 0, SKEP_OPTION_FLAG, offsetof(struct sweep_arguments, details),
		.help = "store all operations and notes of each run, as `skep sim` does"},
};

static const struct skep_option_group groups[] = {SKEP_OWN_OPTIONS("Combinations", vary_rows), SKEP_SCENARIO_OPTIONS,
	{"Processes", skep_jobs_row, 1, 0}, SKEP_OWN_OPTIONS("Output", details_rows), SKEP_DATABASE_OPTIONS, {0}};
static const struct skep_example examples[] = {
	{"skep sweep scenarios/diloco.yaml --vary sync.every=10,50,250 --seeds 1..5",
		"three sync periods with five seeds each: 15 runs, and their means as a table"},
	{0},
};

const struct skep_command skep_command_sweep = {
	.name = "sweep",
	.operands = "SCENARIO --vary KEY=A,B,...",
	.summary = "simulate all combinations of values, on all cores",
	.text = "Simulates every combination of the values with every seed, and prints a row for each combination. "
		"Runs that are in the database already are not repeated, so an interrupted sweep continues when it is "
		"started again. Under mpirun or srun the ranks share the work, and rank 0 writes the database.",
	.least = 1,
	.most = 1,
	.group = groups,
	.example = examples,
	.run = run,
};
