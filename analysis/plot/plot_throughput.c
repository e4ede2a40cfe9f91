/* SPDX-License-Identifier: Apache-2.0
 *
 * plot_throughput.c - samples per second over time, and below that how well the workers were spread over the stages; runs that
 * differ by their seed alone taken together.
 *
 * Throughput: the samples that a round's last stage counted, evenly over the time since the round before it closed. A run that
 * stands still shows 0.
 *
 * Spread: percent of the throughput that perfect rebalancing would give (store_spread.h). When GPUs are mixed 100 % is not
 * that, and the picture says so if it shows such runs.
 *
 * Each line is the mean over the runs of a group (a simulated run and a real one are never in one, nor real ones that were paced
 * or shaped in other ways), the band one standard deviation to both sides. It ends with the group's first run that ends.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/plot/plot_script.h"
#include "analysis/store/database.h"
#include "analysis/store/store_spread.h"

#define RUNS_MAX 64u
#define GROUPS_MAX 24u
#define BINS 160u /* of time */
#define KEY_PIXELS 24u
#define KEY_CHARS 130u /* of a title, that the key has room for in its usual size */
#define HEIGHT 800u    /* of the picture without its key */

static const char *const TEMPLATE[] = {
#include "throughput.gp.inc"
};

enum panel { RATE, SPREAD, PANELS };

struct curve { /* of one run: time-weighted sums in each bin */
	double sum[PANELS][BINS], weight[PANELS][BINS];
};

struct group { /* runs with the same settings but for the seed, in one world */
	uint32_t run[RUNS_MAX], runs;
	double end_s;
	char title[256];
};

struct figure {
	struct skep_plot_run run[RUNS_MAX];
	struct curve *curve;                          /* [runs] */
	bool mixed[RUNS_MAX];                         /* the run's workers have GPUs of several kinds */
	double ended_s[RUNS_MAX], own_rate[RUNS_MAX]; /* samples per second; NAN or 0: not known */
	uint32_t runs, groups;
	double end_s; /* of the picture: where the last line ends */
	struct group group[GROUPS_MAX];
};

/* ---- which runs ------------------------------------------------------------------------------------------------- */

static bool put_into_group(struct skep_store *store, struct figure *f, uint32_t run, struct skep_diag *reterr)
{
	enum skep_plot_kin kin = SKEP_PLOT_OTHER;
	uint32_t g = 0;
	for (; g < f->groups; g++) {
		if (!skep_plot_kinship(store, &f->run[f->group[g].run[0]], &f->run[run], &kin, reterr))
			return false;
		if (kin == SKEP_PLOT_ALIKE)
			break;
	}
	if (g == GROUPS_MAX)
		return skep_fail(reterr, "the runs have more than %u different settings: name fewer runs", GROUPS_MAX);
	if (g == f->groups)
		f->group[f->groups++].runs = 0;
	f->group[g].run[f->group[g].runs++] = run;
	return true;
}

/* What sets a group apart: "period 300 s"; what it does not set goes without saying, and "defaults" sets nothing that another
 * group sets. */
static bool name_group(struct skep_store *store, struct figure *f, uint32_t which, struct skep_diag *reterr)
{
	struct group *group = &f->group[which];
	char settings[256] = "";
	uint32_t count = 0;
	bool room = true;
	for (uint32_t g = 0; room && g < f->groups; g++) {
		struct skep_differences d;
		if (strcmp(f->run[f->group[g].run[0]].scenario, f->run[group->run[0]].scenario) != 0)
			continue; /* the names of the scenarios tell them apart */
		if (!skep_settings_compare_runs(store, f->run[f->group[g].run[0]].id, f->run[group->run[0]].id,
			    skep_settings_of_runs, &d, reterr))
			return false;
		for (size_t i = 0; room && i < d.count && i < SKEP_DIFFERENCES_SHOWN; i++)
			if (d.item[i].second[0] != '\0')
				room = skep_plot_add_setting(settings, sizeof settings, &count, &d.item[i]);
	}
	snprintf(group->title, sizeof group->title, "%s", settings[0] ? settings + 2 : "");
	return true;
}

