/* SPDX-License-Identifier: Apache-2.0
 *
 * plot_pareto.c - time against cost: what each choice of settings takes and costs, and which are worth a thought, because no
 * other one is both faster and cheaper (the Pareto front).
 *
 * A small dot is a run, a large one the mean of the runs that differ by their seed alone; the front is that of the means. Time
 * is that to the target loss if any run reached one, with the cost until then, and those that did not are left out and
 * counted; else the time of the whole run, which says something only if all had the same work.
 *
 * A label has the values of the settings that differ between the points. The front is labelled first; a label that would stand
 * on another one is left out.
 */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/database.h"
#include "analysis/plot_script.h"
#include "analysis/settings.h"

#define RUNS_MAX 4096u
#define KEYS_MAX 5u   /* in a label */
#define LOG_FROM 30.0 /* an axis that spans more is logarithmic */
#define KEY_PIXELS 96u

static const char *const TEMPLATE[] = {
#include "pareto.gp.inc"
};

struct dot { /* a run */
	int64_t id;
	bool real;
	double usd, time_s;
	char *settings; /* the scenario's text without its seed */
};

struct point { /* runs that differ by their seed alone */
	uint32_t first, runs;
	bool best, labelled;
	double usd, time_s;
	char label[192];
};

struct figure {
	struct dot *dot;
	struct point *point;
	uint32_t dots, points, keys, late, unpriced; /* late: have not reached their target; unpriced: have no cost */
	bool to_target, more_keys, both_worlds;
	char key[KEYS_MAX][96], scenario[64];
	double low[2], high[2]; /* of cost and time */
};

/* ---- which runs -------------------------------------------------------------------------------------------------- */

/* The text of a scenario is printed key by key: its seed is a line of its own. */
static char *without_seed(const char *text)
{
	char *copy = strdup(text), *line = copy;
	while (line && strncmp(line, "seed:", 5) != 0)
		line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL;
	if (line) {
		size_t length = strcspn(line, "\n");
		memmove(line, line + length + (line[length] == '\n'),
			strlen(line + length + (line[length] == '\n')) + 1);
	}
	return copy;
}

static const char one[] = "SELECT scenario, world, text, time_s, cost_usd, time_to_target_s,"
			  " rounds_planned * microbatches * samples_per_microbatch,"
			  " coalesce(nullif(cost_to_target_usd, 0),"
			  "  (SELECT cost_usd FROM rounds WHERE run = id AND closed_s >= time_to_target_s - 1e-9"
			  "   ORDER BY round LIMIT 1)), id FROM runs";

/* Reads what the statement gives; *work: samples that a run was to do, -1 if they differ. */
static bool read_rows(struct figure *f, sqlite3_stmt *row, bool to_target, int64_t *work, bool *reached)
{
	while (sqlite3_step(row) == SQLITE_ROW && f->dots < RUNS_MAX) {
		bool target = sqlite3_column_type(row, 5) != SQLITE_NULL;
		if (sqlite3_column_type(row, 4) == SQLITE_NULL) {
			f->unpriced++;
			continue;
		}
		*reached = *reached || target;
		if (to_target && !target) {
			f->late++;
			continue;
		}
		struct dot *dot = &f->dot[f->dots++];
		*dot = (struct dot){.id = sqlite3_column_int64(row, 8),
			.real = strcmp(skep_column_text(row, 1), "real") == 0,
			.usd = sqlite3_column_double(row, to_target ? 7 : 4),
			.time_s = sqlite3_column_double(row, to_target ? 5 : 3),
			.settings = without_seed(skep_column_text(row, 2))};
		if (!dot->settings)
			return false;
		int64_t samples = sqlite3_column_int64(row, 6);
		*work = f->dots == 1 || *work == samples ? samples : -1;
		snprintf(f->scenario, sizeof f->scenario, "%s",
			f->dots > 1 && strcmp(f->scenario, skep_column_text(row, 0)) != 0 ? ""
											  : skep_column_text(row, 0));
	}
	return true;
}

static void forget(struct figure *f)
{
	for (uint32_t i = 0; i < f->dots; i++)
		free(f->dot[i].settings);
	f->dots = f->late = f->unpriced = 0;
}

