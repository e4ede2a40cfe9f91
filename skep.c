/* SPDX-License-Identifier: Apache-2.0
 *
 * skep.c - the program: one function per command. Each reads as the data flows:
 *
 *     scenario file -> plan -> one of two worlds -> recorder -> database -> compare, plot
 *
 * Results go to stdout, everything said to a person to stderr. Exit status: 0 done, 1 the run failed, 2 bad usage or input.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "analysis/compare.h"
#include "analysis/plot.h"
#include "analysis/progress.h"
#include "analysis/store.h"
#include "analysis/store_log.h"
#include "analysis/summary.h"
#include "exec/exec.h"
#include "exec/replay.h"
#include "scenarios/describe.h"
#include "scenarios/scenario.h"
#include "sim/sim.h"
#include "topologies/trace_tool.h"
#include "version.h"

enum status { STATUS_DONE = 0, STATUS_FAILED = 1, STATUS_BAD_INPUT = 2 };

#define SETS_MAX 64
#define RUNS_MAX 32
#define ERROR_BYTES 1024

struct arguments {
	const char *set[SETS_MAX];
	struct skep_scenario_options scenario;
	const char *db, *output;
	uint32_t ranks; /* 0: not given */
	bool json, quiet;
	struct skep_exec_options exec;
	char **positional;
	uint32_t positionals;
	char **argv; /* the whole command line, for mpirun */
};

struct command {
	const char *name, *operands, *summary;
	const char *options;  /* letters of long_options that it takes */
	uint32_t least, most; /* operands */
	enum status (*run)(const struct arguments *arguments);
	const char *help;
};

/* Every option; `val` is its letter in struct command. */
static const struct option long_options[] = {
	{"set", required_argument, NULL, 's'},
	{"seed", required_argument, NULL, 'S'},
	{"db", required_argument, NULL, 'd'},
	{"json", no_argument, NULL, 'j'},
	{"quiet", no_argument, NULL, 'q'},
	{"ranks", required_argument, NULL, 'n'},
	{"pace", no_argument, NULL, 'p'},
	{"shape", no_argument, NULL, 'h'},
	{"device", required_argument, NULL, 'D'},
	{"output", required_argument, NULL, 'o'},
	{"help", no_argument, NULL, 'H'},
	{"version", no_argument, NULL, 'V'},
	{NULL, 0, NULL, 0},
};

static const char *const option_help[] = {
	['s'] = "  --set KEY.PATH=VALUE  replace a value of the scenario; may be given several times\n",
	['S'] = "  --seed N              replace the scenario's seed\n",
	['d'] = "  --db FILE             database (default skep.db)\n",
	['j'] = "  --json                one JSON object on stdout, nothing else\n",
	['q'] = "  -q, --quiet           no progress on stderr\n",
	['n'] = "  -n, --ranks RANKS     processes to start: the scenario's workers + 1 for the directory\n",
	['p'] = "  --pace                an operation takes at least the time that the GPU profile gives\n",
	['h'] = "  --shape               a message takes the time that the topology gives (one host only)\n",
	['D'] = "  --device cpu|cuda     what does the arithmetic (default cpu)\n",
	['o'] = "  -o, --output FILE     the picture; its ending says the format: .png .svg .pdf\n",
};

static enum status complain(enum status status, const char *message)
{
	fprintf(stderr, "skep: %s\n", message);
	return status;
}

/* ---- what commands share ---------------------------------------------------------------------------------------- */

static bool read_scenario(const struct arguments *arguments, struct skep_scenario *ret)
{
	struct skep_diag diag = {0};
	if (skep_scenario_read(arguments->positional[0], &arguments->scenario, ret, &diag))
		return true;
	char text[2048];
	skep_diag_print(&diag, text, sizeof text);
	fputs(text, stderr);
	return false;
}

static double seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* One run on its way into the database: what a world reports goes to the store, the summary and the progress bar. */
struct recording {
	struct skep_store *store;
	struct skep_tally *tally;
	struct skep_progress progress;
	struct skep_recorder_pair results, all;
	struct skep_recorder recorder;
	double begin_s;
	int64_t run;
};

