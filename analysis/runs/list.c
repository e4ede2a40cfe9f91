/* SPDX-License-Identifier: Apache-2.0
 *
 * list.c - what the database holds, for a person and as JSON.
 */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/runs/runs_db.h"
#include "analysis/store/settings.h"
#include "base/grow.h"
#include "base/json.h"
#include "base/layout.h"

#define KEYS_MAX 4u
#define VARIED_BYTES 320u
#define VALUE_BYTES 24 /* of a value, as it is shown */

/* ---- in which settings runs of the same scenario differ ---------------------------------------------------------- */

/* As --set writes them. Every run is compared with the first one of its scenario; a key in which one of them differs is said
 * of all, up to KEYS_MAX of them, the seed behind the others. */

struct varied_scenario {
	char *name, *text;
	char key[KEYS_MAX][96];
	uint32_t keys;
	bool more;
};

struct varied {
	struct varied_scenario *scenario; /* [scenarios], each with its first run's text and the keys that differ */
	uint32_t scenarios;
};

static struct varied_scenario *scenario_of(const struct varied *v, const char *name)
{
	for (uint32_t i = 0; i < v->scenarios; i++)
		if (strcmp(v->scenario[i].name, name) == 0)
			return &v->scenario[i];
	return NULL;
}

static bool begin_scenario(struct varied *v, const char *name, const char *text)
{
	if (!skep_grow(&v->scenario, v->scenarios, sizeof *v->scenario))
		return false;
	struct varied_scenario *added = &v->scenario[v->scenarios++];
	*added = (struct varied_scenario){.name = strdup(name), .text = strdup(text)};
	return added->name != NULL && added->text != NULL;
}

static void note_key(struct varied_scenario *s, const struct skep_difference *d)
{
	for (uint32_t k = 0; k < s->keys; k++)
		if (strcmp(s->key[k], d->key) == 0)
			return;
	if (s->keys == KEYS_MAX) {
		s->more = true;
		return;
	}
	snprintf(s->key[s->keys++], sizeof s->key[0], "%s", d->key);
}

/* Takes in a run by its scenario's name and text. False: no memory. */
static bool varied_add(struct varied *v, const char *scenario, const char *text)
{
	assert(scenario != NULL && text != NULL);
	struct varied_scenario *s = scenario_of(v, scenario);
	struct skep_differences d;
	if (s == NULL)
		return begin_scenario(v, scenario, text);
	if (strcmp(s->text, text) == 0)
		return true;
	skep_settings_compare(s->text, text, skep_settings_of_runs, &d);
	s->more = s->more || d.count > SKEP_DIFFERENCES_SHOWN;
	for (size_t i = 0; i < d.count && i < SKEP_DIFFERENCES_SHOWN; i++)
		note_key(s, &d.item[i]);
	return true;
}

/* A path that is too long keeps its end, which names the file. */
static const char *tail(const char *value)
{
	size_t length = strlen(value);
	if (length <= VALUE_BYTES || !strchr(value, '/'))
		return value;
	const char *end = value + length - (VALUE_BYTES - 2);
	while (((unsigned char)*end & 0xc0) == 0x80) /* no part of a character */
		end++;
	return end;
}

