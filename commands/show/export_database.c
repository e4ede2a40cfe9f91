/* SPDX-License-Identifier: Apache-2.0
 *
 * export_database.c - see export_database.h. A timeline goes into a file; tables go there or to standard output.
 */
#include "commands/show/export_database.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/export/export.h"
#include "base/files/outputs.h"
#include "base/text.h"
#include "commands/output.h"

static bool is(const struct arguments *a, const char *kind)
{
	return strcmp(a->positional[0], kind) == 0;
}

bool skep_export_is_database(const struct arguments *a)
{
	return a->positionals > 0 && (is(a, "timeline") || is(a, "runs") || is(a, "rounds") || is(a, "scenario"));
}

static bool write_kind(const struct arguments *a, struct skep_store *store, const int64_t *runs, uint32_t count,
	FILE *out, struct skep_diag *reterr)
{
	if (is(a, "scenario"))
		return skep_export_scenario(store, count > 0 ? runs[0] : 0, out, reterr);
	if (is(a, "timeline"))
		return skep_export_timeline(store, count > 0 ? runs[0] : 0, out, reterr);
	return skep_export_csv(store, is(a, "runs") ? SKEP_EXPORT_RUNS : SKEP_EXPORT_ROUNDS, runs, count, out, reterr);
}

/* A database may be another's, with anything in its texts: a terminal gets no control characters, a file or pipe gets all. */
static void print_table(const char *text, size_t length)
{
	char shown[4];
	uint32_t bytes;
	if (!isatty(STDOUT_FILENO)) {
		fwrite(text, 1, length, stdout);
		return;
	}
	for (size_t at = 0; at < length;) {
		if (text[at] == '\n') {
			putchar(text[at++]);
			continue;
		}
		at += skep_text_shown(text + at, length - at, shown, &bytes);
		fwrite(shown, 1, bytes, stdout);
	}
}

/* Made whole before anything is written. */
static enum status export_runs(const struct arguments *a, const int64_t *runs, uint32_t count)
{
	char *text = NULL;
	size_t length = 0;
	struct skep_diag error = {0};
	struct skep_store *store = skep_store_open(a->db, false, &error);
	FILE *out = store ? open_memstream(&text, &length) : NULL;
	bool done = out && write_kind(a, store, runs, count, out, &error);
	bool whole = out && fclose(out) == 0;
	if (store && !whole)
		skep_fail(&error, "not enough memory to export this");
	done = done && whole && (!a->output || skep_file_write(a->output, text, length, &error));
	if (done && !a->output)
		print_table(text, length);
	skep_store_close(store);
	free(text);
	if (!done)
		return skep_report_diag(STATUS_BAD_INPUT, &error);
	if (a->output && a->json)
		printf("{\"exported\":\"%s\"}\n", a->positional[0]);
	else if (a->output && !a->quiet)
		skep_say("wrote %s\n", a->output);
	return STATUS_DONE;
}

enum status skep_export_database(const struct arguments *a)
{
	int64_t runs[RUNS_MAX];
	uint32_t count;
	bool timeline = is(a, "timeline"), scenario = is(a, "scenario");
	if (a->scenario.sets > 0 || a->scenario.has_seed)
		return skep_report_error(STATUS_BAD_INPUT, "--set and --seed are for the weights of a scenario");
	if (!skep_arguments_run_ranges(a, 1, runs, &count))
		return STATUS_BAD_INPUT;
	if (timeline && count > 1)
		return skep_report_error(STATUS_BAD_INPUT, "export timeline takes one run, or none for the newest");
	if (scenario && count > 1)
		return skep_report_error(STATUS_BAD_INPUT, "export scenario takes one run, or none for the newest");
	if (timeline && !a->output)
		return skep_report_error(
			STATUS_BAD_INPUT, "export timeline needs -o FILE, for example -o timeline.json");
	if (a->json && !a->output)
		return skep_report_error(STATUS_BAD_INPUT, "--json with a table needs -o FILE for the table");
	size_t length = a->output ? strlen(a->output) : 0;
	const char *ending = timeline ? ".json" : scenario ? ".yaml" : ".csv";
	if (a->output && (length <= strlen(ending) || strcmp(a->output + length - strlen(ending), ending) != 0))
		return skep_report_error(STATUS_BAD_INPUT, timeline   ? "-o: the name of a timeline ends in .json"
							   : scenario ? "-o: the name of a scenario ends in .yaml"
								      : "-o: the name of a table ends in .csv");
	return a->output && !skep_output_ready(a, NULL) ? STATUS_BAD_INPUT : export_runs(a, runs, count);
}