static bool begin_recording(struct recording *r, const struct arguments *arguments,
	const struct skep_scenario *scenario, const char *world, char *error)
{
	const struct skep_exec_options *exec = &arguments->exec;
	const char *device = exec->device == SKEP_DEVICE_CUDA ? "cuda" : "cpu";
	*r = (struct recording){0};
	r->store = skep_store_open(arguments->db, true, error, ERROR_BYTES);
	if (!r->store || !skep_store_begin(r->store, scenario, world, device, exec->pace, exec->shape, &r->run, error,
				 ERROR_BYTES)) {
		skep_store_close(r->store);
		return false;
	}
	r->tally = skep_tally_create(scenario, world);
	r->results = (struct skep_recorder_pair){skep_store_recorder(r->store), skep_tally_recorder(r->tally)};
	r->progress = skep_progress_begin(world, !arguments->quiet && !arguments->json && isatty(STDERR_FILENO));
	r->all = (struct skep_recorder_pair){skep_recorder_both(&r->results), skep_progress_recorder(&r->progress)};
	r->recorder = skep_recorder_both(&r->all);
	r->begin_s = seconds();
	return true;
}

static enum status end_recording(struct recording *r, const struct arguments *arguments, skep_time end_ns,
	uint64_t events, enum skep_outcome outcome)
{
	struct skep_summary summary;
	char error[ERROR_BYTES];
	skep_progress_end(&r->progress);
	skep_tally_finish(r->tally, end_ns, events, seconds() - r->begin_s, outcome, &summary);
	summary.run_id = r->run;
	bool stored = skep_store_end(r->store, &summary, error, sizeof error);
	skep_tally_destroy(r->tally);
	skep_store_close(r->store);
	if (arguments->json)
		skep_summary_print_json(&summary, stdout);
	else
		skep_summary_print_text(&summary, stdout);
	if (!stored)
		return complain(STATUS_FAILED, error);
	return outcome == SKEP_DONE ? STATUS_DONE : STATUS_FAILED;
}

static const char failed_run[] = "the run failed: a stage lost its last worker, and no other came in time";

/* ---- commands --------------------------------------------------------------------------------------------------- */

static enum status check(const struct arguments *arguments)
{
	struct skep_scenario scenario;
	if (!read_scenario(arguments, &scenario))
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
	char error[ERROR_BYTES];
	if (!read_scenario(arguments, &scenario))
		return STATUS_BAD_INPUT;
	if (!begin_recording(&recording, arguments, &scenario, "sim", error)) {
		skep_scenario_finish(&scenario);
		return complain(STATUS_BAD_INPUT, error);
	}
	bool ran = skep_sim_run(&scenario, &recording.recorder, &result);
	if (!ran)
		result = (struct skep_sim_result){.outcome = SKEP_FAILED};
	enum status status = end_recording(&recording, arguments, result.end_ns, result.events, result.outcome);
	if (!ran)
		complain(STATUS_FAILED, "not enough memory to simulate this scenario");
	else if (status == STATUS_FAILED)
		complain(STATUS_FAILED, failed_run);
	skep_scenario_finish(&scenario);
	return status;
}

/* The first process: everything a user can get wrong is said before any other process starts. */
static enum status launch(const struct arguments *arguments, const struct skep_scenario *scenario)
{
	char error[ERROR_BYTES];
	uint32_t ranks = scenario->plan.workers + 1;
	if (!skep_exec_ready(error, sizeof error) ||
		!skep_device_available(arguments->exec.device, error, sizeof error))
		return complain(STATUS_BAD_INPUT, error);
	if (arguments->ranks != 0 && arguments->ranks != ranks) {
		snprintf(error, sizeof error,
			"-n %" PRIu32 ": this scenario has %" PRIu32 " workers and needs %" PRIu32
			" processes, one of them the directory; leave -n out or write -n %" PRIu32,
			arguments->ranks, ranks - 1, ranks, ranks);
		return complain(STATUS_BAD_INPUT, error);
	}
	struct skep_store *store = skep_store_open(arguments->db, true, error, sizeof error);
	if (!store)
		return complain(STATUS_BAD_INPUT, error);
	skep_store_close(store);
	skep_exec_launch(ranks, arguments->argv, error, sizeof error);
	return complain(STATUS_FAILED, error);
}

