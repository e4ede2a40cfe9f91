/* SPDX-License-Identifier: Apache-2.0
 *
 * fit.c - `skep fit`: a law of losses from runs of the database, printed and, with -o, written as a file that train.law.file
 * names.
 */
#include <inttypes.h>
#include <stdio.h>

#include "analysis/fit/fit.h"
#include "base/files/outputs.h"
#include "commands/arguments.h"
#include "commands/commands.h"
#include "commands/output.h"
#include "version.h"

#define HEAD "# Fitted by skep "

struct fit_arguments {
	struct arguments common;
	uint32_t from; /* the first round that counts */
};

/* Runs 3, 4 and 5 as "3..5". */
static void write_runs(const struct skep_loss_points *points, FILE *out)
{
	for (uint32_t i = 0; i < points->runs;) {
		uint32_t last = i;
		while (last + 1 < points->runs && points->run[last + 1] == points->run[last] + 1)
			last++;
		fprintf(out, " %" PRId64, points->run[i]);
		if (last > i)
			fprintf(out, "..%" PRId64, points->run[last]);
		i = last + 1;
	}
}

static bool write_law(const char *path, const char *database, const struct skep_law *law,
	const struct skep_loss_points *points, struct skep_diag *reterr)
{
	struct skep_diag diag = {0};
	struct skep_outputs outputs = {.diag = &diag};
	FILE *file = skep_outputs_begin(&outputs, path);
	if (file) {
		fprintf(file, HEAD "%s to run%s", SKEP_VERSION, points->runs == 1 ? "" : "s");
		write_runs(points, file);
		fprintf(file, " of %s, %" PRIu32 " points. The law is in scenarios/plan/law.h of skep.\n", database,
			points->count);
		skep_law_write(law, file);
	}
	if (!skep_outputs_commit(&outputs))
		skep_fail(reterr, "%s: %s", path, diag.message);
	return !diag.set;
}

static enum status fit(const struct arguments *arguments, const struct skep_loss_points *points)
{
	struct skep_diag error = {0};
	struct skep_law law;
	if (!skep_law_fit(points, &law, &error))
		return skep_report_diag(STATUS_BAD_INPUT, &error);
	if (arguments->output && !write_law(arguments->output, arguments->db, &law, points, &error))
		return skep_report_diag(STATUS_BAD_INPUT, &error);
	if (arguments->json)
		skep_fit_print_json(&law, points, stdout);
	else
		skep_fit_print(&law, points, stdout);
	if (arguments->output && !arguments->json && !arguments->quiet)
		skep_say("wrote %s; use it as `train: {arithmetic: law, law: {file: %s}}`\n", arguments->output,
			arguments->output);
	return STATUS_DONE;
}

static enum status run(struct skep_command_line *line)
{
	struct fit_arguments a = {.from = SKEP_FIT_FROM_USUAL};
	int64_t runs[RUNS_MAX];
	uint32_t count;
	struct skep_diag error = {0};
	struct skep_loss_points points;
	enum status status;
	if (!skep_arguments_read(line, &a.common, &status))
		return status;
	if (!skep_arguments_run_ranges(&a.common, 0, runs, &count))
		return STATUS_BAD_INPUT;
	if (a.common.output && !skep_output_ready(&a.common, HEAD))
		return STATUS_BAD_INPUT;
	struct skep_store *store = skep_store_open(a.common.db, false, &error);
	if (!store)
		return skep_report_diag(STATUS_BAD_INPUT, &error);
	bool read = skep_loss_points_read(store, runs, count, a.from, &points, &error);
	skep_store_close(store);
	if (!read)
		return skep_report_diag(STATUS_BAD_INPUT, &error);
	status = fit(&a.common, &points);
	skep_loss_points_finish(&points);
	return status;
}

static const struct skep_option fit_rows[] = {
	{"from", 0, SKEP_OPTION_U32, offsetof(struct fit_arguments, from), "ROUND",
		.help = "leave out the rounds before this one", .most = UINT32_MAX - 1,
		.usual = "the warm-up and the first 5 %", .expected = "the number of a round, from 0"},
};

static const struct skep_option output_rows[] = {
	{"output", 'o', SKEP_OPTION_PATH, offsetof(struct fit_arguments, common.output), "FILE",
		.help = "write the law, for train.law.file", .usual = "none is written"},
};

static const struct skep_option_group groups[] = {SKEP_OWN_OPTIONS("Fit", fit_rows),
	SKEP_OWN_OPTIONS("Output", output_rows), SKEP_FORCE_OPTION, SKEP_DATABASE_OPTIONS, {0}};
static const struct skep_example examples[] = {
	{"skep fit 3..14 -o law.yaml",
		"fit 12 runs; then simulate with --set train.arithmetic=law --set train.law.file=law.yaml"},
	{0},
};

const struct skep_command skep_command_fit = {
	.name = "fit",
	.operands = "[RUN|RUN..RUN|@TAG ...]",
	.summary = "fit a scaling law of the loss to runs",
	.text = "Fits the loss of runs as a function of tokens, local steps H, replicas and staleness, and prints the "
		"parameters with their standard errors. With train.arithmetic: law a simulation takes its losses from such "
		"a law instead of training. Without operands it takes all runs of the newest scenario that "
		"trained." SKEP_RUN_WORDS,
	.most = RUNS_MAX,
	.group = groups,
	.example = examples,
	.run = run,
};
