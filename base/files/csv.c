/* SPDX-License-Identifier: Apache-2.0
 *
 * csv.c - see csv.h. What is kept true: a number that was handed out is finite and in its range.
 */
#include "base/files/csv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES_MAX (64u << 10)

bool skep_table_open(struct skep_table *t, const char *path, struct skep_diag *reterr)
{
	t->header = NULL;
	t->columns = 0;
	if (!skep_lines_open(&t->lines, path, LINE_BYTES_MAX, reterr))
		return false;
	if (!skep_lines_next_row(&t->lines)) {
		skep_diag_set(
			reterr, path, 0, 0, NULL, "is empty: expected a table with the names of its columns on top");
		return false;
	}
	t->columns = skep_lines_cells(&t->lines, t->name, SKEP_TABLE_COLUMNS_MAX);
	if (t->columns > SKEP_TABLE_COLUMNS_MAX)
		skep_lines_fail(&t->lines, t->lines.text, "a table of %u columns: at most %u are taken", t->columns,
			SKEP_TABLE_COLUMNS_MAX);
	else if (!(t->header = strdup(t->lines.text)))
		skep_lines_fail(&t->lines, t->lines.text, "not enough memory");
	for (uint32_t i = 0; !reterr->set && i < t->columns; i++)
		t->name[i].at = t->header + (t->name[i].at - t->lines.text);
	return !reterr->set;
}

void skep_table_close(struct skep_table *t)
{
	skep_lines_close(&t->lines);
	free(t->header);
	t->header = NULL;
}

bool skep_table_next(struct skep_table *t)
{
	if (!skep_lines_next_row(&t->lines))
		return false;
	uint32_t count = skep_lines_cells(&t->lines, t->cell, t->columns);
	if (count == t->columns)
		return true;
	const char *at = count > t->columns ? t->cell[t->columns - 1].at + t->cell[t->columns - 1].length
	                                    : t->lines.text + t->lines.length;
	skep_lines_fail(&t->lines, at, "this row has %u cells, the header %u", count, t->columns);
	return false;
}

uint32_t skep_table_column(const struct skep_table *t, const char *name)
{
	for (uint32_t i = 0; i < t->columns; i++)
		if (skep_cell_is(t->name[i], name))
			return i;
	return UINT32_MAX;
}

bool skep_table_need(struct skep_table *t, const char *const name[], uint32_t *ret)
{
	char missing[256] = "";
	for (uint32_t i = 0; name[i]; i++) {
		ret[i] = skep_table_column(t, name[i]);
		if (ret[i] == UINT32_MAX)
			snprintf(missing + strlen(missing), sizeof missing - strlen(missing), "%s%s",
				missing[0] ? ", " : "", name[i]);
	}
	if (missing[0])
		skep_lines_fail(&t->lines, t->lines.text, "the header lacks these columns: %s", missing);
	return !missing[0];
}

bool skep_cell_number(
	struct skep_lines *lines, struct skep_cell cell, const char *what, double low, double high, double *ret)
{
	char text[64] = "";
	if (cell.length > 0 && cell.length < sizeof text)
		memcpy(text, cell.at, cell.length);
	char *end = text;
	bool plain = text[0] != 0 && strspn(text, "0123456789.eE+-") == cell.length;
	double value = plain ? strtod(text, &end) : NAN;
	*ret = value;
	if (plain && *end == 0 && value >= low && value <= high)
		return true;
	*ret = low;
	if (cell.length == 0)
		skep_lines_fail(lines, cell.at, "expected %s, but the cell is empty", what);
	else if (!plain || *end != 0)
		skep_lines_fail(lines, cell.at, "expected %s, a plain decimal number, not '%.*s'", what,
			(int)(cell.length < 40 ? cell.length : 40), cell.at);
	else
		skep_lines_fail(lines, cell.at, "expected %s from %g to %g, not %.*s", what, low, high,
			(int)cell.length, cell.at);
	return false;
}
