/* SPDX-License-Identifier: Apache-2.0
 *
 * print.c - see print.h. What a plan says to a person. "Times" is always how often the plan is better: its throughput over the
 * other's, the other's time and money over its.
 */
#include "planning/print/print.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/store/number_format.h"
#include "base/layout.h"
#include "planning/plan/confirm.h"
#include "planning/plan/free_settings.h"
#include "planning/plan/searches.h"

#define SHOWN 10u /* settings */

const char *const skep_aim_words[SKEP_AIMS] = {"throughput", "time to the target loss", "cost to the target loss"};

/* ---- settings ----------------------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	const struct skep_point *x = *(const struct skep_point *const *)a, *y = *(const struct skep_point *const *)b;
	double first = skep_point_value(x), second = skep_point_value(y);
	if (x->rung == SKEP_RUNG_WHOLE || y->rung == SKEP_RUNG_WHOLE) /* what is confirmed stands above what is not */
		if (x->rung != y->rung)
			return x->rung == SKEP_RUNG_WHOLE ? -1 : 1;
	return first != second ? (first > second) - (first < second)
	                       : (x->number > y->number) - (x->number < y->number);
}

const struct skep_point **skep_planner_points(const struct skep_free_settings *j, uint32_t *ret_count)
{
	const struct skep_point **row = calloc(j->points + 1, sizeof *row);
	*ret_count = 0;
	for (uint32_t i = 0; row && i < j->points; i++)
		if (j->point[i].can && j->point[i].rung >= SKEP_RUNG_TRIAL)
			row[(*ret_count)++] = &j->point[i];
	if (row)
		qsort(row, *ret_count, sizeof *row, by_value);
	return row;
}

static void lay_point(const struct skep_free_settings *j, const struct skep_point *p, struct skep_layout *layout)
{
	char text[SKEP_TEXT_BYTES], name[512];
	double time_s = skep_point_time_s(p), usd = skep_point_usd(p);
	bool chosen = p == &j->point[j->chosen];
	skep_choices_name(&j->choices, p->number, name, sizeof name);
	skep_layout_cell(layout, "%s", skep_time_text(p->expected_s, text));
	skep_layout_cell(layout, "%s", skep_time_text(p->round_s, text));
	skep_layout_cell(layout, "%.6g", p->tried.samples_per_s);
	skep_layout_cell(layout, "%s", isfinite(time_s) ? skep_time_text(time_s, text) : "-");
	if (isfinite(usd))
		skep_layout_cell(layout, "%.4g", usd);
	else
		skep_layout_cell(layout, "-");
	skep_layout_cell(
		layout, "%s%s%s", chosen ? "chosen: " : "", name, skep_point_extrapolates(p) ? " (extrapolated)" : "");
}

static bool is_refused(const struct skep_point *p)
{
	return !p->can && p->why[0] != '\0';
}

uint32_t skep_planner_refused(const struct skep_free_settings *j)
{
	uint32_t refused = 0;
	for (uint32_t i = 1; i < j->points; i++)
		refused += is_refused(&j->point[i]);
	return refused;
}

static void print_refused(const struct skep_free_settings *j, FILE *out)
{
	uint32_t refused = skep_planner_refused(j), first = 1;
	char name[512];
	if (refused == 0)
		return;
	while (!is_refused(&j->point[first]))
		first++;
	skep_choices_name(&j->choices, j->point[first].number, name, sizeof name);
	fprintf(out, "%" PRIu32 " cannot be, such as %s: %s\n", refused, name, j->point[first].why);
}

static void print_front(
	const struct skep_free_settings *j, const struct skep_point *const *row, uint32_t rows, FILE *out)
{
	char text[SKEP_TEXT_BYTES], name[512];
	uint32_t front = 0;
	if (!j->options->pareto)
		return;
	for (uint32_t i = 0; i < rows; i++)
		front += row[i]->front;
	fprintf(out, "\nnothing that was simulated is both faster and cheaper than %s\n",
		front == 0   ? "... no time or no price is known"
		: front == 1 ? "this"
			     : "one of these");
	for (uint32_t i = 0; i < rows; i++) {
		if (!row[i]->front)
			continue;
		skep_choices_name(&j->choices, row[i]->number, name, sizeof name);
		fprintf(out, "  %s, %.4g USD: %s\n", skep_time_text(skep_point_time_s(row[i]), text),
			skep_point_usd(row[i]), name);
	}
}

