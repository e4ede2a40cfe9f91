/* SPDX-License-Identifier: Apache-2.0
 *
 * report.c - `skep report`: one page that shows what runs were and what came of them.
 */
#include "analysis/report/report.h"

#include <string.h>

#include "commands/arguments.h"
#include "commands/commands.h"
#include "commands/output.h"

struct report_arguments {
	struct arguments common;
	bool sweep;
};

static enum status write_report(const struct report_arguments *a, const int64_t *runs, uint32_t count)
{
	struct skep_diag error = {0};
	struct skep_store *store = skep_store_open(a->common.db, false, &error);
	if (!store)
		return skep_report_diag(STATUS_BAD_INPUT, &error);
	bool done = a->sweep ? skep_report_sweep(store, runs, count, a->common.output, &error)
	                     : skep_report_runs(store, runs, count, a->common.output, &error);
	skep_store_close(store);
	if (!done)
		return skep_report_diag(STATUS_BAD_INPUT, &error);
	if (a->common.json)
		printf("{\"report\":\"%s\"}\n", a->sweep ? "sweep" : "runs");
	else if (!a->common.quiet)
		skep_say("wrote %s\n", a->common.output);
	return STATUS_DONE;
}

static enum status run(struct skep_command_line *line)
{
	struct report_arguments a = {0};
	int64_t runs[RUNS_MAX];
	uint32_t count;
	enum status status;
	if (!skep_arguments_read(line, &a.common, &status))
		return status;
	if (!a.common.output)
		return skep_report_error(STATUS_BAD_INPUT, "report needs -o FILE, for example -o report.html");
	size_t length = strlen(a.common.output);
	if (length < 6 || strcmp(a.common.output + length - 5, ".html") != 0)
		return skep_report_error(STATUS_BAD_INPUT, "-o: the name of a report ends in .html, as report.html");
	if (!skep_arguments_run_ranges(&a.common, 0, runs, &count) || !skep_output_ready(&a.common, NULL))
		return STATUS_BAD_INPUT;
	return write_report(&a, runs, count);
}

static const struct skep_option report_rows[] = {
	{"sweep", 0, SKEP_OPTION_FLAG, offsetof(struct report_arguments, sweep),
		.help = "report on the newest sweep, on the sweep of one RUN, or on two and more runs in one table"},
};

static const struct skep_option output_rows[] = {
	{"output", 'o', SKEP_OPTION_PATH, offsetof(struct report_arguments, common.output), "FILE",
		.help = "the page, FILE.html; required"},
};

static const struct skep_option_group groups[] = {SKEP_OWN_OPTIONS("Report", report_rows),
	SKEP_OWN_OPTIONS("Output", output_rows), SKEP_FORCE_OPTION, SKEP_DATABASE_OPTIONS, {0}};
static const struct skep_example examples[] = {
	{"skep report -o report.html", "the newest prediction and the newest real run of the same scenario"},
	{"skep report 3 7 -o report.html", "two runs by the numbers that `skep sim` and `skep run` printed"},
	{"skep report --sweep -o sweep.html", "the newest sweep: table, time against price, curves"},
	{0},
};

const struct skep_command skep_command_report = {
	.name = "report",
	.operands = "[RUN|RUN..RUN|@TAG ...] -o FILE",
	.summary = "write one HTML page that shows runs",
	.text = "Writes a page that holds all of itself: what was asked, the machines on a map that plays the run, losses "
		"against time and price, timeline, utilisation, traffic, churn, prediction beside reality, the "
		"scenario, and how to repeat it. It needs no network and no other file. Without runs it shows the two "
		"that `skep compare` takes, or the newest." SKEP_RUN_WORDS,
	.most = RUNS_MAX,
	.group = groups,
	.example = examples,
	.run = run,
};
