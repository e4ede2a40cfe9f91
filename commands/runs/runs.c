/* SPDX-License-Identifier: Apache-2.0
 *
 * runs.c - `skep runs list|show|name|tag|rm|gc`: what the database holds. The work is done in analysis/runs/.
 */
#include "analysis/runs/runs.h"

#include <inttypes.h>
#include <stddef.h>

#include "commands/arguments.h"
#include "commands/commands.h"

#define KEEP_USUAL 10u

struct runs_arguments {
	struct arguments common;
	const char *tag; /* NULL: not given */
	uint32_t last, keep;
	bool remove, pretend;
};

static enum status end(bool done, const struct skep_diag *error)
{
	return done ? STATUS_DONE : skep_report_diag(STATUS_BAD_INPUT, error);
}

static bool check_label(const char *text)
{
	if (skep_label_ok(text))
		return true;
	fprintf(stderr,
		"skep: '%.80s': a name or tag has a letter in front, then letters, digits, '.', '_' and '-', at most %u\n",
		text, SKEP_LABEL_BYTES - 1);
	return false;
}

/* The one run that the first operand means. */
static bool read_run(const struct arguments *a, int64_t *ret)
{
	struct skep_diag error = {0};
	uint32_t count;
	if (skep_runs_find(a->db, a->positional[0], 1, ret, &count, &error))
		return true;
	skep_report_diag(STATUS_BAD_INPUT, &error);
	return false;
}

/* ---- what there is ---------------------------------------------------------------------------------------------------- */

static enum status list(struct skep_command_line *line)
{
	struct runs_arguments a = {0};
	struct skep_diag error = {0};
	enum status status;
	if (!skep_arguments_read(line, &a.common, &status))
		return status;
	if (a.tag != NULL && !check_label(a.tag))
		return STATUS_BAD_INPUT;
	uint32_t listed;
	if (!skep_runs_list(a.common.db, a.tag, a.last, a.common.json, stdout, &listed, &error))
		return end(false, &error);
	if (listed == 0 && a.tag != NULL && !a.common.json)
		fprintf(stderr, "skep: no run has the tag %s\n", a.tag);
	return STATUS_DONE;
}

static enum status show(struct skep_command_line *line)
{
	struct runs_arguments a = {0};
	struct skep_diag error = {0};
	int64_t run;
	enum status status;
	if (!skep_arguments_read(line, &a.common, &status))
		return status;
	if (!read_run(&a.common, &run))
		return STATUS_BAD_INPUT;
	return end(skep_runs_show(a.common.db, run, a.common.json, stdout, &error), &error);
}

/* ---- what is changed -------------------------------------------------------------------------------------------------- */

static enum status say_label(const struct runs_arguments *a, int64_t run, const char *kind, const char *label)
{
	if (a->common.json)
		printf("{\"run_id\":%" PRId64 ",\"%s\":\"%s\",\"removed\":%s}\n", run, kind, label ? label : "",
			a->remove ? "true" : "false");
	else if (!a->common.quiet && a->remove)
		skep_say("run %" PRId64 " no longer has %s%s%s\n", run, label ? "the tag " : "a name",
			label ? label : "", "");
	else if (!a->common.quiet)
		skep_say("run %" PRId64 " has the %s %s\n", run, kind, label);
	return STATUS_DONE;
}

static enum status name(struct skep_command_line *line)
{
	struct runs_arguments a = {0};
	struct skep_diag error = {0};
	int64_t run;
	enum status status;
	if (!skep_arguments_read(line, &a.common, &status))
		return status;
	const char *given = a.common.positionals > 1 ? a.common.positional[1] : NULL;
	if ((given == NULL) != a.remove)
		return skep_report_error(STATUS_BAD_INPUT, "runs name takes RUN NAME, or RUN --remove");
	if ((given != NULL && !check_label(given)) || !read_run(&a.common, &run))
		return STATUS_BAD_INPUT;
	return skep_runs_name(a.common.db, run, given, &error) ? say_label(&a, run, "name", given) : end(false, &error);
}

