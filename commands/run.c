/* SPDX-License-Identifier: Apache-2.0
 *
 * run.c - `skep run`: one scenario for real, over MPI. The process that a user starts checks everything and starts mpirun with
 * the same words; each process of that is a rank: 0 the directory, which records the run, the others workers.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/store/store.h"
#include "commands/arguments.h"
#include "commands/commands.h"
#include "commands/record_run.h"
#include "commands/resume.h"
#include "exec/exec.h"
#include "planning/problem/resolve.h"
#include "scenarios/shard/shard.h"

struct run_arguments {
	struct arguments common;
	struct skep_exec_options exec;
	enum skep_resuming resuming;
	uint32_t ranks; /* 0: not given */
};

/* ---- the process that a user starts --------------------------------------------------------------------------------- */

static enum status launch(const struct run_arguments *a, char **whole, struct skep_scenario *scenario)
{
	struct skep_diag why = {0};
	struct skep_diag error = {0};
	uint32_t ranks = skep_shard_processes(scenario);
	enum status over = STATUS_BAD_INPUT;
	if (!skep_exec_ready(&a->exec, &error) || !skep_device_available(a->exec.device, &error))
		return skep_report_diag(STATUS_BAD_INPUT, &error);
	if (a->ranks != 0 && a->ranks != ranks) {
		skep_fail(&error,
			"-n %" PRIu32 ": this scenario has %" PRIu32 " worker%s and needs %" PRIu32
			" processes, %" PRIu32 " of them the directory; leave -n out or write -n %" PRIu32,
			a->ranks, scenario->plan.workers, scenario->plan.workers == 1 ? "" : "s", ranks,
			skep_shard_ranks(scenario), ranks);
		return skep_report_diag(STATUS_BAD_INPUT, &error);
	}
	if (!skep_take_up(&a->common, a->resuming, scenario, &over))
		return over;
	struct skep_store *store = skep_store_open(a->common.db, true, &error);
	if (!store)
		return skep_report_diag(STATUS_BAD_INPUT, &error);
	skep_store_close(store);
	skep_say_beforehand(scenario, a->common.quiet);
	skep_say_unscaled(scenario, a->exec.pace || a->common.quiet);
	int status = skep_exec_launch(scenario, &a->exec, whole, &error);
	if (error.set && (store = skep_store_open(a->common.db, true, &why)) != NULL)
		skep_store_close(store); /* which marks a run as dead whose rank 0 had no time to */
	enum status ended = status < 0 ? STATUS_FAILED : (enum status)status;
	return error.set ? skep_report_diag(ended, &error) : ended;
}

/* ---- a rank --------------------------------------------------------------------------------------------------------- */

static struct skep_scenario_options options_of_rank(const struct run_arguments *a)
{
	struct skep_scenario_options options = a->common.scenario;
	options.details = stderr;
	options.pace = a->exec.pace;
	options.split = true;
	return options;
}

/* Rank 0's text becomes that of all, which the caller frees; NULL: it has none, or there is no memory. */
static char *tell_all(char *text, uint32_t limit_s)
{
	uint64_t bytes = text ? strlen(text) + 1 : 0;
	skep_exec_tell_all(&bytes, 1, limit_s);
	uint64_t *number = bytes > 0 ? calloc(bytes / sizeof *number + 1, sizeof *number) : NULL;
	if (bytes > 0 && !number)
		skep_exec_abort(STATUS_FAILED); /* the others wait for this rank */
	if (number && text)
		memcpy(number, text, bytes);
	if (number)
		skep_exec_tell_all(number, (uint32_t)(bytes / sizeof *number + 1), limit_s);
	free(text);
	return (char *)number;
}

/* Rank 0 searches for an allocation that is to be searched for, and all run with it. */
static bool resolve_together(const struct run_arguments *a, uint32_t rank, struct skep_scenario *scenario)
{
	struct skep_diag diag = {0};
	struct skep_scenario_options options = options_of_rank(a);
	if (!scenario->unresolved)
		return true;
	char *allocation =
		tell_all(rank == 0 ? skep_resolve_search(scenario, &options, &diag) : NULL, a->exec.start_limit_s);
	bool resolved = allocation && skep_resolve_with(scenario, &options, allocation, &diag);
	if (!resolved && (rank == 0 || allocation))
		skep_report_diag(STATUS_BAD_INPUT, &diag);
	if (!resolved && allocation)
		skep_exec_abort((int)STATUS_BAD_INPUT); /* of this rank alone: the others go on, and wait for it */
	free(allocation);
	return resolved;
}

