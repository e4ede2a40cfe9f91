/* SPDX-License-Identifier: Apache-2.0
 *
 * stage_table.c - reads tables of measured stages and looks times up in them.
 *
 * What is kept true of a table that was read: rows rise strictly in first layer, layers and microbatch, every number is finite
 * and above 0, and an empty cell is NAN. Between two microbatches the time is linear in the logarithms, as in gpu_table.c.
 */
#include "topologies/gpu/stage_table.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/csv.h"
#include "base/grow.h"
#include "topologies/gpu/gpu_table.h"

#define LINE_MAX_BYTES 1024u
#define ROWS_MAX 100000u
#define TIME_US_LEAST 1e-9
#define CELLS (3 + SKEP_STAGE_COLUMNS)

const char *const skep_stage_column_names[SKEP_STAGE_COLUMNS] = {
	"forward", "backward", "recompute", "recomputed", "step", "inner", "pseudo"};

const char *const skep_offload_names[] = {"none", "optimizer", "gradients", NULL};

/* Less than, equal to or greater than 0, as first layer, layers and microbatch of a are to those of b. */
static int compare(const struct skep_measured_stage *a, const struct skep_measured_stage *b)
{
	const uint32_t left[] = {a->first_layer, a->layers, a->microbatch};
	const uint32_t right[] = {b->first_layer, b->layers, b->microbatch};
	for (int i = 0; i < 3; i++)
		if (left[i] != right[i])
			return left[i] < right[i] ? -1 : 1;
	return 0;
}

static bool read_number(struct skep_lines *l, struct skep_cell cell, const char *what, double low, uint32_t *ret)
{
	double value = 0;
	if (!skep_cell_number(l, cell, what, low, 1e9, &value))
		return false;
	*ret = (uint32_t)value;
	if (value == floor(value))
		return true;
	skep_lines_fail(l, cell.at, "%s: expected a whole number", what);
	return false;
}

static bool read_row(struct skep_lines *l, struct skep_measured_stage *row)
{
	struct skep_cell cell[CELLS + 1];
	if (skep_lines_cells(l, cell, CELLS + 1) != CELLS) {
		skep_lines_fail(l, l->text, "ragged: expected ten columns, %s", SKEP_STAGE_TABLE_HEADER);
		return false;
	}
	if (!read_number(l, cell[0], "first_layer", 0, &row->first_layer) ||
		!read_number(l, cell[1], "layers", 1, &row->layers) ||
		!read_number(l, cell[2], "microbatch", 1, &row->microbatch))
		return false;
	for (int i = 0; i < SKEP_STAGE_COLUMNS; i++) {
		row->seconds[i] = NAN;
		if (cell[3 + i].length == 0)
			continue;
		if (!skep_cell_number(l, cell[3 + i], skep_stage_column_names[i], TIME_US_LEAST, SKEP_TABLE_TIME_US_MAX,
			    &row->seconds[i]))
			return false;
		row->seconds[i] *= 1e-6;
	}
	return true;
}

static bool add_row(struct skep_lines *l, struct skep_stage_table *t, const struct skep_measured_stage *row)
{
	if (t->rows > 0 && compare(&t->row[t->rows - 1], row) >= 0)
		skep_lines_fail(l, l->text,
			"not rising: sort the rows by first_layer, layers and microbatch, and give each once");
	else if (t->rows == ROWS_MAX || !skep_grow(&t->row, t->rows, sizeof *t->row))
		skep_lines_fail(l, l->text, "too many rows: at most %u, and they must fit into memory", ROWS_MAX);
	else
		t->row[t->rows++] = *row;
	return !l->diag->set;
}

static void read_rows(struct skep_lines *l, struct skep_stage_table *t)
{
	bool any = skep_lines_next_row(l), sound = true;
	if (any && strcmp(l->text, SKEP_STAGE_TABLE_HEADER) != 0)
		skep_lines_fail(
			l, l->text, "expected `%s` as the first row of a table of stages", SKEP_STAGE_TABLE_HEADER);
	while (any && sound && !l->diag->set && skep_lines_next_row(l)) {
		struct skep_measured_stage row = {0};
		sound = read_row(l, &row) && add_row(l, t, &row);
	}
	if (t->rows == 0 && !l->diag->set)
		skep_diag_set(l->diag, l->path, 0, 0, NULL, "empty: expected `%s` and rows", SKEP_STAGE_TABLE_HEADER);
}

bool skep_stage_table_read(struct skep_stage_table *table, struct skep_diag *reterr)
{
	struct skep_lines lines;
	assert(table->rows == 0);
	if (!skep_lines_open(&lines, table->path, LINE_MAX_BYTES, reterr))
		return false;
	read_rows(&lines, table);
	skep_lines_close(&lines);
	if (reterr->set)
		skep_stage_table_finish(table);
	return !reterr->set;
}

void skep_stage_table_finish(struct skep_stage_table *table)
{
	free(table->row);
	table->row = NULL;
	table->rows = 0;
}

bool skep_stage_table_look(const struct skep_stage_table *t, const struct skep_measured_stage *query,
	enum skep_stage_column column, double *ret_seconds, bool *ret_exact)
{
	const struct skep_measured_stage *below = NULL, *above = NULL;
	*ret_exact = false;
	for (uint32_t i = 0; i < t->rows; i++) {
		const struct skep_measured_stage *row = &t->row[i];
		bool same = row->first_layer == query->first_layer && row->layers == query->layers;
		if (!same || isnan(row->seconds[column]))
			continue;
		if (row->microbatch <= query->microbatch)
			below = row;
		else if (above == NULL)
			above = row;
	}
	if (below == NULL)
		return false;
	*ret_exact = below->microbatch == query->microbatch;
	*ret_seconds = below->seconds[column];
	if (*ret_exact)
		return true;
	if (above == NULL)
		return false;
	double share =
		log((double)query->microbatch / below->microbatch) / log((double)above->microbatch / below->microbatch);
	*ret_seconds = exp((1 - share) * log(below->seconds[column]) + share * log(above->seconds[column]));
	return true;
}
