/* SPDX-License-Identifier: Apache-2.0
 *
 * sweep_table.c - see sweep_table.h.
 *
 * Keeps true: only runs that are done have figures, so a run that failed bends no mean; a figure that some runs lack (no
 * target, or not reached; no price; a loss that is infinite) is over those that have it, and how many they are is said.
 */
#include "analysis/summary/sweep_table.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/store/database.h"
#include "base/grow.h"
#include "base/json.h"

static const struct metric {
	const char *key, *title;
	bool percent; /* of a share; --json has the share */
} METRIC[SKEP_SWEEP_METRICS] = {
	[SKEP_SWEEP_THROUGHPUT] = {"throughput_samples_per_s", "samples/s", false},
	[SKEP_SWEEP_TIME] = {"time_s", "time (s)", false},
	[SKEP_SWEEP_TO_TARGET] = {"time_to_target_s", "to target (s)", false},
	[SKEP_SWEEP_COST] = {"cost_usd", "cost (USD)", false},
	[SKEP_SWEEP_LOSS] = {"final_loss", "final loss", false},
	[SKEP_SWEEP_UTILISATION] = {"utilisation", "utilisation (%)", true},
	[SKEP_SWEEP_PASSES] = {"passes_s", "passes (s)", false},
	[SKEP_SWEEP_REDUCTION] = {"reduction_s", "reduction (s)", false},
	[SKEP_SWEEP_VALIDATION] = {"final_validation_loss", "validation loss", false},
	[SKEP_SWEEP_COST_TO_TARGET] = {"cost_to_target_usd", "cost to target (USD)", false},
};

/* More than a sweep can have: its runs are processes of this host and of ranks. */
enum { POINTS_MOST = 1 << 20 };

const char *skep_sweep_metric_key(enum skep_sweep_metric metric)
{
	return METRIC[metric].key;
}

const char *skep_sweep_metric_title(enum skep_sweep_metric metric)
{
	return METRIC[metric].title;
}

double skep_sweep_metric_scale(enum skep_sweep_metric metric)
{
	return METRIC[metric].percent ? 100 : 1;
}

/* ---- read -------------------------------------------------------------------------------------------------------- */

static bool read_head(struct skep_store *store, struct skep_sweep_table *t, struct skep_diag *reterr)
{
	static const char sql[] = "SELECT id, scenario, version, (SELECT count(*) FROM sweep_keys WHERE sweep = id),"
				  " (SELECT 1 + max(point) FROM sweep_runs WHERE sweep = id) FROM sweeps"
				  " WHERE ?1 = 0 OR id = ?1 ORDER BY id DESC LIMIT 1";
	sqlite3_stmt *row = skep_store_query(store, sql, t->sweep, 0, reterr);
	bool found = row != NULL && skep_store_row(store, row);
	if (found) {
		t->sweep = sqlite3_column_int64(row, 0);
		skep_column_show(row, 1, t->scenario, sizeof t->scenario);
		skep_column_show(row, 2, t->version, sizeof t->version);
		int64_t keys = sqlite3_column_int64(row, 3), points = sqlite3_column_int64(row, 4);
		found = keys >= 0 && keys <= SKEP_SWEEP_KEYS_MOST && points >= 0 && points <= POINTS_MOST;
		if (!found)
			skep_fail(reterr, "sweep %lld is not one that skep has written", (long long)t->sweep);
		t->keys = found ? (uint32_t)keys : 0;
		t->points = found ? (uint32_t)points : 0;
	} else if (row != NULL && t->sweep != 0) {
		skep_fail(reterr, "there is no sweep %lld in the database", (long long)t->sweep);
	} else if (row != NULL) {
		skep_fail(reterr, "the database holds no sweep: `skep sweep` makes one");
	}
	sqlite3_finalize(row);
	return found;
}

int64_t skep_sweep_of_run(struct skep_store *store, int64_t run, struct skep_diag *reterr)
{
	static const char sql[] = "SELECT max(sweep) FROM sweep_runs WHERE run = ?1";
	sqlite3_stmt *row = skep_store_query(store, sql, run, 0, reterr);
	int64_t sweep = row != NULL && skep_store_row(store, row) ? sqlite3_column_int64(row, 0) : 0;
	if (row != NULL && sweep == 0)
		skep_fail(reterr, "run %lld is part of no sweep", (long long)run);
	sqlite3_finalize(row);
	return sweep;
}

static char *shown_text(sqlite3_stmt *row)
{
	char text[256];
	skep_column_show(row, 0, text, sizeof text);
	return strdup(text);
}

/* Texts by position, from a query of two columns. */
static bool read_texts(
	struct skep_store *store, const char *sql, int64_t sweep, char **ret, uint32_t count, struct skep_diag *reterr)
{
	sqlite3_stmt *row = skep_store_query(store, sql, sweep, 0, reterr);
	uint32_t i = 0;
	while (row != NULL && i < count && skep_store_row(store, row))
		ret[i++] = shown_text(row);
	if (row != NULL && i < count)
		skep_fail(reterr, "sweep %lld is not whole in the database", (long long)sweep);
	sqlite3_finalize(row);
	return row != NULL && i == count;
}

