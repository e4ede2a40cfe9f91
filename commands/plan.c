/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.c - `skep plan`: reads the options, has planning/ make the plan, and has it printed.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/store/store.h"
#include "analysis/summary/progress.h"
#include "base/files/replace.h"
#include "base/process/stop.h"
#include "base/process/thread_pool.h"
#include "commands/arguments.h"
#include "commands/commands.h"
#include "commands/graph.h"
#include "commands/output.h"
#include "planning/plan/confirm.h"
#include "planning/plan/make_plan.h"
#include "planning/print/print.h"

struct plan_arguments {
	struct arguments common;
	double budget_s; /* 0: not given */
	bool explain, pareto, compare;
	uint32_t confirm;  /* seeds; 0: not given */
	const char *graph; /* NULL: not given */
	uint32_t rounds;   /* of the graph; 0: not given */
};

static bool fail(const char *path, const char *what)
{
	fprintf(stderr, "skep: %s: %s\n", path, what);
	return false;
}

/* ---- what is known before anything is searched for ----------------------------------------------------------------- */

static bool is_writable(const struct arguments *a)
{
	struct stat st;
	char folder[PATH_MAX + 64];
	const char *path = a->output, *slash = strrchr(path, '/');
	if (path[0] == '\0')
		return fail("-o", "expected the name of a file");
	if (strlen(path) >= PATH_MAX)
		return fail("-o", "the name of the file is too long");
	if (skep_replace_same(path, a->positional[0]))
		return fail(path, "is the scenario itself, whose comments would be lost: take another name");
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return fail(path, S_ISDIR(st.st_mode) ? "is a folder: name a file in it" : "is no regular file");
	snprintf(folder, sizeof folder, "%.*s",
		slash == path ? 1
		: slash       ? (int)(slash - path)
			      : 1,
		slash ? path : ".");
	if (stat(folder, &st) != 0 || !S_ISDIR(st.st_mode))
		return fail(path, "the folder that it is to be in is not there: make it first");
	if (euidaccess(folder, W_OK | X_OK) == 0)
		return skep_output_ready(a, SKEP_PLAN_HEAD);
	snprintf(folder, sizeof folder, "its folder cannot be written to: %s", strerror(errno));
	return fail(path, folder);
}

static bool is_kept(const struct plan_arguments *plan)
{
	const struct arguments *a = &plan->common;
	struct skep_diag error = {0};
	struct skep_store *store = NULL;
	if (a->has_db && plan->confirm == 0)
		skep_fail(&error, "--db: a plan keeps the runs of --confirm alone: give that as well, or leave it out");
	else if (a->has_db)
		store = skep_store_open(a->db, true, &error);
	if (a->has_db && !store)
		skep_report_diag(STATUS_BAD_INPUT, &error);
	skep_store_close(store);
	return !a->has_db || store;
}

/* ---- the plan ------------------------------------------------------------------------------------------------------ */

static void show(const struct skep_planner *planner, const struct plan_arguments *a)
{
	if (a->common.json)
		skep_planner_print_json(planner, stdout);
	else
		skep_planner_print(planner, a->explain, stdout);
	if (!a->common.json && a->common.output && !a->common.quiet)
		skep_say("wrote %s\n", a->common.output);
}

static enum status make(
	struct skep_planner *planner, const struct skep_planner_options *options, const struct plan_arguments *a)
{
	const struct arguments *common = &a->common;
	enum status status = skep_plan_begin(planner, options);
	if (status == STATUS_DONE && !skep_output_no_source(common, &planner->scenario))
		status = STATUS_BAD_INPUT;
	if (status == STATUS_DONE && common->output && !skep_planner_may_write(planner, common->output))
		status = STATUS_BAD_INPUT;
	if (status == STATUS_DONE)
		status = skep_plan_choose(planner);
	if (status == STATUS_DONE && common->output && !skep_planner_write(planner, common->output))
		status = STATUS_BAD_INPUT;
	if (status == STATUS_DONE && a->confirm > 0)
		status = skep_plan_confirm(planner);
	skep_progress_end(options->progress);
	if (status == STATUS_DONE)
		show(planner, a);
	if (planner->error.set)
		skep_report_diag(status, &planner->error);
	if (planner->confirmed && planner->confirmed->kept && !common->quiet)
		skep_say("runs are in %s\n", common->db);
	skep_plan_end(planner);
	return status;
}

static enum status compare(struct skep_planner_options *options, const struct plan_arguments *a)
{
	struct skep_diag error = {0};
	if (a->common.output || a->confirm > 0 || a->pareto || a->explain) {
		fputs("skep: --compare chooses no plan: leave out -o, --confirm, --pareto and --explain\n", stderr);
		return STATUS_BAD_INPUT;
	}
	options->progress = NULL;
	enum status status = skep_compare_print(options, a->common.json, stdout, &error);
	if (error.set)
		skep_report_diag(status, &error);
	return status;
}

/* Nothing is searched for: the graph is of the scenario as it is. */
static enum status make_graph(const struct plan_arguments *a)
{
	if (a->common.output || a->confirm > 0 || a->pareto || a->explain || a->compare || a->budget_s > 0 ||
		a->common.has_db)
		return skep_report_error(STATUS_BAD_INPUT,
			"plan: --graph writes what the scenario does as it is, and searches for nothing: leave out -o, --budget, "
			"--confirm, --compare, --explain, --pareto and --db");
	return skep_graph_to_file(&a->common, a->graph, a->rounds > 0 ? a->rounds : 2);
}

