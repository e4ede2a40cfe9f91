/* SPDX-License-Identifier: Apache-2.0
 *
 * plot_pareto.c - time against cost: what each choice of settings takes and costs, and which are worth a thought, because no
 * other one is both faster and cheaper (the Pareto front).
 *
 * A small dot is a run, a large one the mean of the runs of one world that differ by their seed alone; the front is that of the
 * means. Each world has a front of its own: a prediction does not beat what it predicts. Time is that to the target loss if
 * any run reached one, with the cost until then, and those that did not are left out and counted; else the time of the whole
 * run, which says something only if all had the same work, and learnt as much by it: if final losses differ by more than seeds
 * make them differ, the picture says so.
 *
 * A label has the settings that differ between the points. The front is labelled first; a label stands where it covers no
 * other, no large dot and the fewest small ones: beside its dot, else farther up or down at the end of a line, else it is
 * left out and counted. What it does cover shows through its ground.
 */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/plot/plot_script.h"
#include "analysis/store/database.h"
#include "analysis/store/settings.h"

#define RUNS_MAX 4096u
#define KEYS_MAX 5u   /* in a label */
#define LOG_FROM 30.0 /* an axis that spans more is logarithmic */
#define KEY_PIXELS 90u
#define LOSS_NOISE 0.02 /* of the loss: what seeds may do where no two runs differ by them alone */
#define LETTER 0.0088   /* width of a letter of a label, of the range of the runs; and height of its line */
#define LINE 0.034
#define HIDDEN 0.004 /* so near to the middle of a large dot a small one is not seen; of the same range */

static const char *const TEMPLATE[] = {
#include "pareto.gp.inc"
};

struct dot { /* a run */
	int64_t id;
	bool real;
	char world[48];           /* in words */
	double usd, time_s, loss; /* loss: the last one; NAN: none */
	char *settings;           /* the scenario's text without what does not tell runs apart */
};

struct point { /* runs that differ by their seed alone */
	uint32_t first, runs;
	bool best, labelled;
	double usd, time_s;
	double loss, least_loss, most_loss; /* mean, and over the runs; NAN: none */
	int corner;                         /* where its label is, see CORNER */
	char label[192];
};

struct figure {
	struct dot *dot;
	struct point *point;
	uint32_t dots, points, keys, late, unpriced; /* late: have not reached their target; unpriced: have no cost */
	bool to_target, more_keys, any_beaten, both_worlds,
		first_world; /* first: of the only front, or of the simulated one */
	char key[KEYS_MAX][96], scenario[64];
	double low[2], high[2]; /* of cost and time */
};

/* ---- which runs -------------------------------------------------------------------------------------------------- */

/* Without its seed and what was searched for. The text of a scenario is printed key by key: each is a line of its own, with those
 * behind it that stand farther in. */
static char *what_tells_apart(const char *text)
{
	char *copy = strdup(text);
	bool out = false;
	for (char *line = copy; line && *line;) {
		size_t length = strcspn(line, "\n") + (strchr(line, '\n') != NULL);
		out = strncmp(line, "seed:", 5) == 0 || strncmp(line, "plan:", 5) == 0 || (out && *line == ' ');
		if (out)
			memmove(line, line + length, strlen(line + length) + 1);
		else
			line += length;
	}
	return copy;
}

static const char one[] = "SELECT scenario, world, text, time_s, cost_usd, time_to_target_s,"
			  " rounds_planned,"
			  " coalesce(nullif(cost_to_target_usd, 0),"
			  "  (SELECT cost_usd FROM rounds WHERE run = id AND closed_s >= time_to_target_s - 1e-9"
			  "   ORDER BY round LIMIT 1)), id, device, pace, shape, arithmetic, final_loss,"
			  " microbatches, samples_per_microbatch FROM runs";

static void name_world(sqlite3_stmt *row, struct dot *dot)
{
	struct skep_plot_run run = {.pace = sqlite3_column_int(row, 10), .shape = sqlite3_column_int(row, 11)};
	snprintf(run.world, sizeof run.world, "%s", skep_column_text(row, 1));
	snprintf(run.device, sizeof run.device, "%s", skep_column_text(row, 9));
	snprintf(run.arithmetic, sizeof run.arithmetic, "%s", skep_column_text(row, 12));
	skep_plot_world(&run, dot->world, sizeof dot->world);
	dot->loss = skep_column_real(row, 13);
}

