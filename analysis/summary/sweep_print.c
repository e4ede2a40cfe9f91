/* SPDX-License-Identifier: Apache-2.0
 *
 * sweep_print.c - a sweep for a person: one run of each combination as a row with all figures; several seeds as a table for
 * each figure, with mean, standard deviation and the quantiles at 5 % and 95 %, so that it fits a terminal. Without keys that
 * are varied the figures are the rows of one table.
 *
 * Keeps true: a figure that no run has is not printed, and how many runs have it is said where that is not all.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/summary/sweep_table.h"
#include "base/layout.h"

/* ---- cells ------------------------------------------------------------------------------------------------------- */

/* Of a number with four digits, as far as these are behind the point. */
static int decimals(double value)
{
	int before = fabs(value) > 0 ? (int)floor(log10(fabs(value))) + 1 : 1;
	return before >= 4 ? 0 : before < -8 ? 12 : 4 - before;
}

/* How many of the runs have the figure, when that is not all of them. */
static void remark_text(const struct skep_sweep_row *row, int metric, char *ret, size_t size)
{
	uint32_t runs = row->figure[metric].runs;
	ret[0] = '\0';
	if (metric == SKEP_SWEEP_LOSS && row->diverged > 0)
		snprintf(ret, size, "(%u diverged)", row->diverged);
	else if (runs < row->done && runs > 0)
		snprintf(ret, size, "(%u of %u)", runs, row->done);
}

/* "12.30", with the number of runs behind it when that is not all; "-" when none has it. */
static void figure_text(const struct skep_sweep_row *row, int metric, char *ret, size_t size)
{
	const struct skep_sweep_figure *f = &row->figure[metric];
	char remark[32], number[SKEP_TEXT_BYTES];
	remark_text(row, metric, remark, sizeof remark);
	snprintf(ret, size, "%s%s%s",
		f->runs > 0 ? skep_mean_text(f->mean * skep_sweep_metric_scale(metric), NAN, number) : "-",
		remark[0] ? " " : "", remark);
}

/* "10", or with what is wrong: "7 of 10", "9, 1 failed". */
static void runs_text(const struct skep_sweep_row *row, char *ret, size_t size)
{
	char failed[32] = "", of[32] = "";
	if (row->failed > 0)
		snprintf(failed, sizeof failed, ", %u failed", row->failed);
	if (row->done + row->failed < row->wanted)
		snprintf(of, sizeof of, " of %u", row->wanted);
	snprintf(ret, size, "%u%s%s", row->done, of, failed);
}

/* The deviation in the digits of the mean, and as it is where these do not show it; "-" of one run. */
static void mean_and_deviation(
	const struct skep_sweep_figure *f, double unit, char mean[SKEP_TEXT_BYTES], char *ret, size_t size)
{
	static const char sign[] = " ± ";
	char *deviation = f->runs > 0 ? strstr(skep_mean_text(f->mean * unit, f->spread * unit, mean), sign) : NULL;
	if (f->runs == 0)
		strcpy(mean, "-");
	if (deviation)
		snprintf(ret, size, "%s", deviation + strlen(sign));
	else if (f->runs > 1)
		snprintf(ret, size, "%.2g", f->spread * unit);
	else
		snprintf(ret, size, "-");
	if (deviation)
		*deviation = '\0';
}

