/* SPDX-License-Identifier: Apache-2.0
 *
 * plot.c - `skep plot`: pictures of runs, from the database, and of a scenario itself, from the planner.
 */
#include "analysis/plot/plot.h"
#include "base/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/jobs/jobs_db.h"
#include "base/text.h"
#include "commands/arguments.h"
#include "commands/commands.h"
#include "commands/output.h"
#include "planning/print/figures.h"
#include "planning/problem/resolve.h"

struct plot_arguments {
	struct arguments common;
	struct skep_plot_rounds rounds;
	struct skep_plot_axes axes;
	const char *metric; /* NULL: not given */
	bool has_rounds, has_axes;
};

/* `runs` NULL: it is not of runs. */
static void print_json(const struct arguments *a, const struct skep_plot_drawn *runs)
{
	cJSON *object = cJSON_CreateObject();
	cJSON_AddStringToObject(object, "plot", a->positional[0]);
	cJSON_AddStringToObject(object, "file", a->output);
	cJSON *list = runs ? cJSON_AddArrayToObject(object, "runs") : NULL;
	for (uint32_t i = 0; runs && i < runs->runs && i < SKEP_PLOT_DRAWN_MAX; i++)
		cJSON_AddItemToArray(list, cJSON_CreateNumber((double)runs->run[i]));
	skep_json_print(object, stdout);
}

static enum status drawn(
	const struct arguments *a, bool done, const struct skep_plot_drawn *runs, const struct skep_diag *error)
{
	if (!done)
		return skep_report_diag(STATUS_BAD_INPUT, error);
	if (a->json)
		print_json(a, runs);
	else if (!a->quiet)
		skep_say("wrote %s\n", a->output);
	return STATUS_DONE;
}

/* Is there a file to draw into, that may be written? Else it is said. */
static bool target_ready(const struct arguments *a)
{
	struct skep_diag error = {0};
	if (!a->output)
		skep_fail(&error, "plot needs -o FILE, for example -o %.40s.png", a->positional[0]);
	else if (skep_plot_target(a->output, &error))
		return skep_output_ready(a, NULL);
	skep_report_diag(STATUS_BAD_INPUT, &error);
	return false;
}

/* ---- of a scenario -------------------------------------------------------------------------------------------------- */

static enum status draw_complexity(const struct arguments *a, const struct skep_scenario *s)
{
	struct skep_complexity_figure *f = calloc(1, sizeof *f);
	struct skep_diag error = {0};
	if (!f)
		skep_fail(&error, "not enough memory for this picture");
	bool done = f && skep_figure_complexity(a->positional[1], &a->scenario, s, f, &error) &&
	            skep_plot_complexity(f, a->output, &error);
	free(f);
	return drawn(a, done, NULL, &error);
}

/* Of a table of searches, or of a scenario, whose searches are done first. */
static enum status draw_search(const struct arguments *a, const struct skep_scenario *s)
{
	struct skep_search_figure *f = calloc(1, sizeof *f);
	struct skep_diag error = {0};
	if (!f)
		skep_fail(&error, "not enough memory for this picture");
	bool done = f && (s ? skep_figure_search(s, f, &error) : skep_search_figure_read(a->positional[1], f, &error));
	done = done && skep_plot_search(f, a->output, &error);
	if (f)
		skep_search_figure_finish(f);
	free(f);
	return drawn(a, done, NULL, &error);
}

static enum status draw_read(const struct arguments *a, bool search)
{
	struct skep_scenario scenario;
	struct skep_scenario_options options = a->scenario;
	struct skep_diag diag = {0};
	enum status status = STATUS_BAD_INPUT;
	options.details = stderr;
	options.any_memory = true; /* bytes move whether a stage fits or not */
	if (!skep_resolve_file(a->positional[1], &options, &scenario, &diag))
		return skep_report_diag(STATUS_BAD_INPUT, &diag);
	if (skep_output_no_source(a, &scenario))
		status = search ? draw_search(a, &scenario) : draw_complexity(a, &scenario);
	skep_scenario_finish(&scenario);
	return status;
}

static enum status plot_scenario(const struct plot_arguments *a, bool search)
{
	struct skep_diag error = {0};
	if (a->common.positionals != 2) {
		skep_fail(&error, "plot %s takes one scenario%s", a->common.positional[0],
			search ? ", or a table of searches (.csv)" : "");
		return skep_report_diag(STATUS_BAD_INPUT, &error);
	}
	if (a->has_rounds || a->metric || a->has_axes)
		return skep_report_error(STATUS_BAD_INPUT,
			"--rounds, --metric, --x, --y, --log and --validation are for pictures of runs");
	if (!target_ready(&a->common))
		return STATUS_BAD_INPUT;
	if (search && skep_text_ends(a->common.positional[1], ".csv"))
		return draw_search(&a->common, NULL);
	return draw_read(&a->common, search);
}

