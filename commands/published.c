/* SPDX-License-Identifier: Apache-2.0
 *
 * published.c - `skep published`: which experiments of others are run; the rest is done in sweeping/published/.
 */
#include "sweeping/published/published.h"

#include "commands/arguments.h"
#include "commands/commands.h"
#include "commands/output.h"

struct published_arguments {
	struct arguments common;
	const char *folder;
	bool all, list;
};

static enum status run(struct skep_command_line *line)
{
	struct published_arguments a = {.folder = SKEP_PUBLISHED_FOLDER};
	enum status status;
	if (!skep_arguments_read(line, &a.common, &status))
		return status;
	if (a.common.output != NULL && !skep_output_ready(&a.common, SKEP_PUBLISHED_HEAD))
		return STATUS_BAD_INPUT;
	bool bare = a.common.positionals == 0 && !a.all && !a.list;
	if (bare && a.common.output != NULL) {
		fputs("skep: -o: a page of which experiments? Name some, or take --all; `skep published` lists them\n",
			stderr);
		return STATUS_BAD_INPUT;
	}
	const struct skep_published_request request = {.folder = a.folder,
		.name = a.common.positional,
		.names = a.common.positionals,
		.all = a.all,
		.list = a.list || bare,
		.json = a.common.json,
		.quiet = a.common.quiet,
		.output = a.common.output,
		.jobs = a.common.jobs};
	status = skep_published(&request);
	if (bare && status == STATUS_DONE && !a.common.quiet)
		skep_say(
			"These can be simulated: `skep published NAME` does one, and `skep published --all` every one.\n");
	return status;
}

static const struct skep_option which_rows[] = {
	{"all", 0, SKEP_OPTION_FLAG, offsetof(struct published_arguments, all),
		.help = "all experiments, also those that take long, which the beginning of a name leaves out"},
	{"list", 0, SKEP_OPTION_FLAG, offsetof(struct published_arguments, list),
		.help = "print the names of all experiments, and run none; so does no name at all"},
	{"tables", 0, SKEP_OPTION_PATH, offsetof(struct published_arguments, folder), "FOLDER",
		.help = "where the tables of published figures are", .usual = SKEP_PUBLISHED_FOLDER},
};

static const struct skep_option output_rows[] = {
	{"output", 'o', SKEP_OPTION_PATH, offsetof(struct published_arguments, common.output), "FILE",
		.help = "write them as a page in Markdown, in place of printing them", .usual = "none is written"},
};

static const struct skep_option_group groups[] = {SKEP_OWN_OPTIONS("Experiments", which_rows),
	{"Processes", skep_jobs_row, 1, 0}, SKEP_OWN_OPTIONS("Output", output_rows), SKEP_FORCE_OPTION,
	SKEP_OUTPUT_OPTIONS, {0}};
static const struct skep_example examples[] = {
	{"skep published gpipe", "GPipe's own tables of throughput beside ours"},
	{"skep published --all -o docs/published.md", "all experiments, as the page of the documentation"},
	{0},
};

const struct skep_command skep_command_published = {
	.name = "published",
	.operands = "[NAME|TABLE.yaml]...",
	.summary = "simulate experiments of papers, and show theirs and ours",
	.text = "Simulates experiments that others have published, with their own parameters, and prints ours beside the "
		"published figure, with the place where that stands. A name stands for all experiments that begin with it; "
		"a file that ends in .yaml is a table of your own. Rows that are off are shown as well, with the reason if "
		"it is known. Nothing is stored.",
	.most = UINT32_MAX,
	.group = groups,
	.example = examples,
	.run = run,
};
