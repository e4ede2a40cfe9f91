/* SPDX-License-Identifier: Apache-2.0
 *
 * plot_curves.c - accuracy: loss or perplexity of one run or many, against time, steps, tokens, bytes or cost; runs
 * that differ by their seed alone taken together.
 *
 * A group is the runs of one world whose settings differ by the seed alone: its line is their mean, and the band goes from the
 * least to the greatest of them, or with ten runs or more from the 10th to the 90th percentile; at each place of the axis over
 * the runs that are there, as long as half of them are. The axis has 200 bins: what a run has in one of them is one point, its
 * mean, and the picture says of how many.
 *
 * Runs with the same settings have the same colour in both worlds; if all have the same, the colour tells the worlds
 * apart. Simulated runs are thick lines, real ones circles on a thin line, runs by a law dotted. Settings that differ in
 * one number have colours in its order, from dark to light.
 */
#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/plot/curves.h"
#include "analysis/store/settings.h"
#include "base/layout.h"
#include "base/order.h"

#define RUNS_MAX 256u
#define GROUPS_MAX 24u
#define PERCENTILES_FROM 10u /* runs of a group */
#define LOG_X 10.0           /* runs whose ends differ by more have a logarithmic axis */
#define LOG_Y 5.0
#define LINE_PIXELS 24u /* of the legend */
#define TITLE_CHARS 100 /* of a line of the legend */
#define CIRCLES 60u     /* of a real run */

static const char *const TEMPLATE[] = {
#include "curves.gp.inc"
};

struct group {
	uint32_t run[RUNS_MAX], runs;
	uint32_t colour; /* of its settings: groups of two worlds have the same one */
	double order;    /* the number in which the settings differ; NAN: none */
	char title[256];
	double reached_x; /* where the mean is at the target; NAN: nowhere */
};

struct figure {
	const struct skep_plot_axes *asked;
	struct skep_curve_kind kind;
	struct skep_curve_range range;
	struct skep_curve_axis axis;
	struct skep_plot_run *run;
	struct skep_curve *curve; /* [runs] */
	uint32_t runs, groups, colours;
	bool log_y, ordered;
	struct group group[GROUPS_MAX];
};

/* ---- what is asked for ------------------------------------------------------------------------------------------- */

static int find_word(const char *const word[], const char *given)
{
	for (int i = 0; word[i] != NULL; i++)
		if (strcmp(word[i], given) == 0)
			return i;
	return -1;
}

static bool read_asked(struct figure *f, struct skep_diag *reterr)
{
	static const char *const xs[] = {"time", "steps", "tokens", "bytes", "sync-bytes", "cost", NULL},
				 *const ys[] = {"loss", "perplexity", NULL},
				 *const logs[] = {"none", "x", "y", "xy", NULL};
	int x = f->asked->x ? find_word(xs, f->asked->x) : 0, y = f->asked->y ? find_word(ys, f->asked->y) : 0;
	int log = f->asked->log ? find_word(logs, f->asked->log) : 0;
	f->kind = (struct skep_curve_kind){(enum skep_curve_x)x, y == 1, f->asked->validation};
	if (x < 0)
		skep_fail(reterr, "--x %s: expected time, steps, tokens, bytes, sync-bytes or cost", f->asked->x);
	else if (y < 0)
		skep_fail(reterr, "--y %s: expected loss or perplexity", f->asked->y);
	else if (log < 0)
		skep_fail(reterr, "--log %s: expected none, x, y or xy", f->asked->log);
	return x >= 0 && y >= 0 && log >= 0;
}

