/* SPDX-License-Identifier: Apache-2.0
 *
 * compare.c - `skep compare`: prediction against reality, metric by metric.
 */
#include "analysis/summary/compare.h"
#include "analysis/store/store.h"
#include "commands/arguments.h"
#include "commands/commands.h"

static enum status run(struct skep_command_line *line)
{
	struct arguments a = {0};
	int64_t runs[2] = {0, 0};
	uint32_t count;
	struct skep_diag error = {0};
	enum status status;
	if (!skep_arguments_read(line, &a, &status))
		return status;
	if (!skep_arguments_runs(&a, 0, runs, &count))
		return STATUS_BAD_INPUT;
	if (count == 1)
		return skep_report_error(
			STATUS_BAD_INPUT, "compare takes two runs, or none for the newest of each world");
	struct skep_store *store = skep_store_open(a.db, false, &error);
	if (!store)
		return skep_report_diag(STATUS_BAD_INPUT, &error);
	bool done = skep_compare(store, runs[0], runs[1], a.json, stdout, &error);
	skep_store_close(store);
	return done ? STATUS_DONE : skep_report_diag(STATUS_BAD_INPUT, &error);
}

static const struct skep_option_group groups[] = {SKEP_DATABASE_OPTIONS, {0}};
static const struct skep_example examples[] = {
	{"skep compare", "the newest simulated run and the newest real run of the same scenario"},
	{"skep compare 3 7 --json", "two runs by the numbers that `skep sim` and `skep run` printed"},
	{0},
};

const struct skep_command skep_command_compare = {
	.name = "compare",
	.operands = "[RUN RUN]",
	.summary = "compare a simulated run with a real one",
	.text = "Prints each metric of two runs side by side with their relative difference. Without operands it takes "
		"the newest simulated and the newest real run of the same scenario. Then it splits the difference in time "
		"into passes, steps, reductions, joins and waiting, and says what to measure next.",
	.most = 2,
	.group = groups,
	.example = examples,
	.run = run,
};
