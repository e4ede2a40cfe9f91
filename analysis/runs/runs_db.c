/* SPDX-License-Identifier: Apache-2.0
 *
 * runs_db.c - see runs_db.h.
 */
#include "analysis/runs/runs_db.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

/* As schema.sql has it: databases that were begun before labels lack it. */
static const char make_labels[] =
	"CREATE TABLE IF NOT EXISTS labels (run INTEGER NOT NULL REFERENCES runs, kind TEXT NOT NULL CHECK (kind IN"
	" ('name', 'tag')), label TEXT NOT NULL, PRIMARY KEY (run, kind, label)) STRICT, WITHOUT ROWID;"
	"CREATE UNIQUE INDEX IF NOT EXISTS labels_by_name ON labels (label) WHERE kind = 'name'";

static bool is_whole(const struct skep_runs_db *d, struct skep_diag *reterr)
{
	char found[160] = "";
	sqlite3_stmt *row = NULL;
	int rc = sqlite3_prepare_v2(d->db, "PRAGMA integrity_check(1)", -1, &row, NULL);
	if (rc == SQLITE_OK && (rc = sqlite3_step(row)) == SQLITE_ROW)
		snprintf(found, sizeof found, "%s", skep_column_text(row, 0));
	sqlite3_finalize(row);
	if (rc != SQLITE_ROW)
		skep_database_explain(d->db, d->path, rc, reterr);
	else if (strcmp(found, "ok") != 0)
		skep_fail(reterr,
			"%s: the database is damaged and is left as it is (%s): copy what can be read with `sqlite3 %s "
			".recover | sqlite3 new.db`",
			d->path, found, d->path);
	return !reterr->set;
}

bool skep_runs_db_open(struct skep_runs_db *ret, const char *path, bool write, struct skep_diag *reterr)
{
	*ret = (struct skep_runs_db){skep_database_open(path, false, reterr), path};
	if (ret->db == NULL || !write)
		return ret->db != NULL;
	bool whole = is_whole(ret, reterr);
	skep_runs_db_close(ret);
	if (!whole)
		return false;
	ret->db = skep_database_open(path, true, reterr);
	if (ret->db == NULL)
		return false;
	if (skep_runs_db_do(ret, make_labels, reterr))
		return true;
	skep_runs_db_close(ret);
	return false;
}

void skep_runs_db_close(struct skep_runs_db *d)
{
	sqlite3_close(d->db);
	d->db = NULL;
}

bool skep_runs_db_do(const struct skep_runs_db *d, const char *sql, struct skep_diag *reterr)
{
	int rc = sqlite3_exec(d->db, sql, NULL, NULL, NULL);
	if (rc != SQLITE_OK)
		skep_database_explain(d->db, d->path, rc, reterr);
	return rc == SQLITE_OK;
}

bool skep_runs_db_ask(const struct skep_runs_db *d, const char *sql, int64_t number, const char *text, int64_t *ret,
	struct skep_diag *reterr)
{
	sqlite3_stmt *row = NULL;
	int rc = sqlite3_prepare_v2(d->db, sql, -1, &row, NULL);
	int wants = rc == SQLITE_OK ? sqlite3_bind_parameter_count(row) : 0;
	if (rc == SQLITE_OK && wants > 0)
		rc = sqlite3_bind_int64(row, 1, number);
	if (rc == SQLITE_OK && wants > 1)
		rc = sqlite3_bind_text(row, 2, text, -1, SQLITE_TRANSIENT);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(row);
	if (ret != NULL)
		*ret = rc == SQLITE_ROW ? sqlite3_column_int64(row, 0) : 0;
	sqlite3_finalize(row);
	if (rc == SQLITE_ROW || rc == SQLITE_DONE)
		return true;
	skep_database_explain(d->db, d->path, rc, reterr);
	return false;
}

bool skep_runs_db_has_labels(const struct skep_runs_db *d, bool *ret, struct skep_diag *reterr)
{
	int64_t count = 0;
	bool read = skep_runs_db_ask(
		d, "SELECT count(*) FROM sqlite_master WHERE name = 'labels'", 0, NULL, &count, reterr);
	*ret = count > 0;
	return read;
}

bool skep_runs_db_is_there(const struct skep_runs_db *d, int64_t run, struct skep_diag *reterr)
{
	int64_t count;
	if (!skep_runs_db_ask(d, "SELECT count(*) FROM runs WHERE id = ?1", run, NULL, &count, reterr))
		return false;
	return count > 0 || skep_fail(reterr, "%s: there is no run %" PRId64 "; `skep runs list` shows which there are",
				    d->path, run);
}
