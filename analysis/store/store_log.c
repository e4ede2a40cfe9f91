/* SPDX-License-Identifier: Apache-2.0
 *
 * store_log.c - event logs on their way into the database and out of it. What they say is for exec/loop/log.h to know; here they
 * are bytes, in parts that carry a checksum. Reading takes parts that are all there, in order and as written, or none.
 */
#include "analysis/store/store_log.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/store/database.h"
#include "analysis/store/store_rows.h"
#include "core/hash.h"

#define MACHINES_MAX (1 << 24)

static int64_t checksum(const uint8_t *bytes, size_t count)
{
	return (int64_t)skep_hash_bytes(SKEP_HASH_EMPTY, bytes, count);
}

/* ---- in ---------------------------------------------------------------------------------------------------------- */

static bool put_part(struct skep_store *store, const struct skep_log_row *row)
{
	const uint8_t *bytes = (const uint8_t *)store->log_bytes.item + row->first;
	sqlite3_stmt *insert = store->statement[SKEP_INSERT_LOG];
	sqlite3_bind_int64(insert, 1, store->run);
	sqlite3_bind_int64(insert, 2, row->worker);
	sqlite3_bind_int64(insert, 3, row->part);
	sqlite3_bind_int64(insert, 4, checksum(bytes, row->count));
	sqlite3_bind_blob64(insert, 5, bytes, row->count, SQLITE_STATIC);
	int rc = sqlite3_step(insert);
	if (rc != SQLITE_DONE)
		skep_store_fail_sql(store, rc);
	sqlite3_reset(insert);
	return rc == SQLITE_DONE;
}

bool skep_store_put_logs(struct skep_store *store)
{
	const struct skep_log_row *row = store->logs.item;
	bool ok = true;
	for (size_t i = 0; ok && i < store->logs.count; i++)
		ok = put_part(store, &row[i]);
	store->logs.count = store->log_bytes.count = 0;
	return ok;
}

/* ---- out --------------------------------------------------------------------------------------------------------- */

static bool read_run(struct skep_store *store, int64_t run, struct skep_run_log *ret, struct skep_diag *reterr)
{
	sqlite3_stmt *row = skep_store_query(store,
		"SELECT world, workers, path, text, first_round, shape, pace FROM runs WHERE id = ?1", run, 0, reterr);
	bool ok = false;
	if (row == NULL)
		return false;
	if (!skep_store_row(store, row)) {
		skep_fail(reterr,
			"there is no run %" PRId64 " in this database; `skep runs list` shows which there are", run);
	} else if (strcmp(skep_column_text(row, 0), "real") != 0) {
		skep_fail(reterr,
			"run %" PRId64 " was simulated and has no log: name a real one, which `skep runs list` shows",
			run);
	} else if (sqlite3_column_int64(row, 1) < 1 || sqlite3_column_int64(row, 1) > MACHINES_MAX ||
		   sqlite3_column_int64(row, 4) < 0 || sqlite3_column_int64(row, 4) > UINT32_MAX) {
		skep_fail(reterr, "the row of run %" PRId64 " is damaged", run);
	} else {
		ret->machines = (uint32_t)sqlite3_column_int64(row, 1) + 1;
		ret->first_round = (uint32_t)sqlite3_column_int64(row, 4);
		ret->shaped = sqlite3_column_int(row, 5) != 0;
		ret->paced = sqlite3_column_int(row, 6) != 0;
		ret->path = strdup(skep_column_text(row, 2));
		ret->text = strdup(skep_column_text(row, 3));
		ret->machine = calloc(ret->machines, sizeof *ret->machine);
		ok = ret->path != NULL && ret->text != NULL && ret->machine != NULL;
		if (!ok)
			skep_fail(reterr, "no memory for the log of run %" PRId64, run);
	}
	sqlite3_finalize(row);
	return ok;
}

