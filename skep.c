/* SPDX-License-Identifier: Apache-2.0
 *
 * skep.c - the program: one function per command. Each reads as the data flows:
 *
 *     scenario file -> plan -> one of two worlds -> recorder -> database -> compare, plot
 *
 * Results go to stdout, everything said to a person to stderr. Exit status: 0 done, 1 the run failed, 2 bad usage or input; a
 * command that a signal ends writes what is finished and then ends by that signal, 128 + its number to a shell.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/compare.h"
#include "analysis/plot.h"
#include "analysis/store.h"
#include "analysis/store_log.h"
#include "commands/arguments.h"
#include "commands/bench.h"
#include "commands/cores.h"
#include "commands/export.h"
#include "commands/fit.h"
#include "commands/launch.h"
#include "commands/output.h"
#include "commands/plan.h"
#include "commands/plot.h"
#include "commands/probe.h"
#include "commands/recording.h"
#include "commands/resume.h"
#include "commands/stop.h"
#include "commands/sweep.h"
#include "commands/topology.h"
#include "commands/trace.h"
#include "exec/exec.h"
#include "exec/replay.h"
#include "scenarios/describe.h"
#include "scenarios/loss.h"
#include "scenarios/resume.h"
#include "scenarios/scenario.h"
#include "scenarios/train.h"
#include "sim/sim.h"
#include "version.h"

#define ERROR_BYTES 1024

static enum status complain(enum status status, const char *message)
{
	fprintf(stderr, "skep: %s\n", message);
	return status;
}

/* ---- what commands share ---------------------------------------------------------------------------------------- */

/* To who starts a run: what the weights did not say. */
static void say_head(const struct skep_scenario *scenario, bool quiet)
{
	const char *table = skep_train_head_from(scenario);
	if (table != NULL && !quiet)
		fprintf(stderr, "skep: %s has no lm_head.weight: the head begins as a copy of %s\n",
			scenario->weights_path, table);
}

/* ---- commands --------------------------------------------------------------------------------------------------- */

static enum status check(const struct arguments *arguments)
{
	struct skep_scenario scenario;
	if (!skep_arguments_scenario(arguments, &scenario))
		return STATUS_BAD_INPUT;
	skep_scenario_describe(&scenario, arguments->json, stdout);
	skep_scenario_finish(&scenario);
	return STATUS_DONE;
}

static enum status sim(const struct arguments *arguments)
{
	struct skep_scenario scenario;
	struct recording recording;
	struct skep_sim_result result;
	char error[ERROR_BYTES], stopped[64];
	enum status begun;
	if (!skep_arguments_scenario(arguments, &scenario))
		return STATUS_BAD_INPUT;
	if (!skep_begin_simulated(arguments, &scenario, &begun)) {
		skep_scenario_finish(&scenario);
		return begun;
	}
	const struct skep_sim_options options = {
		.threads = arguments->threads > 0 ? arguments->threads : skep_cores(), .stop = skep_stop_listen()};
	if (!skep_recording_begin(&recording, arguments, &scenario, "sim", error, sizeof error)) {
		skep_scenario_finish(&scenario);
		return complain(STATUS_BAD_INPUT, error);
	}
	say_head(&scenario, arguments->quiet);
	bool ran = skep_sim_run_with(&scenario, &options, &recording.recorder, &result);
	if (result.stopped == 0)
		skep_stop_deafen();
	if (!ran)
		result.outcome = SKEP_FAILED;
	if (result.stopped != 0)
		snprintf(stopped, sizeof stopped, "ended by SIG%s", sigabbrev_np(result.stopped));
	enum status status = skep_recording_end(&recording, arguments, result.end_ns, result.events, result.outcome,
		result.stopped != 0 ? stopped : NULL);
	if (!ran)
		complain(STATUS_FAILED, result.why[0] ? result.why : "not enough memory to simulate this scenario");
	else if (result.outcome != SKEP_DONE)
		complain(STATUS_FAILED, recording.failure);
	if (ran && !arguments->quiet && skep_loss_extrapolates(&scenario, result.rounds, error, sizeof error))
		fprintf(stderr, "skep: extrapolated: the law was fitted elsewhere: %s\n", error);
	skep_scenario_finish(&scenario);
	return result.stopped != 0 ? (enum status)(STATUS_SIGNAL + result.stopped) : status;
}

