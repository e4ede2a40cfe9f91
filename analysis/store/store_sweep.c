/* SPDX-License-Identifier: Apache-2.0
 *
 * store_sweep.c - see store_sweep.h.
 *
 * Measured against processes that write their own runs into the file: docs/database.md has figures. One writer needs no lock
 * to be waited for, works where the processes share no memory, and leaves nothing of a run that did not end.
 *
 * Decides what makes two combinations the same run: the scenario's text with all overrides and the seed in it, the bytes of
 * every file that it names, and the version of the code.
 *
 * Keeps true: an identity has at most one run; a sweep's row and all its combinations appear together; what a copy takes is
 * every table whose first column is `run`, whatever tables there are.
 */
#include "analysis/store/store_sweep.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "analysis/store/database.h"
#include "analysis/store/store_rows.h"
#include "core/hash.h"
#include "scenarios/read/sources.h"
#include "version.h"

#define PUT_TIMEOUT_MS 500

static bool explain(struct skep_store *store, int rc, struct skep_diag *reterr)
{
	skep_database_explain(store->db, store->path, rc, reterr);
	return false;
}

static int run_sql(struct skep_store *store, const char *sql)
{
	return sqlite3_exec(store->db, sql, NULL, NULL, NULL);
}

/* Ends the transaction; what an error was is still to be asked of the connection. */
static int settle(struct skep_store *store, int rc)
{
	if (rc == SQLITE_OK)
		rc = run_sql(store, "COMMIT");
	return rc;
}

static void roll_back(struct skep_store *store)
{
	if (!sqlite3_get_autocommit(store->db))
		run_sql(store, "ROLLBACK");
}

static const char *digits(uint64_t identity, char ret[17])
{
	snprintf(ret, 17, "%016" PRIx64, identity);
	return ret;
}

