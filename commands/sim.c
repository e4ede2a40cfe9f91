/* SPDX-License-Identifier: Apache-2.0
 *
 * sim.c - `skep sim`: one scenario in virtual time, into the database.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "analysis/summary/recording.h"
#include "base/process/stop.h"
#include "base/process/thread_pool.h"
#include "commands/arguments.h"
#include "commands/commands.h"
#include "commands/graph.h"
#include "commands/resume.h"
#include "scenarios/plan/loss.h"
#include "scenarios/plan/plan.h"
#include "sim/sim.h"
#include "sweeping/sweep.h"

struct sim_arguments {
	struct arguments common;
	bool resume, keep, details;
	uint32_t threads;
	const char *seeds; /* NULL: not given */
	const char *graph; /* the same */
};

#define LARGE_BYTES (INT64_C(256) << 20)

static void say_size(const char *db)
{
	struct stat st;
	if (stat(db, &st) == 0 && st.st_size > LARGE_BYTES)
		skep_say("skep: %s has grown to %.0f MB; `skep runs gc` drops the detail of old runs\n", db,
			(double)st.st_size / 1e6);
}

/* Simulates from where `resume` says to the end, and stores the run. */
static enum status simulate(const struct sim_arguments *a, struct skep_scenario *scenario)
{
	struct skep_recording recording;
	struct skep_sim_result result;
	char stopped[64] = "", why[128];
	struct skep_diag error = {0};
	const struct skep_sim_options options = {
		.threads = a->threads > 0 ? a->threads : skep_thread_pool_cores(), .stop = skep_stop_listen()};
	const struct skep_recording_options how = {.db = a->common.db,
		.world = "sim",
		.device = "cpu",
		.json = a->common.json,
		.quiet = a->common.quiet,
		.details = a->details};
	skep_scenario_draw(scenario);
	if (!skep_recording_begin(&recording, &how, scenario, &error))
		return skep_report_diag(STATUS_BAD_INPUT, &error);
	skep_say_beforehand(scenario, a->common.quiet);
	bool ran = skep_sim_run_with(scenario, &options, &recording.recorder, &result);
	if (result.stopped == 0)
		skep_stop_deafen();
	else
		snprintf(stopped, sizeof stopped, "ended by SIG%s", sigabbrev_np(result.stopped));
	bool done = skep_recording_end(&recording, result.end_ns, result.events, ran ? result.outcome : SKEP_FAILED,
		result.stopped != 0 ? stopped : NULL);
	if (!ran)
		skep_report_error(STATUS_FAILED,
			result.error.set ? result.error.message : "not enough memory to simulate this scenario");
	else if (result.outcome != SKEP_DONE)
		skep_report_error(STATUS_FAILED, recording.failure);
	if (ran && !a->common.quiet && skep_loss_extrapolates(scenario, result.rounds, why, sizeof why))
		skep_say("skep: extrapolated: the law was fitted elsewhere: %s\n", why);
	if (!a->common.quiet)
		say_size(a->common.db);
	if (result.stopped != 0)
		return (enum status)(STATUS_SIGNAL + result.stopped);
	return done ? STATUS_DONE : STATUS_FAILED;
}

/* A run for each seed: a sweep of seeds alone, of which all operations are kept. */
static enum status simulate_seeds(const struct sim_arguments *a)
{
	const struct arguments *common = &a->common;
	if (a->resume || a->keep)
		return skep_report_error(
			STATUS_BAD_INPUT, "sim: --seeds makes new runs: leave out --resume and --write-checkpoints");
	if (common->scenario.has_seed)
		return skep_report_error(STATUS_BAD_INPUT, "sim: either --seed or --seeds");
	const struct skep_sweep_request request = {.path = common->positional[0],
		.set = common->set,
		.sets = common->scenario.sets,
		.seeds = a->seeds,
		.db = common->db,
		.details = true,
		.json = common->json,
		.quiet = common->quiet};
	return skep_sweep(&request);
}

