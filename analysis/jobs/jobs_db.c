/* SPDX-License-Identifier: Apache-2.0
 *
 * jobs_db.c - writes what `skep jobs` has found: see jobs_db.h.
 */
#include "analysis/jobs/jobs_db.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/store/database.h"
#include "version.h"

static const char *const TABLES[] = {
#include "jobs.sql.inc"
};

struct skep_jobs_db {
	sqlite3 *db;
	char path[512];
	int64_t comparison; /* 0: nothing was put yet */
};

static int run_sql(struct skep_jobs_db *d, const char *sql)
{
	return sqlite3_exec(d->db, sql, NULL, NULL, NULL);
}

static int make_tables(struct skep_jobs_db *d)
{
	sqlite3_str *text = sqlite3_str_new(d->db);
	for (size_t i = 0; i < sizeof TABLES / sizeof TABLES[0]; i++)
		sqlite3_str_appendall(text, TABLES[i]);
	char *sql = sqlite3_str_finish(text);
	int rc = sql ? run_sql(d, sql) : SQLITE_NOMEM;
	sqlite3_free(sql);
	return rc;
}

struct skep_jobs_db *skep_jobs_db_open(const char *path, struct skep_diag *reterr)
{
	struct skep_jobs_db *d = calloc(1, sizeof *d);
	if (!d) {
		skep_fail(reterr, "not enough memory for the database");
		return NULL;
	}
	snprintf(d->path, sizeof d->path, "%s", path);
	d->db = skep_database_open(path, true, reterr);
	int rc = d->db ? run_sql(d, "BEGIN IMMEDIATE") : SQLITE_OK;
	if (d->db && rc == SQLITE_OK)
		rc = make_tables(d);
	if (d->db && rc == SQLITE_OK)
		return d;
	if (d->db)
		skep_database_explain(d->db, d->path, rc, reterr);
	sqlite3_close(d->db);
	free(d);
	return NULL;
}

/* ---- rows ------------------------------------------------------------------------------------------------------------ */

static void bind_real(sqlite3_stmt *row, int *at, double value)
{
	(*at)++;
	if (isfinite(value))
		sqlite3_bind_double(row, *at, value);
	else
		sqlite3_bind_null(row, *at);
}

static void bind_count(sqlite3_stmt *row, int *at, uint64_t value)
{
	sqlite3_bind_int64(row, ++*at, (int64_t)value);
}

static void bind_text(sqlite3_stmt *row, int *at, const char *text)
{
	sqlite3_bind_text(row, ++*at, text, -1, SQLITE_STATIC);
}

static int step(sqlite3_stmt *row)
{
	int rc = sqlite3_step(row);
	sqlite3_reset(row);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int put_run(struct skep_jobs_db *d, const struct skep_jobs_kept *k, int64_t *ret_run)
{
	static const char sql[] =
		"INSERT INTO cluster_runs VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, strftime('%Y-%m-%dT%H:%M:%SZ', 'now'), ?, ?, ?, ?,"
		" ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
	sqlite3_stmt *row = NULL;
	int at = 0, rc = sqlite3_prepare_v2(d->db, sql, -1, &row, NULL);
	if (rc == SQLITE_OK) {
		bind_count(row, &at, (uint64_t)d->comparison);
		bind_text(row, &at, k->name);
		bind_text(row, &at, k->path);
		bind_text(row, &at, k->text);
		bind_text(row, &at, k->policy);
		bind_count(row, &at, k->seed);
		bind_text(row, &at, SKEP_VERSION);
		bind_text(row, &at, k->topology);
		bind_count(row, &at, k->machines);
		bind_count(row, &at, k->hosts);
		bind_count(row, &at, k->jobs);
		for (uint32_t i = 0; i < SKEP_JOBS_FIGURES; i++)
			bind_real(row, &at, k->figure[i]);
		bind_count(row, &at, k->preemptions);
		bind_count(row, &at, k->resizes);
		rc = step(row);
	}
	sqlite3_finalize(row);
	*ret_run = sqlite3_last_insert_rowid(d->db);
	if (rc == SQLITE_OK && d->comparison == 0) {
		d->comparison = *ret_run;
		rc = run_sql(d, "UPDATE cluster_runs SET comparison = id WHERE comparison = 0");
	}
	return rc;
}

static int put_jobs(struct skep_jobs_db *d, const struct skep_jobs_kept *k, int64_t run)
{
	sqlite3_stmt *row = NULL;
	int rc = sqlite3_prepare_v2(
		d->db, "INSERT INTO cluster_jobs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", -1, &row, NULL);
	for (uint32_t i = 0; rc == SQLITE_OK && i < k->jobs; i++) {
		const struct skep_jobs_kept_job *j = &k->job[i];
		const double times[] = {j->arrival_s, j->start_s, j->end_s, j->alone_s, j->fair_s, j->machine_s,
			j->restart_machine_s, j->usd};
		int at = 0;
		bind_count(row, &at, (uint64_t)run);
		bind_count(row, &at, i);
		bind_text(row, &at, j->name);
		bind_count(row, &at, j->machines);
		for (size_t t = 0; t < sizeof times / sizeof times[0]; t++)
			bind_real(row, &at, times[t]);
		bind_count(row, &at, j->preemptions);
		bind_count(row, &at, j->resizes);
		rc = step(row);
	}
	sqlite3_finalize(row);
	return rc;
}

static int put_spans(struct skep_jobs_db *d, const struct skep_jobs_kept *k, int64_t run)
{
	sqlite3_stmt *row = NULL;
	int rc = sqlite3_prepare_v2(d->db, "INSERT INTO cluster_spans VALUES (?, ?, ?, ?, ?)", -1, &row, NULL);
	for (uint32_t i = 0; rc == SQLITE_OK && i < k->spans; i++) {
		int at = 0;
		bind_count(row, &at, (uint64_t)run);
		bind_count(row, &at, k->span[i].job);
		bind_real(row, &at, k->span[i].begin_s);
		bind_real(row, &at, k->span[i].end_s);
		bind_count(row, &at, k->span[i].machines);
		rc = step(row);
	}
	sqlite3_finalize(row);
	return rc;
}

bool skep_jobs_db_put(struct skep_jobs_db *d, const struct skep_jobs_kept *kept, struct skep_diag *reterr)
{
	int64_t run = 0;
	int rc = put_run(d, kept, &run);
	if (rc == SQLITE_OK)
		rc = put_jobs(d, kept, run);
	if (rc == SQLITE_OK)
		rc = put_spans(d, kept, run);
	if (rc != SQLITE_OK)
		skep_database_explain(d->db, d->path, rc, reterr);
	return rc == SQLITE_OK;
}

bool skep_jobs_db_close(struct skep_jobs_db *d, bool keep, int64_t *ret_comparison, struct skep_diag *reterr)
{
	int rc = run_sql(d, keep ? "COMMIT" : "ROLLBACK");
	if (rc != SQLITE_OK && keep)
		skep_database_explain(d->db, d->path, rc, reterr);
	*ret_comparison = d->comparison;
	sqlite3_close(d->db);
	free(d);
	return rc == SQLITE_OK;
}
