/* SPDX-License-Identifier: Apache-2.0
 *
 * plot_sweep.c - one figure of a sweep against one of its keys: a line for each choice of the other keys, with the standard
 * deviation over the seeds as error bars.
 *
 * Decides which key that is: of those whose values are numbers, or quantities of one dimension, the one with most values;
 * else the first, whose values then stand side by side in the order given. An axis whose values are positive and span more
 * than a factor of 30 is logarithmic. A point without a run that has the figure is left out.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/plot/plot_script.h"
#include "analysis/store/database.h"
#include "analysis/summary/sweep_table.h"
#include "base/reader.h"

#define LINES_MAX 8u  /* colours that differ */
#define LABELS_MAX 12 /* values that are named at the axis one by one */
#define KEY_PIXELS 24u
#define LABEL_SHARE 0.055 /* of the axis, that a label needs */
#define LOG_SPAN 30

static const char *const TEMPLATE[] = {
#include "sweep.gp.inc"
};

static const char *const LABEL[] = {
	[SKEP_SWEEP_THROUGHPUT] = "throughput (samples per second)",
	[SKEP_SWEEP_TIME] = "time of the run (s)",
	[SKEP_SWEEP_TO_TARGET] = "time until the target loss (s)",
	[SKEP_SWEEP_COST] = "cost of the run (USD)",
	[SKEP_SWEEP_LOSS] = "loss at the end",
	[SKEP_SWEEP_UTILISATION] = "utilisation (%)",
	[SKEP_SWEEP_PASSES] = "passes of a round (s)",
	[SKEP_SWEEP_REDUCTION] = "reduction of a round (s)",
	[SKEP_SWEEP_VALIDATION] = "validation loss at the end",
	[SKEP_SWEEP_COST_TO_TARGET] = "cost until the target loss (USD)",
};
static_assert(sizeof LABEL / sizeof LABEL[0] == SKEP_SWEEP_METRICS, "a figure without a label");

struct figure {
	struct skep_sweep_table table;
	enum skep_sweep_metric metric;
	uint32_t key;             /* of the x axis */
	bool number;              /* the values of the key are numbers, in x */
	double *x;                /* [points]; meaningful if number */
	uint32_t values;          /* of that key */
	uint32_t lines, *line_of; /* [points] */
	double low_x, high_x, low_y, high_y;
};

/* ---- what is drawn ----------------------------------------------------------------------------------------------- */

static bool find_metric(const char *name, enum skep_sweep_metric *ret, struct skep_diag *reterr)
{
	*ret = SKEP_SWEEP_THROUGHPUT;
	for (int m = 0; name != NULL && m < SKEP_SWEEP_METRICS; m++)
		if (strcmp(name, skep_sweep_metric_key((enum skep_sweep_metric)m)) == 0) {
			*ret = (enum skep_sweep_metric)m;
			return true;
		}
	if (name == NULL)
		return true;
	char known[512] = "";
	size_t used = 0;
	for (int m = 0; m < SKEP_SWEEP_METRICS && used < sizeof known; m++)
		used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", m ? ", " : "",
			skep_sweep_metric_key((enum skep_sweep_metric)m));
	return skep_fail(reterr, "--metric %.60s: expected %s", name, known);
}

static const char *value(const struct skep_sweep_table *t, uint32_t point, uint32_t key)
{
	return t->value[(size_t)point * t->keys + key];
}

/* As a number, or a quantity of that dimension. */
static bool parse(const char *text, int dimension, double *ret)
{
	const char *expected;
	char *end;
	if (dimension >= 0)
		return skep_quantity_parse(text, (enum skep_dimension)dimension, ret, &expected);
	*ret = strtod(text, &end);
	return end != text && *end == '\0' && isfinite(*ret);
}

static bool all_numbers(const struct skep_sweep_table *t, uint32_t key, double *ret)
{
	for (int dimension = -1; dimension <= SKEP_PRICE; dimension++) {
		uint32_t p = 0;
		while (p < t->points && parse(value(t, p, key), dimension, &ret[p]))
			p++;
		if (p == t->points)
			return true;
	}
	return false;
}

/* The first point with this value: those of a key, counted, are numbers for an axis of words. */
static uint32_t first_with(const struct skep_sweep_table *t, uint32_t point, uint32_t key)
{
	uint32_t p = 0;
	while (strcmp(value(t, p, key), value(t, point, key)) != 0)
		p++;
	return p;
}

static uint32_t count_values(const struct skep_sweep_table *t, uint32_t key, double *ret_place)
{
	uint32_t count = 0;
	for (uint32_t p = 0; p < t->points; p++) {
		uint32_t first = first_with(t, p, key);
		if (ret_place != NULL)
			ret_place[p] = first == p ? count : ret_place[first];
		count += first == p;
	}
	return count;
}