/* When all are taken in: "sync.every=10 seed=2", or "" where nothing differs. Returns `ret`. */
static const char *varied_text(const struct varied *v, const char *scenario, const char *text, char ret[VARIED_BYTES])
{
	const struct varied_scenario *s = scenario_of(v, scenario);
	const char *key[KEYS_MAX];
	char value[KEYS_MAX][SKEP_SETTING_BYTES];
	size_t used = 0;
	ret[0] = '\0';
	if (s == NULL || s->keys == 0)
		return ret;
	for (uint32_t k = 0; k < s->keys; k++)
		key[k] = s->key[k];
	skep_settings_values(text, key, s->keys, value);
	for (uint32_t i = 0; i < 2 * s->keys && used < VARIED_BYTES - 1; i++) {
		uint32_t k = i % s->keys;
		bool seed = strcmp(key[k], "seed") == 0;
		if (seed == (i >= s->keys) && value[k][0] != '\0') /* a default goes without saying */
			used += (size_t)snprintf(ret + used, VARIED_BYTES - used, "%s%.48s=%s%.*s", used ? " " : "",
				key[k], tail(value[k]) > value[k] ? ".." : "", VALUE_BYTES, tail(value[k]));
	}
	if (s->more && used < VARIED_BYTES - 1)
		snprintf(ret + used, VARIED_BYTES - used, "%s...", used ? " " : "");
	for (char *c = ret; *c; c++) /* what a terminal would take for more than text */
		*c = (unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c;
	return ret;
}

static void varied_finish(struct varied *v)
{
	for (uint32_t i = 0; i < v->scenarios; i++) {
		free(v->scenario[i].name);
		free(v->scenario[i].text);
	}
	free(v->scenario);
	*v = (struct varied){0};
}

/* ---- all runs --------------------------------------------------------------------------------------------------------- */

enum { RUN, NAME, TAGS, SCENARIO, WORLD, STATUS, STARTED, SEED, STEPS, TIME, LOSS, COST, TEXT, ROUNDS };

/* Of a run that was killed, or is not over, what it has finished. How many steps a round has its scenario says, not the
 * database: such a run has rounds. */
#define FIGURES                                                                                                        \
	"steps, coalesce(time_s, (SELECT max(closed_s) FROM rounds WHERE run = id)),"                                  \
	" coalesce(final_loss, CASE WHEN steps IS NULL THEN"                                                           \
	" (SELECT loss FROM rounds WHERE run = id AND loss IS NOT NULL ORDER BY round DESC LIMIT 1) END),"             \
	" cost_usd, text, CASE WHEN steps IS NULL THEN (SELECT count(*) FROM rounds WHERE run = id) END"

/* ?1: at most so many; ?3: with this tag, '' for all. */
static const char with_labels[] =
	"SELECT id, (SELECT label FROM labels WHERE run = id AND kind = 'name'),"
	" (SELECT group_concat(label, ' ') FROM (SELECT label FROM labels WHERE run = id AND kind = 'tag' ORDER BY label)),"
	" scenario, world, status, started, seed, " FIGURES
	" FROM runs WHERE ?3 = '' OR id IN (SELECT run FROM labels WHERE kind = 'tag' AND label = ?3)"
	" ORDER BY id DESC LIMIT ?1";
static const char without_labels[] = "SELECT id, NULL, NULL, scenario, world, status, started, seed, " FIGURES
				     " FROM runs WHERE ?3 = '' ORDER BY id DESC LIMIT ?1";

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

static void lay_run(struct skep_layout *layout, sqlite3_stmt *row, const struct varied *varied)
{
	char time[SKEP_TEXT_BYTES], set[VARIED_BYTES];
	const char *scenario = skep_column_text(row, SCENARIO);
	double time_s = skep_column_real(row, TIME);
	const char *tags = skep_column_text(row, TAGS);
	skep_layout_cell(layout, "%" PRId64, (int64_t)sqlite3_column_int64(row, RUN));
	skep_layout_cell(layout, "%s", skep_column_text(row, NAME));
	skep_layout_cell(layout, "%s", skep_column_text(row, WORLD));
	skep_layout_cell(layout, "%s", skep_column_text(row, STATUS));
	skep_layout_cell(layout, "%.16s", skep_column_text(row, STARTED));
	int64_t rounds = sqlite3_column_int64(row, ROUNDS);
	if (rounds > 0)
		skep_layout_cell(layout, "%" PRId64 " round%s", rounds, skep_plural((uint64_t)rounds));
	else
		lay_number(layout, skep_column_real(row, STEPS), 12);
	skep_layout_cell(layout, "%s", isnan(time_s) ? "-" : skep_time_text(time_s, time));
	lay_number(layout, skep_column_real(row, LOSS), 4);
	lay_number(layout, skep_column_real(row, COST), 4);
	varied_text(varied, scenario, skep_column_text(row, TEXT), set);
	skep_layout_cell(layout, "%s%s%s%s%s", scenario, set[0] ? ": " : "", set, tags[0] ? "  @" : "", tags);
}

/* What the rows differ in is known when all were seen; a row that cannot be read is said when it is listed. */
static void find_varied(sqlite3_stmt *row, struct varied *varied)
{
	bool room = true;
	while (room && sqlite3_step(row) == SQLITE_ROW)
		room = varied_add(varied, skep_column_text(row, SCENARIO), skep_column_text(row, TEXT));
	sqlite3_reset(row);
}

/* What came before a row that cannot be read is listed too. */
static bool read_rows(const struct skep_runs_db *d, sqlite3_stmt *row, cJSON *runs, struct skep_layout *layout,
	uint32_t *ret_listed, struct skep_diag *reterr)
{
	struct varied varied = {0};
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
	varied_finish(&varied);
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