/* The first process: everything a user can get wrong is said before any other process starts. */
static enum status launch(const struct arguments *arguments, struct skep_scenario *scenario)
{
	char error[ERROR_BYTES], why[ERROR_BYTES];
	uint32_t ranks = scenario->plan.workers + 1;
	if (!skep_exec_ready(&arguments->exec, error, sizeof error) ||
		!skep_device_available(arguments->exec.device, error, sizeof error))
		return complain(STATUS_BAD_INPUT, error);
	if (arguments->ranks != 0 && arguments->ranks != ranks) {
		snprintf(error, sizeof error,
			"-n %" PRIu32 ": this scenario has %" PRIu32 " worker%s and needs %" PRIu32
			" processes, one of them the directory; leave -n out or write -n %" PRIu32,
			arguments->ranks, ranks - 1, ranks == 2 ? "" : "s", ranks, ranks);
		return complain(STATUS_BAD_INPUT, error);
	}
	enum status over = STATUS_BAD_INPUT;
	if (!skep_take_up(arguments, false, scenario, &over))
		return over;
	struct skep_store *store = skep_store_open(arguments->db, true, error, sizeof error);
	if (!store)
		return complain(STATUS_BAD_INPUT, error);
	skep_store_close(store);
	error[0] = '\0';
	say_head(scenario, arguments->quiet);
	int status = skep_launch(arguments, scenario, error, sizeof error);
	if (error[0] != '\0' && (store = skep_store_open(arguments->db, true, why, sizeof why)) != NULL)
		skep_store_close(store); /* which marks a run as dead whose rank 0 had no time to */
	enum status ended = status < 0 ? STATUS_FAILED : (enum status)status;
	return error[0] != '\0' ? complain(ended, error) : ended;
}

static enum status run_directory(
	const struct arguments *arguments, const struct skep_scenario *scenario, struct skep_exec_result *ret)
{
	struct recording recording;
	char error[ERROR_BYTES];
	if (!skep_recording_begin(&recording, arguments, scenario, "real", error, sizeof error)) {
		enum status status = complain(STATUS_BAD_INPUT, error); /* nobody comes back from there */
		skep_exec_abort((int)status);
		return status;
	}
	bool ran = skep_exec_run(scenario, &arguments->exec, &recording.recorder, ret, error, sizeof error);
	enum skep_outcome outcome = ran ? ret->outcome : SKEP_FAILED;
	enum status status = skep_recording_end(
		&recording, arguments, ret->end_ns, ret->events, outcome, ret->signal != 0 ? error : NULL);
	bool said = !ran && ret->signal == 0;
	return outcome == SKEP_DONE ? status : complain(status, said ? error : recording.failure);
}

static enum status run_rank(const struct arguments *arguments, struct skep_scenario *scenario)
{
	uint32_t rank, ranks, needed = scenario->plan.workers + 1;
	struct skep_exec_result result = {.outcome = SKEP_FAILED};
	const char *key[2];
	char error[ERROR_BYTES];
	if (!skep_exec_init(&rank, &ranks, error, sizeof error))
		return complain(STATUS_FAILED, error);
	enum status status = STATUS_DONE;
	bool survives = skep_exec_survives();
	if (ranks < needed || (ranks > needed && !survives)) {
		snprintf(error, sizeof error,
			"started with %" PRIu32 " process%s, but this scenario has %" PRIu32
			" worker%s and needs %" PRIu32 ", one of them the directory",
			ranks, ranks == 1 ? "" : "es", needed - 1, needed == 2 ? "" : "s", needed);
		status = rank == 0 ? complain(STATUS_BAD_INPUT, error) : STATUS_BAD_INPUT;
	} else if (!skep_scenario_runs(scenario, arguments->exec.pace, key, error, sizeof error)) {
		status = rank == 0 ? complain(STATUS_BAD_INPUT, error) : STATUS_BAD_INPUT;
	} else if (!skep_take_up_together(arguments, rank, scenario, &status)) {
		status = rank == 0 ? status : STATUS_DONE; /* rank 0 has said why */
	} else if (rank == 0) {
		status = run_directory(arguments, scenario, &result);
	} else if (!skep_exec_run(scenario, &arguments->exec, NULL, &result, error, sizeof error)) {
		status = STATUS_FAILED; /* rank 0 says why */
	}
	skep_exec_finish((int)status, &result);
	return status;
}