/* Runs a statement that gives at most one row; *ret, if there is one, is its first column. */
static int step_once(sqlite3_stmt *statement, int64_t *ret)
{
	int rc = sqlite3_step(statement);
	if (rc == SQLITE_ROW && ret != NULL)
		*ret = sqlite3_column_int64(statement, 0);
	if (rc == SQLITE_ROW)
		rc = sqlite3_step(statement);
	sqlite3_reset(statement);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* ---- a sweep ----------------------------------------------------------------------------------------------------- */

static uint64_t identity_of(const struct skep_sweep_words *words)
{
	const struct skep_vary *vary = words->vary;
	uint64_t hash = SKEP_HASH_EMPTY;
	for (uint32_t i = 0; i < vary->keys; i++) {
		hash = skep_hash_bytes(hash, vary->key[i].key, strlen(vary->key[i].key) + 1);
		for (uint32_t v = 0; v < vary->key[i].values; v++)
			hash = skep_hash_bytes(hash, vary->key[i].value[v], strlen(vary->key[i].value[v]) + 1);
		hash = skep_hash_word(hash, vary->key[i].values);
	}
	for (uint32_t i = 0; i < skep_vary_combinations(vary); i++)
		hash = skep_hash_word(hash, words->identity[i]);
	return hash ^ hash >> 29;
}

/* The number that `sql` finds for an identity; 0: none. */
static int find(struct skep_store *store, const char *sql, uint64_t identity, int64_t *ret)
{
	char text[17];
	sqlite3_stmt *row = NULL;
	int rc = sqlite3_prepare_v2(store->db, sql, -1, &row, NULL);
	*ret = 0;
	if (rc == SQLITE_OK) {
		sqlite3_bind_text(row, 1, digits(identity, text), -1, SQLITE_STATIC);
		rc = step_once(row, ret);
	}
	sqlite3_finalize(row);
	return rc;
}

static int put_sweep(
	struct skep_store *store, const struct skep_sweep_words *words, uint64_t identity, int64_t *ret_sweep)
{
	static const char sql[] = "INSERT INTO sweeps (scenario, path, version, started, identity, combinations)"
				  " VALUES (?, ?, ?, strftime('%Y-%m-%dT%H:%M:%SZ', 'now'), ?, ?)";
	char text[17];
	sqlite3_stmt *row = NULL;
	int rc = sqlite3_prepare_v2(store->db, sql, -1, &row, NULL);
	if (rc == SQLITE_OK) {
		sqlite3_bind_text(row, 1, words->scenario, -1, SQLITE_STATIC);
		sqlite3_bind_text(row, 2, words->path, -1, SQLITE_STATIC);
		sqlite3_bind_text(row, 3, SKEP_VERSION, -1, SQLITE_STATIC);
		sqlite3_bind_text(row, 4, digits(identity, text), -1, SQLITE_STATIC);
		sqlite3_bind_int64(row, 5, skep_vary_combinations(words->vary));
		rc = step_once(row, NULL);
	}
	sqlite3_finalize(row);
	*ret_sweep = sqlite3_last_insert_rowid(store->db);
	return rc;
}

static int put_keys(struct skep_store *store, const struct skep_vary *vary, int64_t sweep)
{
	sqlite3_stmt *row = NULL;
	int rc = sqlite3_prepare_v2(store->db, "INSERT INTO sweep_keys VALUES (?, ?, ?)", -1, &row, NULL);
	for (uint32_t i = 0; rc == SQLITE_OK && i < vary->keys; i++) {
		sqlite3_bind_int64(row, 1, sweep);
		sqlite3_bind_int64(row, 2, i);
		sqlite3_bind_text(row, 3, vary->key[i].key, -1, SQLITE_STATIC);
		rc = step_once(row, NULL);
	}
	sqlite3_finalize(row);
	return rc;
}

static int put_values(struct skep_store *store, const struct skep_vary *vary, int64_t sweep)
{
	sqlite3_stmt *row = NULL;
	int rc = sqlite3_prepare_v2(store->db, "INSERT INTO sweep_values VALUES (?, ?, ?, ?)", -1, &row, NULL);
	for (uint32_t point = 0; point < skep_vary_points(vary); point++)
		for (uint32_t i = 0; rc == SQLITE_OK && i < vary->keys; i++) {
			sqlite3_bind_int64(row, 1, sweep);
			sqlite3_bind_int64(row, 2, point);
			sqlite3_bind_int64(row, 3, i);
			sqlite3_bind_text(row, 4, skep_vary_value(vary, point, i), -1, SQLITE_STATIC);
			rc = step_once(row, NULL);
		}
	sqlite3_finalize(row);
	return rc;
}

static int put_combinations(struct skep_store *store, const struct skep_sweep_words *words, int64_t sweep)
{
	static const char sql[] = "INSERT INTO sweep_runs VALUES (?1, ?2, ?3, ?4, ?5,"
				  " (SELECT run FROM sweep_runs WHERE identity = ?5 AND run IS NOT NULL LIMIT 1))";
	uint32_t seeds = words->vary->seeds > 0 ? words->vary->seeds : 1;
	char text[17];
	sqlite3_stmt *row = NULL;
	int rc = sqlite3_prepare_v2(store->db, sql, -1, &row, NULL);
	for (uint32_t i = 0; rc == SQLITE_OK && i < skep_vary_combinations(words->vary); i++) {
		sqlite3_bind_int64(row, 1, sweep);
		sqlite3_bind_int64(row, 2, i);
		sqlite3_bind_int64(row, 3, i / seeds);
		sqlite3_bind_int64(row, 4, (int64_t)words->seed[i]);
		sqlite3_bind_text(row, 5, digits(words->identity[i], text), -1, SQLITE_STATIC);
		rc = step_once(row, NULL);
	}
	sqlite3_finalize(row);
	return rc;
}

static int read_runs(struct skep_store *store, int64_t sweep, uint32_t combinations, int64_t *ret_run)
{
	static const char sql[] = "SELECT number, run FROM sweep_runs WHERE sweep = ? AND run IS NOT NULL";
	sqlite3_stmt *row = NULL;
	int rc = sqlite3_prepare_v2(store->db, sql, -1, &row, NULL);
	memset(ret_run, 0, combinations * sizeof *ret_run);
	if (rc == SQLITE_OK)
		sqlite3_bind_int64(row, 1, sweep);
	while (rc == SQLITE_OK && (rc = sqlite3_step(row)) == SQLITE_ROW) {
		int64_t number = sqlite3_column_int64(row, 0);
		if (number >= 0 && number < combinations)
			ret_run[number] = sqlite3_column_int64(row, 1);
		rc = SQLITE_OK;
	}
	sqlite3_finalize(row);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int begin_sweep(
	struct skep_store *store, const struct skep_sweep_words *words, int64_t *ret_sweep, int64_t *ret_run)
{
	/* Runs may have been deleted by hand. */
	static const char forget[] = "UPDATE sweep_runs SET run = NULL"
				     " WHERE run IS NOT NULL AND NOT EXISTS (SELECT 1 FROM runs WHERE id = run)";
	uint64_t identity = identity_of(words);
	int rc = run_sql(store, "BEGIN IMMEDIATE");
	if (rc == SQLITE_OK)
		rc = run_sql(store, forget);
	if (rc == SQLITE_OK)
		rc = find(store, "SELECT id FROM sweeps WHERE identity = ?", identity, ret_sweep);
	if (rc == SQLITE_OK && *ret_sweep == 0) {
		rc = put_sweep(store, words, identity, ret_sweep);
		if (rc == SQLITE_OK)
			rc = put_keys(store, words->vary, *ret_sweep);
		if (rc == SQLITE_OK)
			rc = put_values(store, words->vary, *ret_sweep);
		if (rc == SQLITE_OK)
			rc = put_combinations(store, words, *ret_sweep);
	}
	if (rc == SQLITE_OK)
		rc = read_runs(store, *ret_sweep, skep_vary_combinations(words->vary), ret_run);
	return settle(store, rc);
}

bool skep_sweep_begin(struct skep_store *store, const struct skep_sweep_words *words, int64_t *ret_sweep,
	int64_t *ret_run, struct skep_diag *reterr)
{
	sqlite3_busy_timeout(store->db, SKEP_STORE_BEGIN_TIMEOUT_MS);
	int rc = begin_sweep(store, words, ret_sweep, ret_run);
	if (rc != SQLITE_OK)
		explain(store, rc, reterr);
	roll_back(store);
	return rc == SQLITE_OK;
}

/* ---- a run on its way -------------------------------------------------------------------------------------------- */

bool skep_sweep_image(struct skep_store *memory, void **ret_image, size_t *ret_bytes, struct skep_diag *reterr)
{
	sqlite3_int64 bytes = 0;
	*ret_image = sqlite3_serialize(memory->db, "main", &bytes, 0);
	*ret_bytes = (size_t)bytes;
	if (*ret_image == NULL)
		skep_fail(reterr, "no memory to hand over the run");
	return *ret_image != NULL;
}

void skep_sweep_image_free(void *image)
{
	sqlite3_free(image);
}

/* As the schema `image`, beside main; nothing is copied. */
static int attach(struct skep_store *store, const void *image, size_t bytes)
{
	int rc = run_sql(store, "ATTACH ':memory:' AS image");
	if (rc == SQLITE_OK) /* READONLY: the bytes are not written to */
		rc = sqlite3_deserialize(store->db, "image", (unsigned char *)(uintptr_t)image, (sqlite3_int64)bytes,
			(sqlite3_int64)bytes, SQLITE_DESERIALIZE_READONLY);
	return rc;
}

/* "a, b, c": the columns of a table but its first; ret_first: that one's name. */
static int list_columns(struct skep_store *store, const char *table, char *ret_first, size_t room, sqlite3_str *ret)
{
	sqlite3_stmt *row = NULL;
	int rc = sqlite3_prepare_v2(
		store->db, "SELECT name FROM pragma_table_info(?1, 'image') ORDER BY cid", -1, &row, NULL);
	ret_first[0] = '\0';
	if (rc == SQLITE_OK)
		sqlite3_bind_text(row, 1, table, -1, SQLITE_STATIC);
	while (rc == SQLITE_OK && (rc = sqlite3_step(row)) == SQLITE_ROW) {
		if (ret_first[0] == '\0')
			snprintf(ret_first, room, "%s", skep_column_text(row, 0));
		else
			sqlite3_str_appendf(
				ret, "%s\"%w\"", sqlite3_str_length(ret) > 0 ? ", " : "", skep_column_text(row, 0));
		rc = SQLITE_OK;
	}
	sqlite3_finalize(row);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* The rows of one table; those of `runs` get a new number, the others it as their run. */
static int copy_table(struct skep_store *store, const char *table, int64_t run)
{
	bool runs = strcmp(table, "runs") == 0;
	char first[64];
	sqlite3_str *text = sqlite3_str_new(store->db);
	int rc = list_columns(store, table, first, sizeof first, text);
	char *columns = sqlite3_str_finish(text), *sql = NULL;
	if (rc == SQLITE_OK && runs)
		sql = sqlite3_mprintf("INSERT INTO main.runs (%s) SELECT %s FROM image.runs", columns, columns);
	else if (rc == SQLITE_OK && strcmp(first, "run") == 0)
		sql = sqlite3_mprintf("INSERT INTO main.\"%w\" (run, %s) SELECT %lld, %s FROM image.\"%w\"", table,
			columns, (long long)run, columns, table);
	if (sql != NULL)
		rc = run_sql(store, sql);
	sqlite3_free(sql);
	sqlite3_free(columns);
	return rc;
}

static int copy_others(struct skep_store *store, int64_t run)
{
	static const char sql[] = "SELECT name FROM image.sqlite_master WHERE type = 'table' AND name <> 'runs'"
				  " AND name NOT LIKE 'sqlite%'";
	sqlite3_stmt *row = NULL;
	int rc = sqlite3_prepare_v2(store->db, sql, -1, &row, NULL);
	while (rc == SQLITE_OK && (rc = sqlite3_step(row)) == SQLITE_ROW)
		rc = copy_table(store, skep_column_text(row, 0), run);
	sqlite3_finalize(row);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int tell_sweeps(struct skep_store *store, uint64_t identity, int64_t run)
{
	char text[17];
	sqlite3_stmt *row = NULL;
	int rc = sqlite3_prepare_v2(store->db, "UPDATE sweep_runs SET run = ? WHERE identity = ?", -1, &row, NULL);
	if (rc == SQLITE_OK) {
		sqlite3_bind_int64(row, 1, run);
		sqlite3_bind_text(row, 2, digits(identity, text), -1, SQLITE_STATIC);
		rc = step_once(row, NULL);
	}
	sqlite3_finalize(row);
	return rc;
}

static int copy_run(struct skep_store *store, uint64_t identity, int64_t *ret_run)
{
	static const char sql[] = "SELECT run FROM sweep_runs WHERE identity = ? AND run IS NOT NULL LIMIT 1";
	/* IMMEDIATE would ask for the image too, which is read-only; a statement that writes, and changes nothing, asks for
	 * the file alone. */
	int rc = run_sql(store, "BEGIN; UPDATE main.sweep_runs SET run = NULL WHERE sweep = 0");
	if (rc == SQLITE_OK)
		rc = find(store, sql, identity, ret_run);
	if (rc == SQLITE_OK && *ret_run == 0) {
		rc = copy_table(store, "runs", 0);
		*ret_run = sqlite3_last_insert_rowid(store->db);
		if (rc == SQLITE_OK)
			rc = copy_others(store, *ret_run);
	}
	if (rc == SQLITE_OK)
		rc = tell_sweeps(store, identity, *ret_run);
	return settle(store, rc);
}

enum skep_sweep_put skep_sweep_put(struct skep_store *store, uint64_t identity, const void *image, size_t bytes,
	int64_t *ret_run, struct skep_diag *reterr)
{
	sqlite3_busy_timeout(store->db, PUT_TIMEOUT_MS);
	int rc = attach(store, image, bytes);
	if (rc == SQLITE_OK)
		rc = copy_run(store, identity, ret_run);
	if (rc != SQLITE_OK)
		explain(store, rc, reterr);
	roll_back(store);
	run_sql(store, "DETACH image");
	return rc == SQLITE_OK              ? SKEP_SWEEP_PUT_DONE
	       : (rc & 0xff) == SQLITE_BUSY ? SKEP_SWEEP_PUT_LOCKED
	                                    : SKEP_SWEEP_PUT_FAILED;
}

/* ---- identity ------------------------------------------------------------------------------------------------- */

uint64_t skep_sweep_identity(const struct skep_scenario *scenario)
{
	uint64_t hash = skep_hash_bytes(SKEP_HASH_EMPTY, scenario->text, strlen(scenario->text) + 1);
	const char *path;
	hash = skep_hash_word(hash, scenario->seed);
	hash = skep_hash_bytes(hash, SKEP_VERSION, sizeof SKEP_VERSION);
	for (uint32_t i = 0; (path = skep_scenario_source(scenario, i)) != NULL; i++) {
		struct skep_source source;
		skep_source_read(path, &source);
		hash = skep_hash_word(skep_hash_word(hash, source.bytes), source.checksum);
		skep_source_finish(&source);
	}
	return hash ^ hash >> 29;
}
