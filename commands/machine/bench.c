/* SPDX-License-Identifier: Apache-2.0
 *
 * bench.c - `skep bench`: which workloads are run. The work is done in sim/bench/.
 */
#include <string.h>
#include <strings.h>

#include "commands/arguments.h"
#include "commands/commands.h"
#include "sim/bench/print.h"
#include "version.h"

struct bench_arguments {
	struct arguments common;
	uint32_t repeat;
};

/* ---- which rows ----------------------------------------------------------------------------------------------------- */

static bool word_takes(const char *word, const struct skep_bench_row *row)
{
	if (strcasecmp(word, "all") == 0)
		return true;
	if (strcasecmp(word, "small") == 0)
		return row->length == SKEP_BENCH_SMALL;
	return skep_bench_named(row, word);
}

static bool wanted(const struct bench_arguments *a, const struct skep_bench_row *row)
{
	for (uint32_t i = 0; i < a->common.positionals; i++)
		if (word_takes(a->common.positional[i], row))
			return true;
	return a->common.positionals == 0 && row->length != SKEP_BENCH_LONG;
}

static void print_names(const struct skep_bench_row *row, uint32_t rows)
{
	for (uint32_t r = 0; r < rows; r++)
		if (r == 0 || strcmp(row[r].name, row[r - 1].name) != 0)
			fprintf(stderr, " %s", row[r].name);
}

static bool understood(const struct bench_arguments *a)
{
	struct skep_bench_row row[SKEP_BENCH_ROWS_MAX];
	uint32_t rows = skep_bench_rows(row);
	for (uint32_t i = 0; i < a->common.positionals; i++) {
		uint32_t r = 0;
		while (r < rows && !word_takes(a->common.positional[i], &row[r]))
			r++;
		if (r < rows)
			continue;
		fprintf(stderr, "skep: there is no workload '%s'; write all, small, or a name or its beginning:",
			a->common.positional[i]);
		print_names(row, rows);
		fputc('\n', stderr);
		return false;
	}
	return true;
}

/* ---- all of them ---------------------------------------------------------------------------------------------------- */

/* Returns how many rows went wrong. */
static uint32_t measure_rows(
	const struct bench_arguments *a, const struct skep_bench_row *row, uint32_t rows, cJSON *list)
{
	uint32_t wrong = 0;
	for (uint32_t r = 0; r < rows; r++) {
		struct skep_bench_figures figures;
		if (!wanted(a, &row[r]))
			continue;
		if (!skep_bench_measure(&row[r], a->repeat, &figures)) {
			wrong++;
			continue;
		}
		wrong += !figures.right;
		if (list != NULL)
			cJSON_AddItemToArray(list, skep_bench_row_json(&row[r], &figures));
		else
			skep_bench_print_row(&row[r], &figures, stdout);
	}
	return wrong;
}

static enum status run(struct skep_command_line *line)
{
	struct bench_arguments a = {.repeat = 1};
	struct skep_bench_row row[SKEP_BENCH_ROWS_MAX];
	enum status status;
	if (!skep_arguments_read(line, &a.common, &status))
		return status;
	if (!understood(&a))
		return STATUS_BAD_INPUT;
	const struct skep_bench_machine machine = skep_bench_this_machine();
	cJSON *list = a.common.json ? cJSON_CreateArray() : NULL;
	if (list == NULL)
		skep_bench_print_head(SKEP_VERSION, &machine, stdout);
	uint32_t wrong = measure_rows(&a, row, skep_bench_rows(row), list);
	if (list != NULL && !skep_bench_print_json(SKEP_VERSION, &machine, list, wrong == 0, stdout))
		wrong++;
	if (wrong > 0)
		fprintf(stderr,
			"skep: %u of the rows went wrong: a makespan is not the exact one, or a run did not end\n",
			wrong);
	return wrong == 0 ? STATUS_DONE : STATUS_FAILED;
}

static const struct skep_option rows[] = {
	{"repeat", 0, SKEP_OPTION_U32, offsetof(struct bench_arguments, repeat), "N",
		.help = "run each workload N times and print the median", .least = 1, .most = 1000, .usual = "1",
		.expected = "a number from 1 to 1000"},
};

static const struct skep_option_group groups[] = {SKEP_OWN_OPTIONS("Measurement", rows), SKEP_OUTPUT_OPTIONS, {0}};
static const struct skep_word workloads[] = {
	{"all", "every workload, also those that take long"},
	{"small", "those that together take about a second"},
	{"PHOLD", "bare events"},
	{"P", "a step of a pipeline"},
	{"F", "random flows over a star network"},
	{"X", "random flows over a full bandwidth matrix"},
	{"R-fast", "one ring all-reduce over many workers"},
	{"R-wide", "many ring all-reduces at the same time"},
	{"swarm", "the whole simulator, scheduler included"},
	{0},
};
static const struct skep_example examples[] = {
	{"skep bench small --repeat 5", "a quick look, the median of five"},
	{"skep bench P-1024", "one row, by its name"},
	{0},
};

const struct skep_command skep_command_bench = {
	.name = "bench",
	.operands = "[WORKLOAD ...]",
	.summary = "measure the simulator's speed, and check its makespans",
	.text = "Runs workloads whose makespans are known exactly through the simulator's queue and network on one "
		"core. The exit status is 1 if a makespan is not the exact one. Without operands: all but those that "
		"take long.",
	.words = "Workloads, by a name or how it begins",
	.word = workloads,
	.most = 64,
	.group = groups,
	.example = examples,
	.run = run,
};
