/* SPDX-License-Identifier: Apache-2.0
 *
 * import.c - what the tables have in common, and the trace that is written: see import.h.
 */
#include "scenarios/jobs/import.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/outputs.h"
#include "base/grow.h"
#include "base/units.h"

const char *const skep_jobs_format_names[SKEP_JOBS_FORMATS + 1] = {"detect", "pai", "openb", NULL};

bool skep_jobs_put(struct skep_jobs_rows *rows, const struct skep_jobs_row *row)
{
	if (!skep_grow(&rows->row, rows->count, sizeof *rows->row))
		return skep_fail(rows->lines.diag, "%s: not enough memory for its jobs", rows->lines.path);
	rows->row[rows->count++] = *row;
	return true;
}

/* ---- reading --------------------------------------------------------------------------------------------------------- */

static enum skep_jobs_format detect(struct skep_jobs_rows *rows)
{
	static const char *const openb[] = {"creation_time"}, *const pai[] = {"plan_gpu"};
	uint32_t at, missing;
	struct skep_cell cell[SKEP_COLUMNS_MAX];
	if (skep_lines_columns(&rows->lines, openb, 1, &at, &missing))
		return SKEP_JOBS_OPENB;
	if (skep_lines_columns(&rows->lines, pai, 1, &at, &missing) ||
		skep_lines_cells(&rows->lines, cell, SKEP_COLUMNS_MAX) == 10)
		return SKEP_JOBS_PAI;
	skep_lines_fail(&rows->lines, rows->lines.text,
		"neither pai_task_table.csv of Alibaba's GPU trace of 2020 nor openb_pod_list of 2023: say --format");
	return SKEP_JOBS_DETECT;
}

static bool read_table(struct skep_jobs_rows *rows, enum skep_jobs_format format)
{
	if (!skep_lines_next_row(&rows->lines))
		return rows->lines.diag->set ? false : skep_fail(rows->lines.diag, "%s: is empty", rows->lines.path);
	format = format == SKEP_JOBS_DETECT ? detect(rows) : format;
	rows->report->format = format;
	if (format == SKEP_JOBS_DETECT)
		return false;
	return (format == SKEP_JOBS_PAI ? skep_jobs_read_pai(rows) : skep_jobs_read_openb(rows)) &&
	       !rows->lines.diag->set;
}

/* ---- writing ---------------------------------------------------------------------------------------------------------- */

static int by_arrival(const void *a, const void *b)
{
	const struct skep_jobs_row *x = a, *y = b;
	if (x->arrival_ns != y->arrival_ns)
		return x->arrival_ns < y->arrival_ns ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* ns as seconds, without zeros behind the point. */
static void print_seconds(FILE *out, skep_time ns)
{
	char text[40];
	size_t length =
		(size_t)snprintf(text, sizeof text, "%" PRIu64 ".%09" PRIu64, ns / SKEP_SECOND_NS, ns % SKEP_SECOND_NS);
	while (text[length - 1] == '0')
		length--;
	length -= text[length - 1] == '.';
	fprintf(out, "%.*s", (int)length, text);
}

static void print_rows(const struct skep_jobs_rows *rows, const struct skep_jobs_import_options *options, FILE *out)
{
	struct skep_jobs_import_report *r = rows->report;
	fprintf(out, "%s\n# arrival and duration: seconds; machines: GPUs\n# source: %s\n# licence: %s\n",
		SKEP_JOBS_WRITTEN, options->source, options->licence);
	fprintf(out, "arrival,duration,machines,name\n");
	for (uint32_t i = 0; i < rows->count; i++) {
		const struct skep_jobs_row *row = &rows->row[i];
		double arrival_s = (double)row->arrival_ns / SKEP_NS_PER_S;
		if (!row->whole || row->end_ns <= row->begin_ns) {
			r->not_ended++;
			continue;
		}
		if (arrival_s < options->start_s || arrival_s >= options->end_s) {
			r->outside++;
			continue;
		}
		skep_time from_ns = row->arrival_ns - (skep_time)(options->start_s * SKEP_NS_PER_S);
		print_seconds(out, from_ns);
		fprintf(out, ",");
		print_seconds(out, row->end_ns - row->begin_ns);
		fprintf(out, ",%u,%s\n", row->machines, row->name);
		r->jobs++;
		r->parts += row->part;
		r->machines_most = row->machines > r->machines_most ? row->machines : r->machines_most;
		r->machine_s += (double)(row->end_ns - row->begin_ns) / SKEP_NS_PER_S * row->machines;
		r->last_s = (double)from_ns / SKEP_NS_PER_S;
	}
}

bool skep_jobs_import(const char *path, const char *to, const struct skep_jobs_import_options *options,
	struct skep_jobs_import_report *ret, struct skep_diag *reterr)
{
	struct skep_jobs_rows rows = {.report = ret};
	char *text = NULL;
	size_t size = 0;
	*ret = (struct skep_jobs_import_report){.jobs = 0};
	if (!skep_lines_open(&rows.lines, path, 65536, reterr))
		return false;
	bool ok = read_table(&rows, options->format);
	skep_lines_close(&rows.lines);
	FILE *out = ok ? open_memstream(&text, &size) : NULL;
	if (ok && !out)
		ok = skep_fail(reterr, "%s: not enough memory for its jobs", path);
	if (ok && rows.count > 0)
		qsort(rows.row, rows.count, sizeof *rows.row, by_arrival);
	if (ok)
		print_rows(&rows, options, out);
	if (out && fclose(out) != 0 && ok)
		ok = skep_fail(reterr, "%s: not enough memory for its jobs", path);
	if (ok && ret->jobs == 0)
		ok = skep_fail(reterr, "%s: holds no job with a GPU that ended, between --start and --end", path);
	ok = ok && skep_file_write(to, text, size, reterr);
	free(text);
	free(rows.row);
	return ok;
}