/* All runs of the newest scenario that has any, or those that were named. */
static bool read_once(struct skep_store *store, struct figure *f, const int64_t *run, uint32_t runs, bool to_target,
	int64_t *work, bool *reached, char *reterr, size_t size)
{
	char sql[1024];
	bool good = true;
	static const char usable[] = "status = 'done' AND time_s > 0";
	forget(f);
	if (runs == 0)
		snprintf(sql, sizeof sql,
			"%s WHERE ?1 = 0 AND %s AND scenario ="
			" (SELECT scenario FROM runs WHERE %s AND cost_usd IS NOT NULL ORDER BY id DESC LIMIT 1) ORDER "
			"BY id",
			one, usable, usable);
	else
		snprintf(sql, sizeof sql, "%s WHERE id = ?1 AND %s", one, usable);
	for (uint32_t i = 0; good && i < (runs > 0 ? runs : 1); i++) {
		uint32_t before = f->dots + f->late;
		sqlite3_stmt *row = skep_store_query(store, sql, runs > 0 ? run[i] : 0, 0, reterr, size);
		good = row != NULL && read_rows(f, row, to_target, work, reached);
		sqlite3_finalize(row);
		if (good && runs > 0 && f->dots + f->late == before) {
			struct skep_plot_run there;
			if (skep_plot_read_run(store, run[i], &there, reterr, size))
				snprintf(reterr, size,
					"run %lld is not done, or has no cost: the price of a machine is not known",
					(long long)run[i]);
			return false;
		}
	}
	return good;
}

static bool read_runs(struct skep_store *store, struct figure *f, const int64_t *run, uint32_t runs, const char *metric,
	char *reterr, size_t size)
{
	int64_t work = 0;
	bool reached = false, asked = metric && strcmp(metric, "time_to_target_s") == 0;
	if (metric && !asked && strcmp(metric, "time_s") != 0) {
		snprintf(reterr, size, "--metric %s: of pareto it is time_s or time_to_target_s", metric);
		return false;
	}
	if (!read_once(store, f, run, runs, false, &work, &reached, reterr, size))
		return false;
	f->to_target = asked || (!metric && reached);
	if (f->to_target && !read_once(store, f, run, runs, true, &work, &reached, reterr, size))
		return false;
	if (f->dots == 0)
		snprintf(reterr, size,
			f->late > 0 ? "no run reached its target loss: --metric time_s shows whole runs"
				    : "no run that is done has a cost: give `price` or `prices` to all machines of the "
				      "topology");
	else if (!f->to_target && work < 0)
		snprintf(reterr, size,
			"these runs have different numbers of samples to do, so their times say nothing: name some "
			"that have the same");
	return f->dots > 0 && (f->to_target || work >= 0);
}

/* ---- points ------------------------------------------------------------------------------------------------------ */

static void group_dots(struct figure *f)
{
	for (uint32_t i = 0; i < f->dots; i++) {
		uint32_t p = 0;
		while (p < f->points && (f->dot[f->point[p].first].real != f->dot[i].real ||
						strcmp(f->dot[f->point[p].first].settings, f->dot[i].settings) != 0))
			p++;
		struct point *point = &f->point[p];
		if (p == f->points)
			f->point[f->points++] = (struct point){.first = i};
		point->runs++;
		point->usd += (f->dot[i].usd - point->usd) / point->runs;
		point->time_s += (f->dot[i].time_s - point->time_s) / point->runs;
	}
}

static int by_cost(const void *a, const void *b)
{
	const struct point *x = a, *y = b;
	int cost = (x->usd > y->usd) - (x->usd < y->usd), time = (x->time_s > y->time_s) - (x->time_s < y->time_s);
	return cost != 0 ? cost : time != 0 ? time : (x->first > y->first) - (x->first < y->first);
}

/* Sorted by cost, so that the front falls. */
static void find_front(struct figure *f)
{
	qsort(f->point, f->points, sizeof *f->point, by_cost);
	double least_s = INFINITY;
	for (uint32_t p = 0; p < f->points; p++) {
		f->point[p].best = f->point[p].time_s < least_s;
		least_s = fmin(least_s, f->point[p].time_s);
	}
}

static uint32_t key_number(struct figure *f, const char *key)
{
	uint32_t k = 0;
	while (k < f->keys && strcmp(f->key[k], key) != 0)
		k++;
	if (k == KEYS_MAX) {
		f->more_keys = true;
		return k;
	}
	if (k == f->keys)
		snprintf(f->key[f->keys++], sizeof f->key[0], "%.95s", key);
	return k;
}

/* Who serves which stage has no room in a label; the method says that it was given. */
static bool is_shown(const char *key)
{
	return strncmp(key, "cluster.allocation.stage_of", strlen("cluster.allocation.stage_of")) != 0;
}

/* A file is known by its name alone. */
static void short_value(const char *value, char *ret, size_t size)
{
	const char *slash = strrchr(value, '/'), *name = slash ? slash + 1 : value;
	size_t length = strlen(name);
	if (length > 5 && strcmp(name + length - 5, ".yaml") == 0)
		length -= 5;
	snprintf(ret, size, "%.*s", (int)(length < size ? length : size - 1), name);
}