/* ---- of many jobs on one cluster ------------------------------------------------------------------------------------ */

static enum status plot_jobs(const struct plot_arguments *a, bool gantt)
{
	struct skep_diag error = {0};
	char *end = NULL;
	errno = 0;
	long long comparison = a->common.positionals > 1 ? strtoll(a->common.positional[1], &end, 10) : 0;
	if (a->common.positionals > 2 || (end && (*end != '\0' || errno != 0 || comparison < 1)))
		return skep_report_error(STATUS_BAD_INPUT,
			"plot gantt and plot jobs take the number of one comparison, as `skep jobs` has said it; none: the "
			"newest");
	if (a->has_rounds || a->metric || a->has_axes || a->common.scenario.sets > 0 || a->common.scenario.has_seed)
		return skep_report_error(
			STATUS_BAD_INPUT, "plot gantt and plot jobs take no option but -o, --db and --force");
	if (!target_ready(&a->common))
		return STATUS_BAD_INPUT;
	bool done = (gantt ? skep_plot_gantt : skep_plot_jobs)(a->common.db, comparison, a->common.output, &error);
	return drawn(&a->common, done, NULL, &error);
}

/* ---- of runs -------------------------------------------------------------------------------------------------------- */

static enum status draw_runs(const struct plot_arguments *a, const int64_t *runs, uint32_t count)
{
	struct skep_diag error = {0};
	struct skep_plot_drawn *shown = calloc(1, sizeof *shown);
	if (!shown)
		return skep_report_error(STATUS_FAILED, "not enough memory for this picture");
	const struct skep_plot_choice choice = {.rounds = a->has_rounds ? &a->rounds : NULL,
		.metric = a->metric,
		.axes = a->has_axes ? &a->axes : NULL,
		.ret_drawn = shown};
	struct skep_store *store = skep_store_open(a->common.db, false, &error);
	bool done = store &&
	            skep_plot_chosen(store, a->common.positional[0], runs, count, a->common.output, &choice, &error);
	skep_store_close(store);
	enum status status = drawn(&a->common, done, shown, &error);
	free(shown);
	return status;
}

static enum status plot_runs(const struct plot_arguments *a)
{
	int64_t runs[RUNS_MAX];
	uint32_t count;
	struct skep_diag error = {0};
	if (a->common.scenario.sets > 0 || a->common.scenario.has_seed)
		return skep_report_error(
			STATUS_BAD_INPUT, "--set and --seed are for pictures of a scenario: complexity and search");
	if (!skep_arguments_run_ranges(&a->common, 1, runs, &count))
		return STATUS_BAD_INPUT;
	if (!skep_plot_knows(a->common.positional[0], &error))
		return skep_report_diag(STATUS_BAD_INPUT, &error);
	return target_ready(&a->common) ? draw_runs(a, runs, count) : STATUS_BAD_INPUT;
}

static enum status run(struct skep_command_line *line)
{
	struct plot_arguments a = {0};
	enum status status;
	if (!skep_arguments_read(line, &a.common, &status))
		return status;
	bool search = strcmp(a.common.positional[0], "search") == 0;
	a.has_axes = a.axes.x != NULL || a.axes.y != NULL || a.axes.log != NULL || a.axes.validation;
	bool gantt = strcmp(a.common.positional[0], "gantt") == 0;
	if (gantt || strcmp(a.common.positional[0], "jobs") == 0)
		return plot_jobs(&a, gantt);
	if (search || strcmp(a.common.positional[0], "complexity") == 0)
		return plot_scenario(&a, search);
	return plot_runs(&a);
}

/* ---- options -------------------------------------------------------------------------------------------------------- */

/* all, A or A-B */
static bool parse_rounds(const char *text, void *to)
{
	struct skep_plot_rounds *ret = to;
	char *end;
	*ret = (struct skep_plot_rounds){.all = strcmp(text, "all") == 0};
	if (ret->all)
		return true;
	errno = 0;
	unsigned long long first = strtoull(text, &end, 10), last = first;
	const char *second = end + 1;
	bool good =
		text[0] >= '0' && text[0] <= '9' && (*end == '\0' || (*end == '-' && *second >= '0' && *second <= '9'));
	if (good && *end == '-')
		last = strtoull(second, &end, 10);
	ret->first = (uint32_t)first;
	ret->last = (uint32_t)last;
	return good && *end == '\0' && errno == 0 && first <= last && last < UINT32_MAX;
}

static const char *const axes[] = {"time", "steps", "tokens", "bytes", "sync-bytes", "cost", NULL};
static const char *const figures[] = {"loss", "perplexity", NULL}, *const logs[] = {"none", "x", "y", "xy", NULL};

