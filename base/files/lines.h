/* SPDX-License-Identifier: Apache-2.0
 *
 * lines.h - a text file read line by line in constant memory, however large it is. CSV files are read
 * through it.
 */
#pragma once

#include "base/reader.h"

struct skep_lines {
	const char *path; /* borrowed */
	struct skep_diag *diag;
	int fd;
	char *buffer; /* [room], holds what was read and not yet handed out */
	size_t room, begin, end, limit;
	bool at_end;
	uint64_t bytes;   /* read so far */
	uint32_t line;    /* number of `text`, from 1 */
	const char *text; /* the line, ended by a 0, without its line break; until the next call */
	size_t length;
};

/* A part of the line, blanks around it cut off. */
struct skep_cell {
	const char *at;
	size_t length;
};

/* Regular files only. A line longer than `limit` bytes is an error. */
bool skep_lines_open(struct skep_lines *lines, const char *path, size_t limit, struct skep_diag *reterr);
void skep_lines_close(struct skep_lines *lines);
void skep_lines_rewind(struct skep_lines *lines); /* to the first line */

/* The next line; false at the end or after an error. Lines end in LF, CR LF or CR. A byte order mark is
 * taken off; a zero byte is an error. */
bool skep_lines_next(struct skep_lines *lines);
/* The next line that is neither blank nor a comment (#). */
bool skep_lines_next_row(struct skep_lines *lines);

/* An error in the line at hand, with the caret at `at` (inside the line). */
void skep_lines_fail(struct skep_lines *lines, const char *at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Cells between commas, at most `most`; returns how many there are in the line. */
uint32_t skep_lines_cells(const struct skep_lines *lines, struct skep_cell *ret, uint32_t most);
bool skep_cell_is(struct skep_cell cell, const char *word);

#define SKEP_COLUMNS_MAX 32u /* that a table with named columns is looked through for */

/* Where each of the columns stands in the line at hand, which names them; false: the column *ret_missing is not there. */
bool skep_lines_columns(const struct skep_lines *lines, const char *const *name, uint32_t columns, uint32_t *ret,
	uint32_t *ret_missing);
/* The cells of these columns in the line at hand. False, an error: the line ends before one of them. */
bool skep_lines_row_cells(struct skep_lines *lines, const uint32_t *at, uint32_t columns, struct skep_cell *ret);

/* Not more than size - 1 bytes, and neither commas nor control characters, or an error that calls it `what`. */
bool skep_cell_copy(struct skep_lines *lines, struct skep_cell cell, const char *what, char *ret, size_t size);

#define SKEP_CELL_SECONDS_MAX 10000000000u /* some 317 years; in ns it fits 64 bits */

/* A plain decimal number of at least 0, in units of unit_ns (1e9: seconds), as ns; digits below 1 ns are cut off. */
bool skep_cell_time(struct skep_lines *lines, struct skep_cell cell, uint64_t unit_ns, uint64_t *ret_ns);
/* A whole number in [0, most]. */
bool skep_cell_count(struct skep_lines *lines, struct skep_cell cell, uint64_t most, uint64_t *ret);
