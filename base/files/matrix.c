/* SPDX-License-Identifier: Apache-2.0
 *
 * matrix.c - a square matrix of numbers from comma-separated text. '#' begins a comment, empty lines count for nothing.
 *
 * Keeps true: what it returns is n * n numbers, each finite and not negative, or NAN where a hole was allowed.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/lines.h"
#include "base/text.h"

#define MATRIX_BYTES_MAX (64u << 20)

struct matrix {
	struct skep_lines lines;
	uint32_t rows, columns;
	bool allow_holes;
	struct skep_cell *cell; /* [columns] of the row at hand */
	double *value;          /* [rows * columns], rows one after the other */
	size_t room;
};

static bool is_hole(struct skep_cell cell)
{
	return cell.length == 0 || skep_cell_is(cell, "nan");
}

static bool read_cell(struct matrix *m, struct skep_cell cell, double *ret)
{
	const char *stop;
	int shown = (int)(cell.length < 60 ? cell.length : 60);
	*ret = NAN;
	if (is_hole(cell)) {
		if (!m->allow_holes)
			skep_lines_fail(&m->lines, cell.at, "a hole in the matrix: expected a number in every cell");
	} else if (!skep_number_parse(cell.at, &stop, ret) || stop != cell.at + cell.length) {
		skep_lines_fail(&m->lines, cell.at, "expected a number, not `%.*s`", shown, cell.at);
	} else if (signbit(*ret) || !isfinite(*ret)) {
		skep_lines_fail(
			&m->lines, cell.at, "expected a finite number of at least 0, not `%.*s`", shown, cell.at);
	}
	return !m->lines.diag->set;
}

/* A row more is in the memory; the first row says how many columns there are. */
static bool make_room(struct matrix *m, uint32_t cells)
{
	if (m->rows == 0) {
		m->columns = cells;
		m->cell = calloc(cells, sizeof *m->cell);
	}
	size_t wanted = (size_t)(m->rows + 1) * m->columns;
	if (wanted > m->room) {
		double *more = realloc(m->value, 2 * wanted * sizeof *more);
		m->value = more ? more : m->value;
		m->room = more ? 2 * wanted : m->room;
	}
	if (!m->cell || wanted > m->room)
		skep_lines_fail(&m->lines, m->lines.text, "not enough memory for this matrix");
	return !m->lines.diag->set;
}

static bool read_row(struct matrix *m)
{
	struct skep_lines *l = &m->lines;
	l->length = strcspn(l->text, "#");
	uint32_t cells = skep_lines_cells(l, NULL, 0);
	if (!make_room(m, cells))
		return false;
	skep_lines_cells(l, m->cell, m->columns);
	for (uint32_t i = 0; i < cells && i < m->columns; i++)
		if (!read_cell(m, m->cell[i], &m->value[(size_t)m->rows * m->columns + i]))
			return false;
	struct skep_cell last = m->cell[m->columns - 1];
	m->rows++;
	if (cells > m->columns)
		skep_lines_fail(l, strchr(last.at + last.length, ',') + 1,
			"row %u has more than the %u cells of the first row", m->rows, m->columns);
	else if (cells < m->columns)
		skep_lines_fail(l, l->text + l->length, "row %u has %u cells, the first row has %u", m->rows, cells,
			m->columns);
	else if (m->rows > m->columns)
		skep_lines_fail(l, l->text, "row %u in a matrix of %u columns: expected as many rows as columns",
			m->rows, m->columns);
	return !l->diag->set;
}

static void read_rows(struct matrix *m)
{
	struct skep_lines *l = &m->lines;
	while (skep_lines_next_row(l))
		if (!read_row(m))
			return;
	if (m->rows == 0)
		skep_diag_set(
			l->diag, l->path, 1, 1, "", "the matrix is empty: expected rows of numbers between commas");
	else if (m->rows < m->columns)
		skep_lines_fail(l, l->text,
			"the matrix ends after %u rows of %u columns: expected as many rows as columns", m->rows,
			m->columns);
}

bool skep_matrix_read(const char *path, bool allow_holes, uint32_t *ret_n, double **ret, struct skep_diag *reterr)
{
	struct matrix m = {.allow_holes = allow_holes};
	*ret = NULL;
	*ret_n = 0;
	if (!skep_lines_open(&m.lines, path, MATRIX_BYTES_MAX, reterr))
		return false;
	read_rows(&m);
	skep_lines_close(&m.lines);
	free(m.cell);
	if (reterr->set) {
		free(m.value);
		return false;
	}
	*ret = m.value;
	*ret_n = m.rows;
	return true;
}