static bool choose_key(struct figure *f, struct skep_diag *reterr)
{
	const struct skep_sweep_table *t = &f->table;
	if (t->keys == 0)
		return skep_fail(reterr, "sweep %lld varies nothing but the seed", (long long)t->sweep);
	for (uint32_t k = 0; k < t->keys; k++) {
		uint32_t values = count_values(t, k, NULL);
		if (!all_numbers(t, k, f->x) || (f->number && values <= f->values))
			continue;
		f->number = true;
		f->key = k;
		f->values = values;
	}
	if (f->number)
		all_numbers(t, f->key, f->x);
	else
		f->values = count_values(t, 0, f->x);
	return true;
}

static bool same_line(const struct figure *f, uint32_t a, uint32_t b)
{
	for (uint32_t k = 0; k < f->table.keys; k++)
		if (k != f->key && strcmp(value(&f->table, a, k), value(&f->table, b, k)) != 0)
			return false;
	return true;
}

static bool find_lines(struct figure *f, struct skep_diag *reterr)
{
	for (uint32_t p = 0; p < f->table.points; p++) {
		uint32_t other = 0;
		while (other < p && !same_line(f, other, p))
			other++;
		f->line_of[p] = other < p ? f->line_of[other] : f->lines++;
		if (f->lines <= LINES_MAX)
			continue;
		return skep_fail(reterr,
			"more than %u lines for one picture: sweep fewer values besides those of %.100s", LINES_MAX,
			f->table.key[f->key]);
	}
	return true;
}

static bool find_ranges(struct figure *f, struct skep_diag *reterr)
{
	f->low_x = f->low_y = INFINITY;
	f->high_x = f->high_y = -INFINITY;
	for (uint32_t p = 0; p < f->table.points; p++) {
		double mean = f->table.row[p].figure[f->metric].mean * skep_sweep_metric_scale(f->metric);
		if (isnan(mean))
			continue;
		f->low_x = fmin(f->low_x, f->x[p]);
		f->high_x = fmax(f->high_x, f->x[p]);
		f->low_y = fmin(f->low_y, mean);
		f->high_y = fmax(f->high_y, mean);
	}
	if (f->low_x <= f->high_x)
		return true;
	return skep_fail(reterr, "no run of sweep %lld has a %s: choose another figure with --metric",
		(long long)f->table.sweep, skep_sweep_metric_key(f->metric));
}

/* ---- the script -------------------------------------------------------------------------------------------------- */

static bool wide(double low, double high)
{
	return low > 0 && high > LOG_SPAN * low;
}

/* On an axis of numbers, too near to a value that is labelled: it gets a tick alone. */
static bool crowded(const struct figure *f, const double *labelled, uint32_t labels, double x)
{
	bool logarithmic = wide(f->low_x, f->high_x);
	double range = logarithmic ? log(f->high_x / f->low_x) : f->high_x - f->low_x;
	for (uint32_t i = 0; i < labels; i++)
		if (fabs(logarithmic ? log(x / labelled[i]) : x - labelled[i]) < LABEL_SHARE * range)
			return true;
	return false;
}

static void write_labels(const struct figure *f, FILE *script)
{
	double labelled[LABELS_MAX];
	uint32_t labels = 0;
	bool first = true;
	if (f->values > LABELS_MAX && f->number)
		return;
	fprintf(script, "set xtics (");
	for (uint32_t p = 0; p < f->table.points; p++) {
		if (first_with(&f->table, p, f->key) != p)
			continue;
		bool bare = f->number && crowded(f, labelled, labels, f->x[p]);
		if (f->number && !bare)
			labelled[labels++] = f->x[p];
		fprintf(script, "%s", first ? "" : ", ");
		skep_script_string(script, bare ? "" : value(&f->table, p, f->key));
		fprintf(script, " %.9g", f->x[p]);
		first = false;
	}
	fprintf(script, ")\n");
}

static void write_axes(const struct figure *f, FILE *script)
{
	double room = f->number ? 0.04 * (f->high_x - f->low_x) : 0.5;
	room = room > 0 ? room : 1;
	fprintf(script, "set xlabel ");
	skep_script_string(script, f->table.key[f->key]);
	fprintf(script, "\nset ylabel '%s'\nset format y '%%g'\n", LABEL[f->metric]);
	write_labels(f, script);
	if (f->number && wide(f->low_x, f->high_x))
		fprintf(script, "set logscale x\nset xrange [%.9g:%.9g]\n", f->low_x / 1.2, f->high_x * 1.2);
	else
		fprintf(script, "set xrange [%.9g:%.9g]\n", f->low_x - room, f->high_x + room);
	if (wide(f->low_y, f->high_y))
		fprintf(script, "set logscale y\n");
	else
		fprintf(script, "set yrange [%s:*]\n", f->low_y >= 0 ? "0" : "*");
}

static int compare_x(const void *a, const void *b, void *context)
{
	const double *x = context, first = x[*(const uint32_t *)a], second = x[*(const uint32_t *)b];
	return (first > second) - (first < second);
}