static bool asked_log(const struct figure *f, char axis, bool usual)
{
	return f->asked->log ? strchr(f->asked->log, axis) != NULL && strcmp(f->asked->log, "none") != 0 : usual;
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

static bool put_into_group(struct skep_store *store, struct figure *f, uint32_t run, struct skep_diag *reterr)
{
	uint32_t colour = f->colours;
	enum skep_plot_kin kin;
	for (uint32_t g = 0; g < f->groups; g++) {
		if (!skep_plot_kinship(store, &f->run[f->group[g].run[0]], &f->run[run], &kin, reterr))
			return false;
		if (kin == SKEP_PLOT_OTHER)
			continue;
		colour = f->group[g].colour;
		if (kin != SKEP_PLOT_ALIKE)
			continue;
		f->group[g].run[f->group[g].runs++] = run;
		return true;
	}
	if (f->groups == GROUPS_MAX)
		return skep_fail(reterr, "the runs have more than %u different settings: name fewer runs", GROUPS_MAX);
	f->colours += colour == f->colours;
	f->group[f->groups++] =
		(struct group){.run = {run}, .runs = 1, .colour = colour, .order = NAN, .reached_x = NAN};
	return true;
}

/* Adds ", every 64" unless it is there. */
static void add_setting(struct group *group, const struct skep_difference *d)
{
	char setting[192];
	const char *dot = strchr(d->key, '.'), *key = dot ? dot + 1 : d->key;
	size_t used = strlen(group->title);
	snprintf(setting, sizeof setting, "%s %s", key, d->second[0] ? d->second : "not set");
	if (strcmp(d->key, "seed") != 0 && !strstr(group->title, setting))
		snprintf(group->title + used, sizeof group->title - used, "%s%s", used ? ", " : "", setting);
}

/* The settings that tell it from the other groups, and the number if it is one alone. */
static bool name_group(struct skep_store *store, struct figure *f, uint32_t which, char *ret_key, size_t key_size,
	struct skep_diag *reterr)
{
	struct group *group = &f->group[which];
	for (uint32_t g = 0; g < f->groups; g++) {
		struct skep_differences d;
		if (strcmp(f->run[f->group[g].run[0]].scenario, f->run[group->run[0]].scenario) != 0)
			continue; /* the names of the scenarios tell them apart */
		if (!skep_settings_compare_runs(store, f->run[f->group[g].run[0]].id, f->run[group->run[0]].id,
			    skep_settings_of_runs, &d, reterr))
			return false;
		for (size_t i = 0; i < d.count && i < SKEP_DIFFERENCES_SHOWN; i++) {
			char *end;
			add_setting(group, &d.item[i]);
			if (strcmp(d.item[i].key, "seed") == 0 || strcmp(d.item[i].key, "name") == 0)
				continue;
			double number = strtod(d.item[i].second, &end);
			bool same = ret_key[0] == '\0' || strcmp(ret_key, d.item[i].key) == 0;
			snprintf(ret_key, key_size, "%s", same ? d.item[i].key : "more than one");
			group->order = same && end != d.item[i].second ? number : NAN;
		}
	}
	return true;
}

/* "run 3, simulated, every 64", "5 seeds, real, cpu, every 64", with the scenario behind the world if there are several. What is
 * too long for a line of the legend is cut: gnuplot leaves out a legend that is wider than the picture. */
static void finish_title(const struct figure *f, struct group *group, bool scenarios)
{
	const struct skep_plot_run *run = &f->run[group->run[0]];
	char runs[64], world[64], title[512];
	bool same_seed = group->runs > 1 && strcmp(run->seed, f->run[group->run[1]].seed) == 0;
	skep_plot_world(run, world, sizeof world);
	if (group->runs > 1)
		snprintf(runs, sizeof runs, "%u %s", group->runs, same_seed ? "runs" : "seeds");
	else
		snprintf(runs, sizeof runs, "run %lld", (long long)run->id);
	int length = snprintf(title, sizeof title, "%s, %s%s%s%s%s", runs, world, scenarios ? ", " : "",
		scenarios ? run->scenario : "", group->title[0] ? ", " : "", group->title);
	int cut = TITLE_CHARS - 2;
	while (length > TITLE_CHARS && cut > 0 && ((unsigned char)title[cut] & 0xc0) == 0x80)
		cut--; /* not inside a character */
	snprintf(group->title, sizeof group->title, "%.*s%s", length > TITLE_CHARS ? cut : length, title,
		length > TITLE_CHARS ? ".." : "");
}

static int by_order(const void *a, const void *b)
{
	const struct group *x = a, *y = b;
	int number = (x->order > y->order) - (x->order < y->order);
	return number ? number : (x->colour > y->colour) - (x->colour < y->colour);
}

static bool name_groups(struct skep_store *store, struct figure *f, struct skep_diag *reterr)
{
	char key[96] = "";
	f->ordered = f->colours > 2;
	for (uint32_t g = 0; g < f->groups; g++) {
		if (!name_group(store, f, g, key, sizeof key, reterr))
			return false;
	}
	f->ordered = f->ordered && strcmp(key, "more than one") != 0;
	for (uint32_t g = 0; g < f->groups; g++) {
		f->ordered = f->ordered && isfinite(f->group[g].order);
		finish_title(f, &f->group[g], !skep_plot_one_scenario(f->run, f->runs));
	}
	for (uint32_t g = 0; g < f->groups && !f->ordered; g++)
		f->group[g].order = NAN; /* in the order in which they came */
	qsort(f->group, f->groups, sizeof f->group[0], by_order);
	return true;
}

/* ---- the script ------------------------------------------------------------------------------------------------- */

/* x, mean, low, high of a group; a block, closed by two blank lines. A group of one has the points that it has. */
static void write_group(const struct figure *f, struct group *group, double unit, FILE *script)
{
	const struct skep_curve *alone = &f->curve[group->run[0]];
	double target = f->run[group->run[0]].target_loss;
	if (f->kind.perplexity)
		target = exp(target);
	for (uint32_t i = 0; i < (group->runs == 1 ? alone->bins : SKEP_CURVE_BINS); i++) {
		double value[RUNS_MAX], sum = 0, x = group->runs == 1 ? alone->x[i] : skep_curve_bin(&f->axis, i);
		uint32_t count = 0;
		for (uint32_t r = 0; r < group->runs; r++) {
			double y =
				group->runs == 1 ? alone->y[i] : skep_curve_at(&f->curve[group->run[r]], &f->axis, x);
			if (isnan(y))
				continue;
			value[count++] = y;
			sum += y;
		}
		if (2 * count < group->runs)
			continue;
		gsl_sort(value, 1, count);
		double part = group->runs < PERCENTILES_FROM ? 0 : 0.1;
		fprintf(script, "%.9g %.6g %.6g %.6g\n", x * unit, sum / count, skep_order_quantile(value, count, part),
			skep_order_quantile(value, count, 1 - part));
		if (isnan(group->reached_x) && sum / count <= target)
			group->reached_x = x;
	}
	fprintf(script, "\n\n");
}

/* From dark to light, so that order is seen also without colour; not as light as paper. */
static void write_shade(double part, FILE *script)
{
	static const double stop[][3] = {
		{68, 1, 84}, {65, 68, 135}, {42, 120, 142}, {34, 168, 132}, {122, 209, 81}, {200, 210, 40}};
	double at = part * 5;
	int low = at < 4 ? (int)at : 4;
	fprintf(script, "'#");
	for (int i = 0; i < 3; i++)
		fprintf(script, "%02x", (unsigned)(stop[low][i] + (at - low) * (stop[low + 1][i] - stop[low][i])));
	fprintf(script, "'\n");
}

static void write_style(const struct figure *f, uint32_t g, FILE *script)
{
	const struct group *group = &f->group[g];
	const struct skep_plot_run *run = &f->run[group->run[0]];
	uint32_t before = 0; /* settings with a smaller number */
	for (uint32_t i = 1; i <= g; i++)
		before += f->group[i].colour != f->group[i - 1].colour;
	bool law = strcmp(run->arithmetic, "law") == 0, real = strcmp(run->world, "real") == 0;
	fprintf(script, "Points[%u] = %d\nDash[%u] = %u\nEvery[%u] = %u\nColour[%u] = ", g + 1, real, g + 1,
		law                               ? 3
		: f->ordered || group->colour < 8 ? 1
		: group->colour < 16              ? 2
						  : 4,
		g + 1, SKEP_CURVE_BINS / CIRCLES, g + 1);
	if (f->ordered)
		write_shade((double)before / (f->colours - 1), script);
	else
		fprintf(script, "'%s'\n", skep_plot_colour(f->colours == 1 ? real : group->colour));
}

static const char *byte_unit(double bytes, double *ret_per_byte)
{
	static const char *const unit[] = {"B", "kB", "MB", "GB", "TB", "PB"};
	size_t i = 0;
	for (*ret_per_byte = 1; bytes * *ret_per_byte >= 1000 && i < 5; i++)
		*ret_per_byte /= 1000;
	return unit[i];
}

/* Label, scale and range of the axis below; returns its unit. */
static double write_x(const struct figure *f, FILE *script, char *ret_unit, size_t unit_size)
{
	struct skep_plot_unit time = skep_plot_unit(f->axis.logarithmic ? f->range.least_end_x : f->range.most_x);
	double per = 1;
	ret_unit[0] = '\0';
	if (f->kind.x == SKEP_CURVE_TIME) {
		per = time.per_s;
		snprintf(ret_unit, unit_size, " %s", time.name);
		fprintf(script, "set xlabel 'time since the start of the run (%s)'\n", time.name);
	} else if (f->kind.x == SKEP_CURVE_STEPS) {
		snprintf(ret_unit, unit_size, " steps");
		fprintf(script, "set xlabel 'optimizer steps'\n");
	} else if (f->kind.x == SKEP_CURVE_TOKENS) {
		snprintf(ret_unit, unit_size, "%s", f->range.most_x >= 1e4 ? "" : " tokens");
		per = skep_plot_token_axis(script, f->range.most_x);
	} else if (f->kind.x == SKEP_CURVE_COST) {
		snprintf(ret_unit, unit_size, " USD");
		fprintf(script, "set xlabel 'cost since the start of the run (USD)'\n");
	} else {
		const char *unit = byte_unit(f->range.most_x, &per);
		snprintf(ret_unit, unit_size, " %s", unit);
		fprintf(script, "set xlabel 'sent by all workers%s (%s)'\n",
			f->kind.x == SKEP_CURVE_BYTES ? ", between stages and in reductions" : " in reductions", unit);
	}
	fprintf(script, "%sset xrange [%.9g:%.9g]\n", f->axis.logarithmic ? "set logscale x\n" : "", f->axis.from * per,
		f->axis.to * per * (f->axis.logarithmic ? 1 : 1.01));
	if (f->axis.logarithmic)
		skep_plot_tics(script, 'x', f->axis.from * per, f->axis.to * per);
	return per;
}

static void write_y(const struct figure *f, FILE *script)
{
	double low = f->range.least_y, high = f->range.usual_y, target = f->run[0].target_loss;
	const char *what = f->kind.perplexity ? "perplexity" : "loss";
	if (f->kind.perplexity)
		target = exp(target);
	if (isfinite(target))
		low = fmin(low, target);
	fprintf(script, "set ylabel '%s %s%s'\nset format y '%%g'\n", f->kind.validation ? "validation" : "training",
		what, f->log_y ? " (logarithmic)" : "");
	if (f->log_y)
		fprintf(script, "set logscale y\nset yrange [%.9g:%.9g]\n", low / 1.1, high * 1.1);
	if (f->log_y)
		skep_plot_tics(script, 'y', low / 1.1, high * 1.1);
	else
		fprintf(script, "set yrange [%.9g:%.9g]\n", low - 0.05 * (high - low), high + 0.03 * (high - low));
	if (isfinite(target))
		fprintf(script,
			"set arrow from graph 0, first %.9g to graph 1, first %.9g nohead dt 2 lw 1.4 lc rgb 'gray30' front\n"
			"set label 'target %.4g' at graph 0.01, first %.9g offset 0, 0.6 textcolor rgb 'gray30' front\n",
			target, target, target, target);
}

static double mean_time(const struct figure *f, const struct group *group)
{
	double sum = 0;
	for (uint32_t i = 0; i < group->runs; i++)
		sum += f->run[group->run[i]].time_s;
	return sum / group->runs;
}

/* How long the rounds of a scenario took in both worlds, where the picture shows just that. Times
 * are those of `skep compare`. */
static void write_agreement(const struct figure *f, FILE *script)
{
	char text[160] = "", first[SKEP_TEXT_BYTES], second[SKEP_TEXT_BYTES];
	bool same = f->groups == 2 && f->colours == 1 && f->kind.x == SKEP_CURVE_TIME;
	for (uint32_t i = 1; i < f->runs; i++)
		same = same && f->run[i].rounds == f->run[0].rounds;
	bool real = same && strcmp(f->run[f->group[0].run[0]].world, "real") == 0;
	bool other = same && strcmp(f->run[f->group[1].run[0]].world, "real") == 0;
	double predicted = same ? mean_time(f, &f->group[real]) : NAN,
	       took = same ? mean_time(f, &f->group[!real]) : NAN;
	if (real != other && predicted > 0 && isfinite(took))
		snprintf(text, sizeof text, "predicted %s, real %s: %+.1f %%", skep_time_text(predicted, first),
			skep_time_text(took, second), 100 * (took / predicted - 1));
	fprintf(script, "agreement = ");
	skep_script_string(script, text);
	fprintf(script, "\n");
}

static void write_remark(const struct figure *f, FILE *script)
{
	uint32_t densest = 0;
	bool bands = false, percentiles = false;
	char text[256] = "";
	for (uint32_t i = 0; i < f->runs; i++)
		densest = f->curve[i].densest > densest ? f->curve[i].densest : densest;
	for (uint32_t g = 0; g < f->groups; g++) {
		bands = bands || f->group[g].runs > 1;
		percentiles = percentiles || f->group[g].runs >= PERCENTILES_FROM;
	}
	if (bands)
		snprintf(text, sizeof text, "line: mean over the seeds; band: %s; ",
			percentiles ? "10 to 90 % of ten seeds or more, else all" : "least to greatest");
	size_t used = strlen(text);
	if (densest > 1)
		snprintf(text + used, sizeof text - used, "a point is the mean of up to %u %s", densest,
			f->kind.validation ? "validations" : "rounds");
	else
		snprintf(text + used, sizeof text - used, "not smoothed");
	used = strlen(text);
	if (f->range.most_y > 1.1 * f->range.usual_y)
		snprintf(text + used, sizeof text - used, "; peaks up to %.3g are cut", f->range.most_y);
	fprintf(script, "remark = ");
	skep_script_string(script, text);
	fprintf(script, "\n");
}

/* Titles with where each group reaches the target, if any does. */
static uint32_t write_titles(struct figure *f, double per, const char *unit, FILE *script)
{
	bool reached = false;
	size_t longest = 0;
	for (uint32_t g = 0; g < f->groups; g++)
		reached = reached || isfinite(f->group[g].reached_x);
	for (uint32_t g = 0; g < f->groups; g++) {
		struct group *group = &f->group[g];
		size_t used = strlen(group->title);
		if (reached && isfinite(group->reached_x))
			snprintf(group->title + used, sizeof group->title - used, ": target at %.3g%s",
				group->reached_x * per, unit);
		else if (reached)
			snprintf(group->title + used, sizeof group->title - used, ": target not reached");
		longest = strlen(group->title) > longest ? strlen(group->title) : longest;
		fprintf(script, "Title[%u] = ", g + 1);
		skep_script_string(script, group->title);
		fprintf(script, "\n");
	}
	uint32_t columns = longest < 34 ? 3 : longest < 56 ? 2 : 1;
	fprintf(script, "key_font = ',%u'\n", longest > 84 ? 9 : 12);
	return f->groups <= 3 ? 1 : columns;
}

static void write_figure(struct figure *f, struct skep_picture *picture)
{
	static const char *const against[SKEP_CURVE_XS] = {
		"wall-clock time", "steps", "tokens", "bytes", "bytes of reductions", "cost"};
	FILE *script = picture->script;
	char what[128], unit[16];
	snprintf(what, sizeof what, "%s %s against %s", f->kind.validation ? "validation" : "training",
		f->kind.perplexity ? "perplexity" : "loss", against[f->kind.x]);
	skep_plot_title(script, f->run, f->runs, what);
	double per = write_x(f, script, unit, sizeof unit);
	write_y(f, script);
	write_remark(f, script);
	write_agreement(f, script);
	fprintf(script, "$mean << END\n");
	for (uint32_t g = 0; g < f->groups; g++)
		write_group(f, &f->group[g], per, script);
	fprintf(script,
		"END\ngroups = %u\narray Title[%u]\narray Colour[%u]\narray Points[%u]\narray Dash[%u]\narray "
		"Every[%u]\n",
		f->groups, f->groups, f->groups, f->groups, f->groups, f->groups);
	uint32_t columns = write_titles(f, per, unit, script), lines = (f->groups + columns - 1) / columns;
	for (uint32_t g = 0; g < f->groups; g++)
		write_style(f, g, script);
	fprintf(script, "columns = %u\nkey_lines = %u\n", columns, lines);
	picture->height += LINE_PIXELS * lines;
	skep_script_lines(script, TEMPLATE, sizeof TEMPLATE / sizeof TEMPLATE[0]);
}

/* ---- all together ------------------------------------------------------------------------------------------------- */

static void set_axes(struct figure *f)
{
	const struct skep_curve_range *range = &f->range;
	f->axis.logarithmic =
		asked_log(f, 'x', range->most_x > LOG_X * range->least_end_x) && range->least_x < range->most_x;
	f->axis.from = f->axis.logarithmic ? range->least_x : 0;
	f->axis.to = range->most_x;
	f->log_y = asked_log(f, 'y', range->usual_y > LOG_Y * range->least_y) && range->least_y > 0;
}

static bool read_all(struct skep_store *store, struct figure *f, const int64_t *run, struct skep_diag *reterr)
{
	for (uint32_t i = 0; i < f->runs; i++)
		if (!skep_plot_read_run(store, run[i], &f->run[i], reterr) ||
			!skep_curve_extend(store, &f->run[i], &f->kind, &f->range, reterr) ||
			!put_into_group(store, f, i, reterr))
			return false;
	if (!(f->range.most_x > 0))
		return skep_fail(reterr,
			"the runs sent nothing, or did not end, so that it is not known what they sent: take --x time");
	set_axes(f);
	for (uint32_t i = 0; i < f->runs; i++)
		if (!skep_curve_read(store, &f->run[i], &f->kind, &f->axis, &f->curve[i], reterr))
			return false;
	return name_groups(store, f, reterr);
}

bool skep_plot_accuracy(struct skep_store *store, const int64_t *run, uint32_t runs, struct skep_picture *picture,
	struct skep_diag *reterr)
{
	static const struct skep_plot_axes usual;
	int64_t newest[RUNS_MAX];
	if (runs > RUNS_MAX)
		return skep_fail(reterr, "at most %u runs fit into one picture, not %u", RUNS_MAX, runs);
	if (runs == 0) {
		run = newest;
		if (!skep_plot_scenario_runs(store, "EXISTS (SELECT 1 FROM losses WHERE run = id)",
			    "no run in the database has a loss: run a scenario with `arithmetic: real`", true, newest,
			    RUNS_MAX, &runs, reterr))
			return false;
	}
	struct figure *f = calloc(1, sizeof *f);
	struct skep_plot_run *shown = calloc(runs, sizeof *shown);
	struct skep_curve *curve = calloc(runs, sizeof *curve);
	bool good = f && shown && curve;
	if (good) {
		*f = (struct figure){
			.asked = picture->axes ? picture->axes : &usual, .run = shown, .curve = curve, .runs = runs};
		f->range = (struct skep_curve_range){.least_x = INFINITY,
			.least_end_x = INFINITY,
			.least_y = INFINITY,
			.most_y = -INFINITY,
			.usual_y = -INFINITY};
		good = read_asked(f, reterr) && read_all(store, f, run, reterr);
	} else {
		skep_fail(reterr, "no memory for the plot");
	}
	if (good)
		write_figure(f, picture);
	for (uint32_t i = 0; good && i < runs; i++)
		skep_picture_drew(picture, run[i]);
	free(f);
	free(shown);
	free(curve);
	return good;
}
