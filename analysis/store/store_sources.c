/* SPDX-License-Identifier: Apache-2.0
 *
 * store_sources.c - see store_sources.h. A scenario's text alone repeats no run: a model or a topology under the same name may
 * have become another.
 */
#include "analysis/store/store_sources.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/store/database.h"
#include "analysis/store/store_rows.h"
#include "base/grow.h"
#include "scenarios/read/sources.h"

/* ---- in ---------------------------------------------------------------------------------------------------------- */

static bool put_source(struct skep_store *store, uint32_t number, const char *path)
{
	struct skep_source source;
	bool known = skep_source_read(path, &source);
	sqlite3_stmt *insert = store->statement[SKEP_INSERT_SOURCE];
	sqlite3_clear_bindings(insert); /* to NULL */
	sqlite3_bind_int64(insert, 1, store->run);
	sqlite3_bind_int64(insert, 2, number);
	sqlite3_bind_text(insert, 3, path, -1, SQLITE_STATIC);
	if (known) {
		sqlite3_bind_int64(insert, 4, (int64_t)source.bytes);
		sqlite3_bind_int64(insert, 5, (int64_t)source.checksum);
	}
	if (source.text)
		sqlite3_bind_text(insert, 6, source.text, (int)source.bytes, SQLITE_STATIC);
	int rc = sqlite3_step(insert);
	if (rc != SQLITE_DONE)
		skep_store_fail_sql(store, rc);
	sqlite3_reset(insert);
	skep_source_finish(&source);
	return rc == SQLITE_DONE;
}

bool skep_store_put_sources(struct skep_store *store, const struct skep_scenario *scenario)
{
	const char *path;
	bool ok = true;
	for (uint32_t i = 0; ok && (path = skep_scenario_source(scenario, i)) != NULL; i++)
		ok = put_source(store, i, path);
	return ok;
}

/* ---- out --------------------------------------------------------------------------------------------------------- */

static bool add_row(struct skep_run_sources *sources, sqlite3_stmt *row)
{
	char *path = strdup(skep_column_text(row, 0));
	if (path == NULL || !skep_grow(&sources->row, sources->count, sizeof *sources->row)) {
		free(path);
		return false;
	}
	sources->row[sources->count++] = (struct skep_source_row){.path = path,
		.known = sqlite3_column_type(row, 2) != SQLITE_NULL,
		.bytes = sqlite3_column_int64(row, 1),
		.checksum = sqlite3_column_int64(row, 2)};
	return true;
}

bool skep_run_sources_read(
	struct skep_store *store, int64_t run, struct skep_run_sources *ret, struct skep_diag *reterr)
{
	*ret = (struct skep_run_sources){0};
	sqlite3_stmt *row = skep_store_query(
		store, "SELECT path, bytes, checksum FROM sources WHERE run = ?1 ORDER BY number", run, 0, reterr);
	int rc = SQLITE_NOMEM;
	while (row != NULL && (rc = sqlite3_step(row)) == SQLITE_ROW)
		if (!add_row(ret, row))
			break;
	sqlite3_finalize(row);
	if (row != NULL && rc != SQLITE_DONE)
		skep_fail(reterr, "the files of run %lld cannot be read: %s", (long long)run,
			rc == SQLITE_ROW ? "no memory" : sqlite3_errstr(rc));
	if (rc != SQLITE_DONE)
		skep_run_sources_finish(ret);
	return rc == SQLITE_DONE;
}

void skep_run_sources_finish(struct skep_run_sources *sources)
{
	for (uint32_t i = 0; i < sources->count; i++)
		free(sources->row[i].path);
	free(sources->row);
	*sources = (struct skep_run_sources){0};
}

/* ---- then and now ------------------------------------------------------------------------------------------------ */

static bool same(const struct skep_source_row *row, const struct skep_source *now)
{
	return row->bytes == (int64_t)now->bytes && row->checksum == (int64_t)now->checksum;
}

const char *skep_run_sources_changed(const struct skep_run_sources *sources, const struct skep_scenario *scenario)
{
	for (uint32_t i = 0; i < sources->count; i++) {
		const struct skep_source_row *row = &sources->row[i];
		const char *path = scenario ? skep_scenario_source(scenario, i) : row->path;
		struct skep_source now = {0};
		bool there = path != NULL && skep_source_read(path, &now);
		bool differs = row->known && (there ? !same(row, &now) : scenario != NULL);
		skep_source_finish(&now);
		if (differs)
			return path ? path : row->path;
	}
	return NULL;
}