static void print_settings(const struct skep_free_settings *j, FILE *out)
{
	static const char *const head[] = {"expected", "simulated", "samples/s", "to the loss", "USD", "settings"};
	struct skep_layout layout;
	uint32_t rows;
	const struct skep_point **row = skep_planner_points(j, &rows);
	if (!row)
		return;
	fprintf(out,
		"settings for %s: %" PRIu32 " of %" PRIu32 " combinations looked at, %" PRIu32
		" simulated; a step's time as expected and simulated\n\n",
		skep_aim_words[j->aim], j->points - 1, j->choices.points, rows);
	skep_layout_begin(&layout, "rrrrrl", head);
	for (uint32_t i = 0; i < rows; i++)
		if (i < SHOWN || row[i] == &j->point[j->chosen] || row[i]->number == SKEP_AS_GIVEN || row[i]->front)
			lay_point(j, row[i], &layout);
	skep_layout_end(&layout, out);
	fprintf(out, "\n");
	print_refused(j, out);
	print_front(j, row, rows, out);
	fprintf(out, "\n");
	free(row);
}

/* ---- the comparison ----------------------------------------------------------------------------------------------- */

static void lay_step(struct skep_layout *layout, double seconds)
{
	char text[SKEP_TEXT_BYTES];
	skep_layout_cell(layout, "%s", seconds < SKEP_NEVER ? skep_time_text(seconds, text) : "-");
}

/* "layers 3 2 2 2"; of many, only that there is a cut. */
static void name_cut(const struct skep_planner *w, const uint32_t *layers, char *ret, size_t size)
{
	uint32_t vstages = skep_plan_vstages(&w->scenario.plan);
	int used = snprintf(ret, size, "layers");
	for (uint32_t i = 0; i < vstages && (size_t)used + 8 < size; i++)
		used += snprintf(ret + used, size - (size_t)used, " %" PRIu32, layers[i]);
	if ((size_t)used + 8 >= size)
		snprintf(ret, size, "another cut");
}

/* Did the search find what another one had found before, of the same view? */
static bool is_again(const struct skep_planner *w, uint32_t which, uint32_t before)
{
	const struct skep_candidate *c = &w->candidate[which], *b = &w->candidate[before];
	return before > 0 && before < which && !c->layers && !b->layers && c->view == b->view &&
	       c->by_expected == b->by_expected && skep_planner_same_stages(w, c, b);
}

/* The row that a candidate has: its own, or that of the first search that found it. */
static uint32_t row_of(const struct skep_planner *w, uint32_t which)
{
	for (uint32_t i = 1; i < which; i++)
		if (is_again(w, which, i))
			return i;
	return which;
}

/* "as greedy, exact": the other searches that found it. */
static void name_others(const struct skep_planner *w, uint32_t which, char *ret, size_t size)
{
	int used = 0;
	for (uint32_t i = which + 1; i < w->candidates && which > 0; i++)
		if (row_of(w, i) == which && strstr(ret, w->candidate[i].name) == NULL &&
			strcmp(w->candidate[which].name, w->candidate[i].name) != 0 && (size_t)used + 16 < size)
			used += snprintf(
				ret + used, size - (size_t)used, "%s%s", used > 0 ? ", " : "as ", w->candidate[i].name);
}

#define LEAST "the least cost of all allocations"

static void lay_remarks(const struct skep_planner *w, uint32_t which, struct skep_layout *layout)
{
	const struct skep_candidate *c = &w->candidate[which];
	uint32_t out = which > 0 ? skep_planner_left_out(w, c->stage_of) : 0;
	/* that search says the least and the mean of all */
	for (uint32_t i = which; i < w->candidates && isnan(c->mean_s); i++)
		if (row_of(w, i) == which && !isnan(w->candidate[i].mean_s))
			c = &w->candidate[i];
	const char *chosen = which == row_of(w, w->chosen) ? "chosen" : "",
		   *optimal = c->optimal && isnan(c->mean_s) ? LEAST : "";
	char left[40] = "", cut[80] = "", all[120] = "", others[160] = "", mean[SKEP_TEXT_BYTES],
	     worst[SKEP_TEXT_BYTES];
	if (out > 0)
		snprintf(left, sizeof left, "%" PRIu32 " left out", out);
	else if (c->lean)
		snprintf(left, sizeof left, "may leave machines out");
	if (c->layers)
		name_cut(w, c->layers, cut, sizeof cut);
	if (!isnan(c->mean_s))
		snprintf(all, sizeof all, "%s: mean %s, worst %s", c->optimal ? LEAST : "costs of all allocations",
			skep_time_text(c->mean_s, mean), skep_time_text(c->worst_s, worst));
	name_others(w, which, others, sizeof others);
	const char *part[] = {chosen, optimal, all, left, cut, others};
	char text[480] = "";
	for (size_t i = 0; i < sizeof part / sizeof *part; i++)
		if (*part[i])
			snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", *text ? ", " : "", part[i]);
	skep_layout_cell(layout, "%s", text);
}