static bool name_groups(struct skep_store *store, struct figure *f, struct skep_diag *reterr)
{
	bool named = false;
	for (uint32_t g = 0; g < f->groups; g++) {
		if (!name_group(store, f, g, reterr))
			return false;
		named = named || f->group[g].title[0] != '\0';
	}
	named = named && skep_plot_one_scenario(f->run, f->runs);
	for (uint32_t g = 0; g < f->groups && named; g++)
		if (f->group[g].title[0] == '\0')
			snprintf(f->group[g].title, sizeof f->group[g].title, "defaults");
	return true;
}

/* ---- of a run --------------------------------------------------------------------------------------------------- */

static void add(struct curve *curve, enum panel panel, double end_s, double from_s, double to_s, double value)
{
	double bin_s = end_s / BINS;
	for (uint32_t b = (uint32_t)(from_s / bin_s); b < BINS && b * bin_s < to_s; b++) {
		double part = fmin(to_s, (b + 1) * bin_s) - fmax(from_s, b * bin_s);
		curve->sum[panel][b] += value * fmax(part, 0);
		curve->weight[panel][b] += fmax(part, 0);
	}
}

struct spread_curve {
	struct curve *curve;
	double end_s;
};

static void add_spread(void *context, double opened_s, double closed_s, double percent)
{
	const struct spread_curve *to = context;
	add(to->curve, SPREAD, to->end_s, opened_s, closed_s, percent);
}

static bool read_rates(struct skep_store *store, const struct skep_plot_run *run, double end_s, struct curve *ret,
	struct skep_diag *reterr)
{
	static const char sql[] = "SELECT time_s, samples FROM v_throughput WHERE run = ?1 ORDER BY round";
	double before_s = 0, waiting = 0; /* samples of rounds that closed in the same instant as the one before */
	sqlite3_stmt *row = skep_store_query(store, sql, run->id, 0, reterr);
	while (row != NULL && skep_store_row(store, row)) {
		double closed_s = sqlite3_column_double(row, 0);
		waiting += sqlite3_column_double(row, 1);
		if (closed_s <= before_s)
			continue;
		add(ret, RATE, end_s, before_s, closed_s, waiting / (closed_s - before_s));
		before_s = closed_s;
		waiting = 0;
	}
	sqlite3_finalize(row);
	return row != NULL;
}

static bool read_run(struct skep_store *store, struct figure *f, uint32_t i, struct skep_diag *reterr)
{
	struct spread_curve to = {&f->curve[i], f->end_s};
	return skep_store_spread(store, f->run[i].id, f->run[i].stages, add_spread, &to, reterr) &&
	       read_rates(store, &f->run[i], f->end_s, &f->curve[i], reterr);
}

static bool read_end(struct skep_store *store, struct figure *f, uint32_t i, struct skep_diag *reterr)
{
	sqlite3_stmt *row = skep_store_query(store,
		"SELECT max(closed_s), (SELECT throughput_samples_per_s FROM runs WHERE id = ?1) FROM rounds WHERE run = ?1",
		f->run[i].id, 0, reterr);
	bool found = row != NULL && skep_store_row(store, row) && sqlite3_column_double(row, 0) > 0;
	if (found) {
		f->ended_s[i] = sqlite3_column_double(row, 0);
		f->own_rate[i] = skep_column_real(row, 1);
	} else if (row != NULL)
		skep_fail(reterr, "run %lld closed no round: there is nothing to show", (long long)f->run[i].id);
	sqlite3_finalize(row);
	return found;
}

static bool read_gpus(struct skep_store *store, struct figure *f, uint32_t i, struct skep_diag *reterr)
{
	static const char sql[] = "SELECT count(DISTINCT gpu) FROM workers WHERE run = ?1 AND role = 'worker'";
	sqlite3_stmt *row = skep_store_query(store, sql, f->run[i].id, 0, reterr);
	f->mixed[i] = row != NULL && skep_store_row(store, row) && sqlite3_column_int64(row, 0) > 1;
	sqlite3_finalize(row);
	return row != NULL;
}