/* Sums while the runs are read: of the values, and of their squares about the first one, which keeps the digits. The values
 * themselves are kept for quantiles. */
struct sums {
	double first, sum, squares;
	double *value; /* [runs of the figure] */
};

static bool add(struct skep_sweep_figure *figure, struct sums *sums, double value)
{
	if (!isfinite(value))
		return true;
	if (!skep_grow(&sums->value, figure->runs, sizeof *sums->value))
		return false;
	sums->value[figure->runs] = value;
	if (figure->runs++ == 0)
		sums->first = value;
	sums->sum += value - sums->first;
	sums->squares += (value - sums->first) * (value - sums->first);
	return true;
}

static void close_figure(struct skep_sweep_figure *figure, struct sums *sums)
{
	double n = figure->runs;
	figure->mean = n > 0 ? sums->first + sums->sum / n : NAN;
	figure->spread = n > 1 ? sqrt(fmax(sums->squares - sums->sum * sums->sum / n, 0) / (n - 1)) : NAN;
	figure->p5 = figure->p95 = NAN;
	if (figure->runs > 0) {
		gsl_sort(sums->value, 1, figure->runs);
		figure->p5 = gsl_stats_quantile_from_sorted_data(sums->value, 1, figure->runs, 0.05);
		figure->p95 = gsl_stats_quantile_from_sorted_data(sums->value, 1, figure->runs, 0.95);
	}
	free(sums->value);
}

static bool read_runs(struct skep_store *store, struct skep_sweep_table *t, struct sums *sums, struct skep_diag *reterr)
{
	static const char sql[] =
		"SELECT point, status, throughput_samples_per_s, time_s, time_to_target_s, cost_usd,"
		" final_loss, utilisation, passes_s, reduction_s, final_validation_loss, cost_to_target_usd, extrapolated"
		" FROM sweep_runs LEFT JOIN runs ON runs.id = run"
		" WHERE sweep = ?1 ORDER BY number";
	sqlite3_stmt *row = skep_store_query(store, sql, t->sweep, 0, reterr);
	bool room = true;
	while (row != NULL && room && skep_store_row(store, row)) {
		uint32_t point = (uint32_t)sqlite3_column_int64(row, 0);
		if (point >= t->points)
			continue;
		struct skep_sweep_row *r = &t->row[point];
		bool there = sqlite3_column_type(row, 1) != SQLITE_NULL;
		bool done = there && strcmp(skep_column_text(row, 1), "done") == 0;
		r->wanted++;
		r->done += done;
		r->failed += there && !done;
		r->diverged += done && isinf(skep_column_real(row, 2 + SKEP_SWEEP_LOSS));
		r->extrapolated += done && sqlite3_column_int(row, 2 + SKEP_SWEEP_METRICS) == 1;
		for (int m = 0; done && room && m < SKEP_SWEEP_METRICS; m++)
			room = add(&r->figure[m], &sums[point * SKEP_SWEEP_METRICS + (unsigned)m],
				skep_column_real(row, 2 + m));
	}
	sqlite3_finalize(row);
	if (!room)
		skep_fail(reterr, "no memory for the table");
	return row != NULL && room;
}

static bool read_rows(struct skep_store *store, struct skep_sweep_table *t, struct skep_diag *reterr)
{
	struct sums *sums = calloc((size_t)t->points * SKEP_SWEEP_METRICS, sizeof *sums);
	if (sums == NULL)
		return skep_fail(reterr, "no memory for the table");
	bool read = read_runs(store, t, sums, reterr);
	for (uint32_t p = 0; p < t->points; p++) {
		for (int m = 0; m < SKEP_SWEEP_METRICS; m++)
			close_figure(&t->row[p].figure[m], &sums[p * SKEP_SWEEP_METRICS + (unsigned)m]);
		t->wanted += t->row[p].wanted;
		t->done += t->row[p].done;
		t->failed += t->row[p].failed;
	}
	free(sums);
	return read;
}

static bool read_formats(struct skep_store *store, struct skep_sweep_table *t, struct skep_diag *reterr)
{
	static const char sql[] = "SELECT number_format FROM sweep_runs JOIN runs ON runs.id = run WHERE sweep = ?1"
				  " GROUP BY number_format ORDER BY min(number)";
	sqlite3_stmt *row = skep_store_query(store, sql, t->sweep, 0, reterr);
	while (row != NULL && skep_store_row(store, row)) {
		size_t used = strlen(t->format);
		char format[64];
		skep_column_show(row, 0, format, sizeof format);
		snprintf(t->format + used, sizeof t->format - used, "%s%s", t->formats++ > 0 ? "; " : "", format);
	}
	sqlite3_finalize(row);
	return row != NULL;
}