/* The values of a point in which it or another one differs from the first. */
static void label_point(struct figure *f, struct point *point, char base[KEYS_MAX][64])
{
	struct skep_differences d;
	char value[KEYS_MAX][64];
	memcpy(value, base, sizeof value);
	skep_settings_compare(f->dot[f->point[0].first].settings, f->dot[point->first].settings, &d);
	for (size_t i = 0; i < d.count && i < SKEP_DIFFERENCES_SHOWN; i++) {
		uint32_t k = is_shown(d.item[i].key) ? key_number(f, d.item[i].key) : KEYS_MAX;
		if (k < KEYS_MAX)
			short_value(d.item[i].second, value[k], sizeof value[k]);
	}
	size_t used = 0;
	for (uint32_t k = 0; k < f->keys && used < sizeof point->label - 1; k++)
		used += (size_t)snprintf(point->label + used, sizeof point->label - used, "%s%.24s", k > 0 ? " / " : "",
			value[k][0] ? value[k] : "-");
	used = strlen(point->label);
	if (f->both_worlds)
		snprintf(point->label + used, sizeof point->label - used, "%s%s", used ? " / " : "",
			f->dot[point->first].real ? "real" : "simulated");
	else if (f->points == 1)
		snprintf(point->label, sizeof point->label, "%u run%s", point->runs, point->runs > 1 ? "s" : "");
}

static void label_points(struct figure *f)
{
	char base[KEYS_MAX][64] = {""};
	bool worlds[2] = {false};
	for (uint32_t p = 0; p < f->points; p++) { /* which keys, and what the first point has there */
		struct skep_differences d;
		worlds[f->dot[f->point[p].first].real] = true;
		skep_settings_compare(f->dot[f->point[0].first].settings, f->dot[f->point[p].first].settings, &d);
		f->more_keys = f->more_keys || d.count > SKEP_DIFFERENCES_SHOWN;
		for (size_t i = 0; i < d.count && i < SKEP_DIFFERENCES_SHOWN; i++) {
			uint32_t k = is_shown(d.item[i].key) ? key_number(f, d.item[i].key) : KEYS_MAX;
			if (k < KEYS_MAX)
				short_value(d.item[i].first, base[k], sizeof base[k]);
		}
	}
	f->both_worlds = worlds[0] && worlds[1];
	for (uint32_t p = 0; p < f->points; p++)
		label_point(f, &f->point[p], base);
}

/* ---- the script --------------------------------------------------------------------------------------------------- */

static bool is_log(const struct figure *f, int axis)
{
	return f->low[axis] > 0 && f->high[axis] / f->low[axis] > LOG_FROM;
}

static void find_ranges(struct figure *f)
{
	f->low[0] = f->low[1] = INFINITY;
	for (uint32_t i = 0; i < f->dots; i++)
		for (int axis = 0; axis < 2; axis++) {
			double value = axis == 0 ? f->dot[i].usd : f->dot[i].time_s;
			f->low[axis] = fmin(f->low[axis], value);
			f->high[axis] = fmax(f->high[axis], value);
		}
}

/* Where in the picture a point is, from 0 to 1. */
static double place(const struct figure *f, int axis, double value)
{
	double low = f->low[axis], high = f->high[axis];
	if (!(high > low))
		return 0.5;
	return is_log(f, axis) ? log(value / low) / log(high / low) : (value - low) / (high - low);
}

/* The front first, and within it the cheapest. */
static void choose_labels(struct figure *f)
{
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t p = 0; p < f->points; p++) {
			struct point *point = &f->point[p];
			bool room = point->best == (pass == 0);
			for (uint32_t q = 0; room && q < f->points; q++)
				room = !f->point[q].labelled ||
				       fabs(place(f, 1, f->point[q].time_s) - place(f, 1, point->time_s)) > 0.045 ||
				       fabs(place(f, 0, f->point[q].usd) - place(f, 0, point->usd)) > 0.3;
			point->labelled = point->labelled || room;
		}
}

/* A margin on each side, and more of it to the right, where labels stand. */
static void write_range(const struct figure *f, int axis, double unit, FILE *script)
{
	double low = f->low[axis] * unit, high = f->high[axis] * unit, right = axis == 0 ? 0.3 : 0.1;
	const char *name = axis == 0 ? "x" : "y";
	if (is_log(f, axis)) {
		double span = log(high / low);
		fprintf(script, "set logscale %s\nset %srange [%.9g:%.9g]\n", name, name, low * exp(-0.06 * span),
			high * exp(right * span));
	} else {
		double span = high > low ? high - low : fmax(high, 1e-9);
		fprintf(script, "set %srange [%.9g:%.9g]\n", name, fmax(low - 0.06 * span, 0), high + right * span);
	}
}