static bool run_launched(void *context, const struct skep_scenario *scenario, const struct skep_recorder *recorder,
	struct skep_exec_result *ret, struct skep_diag *reterr)
{
	const struct run_arguments *a = context;
	return skep_exec_run(scenario, &a->exec, recorder, ret, reterr);
}

static void end_all(void *context)
{
	(void)context;
	skep_exec_abort((int)STATUS_BAD_INPUT); /* does not return: the others wait for this rank */
}

static enum status run_directory(
	struct run_arguments *a, const struct skep_scenario *scenario, struct skep_exec_result *ret)
{
	const struct record_run how = {.device = a->exec.device,
		.pace = a->exec.pace,
		.shape = a->exec.shape,
		.run = run_launched,
		.refused = end_all,
		.context = a};
	return skep_record_run(&a->common, &how, scenario, ret);
}

/* All processes of a run over MPI are there from the start. */
static bool has_its_machines(const struct skep_scenario *scenario, struct skep_diag *reterr)
{
	if (scenario->plan.scale == NULL)
		return true;
	skep_diag_set(reterr, scenario->path, 0, 0, NULL,
		"cluster.scale: `skep run` has all of its machines from the start: `skep serve --scale-command` asks for "
		"them, `skep sim` simulates it, or leave it out (--set cluster.scale=null)");
	return false;
}

/* False: the run cannot be started, for a reason that all ranks see alike. */
static bool may_run(
	const struct run_arguments *a, const struct skep_scenario *scenario, uint32_t ranks, struct skep_diag *reterr)
{
	const char *key[2];
	uint32_t workers = scenario->plan.workers, needed = skep_shard_processes(scenario);
	if (!has_its_machines(scenario, reterr))
		return false;
	bool takes_more = skep_exec_survives() && needed == workers + 1;
	if (ranks == needed || (ranks > needed && takes_more))
		return skep_scenario_runs(scenario, a->exec.pace, key, reterr);
	return skep_fail(reterr,
		"started with %" PRIu32 " process%s, but this scenario has %" PRIu32 " worker%s and needs %" PRIu32
		", %" PRIu32 " of them the directory",
		ranks, ranks == 1 ? "" : "es", workers, workers == 1 ? "" : "s", needed, needed / (workers + 1));
}

static enum status run_rank(struct run_arguments *a, struct skep_scenario *scenario)
{
	uint32_t rank, ranks;
	struct skep_exec_result result = {.outcome = SKEP_FAILED};
	struct skep_diag error = {0};
	bool threads = skep_shard_ranks(scenario) > 1;
	if (!skep_exec_init(a->exec.start_limit_s, threads, &rank, &ranks, &error))
		return skep_report_diag(STATUS_FAILED, &error);
	enum status status = STATUS_DONE;
	if (!resolve_together(a, rank, scenario))
		status = STATUS_BAD_INPUT;
	else if (!may_run(a, scenario, ranks, &error))
		status = rank == 0 ? skep_report_diag(STATUS_BAD_INPUT, &error) : STATUS_BAD_INPUT;
	else if (!skep_take_up_together(&a->common, a->resuming, rank, a->exec.start_limit_s, scenario, &status))
		status = rank == 0 ? status : STATUS_DONE; /* rank 0 has said why */
	else if (rank == 0)
		status = run_directory(a, scenario, &result);
	else if (!skep_exec_run(scenario, &a->exec, NULL, &result, &error))
		status = STATUS_FAILED; /* rank 0 says why */
	skep_exec_finish((int)status, &result);
	return status;
}

