/* SPDX-License-Identifier: Apache-2.0
 *
 * jobs.c - `skep jobs`: many jobs on one cluster. The work is done in planning/jobs/.
 */
#include <stdlib.h>

#include "commands/arguments.h"
#include "commands/commands.h"
#include "planning/jobs/shared.h"

struct jobs_arguments {
	struct arguments common;
	const char *policies; /* NULL: not given */
	bool details;
};

static enum status run_all(const struct jobs_arguments *a, struct skep_shared *shared)
{
	struct skep_diag error = {0};
	for (uint32_t i = 0; i < shared->file.policies; i++)
		if (!skep_shared_simulate(shared, i, &error))
			return skep_report_diag(STATUS_BAD_INPUT, &error);
	int64_t comparison = 0;
	bool kept = skep_shared_keep(shared, a->common.db, &comparison, &error);
	if (!a->common.json)
		skep_shared_print(shared, a->details, stdout);
	else if (!skep_shared_print_json(shared, a->details, comparison, stdout))
		return skep_report_error(STATUS_FAILED, "not enough memory for the answer");
	if (!kept)
		return skep_report_diag(STATUS_FAILED, &error);
	if (!a->common.quiet && !a->common.json)
		skep_say("comparison %lld in %s\n", (long long)comparison, a->common.db);
	return STATUS_DONE;
}

static enum status run(struct skep_command_line *line)
{
	struct jobs_arguments a = {0};
	struct skep_diag error = {0};
	enum status status;
	if (!skep_arguments_read(line, &a.common, &status))
		return status;
	const struct skep_jobs_options options = {.set = a.common.set,
		.sets = a.common.scenario.sets,
		.has_seed = a.common.scenario.has_seed,
		.seed = a.common.scenario.seed,
		.policies = a.policies};
	struct skep_shared *shared = calloc(1, sizeof *shared);
	if (!shared)
		return skep_report_error(STATUS_FAILED, "not enough memory for these jobs");
	if (skep_shared_make(a.common.positional[0], &options, shared, &error))
		status = run_all(&a, shared);
	else
		status = skep_report_diag(STATUS_BAD_INPUT, &error);
	skep_shared_finish(shared);
	free(shared);
	return status;
}

static const struct skep_option rows[] = {
	{"policy", 0, SKEP_OPTION_TEXT, offsetof(struct jobs_arguments, policies), "A,B,...",
		.help = "fifo, srtf, las, synergy, synergy-srtf or synergy-las: these, in place of the file's",
		.example = "fifo,srtf"},
	{"details", 0, SKEP_OPTION_FLAG, offsetof(struct jobs_arguments, details),
		.help = "each job under each policy too"},
};

static const struct skep_option_group groups[] = {
	{"Scenario", skep_scenario_rows, 2, 0}, SKEP_OWN_OPTIONS("Jobs", rows), SKEP_DATABASE_OPTIONS, {0}};
static const struct skep_example examples[] = {
	{"skep jobs scenarios/shared/sixteen-v100.yaml", "how long jobs wait and take under each policy"},
	{"skep jobs scenarios/shared/sixteen-v100.yaml --policy fifo,srtf --details",
		"two policies, and what became of each job"},
	{0},
};

const struct skep_command skep_command_jobs = {
	.name = "jobs",
	.operands = "FILE",
	.summary = "simulate many jobs on one cluster, under several policies",
	.text = "Simulates jobs that arrive over time and share the machines of one topology: which of them run, with how many "
		"machines, CPUs and how much memory. How fast each is comes from its own scenario. Prints completion times, "
		"waiting, utilisation, fairness and price of each policy, and stores them in the database.",
	.least = 1,
	.most = 1,
	.group = groups,
	.example = examples,
	.run = run,
};