static void lay_candidate(const struct skep_planner *w, uint32_t which, struct skep_layout *layout)
{
	const struct skep_candidate *c = &w->candidate[which];
	skep_layout_cell(layout, "%s", c->name);
	skep_layout_cell(layout, "%s", which == 0 ? "-" : skep_planner_view(c));
	lay_step(layout, c->cost_s[c->view]);
	lay_step(layout, c->expected_s);
	if (c->tried) {
		lay_step(layout, c->round_s);
		skep_layout_cell(layout, "%.6g", c->samples_per_s);
		if (w->random_rate.count > 0)
			skep_layout_cell(layout, "%.2f", c->samples_per_s / w->random_rate.mean);
		else
			skep_layout_cell(layout, "-");
	} else {
		skep_layout_cell(layout, "%s", c->fits ? "-" : "does not fit");
		skep_layout_cell(layout, "-");
		skep_layout_cell(layout, "-");
	}
	lay_remarks(w, which, layout);
}

/* What the words under `links` mean, where the rows differ in them. */
static void print_views(const struct skep_planner *w, FILE *out)
{
	bool any = false;
	for (uint32_t i = 1; i < w->candidates; i++)
		any = any || w->candidate[i].view != w->candidate[1].view || w->candidate[i].by_expected;
	if (any)
		fprintf(out,
			"links, by which a search went: shared, an even part of what a site's machines share; alone, what one\n"
			"flow gets; all, what is expected with all that is shared\n");
	if (w->scenario.has_trace)
		fprintf(out,
			"a machine that the trace takes away in these steps weighs more than in a whole run, of which the lines\n"
			"below are\n");
}

static void lay_random(const struct skep_planner *w, struct skep_layout *layout)
{
	char rate[SKEP_TEXT_BYTES];
	skep_layout_cell(layout, "mean random");
	skep_layout_cell(layout, "-");
	skep_layout_cell(layout, "-");
	lay_step(layout, w->random_step.count > 0 ? w->random_step.mean : SKEP_NEVER);
	lay_step(layout, w->random_round.count > 0 ? w->random_round.mean : SKEP_NEVER);
	if (w->random_rate.count > 0)
		skep_layout_cell(layout, "%s", skep_mean_text(w->random_rate.mean, w->random_rate.half, rate));
	else
		skep_layout_cell(layout, "-");
	skep_layout_cell(layout, w->random_rate.count > 0 ? "1.00" : "-");
	skep_layout_cell(layout, "of %" PRIu32 " allocations, with these settings%s", w->random_rate.count,
		w->random_rate.count < skep_searches_randoms(w) ? ", the others cannot be or were not tried" : "");
}

/* ---- what was confirmed ------------------------------------------------------------------------------------------- */

enum skep_plan_trace skep_planner_trace(const struct skep_planner *w)
{
	if (!w->scenario.has_trace)
		return SKEP_PLAN_TRACE_NONE;
	return w->scenario.churn.drawn_from.scale_s > 0 ? SKEP_PLAN_TRACE_DRAWN : SKEP_PLAN_TRACE_RECORDED;
}

static void lay_mean(struct skep_layout *layout, struct skep_interval r)
{
	char text[SKEP_TEXT_BYTES];
	skep_layout_cell(layout, "%s", r.count > 0 ? skep_mean_text(r.mean, r.high - r.mean, text) : "-");
}

static void lay_side(const struct skep_confirm *c, uint32_t side, struct skep_layout *layout)
{
	const struct skep_confirm_side *s = &c->side[side];
	skep_layout_cell(layout, "%s", s->name);
	for (uint32_t i = 0; i < SKEP_FIGURES; i++)
		lay_mean(layout, skep_confirm_mean(c, side, i));
	skep_layout_cell(layout, "%" PRIu32 " of %" PRIu32, s->ended, c->seeds);
	skep_layout_cell(layout, s->reached > 0 ? "%" PRIu32 " of %" PRIu32 : "-", s->reached, c->seeds);
}

