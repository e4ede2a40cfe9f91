/* SPDX-License-Identifier: Apache-2.0
 *
 * trace.c - `skep trace import|stats`, and what they share with `generate`. The work is done in topologies/.
 */
#include "commands/trace/trace.h"

#include <string.h>

#include "base/files/replace.h"
#include "commands/commands.h"

struct import_arguments {
	struct trace_arguments trace;
	const char *source, *licence;
};

/* ---- shared ------------------------------------------------------------------------------------------------------ */

bool skep_trace_is_gpu(const char *text)
{
	for (const char *c = text; *c; c++)
		if ((uint8_t)*c < 0x21 || *c == ',' || *c == 0x7f)
			return false;
	return strlen(text) > 0 && strlen(text) < 64;
}

static bool parse_gpu(const char *text, void *ret)
{
	*(const char **)ret = text;
	return skep_trace_is_gpu(text);
}

bool skep_trace_arguments_read(struct skep_command_line *line, struct trace_arguments *ret, enum status *ret_status)
{
	if (!skep_arguments_read(line, &ret->common, ret_status))
		return false;
	ret->trace.gap_ns = (skep_time)(ret->gap_s * 1e9);
	return true;
}

bool skep_trace_output_ready(
	const struct arguments *a, const char *what, const char *written, const char *read, const char *read_as)
{
	struct skep_diag error = {0};
	if (!a->output)
		skep_fail(&error, "expected -o FILE, %s that is written", what);
	else if ((!read || skep_replace_not_read(a->output, read, read_as, &error)) &&
		 (a->force || skep_replace_written(a->output, written, &error)))
		return true;
	skep_report_diag(STATUS_BAD_INPUT, &error);
	return false;
}

void skep_trace_say_repairs(const struct arguments *a, const struct skep_trace_report *report, const char *path)
{
	char text[2048];
	if (a->quiet)
		return;
	skep_trace_repairs_print(report, path, text, sizeof text);
	fputs(text, stderr);
}

enum status skep_trace_print_stats(
	const struct arguments *a, const char *path, const struct skep_trace_options *options)
{
	struct skep_trace_stats stats;
	struct skep_diag diag = {0};
	if (!skep_trace_stats_read(path, options, &stats, &diag))
		return skep_report_diag(STATUS_BAD_INPUT, &diag);
	skep_trace_say_repairs(a, &stats.report, path);
	if (a->json)
		skep_trace_stats_print_json(&stats, path, stdout);
	else
		skep_trace_stats_print(&stats, path, stdout);
	skep_trace_stats_finish(&stats);
	return STATUS_DONE;
}

/* ---- commands ---------------------------------------------------------------------------------------------------- */

static enum status run_stats(struct skep_command_line *line)
{
	struct trace_arguments a = {0};
	enum status status;
	if (!skep_trace_arguments_read(line, &a, &status))
		return status;
	a.trace.gpu = a.gpu;
	return skep_trace_print_stats(&a.common, line->operand[0], &a.trace);
}

static bool import_file(
	const struct import_arguments *a, const char *file, struct skep_trace_report *ret, struct skep_diag *reterr)
{
	char source[512];
	const char *slash = strrchr(file, '/');
	snprintf(source, sizeof source, "imported from %.400s", slash ? slash + 1 : file);
	struct skep_trace_writer *writer = skep_trace_writer_create(
		a->trace.common.output, a->source ? a->source : source, a->licence ? a->licence : "not stated", reterr);
	if (!writer)
		return false;
	if (skep_trace_read(file, &a->trace.trace, skep_trace_write, writer, ret, reterr))
		return skep_trace_writer_close(writer);
	skep_trace_writer_destroy(writer);
	return false;
}

