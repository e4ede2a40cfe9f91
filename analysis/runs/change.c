/* SPDX-License-Identifier: Apache-2.0
 *
 * change.c - names, tags, and runs that are removed or made small. Each change is one transaction.
 */
#include "analysis/runs/runs_db.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

static bool close_transaction(const struct skep_runs_db *d, bool ok, struct skep_diag *reterr)
{
	struct skep_diag unused = {0};
	if (ok)
		ok = skep_runs_db_do(d, "COMMIT", reterr);
	if (!ok && sqlite3_get_autocommit(d->db) == 0)
		skep_runs_db_do(d, "ROLLBACK", &unused);
	return ok;
}

/* ---- labels ----------------------------------------------------------------------------------------------------------- */

static bool is_free(const struct skep_runs_db *d, int64_t run, const char *name, struct skep_diag *reterr)
{
	int64_t other;
	if (!skep_runs_db_ask(d, "SELECT run FROM labels WHERE kind = 'name' AND label = ?2 AND run <> ?1", run, name,
		    &other, reterr))
		return false;
	return other == 0 ||
	       skep_fail(reterr,
		       "run %" PRId64 " has the name %s already: take another, or `skep runs name %" PRId64
		       " --remove` first",
		       other, name, other);
}

static bool set_name(const struct skep_runs_db *d, int64_t run, const char *name, struct skep_diag *reterr)
{
	return (name == NULL || is_free(d, run, name, reterr)) &&
	       skep_runs_db_ask(d, "DELETE FROM labels WHERE kind = 'name' AND run = ?1", run, NULL, NULL, reterr) &&
	       (name == NULL ||
		       skep_runs_db_ask(d, "INSERT INTO labels SELECT ?1, 'name', ?2", run, name, NULL, reterr));
}

bool skep_runs_name(const char *db, int64_t run, const char *name, struct skep_diag *reterr)
{
	struct skep_runs_db d;
	assert(name == NULL || skep_label_ok(name));
	if (!skep_runs_db_open(&d, db, true, reterr))
		return false;
	bool ok = skep_runs_db_do(&d, "BEGIN IMMEDIATE", reterr) && skep_runs_db_is_there(&d, run, reterr) &&
	          set_name(&d, run, name, reterr);
	ok = close_transaction(&d, ok, reterr);
	skep_runs_db_close(&d);
	return ok;
}

bool skep_runs_tag(const char *db, int64_t run, const char *tag, bool remove, struct skep_diag *reterr)
{
	static const char add[] = "INSERT OR IGNORE INTO labels SELECT ?1, 'tag', ?2";
	static const char drop[] = "DELETE FROM labels WHERE kind = 'tag' AND run = ?1 AND label = ?2";
	struct skep_runs_db d;
	assert(skep_label_ok(tag));
	if (!skep_runs_db_open(&d, db, true, reterr))
		return false;
	bool ok = skep_runs_db_do(&d, "BEGIN IMMEDIATE", reterr) && skep_runs_db_is_there(&d, run, reterr) &&
	          skep_runs_db_ask(&d, remove ? drop : add, run, tag, NULL, reterr);
	if (ok && remove && sqlite3_changes(d.db) == 0)
		ok = skep_fail(reterr, "run %" PRId64 " has no tag %s", run, tag);
	ok = close_transaction(&d, ok, reterr);
	skep_runs_db_close(&d);
	return ok;
}

/* ---- whole runs ------------------------------------------------------------------------------------------------------- */

#define TABLES_MAX 64u

struct tables { /* that have rows of a run */
	char name[TABLES_MAX][64];
	uint32_t count;
};

static bool read_tables(const struct skep_runs_db *d, struct tables *ret, struct skep_diag *reterr)
{
	static const char sql[] =
		"SELECT m.name FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS c ON c.name = 'run'"
		" WHERE m.type = 'table' AND m.name <> 'sweep_runs'";
	sqlite3_stmt *row = NULL;
	int rc = sqlite3_prepare_v2(d->db, sql, -1, &row, NULL);
	ret->count = 0;
	while (rc == SQLITE_OK && (rc = sqlite3_step(row)) == SQLITE_ROW && ret->count < TABLES_MAX) {
		snprintf(ret->name[ret->count++], sizeof ret->name[0], "%s", skep_column_text(row, 0));
		rc = SQLITE_OK;
	}
	sqlite3_finalize(row);
	if (rc != SQLITE_DONE)
		skep_database_explain(d->db, d->path, rc, reterr);
	return rc == SQLITE_DONE;
}