static const struct skep_option accuracy_rows[] = {
	{"x", 0, SKEP_OPTION_TEXT, offsetof(struct plot_arguments, axes.x), "AXIS",
		.help = "time, steps, tokens, bytes, sync-bytes or cost", .choice = axes, .usual = "time"},
	{"y", 0, SKEP_OPTION_TEXT, offsetof(struct plot_arguments, axes.y), "FIGURE", .help = "loss or perplexity",
		.choice = figures, .usual = "loss"},
	{"log", 0, SKEP_OPTION_TEXT, offsetof(struct plot_arguments, axes.log), "AXES",
		.help = "logarithmic axes: none, x, y or xy", .choice = logs,
		.usual = "x if it spans more than a factor of 10, y of 5"},
	{"validation", 0, SKEP_OPTION_FLAG, offsetof(struct plot_arguments, axes.validation),
		.help = "the validation loss instead of the training loss"},
};

static const struct skep_option other_rows[] = {
	{"rounds", 0, SKEP_OPTION_PARSED, offsetof(struct plot_arguments, rounds), "A-B|A|all",
		.help = "timeline: the operations of these rounds, or the whole run in bins of time",
		.given_at = offsetof(struct plot_arguments, has_rounds), .parse = parse_rounds,
		.usual = "the first rounds; with preemptions or more than 40 workers, all", .example = "10-12",
		.expected = "all, a round or two of them as in 10-12, from 0"},
	{"metric", 0, SKEP_OPTION_TEXT, offsetof(struct plot_arguments, metric), "KEY",
		.help = "sweep: the metric to draw, a key of --json (default: throughput_samples_per_s); pareto: "
			"time_s or time_to_target_s"},
};

static const struct skep_option output_rows[] = {
	{"output", 'o', SKEP_OPTION_PATH, offsetof(struct plot_arguments, common.output), "FILE",
		.help = "the picture, in the format of its ending: .png, .svg or .pdf; required"},
};

static const struct skep_option_group groups[] = {SKEP_OWN_OPTIONS("Axes of accuracy", accuracy_rows),
	SKEP_OWN_OPTIONS("Other kinds", other_rows), {"Scenario (complexity and search)", skep_scenario_rows, 2, 0},
	SKEP_OWN_OPTIONS("Output", output_rows), SKEP_FORCE_OPTION, SKEP_DATABASE_OPTIONS, {0}};
static const struct skep_word kinds[] = {
	{"accuracy",
		"loss against time, steps, tokens, bytes or cost; without runs the newest of each world, with an option "
		"for its axes all runs of the newest scenario"},
	{"complexity",
		"bytes that training moves, by class of link, against stages, parameters and steps; of a scenario"},
	{"cost", "US dollars against time; without runs the newest of each world"},
	{"fit", "the scaling law that `skep fit` fits to the runs, over their losses"},
	{"gantt",
		"which job on one cluster had how many machines when, by policy; of a comparison of `skep jobs`, without "
		"one the newest"},
	{"jobs",
		"when jobs on one cluster were done, by policy; of a comparison of `skep jobs`, without one the newest"},
	{"matrix", "bandwidth between workers, grouped by stage; without a run the newest"},
	{"pareto", "time against cost, a point for each choice of settings; without runs all of the newest scenario"},
	{"search", "how the cost fell in each search method of `skep plan`; of a scenario or a table (.csv)"},
	{"sweep", "a metric of the newest sweep, or of that of a run, against one of its keys"},
	{"throughput", "samples per second and the spread over stages; without runs all of the newest scenario"},
	{"timeline", "what each worker did when; without a run the newest"},
	{"utilisation",
		"compute time over time alive of each worker, over time, of up to 4 runs; without runs the newest "
		"of each world"},
	{0},
};
static const struct skep_example examples[] = {
	{"skep plot accuracy 3..14 --x tokens -o accuracy.png", "the losses of 12 runs"},
	{"skep plot timeline --rounds 10-12 -o timeline.svg", "three rounds of the newest run, worker by worker"},
	{"skep plot complexity scenarios/square-cube.yaml -o complexity.pdf", "a scenario's traffic, before any run"},
	{0},
};

const struct skep_command skep_command_plot = {
	.name = "plot",
	.operands = "KIND [RUN|RUN..RUN|@TAG ...|SCENARIO] -o FILE",
	.summary = "draw a picture with gnuplot",
	.text = "Draws runs from the database, or, for the kinds complexity and search, a scenario." SKEP_RUN_WORDS,
	.words = "Kinds",
	.word = kinds,
	.least = 1,
	.most = 1 + RUNS_MAX,
	.group = groups,
	.example = examples,
	.run = run,
};
