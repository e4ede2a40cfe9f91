/* SPDX-License-Identifier: Apache-2.0
 *
 * list.c - what the database holds, for a person and as JSON.
 */
#include "analysis/runs/runs_db.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/layout.h"

/* ---- all runs --------------------------------------------------------------------------------------------------------- */

enum { RUN, NAME, TAGS, SCENARIO, WORLD, STATUS, STARTED, SEED, STEPS, TIME, LOSS, COST, TEXT };

/* ?1: at most so many; ?3: with this tag, '' for all. */
static const char with_labels[] =
	"SELECT id, (SELECT label FROM labels WHERE run = id AND kind = 'name'),"
	" (SELECT group_concat(label, ' ') FROM (SELECT label FROM labels WHERE run = id AND kind = 'tag' ORDER BY label)),"
	" scenario, world, status, started, seed, steps, time_s, coalesce(final_validation_loss, final_loss), cost_usd, text"
	" FROM runs WHERE ?3 = '' OR id IN (SELECT run FROM labels WHERE kind = 'tag' AND label = ?3)"
	" ORDER BY id DESC LIMIT ?1";
static const char without_labels[] =
	"SELECT id, NULL, NULL, scenario, world, status, started, seed, steps, time_s,"
	" coalesce(final_validation_loss, final_loss), cost_usd, text FROM runs WHERE ?3 = '' ORDER BY id DESC LIMIT ?1";

static void add_text(cJSON *object, const char *key, sqlite3_stmt *row, int column)
{
	if (sqlite3_column_type(row, column) == SQLITE_NULL)
		cJSON_AddNullToObject(object, key);
	else
		cJSON_AddStringToObject(object, key, skep_column_text(row, column));
}

static cJSON *run_object(sqlite3_stmt *row)
{
	cJSON *object = cJSON_CreateObject();
	skep_json_add_count(object, "run_id", (uint64_t)sqlite3_column_int64(row, RUN));
	add_text(object, "name", row, NAME);
	cJSON *tags = cJSON_AddArrayToObject(object, "tags");
	char *words = strdup(skep_column_text(row, TAGS)), *rest = words, *word;
	while ((word = strsep(&rest, " ")) != NULL)
		if (word[0] != 0)
			cJSON_AddItemToArray(tags, cJSON_CreateString(word));
	free(words);
	add_text(object, "scenario", row, SCENARIO);
	add_text(object, "world", row, WORLD);
	add_text(object, "status", row, STATUS);
	add_text(object, "started", row, STARTED);
	skep_json_add_count(object, "seed", (uint64_t)sqlite3_column_int64(row, SEED));
	skep_json_add_number(object, "steps", skep_column_real(row, STEPS));
	skep_json_add_number(object, "time_s", skep_column_real(row, TIME));
	skep_json_add_number(object, "loss", skep_column_real(row, LOSS));
	skep_json_add_number(object, "cost_usd", skep_column_real(row, COST));
	return object;
}

static void lay_number(struct skep_layout *layout, double value, int digits)
{
	if (isnan(value))
		skep_layout_cell(layout, "-");
	else
		skep_layout_cell(layout, "%.*g", digits, value);
}

static void lay_run(struct skep_layout *layout, sqlite3_stmt *row, const struct skep_varied *varied)
{
	char time[SKEP_TEXT_BYTES], set[SKEP_VARIED_BYTES];
	const char *scenario = skep_column_text(row, SCENARIO);
	double time_s = skep_column_real(row, TIME);
	const char *tags = skep_column_text(row, TAGS);
	skep_layout_cell(layout, "%" PRId64, (int64_t)sqlite3_column_int64(row, RUN));
	skep_layout_cell(layout, "%s", skep_column_text(row, NAME));
	skep_layout_cell(layout, "%s", skep_column_text(row, WORLD));
	skep_layout_cell(layout, "%s", skep_column_text(row, STATUS));
	skep_layout_cell(layout, "%.16s", skep_column_text(row, STARTED));
	lay_number(layout, skep_column_real(row, STEPS), 12);
	skep_layout_cell(layout, "%s", isnan(time_s) ? "-" : skep_time_text(time_s, time));
	lay_number(layout, skep_column_real(row, LOSS), 4);
	lay_number(layout, skep_column_real(row, COST), 4);
	skep_varied_text(varied, scenario, skep_column_text(row, TEXT), set);
	skep_layout_cell(layout, "%s%s%s%s%s", scenario, set[0] ? ": " : "", set, tags[0] ? "  @" : "", tags);
}