static bool remove_one(const struct skep_runs_db *d, const struct tables *tables, int64_t run, struct skep_diag *reterr)
{
	int64_t running;
	char sql[200]; /* a name of 63 bytes, each of which may be a quote and is doubled then */
	if (!skep_runs_db_is_there(d, run, reterr) ||
		!skep_runs_db_ask(d, "SELECT count(*) FROM runs WHERE id = ?1 AND status = 'running'", run, NULL,
			&running, reterr))
		return false;
	if (running > 0)
		return skep_fail(reterr, "run %" PRId64 " is still running: end it first", run);
	for (uint32_t i = 0; i < tables->count; i++) {
		sqlite3_snprintf((int)sizeof sql, sql, "DELETE FROM \"%w\" WHERE run = ?1", tables->name[i]);
		if (!skep_runs_db_ask(d, sql, run, NULL, NULL, reterr))
			return false;
	}
	return skep_runs_db_ask(d, "UPDATE sweep_runs SET run = NULL WHERE run = ?1", run, NULL, NULL, reterr) &&
	       skep_runs_db_ask(d, "UPDATE runs SET continues = NULL WHERE continues = ?1", run, NULL, NULL, reterr) &&
	       skep_runs_db_ask(d, "DELETE FROM runs WHERE id = ?1", run, NULL, NULL, reterr);
}

bool skep_runs_remove(const char *db, const int64_t *run, uint32_t runs, struct skep_diag *reterr)
{
	struct skep_runs_db d;
	struct tables tables;
	if (!skep_runs_db_open(&d, db, true, reterr))
		return false;
	bool ok = skep_runs_db_do(&d, "BEGIN IMMEDIATE", reterr) && read_tables(&d, &tables, reterr);
	for (uint32_t i = 0; ok && i < runs; i++)
		ok = remove_one(&d, &tables, run[i], reterr);
	ok = close_transaction(&d, ok, reterr);
	skep_runs_db_close(&d);
	return ok;
}

/* ---- detail ----------------------------------------------------------------------------------------------------------- */

/* Of each run that has ended, is not one of the newest ?1, and has no label. */
#define OLD                                                                                                                \
	" IN (SELECT id FROM runs WHERE status <> 'running' AND id NOT IN (SELECT id FROM runs ORDER BY id DESC LIMIT ?1)" \
	" AND id NOT IN (SELECT run FROM labels))"
/* Notes on single microbatches, and those that count them (store_rows.c: capped). */
#define DETAIL " kind IN ('issued', 'rerun', 'member', 'outer_updated', 'counted', 'overflow')"

static bool count(const struct skep_runs_db *d, int64_t keep, struct skep_collected *ret, struct skep_diag *reterr)
{
	static const char *const sql[] = {
		"SELECT count(*) FROM ops WHERE run" OLD,
		"SELECT count(*) FROM notes WHERE run" OLD " AND" DETAIL,
		"SELECT count(*) FROM event_log WHERE run" OLD,
		"SELECT count(*) FROM runs WHERE id" OLD
		" AND (EXISTS (SELECT 1 FROM ops WHERE run = id) OR EXISTS (SELECT 1"
		" FROM event_log WHERE run = id) OR EXISTS (SELECT 1 FROM notes WHERE run = id AND" DETAIL "))",
	};
	int64_t number[4] = {0};
	for (int i = 0; i < 4; i++)
		if (!skep_runs_db_ask(d, sql[i], keep, NULL, &number[i], reterr))
			return false;
	ret->ops = (uint64_t)number[0];
	ret->notes = (uint64_t)number[1];
	ret->logs = (uint64_t)number[2];
	ret->runs = (uint32_t)number[3];
	return true;
}

/* What is dropped counts as dropped, so that the rest is not taken for all. */
static bool drop(const struct skep_runs_db *d, int64_t keep, struct skep_diag *reterr)
{
	static const char *const sql[] = {
		"UPDATE runs SET ops_dropped = coalesce(ops_dropped, 0) + (SELECT count(*) FROM ops WHERE run = id),"
		" notes_dropped = coalesce(notes_dropped, 0) + (SELECT count(*) FROM notes WHERE run = id AND" DETAIL
		") WHERE id" OLD,
		"DELETE FROM ops WHERE run" OLD,
		"DELETE FROM notes WHERE run" OLD " AND" DETAIL,
		"DELETE FROM event_log WHERE run" OLD,
	};
	bool ok = skep_runs_db_do(d, "BEGIN IMMEDIATE", reterr);
	for (size_t i = 0; ok && i < sizeof sql / sizeof *sql; i++)
		ok = skep_runs_db_ask(d, sql[i], keep, NULL, NULL, reterr);
	return close_transaction(d, ok, reterr);
}

static uint64_t bytes_of(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

bool skep_runs_collect(
	const char *db, uint32_t keep, bool pretend, struct skep_collected *ret, struct skep_diag *reterr)
{
	struct skep_runs_db d;
	*ret = (struct skep_collected){.bytes_before = bytes_of(db)};
	if (!skep_runs_db_open(&d, db, true, reterr))
		return false;
	bool ok = count(&d, keep, ret, reterr);
	if (ok && !pretend)
		ok = drop(&d, keep, reterr) && skep_runs_db_do(&d, "VACUUM", reterr) &&
		     skep_runs_db_do(&d, "PRAGMA wal_checkpoint(TRUNCATE)", reterr);
	skep_runs_db_close(&d);
	ret->bytes_after = bytes_of(db);
	return ok;
}
