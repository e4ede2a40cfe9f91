/* SPDX-License-Identifier: Apache-2.0
 *
 * replay.c - `skep replay`: the event log of a real run, fed to fresh state machines.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/store/store.h"
#include "analysis/store/store_log.h"
#include "commands/arguments.h"
#include "commands/commands.h"
#include "exec/replay/replay.h"
#include "scenarios/resume/resume.h"
#include "scenarios/shard/shard.h"

/* The scenario as the run had it; the files that it names must be as they were. Says what is wrong. */
static bool read_logged_scenario(const struct skep_run_log *log, int64_t run, struct skep_scenario *ret)
{
	struct skep_diag diag = {0};
	const struct skep_scenario_options options = {.split = !log->paced};
	bool read = skep_scenario_read_text(log->path, log->text, strlen(log->text), &options, ret, &diag);
	const char *changed = skep_run_sources_changed(&log->sources, read ? ret : NULL);
	if (read && !changed && ret->plan.workers + 1 == log->machines)
		return true;
	if (!read)
		skep_report_diag(STATUS_BAD_INPUT, &diag);
	if (changed)
		fprintf(stderr,
			"skep: %s is not as run %" PRId64 " read it: put it back; the column text of the table sources "
			"has it up to 64 KiB\n",
			changed, run);
	else if (read)
		fprintf(stderr, "skep: the run had %" PRIu32 " workers, now its scenario gives %" PRIu32 "\n",
			log->machines - 1, ret->plan.workers);
	skep_scenario_finish(ret);
	return false;
}

/* Where several ranks share a stage the log is that of plane 0, whose machines have the plan of the first shard. */
static bool replay_plan(
	const struct skep_scenario *scenario, const struct skep_run_log *log, struct skep_replay_result *ret)
{
	uint32_t ranks = skep_shard_ranks(scenario);
	struct skep_shard *shard = ranks > 1 ? skep_shard_create(scenario, 0, ranks, NULL) : NULL;
	bool ran = (ranks == 1 || shard != NULL) &&
	           skep_replay_run(shard != NULL ? &shard->scenario.plan : &scenario->plan, log->machine, ret);
	skep_shard_destroy(shard);
	return ran;
}

static enum status replay_log(bool json, int64_t run, const struct skep_run_log *log)
{
	static const enum status status[] = {[SKEP_REPLAY_AGREES] = STATUS_DONE,
		[SKEP_REPLAY_DIFFERS] = STATUS_FAILED,
		[SKEP_REPLAY_DAMAGED] = STATUS_BAD_INPUT};
	struct skep_scenario scenario;
	struct skep_replay_result result;
	if (!read_logged_scenario(log, run, &scenario))
		return STATUS_BAD_INPUT;
	skep_resume_from(&scenario, &(struct skep_resume){.version = log->first_round});
	bool ran = replay_plan(&scenario, log, &result);
	skep_scenario_finish(&scenario);
	if (!ran)
		return skep_report_error(STATUS_FAILED, "not enough memory to replay this run");
	skep_replay_print(&result, run, json, stdout);
	return status[result.verdict];
}

static enum status run(struct skep_command_line *line)
{
	struct arguments a = {0};
	int64_t number;
	uint32_t count;
	struct skep_diag error = {0};
	struct skep_run_log log;
	enum status status;
	if (!skep_arguments_read(line, &a, &status))
		return status;
	if (!skep_arguments_runs(&a, 0, &number, &count))
		return STATUS_BAD_INPUT;
	struct skep_store *store = skep_store_open(a.db, false, &error);
	if (!store)
		return skep_report_diag(STATUS_BAD_INPUT, &error);
	bool found = skep_run_log_read(store, number, &log, &error);
	skep_store_close(store);
	if (!found)
		return skep_report_diag(STATUS_BAD_INPUT, &error);
	status = replay_log(a.json, number, &log);
	skep_run_log_finish(&log);
	return status;
}

static const struct skep_option_group groups[] = {SKEP_DATABASE_OPTIONS, {0}};
static const struct skep_example examples[] = {
	{"skep replay 7", "check that run 7, a real one, was decided as the core decides today"},
	{0},
};

const struct skep_command skep_command_replay = {
	.name = "replay",
	.operands = "RUN",
	.summary = "feed a real run's event log to the scheduling core again",
	.text = "A real run logs every event that its workers and its directory received. Given the same events again, "
		"the core must take the same decisions. If it does not, the first difference is printed and the exit "
		"status is 1.",
	.least = 1,
	.most = 1,
	.group = groups,
	.example = examples,
	.run = run,
};