/* What the rows differ in is known when all were seen; a row that cannot be read is said when it is listed. */
static void find_varied(sqlite3_stmt *row, struct skep_varied *varied)
{
	bool room = true;
	while (room && sqlite3_step(row) == SQLITE_ROW)
		room = skep_varied_add(varied, skep_column_text(row, SCENARIO), skep_column_text(row, TEXT));
	sqlite3_reset(row);
}

/* What came before a row that cannot be read is listed too. */
static bool read_rows(const struct skep_runs_db *d, sqlite3_stmt *row, cJSON *runs, struct skep_layout *layout,
	uint32_t *ret_listed, struct skep_diag *reterr)
{
	struct skep_varied varied = {0};
	int rc;
	if (runs == NULL)
		find_varied(row, &varied);
	while ((rc = sqlite3_step(row)) == SQLITE_ROW) {
		++*ret_listed;
		if (runs != NULL)
			cJSON_AddItemToArray(runs, run_object(row));
		else
			lay_run(layout, row, &varied);
	}
	skep_varied_finish(&varied);
	if (rc != SQLITE_DONE)
		skep_database_explain(d->db, d->path, rc, reterr);
	return rc == SQLITE_DONE;
}

static bool list(const struct skep_runs_db *d, sqlite3_stmt *row, bool json, FILE *out, uint32_t *ret_listed,
	struct skep_diag *reterr)
{
	static const char *const head[] = {"run", "name", "world", "status", "started (UTC)", "steps", "time", "loss",
		"USD", "scenario: what differs, tags"};
	struct skep_layout layout;
	cJSON *object = json ? cJSON_CreateObject() : NULL,
	      *runs = json ? cJSON_AddArrayToObject(object, "runs") : NULL;
	if (!json)
		skep_layout_begin(&layout, "rlllrrrrrl", head);
	bool read = read_rows(d, row, runs, &layout, ret_listed, reterr);
	if (!json)
		skep_layout_end(&layout, out);
	else if (read)
		skep_json_print(object, out);
	else
		cJSON_Delete(object);
	return read;
}

bool skep_runs_list(const char *db, const char *tag, uint32_t most, bool json, FILE *out, uint32_t *ret_listed,
	struct skep_diag *reterr)
{
	struct skep_runs_db d;
	bool labels, listed = false;
	*ret_listed = 0;
	if (!skep_runs_db_open(&d, db, false, reterr))
		return false;
	if (skep_runs_db_has_labels(&d, &labels, reterr)) {
		sqlite3_stmt *row = NULL;
		int rc = sqlite3_prepare_v2(d.db, labels ? with_labels : without_labels, -1, &row, NULL);
		if (rc == SQLITE_OK)
			rc = sqlite3_bind_int64(row, 1, most > 0 ? (int64_t)most : -1);
		if (rc == SQLITE_OK)
			rc = sqlite3_bind_text(row, 3, tag != NULL ? tag : "", -1, SQLITE_TRANSIENT);
		if (rc == SQLITE_OK)
			listed = list(&d, row, json, out, ret_listed, reterr);
		else
			skep_database_explain(d.db, d.path, rc, reterr);
		sqlite3_finalize(row);
	}
	skep_runs_db_close(&d);
	return listed;
}