static enum status run_directory(const struct arguments *arguments, const struct skep_scenario *scenario)
{
	struct recording recording;
	struct skep_exec_result result;
	char error[ERROR_BYTES];
	if (!begin_recording(&recording, arguments, scenario, "real", error)) {
		skep_exec_abort();
		return complain(STATUS_BAD_INPUT, error);
	}
	bool ran = skep_exec_run(scenario, &arguments->exec, &recording.recorder, &result, error, sizeof error);
	enum skep_outcome outcome = ran ? result.outcome : SKEP_FAILED;
	enum status status = end_recording(&recording, arguments, result.end_ns, result.events, outcome);
	return status == STATUS_DONE ? status : complain(status, ran ? failed_run : error);
}

static enum status run_rank(const struct arguments *arguments, const struct skep_scenario *scenario)
{
	uint32_t rank, ranks, needed = scenario->plan.workers + 1;
	struct skep_exec_result result;
	char error[ERROR_BYTES];
	if (!skep_exec_init(&rank, &ranks, error, sizeof error))
		return complain(STATUS_FAILED, error);
	enum status status = STATUS_DONE;
	if (ranks != needed) {
		snprintf(error, sizeof error,
			"started with %" PRIu32 " processes, but this scenario has %" PRIu32
			" workers and needs %" PRIu32 ", one of them the directory",
			ranks, needed - 1, needed);
		status = rank == 0 ? complain(STATUS_BAD_INPUT, error) : STATUS_BAD_INPUT;
	} else if (rank == 0) {
		status = run_directory(arguments, scenario);
	} else if (!skep_exec_run(scenario, &arguments->exec, NULL, &result, error, sizeof error)) {
		status = STATUS_FAILED; /* rank 0 says why */
	}
	skep_exec_finish();
	return status;
}

static enum status run(const struct arguments *arguments)
{
	struct skep_scenario scenario;
	if (!read_scenario(arguments, &scenario))
		return STATUS_BAD_INPUT;
	if (scenario.has_trace) {
		skep_scenario_finish(&scenario);
		return complain(STATUS_BAD_INPUT,
			"cluster.trace: processes do not come and go in a real run yet; `skep sim` plays the trace");
	}
	enum status status = skep_exec_launched() ? run_rank(arguments, &scenario) : launch(arguments, &scenario);
	skep_scenario_finish(&scenario);
	return status;
}

static bool parse_run(const char *text, int64_t *ret)
{
	char *end;
	errno = 0;
	*ret = strtoll(text, &end, 10);
	return *text != '\0' && *end == '\0' && errno == 0 && *ret > 0;
}

/* Operands `first` and on are numbers of runs. */
static bool parse_runs(const struct arguments *arguments, uint32_t first, int64_t *ret, uint32_t *ret_count)
{
	*ret_count = arguments->positionals - first;
	for (uint32_t i = 0; i < *ret_count; i++) {
		if (parse_run(arguments->positional[first + i], &ret[i]))
			continue;
		fprintf(stderr, "skep: %s is not the number of a run; `skep compare` and `skep sim` print them\n",
			arguments->positional[first + i]);
		return false;
	}
	return true;
}

static enum status compare(const struct arguments *arguments)
{
	int64_t runs[2] = {0, 0};
	uint32_t count;
	char error[ERROR_BYTES];
	if (!parse_runs(arguments, 0, runs, &count))
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
	if (!parse_runs(arguments, 1, runs, &count))
		return STATUS_BAD_INPUT;
	if (!arguments->output)
		return complain(STATUS_BAD_INPUT, "plot needs -o FILE, for example -o accuracy.png");
	struct skep_store *store = skep_store_open(arguments->db, false, error, sizeof error);
	if (!store)
		return complain(STATUS_BAD_INPUT, error);
	bool done = skep_plot(store, arguments->positional[0], runs, count, arguments->output, error, sizeof error);
	skep_store_close(store);
	if (!done)
		return complain(STATUS_BAD_INPUT, error);
	if (arguments->json)
		printf("{\"plot\":\"%s\"}\n", arguments->positional[0]);
	else if (!arguments->quiet)
		fprintf(stderr, "wrote %s\n", arguments->output);
	return STATUS_DONE;
}