static bool shown(const struct skep_sweep_table *t, int metric)
{
	for (uint32_t p = 0; p < t->points; p++)
		if (t->row[p].figure[metric].runs > 0 || (metric == SKEP_SWEEP_LOSS && t->row[p].diverged > 0))
			return true;
	return false;
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

/* What the rows and columns of a table are. */
struct view {
	const struct skep_sweep_table *t;
	enum {
		WIDE,      /* a row for each combination: its keys, its runs, each figure */
		OF_FIGURE, /* a row for each combination: its keys, its runs, and of one figure the mean and the rest */
		OF_FIGURES, /* a row for each figure of the only combination: its runs, the mean and the rest */
	} kind;
	int metric; /* of OF_FIGURE */
	uint32_t marked;
	const char *mark; /* behind row `marked` */
};

enum { RUNS, MEAN, DEVIATION, P5, P95, REMARK, SPREAD_COLUMNS };

static uint32_t names(const struct view *v)
{
	return v->kind == OF_FIGURES ? 1 : v->t->keys;
}

static uint32_t columns(const struct view *v)
{
	return names(v) + (v->kind == WIDE ? 1 + SKEP_SWEEP_METRICS : SPREAD_COLUMNS);
}

static bool has_row(const struct view *v, int64_t row)
{
	return row < 0 || v->kind != OF_FIGURES || shown(v->t, (int)row);
}

static bool has_column(const struct view *v, uint32_t column)
{
	return v->kind != WIDE || column <= v->t->keys || shown(v->t, (int)(column - v->t->keys - 1));
}

static const char *heading(const struct view *v, uint32_t column)
{
	static const char *const spread[] = {"runs", "mean", "deviation", "5 %", "95 %", ""};
	uint32_t behind = column - names(v);
	if (column < names(v))
		return v->kind == OF_FIGURES ? "figure" : v->t->key[column];
	return v->kind != WIDE ? spread[behind] : behind == 0 ? "runs" : skep_sweep_metric_title(behind - 1);
}

static void spread_text(const struct skep_sweep_row *row, int metric, uint32_t column, char *ret, size_t size)
{
	const struct skep_sweep_figure *f = &row->figure[metric];
	double unit = skep_sweep_metric_scale(metric), quantile = unit * (column == P5 ? f->p5 : f->p95);
	char mean[SKEP_TEXT_BYTES], deviation[SKEP_TEXT_BYTES];
	mean_and_deviation(f, unit, mean, deviation, sizeof deviation);
	if (column == RUNS)
		runs_text(row, ret, size);
	else if (column == REMARK)
		remark_text(row, metric, ret, size);
	else if (column == MEAN || column == DEVIATION)
		snprintf(ret, size, "%s", column == MEAN ? mean : deviation);
	else if (f->runs == 0)
		snprintf(ret, size, "-");
	else
		snprintf(ret, size, "%.*f", decimals(f->p95 * unit), quantile);
}

/* The text of a cell; row -1 is the heading. */
static const char *cell(const struct view *v, int64_t row, uint32_t column, char *ret, size_t size)
{
	const struct skep_sweep_table *t = v->t;
	uint32_t behind = column - names(v);
	if (row < 0)
		return heading(v, column);
	if (column < names(v))
		return v->kind == OF_FIGURES ? skep_sweep_metric_title((enum skep_sweep_metric)row)
		                             : t->value[(size_t)row * t->keys + column];
	if (v->kind == OF_FIGURES)
		spread_text(&t->row[0], (int)row, behind, ret, size);
	else if (v->kind == OF_FIGURE)
		spread_text(&t->row[row], v->metric, behind, ret, size);
	else if (behind == 0)
		runs_text(&t->row[row], ret, size);
	else
		figure_text(&t->row[row], (int)behind - 1, ret, size);
	return ret;
}

/* Each column as wide as its widest cell, numbers to the right. */
static void print_view(const struct view *v, FILE *out)
{
	int wide[SKEP_SWEEP_KEYS_MOST + 1 + SKEP_SWEEP_METRICS] = {0};
	int64_t rows = v->kind == OF_FIGURES ? SKEP_SWEEP_METRICS : v->t->points;
	char text[160];
	for (uint32_t c = 0; c < columns(v); c++)
		for (int64_t row = -1; row < rows; row++) {
			int here = has_row(v, row) ? skep_layout_width(cell(v, row, c, text, sizeof text)) : 0;
			wide[c] = here > wide[c] ? here : wide[c];
		}
	for (int64_t row = -1; row < rows; row++) {
		if (!has_row(v, row))
			continue;
		int owed = 2; /* blanks, of which none end a line */
		for (uint32_t c = 0; c < columns(v); c++) {
			if (!has_column(v, c))
				continue;
			const char *what = cell(v, row, c, text, sizeof text);
			bool left = v->kind == OF_FIGURES && c == 0;
			owed += left ? 0 : wide[c] - skep_layout_width(what);
			if (*what)
				fprintf(out, "%*s%s", owed, "", what);
			owed = (*what ? 0 : owed) + (left ? wide[c] - skep_layout_width(what) : 0) +
			       (v->kind == WIDE ? 3 : 2);
		}
		fprintf(out, "%s\n", row >= 0 && row == v->marked ? v->mark : "");
	}
}

/* ---- what to make of it ------------------------------------------------------------------------------------------ */

/* The time to the target if a run reached one, else the throughput. */
static enum skep_sweep_metric asked_for(const struct skep_sweep_table *t)
{
	for (uint32_t p = 0; p < t->points; p++)
		if (t->row[p].figure[SKEP_SWEEP_TO_TARGET].runs > 0)
			return SKEP_SWEEP_TO_TARGET;
	return SKEP_SWEEP_THROUGHPUT;
}

/* The row with the best mean; one that more seeds reached goes before. UINT32_MAX: there is nothing to choose, since there is one
 * row alone or all are exactly as good. */
static uint32_t best_row(const struct skep_sweep_table *t, enum skep_sweep_metric by)
{
	uint32_t best = UINT32_MAX, rivals = 0;
	bool differ = false;
	for (uint32_t p = 0; p < t->points; p++) {
		const struct skep_sweep_figure *f = &t->row[p].figure[by];
		const struct skep_sweep_figure *b = best == UINT32_MAX ? NULL : &t->row[best].figure[by];
		if (f->runs == 0)
			continue;
		bool more = b && f->runs > b->runs, as_many = b && f->runs == b->runs;
		bool better = b && (by == SKEP_SWEEP_TO_TARGET ? f->mean < b->mean : f->mean > b->mean);
		rivals++;
		differ = differ || (b && (f->runs != b->runs || f->mean < b->mean || f->mean > b->mean));
		if (!b || more || (as_many && better))
			best = p;
	}
	return rivals > 1 && differ ? best : UINT32_MAX;
}

/* The longer the period the higher the throughput, whatever it does to the loss. */
static bool favours_long_periods(const struct skep_sweep_table *table)
{
	bool periods = false;
	for (uint32_t k = 0; k < table->keys; k++)
		periods = periods || strcmp(table->key[k], "sync.every") == 0 ||
		          strcmp(table->key[k], "sync.method") == 0;
	for (uint32_t p = 0; p < table->points; p++)
		periods = periods && table->row[p].figure[SKEP_SWEEP_LOSS].runs == 0;
	return periods;
}

/* The number that a value begins with, and what stands behind it. False: it begins with none. */
static bool number_of(const char *value, double *ret, const char **ret_unit)
{
	char *end;
	*ret = strtod(value, &end);
	*ret_unit = end;
	return end != value && isfinite(*ret);
}

/* Is the best row's value of a key the least (-1) or the largest (1) of three or more? 0: neither, or they are no numbers. */
static int at_edge(const struct skep_sweep_table *t, uint32_t key, uint32_t best)
{
	double here, other, least = INFINITY, most = -INFINITY;
	const char *unit, *another;
	bool between = false;
	if (!number_of(t->value[(size_t)best * t->keys + key], &here, &unit))
		return 0;
	for (uint32_t p = 0; p < t->points; p++) {
		if (!number_of(t->value[(size_t)p * t->keys + key], &other, &another) || strcmp(unit, another) != 0)
			return 0;
		least = fmin(least, other);
		most = fmax(most, other);
	}
	for (uint32_t p = 0; p < t->points; p++) {
		number_of(t->value[(size_t)p * t->keys + key], &other, &another);
		between = between || (other > least && other < most);
	}
	return !between ? 0 : here <= least ? -1 : here >= most ? 1 : 0;
}

/* Is there a row that is exactly as good as the best one and has another value of a key? Then that value is not better. */
static bool is_tied(const struct skep_sweep_table *t, enum skep_sweep_metric by, uint32_t key, uint32_t best)
{
	assert(best < t->points && key < t->keys);
	const struct skep_sweep_figure *b = &t->row[best].figure[by];
	for (uint32_t p = 0; p < t->points; p++) {
		const struct skep_sweep_figure *f = &t->row[p].figure[by];
		if (f->runs == b->runs && !(f->mean < b->mean) && !(f->mean > b->mean) &&
			strcmp(t->value[(size_t)p * t->keys + key], t->value[(size_t)best * t->keys + key]) != 0)
			return true;
	}
	return false;
}

/* The row with the least loss; UINT32_MAX: not all rows have one, or all are alike. */
static uint32_t least_loss(const struct skep_sweep_table *t)
{
	uint32_t least = 0;
	bool differ = false;
	for (uint32_t p = 0; p < t->points; p++) {
		const struct skep_sweep_figure *f = &t->row[p].figure[SKEP_SWEEP_LOSS];
		const struct skep_sweep_figure *b = &t->row[least].figure[SKEP_SWEEP_LOSS];
		if (f->runs == 0)
			return UINT32_MAX;
		differ = differ || f->mean < b->mean || f->mean > b->mean;
		least = f->mean < b->mean ? p : least;
	}
	return differ ? least : UINT32_MAX;
}

static void print_values(const struct skep_sweep_table *t, uint32_t row, FILE *out)
{
	for (uint32_t k = 0; k < t->keys; k++)
		fprintf(out, "%s %s = %s", k > 0 ? "," : "", t->key[k], t->value[(size_t)row * t->keys + k]);
}

/* Without a target the fastest is the best only where it learns as much. */
static void print_aims(const struct skep_sweep_table *t, uint32_t fastest, uint32_t least, FILE *out)
{
	char loss[SKEP_TEXT_BYTES], its[SKEP_TEXT_BYTES];
	const struct skep_sweep_figure *f = t->row[least].figure, *b = t->row[fastest].figure;
	fprintf(out, "  The least loss, %s, is that of", skep_mean_text(f[SKEP_SWEEP_LOSS].mean, NAN, loss));
	print_values(t, least, out);
	fputs("; the highest throughput that of", out);
	print_values(t, fastest, out);
	fprintf(out, ", with a loss of %s.\n", skep_mean_text(b[SKEP_SWEEP_LOSS].mean, NAN, its));
	fputs("  Which is best depends on what is wanted: --set train.target_loss=LOSS compares times to the same loss.\n",
		out);
}

static void print_edges(const struct skep_sweep_table *t, enum skep_sweep_metric by, uint32_t best, FILE *out)
{
	for (uint32_t k = 0; best != UINT32_MAX && k < t->keys; k++) {
		int edge = is_tied(t, by, k, best) ? 0 : at_edge(t, k, best);
		if (edge != 0)
			fprintf(out, "  The best %s is the %s that was tried, %s: better ones may lie beyond it.\n",
				t->key[k], edge < 0 ? "least" : "largest", t->value[(size_t)best * t->keys + k]);
	}
}

static void print_left(const struct skep_sweep_table *t, FILE *out)
{
	static const char *const name[SKEP_SWEEP_QUANTITIES] = {
		"tokens", "H", "replicas", "staleness", "tokens of a step", "the model"};
	for (uint32_t i = 0; i < t->lefts; i++) {
		const struct skep_sweep_left *l = &t->left[i];
		fprintf(out, "    %s: %s in %u of %u runs", l->law, name[l->quantity], l->runs, t->wanted);
		if (isnan(l->asked[0])) {
			fprintf(out, " (fitted: %s)\n", l->model);
			continue;
		}
		fprintf(out, " (asked: %.4g", l->asked[0]);
		if (l->asked[1] > l->asked[0])
			fprintf(out, " to %.4g", l->asked[1]);
		fprintf(out, "; fitted: %.4g", l->fitted[0]);
		if (l->fitted[1] > l->fitted[0])
			fprintf(out, " to %.4g", l->fitted[1]);
		fputs(")\n", out);
	}
}

static void print_extrapolated(const struct skep_sweep_table *t, FILE *out)
{
	uint32_t count = 0;
	for (uint32_t p = 0; p < t->points; p++)
		count += t->row[p].extrapolated;
	if (count > 0)
		fprintf(out,
			"  Extrapolated: in %u of %u runs the law was asked outside of what it was fitted in, so their losses "
			"are a guess%s\n",
			count, t->done, t->lefts > 0 ? ":" : ";\n  `skep check` with the same --set says in what.");
	if (count > 0)
		print_left(t, out);
}

static bool has_seeds(const struct skep_sweep_table *table)
{
	bool any = false;
	for (uint32_t p = 0; p < table->points; p++)
		any = any || table->row[p].wanted > 1;
	return any;
}

static void print_tables(const struct skep_sweep_table *table, struct view view, enum skep_sweep_metric by, FILE *out)
{
	view.kind = !has_seeds(table) ? WIDE : table->keys > 0 ? OF_FIGURE : OF_FIGURES;
	if (view.kind != OF_FIGURE) {
		print_view(&view, out);
		return;
	}
	uint32_t best = view.marked;
	for (view.metric = 0; view.metric < SKEP_SWEEP_METRICS; view.metric++) {
		if (!shown(table, view.metric))
			continue;
		fprintf(out, "%s\n", skep_sweep_metric_title((enum skep_sweep_metric)view.metric));
		view.marked = view.metric == (int)by ? best : UINT32_MAX;
		print_view(&view, out);
	}
}

void skep_sweep_table_print(const struct skep_sweep_table *table, FILE *out)
{
	enum skep_sweep_metric by = asked_for(table);
	uint32_t best = best_row(table, by);
	struct view view = {
		.t = table,
		.marked = best,
		.mark = by == SKEP_SWEEP_TO_TARGET ? "   <- first at the target" : "   <- highest throughput",
	};
	fprintf(out, "sweep %lld: %s, %u of %u runs%s\n", (long long)table->sweep, table->scenario,
		table->done + table->failed, table->wanted, table->failed ? ", some of which failed" : "");
	print_tables(table, view, by, out);
	if (table->formats > 0)
		fprintf(out, "  number format%s: %s\n", table->formats > 1 ? "s, which are not alike" : "",
			table->format);
	print_extrapolated(table, out);
	uint32_t least = by == SKEP_SWEEP_THROUGHPUT && best != UINT32_MAX ? least_loss(table) : UINT32_MAX;
	if (least != UINT32_MAX && least != best)
		print_aims(table, best, least, out);
	else
		print_edges(table, by, best, out);
	if (best != UINT32_MAX && by == SKEP_SWEEP_THROUGHPUT && favours_long_periods(table))
		fputs("  Throughput alone favours long periods; what they do to the loss is seen with `arithmetic: "
		      "real`, or with\n"
		      "  `arithmetic: law` and a law that `skep fit` makes of runs.\n",
			out);
}