static enum status tag(struct skep_command_line *line)
{
	struct runs_arguments a = {0};
	struct skep_diag error = {0};
	int64_t run;
	enum status status;
	if (!skep_arguments_read(line, &a.common, &status))
		return status;
	const char *given = a.common.positional[1];
	if (!check_label(given) || !read_run(&a.common, &run))
		return STATUS_BAD_INPUT;
	return skep_runs_tag(a.common.db, run, given, a.remove, &error) ? say_label(&a, run, "tag", given)
	                                                                : end(false, &error);
}

static enum status rm(struct skep_command_line *line)
{
	struct runs_arguments a = {0};
	struct skep_diag error = {0};
	int64_t run[RUNS_MAX];
	uint32_t runs;
	enum status status;
	if (!skep_arguments_read(line, &a.common, &status))
		return status;
	if (!skep_arguments_run_ranges(&a.common, 0, run, &runs))
		return STATUS_BAD_INPUT;
	if (!skep_runs_remove(a.common.db, run, runs, &error))
		return end(false, &error);
	if (a.common.json)
		printf("{\"removed\":%" PRIu32 "}\n", runs);
	else if (!a.common.quiet)
		skep_say("removed %" PRIu32 " run%s; `skep runs gc` gives the room back\n", runs, runs == 1 ? "" : "s");
	return STATUS_DONE;
}

static enum status gc(struct skep_command_line *line)
{
	struct runs_arguments a = {.keep = KEEP_USUAL};
	struct skep_collected c;
	struct skep_diag error = {0};
	enum status status;
	if (!skep_arguments_read(line, &a.common, &status))
		return status;
	if (!skep_runs_collect(a.common.db, a.keep, a.pretend, &c, &error))
		return end(false, &error);
	if (a.common.json)
		printf("{\"runs\":%" PRIu32 ",\"ops\":%" PRIu64 ",\"notes\":%" PRIu64 ",\"event_logs\":%" PRIu64
		       ",\"bytes_before\":%" PRIu64 ",\"bytes_after\":%" PRIu64 ",\"dropped\":%s}\n",
			c.runs, c.ops, c.notes, c.logs, c.bytes_before, c.bytes_after, a.pretend ? "false" : "true");
	else
		printf("%s the detail of %" PRIu32 " run%s: %" PRIu64 " operations, %" PRIu64 " notes, %" PRIu64
		       " parts of event logs\n%s: %.1f MB%s",
			a.pretend ? "would drop" : "dropped", c.runs, c.runs == 1 ? "" : "s", c.ops, c.notes, c.logs,
			a.common.db, (double)c.bytes_before / 1e6, a.pretend ? "\n" : "");
	if (!a.common.json && !a.pretend)
		printf(", now %.1f MB\n", (double)c.bytes_after / 1e6);
	return STATUS_DONE;
}

/* ---- options ---------------------------------------------------------------------------------------------------------- */

static const struct skep_option list_rows[] = {
	{"tag", 0, SKEP_OPTION_TEXT, offsetof(struct runs_arguments, tag), "TAG", .help = "only runs with this tag"},
	{"last", 0, SKEP_OPTION_U32, offsetof(struct runs_arguments, last), "N", .help = "only the newest N runs",
		.least = 1, .most = 1 << 20, .usual = "all", .expected = "a number of runs, from 1"},
};
static const struct skep_option remove_rows[] = {
	{"remove", 0, SKEP_OPTION_FLAG, offsetof(struct runs_arguments, remove), .help = "remove the name or tag"},
};
static const struct skep_option gc_rows[] = {
	{"keep", 0, SKEP_OPTION_U32, offsetof(struct runs_arguments, keep), "N",
		.help = "the newest N runs keep all that they have", .most = 1 << 20, .usual = "10",
		.expected = "a number of runs, from 0"},
	{"pretend", 0, SKEP_OPTION_FLAG, offsetof(struct runs_arguments, pretend), .help = "say what would be dropped"},
};

