/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_jobs.c - `skep trace jobs`: the jobs of production clusters for `skep jobs`. The work is done in scenarios/jobs/.
 */
#include <string.h>

#include "base/files/replace.h"
#include "base/json.h"
#include "base/layout.h"
#include "commands/trace/trace.h"
#include "scenarios/jobs/import.h"

struct jobs_arguments {
	struct arguments common;
	struct skep_jobs_import_options import;
};

static bool print_json(const struct skep_jobs_import_report *r)
{
	cJSON *root = cJSON_CreateObject();
	skep_json_add_text(root, "format", skep_jobs_format_names[r->format]);
	skep_json_add_count(root, "rows", r->rows);
	skep_json_add_count(root, "jobs", r->jobs);
	skep_json_add_count(root, "parts_of_gpus", r->parts);
	skep_json_add_count(root, "without_gpu", r->without_gpu);
	skep_json_add_count(root, "not_ended", r->not_ended);
	skep_json_add_count(root, "outside", r->outside);
	skep_json_add_count(root, "machines_most", r->machines_most);
	skep_json_add_number(root, "machine_s", r->machine_s);
	skep_json_add_number(root, "last_arrival_s", r->last_s);
	return skep_json_print(root, stdout);
}

static void print_text(const struct skep_jobs_import_report *r, const char *path)
{
	char last[SKEP_TEXT_BYTES], mean[SKEP_TEXT_BYTES];
	printf("%s: %s, %llu rows\n", path, skep_jobs_format_names[r->format], (unsigned long long)r->rows);
	printf("  jobs       %llu in %s, on up to %u machines; %llu asked for a part of a GPU and have one\n",
		(unsigned long long)r->jobs, skep_time_text(r->last_s, last), r->machines_most,
		(unsigned long long)r->parts);
	printf("  left out   %llu without a GPU, %llu that did not end well, %llu outside of --start and --end\n",
		(unsigned long long)r->without_gpu, (unsigned long long)r->not_ended, (unsigned long long)r->outside);
	printf("  work       %s of a machine for each job on average\n",
		skep_time_text(r->machine_s / (double)r->jobs, mean));
}

static enum status run(struct skep_command_line *line)
{
	struct jobs_arguments a = {.import = {.end_s = 1e9, .source = "", .licence = "not stated"}};
	struct skep_jobs_import_report report;
	struct skep_diag error = {0};
	enum status status;
	char source[512];
	if (!skep_arguments_read(line, &a.common, &status))
		return status;
	const char *file = line->operand[0], *slash = strrchr(file, '/');
	if (!skep_trace_output_ready(&a.common, "the trace of jobs", SKEP_JOBS_WRITTEN, file, "the table"))
		return STATUS_BAD_INPUT;
	snprintf(source, sizeof source, "imported from %.400s", slash ? slash + 1 : file);
	if (a.import.source[0] == '\0')
		a.import.source = source;
	if (!skep_jobs_import(file, a.common.output, &a.import, &report, &error))
		return skep_report_diag(STATUS_BAD_INPUT, &error);
	if (!a.common.json)
		print_text(&report, file);
	else if (!print_json(&report))
		return skep_report_error(STATUS_FAILED, "not enough memory for the answer");
	return STATUS_DONE;
}

#define AT(member) offsetof(struct jobs_arguments, import.member)

static const struct skep_option rows[] = {
	{"format", 0, SKEP_OPTION_CHOICE, AT(format), "NAME", .choice = skep_jobs_format_names,
		.help = "pai (Alibaba 2020, pai_task_table.csv) or openb (Alibaba 2023, openb_pod_list)",
		.usual = "by its first line"},
	{"start", 0, SKEP_OPTION_QUANTITY, AT(start_s), "TIME", .dimension = SKEP_TIME, .low = 0, .high = 1e9,
		.help = "leave out jobs that arrive before, and count from there", .example = "10 d",
		.expected = "a time with its unit, such as 10 d"},
	{"end", 0, SKEP_OPTION_QUANTITY, AT(end_s), "TIME", .dimension = SKEP_TIME, .low = 0, .high = 1e9,
		.help = "leave out jobs that arrive then or later", .example = "12 d",
		.expected = "a time with its unit, such as 12 d"},
	{"source", 0, SKEP_OPTION_TEXT, AT(source), "TEXT",
		.help = "where the table comes from, for a comment in the file", .usual = "its name"},
	{"licence", 0, SKEP_OPTION_TEXT, AT(licence), "TEXT", .help = "its licence, for a comment in the file",
		.usual = "not stated"},
};

static const struct skep_option_group groups[] = {SKEP_OWN_OPTIONS("Reading the table", rows),
	{"Output", skep_trace_output_row, 1, 0}, SKEP_FORCE_OPTION, SKEP_OUTPUT_OPTIONS, {0}};
static const struct skep_example examples[] = {
	{"skep trace jobs pai_task_table.csv --start '30 d' --end '31 d' -o jobs.csv",
		"one day of Alibaba's PAI cluster"},
	{0}};

const struct skep_command skep_command_trace_jobs = {
	.name = "trace jobs",
	.operands = "FILE -o OUT",
	.summary = "convert a table of jobs, for `skep jobs`",
	.text = "Reads the jobs of a production cluster (arrival, length, GPUs) and writes them as a trace for "
		"`jobs: {trace: FILE}`.",
	.least = 1,
	.most = 1,
	.group = groups,
	.example = examples,
	.run = run,
};
