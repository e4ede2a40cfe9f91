/* SPDX-License-Identifier: Apache-2.0
 *
 * csv.h - a CSV table whose first row names its columns, and numbers in cells: the one reader of numbers in CSV files.
 */
#pragma once

#include "base/files/lines.h"

#define SKEP_TABLE_COLUMNS_MAX 1040u

struct skep_table {
	struct skep_lines lines;
	uint32_t columns;
	struct skep_cell cell[SKEP_TABLE_COLUMNS_MAX]; /* of the row at hand */
	char *header;                                  /* a copy of the first row; name[] points into it */
	struct skep_cell name[SKEP_TABLE_COLUMNS_MAX];
};

/* Reads the header. Whether it was opened or not, close it. */
bool skep_table_open(struct skep_table *table, const char *path, struct skep_diag *reterr);
void skep_table_close(struct skep_table *table);
/* The next row; false at the end or after an error. Every row has as many cells as the header. */
bool skep_table_next(struct skep_table *table);
/* The column of that name; UINT32_MAX: there is none. */
uint32_t skep_table_column(const struct skep_table *table, const char *name);
/* The columns of all names (NULL ends), or an error that names those that are missing. */
bool skep_table_need(struct skep_table *table, const char *const name[], uint32_t *ret);

/* A decimal number in [low, high]; `what` with its unit is what errors say was expected. */
bool skep_cell_number(
	struct skep_lines *lines, struct skep_cell cell, const char *what, double low, double high, double *ret);
