/* SPDX-License-Identifier: Apache-2.0
 *
 * import_openb.c - the pods of Alibaba's GPU cluster of 2023: see import.h.
 */
#include "base/units.h"
#include "scenarios/jobs/import.h"

enum { NAME, GPUS, MILLI, CREATED, DELETED, SCHEDULED, COLUMNS };
static const char *const COLUMN[COLUMNS] = {
	"name", "num_gpu", "gpu_milli", "creation_time", "deletion_time", "scheduled_time"};

static bool read_pod(struct skep_jobs_rows *rows, const uint32_t *at)
{
	struct skep_lines *lines = &rows->lines;
	struct skep_cell cell[COLUMNS];
	struct skep_jobs_row row = {.whole = true};
	uint64_t gpus, milli;
	if (!skep_lines_row_cells(lines, at, COLUMNS, cell) || !skep_cell_count(lines, cell[GPUS], 1024, &gpus) ||
		!skep_cell_count(lines, cell[MILLI], 1000, &milli) ||
		!skep_cell_time(lines, cell[CREATED], SKEP_SECOND_NS, &row.arrival_ns) ||
		!skep_cell_copy(lines, cell[NAME], "the name", row.name, sizeof row.name))
		return false;
	rows->report->rows++;
	if (gpus == 0) {
		rows->report->without_gpu++;
		return true;
	}
	row.machines = (uint32_t)gpus;
	row.part = gpus == 1 && milli < 1000;
	if (cell[SCHEDULED].length == 0 || cell[DELETED].length == 0) {
		rows->report->not_ended++;
		return true;
	}
	if (!skep_cell_time(lines, cell[SCHEDULED], SKEP_SECOND_NS, &row.begin_ns) ||
		!skep_cell_time(lines, cell[DELETED], SKEP_SECOND_NS, &row.end_ns))
		return false;
	if (row.end_ns < row.begin_ns) {
		skep_lines_fail(lines, cell[DELETED].at, "time goes backwards: deleted before it was scheduled");
		return false;
	}
	return skep_jobs_put(rows, &row);
}

bool skep_jobs_read_openb(struct skep_jobs_rows *rows)
{
	uint32_t at[COLUMNS], missing = 0;
	skep_time last_ns = 0;
	if (!skep_lines_columns(&rows->lines, COLUMN, COLUMNS, at, &missing)) {
		skep_lines_fail(&rows->lines, rows->lines.text, "no column '%s' in the first line", COLUMN[missing]);
		return false;
	}
	while (skep_lines_next_row(&rows->lines))
		if (!read_pod(rows, at))
			return false;
	for (uint32_t i = 0; i < rows->count; i++)
		last_ns = rows->row[i].end_ns > last_ns ? rows->row[i].end_ns : last_ns;
	for (uint32_t i = 0; i < rows->count; i++) /* it was there when the collection stopped */
		rows->row[i].whole = rows->row[i].end_ns < last_ns;
	return true;
}