/* The plan against another side in a figure: the difference, how many times better it is, and that of the worst pair. */
static void lay_figure(
	const struct skep_confirm *c, uint32_t side, enum skep_figure figure, uint32_t row, struct skep_layout *layout)
{
	struct skep_interval times = skep_confirm_times(c, side, figure);
	double least = skep_confirm_least_times(c, side, figure);
	if (row == 0)
		lay_mean(layout, skep_confirm_difference(c, side, figure));
	else if (row == 1 && times.count > 1)
		skep_layout_cell(layout, "%.3f (%.3f to %.3f)", times.mean, times.low, times.high);
	else if (row == 2 && isfinite(least))
		skep_layout_cell(layout, "%.3f", least);
	else
		skep_layout_cell(layout, "-");
}

static void lay_against(const struct skep_confirm *c, uint32_t side, struct skep_layout *layout)
{
	static const char *const head[] = {"plan - ", "times better than ", "  in the worst pair"};
	for (uint32_t row = 0; row < 3; row++) {
		skep_layout_cell(layout, "%s%s", head[row], row < 2 ? c->side[side].name : "");
		for (uint32_t i = 0; i < SKEP_FIGURES; i++)
			lay_figure(c, side, i, row, layout);
		skep_layout_cell(layout, "%s", "");
		skep_layout_cell(layout, "%s", "");
	}
}

static void print_impossible(const struct skep_confirm *c, FILE *out)
{
	for (uint32_t i = 0; i < c->sides; i++)
		if (c->side[i].impossible > 0)
			fprintf(out,
				"%s: %" PRIu32 " of %" PRIu32
				" runs cannot be, and their pairs are left out; the first: %s\n",
				c->side[i].name, c->side[i].impossible, c->seeds, c->side[i].why);
}

static void print_confirmed(const struct skep_planner *w, FILE *out)
{
	const struct skep_confirm *c = w->confirmed;
	static const char *const head[] = {"", "samples/s", "s to the loss", "USD to the loss", "ended", "reached"};
	static const char *const shared[] = {"without a trace", "with the one trace, played as the seed draws",
		"each with a trace of its own, drawn by the seed"};
	struct skep_layout layout;
	fprintf(out,
		"\nconfirmed with %" PRIu32 " seeds that the plan has not seen, %" PRIu64 " to %" PRIu64
		", %s:\nmeans with their intervals of 95 %% by Student's t; the plan is compared with others seed by seed\n\n",
		c->seeds, c->first_seed, c->first_seed + c->seeds - 1, shared[skep_planner_trace(w)]);
	skep_layout_begin(&layout, "lrrrrr", head);
	for (uint32_t i = 0; i < c->sides; i++)
		lay_side(c, i, &layout);
	for (uint32_t i = 0; i + 1 < c->sides; i++)
		lay_against(c, i, &layout);
	skep_layout_end(&layout, out);
	print_impossible(c, out);
}

/* ---- a statement ---------------------------------------------------------------------------------------------------- */

static void say_mean(const struct skep_confirm *c, enum skep_figure figure, const char *unit, FILE *out)
{
	struct skep_interval r = skep_confirm_mean(c, c->sides - 1, figure);
	char text[SKEP_TEXT_BYTES];
	fprintf(out, "%s %s", skep_mean_text(r.mean, r.high - r.mean, text), unit);
}

void skep_planner_print_stated(const struct skep_planner *w, const char *margin, FILE *out)
{
	static const char *const shared[] = {"", ", the trace played as each draws", ", each with a trace of its own"};
	const struct skep_confirm *c = w->stated;
	const struct skep_confirm_side *plan = &c->side[c->sides - 1];
	fprintf(out, "%sexpected with %" PRIu32 " other seeds%s, ", margin, c->seeds, shared[skep_planner_trace(w)]);
	if (c->span.whole)
		fprintf(out, "in whole runs: ");
	else
		fprintf(out, "in %" PRIu32 " steps behind the first %" PRIu32 ": ", c->span.rounds - c->span.warm_up,
			c->span.warm_up);
	if (plan->ended == 0) {
		fprintf(out, "none of these runs comes to its end%s%.*s\n", plan->why[0] ? ": " : "",
			(int)strcspn(plan->why, "\n"), plan->why);
		return;
	}
	say_mean(c, SKEP_FIGURE_RATE, "samples/s", out);
	struct skep_interval times = skep_confirm_times(c, 0, SKEP_FIGURE_RATE);
	if (times.count > 1)
		fprintf(out, ", %.2f times random starts of the scenario as written (%.2f to %.2f)", times.mean,
			times.low, times.high);
	if (plan->reached > 0) {
		fprintf(out, "\n%s  ", margin);
		say_mean(c, SKEP_FIGURE_TIME, "s to the target loss", out);
	}
	if (plan->reached > 0 && isfinite(skep_confirm_mean(c, c->sides - 1, SKEP_FIGURE_USD).mean)) {
		fprintf(out, ", ");
		say_mean(c, SKEP_FIGURE_USD, "USD", out);
	}
	if (plan->ended < c->seeds)
		fprintf(out, "; %" PRIu32 " of them end", plan->ended);
	fprintf(out, "\n");
}

