/* SPDX-License-Identifier: Apache-2.0
 *
 * compare.c - reads the metrics of two runs from the database and prints them side by side.
 *
 * The difference is second against first, in percent of the first. A metric that one of the runs lacks has none.
 */
#include "analysis/summary/compare.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/store/database.h"
#include "analysis/store/number_format.h"
#include "analysis/store/settings.h"
#include "analysis/summary/time_parts.h"
#include "base/json.h"

enum unit { UNIT_RATE, UNIT_SHARE, UNIT_TIME, UNIT_BYTES, UNIT_COUNT, UNIT_NUMBER, UNIT_USD };

static const char *const UNIT_NAME[] = {"samples/s", "%", "s", "B", "", "", "USD"};

struct metric {
	const char *group; /* heading in the text, of this metric and those after it; NULL: none */
	const char *name;
	enum unit unit;
	const char *sql; /* one row, one number, of run ?1; NULL: a quantile of the time per round */
	double quantile;
};

#define RUN_COLUMN(column) "SELECT " column " FROM runs WHERE id = ?1"
#define TRAFFIC(what, traffic) "SELECT sum(" what ") FROM links WHERE run = ?1 AND traffic = '" traffic "'"
#define CLASS(what, class) "SELECT sum(" what ") FROM links WHERE run = ?1 AND class = '" class "'"

static const struct metric METRIC[] = {
	{"speed", "throughput", UNIT_RATE, RUN_COLUMN("throughput_samples_per_s"), 0},
	{NULL, "utilisation", UNIT_SHARE, RUN_COLUMN("100 * utilisation"), 0},
	{NULL, "time", UNIT_TIME, RUN_COLUMN("time_s"), 0},
	{NULL, "time per round, median", UNIT_TIME, NULL, 0.5},
	{NULL, "time per round, p90", UNIT_TIME, NULL, 0.9},
	{NULL, "passes of a round", UNIT_TIME, RUN_COLUMN("passes_s"), 0},
	{NULL, "reduction of a round", UNIT_TIME, RUN_COLUMN("reduction_s"), 0},
	{NULL, "rounds", UNIT_COUNT, "SELECT count(*) FROM rounds WHERE run = ?1", 0},
	{"traffic by class", "pipeline bytes", UNIT_BYTES, TRAFFIC("bytes", "pipeline"), 0},
	{NULL, "pipeline messages", UNIT_COUNT, TRAFFIC("messages", "pipeline"), 0},
	{NULL, "sync bytes", UNIT_BYTES, TRAFFIC("bytes", "sync"), 0},
	{NULL, "sync messages", UNIT_COUNT, TRAFFIC("messages", "sync"), 0},
	{NULL, "state bytes", UNIT_BYTES, TRAFFIC("bytes", "state"), 0},
	{NULL, "state messages", UNIT_COUNT, TRAFFIC("messages", "state"), 0},
	{NULL, "control bytes", UNIT_BYTES, TRAFFIC("bytes", "control"), 0},
	{NULL, "control messages", UNIT_COUNT, TRAFFIC("messages", "control"), 0},
	{"traffic by link", "bytes inside places", UNIT_BYTES, CLASS("bytes", "inside"), 0},
	{NULL, "messages inside places", UNIT_COUNT, CLASS("messages", "inside"), 0},
	{NULL, "bytes between places", UNIT_BYTES, CLASS("bytes", "between"), 0},
	{NULL, "messages between places", UNIT_COUNT, CLASS("messages", "between"), 0},
	{"gradients", "gradients issued", UNIT_COUNT, RUN_COLUMN("issued"), 0},
	{NULL, "gradients counted", UNIT_COUNT, RUN_COLUMN("counted"), 0},
	{NULL, "gradients lost", UNIT_COUNT, RUN_COLUMN("lost"), 0},
	{"loss", "final loss", UNIT_NUMBER, RUN_COLUMN("final_loss"), 0},
	{NULL, "final validation loss", UNIT_NUMBER, RUN_COLUMN("final_validation_loss"), 0},
	{NULL, "time to target", UNIT_TIME, RUN_COLUMN("time_to_target_s"), 0},
	{"cost", "cost", UNIT_USD, RUN_COLUMN("cost_usd"), 0},
	{NULL, "of that for egress", UNIT_USD, RUN_COLUMN("egress_usd"), 0},
	{NULL, "cost to target", UNIT_USD, RUN_COLUMN("cost_to_target_usd"), 0},
};