/* The last part of a key says enough. */
static void write_keys(const struct figure *f, FILE *script)
{
	char text[512] = "";
	for (uint32_t k = 0; k < f->keys; k++) {
		const char *dot = strrchr(f->key[k], '.');
		size_t used = strlen(text);
		snprintf(text + used, sizeof text - used, "%s%s", k > 0 ? " / " : "", dot ? dot + 1 : f->key[k]);
	}
	if (f->both_worlds)
		snprintf(text + strlen(text), sizeof text - strlen(text), "%sworld", f->keys > 0 ? " / " : "");
	fprintf(script, "Keys = ");
	skep_script_string(script, text);
	fprintf(script, ".%s\n", f->more_keys ? "' and more'" : "''");
}

static void write_words(const struct figure *f, const char *unit, FILE *script)
{
	char title[160];
	const char *what = f->to_target ? "time to the target loss against cost" : "time against cost";
	snprintf(title, sizeof title, "%s%s%s", f->scenario, f->scenario[0] ? ": " : "", what);
	if (!f->scenario[0])
		title[0] = (char)toupper((unsigned char)title[0]);
	fprintf(script, "set title ");
	skep_script_string(script, title);
	fprintf(script, "\nset xlabel 'cost%s (USD)'\nset ylabel '%s (%s)'\n", f->to_target ? " until then" : "",
		f->to_target ? "time to the target loss" : "time of the run", unit);
	fprintf(script, "Runs = '%u run%s%s", f->dots, f->dots == 1 ? "" : "s",
		f->points < f->dots ? ", those that differ by their seed joined in their mean" : "");
	if (f->late > 0)
		fprintf(script, "; %u did not reach their target", f->late);
	if (f->unpriced > 0)
		fprintf(script, "; %u without a price are left out", f->unpriced);
	fprintf(script, "'\n");
}

static void write_points(const struct figure *f, double unit, FILE *script)
{
	fprintf(script, "$dots << END\n");
	for (uint32_t i = 0; i < f->dots; i++)
		fprintf(script, "%.9g %.9g\n", f->dot[i].usd, f->dot[i].time_s * unit);
	fprintf(script, "END\n$points << END\n");
	for (uint32_t p = 0; p < f->points; p++)
		fprintf(script, "%.9g %.9g %d\n", f->point[p].usd, f->point[p].time_s * unit, f->point[p].best);
	fprintf(script, "END\n$front << END\n");
	for (uint32_t p = 0; p < f->points; p++)
		if (f->point[p].best)
			fprintf(script, "%.9g %.9g\n", f->point[p].usd, f->point[p].time_s * unit);
	fprintf(script, "END\n");
	for (uint32_t p = 0; p < f->points; p++) {
		if (!f->point[p].labelled)
			continue;
		fprintf(script, "set label ");
		skep_script_string(script, f->point[p].label);
		fprintf(script, " at first %.9g, first %.9g left offset 0.9, 0.6 front font ',11' textcolor rgb '%s'\n",
			f->point[p].usd, f->point[p].time_s * unit, f->point[p].best ? "black" : "gray40");
	}
}

static bool make(struct skep_store *store, struct figure *f, const int64_t *run, uint32_t runs,
	struct skep_picture *picture, char *reterr, size_t size)
{
	if (!read_runs(store, f, run, runs, picture->metric, reterr, size))
		return false;
	group_dots(f);
	find_front(f);
	label_points(f);
	find_ranges(f);
	choose_labels(f);
	struct skep_plot_unit unit = skep_plot_unit(f->high[1]);
	picture->height += KEY_PIXELS;
	write_words(f, unit.name, picture->script);
	write_keys(f, picture->script);
	write_range(f, 0, 1, picture->script);
	write_range(f, 1, unit.per_s, picture->script);
	write_points(f, unit.per_s, picture->script);
	skep_script_lines(picture->script, TEMPLATE, sizeof TEMPLATE / sizeof TEMPLATE[0]);
	return true;
}

bool skep_plot_pareto(struct skep_store *store, const int64_t *run, uint32_t runs, struct skep_picture *picture,
	char *reterr, size_t size)
{
	struct figure f = {.dot = calloc(RUNS_MAX, sizeof *f.dot), .point = calloc(RUNS_MAX, sizeof *f.point)};
	bool good = f.dot != NULL && f.point != NULL;
	if (!good)
		snprintf(reterr, size, "no memory for the plot");
	good = good && make(store, &f, run, runs, picture, reterr, size);
	forget(&f);
	free(f.dot);
	free(f.point);
	return good;
}
