/* SPDX-License-Identifier: Apache-2.0
 *
 * import_pai.c - the tasks of Alibaba's PAI cluster of 2020, as jobs: see import.h.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "scenarios/jobs/import.h"

enum { JOB, INSTANCES, STATUS, START, END, GPUS, COLUMNS };
static const char *const COLUMN[COLUMNS] = {"job_name", "inst_num", "status", "start_time", "end_time", "plan_gpu"};
static const uint32_t USUAL[COLUMNS] = {0, 2, 3, 4, 5, 8}; /* without a row of names */

#define MACHINES_MAX 100000.0

static bool number(struct skep_lines *lines, struct skep_cell cell, double *ret)
{
	const char *end;
	char text[64];
	if (cell.length < sizeof text) {
		memcpy(text, cell.at, cell.length);
		text[cell.length] = '\0';
		if (skep_number_parse(text, &end, ret) && *end == '\0' && *ret >= 0 && *ret <= 1e9)
			return true;
	}
	skep_lines_fail(lines, cell.at, "expected a number of at least 0");
	return false;
}

/* One task: without a GPU, or not begun or not ended, it says nothing of machines. */
static bool read_task(struct skep_jobs_rows *rows, const uint32_t *at)
{
	struct skep_lines *lines = &rows->lines;
	struct skep_cell cell[COLUMNS];
	struct skep_jobs_row row = {.machines = 0};
	double instances = 0, percent = 0;
	if (!skep_lines_row_cells(lines, at, COLUMNS, cell))
		return false;
	rows->report->rows++;
	bool has = cell[GPUS].length > 0 && cell[INSTANCES].length > 0;
	if (has && (!number(lines, cell[GPUS], &percent) || !number(lines, cell[INSTANCES], &instances)))
		return false;
	double machines = ceil(percent / 100) * instances;
	if (machines < 1) {
		rows->report->without_gpu++;
		return true;
	}
	if (machines > MACHINES_MAX) {
		skep_lines_fail(lines, cell[INSTANCES].at, "%g GPUs in one task: more than there are", machines);
		return false;
	}
	if (cell[START].length == 0 || cell[END].length == 0) {
		rows->report->not_ended++;
		return true;
	}
	row.machines = (uint32_t)machines;
	row.part = fmod(percent, 100) > 0;
	row.whole = skep_cell_is(cell[STATUS], "Terminated");
	if (!skep_cell_copy(lines, cell[JOB], "the name", row.name, sizeof row.name) ||
		!skep_cell_time(lines, cell[START], SKEP_SECOND_NS, &row.begin_ns) ||
		!skep_cell_time(lines, cell[END], SKEP_SECOND_NS, &row.end_ns))
		return false;
	row.arrival_ns = row.begin_ns;
	return skep_jobs_put(rows, &row);
}

static int by_name(const void *a, const void *b)
{
	const struct skep_jobs_row *x = a, *y = b;
	int order = strcmp(x->name, y->name);
	return order != 0 ? order : x->begin_ns < y->begin_ns ? -1 : x->begin_ns > y->begin_ns;
}

static void merge(struct skep_jobs_rows *rows)
{
	uint32_t jobs = 0;
	if (rows->count > 0)
		qsort(rows->row, rows->count, sizeof *rows->row, by_name);
	for (uint32_t i = 0; i < rows->count; i++) {
		const struct skep_jobs_row *task = &rows->row[i];
		struct skep_jobs_row *job = jobs > 0 ? &rows->row[jobs - 1] : NULL;
		if (job == NULL || strcmp(job->name, task->name) != 0) {
			rows->row[jobs++] = *task;
			continue;
		}
		job->machines += task->machines;
		job->part = job->part || task->part;
		job->whole = job->whole && task->whole;
		job->end_ns = task->end_ns > job->end_ns ? task->end_ns : job->end_ns;
	}
	rows->count = jobs;
}

bool skep_jobs_read_pai(struct skep_jobs_rows *rows)
{
	uint32_t at[COLUMNS], missing = 0;
	bool named = skep_lines_columns(&rows->lines, COLUMN, COLUMNS, at, &missing);
	if (!named)
		memcpy(at, USUAL, sizeof at);
	if (!named && !read_task(rows, at))
		return false;
	while (skep_lines_next_row(&rows->lines))
		if (!read_task(rows, at))
			return false;
	merge(rows);
	return true;
}