/* The scenario as the run had it; the files that it names are those of today. Says what is wrong. */
static bool read_logged_scenario(const struct skep_run_log *log, struct skep_scenario *ret)
{
	struct skep_diag diag = {0};
	char text[2048];
	if (!skep_scenario_read_text(log->path, log->text, strlen(log->text), NULL, ret, &diag)) {
		skep_diag_print(&diag, text, sizeof text);
		fputs(text, stderr);
		return false;
	}
	if (ret->plan.workers + 1 == log->machines)
		return true;
	fprintf(stderr,
		"skep: a file that the scenario names has changed: the run had %" PRIu32
		" workers, now there are %" PRIu32 "\n",
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
	if (!read_logged_scenario(log, &scenario))
		return STATUS_BAD_INPUT;
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
	if (!parse_runs(arguments, 0, &run, &count))
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

/* ---- the command line ------------------------------------------------------------------------------------------- */

static const struct command commands[] = {
	{"check", "SCENARIO", "validate; print stages, workers, memory, bytes per step", "sSdjq", 1, 1, check,
		"Reads the scenario and all files it names. Prints what would run, or the first error with its "
		"line.\n"},
	{"sim", "SCENARIO", "simulate", "sSdjq", 1, 1, sim,
		"Runs the scenario in virtual time over the topology's network and GPU profiles, and stores the "
		"run.\n"},
	{"run", "SCENARIO", "run for real over MPI", "sSdjqnphD", 1, 1, run,
		"Starts mpirun itself with one process per worker and one for the directory; started by mpirun or srun "
		"it joins.\n"
		"With --pace and --shape one machine stands in for the cluster of the topology; with neither it goes "
		"as fast as\n"
		"this machine can.\n"},
	{"compare", "[RUN RUN]", "prediction against reality, metric by metric", "djq", 0, 2, compare,
		"Without runs: the newest simulated and the newest real run of the same scenario.\n"},
	{"plot", "accuracy|matrix|throughput|timeline [RUN ...]", "draw a picture with gnuplot", "djqo", 1,
		1 + RUNS_MAX, plot,
		"  accuracy  loss against wall-clock time; without runs the newest of each world\n"
		"  matrix    bandwidth between workers, grouped by stage; without a run the newest\n"
		"  timeline  what each worker did when; without a run the newest\n"},
	{"replay", "RUN", "feed a real run's log to fresh machines", "dj", 1, 1, replay,
		"Every real run logs what its machines were told. Told the same again they must decide the same;\n"
		"if not, the first event that goes another way is shown and the exit status is 1.\n"},
};

/* Its sub-commands read their own options. */
static enum status trace(int argc, char **argv)
{
	char error[ERROR_BYTES];
	static char help[] = "--help", *const nothing[] = {help, NULL};
	bool asked = argc > 0;
	if (skep_trace_tool(asked ? argc : 1, asked ? argv : (char **)nothing, stdout, stderr, error, sizeof error))
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
		fprintf(out, "  skep %-8s %-36s %s\n", commands[i].name, commands[i].operands, commands[i].summary);
	fprintf(out, "  skep %-8s %-36s %s\n", "trace", "import|stats|generate ...", "churn traces");
	fputs("\n`skep COMMAND --help` lists a command's options. First: skep sim scenarios/two-datacentres.yaml\n",
		out);
}

static void print_command_help(const struct command *command, FILE *out)
{
	fprintf(out, "usage: skep %s %s [OPTIONS]\n\n%s\n", command->name, command->operands, command->help);
	for (const char *letter = command->options; *letter; letter++)
		fputs(option_help[(unsigned char)*letter], out);
}

static bool parse_number(const char *text, uint64_t most, uint64_t *ret)
{
	char *end;
	errno = 0;
	*ret = strtoull(text, &end, 10);
	return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && *ret <= most;
}

static enum status bad_value(const char *option, const char *value, const char *expected)
{
	fprintf(stderr, "skep: %s %s: expected %s\n", option, value, expected);
	return STATUS_BAD_INPUT;
}

static enum status take_option(struct arguments *a, int letter)
{
	uint64_t number;
	switch (letter) {
	case 's':
		if (a->scenario.sets == SETS_MAX)
			return complain(STATUS_BAD_INPUT, "too many --set options");
		a->set[a->scenario.sets++] = optarg;
		break;
	case 'S':
		if (!parse_number(optarg, UINT64_MAX, &a->scenario.seed))
			return bad_value("--seed", optarg, "a whole number from 0");
		a->scenario.has_seed = true;
		break;
	case 'n':
		if (!parse_number(optarg, 1u << 20, &number) || number == 0)
			return bad_value("-n", optarg, "a number of processes, from 1");
		a->ranks = (uint32_t)number;
		break;
	case 'D':
		if (strcmp(optarg, "cpu") != 0 && strcmp(optarg, "cuda") != 0)
			return bad_value("--device", optarg, "cpu or cuda");
		a->exec.device = strcmp(optarg, "cuda") == 0 ? SKEP_DEVICE_CUDA : SKEP_DEVICE_CPU;
		break;
	case 'd':
		a->db = optarg;
		break;
	case 'o':
		a->output = optarg;
		break;
	case 'j':
		a->json = true;
		break;
	case 'q':
		a->quiet = true;
		break;
	case 'p':
		a->exec.pace = true;
		break;
	case 'h':
		a->exec.shape = true;
		break;
	}
	return STATUS_DONE;
}

static enum status parse_arguments(
	const struct command *command, int argc, char **argv, struct arguments *ret, bool *ret_help)
{
	int letter;
	*ret = (struct arguments){.db = "skep.db", .argv = argv};
	ret->scenario.set = ret->set;
	while ((letter = getopt_long(argc, argv, "n:o:q", long_options, NULL)) != -1) {
		if (letter == 'H') {
			*ret_help = true;
			return STATUS_DONE;
		}
		if (letter == '?' || !strchr(command->options, letter)) {
			if (letter != '?')
				fprintf(stderr, "skep: %s does not take that option\n", command->name);
			print_command_help(command, stderr);
			return STATUS_BAD_INPUT;
		}
		if (take_option(ret, letter) != STATUS_DONE)
			return STATUS_BAD_INPUT;
	}
	ret->positional = argv + optind;
	ret->positionals = (uint32_t)(argc - optind);
	if (ret->positionals >= command->least && ret->positionals <= command->most)
		return STATUS_DONE;
	fprintf(stderr, "skep: %s takes %s\n", command->name, command->operands);
	return STATUS_BAD_INPUT;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	if (argc == 1 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
		print_usage(argc == 1 ? stderr : stdout);
		return argc == 1 ? STATUS_BAD_INPUT : STATUS_DONE;
	}
	if (strcmp(name, "--version") == 0) {
		puts("skep " SKEP_VERSION);
		return STATUS_DONE;
	}
	if (strcmp(name, "trace") == 0)
		return (int)trace(argc - 2, argv + 2);
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
		struct arguments arguments;
		bool help = false;
		if (strcmp(name, commands[i].name) != 0)
			continue;
		char **whole =
			malloc((size_t)(argc + 1) * sizeof *whole); /* getopt reorders; mpirun gets the original */
		if (!whole)
			return complain(STATUS_FAILED, "out of memory");
		memcpy(whole, argv, (size_t)(argc + 1) * sizeof *whole);
		enum status status = parse_arguments(&commands[i], argc - 1, argv + 1, &arguments, &help);
		arguments.argv = whole;
		if (help)
			print_command_help(&commands[i], stdout);
		else if (status == STATUS_DONE)
			status = commands[i].run(&arguments);
		free(whole);
		return (int)status;
	}
	fprintf(stderr, "skep: there is no command '%s'\n\n", name);
	print_usage(stderr);
	return STATUS_BAD_INPUT;
}