bool skep_sweep_table_read(
	struct skep_store *store, int64_t sweep, struct skep_sweep_table *ret, struct skep_diag *reterr)
{
	*ret = (struct skep_sweep_table){.sweep = sweep};
	if (!read_head(store, ret, reterr)) {
		skep_store_read_all(store, reterr);
		return false;
	}
	ret->key = calloc(ret->keys + 1, sizeof *ret->key);
	ret->value = calloc((size_t)ret->points * ret->keys + 1, sizeof *ret->value);
	ret->row = calloc(ret->points + 1, sizeof *ret->row);
	bool read = ret->key != NULL && ret->value != NULL && ret->row != NULL;
	if (!read)
		skep_fail(reterr, "no memory for the table");
	read = read &&
	       read_texts(store, "SELECT key FROM sweep_keys WHERE sweep = ?1 ORDER BY position", ret->sweep, ret->key,
		       ret->keys, reterr) &&
	       read_texts(store, "SELECT value FROM sweep_values WHERE sweep = ?1 ORDER BY point, position", ret->sweep,
		       ret->value, ret->points * ret->keys, reterr) &&
	       read_rows(store, ret, reterr) && read_formats(store, ret, reterr);
	read = skep_store_read_all(store, reterr) && read;
	if (!read)
		skep_sweep_table_finish(ret);
	return read;
}

void skep_sweep_table_finish(struct skep_sweep_table *table)
{
	for (uint32_t i = 0; table->key != NULL && i < table->keys; i++)
		free(table->key[i]);
	for (size_t i = 0; table->value != NULL && i < (size_t)table->points * table->keys; i++)
		free(table->value[i]);
	free(table->key);
	free(table->value);
	free(table->row);
	*table = (struct skep_sweep_table){0};
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void add_counts(cJSON *object, uint32_t wanted, uint32_t done, uint32_t failed)
{
	cJSON_AddNumberToObject(object, "runs", wanted);
	cJSON_AddNumberToObject(object, "done", done);
	cJSON_AddNumberToObject(object, "failed", failed);
	cJSON_AddNumberToObject(object, "missing", wanted - done - failed);
}

static cJSON *row_object(const struct skep_sweep_table *t, uint32_t point)
{
	const struct skep_sweep_row *row = &t->row[point];
	cJSON *object = cJSON_CreateObject(), *values = cJSON_AddObjectToObject(object, "values");
	for (uint32_t i = 0; i < t->keys; i++)
		cJSON_AddStringToObject(values, t->key[i], t->value[(size_t)point * t->keys + i]);
	add_counts(object, row->wanted, row->done, row->failed);
	cJSON_AddNumberToObject(object, "diverged", row->diverged);
	cJSON_AddNumberToObject(object, "extrapolated", row->extrapolated);
	for (int m = 0; m < SKEP_SWEEP_METRICS; m++) {
		cJSON *figure = cJSON_AddObjectToObject(object, METRIC[m].key);
		cJSON_AddNumberToObject(figure, "runs", row->figure[m].runs);
		skep_json_add_number(figure, "mean", row->figure[m].mean);
		skep_json_add_number(figure, "sd", row->figure[m].spread);
		skep_json_add_number(figure, "p5", row->figure[m].p5);
		skep_json_add_number(figure, "p95", row->figure[m].p95);
	}
	return object;
}

static void add_left(cJSON *object, const struct skep_sweep_table *t)
{
	static const char *const name[SKEP_SWEEP_QUANTITIES] = {
		"tokens", "every", "replicas", "staleness", "batch", "model"};
	cJSON *list = cJSON_AddArrayToObject(object, "left_laws");
	for (uint32_t i = 0; i < t->lefts; i++) {
		const struct skep_sweep_left *l = &t->left[i];
		cJSON *o = skep_json_add_row(list);
		cJSON_AddStringToObject(o, "law", l->law);
		cJSON_AddStringToObject(o, "quantity", name[l->quantity]);
		cJSON_AddNumberToObject(o, "runs", l->runs);
		skep_json_add_number(o, "asked_least", l->asked[0]);
		skep_json_add_number(o, "asked_most", l->asked[1]);
		skep_json_add_number(o, "fitted_least", l->fitted[0]);
		skep_json_add_number(o, "fitted_most", l->fitted[1]);
	}
}

void skep_sweep_table_print_json(const struct skep_sweep_table *table, FILE *out)
{
	cJSON *object = cJSON_CreateObject();
	cJSON_AddNumberToObject(object, "sweep", (double)table->sweep);
	cJSON_AddStringToObject(object, "scenario", table->scenario);
	cJSON_AddStringToObject(object, "version", table->version);
	cJSON_AddStringToObject(object, "number_format", table->format);
	add_counts(object, table->wanted, table->done, table->failed);
	cJSON *keys = cJSON_AddArrayToObject(object, "keys"), *rows = cJSON_AddArrayToObject(object, "rows");
	for (uint32_t i = 0; i < table->keys; i++)
		cJSON_AddItemToArray(keys, cJSON_CreateString(table->key[i]));
	for (uint32_t p = 0; p < table->points; p++)
		cJSON_AddItemToArray(rows, row_object(table, p));
	if (table->lefts > 0)
		add_left(object, table);
	skep_json_print(object, out);
}
