/* SPDX-License-Identifier: Apache-2.0
 *
 * runs_db.h - the database as the files of this folder open it. Private to them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/runs/runs.h"
#include "analysis/store/database.h"

struct skep_runs_db {
	sqlite3 *db;
	const char *path;
};

/* write: the database must be there and whole, and gets a table of labels if it is older than these. */
bool skep_runs_db_open(struct skep_runs_db *ret, const char *path, bool write, struct skep_diag *reterr);
void skep_runs_db_close(struct skep_runs_db *d);

/* False: it cannot be read. */
bool skep_runs_db_has_labels(const struct skep_runs_db *d, bool *ret, struct skep_diag *reterr);

/* Statements without rows. */
bool skep_runs_db_do(const struct skep_runs_db *d, const char *sql, struct skep_diag *reterr);
/* One statement with a number and a text (NULL: none) as ?1 and ?2; *ret, if not NULL, is the first column of its first
 * row, 0 without one. */
bool skep_runs_db_ask(const struct skep_runs_db *d, const char *sql, int64_t number, const char *text, int64_t *ret,
	struct skep_diag *reterr);

/* There is such a run, or the error says that there is none. */
bool skep_runs_db_is_there(const struct skep_runs_db *d, int64_t run, struct skep_diag *reterr);
