/* SPDX-License-Identifier: Apache-2.0
 *
 * database.h - the file: opening it, knowing that it is ours, and saying what is wrong with it. Private to analysis/.
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

struct skep_store;

/* create: for writing, made if it is not there. Otherwise for reading only, and it must be there. */
sqlite3 *skep_database_open(const char *path, bool create, struct skep_diag *reterr);

/* An empty one in memory. */
sqlite3 *skep_database_open_memory(struct skep_diag *reterr);

/* "path: what is wrong: what to do" for a result code that this connection has returned; the last one says most. */
void skep_database_explain(sqlite3 *db, const char *path, int code, struct skep_diag *reterr);

/* The connection of an open store, and a statement on it with ?1 and ?2 bound; NULL with the reason in reterr. */
sqlite3 *skep_store_database(struct skep_store *store);
sqlite3_stmt *skep_store_query(
	struct skep_store *store, const char *sql, int64_t first, int64_t second, struct skep_diag *reterr);

/* Steps a statement of skep_store_query(): true at a row. What is neither a row nor the end (damage, a disk that
 * cannot be read, a lock) ends the rows too, and is kept: after the last row the caller asks
 * skep_store_read_all(), which reports the first such failure. Without that call half of the rows would look like
 * all of them. */
bool skep_store_row(struct skep_store *store, sqlite3_stmt *row);
bool skep_store_read_all(const struct skep_store *store, struct skep_diag *reterr);

/* A number, NAN where the database holds NULL; and a text, "" there. */
double skep_column_real(sqlite3_stmt *row, int column);
const char *skep_column_text(sqlite3_stmt *row, int column);
/* The same as it is shown to people (base/text.h): a database may be another's, with anything in it. Cut if it does not fit. */
void skep_column_show(sqlite3_stmt *row, int column, char *ret, size_t size);

/* Room on a disk that is kept for the last word of a run, should the disk be full by then: beside the file of this name, in a
 * file without one, so that nothing is left of it, however the process ends. Returns what skep_reserve_give_back() takes; -1:
 * the file system has no such files, or no room. */
int skep_reserve_take(const char *path);
void skep_reserve_give_back(int reserve); /* -1 is fine */