static void write_line(const struct figure *f, uint32_t line, uint32_t *order, FILE *script)
{
	uint32_t count = 0;
	for (uint32_t p = 0; p < f->table.points; p++)
		if (f->line_of[p] == line)
			order[count++] = p;
	qsort_r(order, count, sizeof *order, compare_x, f->x);
	for (uint32_t i = 0; i < count; i++) {
		const struct skep_sweep_figure *figure = &f->table.row[order[i]].figure[f->metric];
		double factor = skep_sweep_metric_scale(f->metric), spread = isnan(figure->spread) ? 0 : figure->spread;
		if (figure->runs > 0)
			fprintf(script, "%.9g %.9g %.9g\n", f->x[order[i]], figure->mean * factor, spread * factor);
	}
	fprintf(script, "\n\n");
}

/* The other keys with their values, and how many runs a point of the line has. */
static void write_title(const struct figure *f, uint32_t line, FILE *script)
{
	const struct skep_sweep_table *t = &f->table;
	char title[512] = "", runs[48];
	size_t used = 0;
	uint32_t least = UINT32_MAX, most = 0, some = 0;
	for (uint32_t p = t->points; p-- > 0;) {
		uint32_t n = t->row[p].figure[f->metric].runs;
		if (f->line_of[p] != line)
			continue;
		some = p;
		least = n < least ? n : least;
		most = n > most ? n : most;
	}
	for (uint32_t k = 0; k < t->keys && used < sizeof title; k++)
		if (k != f->key && count_values(t, k, NULL) > 1)
			used += (size_t)snprintf(title + used, sizeof title - used, "%s%s %s", used ? ", " : "",
				t->key[k], value(t, some, k));
	if (least == most)
		snprintf(runs, sizeof runs, "%u run%s a point", most, most == 1 ? "" : "s");
	else
		snprintf(runs, sizeof runs, "%u to %u runs a point", least, most);
	if (used < sizeof title)
		snprintf(title + used, sizeof title - used, "%s%s", used ? ": " : "", runs);
	fprintf(script, "Title[%u] = ", line + 1);
	skep_script_string(script, title);
	fprintf(script, "\nColour[%u] = '%s'\n", line + 1, skep_plot_colour(line));
}

static void write_figure(const struct figure *f, uint32_t *order, FILE *script)
{
	char title[160];
	uint32_t most = 0;
	for (uint32_t p = 0; p < f->table.points; p++)
		most = f->table.row[p].figure[f->metric].runs > most ? f->table.row[p].figure[f->metric].runs : most;
	snprintf(title, sizeof title, "%s%s", f->table.scenario,
		most > 1 ? ": mean and standard deviation over the seeds" : "");
	fprintf(script, "set title ");
	skep_script_string(script, title);
	fprintf(script, "\n");
	write_axes(f, script);
	fprintf(script, "$sweep << END\n");
	for (uint32_t line = 0; line < f->lines; line++)
		write_line(f, line, order, script);
	fprintf(script, "END\nStyle = '%s'\nlines = %u\narray Title[%u]\narray Colour[%u]\n",
		f->number ? "linespoints" : "points", f->lines, f->lines, f->lines);
	for (uint32_t line = 0; line < f->lines; line++)
		write_title(f, line, script);
	skep_script_lines(script, TEMPLATE, sizeof TEMPLATE / sizeof TEMPLATE[0]);
}

static void list_runs(struct skep_store *store, int64_t sweep, struct skep_picture *picture, struct skep_diag *reterr)
{
	sqlite3_stmt *row = skep_store_query(store,
		"SELECT run FROM sweep_runs WHERE sweep = ?1 AND run IS NOT NULL ORDER BY number", sweep, 0, reterr);
	while (row != NULL && skep_store_row(store, row))
		skep_picture_drew(picture, sqlite3_column_int64(row, 0));
	sqlite3_finalize(row);
}

bool skep_plot_sweep(struct skep_store *store, const int64_t *run, uint32_t runs, struct skep_picture *picture,
	struct skep_diag *reterr)
{
	struct figure f = {0};
	int64_t sweep = 0;
	if (runs > 1)
		return skep_fail(reterr, "this picture shows the sweep of one run, not of %u", runs);
	if (!find_metric(picture->metric, &f.metric, reterr) ||
		(runs == 1 && (sweep = skep_sweep_of_run(store, run[0], reterr)) == 0) ||
		!skep_sweep_table_read(store, sweep, &f.table, reterr))
		return false;
	f.x = calloc(f.table.points, sizeof *f.x);
	f.line_of = calloc(f.table.points, sizeof *f.line_of);
	uint32_t *order = calloc(f.table.points, sizeof *order);
	bool good = f.x != NULL && f.line_of != NULL && order != NULL;
	if (!good)
		skep_fail(reterr, "no memory for the plot");
	good = good && choose_key(&f, reterr) && find_lines(&f, reterr) && find_ranges(&f, reterr);
	if (good) {
		picture->height += KEY_PIXELS * f.lines;
		write_figure(&f, order, picture->script);
		list_runs(store, f.table.sweep, picture, reterr);
	}
	free(order);
	free(f.line_of);
	free(f.x);
	skep_sweep_table_finish(&f.table);
	return good;
}