/* Reads what the statement gives; *work: samples that a run was to do, -1 if they differ. */
static bool read_rows(
	struct skep_store *store, struct figure *f, sqlite3_stmt *row, bool to_target, int64_t *work, bool *reached)
{
	while (skep_store_row(store, row) && f->dots < RUNS_MAX) {
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
			.settings = what_tells_apart(skep_column_text(row, 2))};
		if (!dot->settings)
			return false;
		name_world(row, dot);
		int64_t samples = sqlite3_column_int64(row, 15) * skep_settings_microbatches(skep_column_text(row, 2),
									  sqlite3_column_double(row, 6),
									  sqlite3_column_double(row, 14));
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
	int64_t *work, bool *reached, struct skep_diag *reterr)
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
		sqlite3_stmt *row = skep_store_query(store, sql, runs > 0 ? run[i] : 0, 0, reterr);
		good = row != NULL && read_rows(store, f, row, to_target, work, reached);
		sqlite3_finalize(row);
		if (good && runs > 0 && f->dots + f->late == before) {
			struct skep_plot_run there;
			return skep_plot_read_run(store, run[i], &there, reterr) &&
			       skep_fail(reterr,
				       "run %lld is not done, or has no cost: the price of a machine is not known",
				       (long long)run[i]);
		}
	}
	return good;
}

static bool read_runs(struct skep_store *store, struct figure *f, const int64_t *run, uint32_t runs, const char *metric,
	struct skep_diag *reterr)
{
	int64_t work = 0;
	bool reached = false, asked = metric && strcmp(metric, "time_to_target_s") == 0;
	if (metric && !asked && strcmp(metric, "time_s") != 0)
		return skep_fail(reterr, "--metric %s: of pareto it is time_s or time_to_target_s", metric);
	if (!read_once(store, f, run, runs, false, &work, &reached, reterr))
		return false;
	f->to_target = asked || (!metric && reached);
	if (f->to_target && !read_once(store, f, run, runs, true, &work, &reached, reterr))
		return false;
	if (f->dots == 0)
		skep_fail(reterr,
			f->late > 0
				? "no run reached its target loss: --metric time_s shows whole runs"
				: "no run that is done has a cost: runs that were interrupted are left out, and all machines of "
				  "the topology are to have `price` or `prices`");
	else if (!f->to_target && work < 0)
		skep_fail(reterr,
			"these runs have different numbers of samples to do, so their times say nothing: name some "
			"that have the same");
	return f->dots > 0 && (f->to_target || work >= 0);
}

/* ---- points ------------------------------------------------------------------------------------------------------ */