#define METRICS (sizeof METRIC / sizeof METRIC[0])

struct side {
	int64_t id;
	char scenario[64], world[8], device[32], version[64], started[32], status[16], seed[24];
	char format[SKEP_NUMBER_FORMAT_BYTES];
	bool pace, shape, has_links;
	double compute_scale;
	double value[METRICS];
	struct skep_time_parts parts;
};

struct comparison {
	struct side side[2];
	struct skep_differences settings;
};

/* ---- which runs ------------------------------------------------------------------------------------------------- */

static bool choose(struct skep_store *store, int64_t *first, int64_t *second, struct skep_diag *reterr)
{
	static const char newest[] =
		"SELECT sim.id, real.id FROM runs AS sim JOIN runs AS real USING (scenario)"
		" WHERE sim.world = 'sim' AND real.world = 'real' AND sim.status = 'done' AND real.status = 'done'"
		" ORDER BY sim.text = real.text DESC, max(sim.id, real.id) DESC, min(sim.id, real.id) DESC LIMIT 1";
	if (*first != 0 && *second != 0)
		return true;
	if (*first != 0 || *second != 0)
		return skep_fail(reterr, "compare takes two runs, or none for the newest pair");
	sqlite3_stmt *row = skep_store_query(store, newest, 0, 0, reterr);
	bool found = row != NULL && skep_store_row(store, row);
	if (found) {
		*first = sqlite3_column_int64(row, 0);
		*second = sqlite3_column_int64(row, 1);
	} else if (row != NULL) {
		skep_fail(reterr, "no scenario has both a finished simulated and a finished real run: "
				  "`skep sim` and `skep run` the same scenario, or name two runs");
	}
	sqlite3_finalize(row);
	return found;
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static bool read_side(struct skep_store *store, int64_t id, struct side *ret, struct skep_diag *reterr)
{
	static const char sql[] =
		"SELECT scenario, world, device, version, started, status, pace, shape,"
		" printf('%llu', seed), EXISTS (SELECT 1 FROM links WHERE run = ?1), number_format, text"
		" FROM runs WHERE id = ?1";
	sqlite3_stmt *row = skep_store_query(store, sql, id, 0, reterr);
	bool found = row != NULL && skep_store_row(store, row);
	if (found) {
		ret->id = id;
		skep_column_show(row, 0, ret->scenario, sizeof ret->scenario);
		skep_column_show(row, 1, ret->world, sizeof ret->world);
		skep_column_show(row, 2, ret->device, sizeof ret->device);
		skep_column_show(row, 3, ret->version, sizeof ret->version);
		skep_column_show(row, 4, ret->started, sizeof ret->started);
		skep_column_show(row, 5, ret->status, sizeof ret->status);
		ret->pace = sqlite3_column_int(row, 6);
		ret->shape = sqlite3_column_int(row, 7);
		skep_column_show(row, 8, ret->seed, sizeof ret->seed);
		ret->has_links = sqlite3_column_int(row, 9);
		skep_column_show(row, 10, ret->format, sizeof ret->format);
		ret->compute_scale = skep_settings_compute_scale(skep_column_text(row, 11));
	} else if (row != NULL) {
		skep_fail(reterr, "there is no run %lld in the database; `skep runs list` shows which there are",
			(long long)id);
	}
	sqlite3_finalize(row);
	return found;
}

/* Rounds may be open side by side: what one costs begins where the one before it closed, if it was open by then. */
static bool read_quantile(struct skep_store *store, int64_t run, double quantile, double *ret, struct skep_diag *reterr)
{
	static const char sql[] =
		"SELECT closed_s - max(opened_s, coalesce(lag(closed_s) OVER (ORDER BY closed_s, round), opened_s)),"
		" count(*) OVER () FROM rounds WHERE run = ?1 ORDER BY 1";
	sqlite3_stmt *row = skep_store_query(store, sql, run, 0, reterr);
	double *duration_s = NULL;
	size_t count = 0, rounds = 0;
	*ret = NAN;
	while (row != NULL && skep_store_row(store, row)) {
		if (duration_s == NULL) {
			rounds = (size_t)sqlite3_column_int64(row, 1);
			duration_s = malloc(rounds * sizeof *duration_s);
		}
		if (duration_s == NULL)
			break;
		duration_s[count++] = sqlite3_column_double(row, 0);
	}
	bool ok = row != NULL && count == rounds;
	if (ok && count > 0)
		*ret = gsl_stats_quantile_from_sorted_data(duration_s, 1, count, quantile);
	else if (row != NULL && !ok)
		skep_fail(reterr, "no memory for %zu rounds", rounds);
	free(duration_s);
	sqlite3_finalize(row);
	return ok;
}

static bool read_metric(
	struct skep_store *store, struct side *side, const struct metric *metric, double *ret, struct skep_diag *reterr)
{
	if (metric->sql == NULL)
		return read_quantile(store, side->id, metric->quantile, ret, reterr);
	sqlite3_stmt *row = skep_store_query(store, metric->sql, side->id, 0, reterr);
	bool ok = row != NULL && skep_store_row(store, row);
	if (ok)
		*ret = skep_column_real(row, 0);
	else if (row != NULL)
		skep_fail(reterr, "%s", sqlite3_errmsg(skep_store_database(store)));
	sqlite3_finalize(row);
	return ok;
}

/* A finished run that used no link of a class has sent nothing there: 0, not unknown. */
static void fill_unused_links(struct side *side)
{
	for (size_t i = 0; i < METRICS; i++)
		if (side->has_links && METRIC[i].sql != NULL && strstr(METRIC[i].sql, "links") && isnan(side->value[i]))
			side->value[i] = 0;
}

static bool read_comparison(
	struct skep_store *store, int64_t first, int64_t second, struct comparison *ret, struct skep_diag *reterr)
{
	int64_t id[2] = {first, second};
	for (int k = 0; k < 2; k++) {
		struct side *side = &ret->side[k];
		if (!read_side(store, id[k], side, reterr))
			return false;
		for (size_t i = 0; i < METRICS; i++)
			if (!read_metric(store, side, &METRIC[i], &side->value[i], reterr))
				return false;
		fill_unused_links(side);
		if (!skep_time_parts_read(store, id[k], &side->parts, reterr))
			return false;
	}
	return skep_settings_compare_runs(store, first, second, NULL, &ret->settings, reterr);
}

static double difference(const struct comparison *c, size_t i)
{
	double first = c->side[0].value[i], second = c->side[1].value[i];
	if (first == second)
		return 0;
	return first != 0 ? 100 * (second - first) / fabs(first) : NAN;
}

/* ---- printing --------------------------------------------------------------------------------------------------- */

static bool is_real(const struct side *side)
{
	return strcmp(side->world, "real") == 0;
}

/* By how much the passes of the run are longer than those of the model itself. */
static double scale_of(const struct side *side)
{
	return is_real(side) && !side->pace ? 1 : side->compute_scale;
}

static cJSON *json_side(const struct side *side)
{
	cJSON *object = cJSON_CreateObject();
	cJSON_AddNumberToObject(object, "run_id", (double)side->id);
	cJSON_AddStringToObject(object, "scenario", side->scenario);
	cJSON_AddStringToObject(object, "world", side->world);
	cJSON_AddStringToObject(object, "device", side->device);
	cJSON_AddBoolToObject(object, "pace", side->pace);
	cJSON_AddBoolToObject(object, "shape", side->shape);
	cJSON_AddNumberToObject(object, "compute_scale", scale_of(side));
	cJSON_AddStringToObject(object, "number_format", side->format);
	cJSON_AddRawToObject(object, "seed", side->seed);
	cJSON_AddStringToObject(object, "version", side->version);
	cJSON_AddStringToObject(object, "started", side->started);
	cJSON_AddStringToObject(object, "status", side->status);
	return object;
}

static cJSON *json_differences(const struct skep_differences *settings)
{
	cJSON *array = cJSON_CreateArray();
	for (size_t i = 0; i < settings->count && i < SKEP_DIFFERENCES_SHOWN; i++) {
		cJSON *object = skep_json_add_row(array);
		cJSON_AddStringToObject(object, "key", settings->item[i].key);
		cJSON_AddStringToObject(object, "first", settings->item[i].first);
		cJSON_AddStringToObject(object, "second", settings->item[i].second);
	}
	return array;
}

static cJSON *json_of(const struct comparison *c)
{
	cJSON *object = cJSON_CreateObject();
	cJSON_AddItemToObject(object, "first", json_side(&c->side[0]));
	cJSON_AddItemToObject(object, "second", json_side(&c->side[1]));
	cJSON_AddBoolToObject(object, "same_scenario_text", c->settings.same);
	cJSON_AddItemToObject(object, "scenario_differences", json_differences(&c->settings));
	cJSON *metrics = cJSON_AddArrayToObject(object, "metrics");
	for (size_t i = 0; i < METRICS; i++) {
		cJSON *metric = skep_json_add_row(metrics);
		cJSON_AddStringToObject(metric, "metric", METRIC[i].name);
		cJSON_AddStringToObject(metric, "unit", UNIT_NAME[METRIC[i].unit]);
		skep_json_add_number(metric, "first", c->side[0].value[i]);
		skep_json_add_number(metric, "second", c->side[1].value[i]);
		skep_json_add_number(metric, "difference_percent", difference(c, i));
	}
	skep_time_parts_add_json(
		&c->side[0].parts, &c->side[1].parts, is_real(&c->side[0]) || is_real(&c->side[1]), object);
	return object;
}

/* One scale for both values of a row, so that they can be compared by eye. */
static const char *scale(enum unit unit, double largest, double *ret_factor)
{
	static const char *const bytes[] = {"B", "kB", "MB", "GB", "TB", "PB"};
	*ret_factor = 1;
	if (unit == UNIT_TIME && largest < 1) {
		*ret_factor = 1e3;
		return "ms";
	}
	if (unit != UNIT_BYTES)
		return UNIT_NAME[unit];
	size_t i = 0;
	for (; largest >= 1000 && i + 1 < sizeof bytes / sizeof bytes[0]; i++) {
		largest /= 1000;
		*ret_factor /= 1000;
	}
	return bytes[i];
}

static void format_value(char *ret, size_t size, enum unit unit, const char *shown, double value)
{
	if (isnan(value))
		snprintf(ret, size, "-");
	else if (isinf(value))
		snprintf(ret, size, "diverged");
	else if (unit == UNIT_COUNT || strcmp(shown, "B") == 0)
		snprintf(ret, size, "%.0f", value);
	else if (unit == UNIT_NUMBER || unit == UNIT_USD)
		snprintf(ret, size, "%.6g", value);
	else
		snprintf(ret, size, fabs(value) < 10 ? "%.4f" : fabs(value) < 1000 ? "%.2f" : "%.1f", value);
}

static void print_metric(const struct comparison *c, size_t i, FILE *out)
{
	double value[2] = {c->side[0].value[i], c->side[1].value[i]}, factor;
	const char *unit = scale(METRIC[i].unit, fmax(value[0], value[1]), &factor);
	char text[2][32], percent[32] = "-";
	for (int k = 0; k < 2; k++)
		format_value(text[k], sizeof text[k], METRIC[i].unit, unit, value[k] * factor);
	if (value[0] == value[1])
		snprintf(percent, sizeof percent, "=");
	else if (fabs(difference(c, i)) < 0.05)
		snprintf(percent, sizeof percent, "< 0.1 %%");
	else if (isfinite(difference(c, i)))
		snprintf(percent, sizeof percent, "%+.1f %%", difference(c, i));
	fprintf(out, "  %-22s %-9s %15s %15s %11s\n", METRIC[i].name, unit, text[0], text[1], percent);
}

static void print_side(const struct side *side, const char *which, FILE *out)
{
	fprintf(out, "%-7s run %lld, %s world, %s, seed %s, %s, %s%s%s%s\n", which, (long long)side->id, side->world,
		side->scenario, side->seed, side->device, side->pace ? "paced, " : "", side->shape ? "shaped, " : "",
		side->started, strcmp(side->status, "done") ? ", NOT FINISHED" : "");
}

static void print_differences(const struct skep_differences *settings, FILE *out)
{
	if (settings->same)
		return;
	fprintf(out, "warning: the scenario texts of the two runs differ%s\n", settings->count > 0 ? ":" : "");
	for (size_t i = 0; i < settings->count && i < SKEP_DIFFERENCES_SHOWN; i++) {
		const struct skep_difference *d = &settings->item[i];
		fprintf(out, "  %-30s %.30s | %.30s\n", d->key, d->first[0] ? d->first : "(not set)",
			d->second[0] ? d->second : "(not set)");
	}
	if (settings->count > SKEP_DIFFERENCES_SHOWN)
		fprintf(out, "  and %zu more\n", settings->count - SKEP_DIFFERENCES_SHOWN);
}

/* Alike in both runs it explains no difference. */
static void print_formats(const struct comparison *c, FILE *out)
{
	if (strcmp(c->side[0].format, c->side[1].format) != 0)
		fprintf(out, "warning: the number formats of the two runs differ: %s | %s\n", c->side[0].format,
			c->side[1].format);
}

/* What makes the two runs of different things, though their scenarios may be the same. */
static void print_unlike(const struct comparison *c, FILE *out)
{
	const struct side *first = &c->side[0], *second = &c->side[1];
	double scale[2] = {scale_of(first), scale_of(second)};
	if (scale[0] != scale[1])
		fprintf(out,
			"warning: passes of run %lld are %g times as long as those of the model, of run %lld %g times: "
			"cluster.compute_scale counts in `sim` and in `run --pace` alone\n",
			(long long)first->id, scale[0], (long long)second->id, scale[1]);
	for (int k = 0; k < 2; k++) {
		const struct side *side = &c->side[k], *other = &c->side[1 - k];
		if (side->pace && !side->shape && (!is_real(other) || other->shape))
			fprintf(out,
				"warning: run %lld was paced and not shaped: its messages took the links of the machines that it "
				"ran on, not those of the topology; on one machine, `run --pace --shape` gives it those\n",
				(long long)side->id);
	}
}

static void print_metrics(const struct comparison *c, FILE *out)
{
	const char *heading = NULL;
	for (size_t i = 0; i < METRICS; i++) {
		if (METRIC[i].group != NULL)
			heading = METRIC[i].group;
		if (isnan(c->side[0].value[i]) && isnan(c->side[1].value[i]))
			continue;
		if (heading != NULL)
			fprintf(out, "%s\n", heading);
		heading = NULL;
		print_metric(c, i, out);
	}
}

static void print_text(const struct comparison *c, FILE *out)
{
	char head[2][32];
	for (int k = 0; k < 2; k++)
		snprintf(head[k], sizeof head[k], "run %lld %s", (long long)c->side[k].id, c->side[k].world);
	print_side(&c->side[0], "first", out);
	print_side(&c->side[1], "second", out);
	print_differences(&c->settings, out);
	print_formats(c, out);
	print_unlike(c, out);
	fprintf(out, "\n%-24s %-9s %15s %15s %11s\n", "metric", "unit", head[0], head[1], "difference");
	print_metrics(c, out);
	skep_time_parts_print(&c->side[0].parts, &c->side[1].parts, is_real(&c->side[0]) || is_real(&c->side[1]), out);
	fprintf(out,
		"\nutilisation: compute time over time alive; of a simulated run, the rows of speed are predictions\n");
}

cJSON *skep_compare_json(struct skep_store *store, int64_t first, int64_t second, struct skep_diag *reterr)
{
	struct comparison comparison;
	bool read =
		choose(store, &first, &second, reterr) && read_comparison(store, first, second, &comparison, reterr);
	return skep_store_read_all(store, reterr) && read ? json_of(&comparison) : NULL;
}

bool skep_compare_choose(struct skep_store *store, int64_t *ret_first, int64_t *ret_second, struct skep_diag *reterr)
{
	*ret_first = *ret_second = 0;
	return choose(store, ret_first, ret_second, reterr);
}

bool skep_compare(
	struct skep_store *store, int64_t first, int64_t second, bool json, FILE *out, struct skep_diag *reterr)
{
	struct comparison comparison;
	bool read =
		choose(store, &first, &second, reterr) && read_comparison(store, first, second, &comparison, reterr);
	if (!skep_store_read_all(store, reterr) || !read)
		return false;
	if (json)
		skep_json_print(json_of(&comparison), out);
	else
		print_text(&comparison, out);
	return true;
}