static enum status run(struct skep_command_line *line)
{
	struct plan_arguments a = {0};
	enum status status;
	if (!skep_arguments_read(line, &a.common, &status))
		return status;
	if (a.graph)
		return make_graph(&a);
	if (a.rounds > 0)
		return skep_report_error(
			STATUS_BAD_INPUT, "plan: --rounds says how many rounds --graph has: give that as well");
	bool bar = !a.common.quiet && !a.common.json && skep_say_draws();
	struct skep_progress progress = skep_progress_begin(NULL, bar);
	struct skep_planner_options options = {.path = a.common.positional[0],
		.given = a.common.scenario,
		.budget_s = a.budget_s,
		.processes = a.common.jobs > 0 ? a.common.jobs : skep_thread_pool_cores(),
		.confirm = a.confirm,
		.pareto = a.pareto,
		.db = a.common.has_db ? a.common.db : NULL,
		.progress = &progress};
	options.given.details = stderr;
	if ((a.common.output && !is_writable(&a.common)) || !is_kept(&a))
		return STATUS_BAD_INPUT;
	if (a.compare)
		return compare(&options, &a);
	skep_stop_listen();
	struct skep_planner *planner = malloc(sizeof *planner);
	if (!planner) {
		fputs("skep: not enough memory to plan this scenario\n", stderr);
		return STATUS_FAILED;
	}
	status = make(planner, &options, &a);
	free(planner);
	return status;
}

/* ---- options ------------------------------------------------------------------------------------------------------- */

static const struct skep_option search_rows[] = {
	{"budget", 0, SKEP_OPTION_QUANTITY, offsetof(struct plan_arguments, budget_s), "TIME",
		.help = "half of it for searching, half for simulating; the plan then depends on the machine",
		.dimension = SKEP_TIME, .low = 1e-3, .high = 86400,
		.usual = "20000 evaluations a search; the plan depends on the seed alone", .example = "2 s",
		.expected = "a time with its unit, from 1 ms to 1 d, as in '2 s'"},
	{"confirm", 0, SKEP_OPTION_U32, offsetof(struct plan_arguments, confirm), "N",
		.help = "then simulate the plan and SWARM's random start to their ends with N seeds that the search did "
			"not use; print means, difference and ratio with 95 % intervals",
		.least = 2, .most = SKEP_CONFIRM_SEEDS_MOST, .expected = "a number of seeds, from 2 to 1000"},
};

static const struct skep_option output_rows[] = {
	{"output", 'o', SKEP_OPTION_PATH, offsetof(struct plan_arguments, common.output), "FILE",
		.help = "write the plan as a scenario for check, sim and run", .usual = "none is written"},
	{"graph", 0, SKEP_OPTION_PATH, offsetof(struct plan_arguments, graph), "FILE",
		.help = "search for nothing; write the scenario's operations, messages, tensors and their times, as JSON for "
			"`skep sim --graph`, or for graphviz if FILE ends with .dot or .gv"},
	{"rounds", 0, SKEP_OPTION_U32, offsetof(struct plan_arguments, rounds), "N",
		.help = "of the graph: the first N rounds", .least = 1, .most = 1000000, .usual = "2",
		.expected = "a number from 1 to 1000000"},
	{"explain", 0, SKEP_OPTION_FLAG, offsetof(struct plan_arguments, explain),
		.help = "also print the allocation stage by stage, and the traffic of each class of link"},
	{"compare", 0, SKEP_OPTION_FLAG, offsetof(struct plan_arguments, compare),
		.help = "print only what each planner and objective comes to in the simulator, side by side"},
	{"pareto", 0, SKEP_OPTION_FLAG, offsetof(struct plan_arguments, pareto),
		.help = "also print the Pareto front of the settings in time and cost"},
	{"db", 0, SKEP_OPTION_PATH, offsetof(struct plan_arguments, common.db), "FILE",
		.help = "SQLite database for the runs of --confirm",
		.given_at = offsetof(struct plan_arguments, common.has_db), .usual = "none is stored",
		.environment = "SKEP_DB"},
};

static const struct skep_option_group groups[] = {SKEP_SCENARIO_OPTIONS, SKEP_OWN_OPTIONS("Search", search_rows),
	{"Search", skep_jobs_row, 1, 0}, SKEP_OWN_OPTIONS("Output", output_rows), SKEP_FORCE_OPTION,
	SKEP_OUTPUT_OPTIONS, {0}};
static const struct skep_example examples[] = {
	{"skep plan scenarios/plan-world.yaml -o best.yaml", "search, and write the best allocation as a scenario"},
	{"skep plan scenarios/plan-world.yaml --explain --confirm 20",
		"and test it against a random start with 20 new seeds"},
	{"skep plan scenarios/two-stages.yaml --graph plan.json",
		"what will be done where and when, to read and to edit"},
	{0},
};

const struct skep_command skep_command_plan = {
	.name = "plan",
	.operands = "SCENARIO [-o FILE]",
	.summary = "search for the best allocation, model split and settings",
	.text = "Searches for the allocation of workers to stages with the highest throughput and for the model's split "
		"into stages, first by the expected time of a step, then in the simulator beside the scenario's own "
		"allocation and random ones. model.cut, or plan.cut: fixed, keeps the split as it is.\n"
		"Keys in the scenario's plan.search are chosen as well, for the objective in plan.objective. What to expect "
		"of the plan is measured with seeds that the search did not use. Runs of --confirm are stored if --db is "
		"given.",
	.least = 1,
	.most = 1,
	.group = groups,
	.example = examples,
	.run = run,
};
