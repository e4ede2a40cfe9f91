/* SPDX-License-Identifier: Apache-2.0
 *
 * show.c - one run: its labels, its row of `runs` column by column, and how many rows of every other table are of it.
 */
#include "analysis/runs/runs_db.h"

#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"

#define SHOWN_BYTES 4200u /* of a value: a path has at most 4096 */

struct shown {
	const struct skep_runs_db *d;
	int64_t run;
	cJSON *object; /* NULL: as text, into `out` */
	FILE *out;
	struct skep_diag *reterr;
};

static sqlite3_stmt *query(const struct shown *s, const char *sql)
{
	sqlite3_stmt *row = NULL;
	int rc = sqlite3_prepare_v2(s->d->db, sql, -1, &row, NULL);
	if (rc == SQLITE_OK && sqlite3_bind_parameter_count(row) > 0)
		rc = sqlite3_bind_int64(row, 1, s->run);
	if (rc == SQLITE_OK)
		return row;
	skep_database_explain(s->d->db, s->d->path, rc, s->reterr);
	sqlite3_finalize(row);
	return NULL;
}

static void close_query(const struct shown *s, sqlite3_stmt *row, int rc)
{
	if (rc != SQLITE_DONE && row != NULL)
		skep_database_explain(s->d->db, s->d->path, rc, s->reterr);
	sqlite3_finalize(row);
}

static void show_value(const struct shown *s, sqlite3_stmt *row, int column)
{
	const char *name = sqlite3_column_name(row, column);
	int type = sqlite3_column_type(row, column);
	int64_t whole = sqlite3_column_int64(row, column);
	bool is_count = type == SQLITE_INTEGER && (whole >= 0 || strcmp(name, "seed") == 0); /* a seed is unsigned */
	char key[64], text[SHOWN_BYTES];
	skep_text_show(key, sizeof key, name, strlen(name), UINT32_MAX);
	skep_column_show(row, column, text, sizeof text);
	if (s->object != NULL && is_count)
		skep_json_add_count(s->object, key, (uint64_t)whole);
	else if (s->object != NULL && type == SQLITE_TEXT)
		cJSON_AddStringToObject(s->object, key, skep_column_text(row, column));
	else if (s->object != NULL)
		skep_json_add_number(s->object, key, skep_column_real(row, column));
	else if (is_count)
		fprintf(s->out, "  %-26s %" PRIu64 "\n", key, (uint64_t)whole);
	else
		fprintf(s->out, "  %-26s %s\n", key, type == SQLITE_NULL ? "-" : text);
}

/* The scenario's text is left out: it has many lines, and the column has it. */
static void show_row(const struct shown *s)
{
	sqlite3_stmt *row = query(s, "SELECT * FROM runs WHERE id = ?1");
	int rc = row != NULL ? sqlite3_step(row) : SQLITE_ERROR;
	for (int i = 0; rc == SQLITE_ROW && i < sqlite3_column_count(row); i++)
		if (strcmp(sqlite3_column_name(row, i), "text") != 0)
			show_value(s, row, i);
	close_query(s, row, rc == SQLITE_ROW ? SQLITE_DONE : rc);
}

static void show_labels(const struct shown *s)
{
	cJSON *tags = s->object != NULL ? cJSON_AddArrayToObject(s->object, "tags") : NULL;
	bool labels;
	if (s->object != NULL)
		cJSON_AddNullToObject(s->object, "name");
	if (!skep_runs_db_has_labels(s->d, &labels, s->reterr) || !labels)
		return;
	sqlite3_stmt *row = query(s, "SELECT kind, label FROM labels WHERE run = ?1 ORDER BY kind, label");
	int rc = SQLITE_ERROR;
	while (row != NULL && (rc = sqlite3_step(row)) == SQLITE_ROW) {
		char kind[64], text[SKEP_LABEL_BYTES];
		skep_column_show(row, 0, kind, sizeof kind);
		skep_column_show(row, 1, text, sizeof text);
		cJSON *label = s->object != NULL ? cJSON_CreateString(skep_column_text(row, 1)) : NULL;
		if (label == NULL)
			fprintf(s->out, "  %-26s %s\n", kind, text);
		else if (strcmp(kind, "name") == 0)
			cJSON_ReplaceItemInObject(s->object, "name", label);
		else
			cJSON_AddItemToArray(tags, label);
	}
	close_query(s, row, rc);
}

static void show_tables(const struct shown *s)
{
	static const char *const table[] = {"rounds", "validations", "workers", "incarnations", "links", "activity",
		"ops", "notes", "event_log", "sources"};
	cJSON *rows = s->object != NULL ? cJSON_AddObjectToObject(s->object, "rows") : NULL;
	char sql[80];
	int64_t count;
	if (s->object == NULL)
		fputs("rows kept of it\n", s->out);
	for (size_t i = 0; i < sizeof table / sizeof *table && !s->reterr->set; i++) {
		snprintf(sql, sizeof sql, "SELECT count(*) FROM %s WHERE run = ?1", table[i]);
		if (!skep_runs_db_ask(s->d, sql, s->run, NULL, &count, s->reterr))
			return;
		if (rows != NULL)
			cJSON_AddNumberToObject(rows, table[i], (double)count);
		else
			fprintf(s->out, "  %-26s %" PRId64 "\n", table[i], count);
	}
}

bool skep_runs_show(const char *db, int64_t run, bool json, FILE *out, struct skep_diag *reterr)
{
	struct skep_runs_db d;
	if (!skep_runs_db_open(&d, db, false, reterr))
		return false;
	const struct shown s = {&d, run, json ? cJSON_CreateObject() : NULL, out, reterr};
	if (skep_runs_db_is_there(&d, run, reterr)) {
		show_labels(&s);
		show_row(&s);
		show_tables(&s);
	}
	if (json && !reterr->set)
		skep_json_print(s.object, out);
	else
		cJSON_Delete(s.object);
	skep_runs_db_close(&d);
	return !reterr->set;
}