/* ---- the script ------------------------------------------------------------------------------------------------- */

/* Time, mean, mean less and plus one standard deviation, of the runs as a sample, as a sweep has it; a block for each group. */
static void write_group(const struct figure *f, const struct group *group, enum panel panel, double unit, FILE *script)
{
	for (uint32_t b = 0; b < BINS && b * f->end_s / BINS < group->end_s; b++) {
		double mean = 0, squares = 0, n = 0;
		for (uint32_t r = 0; r < group->runs; r++) {
			const struct curve *curve = &f->curve[group->run[r]];
			double weight = curve->weight[panel][b];
			if (!(weight > 0))
				continue;
			double value = curve->sum[panel][b] / weight, before = mean;
			mean += (value - mean) / ++n;
			squares += (value - before) * (value - mean);
		}
		double spread = n > 1 ? sqrt(squares / (n - 1)) : 0;
		mean = n > 0 ? mean : NAN;
		double most = panel == SPREAD ? 100 : INFINITY;
		fprintf(script, "%.9g %.6g %.6g %.6g\n", (b + 0.5) * f->end_s / BINS * unit, mean,
			fmax(mean - spread, 0), fmin(mean + spread, most));
	}
	fprintf(script, "\n\n");
}

/* Over the whole time of each run; of the rate the database's own, where the run has ended: a last round may be followed by a
 * validation, or by work that is not waited for. The mean of the group's runs. */
static double mean_of(const struct figure *f, const struct group *group, enum panel panel)
{
	double mean = 0;
	for (uint32_t r = 0; r < group->runs; r++) {
		const struct curve *curve = &f->curve[group->run[r]];
		double sum = 0, weight = 0;
		for (uint32_t b = 0; b < BINS; b++) {
			sum += curve->sum[panel][b];
			weight += curve->weight[panel][b];
		}
		double own = panel == RATE ? f->own_rate[group->run[r]] : NAN;
		mean += (own > 0 ? own : weight > 0 ? sum / weight : 0) / group->runs;
	}
	return mean;
}

/* What the legend says: its means, its runs, their world, and what sets the group apart, which may be long. */
static void name_curve(
	const struct figure *f, const struct group *group, const double mean[PANELS], char *ret, size_t size)
{
	char runs[32], world[64];
	bool same = skep_plot_one_scenario(f->run, f->runs);
	skep_plot_world(&f->run[group->run[0]], world, sizeof world);
	if (group->runs == 1)
		snprintf(runs, sizeof runs, "run %lld", (long long)f->run[group->run[0]].id);
	else
		snprintf(runs, sizeof runs, "%u runs", group->runs);
	snprintf(ret, size, "%.*f samples/s, spread %.0f %%: %s, %s%s%s%s%s",
		mean[RATE] < 10    ? 2
		: mean[RATE] < 100 ? 1
				   : 0,
		mean[RATE], mean[SPREAD], runs, world, same ? "" : ", ", same ? "" : f->run[group->run[0]].scenario,
		group->title[0] ? ", " : "", group->title);
}

static bool any_mixed(const struct figure *f)
{
	bool mixed = false;
	for (uint32_t i = 0; i < f->runs; i++)
		mixed = mixed || f->mixed[i];
	return mixed;
}