static enum status simulate_graph(const struct sim_arguments *a)
{
	if (a->resume || a->keep || a->details || a->seeds || a->threads > 0 || a->common.has_db)
		return skep_report_error(STATUS_BAD_INPUT,
			"sim: --graph simulates what is in the file, and stores no run: leave out --resume, --write-checkpoints, "
			"--details, --seeds, --threads and --db");
	return skep_graph_from_file(&a->common, a->graph);
}

static enum status run(struct skep_command_line *line)
{
	struct sim_arguments a = {0};
	struct skep_scenario scenario;
	enum status status;
	if (!skep_arguments_read(line, &a.common, &status))
		return status;
	if (a.graph)
		return simulate_graph(&a);
	if (a.common.output)
		return skep_report_error(STATUS_BAD_INPUT, "sim: -o is for the times of a graph: give --graph as well");
	if (a.common.positionals == 0)
		return skep_report_error(STATUS_BAD_INPUT, "sim takes SCENARIO, or --graph FILE; see skep sim --help");
	if (a.seeds)
		return simulate_seeds(&a);
	if (!skep_arguments_scenario(&a.common, &scenario))
		return STATUS_BAD_INPUT;
	if (skep_begin_simulated(&a.common, a.resume, a.keep, &scenario, &status))
		status = simulate(&a, &scenario);
	skep_scenario_finish(&scenario);
	return status;
}

static const struct skep_option rows[] = {
	{"seeds", 0, SKEP_OPTION_TEXT, offsetof(struct sim_arguments, seeds), "A..B",
		.help = "a run with each of these seeds, and of each figure mean, deviation, 5 % and 95 %; also 1,2,5"},
	{"resume", 0, SKEP_OPTION_FLAG, offsetof(struct sim_arguments, resume),
		.help = "continue from the newest checkpoint in the folder of checkpoint.to"},
	{"write-checkpoints", 0, SKEP_OPTION_FLAG, offsetof(struct sim_arguments, keep),
		.help = "write checkpoints into the folder of checkpoint.to, as `skep run` does"},
	{"details", 0, SKEP_OPTION_FLAG, offsetof(struct sim_arguments, details),
		.help = "store up to 200,000 operations of the run instead of 50,000"},
	{"graph", 0, SKEP_OPTION_PATH, offsetof(struct sim_arguments, graph), "FILE",
		.help = "simulate this graph of `skep plan --graph`, edited or not, on the scenario that it was made of, or on "
			"SCENARIO; print its makespan, how busy places are, and the critical path"},
	{"output", 'o', SKEP_OPTION_PATH, offsetof(struct sim_arguments, common.output), "OUT",
		.help = "with --graph: write it with its new times, as JSON, or for graphviz (.dot, .gv)",
		.usual = "it is not written"},
	{"threads", 0, SKEP_OPTION_U32, offsetof(struct sim_arguments, threads), "N",
		.help = "threads for the arithmetic of train.arithmetic: real; results do not depend on it", .least = 1,
		.most = 1024, .usual = "one per core", .expected = "a number from 1 to 1024"},
};

static const struct skep_option_group groups[] = {
	SKEP_SCENARIO_AND_TRACE_OPTIONS, SKEP_OWN_OPTIONS("Simulation", rows), SKEP_DATABASE_OPTIONS, {0}};
static const struct skep_example examples[] = {
	{"skep sim scenarios/two-datacentres.yaml", "simulate a shipped scenario; the run goes into skep.db"},
	{"skep sim scenarios/two-datacentres.yaml --set train.until.steps=50 --json",
		"50 steps only; the results as JSON"},
	{"skep sim --graph plan.json", "a plan that was written by `skep plan --graph`, and perhaps edited"},
	{0},
};

const struct skep_command skep_command_sim = {
	.name = "sim",
	.operands = "SCENARIO",
	.summary = "simulate a scenario in virtual time",
	.text = "Simulates training in virtual time over the topology's network and GPU profiles, prints throughput, "
		"traffic, losses of work and cost, and stores the run in the database.\n"
		"With --graph it simulates a plan as a graph, and needs no SCENARIO.",
	.least = 0,
	.most = 1,
	.group = groups,
	.example = examples,
	.run = run,
};