static enum status run(const struct arguments *arguments)
{
	struct skep_scenario scenario;
	if (!skep_arguments_scenario_for(
		    arguments, !skep_exec_launched(), &scenario)) /* rank 0 says what else is wrong */
		return STATUS_BAD_INPUT;
	enum status status = skep_exec_launched() ? run_rank(arguments, &scenario) : launch(arguments, &scenario);
	skep_scenario_finish(&scenario);
	return status;
}

static enum status compare(const struct arguments *arguments)
{
	int64_t runs[2] = {0, 0};
	uint32_t count;
	char error[ERROR_BYTES];
	if (!skep_arguments_runs(arguments, 0, runs, &count))
		return STATUS_BAD_INPUT;
	if (count == 1)
		return complain(STATUS_BAD_INPUT, "compare takes two runs, or none for the newest of each world");
	struct skep_store *store = skep_store_open(arguments->db, false, error, sizeof error);
	if (!store)
		return complain(STATUS_BAD_INPUT, error);
	bool done = skep_compare(store, runs[0], runs[1], arguments->json, stdout, error, sizeof error);
	skep_store_close(store);
	return done ? STATUS_DONE : complain(STATUS_BAD_INPUT, error);
}

static enum status plot(const struct arguments *arguments)
{
	int64_t runs[RUNS_MAX];
	uint32_t count;
	char error[ERROR_BYTES];
	if (skep_plot_is_of_scenario(arguments->positional[0]))
		return skep_plot_scenario_command(arguments);
	if (arguments->scenario.sets > 0 || arguments->scenario.has_seed)
		return complain(
			STATUS_BAD_INPUT, "--set and --seed are for pictures of a scenario: complexity and search");
	if (!skep_arguments_run_ranges(arguments, 1, runs, &count))
		return STATUS_BAD_INPUT;
	if (!skep_plot_knows(arguments->positional[0], error, sizeof error))
		return complain(STATUS_BAD_INPUT, error);
	if (!arguments->output)
		return complain(STATUS_BAD_INPUT, "plot needs -o FILE, for example -o accuracy.png");
	if (!skep_plot_target(arguments->output, error, sizeof error))
		return complain(STATUS_BAD_INPUT, error);
	if (!skep_output_ready(arguments, NULL))
		return STATUS_BAD_INPUT;
	struct skep_store *store = skep_store_open(arguments->db, false, error, sizeof error);
	if (!store)
		return complain(STATUS_BAD_INPUT, error);
	const struct skep_plot_choice choice = {.rounds = arguments->has_rounds ? &arguments->rounds : NULL,
		.metric = arguments->metric,
		.axes = arguments->has_axes ? &arguments->axes : NULL};
	bool done = skep_plot_chosen(
		store, arguments->positional[0], runs, count, arguments->output, &choice, error, sizeof error);
	skep_store_close(store);
	if (!done)
		return complain(STATUS_BAD_INPUT, error);
	if (arguments->json)
		printf("{\"plot\":\"%s\"}\n", arguments->positional[0]);
	else if (!arguments->quiet)
		fprintf(stderr, "wrote %s\n", arguments->output);
	return STATUS_DONE;
}