/* How each machine ended; of a run that died nothing is known. */
static bool read_ends(struct skep_store *store, int64_t run, struct skep_run_log *log, struct skep_diag *reterr)
{
	sqlite3_stmt *row = skep_store_query(store,
		"SELECT worker, events, digest FROM workers WHERE run = ?1 AND events NOT NULL AND digest NOT NULL",
		run, 0, reterr);
	if (row == NULL)
		return false;
	while (skep_store_row(store, row)) {
		int64_t worker = sqlite3_column_int64(row, 0);
		if (worker < 0 || worker >= log->machines)
			continue;
		struct skep_machine_log *machine = &log->machine[worker];
		machine->ended = true;
		machine->events = (uint64_t)sqlite3_column_int64(row, 1);
		machine->digest = strtoull(skep_column_text(row, 2), NULL, 16);
	}
	sqlite3_finalize(row);
	return true;
}

struct reading {
	struct skep_run_log *log;
	uint32_t worker, part; /* what has to come next */
};

static bool add_part(struct reading *reading, sqlite3_stmt *row)
{
	int64_t worker = sqlite3_column_int64(row, 0), part = sqlite3_column_int64(row, 1);
	const uint8_t *bytes = sqlite3_column_blob(row, 3);
	size_t count = (size_t)sqlite3_column_bytes(row, 3);
	if (worker < 0 || worker >= reading->log->machines)
		return false;
	if (worker != reading->worker)
		reading->part = 0;
	reading->worker = (uint32_t)worker;
	if (part != reading->part++ || bytes == NULL || sqlite3_column_int64(row, 2) != checksum(bytes, count))
		return false;
	struct skep_machine_log *machine = &reading->log->machine[worker];
	uint8_t *all = realloc((uint8_t *)machine->bytes, machine->count + count);
	if (all == NULL)
		return false;
	memcpy(all + machine->count, bytes, count);
	machine->bytes = all;
	machine->count += count;
	return true;
}

static bool read_parts(struct skep_store *store, int64_t run, struct skep_run_log *log, struct skep_diag *reterr)
{
	sqlite3_stmt *row = skep_store_query(store,
		"SELECT worker, part, checksum, bytes FROM event_log WHERE run = ?1 ORDER BY worker, part", run, 0,
		reterr);
	struct reading reading = {.log = log};
	uint64_t parts = 0;
	bool ok = row != NULL;
	int rc = SQLITE_DONE;
	while (ok && (rc = sqlite3_step(row)) == SQLITE_ROW) {
		ok = add_part(&reading, row);
		parts++;
		if (!ok)
			skep_fail(reterr, "the log of run %" PRId64 " is damaged: part %" PRId64 " of machine %" PRId64,
				run, (int64_t)sqlite3_column_int64(row, 1), (int64_t)sqlite3_column_int64(row, 0));
	}
	sqlite3_finalize(row);
	if (ok && rc != SQLITE_DONE)
		skep_fail(reterr, "the log of run %" PRId64 " cannot be read: %s", run, sqlite3_errstr(rc));
	else if (ok && parts == 0)
		skep_fail(reterr, "run %" PRId64 " has no log: it did not get so far", run);
	return ok && rc == SQLITE_DONE && parts > 0;
}

bool skep_run_log_read(struct skep_store *store, int64_t run, struct skep_run_log *ret, struct skep_diag *reterr)
{
	*ret = (struct skep_run_log){0};
	bool read = read_run(store, run, ret, reterr) && read_ends(store, run, ret, reterr) &&
	            skep_run_sources_read(store, run, &ret->sources, reterr) && read_parts(store, run, ret, reterr);
	if (skep_store_read_all(store, reterr) && read)
		return true;
	skep_run_log_finish(ret);
	return false;
}

void skep_run_log_finish(struct skep_run_log *log)
{
	for (uint32_t i = 0; log->machine != NULL && i < log->machines; i++)
		free((uint8_t *)log->machine[i].bytes);
	skep_run_sources_finish(&log->sources);
	free(log->machine);
	free(log->path);
	free(log->text);
	*log = (struct skep_run_log){0};
}