static void group_dots(struct figure *f)
{
	for (uint32_t i = 0; i < f->dots; i++) {
		uint32_t p = 0;
		while (p < f->points && (strcmp(f->dot[f->point[p].first].world, f->dot[i].world) != 0 ||
						strcmp(f->dot[f->point[p].first].settings, f->dot[i].settings) != 0))
			p++;
		struct point *point = &f->point[p];
		if (p == f->points)
			f->point[f->points++] =
				(struct point){.first = i, .least_loss = INFINITY, .most_loss = -INFINITY};
		point->runs++;
		point->loss += (f->dot[i].loss - point->loss) / point->runs;
		point->least_loss = fmin(point->least_loss, f->dot[i].loss);
		point->most_loss = fmax(point->most_loss, f->dot[i].loss);
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

/* Sorted by cost, so that the fronts fall. */
static void find_fronts(struct figure *f)
{
	qsort(f->point, f->points, sizeof *f->point, by_cost);
	double least_s[2] = {INFINITY, INFINITY}; /* of each world */
	for (uint32_t p = 0; p < f->points; p++) {
		double *least = &least_s[f->dot[f->point[p].first].real];
		f->point[p].best = f->point[p].time_s < *least;
		f->any_beaten = f->any_beaten || !f->point[p].best;
		*least = fmin(*least, f->point[p].time_s);
	}
	f->both_worlds = isfinite(least_s[0]) && isfinite(least_s[1]);
	f->first_world = !isfinite(least_s[0]);
}

/* Do the points of a front end at other losses than the seeds of one point do? *ret_least, *ret_most: of all points. */
static bool losses_differ(const struct figure *f, double *ret_least, double *ret_most)
{
	double seeds = 0;
	bool differ = false;
	*ret_least = INFINITY, *ret_most = -INFINITY;
	for (uint32_t p = 0; p < f->points; p++) {
		const struct point *point = &f->point[p];
		if (isnan(point->loss))
			continue;
		seeds = fmax(seeds, point->runs > 1 ? point->most_loss - point->least_loss : 0);
		*ret_least = fmin(*ret_least, point->loss);
		*ret_most = fmax(*ret_most, point->loss);
	}
	seeds = seeds > 0 ? seeds : LOSS_NOISE * *ret_least;
	for (uint32_t p = 0; p < f->points; p++)
		for (uint32_t q = 0; q < p; q++)
			differ = differ || (f->dot[f->point[p].first].real == f->dot[f->point[q].first].real &&
						   fabs(f->point[p].loss - f->point[q].loss) > seeds);
	return differ;
}

static void note_key(struct figure *f, const char *key)
{
	uint32_t k = 0;
	while (k < f->keys && strcmp(f->key[k], key) != 0)
		k++;
	if (k == KEYS_MAX)
		f->more_keys = true;
	else if (k == f->keys)
		snprintf(f->key[f->keys++], sizeof f->key[0], "%.95s", key);
}

/* Who serves which stage has no room in a label; the method says that it was given. */
static bool is_shown(const char *key)
{
	return skep_settings_of_runs(key) &&
	       strncmp(key, "cluster.allocation.stage_of", strlen("cluster.allocation.stage_of")) != 0;
}

/* A file is known by its name alone; a quantity keeps its unit, as in 200 Mbit/s. */
static void short_value(const char *value, char *ret, size_t size)
{
	const char *slash = strrchr(value, '/'), *name = slash && strchr(slash, '.') ? slash + 1 : value;
	size_t length = strlen(name);
	if (length > 5 && strcmp(name + length - 5, ".yaml") == 0)
		length -= 5;
	snprintf(ret, size, "%.*s", (int)(length < size ? length : size - 1), name);
}

/* Is the key one of a method, and the points have different methods? Those without it then have no default of it. */
static bool belongs_to_method(const struct figure *f, const char *key)
{
	for (uint32_t k = 0; k < f->keys; k++) {
		const char *last = strrchr(f->key[k], '.');
		size_t length = last ? (size_t)(last - f->key[k]) + 1 : 0;
		if (length > 0 && strcmp(last, ".method") == 0 && strncmp(f->key[k], key, length) == 0)
			return true;
	}
	return false;
}

/* The settings of a point in which it or another one differs from the first. */
static void label_point(struct figure *f, struct point *point)
{
	const char *name[KEYS_MAX];
	char set_there[KEYS_MAX][SKEP_SETTING_BYTES], value[KEYS_MAX][SKEP_SETTING_BYTES];
	for (uint32_t k = 0; k < f->keys; k++)
		name[k] = f->key[k];
	skep_settings_values(f->dot[point->first].settings, name, f->keys, set_there);
	for (uint32_t k = 0; k < f->keys; k++)
		short_value(set_there[k], value[k], sizeof value[k]);
	size_t used = 0;
	bool set = false; /* any of them */
	for (uint32_t k = 0; k < f->keys; k++)
		set = set || value[k][0];
	for (uint32_t k = 0; k < f->keys && used < sizeof point->label - 1; k++) {
		char key[96];
		if (value[k][0] || (set && !belongs_to_method(f, f->key[k])))
			used += (size_t)snprintf(point->label + used, sizeof point->label - used, "%s%s %.24s",
				used ? ", " : "", skep_plot_short_key(f->key[k], key, sizeof key),
				value[k][0] ? value[k] : "default");
	}
	if (used == 0 && f->keys > 0)
		used = (size_t)snprintf(point->label, sizeof point->label, "defaults");
	if (f->both_worlds && used < sizeof point->label - 1)
		snprintf(point->label + used, sizeof point->label - used, "%s%s", used ? ", " : "",
			f->dot[point->first].world);
	else if (f->points == 1)
		snprintf(point->label, sizeof point->label, "%u run%s", point->runs, point->runs > 1 ? "s" : "");
}

static void label_points(struct figure *f)
{
	for (uint32_t p = 0; p < f->points; p++) { /* which keys */
		struct skep_differences d;
		skep_settings_compare(
			f->dot[f->point[0].first].settings, f->dot[f->point[p].first].settings, is_shown, &d);
		f->more_keys = f->more_keys || d.count > SKEP_DIFFERENCES_SHOWN;
		for (size_t i = 0; i < d.count && i < SKEP_DIFFERENCES_SHOWN; i++)
			note_key(f, d.item[i].key);
	}
	for (uint32_t p = 0; p < f->points; p++)
		label_point(f, &f->point[p]);
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

/* Where a label can be: to the right or the left of its dot, a little above, below, at its height; then where a line has to lead
 * to it, in halves of a line farther up and down. */
static const struct corner {
	int right, up;
} CORNER[] = {{1, 1}, {1, -1}, {0, 1}, {0, -1}, {1, 0}, {0, 0}, {1, 3}, {1, -3}, {0, 3}, {0, -3}, {1, 5}, {1, -5},
	{0, 5}, {0, -5}, {1, 7}, {1, -7}};
#define CORNERS (sizeof CORNER / sizeof CORNER[0])
#define CORNERS_NEAR 6

struct box {
	double left, right, low, high;
};

static struct box box_of(const struct figure *f, const struct point *point, int corner)
{
	double x = place(f, 0, point->usd), y = place(f, 1, point->time_s) + CORNER[corner].up * 0.7 * LINE;
	double wide = LETTER * (double)strlen(point->label), gap = 1.5 * LETTER;
	bool right = CORNER[corner].right;
	return (struct box){
		right ? x + gap : x - gap - wide, right ? x + gap + wide : x - gap, y - LINE / 2, y + LINE / 2};
}

static bool has_room(const struct figure *f, const struct point *point, int corner)
{
	struct box a = box_of(f, point, corner);
	bool room = a.left > -0.05 && a.right < 1.29 && a.low > -0.05 && a.high < 1.09;
	for (uint32_t q = 0; room && q < f->points; q++) {
		const struct point *other = &f->point[q];
		double x = place(f, 0, other->usd), y = place(f, 1, other->time_s);
		room = !(x > a.left - LETTER && x < a.right + LETTER && y > a.low - LINE / 4 && y < a.high + LINE / 4);
		if (!room || !other->labelled)
			continue;
		struct box b = box_of(f, other, other->corner);
		room = a.right < b.left || b.right < a.left || a.high < b.low || b.high < a.low;
	}
	return room;
}

/* Runs that a label would lie on. */
static uint32_t covered(const struct figure *f, const struct point *point, int corner)
{
	struct box a = box_of(f, point, corner);
	uint32_t count = 0;
	for (uint32_t i = 0; i < f->dots; i++) {
		double x = place(f, 0, f->dot[i].usd), y = place(f, 1, f->dot[i].time_s);
		count += x > a.left && x < a.right && y > a.low && y < a.high;
	}
	return count;
}

/* Where there is room and it covers least, the first of such. */
static void label_best(const struct figure *f, struct point *point)
{
	uint32_t least = UINT32_MAX;
	for (int c = 0; c < (int)CORNERS && (c < CORNERS_NEAR || !point->labelled); c++) {
		uint32_t count = has_room(f, point, c) ? covered(f, point, c) : UINT32_MAX;
		if (count >= least)
			continue;
		least = count;
		point->labelled = true;
		point->corner = c;
	}
}

/* The fronts first, and within them the cheapest. */
static void choose_labels(struct figure *f)
{
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t p = 0; p < f->points; p++)
			if (f->point[p].best == (pass == 0))
				label_best(f, &f->point[p]);
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

/* Does a run lie beside all large dots, so that its own is seen? */
static bool any_seen(const struct figure *f)
{
	for (uint32_t i = 0; i < f->dots; i++) {
		double x = place(f, 0, f->dot[i].usd), y = place(f, 1, f->dot[i].time_s);
		uint32_t p = 0;
		while (p < f->points && (fabs(place(f, 0, f->point[p].usd) - x) > HIDDEN ||
						fabs(place(f, 1, f->point[p].time_s) - y) > HIDDEN))
			p++;
		if (p == f->points)
			return true;
	}
	return false;
}

/* What the key calls the large dots. An empty title has no row. */
static void write_fronts(const struct figure *f, FILE *script)
{
	static const char *const world[2] = {"simulated", "real"};
	const char *front = "Pareto front: nothing is both faster and cheaper";
	if (f->both_worlds)
		fprintf(script, "Front = '%s, %s'\nOther = '%s'\n", front, world[f->first_world],
			world[!f->first_world]);
	else
		fprintf(script, "Front = '%s'\nOther = ''\n", front);
	fprintf(script, "Beaten = '%s'\n", f->any_beaten ? "another one is both faster and cheaper" : "");
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
	double least, most;
	char warning[160] = "";
	if (!f->to_target && losses_differ(f, &least, &most))
		snprintf(warning, sizeof warning,
			isfinite(most)
				? "but final losses differ, %.3g to %.3g: set train.target_loss to compare the time "
				  "to it"
				: "but some diverged, or have other final losses than the least, %.3g: set "
				  "train.target_loss",
			least, most);
	fprintf(script, "Warning = '%s'\n", warning);
	write_fronts(f, script);
	fprintf(script, "RunsDot = %d\n", any_seen(f) ? 7 : -1);
	fprintf(script, "Runs = '%u run%s%s", f->dots, f->dots == 1 ? "" : "s",
		f->points < f->dots ? ", those that differ by their seed joined in their mean" : "");
	if (f->late > 0)
		fprintf(script, "; %u did not reach their target", f->late);
	if (f->unpriced > 0)
		fprintf(script, "; %u without a price are left out", f->unpriced);
	uint32_t unlabelled = 0;
	for (uint32_t p = 0; p < f->points; p++)
		unlabelled += !f->point[p].labelled;
	if (unlabelled > 0)
		fprintf(script, "; %u without room for a label", unlabelled);
	fprintf(script, "%s'\n", f->more_keys ? "; more settings differ than labels have" : "");
}

static void write_points(const struct figure *f, double unit, FILE *script)
{
	fprintf(script, "$dots << END\n");
	for (uint32_t i = 0; i < f->dots; i++)
		fprintf(script, "%.9g %.9g\n", f->dot[i].usd, f->dot[i].time_s * unit);
	fprintf(script, "END\n$points << END\n");
	for (uint32_t p = 0; p < f->points; p++)
		fprintf(script, "%.9g %.9g %d\n", f->point[p].usd, f->point[p].time_s * unit, f->point[p].best);
	fprintf(script, "END\n");
	for (int real = 0; real < 2; real++) {
		fprintf(script, "%s << END\n", real == f->first_world ? "$front" : "$other");
		for (uint32_t p = 0; p < f->points; p++)
			if (f->point[p].best && f->dot[f->point[p].first].real == (bool)real)
				fprintf(script, "%.9g %.9g\n", f->point[p].usd, f->point[p].time_s * unit);
		fprintf(script, "END\n");
	}
	for (uint32_t p = 0; p < f->points; p++) {
		const struct corner *at = &CORNER[f->point[p].corner];
		if (!f->point[p].labelled)
			continue;
		if (f->point[p].corner >= CORNERS_NEAR)
			fprintf(script,
				"set arrow from first %.9g, first %.9g rto character %g, character %g nohead lw 0.8 lc rgb "
				"'gray50'\n",
				f->point[p].usd, f->point[p].time_s * unit, at->right ? 0.9 : -0.9, 0.7 * at->up);
		fprintf(script, "set label ");
		skep_script_string(script, f->point[p].label);
		fprintf(script,
			" at first %.9g, first %.9g %s offset %g, %g front boxed font ',11' textcolor rgb '%s'\n",
			f->point[p].usd, f->point[p].time_s * unit, at->right ? "left" : "right",
			at->right ? 0.9 : -0.9, 0.7 * at->up, f->point[p].best ? "black" : "gray40");
	}
}

static bool make(struct skep_store *store, struct figure *f, const int64_t *run, uint32_t runs,
	struct skep_picture *picture, struct skep_diag *reterr)
{
	if (!read_runs(store, f, run, runs, picture->metric, reterr))
		return false;
	for (uint32_t i = 0; i < f->dots; i++)
		skep_picture_drew(picture, f->dot[i].id);
	group_dots(f);
	find_fronts(f);
	label_points(f);
	find_ranges(f);
	choose_labels(f);
	struct skep_plot_unit unit = skep_plot_unit(f->high[1]);
	picture->height += KEY_PIXELS;
	write_words(f, unit.name, picture->script);
	write_range(f, 0, 1, picture->script);
	write_range(f, 1, unit.per_s, picture->script);
	write_points(f, unit.per_s, picture->script);
	skep_script_lines(picture->script, TEMPLATE, sizeof TEMPLATE / sizeof TEMPLATE[0]);
	return true;
}

bool skep_plot_pareto(struct skep_store *store, const int64_t *run, uint32_t runs, struct skep_picture *picture,
	struct skep_diag *reterr)
{
	struct figure f = {.dot = calloc(RUNS_MAX, sizeof *f.dot), .point = calloc(RUNS_MAX, sizeof *f.point)};
	bool good = f.dot != NULL && f.point != NULL;
	if (!good)
		skep_fail(reterr, "no memory for the plot");
	good = good && make(store, &f, run, runs, picture, reterr);
	forget(&f);
	free(f.dot);
	free(f.point);
	return good;
}