static void write_figure(const struct figure *f, FILE *script)
{
	static const char *const block[PANELS] = {"$rate", "$share"};
	bool banded = false;
	size_t longest = 0;
	skep_plot_title(script, f->run, f->runs, "throughput");
	double unit = skep_plot_time_axis(script, f->end_s, 1);
	fprintf(script, "timelabel = 'time since the start of the run (%s)'\n", skep_plot_unit(f->end_s).name);
	for (int panel = 0; panel < PANELS; panel++) {
		fprintf(script, "%s << END\n", block[panel]);
		for (uint32_t g = 0; g < f->groups; g++)
			write_group(f, &f->group[g], (enum panel)panel, unit, script);
		fprintf(script, "END\n");
	}
	fprintf(script, "groups = %u\nkey_part = %.4f\narray Title[%u]\narray Colour[%u]\narray Dash[%u]\n", f->groups,
		(double)KEY_PIXELS * f->groups / (HEIGHT + KEY_PIXELS * f->groups), f->groups, f->groups, f->groups);
	fprintf(script, "remark = '%s'\n",
		any_mixed(f) ? "mixed GPUs, each taken as the mean of its stage: 100 % is no bound" : "");
	for (uint32_t g = 0; g < f->groups; g++) {
		char title[512];
		double mean[PANELS] = {mean_of(f, &f->group[g], RATE), mean_of(f, &f->group[g], SPREAD)};
		name_curve(f, &f->group[g], mean, title, sizeof title);
		banded = banded || f->group[g].runs > 1;
		longest = strlen(title) > longest ? strlen(title) : longest;
		fprintf(script, "Title[%u] = ", g + 1);
		skep_script_string(script, title);
		fprintf(script, "\nColour[%u] = '%s'\nDash[%u] = %u\n", g + 1, skep_plot_colour(g), g + 1,
			g < 8    ? 1
			: g < 16 ? 2
				 : 4);
	}
	fprintf(script, "bands = '%s'\nkey_font = ',%u'\n",
		banded ? "bands: one standard deviation of the runs with other seeds" : "",
		longest > 2 * KEY_CHARS ? 6
		: longest > KEY_CHARS   ? 9
					: 13);
	skep_script_lines(script, TEMPLATE, sizeof TEMPLATE / sizeof TEMPLATE[0]);
}

static void end_groups(struct figure *f)
{
	for (uint32_t g = 0; g < f->groups; g++) {
		struct group *group = &f->group[g];
		group->end_s = INFINITY;
		for (uint32_t i = 0; i < group->runs; i++)
			group->end_s = fmin(group->end_s, f->ended_s[group->run[i]]);
		f->end_s = fmax(f->end_s, group->end_s);
	}
}

static bool read_all(struct skep_store *store, struct figure *f, const int64_t *run, struct skep_diag *reterr)
{
	for (uint32_t i = 0; i < f->runs; i++)
		if (!skep_plot_read_run(store, run[i], &f->run[i], reterr) || !read_end(store, f, i, reterr) ||
			!read_gpus(store, f, i, reterr) || !put_into_group(store, f, i, reterr))
			return false;
	end_groups(f);
	for (uint32_t i = 0; i < f->runs; i++)
		if (!read_run(store, f, i, reterr))
			return false;
	return name_groups(store, f, reterr);
}

bool skep_plot_throughput(struct skep_store *store, const int64_t *run, uint32_t runs, struct skep_picture *picture,
	struct skep_diag *reterr)
{
	int64_t newest[RUNS_MAX];
	struct figure *f = calloc(1, sizeof *f);
	if (runs == 0) {
		run = newest;
		if (!skep_plot_scenario_runs(store, "EXISTS (SELECT 1 FROM rounds WHERE run = id)",
			    "the database holds no run that closed a round: `skep sim` and `skep run` make one", false,
			    newest, RUNS_MAX, &runs, reterr)) {
			free(f);
			return false;
		}
	}
	struct curve *curve = calloc(runs, sizeof *curve);
	bool good = f != NULL && curve != NULL && runs <= RUNS_MAX;
	if (good) {
		f->curve = curve;
		f->runs = runs;
		good = read_all(store, f, run, reterr);
	} else {
		skep_fail(reterr, "no memory, or more than %u runs for one picture", RUNS_MAX);
	}
	if (good) {
		picture->height = HEIGHT + KEY_PIXELS * f->groups;
		write_figure(f, picture->script);
		for (uint32_t i = 0; i < runs; i++)
			skep_picture_drew(picture, run[i]);
	}
	free(curve);
	free(f);
	return good;
}
