/* SPDX-License-Identifier: Apache-2.0
 *
 * matrix.c - a square matrix of numbers from comma-separated text. '#' begins a comment, empty lines count for nothing.
 *
 * Keeps true: what it returns is n * n numbers, each finite and not negative, or NAN where a hole was allowed.
 */
#include "scenarios/reader/reader.h"
#include "scenarios/reader/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MATRIX_BYTES_MAX (64u << 20)

struct matrix {
	const char *path;
	const char *begin; /* of the line */
	uint32_t line, rows, columns;
	bool allow_holes;
	double *value; /* [count], rows one after the other */
	size_t count, room;
	struct skep_diag *diag;
};

#define fail(m, at, ...)                                                                                               \
	skep_diag_set((m)->diag, (m)->path, (m)->line, (uint32_t)((at) - (m)->begin) + 1, (m)->begin, __VA_ARGS__)

static bool push(struct matrix *m, const char *at, double value)
{
	if (m->count == m->room) {
		m->room = m->room ? 2 * m->room : 256;
		double *more = realloc(m->value, m->room * sizeof *more);
		if (!more) {
			fail(m, at, "not enough memory for this matrix");
			return false;
		}
		m->value = more;
	}
	m->value[m->count++] = value;
	return true;
}

static bool is_hole(const char *s, size_t length)
{
	return length == 0 || (length == 3 && strncmp(s, "nan", 3) == 0) || (length == 3 && strncmp(s, "NaN", 3) == 0);
}

static bool read_cell(struct matrix *m, const char *s, const char *end)
{
	s += strspn(s, " \t");
	while (end > s && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	const char *stop;
	double value = NAN;
	int shown = (int)(end - s < 60 ? end - s : 60);
	if (is_hole(s, (size_t)(end - s))) {
		if (!m->allow_holes)
			fail(m, s, "a hole in the matrix: expected a number in every cell");
	} else if (!skep_number_parse(s, &stop, &value) || stop != end) {
		fail(m, s, "expected a number, not `%.*s`", shown, s);
	} else if (signbit(value) || !isfinite(value)) {
		fail(m, s, "expected a finite number of at least 0, not `%.*s`", shown, s);
	}
	return !m->diag->set && push(m, s, value);
}

static bool read_row(struct matrix *m, const char *end)
{
	uint32_t cells = 0;
	for (const char *s = m->begin;; s++) {
		const char *comma = memchr(s, ',', (size_t)(end - s));
		const char *stop = comma ? comma : end;
		if (m->rows > 0 && cells == m->columns)
			fail(m, s, "row %u has more than the %u cells of the first row", m->rows + 1, m->columns);
		if (m->diag->set || !read_cell(m, s, stop))
			return false;
		cells++;
		if (!comma)
			break;
		s = comma;
	}
	if (m->rows == 0)
		m->columns = cells;
	if (cells < m->columns)
		fail(m, end, "row %u has %u cells, the first row has %u", m->rows + 1, cells, m->columns);
	m->rows++;
	if (m->rows > m->columns)
		fail(m, m->begin, "row %u in a matrix of %u columns: expected as many rows as columns", m->rows,
			m->columns);
	return !m->diag->set;
}

static void read_rows(struct matrix *m, const char *text)
{
	for (m->line = 1; *text && !m->diag->set; m->line++) {
		size_t length = strcspn(text, "\r\n");
		const char *comment = memchr(text, '#', length), *end = comment ? comment : text + length;
		m->begin = text;
		if (text + strspn(text, " \t") < end && !read_row(m, end))
			return;
		text += length;
		text += text[0] == '\r' && text[1] == '\n' ? 2 : text[0] != 0;
	}
	if (m->rows == 0)
		skep_diag_set(
			m->diag, m->path, 1, 1, "", "the matrix is empty: expected rows of numbers between commas");
	else if (m->rows < m->columns)
		skep_diag_set(m->diag, m->path, m->line - 1, 1, m->begin,
			"the matrix ends after %u rows of %u columns: expected as many rows as columns", m->rows,
			m->columns);
}

bool skep_matrix_read(const char *path, bool allow_holes, uint32_t *ret_n, double **ret, struct skep_diag *reterr)
{
	struct matrix m = {.path = path, .allow_holes = allow_holes, .diag = reterr};
	char *text;
	size_t size;
	*ret = NULL;
	*ret_n = 0;
	if (!skep_file_read(path, MATRIX_BYTES_MAX, &text, &size, reterr))
		return false;
	read_rows(&m, text);
	free(text);
	if (reterr->set) {
		free(m.value);
		return false;
	}
	*ret = m.value;
	*ret_n = m.rows;
	return true;
}
