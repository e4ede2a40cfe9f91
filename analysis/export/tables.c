/* SPDX-License-Identifier: Apache-2.0
 *
 * tables.c - tables as CSV (RFC 4180). Numbers have as many digits as give back the same double.
 */
#include <math.h>
#include <string.h>

#include "analysis/export/export.h"
#include "analysis/store/database.h"

/* Of a run all but its text and pid. The seed is an unsigned number. */
#define RUN_COLUMNS                                                                                                            \
	"id, scenario, path, world, device, pace, shape, printf('%llu', seed) AS seed, version, host, started, status, model," \
	" topology, arithmetic, number_format, workers, stages, vstages, rounds_planned, microbatches,"                        \
	" samples_per_microbatch, target_loss, first_round, continues, kept_as, digest, steps, samples, tokens, time_s,"       \
	" throughput_samples_per_s, utilisation, passes_s, reduction_s, bytes_pipeline, bytes_sync, issued, counted, lost,"    \
	" preemptions, joins, migrations, final_loss, final_validation_loss, time_to_target_s, cost_to_target_usd, cost_usd,"  \
	" egress_usd, events, wall_s, ops_dropped, notes_dropped, activity_bin_s, expert_imbalance,"                           \
	" expert_dropped, expert_balance, damaged, extrapolated"

/* Databases of older programs have no table of them. */
#define NAMES                                                                                                          \
	", (SELECT label FROM labels WHERE run = id AND kind = 'name') AS name, (SELECT group_concat(label, ' ') FROM" \
	" (SELECT label FROM labels WHERE run = id AND kind = 'tag' ORDER BY label)) AS tags"
#define NO_NAMES ", NULL AS name, NULL AS tags"
#define OF_RUNS " FROM runs WHERE ?1 = 0 OR id = ?1 ORDER BY id"

static const char *const SQL[] = {
	[SKEP_EXPORT_RUNS] = "SELECT " RUN_COLUMNS NAMES OF_RUNS,
	[SKEP_EXPORT_ROUNDS] =
		"SELECT run, round, opened_s, closed_s, issued, loss, staleness, local_staleness, cost_usd, bytes_pipeline,"
		" bytes_sync FROM rounds WHERE ?1 = 0 OR run = ?1 ORDER BY run, round",
};

static void write_text(FILE *out, const char *text)
{
	if (text[strcspn(text, ",\"\r\n")] == '\0') {
		fputs(text, out);
		return;
	}
	fputc('"', out);
	for (const char *c = text; *c; c++) {
		if (*c == '"')
			fputc('"', out);
		fputc(*c, out);
	}
	fputc('"', out);
}

/* pandas and R read inf and nan in these words. */
static void write_cell(FILE *out, sqlite3_stmt *row, int column)
{
	int type = sqlite3_column_type(row, column);
	double value = sqlite3_column_double(row, column);
	if (type == SQLITE_FLOAT && isinf(value))
		fputs(value > 0 ? "inf" : "-inf", out);
	else if (type == SQLITE_FLOAT)
		fprintf(out, "%.17g", value);
	else if (type != SQLITE_NULL)
		write_text(out, skep_column_text(row, column));
}

static void write_header(FILE *out, sqlite3_stmt *row)
{
	for (int i = 0; i < sqlite3_column_count(row); i++)
		fprintf(out, "%s%s", i > 0 ? "," : "", sqlite3_column_name(row, i));
	fputs("\n", out);
}

static bool is_there(struct skep_store *store, int64_t run, struct skep_diag *reterr)
{
	sqlite3_stmt *row = skep_store_query(store, "SELECT 1 FROM runs WHERE id = ?1", run, 0, reterr);
	bool there = row != NULL && skep_store_row(store, row);
	if (row != NULL && !there)
		skep_fail(reterr, "there is no run %lld in the database; `skep runs list` shows which there are",
			(long long)run);
	sqlite3_finalize(row);
	return there;
}

/* NULL: it cannot be read. */
static const char *sql_of(struct skep_store *store, enum skep_export_table table, struct skep_diag *reterr)
{
	sqlite3_stmt *row = skep_store_query(store, "SELECT 1 FROM sqlite_master WHERE name = 'labels'", 0, 0, reterr);
	if (row == NULL)
		return NULL;
	bool labels = skep_store_row(store, row);
	sqlite3_finalize(row);
	return table == SKEP_EXPORT_RUNS && !labels ? "SELECT " RUN_COLUMNS NO_NAMES OF_RUNS : SQL[table];
}

bool skep_export_csv(struct skep_store *store, enum skep_export_table table, const int64_t *run, uint32_t runs,
	FILE *out, struct skep_diag *reterr)
{
	for (uint32_t i = 0; i < runs; i++)
		if (!is_there(store, run[i], reterr))
			return false;
	const char *sql = sql_of(store, table, reterr);
	for (uint32_t i = 0; sql != NULL && i < (runs > 0 ? runs : 1); i++) {
		sqlite3_stmt *row = skep_store_query(store, sql, runs > 0 ? run[i] : 0, 0, reterr);
		if (row == NULL)
			return false;
		if (i == 0)
			write_header(out, row);
		while (skep_store_row(store, row)) {
			for (int column = 0; column < sqlite3_column_count(row); column++) {
				fputs(column > 0 ? "," : "", out);
				write_cell(out, row, column);
			}
			fputs("\n", out);
		}
		sqlite3_finalize(row);
	}
	return sql != NULL && skep_store_read_all(store, reterr);
}

bool skep_export_scenario(struct skep_store *store, int64_t run, FILE *out, struct skep_diag *reterr)
{
	static const char sql[] =
		"SELECT text FROM runs WHERE id = CASE ?1 WHEN 0 THEN (SELECT max(id) FROM runs) ELSE ?1 END";
	sqlite3_stmt *row = skep_store_query(store, sql, run, 0, reterr);
	bool found = row != NULL && skep_store_row(store, row);
	if (found) {
		const char *text = skep_column_text(row, 0);
		size_t length = strlen(text);
		fprintf(out, "%s%s", text, length > 0 && text[length - 1] == '\n' ? "" : "\n");
	}
	sqlite3_finalize(row);
	if (!skep_store_read_all(store, reterr))
		return false;
	if (!found && run == 0)
		return skep_fail(reterr, "the database has no run");
	return found ||
	       skep_fail(reterr, "there is no run %lld in the database; `skep runs list` shows which there are",
		       (long long)run);
}