static enum status run(struct skep_command_line *line)
{
	struct run_arguments a = {.exec.start_limit_s = SKEP_EXEC_START_LIMIT_S};
	struct skep_scenario scenario;
	enum status status;
	if (!skep_arguments_read(line, &a.common, &status))
		return status;
	if (!skep_exec_launched()) {
		if (!skep_arguments_scenario_for(&a.common, true, a.exec.pace, &scenario))
			return STATUS_BAD_INPUT;
		struct skep_diag diag = {0};
		status = has_its_machines(&scenario, &diag) ? launch(&a, line->whole, &scenario)
		                                            : skep_report_diag(STATUS_BAD_INPUT, &diag);
	} else {
		struct skep_diag diag = {0};
		struct skep_scenario_options options = options_of_rank(&a);
		if (!skep_scenario_read(a.common.positional[0], &options, &scenario, &diag))
			return skep_report_diag(STATUS_BAD_INPUT, &diag);
		status = run_rank(&a, &scenario);
	}
	skep_scenario_finish(&scenario);
	return status;
}

/* ---- options -------------------------------------------------------------------------------------------------------- */

static const struct skep_option rows[] = {
	{"ranks", 'n', SKEP_OPTION_U32, offsetof(struct run_arguments, ranks), "N", .help = "MPI processes to start",
		.least = 1, .most = 1 << 20, .usual = "one for each worker and one for the directory",
		.expected = "a number of processes, from 1"},
	{"device", 0, SKEP_OPTION_CHOICE, offsetof(struct run_arguments, exec.device), "cpu|cuda",
		.help = "what does the arithmetic", .choice = skep_device_words, .usual = "cpu"},
	{"spares", 0, SKEP_OPTION_U32, offsetof(struct run_arguments, exec.spares), "N",
		.help = "idle processes that replace workers whose process dies; needs Open MPI 5",
		.given_at = offsetof(struct run_arguments, exec.has_spares), .most = SKEP_EXEC_SPARES_MAX,
		.usual = "as many as the trace restarts; without a trace none",
		.expected = "a number of processes, from 0"},
	{"bind", 0, SKEP_OPTION_FLAG, offsetof(struct run_arguments, exec.bind),
		.help = "keep each worker to cores of its own, as many as it has threads; for hosts that do nothing else"},
	{"start-limit", 0, SKEP_OPTION_U32, offsetof(struct run_arguments, exec.start_limit_s), "SECONDS",
		.help = "during the start: longest wait for a process that only has to answer, ten times as long for one that "
			"has files to read",
		.least = 1, .most = 86400, .usual = "60", .expected = "a number of seconds, from 1 to 86400"},
	{"resume", 0, SKEP_OPTION_FLAG, offsetof(struct run_arguments, resuming),
		.help = "continue from the newest checkpoint in the folder of checkpoint.to; =auto: begin, where there is none",
		.choice = skep_resuming_words},
};

static const struct skep_option emulation[] = {
	{"pace", 0, SKEP_OPTION_FLAG, offsetof(struct run_arguments, exec.pace),
		.help = "slow each operation down to the time in the GPU profile"},
	{"shape", 0, SKEP_OPTION_FLAG, offsetof(struct run_arguments, exec.shape),
		.help = "delay each message by the time that the topology gives; one host only"},
};

static const struct skep_option_group groups[] = {SKEP_SCENARIO_AND_TRACE_OPTIONS, SKEP_OWN_OPTIONS("Processes", rows),
	SKEP_OWN_OPTIONS("Emulating the topology on this machine", emulation), SKEP_DATABASE_OPTIONS, {0}};
static const struct skep_example examples[] = {
	{"skep run scenarios/two-datacentres.yaml --pace --shape",
		"on this machine, at the speed of the GPUs and links that the topology describes"},
	{"srun -n 9 skep run scenarios/two-datacentres.yaml --device cuda",
		"on a cluster: one process for each worker and one for the directory"},
	{0},
};

const struct skep_command skep_command_run = {
	.name = "run",
	.operands = "SCENARIO",
	.summary = "train for real over MPI",
	.text = "Trains for real: starts mpirun with one process per worker and one for the directory, or joins the "
		"job when mpirun or srun has started it. A preemption trace in the scenario kills and restarts the "
		"workers' processes if the MPI survives that; the run says at its start how real the preemptions are.",
	.least = 1,
	.most = 1,
	.group = groups,
	.example = examples,
	.run = run,
};