/* The scenario as the run had it; the files that it names must be as they were. Says what is wrong. */
static bool read_logged_scenario(const struct skep_run_log *log, int64_t run, struct skep_scenario *ret)
{
	struct skep_diag diag = {0};
	char text[2048];
	bool read = skep_scenario_read_text(log->path, log->text, strlen(log->text), NULL, ret, &diag);
	const char *changed = skep_run_sources_changed(&log->sources, read ? ret : NULL);
	if (read && !changed && ret->plan.workers + 1 == log->machines)
		return true;
	if (!read) {
		skep_diag_print(&diag, text, sizeof text);
		fputs(text, stderr);
	}
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

static enum status replay_log(const struct arguments *arguments, int64_t run, const struct skep_run_log *log)
{
	static const enum status status[] = {[SKEP_REPLAY_AGREES] = STATUS_DONE,
		[SKEP_REPLAY_DIFFERS] = STATUS_FAILED,
		[SKEP_REPLAY_DAMAGED] = STATUS_BAD_INPUT};
	struct skep_scenario scenario;
	struct skep_replay_result result;
	if (!read_logged_scenario(log, run, &scenario))
		return STATUS_BAD_INPUT;
	skep_resume_from(&scenario, &(struct skep_resume){.version = log->first_round});
	bool ran = skep_replay_run(&scenario.plan, log->machine, &result);
	skep_scenario_finish(&scenario);
	if (!ran)
		return complain(STATUS_FAILED, "not enough memory to replay this run");
	skep_replay_print(&result, run, arguments->json, stdout);
	return status[result.verdict];
}

static enum status replay(const struct arguments *arguments)
{
	int64_t run;
	uint32_t count;
	char error[ERROR_BYTES];
	struct skep_run_log log;
	if (!skep_arguments_runs(arguments, 0, &run, &count))
		return STATUS_BAD_INPUT;
	struct skep_store *store = skep_store_open(arguments->db, false, error, sizeof error);
	if (!store)
		return complain(STATUS_BAD_INPUT, error);
	bool found = skep_run_log_read(store, run, &log, error, sizeof error);
	skep_store_close(store);
	if (!found)
		return complain(STATUS_BAD_INPUT, error);
	enum status status = replay_log(arguments, run, &log);
	skep_run_log_finish(&log);
	return status;
}

static enum status bench(const struct arguments *arguments)
{
	const struct skep_bench_request request = {.word = arguments->positional,
		.words = arguments->positionals,
		.repeat = arguments->repeat,
		.json = arguments->json,
		.version = SKEP_VERSION};
	if (!skep_bench_understood(&request, stderr))
		return STATUS_BAD_INPUT;
	return skep_bench_command(&request, stdout, stderr) ? STATUS_DONE : STATUS_FAILED;
}

/* ---- the command line ------------------------------------------------------------------------------------------- */

static const struct command commands[] = {
	{"check", "SCENARIO", "validate; print stages, workers, memory, bytes per step", "sStjq", 1, 1, check,
		"Reads the scenario and all files it names. Prints what would run, or the first error with its line.\n"},
	{"sim", "SCENARIO", "simulate", "sSTtUKdjq", 1, 1, sim,
		"Runs the scenario in virtual time over the topology's network and GPU profiles, and stores the run.\n"},
	{"run", "SCENARIO", "run for real over MPI", "sStUdjqnphDP", 1, 1, run,
		"Starts mpirun itself with one process per worker and one for the directory; started by mpirun or srun "
		"it joins.\n"
		"A trace in the scenario kills and starts its workers; how truly is up to the MPI, and is said at the "
		"start.\n"
		"With --pace and --shape one machine stands in for the cluster of the topology; with neither it goes "
		"as fast as\n"
		"this machine can.\n"},
	{"plan", "SCENARIO [-o FILE]", "who should serve which stage", "ofxObCdJsSjq", 1, 1, skep_plan_command,
		"Searches for the allocation of workers to stages with the most throughput, and for where to cut the model\n"
		"unless model.cut says it or plan.cut is as-written: by the expected time of a step, then in the\n"
		"simulator, beside the scenario's own allocation and random ones. With -o the best becomes a\n"
		"scenario that check, sim and run take. Keys in the scenario's plan.search are chosen as well, for the\n"
		"objective in plan.objective. What to expect is then stated from runs with other seeds. The result depends\n"
		"on the scenario and its seed, unless there is a budget of time. Runs of --confirm are kept in the database of\n"
		"--db, if it is given.\n"},
	{"sweep", "SCENARIO --vary KEY=A,B ...", "simulate all combinations, on all cores", "veJsStkdjq", 1, 1,
		skep_sweep_command,
		"Simulates each combination of the values, with each seed, and prints a row for every choice of "
		"values.\n"
		"Started again with the same words it does what is not in the database yet. Under mpirun or srun the "
		"ranks\n"
		"share the work, and rank 0 writes the database.\n"},
	{"export", "SCENARIO -o FOLDER", "weights of a checkpoint for `transformers`", "sSofABjq", 1, 1,
		skep_export_command,
		"Writes config.json and model.safetensors into FOLDER, with the names and layouts of Hugging Face, from the\n"
		"newest checkpoint in the folder that the scenario's checkpoint.to names (or from that of --step).\n"},
	{"compare", "[RUN RUN]", "prediction against reality, metric by metric", "djq", 0, 2, compare,
		"Without runs: the newest simulated and the newest real run of the same scenario.\n"},
	{"fit", "[RUN ...]", "a law of the loss, from runs", "djqofF", 0, RUNS_MAX, skep_fit_command,
		"Fits the loss of runs against tokens, H, replicas and staleness, and prints the parameters with their\n"
		"standard errors. The file of -o is what `maths: law` simulates with (train.law.file). 3..14 stands for\n"
		"12 runs; without runs all of the newest scenario whose arithmetic was done.\n"},
	{"plot", "KIND [RUN ...] -o FILE", "draw a picture with gnuplot", "djqofrmXYLWsS", 1, 1 + RUNS_MAX, plot,
		"Kinds:\n"
		"  accuracy    loss against wall-clock time, steps, tokens or bytes; without runs the newest of each world,\n"
		"              with --x, --y, --log or --validation all of the newest scenario; 3..14 stands for 12 runs\n"
		"  complexity  bytes that training moves, by class of link, against stages, parameters and steps: of a\n"
		"              SCENARIO in place of runs\n"
		"  cost        US dollars against time; without runs the newest of each world\n"
		"  fit         the law that `skep fit` makes of these runs, over their losses\n"
		"  matrix      bandwidth between workers, grouped by stage; without a run the newest\n"
		"  pareto      time against cost, a point for each choice of settings; without runs all of the newest "
		"scenario\n"
		"  search      how each method of `skep plan` came down: of a SCENARIO, or of a table (.csv), in place of runs\n"
		"  sweep       a figure of the newest sweep, or of that of a run, against one of its keys\n"
		"  throughput  samples per second and the spread over stages; without runs all of the newest scenario\n"
		"  timeline    what each worker did when; without a run the newest\n"
		"  utilisation compute time over time alive, worker by worker over time, of up to 4 runs; without runs the\n"
		"              newest of each world\n"
		"The ending of FILE says the format: .png, .svg or .pdf. --set and --seed are for complexity and search of a\n"
		"SCENARIO; all other kinds draw runs as the database of --db has them.\n"},
	{"replay", "RUN", "feed a real run's log to the core, which must decide the same", "djq", 1, 1, replay,
		"Every real run logs what its machines were told. Told the same again they must decide the same;\n"
		"if not, the first event that goes another way is shown and the exit status is 1.\n"},
	{"bench", "[WORKLOAD ...]", "how fast the simulator is, and whether its times are exact", "jqR", 0, 64, bench,
		"Workloads with exactly known makespans, each run through the simulator's own queue and network on\n"
		"one core: PHOLD (bare events), P (a pipeline step), F and X (random flows over a star and over a\n"
		"full matrix), R-fast and R-wide (ring all-reduces), swarm (the whole simulator, scheduler included).\n"
		"Without a workload: all but those that take long; all: every one; small: in about a second; else a\n"
		"name or its beginning: P, R-fast, P-1024. Exit status 1 if a makespan is not the exact one.\n"},
};

/* One that has sub-commands, which read their own options. */
typedef bool sub_commands(int argc, char **argv, FILE *out, FILE *warn, char *error, size_t size);
static enum status run_sub_command(sub_commands *command, int argc, char **argv)
{
	char error[ERROR_BYTES];
	if (command(argc, argv, stdout, stderr, error, sizeof error))
		return STATUS_DONE;
	fprintf(stderr, "%s%s\n", strstr(error, "error:") ? "" : "skep: ", error);
	return STATUS_BAD_INPUT;
}

static void print_usage(FILE *out)
{
	fputs("usage: skep COMMAND [OPTIONS]\n\n"
	      "Train on GPUs that nobody would call a cluster: simulate a scenario file, run the same file, "
	      "compare.\n\n",
		out);
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
		fprintf(out, "  skep %-8s %-43s %s\n", commands[i].name, commands[i].operands, commands[i].summary);
	fprintf(out, "  skep %-8s %-43s %s\n", "probe", "-o FILE [-n RANKS]",
		"measure a cluster: ways between ranks, devices");
	fprintf(out, "  skep %-8s %-43s %s\n", "trace", "import|stats|generate ...", "churn traces");
	fprintf(out, "  skep %-8s %-43s %s\n", "topology", "import|stats ...",
		"measured networks, and what is in a topology");
	fputs("\n`skep COMMAND --help` lists a command's options. First: skep sim scenarios/two-datacentres.yaml\n",
		out);
}

static enum status run_command(const struct command *command, int argc, char **argv)
{
	struct arguments arguments;
	bool help = false;
	char program[] = "skep";
	char **whole = malloc((size_t)(argc + 1) * sizeof *whole); /* getopt reorders; mpirun gets the original */
	if (!whole)
		return complain(STATUS_FAILED, "out of memory");
	memcpy(whole, argv, (size_t)(argc + 1) * sizeof *whole);
	argv[1] = program; /* how getopt begins what it says */
	enum status status = skep_arguments_read(command, argc - 1, argv + 1, &arguments, &help);
	arguments.argv = whole;
	if (help)
		skep_arguments_print_help(command, stdout);
	else if (status == STATUS_DONE)
		status = command->run(&arguments);
	free(whole);
	return status;
}

static enum status dispatch(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	if (strcmp(name, "help") == 0 && argc > 2) { /* of one command */
		char word[] = "--help", *words[] = {argv[0], argv[2], word, NULL};
		return dispatch(3, words);
	}
	if (argc == 1 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
		print_usage(argc == 1 ? stderr : stdout);
		return argc == 1 ? STATUS_BAD_INPUT : STATUS_DONE;
	}
	if (strcmp(name, "--version") == 0) {
		puts("skep " SKEP_VERSION);
		return STATUS_DONE;
	}
	if (strcmp(name, "probe") == 0)
		return skep_probe_command(argc, argv);
	if (strcmp(name, "trace") == 0)
		return run_sub_command(skep_trace_command, argc - 2, argv + 2);
	if (strcmp(name, "topology") == 0)
		return run_sub_command(skep_topology_command, argc - 2, argv + 2);
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
		if (strcmp(name, commands[i].name) == 0)
			return run_command(&commands[i], argc, argv);
	fprintf(stderr, "skep: there is no command '%s'\n\n", name);
	print_usage(stderr);
	return STATUS_BAD_INPUT;
}

/* Results that did not arrive are not done, whatever the command thinks. A file that grows beyond what the system allows is an
 * error like a full disk, which is said, and nothing to die of. */
int main(int argc, char **argv)
{
	signal(SIGXFSZ, SIG_IGN);
	enum status status = dispatch(argc, argv);
	bool flushed = fflush(stdout) == 0;
	if (status > STATUS_SIGNAL)
		skep_stop_die((int)status - STATUS_SIGNAL);
	if (flushed && !ferror(stdout))
		return (int)status;
	fprintf(stderr, "skep: the results could not all be written to standard output%s%s\n", flushed ? "" : ": ",
		flushed ? "" : strerror(errno));
	return status == STATUS_DONE ? (int)STATUS_FAILED : (int)status;
}