static const struct skep_option_group plain[] = {SKEP_DATABASE_OPTIONS, {0}};
static const struct skep_option_group of_list[] = {SKEP_OWN_OPTIONS("Runs", list_rows), SKEP_DATABASE_OPTIONS, {0}};
static const struct skep_option_group of_label[] = {SKEP_OWN_OPTIONS("Runs", remove_rows), SKEP_DATABASE_OPTIONS, {0}};
static const struct skep_option_group of_gc[] = {SKEP_OWN_OPTIONS("Runs", gc_rows), SKEP_DATABASE_OPTIONS, {0}};

static const struct skep_example list_examples[] = {
	{"skep runs list --last 10", "number, name, world, status, time, loss and price"},
	{0},
};
static const struct skep_example show_examples[] = {
	{"skep runs show 7", "all columns of run 7, its name and tags, and what is kept of it"},
	{0},
};
static const struct skep_example name_examples[] = {
	{"skep runs name 7 base", "from now on `skep plot accuracy base` means run 7"},
	{0},
};
static const struct skep_example tag_examples[] = {
	{"skep runs tag 7 paper", "`skep plot accuracy @paper` takes all runs with the tag"},
	{0},
};
static const struct skep_example rm_examples[] = {
	{"skep runs rm 3..14", "remove these runs and everything of them"},
	{0},
};
static const struct skep_example gc_examples[] = {
	{"skep runs gc --keep 20", "drop the detail of all runs but the newest 20"},
	{0},
};

static const struct skep_command runs_list = {
	.name = "runs list",
	.operands = "",
	.summary = "list the runs, newest first",
	.text = "Prints a row for each run: its number, name, world, status, start, steps, time, loss (of validations, if "
		"there were any), price, scenario and tags.",
	.group = of_list,
	.example = list_examples,
	.run = list,
};
static const struct skep_command runs_show = {
	.name = "runs show",
	.operands = "RUN",
	.summary = "show one run, and what is kept of it",
	.text = "Prints all that the database's row of a run says, its name and tags, and how many rows of each table are "
		"of it.",
	.least = 1,
	.most = 1,
	.group = plain,
	.example = show_examples,
	.run = show,
};
static const struct skep_command runs_name = {
	.name = "runs name",
	.operands = "RUN NAME",
	.summary = "name a run",
	.text = "Gives a run a name, in place of one that it had. Commands that take the number of a run also take its "
		"name, or the beginning of it where no other name begins so.",
	.least = 1,
	.most = 2,
	.group = of_label,
	.example = name_examples,
	.run = name,
};
static const struct skep_command runs_tag = {
	.name = "runs tag",
	.operands = "RUN TAG",
	.summary = "tag a run",
	.text = "Gives a run a tag, of which it may have several, and which several runs may have. Commands that take "
		"several runs take @TAG for all of them.",
	.least = 2,
	.most = 2,
	.group = of_label,
	.example = tag_examples,
	.run = tag,
};
static const struct skep_command runs_rm = {
	.name = "runs rm",
	.operands = "RUN ...",
	.summary = "remove runs",
	.text = "Removes runs and everything of them, all or none. A sweep that had made one makes it again when it is "
		"started again.",
	.least = 1,
	.most = RUNS_MAX,
	.group = plain,
	.example = rm_examples,
	.run = rm,
};
static const struct skep_command runs_gc = {
	.name = "runs gc",
	.operands = "",
	.summary = "drop the detail of old runs, and shrink the file",
	.text = "Drops operations, notes on single microbatches and event logs of all runs but the newest, those with a name "
		"or a tag, and those that are running, and gives the room back. Results, rounds, links, activity and sources "
		"stay. Timelines, `skep replay` and `skep calibrate` of such a run then have nothing to read. A database that "
		"is damaged is left as it is.",
	.group = of_gc,
	.example = gc_examples,
	.run = gc,
};

static const struct skep_command *const sub_commands[] = {
	&runs_list, &runs_show, &runs_name, &runs_tag, &runs_rm, &runs_gc, NULL};

const struct skep_command skep_command_runs = {
	.name = "runs",
	.operands = "",
	.summary = "list, name, remove runs; shrink the database",
	.text = "The runs of the database.",
	.sub = sub_commands,
};