/* ---- all of it ------------------------------------------------------------------------------------------------------ */

static void print_whole(const struct skep_planner *w, FILE *out)
{
	char time[SKEP_TEXT_BYTES];
	double whole_s = skep_confirm_whole_s(w), usd = skep_planner_whole_usd(w, whole_s);
	fprintf(out, "all %" PRIu64 " step%s: %s", skep_planner_steps(w), skep_plural(skep_planner_steps(w)),
		skep_time_text(whole_s, time));
	if (isfinite(usd))
		fprintf(out, ", %.4g USD at the prices of the start", usd);
	fprintf(out, skep_confirm_has_whole(w) ? ", in the mean of whole runs\n" : ", if no machine is lost\n");
}

static void print_published(const struct skep_planner *w, FILE *out)
{
	char says[SKEP_TEXT_BYTES], takes[SKEP_TEXT_BYTES];
	fprintf(out, ": what plan.method says, and nothing else was searched for");
	if (w->published_s > 0)
		fprintf(out, "; by its own formula a step takes %s, in the simulator %s",
			skep_time_text(w->published_s, says), skep_time_text(w->candidate[w->chosen].round_s, takes));
}

static void print_chosen(const struct skep_planner *w, FILE *out)
{
	const struct skep_candidate *c = &w->candidate[w->chosen];
	char time[SKEP_TEXT_BYTES];
	fprintf(out, "\nchosen: %s, %.6g samples/s simulated", c->name, c->samples_per_s);
	if (w->published)
		print_published(w, out);
	else if (w->chosen == 0)
		fprintf(out, ": the scenario's own allocation, and nothing that was tried is better");
	else if (w->candidate[0].tried)
		fprintf(out, ", %.2f times the scenario's own allocation",
			c->samples_per_s / w->candidate[0].samples_per_s);
	if (c->layers && w->even_samples_per_s > 0)
		fprintf(out, ", %.2f times the best that was tried without another cut",
			c->samples_per_s / w->even_samples_per_s);
	if (c->forecast.rounds > 0)
		fprintf(out, "; %s to the target loss%s", skep_time_text(c->forecast.time_s, time),
			c->forecast.extrapolated ? " (extrapolated)" : "");
	if (c->forecast.rounds > 0 && isfinite(c->forecast.usd))
		fprintf(out, ", %.4g USD", c->forecast.usd);
	fprintf(out, "\n");
	if (c->tried)
		print_whole(w, out);
	if (w->opened)
		fprintf(out,
			"%s: as it is cut by itself the model fits no machine's memory, so all of this is with another cut\n",
			w->with.set[w->with.sets - 1]);
	if (c->forecast.rounds > 0 && c->forecast.extrapolated)
		fprintf(out, "extrapolated: the law was fitted elsewhere: %s\n", c->forecast.how);
}

void skep_planner_print(const struct skep_planner *w, bool explain, FILE *out)
{
	static const char *const head[] = {
		"allocation", "links", "cost", "expected", "simulated", "samples/s", "times mean random", ""};
	struct skep_layout layout;
	char format[SKEP_NUMBER_FORMAT_BYTES];
	if (w->settings)
		print_settings(w->settings, out);
	fprintf(out,
		"%s: %" PRIu32 " worker%s in %" PRIu32 " stage%s; a step's time as expected, and in %" PRIu32
		" simulated\n",
		w->scenario.name, w->planning.workers, skep_plural(w->planning.workers), w->planning.stages,
		skep_plural(w->planning.stages), w->rounds);
	skep_number_format_text(&w->scenario, "sim", "cpu", false, format);
	fprintf(out, "number format: %s%s\n\n", format, skep_number_format_hint(&w->scenario));
	skep_layout_begin(&layout, "llrrrrrl", head);
	lay_candidate(w, 0, &layout);
	lay_random(w, &layout);
	for (uint32_t i = 1; i < w->candidates; i++)
		if (row_of(w, i) == i)
			lay_candidate(w, i, &layout);
	skep_layout_end(&layout, out);
	print_views(w, out);
	print_chosen(w, out);
	skep_planner_print_stated(w, "", out);
	if (explain)
		skep_planner_explain(w, out);
	if (w->confirmed)
		print_confirmed(w, out);
}
