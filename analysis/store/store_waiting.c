/* SPDX-License-Identifier: Apache-2.0
 *
 * store_waiting.c - rows that wait in memory for the next transaction, and the first error that a store keeps.
 */
#include "analysis/store/store_rows.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/store/database.h"
#include "core/names.h"

void skep_store_fail(struct skep_store *store, const char *reason)
{
	skep_fail(&store->error, "%s", reason);
}

void skep_store_fail_sql(struct skep_store *store, int code)
{
	skep_database_explain(store->db, store->path, code, &store->error);
}

void skep_rows_append(struct skep_store *store, struct skep_rows *rows, const void *items, size_t count)
{
	if (store->error.set || count == 0)
		return;
	if (rows->count + count > rows->capacity) {
		size_t capacity = 2 * rows->capacity + count + 63;
		void *grown = realloc(rows->item, capacity * rows->item_size);
		if (grown == NULL) {
			skep_store_fail(store, "no memory to record the run");
			return;
		}
		rows->item = grown;
		rows->capacity = capacity;
	}
	memcpy((char *)rows->item + rows->count * rows->item_size, items, count * rows->item_size);
	rows->count += count;
}

void skep_rows_push(struct skep_store *store, struct skep_rows *rows, const void *item)
{
	skep_rows_append(store, rows, item, 1);
}

/* ---- rounds that are made again ----------------------------------------------------------------------------------- */

static bool round_is_undone(const void *item, uint32_t first)
{
	const struct skep_round_row *row = item;
	return row->round >= first;
}

static bool stage_is_undone(const void *item, uint32_t first)
{
	const struct skep_stage_row *row = item;
	return row->round >= first;
}

/* The one before the first round of these stands. */
static bool validation_is_undone(const void *item, uint32_t first)
{
	const struct skep_validation_row *row = item;
	return row->round > first;
}

/* Notes that the ledger is made of, and which candidates there were: of the others it stays true that they were made. */
static const uint8_t LEDGER[] = {SKEP_NOTE_ISSUED, SKEP_NOTE_RERUN, SKEP_NOTE_MEMBER, SKEP_NOTE_LOST, SKEP_NOTE_COUNTED,
	SKEP_NOTE_OUTER_UPDATED, SKEP_NOTE_CANDIDATE_LOSS, SKEP_NOTE_CANDIDATE_DROPPED, SKEP_NOTE_CANDIDATE_CHOSEN};

static bool note_is_undone(const void *item, uint32_t first)
{
	const struct skep_note_row *row = item;
	bool of_ledger = memchr(LEDGER, row->note.kind, sizeof LEDGER) != NULL;
	return of_ledger && row->note.round >= first;
}

static void drop(struct skep_rows *rows, bool (*undone)(const void *, uint32_t), uint32_t first)
{
	char *item = rows->item;
	size_t kept = 0;
	for (size_t i = 0; i < rows->count; i++)
		if (!undone(item + i * rows->item_size, first))
			memmove(item + kept++ * rows->item_size, item + i * rows->item_size, rows->item_size);
	rows->count = kept;
}

void skep_rows_undo(struct skep_store *store, uint32_t first)
{
	drop(&store->rounds, round_is_undone, first);
	drop(&store->stage_rounds, stage_is_undone, first);
	drop(&store->validations, validation_is_undone, first);
	drop(&store->notes, note_is_undone, first);
	store->undone = first < store->undone ? first : store->undone;
}

/* `kind` NULL: the statement asks for none. */
static int delete_undone(struct skep_store *store, const char *sql, const char *kind)
{
	sqlite3_stmt *statement = NULL;
	int rc = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);
	if (rc == SQLITE_OK) {
		sqlite3_bind_int64(statement, 1, store->run);
		sqlite3_bind_int64(statement, 2, store->undone);
		if (kind != NULL)
			sqlite3_bind_text(statement, 3, kind, -1, SQLITE_STATIC);
		rc = sqlite3_step(statement);
	}
	sqlite3_finalize(statement);
	return rc;
}

bool skep_store_put_undone(struct skep_store *store)
{
	static const char *const sql[] = {"DELETE FROM rounds WHERE run = ?1 AND round >= ?2",
		"DELETE FROM stage_rounds WHERE run = ?1 AND round >= ?2",
		"DELETE FROM validations WHERE run = ?1 AND round > ?2"};
	static const char notes[] = "DELETE FROM notes WHERE run = ?1 AND round >= ?2 AND kind = ?3";
	int rc = SQLITE_DONE;
	if (store->undone == UINT32_MAX)
		return true;
	for (size_t i = 0; i < sizeof sql / sizeof sql[0] && rc == SQLITE_DONE; i++)
		rc = delete_undone(store, sql[i], NULL);
	for (size_t i = 0; i < sizeof LEDGER && rc == SQLITE_DONE; i++)
		rc = delete_undone(store, notes, skep_note_name(LEDGER[i]));
	store->undone = UINT32_MAX;
	if (rc != SQLITE_DONE)
		skep_store_fail_sql(store, rc);
	return rc == SQLITE_DONE;
}