static enum status run_import(struct skep_command_line *line)
{
	struct import_arguments a = {0};
	const struct arguments *common = &a.trace.common;
	const struct skep_trace_options own = {.format = SKEP_TRACE_OWN};
	struct skep_trace_report report;
	struct skep_diag diag = {0};
	enum status status;
	if (!skep_trace_arguments_read(line, &a.trace, &status))
		return status;
	if (!skep_trace_output_ready(common, "the trace", SKEP_TRACE_WRITTEN, line->operand[0], "the trace"))
		return STATUS_BAD_INPUT;
	a.trace.trace.gpu = a.trace.gpu;
	if (!import_file(&a, line->operand[0], &report, &diag))
		return skep_report_diag(STATUS_BAD_INPUT, &diag);
	skep_trace_say_repairs(common, &report, line->operand[0]);
	return skep_trace_print_stats(common, common->output, &own);
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

#define AT(member) offsetof(struct trace_arguments, member)

const struct skep_option skep_trace_rows[8] = {
	{"format", 0, SKEP_OPTION_CHOICE, AT(trace.format), "NAME", .choice = skep_trace_format_names,
		.help = "own, named, counts, log, gaps, tasks or nodes", .usual = "by its first line"},
	{"repair", 0, SKEP_OPTION_FLAG, AT(trace.repair),
		.help = "mend, with a warning, what is an error otherwise: time that goes backwards, joins of machines "
			"that are there, departures of unknown ones, unknown types"},
	{"per-gpu", 0, SKEP_OPTION_FLAG, AT(trace.per_gpu),
		.help = "log, tasks, nodes: a machine with 8 GPUs counts as 8 workers"},
	{"gap", 0, SKEP_OPTION_QUANTITY, AT(gap_s), "TIME", .dimension = SKEP_TIME, .low = 1e-9, .high = 1e10,
		.help = "gaps: the length of one, such as '600 s'", .example = "600 s",
		.expected = "a time above 0 with its unit, such as 600 s or 24 h"},
	{"nodes", 0, SKEP_OPTION_PATH, AT(trace.nodes_path), "FILE",
		.help = "tasks: table of nodes, from which the type of a task is drawn that runs on any"},
	{"victims", 0, SKEP_OPTION_CHOICE, AT(trace.victims), "RULE", .choice = skep_trace_victim_names,
		.help = "counts: which machines go: random, newest, oldest or zone", .usual = "random"},
	{"zones", 0, SKEP_OPTION_U32, AT(trace.zones), "N", .most = 1000,
		.help = "counts: zones that new machines are spread over", .usual = "1"},
	{"seed", 0, SKEP_OPTION_U64, AT(trace.seed), "N", .most = INT64_MAX, .help = "random seed", .usual = "0"},
};

static const struct skep_option gpu_row[1] = {
	{"gpu", 0, SKEP_OPTION_PARSED, AT(gpu), "TYPE", .parse = parse_gpu,
		.help = "GPU type of machines of which the trace names none", .example = "t4",
		.expected = "a type of 1 to 63 bytes without blanks and commas"},
};

const struct skep_option skep_trace_output_row[1] = {
	{"output", 'o', SKEP_OPTION_PATH, AT(common.output), "FILE",
		.help = "the trace in skep's own format; required"},
};

static const struct skep_option import_rows[] = {
	{"source", 0, SKEP_OPTION_TEXT, offsetof(struct import_arguments, source), "TEXT",
		.help = "where the trace comes from, for a comment in the file", .usual = "the imported file's name"},
	{"licence", 0, SKEP_OPTION_TEXT, offsetof(struct import_arguments, licence), "TEXT",
		.help = "the trace's licence, for a comment in the file", .usual = "not stated"},
};

static const struct skep_option_group stats_groups[] = {
	SKEP_TRACE_OPTIONS, {"Reading the trace", gpu_row, 1, 0}, SKEP_OUTPUT_OPTIONS, {0}};
static const struct skep_option_group import_groups[] = {SKEP_TRACE_OPTIONS, {"Reading the trace", gpu_row, 1, 0},
	{"Output", skep_trace_output_row, 1, 0}, SKEP_OWN_OPTIONS("Output", import_rows), SKEP_FORCE_OPTION,
	SKEP_OUTPUT_OPTIONS, {0}};
static const struct skep_example stats_examples[] = {
	{"skep trace stats topologies/traces/aws-p3.csv", "lifetimes and losses in a shipped trace"}, {0}};
static const struct skep_example import_examples[] = {
	{"skep trace import spot.log --format log --gpu t4 -o spot.csv", "a log of machines that come and go"}, {0}};

static const struct skep_command import_command = {
	.name = "trace import",
	.operands = "FILE -o OUT",
	.summary = "convert a trace of another format",
	.text = "Reads a preemption trace in any of the formats that --format lists, and writes it in skep's own.",
	.least = 1,
	.most = 1,
	.group = import_groups,
	.example = import_examples,
	.run = run_import,
};

static const struct skep_command stats_command = {
	.name = "trace stats",
	.operands = "FILE",
	.summary = "print lifetimes, losses and sizes, and fit a law to them",
	.text = "Prints how long machines live, how many are lost at once and how many there are, and which law fits "
		"their lifetimes.",
	.least = 1,
	.most = 1,
	.group = stats_groups,
	.example = stats_examples,
	.run = run_stats,
};

static const struct skep_command *const sub_commands[] = {
	&import_command, &stats_command, &skep_command_trace_generate, &skep_command_trace_jobs, NULL};
const struct skep_command skep_command_trace = {
	.name = "trace",
	.operands = "",
	.summary = "import, describe or generate traces of preemptions, import jobs",
	.text = "Preemption traces: machines that come and go; and traces of jobs.",
	.sub = sub_commands,
};
