/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_confirm_print.c - what `skep plan --confirm` has seen, for a person and as JSON. "Times" is always how often the plan
 * is better: its throughput over the other's, the other's time and money over its.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "commands/plan_confirm.h"
#include "planning/interval.h"
#include "scenarios/json.h"
#include "scenarios/layout.h"

static const char *const traces[] = {"none", "recorded", "drawn"};

static uint32_t kind_of_trace(const struct skep_scenario *s)
{
	return !s->has_trace ? 0 : s->churn.drawn_from.scale_s > 0 ? 2 : 1;
}

static struct skep_interval difference_of(const struct plan_confirm *c, uint32_t side, enum plan_figure figure)
{
	return skep_interval_difference(c->side[c->sides - 1].value[figure], c->side[side].value[figure], c->seeds);
}

struct skep_interval plan_confirm_times(const struct plan_confirm *c, uint32_t side, enum plan_figure figure)
{
	const double *plan = c->side[c->sides - 1].value[figure], *other = c->side[side].value[figure];
	return figure == PLAN_RATE ? skep_interval_ratio(plan, other, c->seeds)
	                           : skep_interval_ratio(other, plan, c->seeds);
}

struct skep_interval plan_confirm_mean(const struct plan_confirm *c, uint32_t side, enum plan_figure figure)
{
	return skep_interval_of(c->side[side].value[figure], c->seeds);
}

/* Of all pairs; NAN: there are none. */
static double least_times(const struct plan_confirm *c, uint32_t side, enum plan_figure figure)
{
	const double *plan = c->side[c->sides - 1].value[figure], *other = c->side[side].value[figure];
	double least = NAN;
	for (uint32_t i = 0; i < c->seeds; i++)
		least = fmin(least, figure == PLAN_RATE ? plan[i] / other[i] : other[i] / plan[i]);
	return least;
}

/* ---- text ----------------------------------------------------------------------------------------------------------- */

static void lay_mean(struct skep_layout *layout, const struct skep_interval *r)
{
	char text[SKEP_TEXT_BYTES];
	skep_layout_cell(layout, "%s", r->count > 0 ? skep_mean_text(r->mean, r->high - r->mean, text) : "-");
}

static void lay_side(const struct plan_confirm *c, uint32_t side, struct skep_layout *layout)
{
	const struct plan_side *s = &c->side[side];
	skep_layout_cell(layout, "%s", s->name);
	for (uint32_t i = 0; i < PLAN_FIGURES; i++) {
		struct skep_interval r = plan_confirm_mean(c, side, i);
		lay_mean(layout, &r);
	}
	skep_layout_cell(layout, "%" PRIu32 " of %" PRIu32, s->ended, c->seeds);
	skep_layout_cell(layout, s->reached > 0 ? "%" PRIu32 " of %" PRIu32 : "-", s->reached, c->seeds);
}

static void lay_difference(const struct plan_confirm *c, uint32_t side, struct skep_layout *layout)
{
	skep_layout_cell(layout, "plan - %s", c->side[side].name);
	for (uint32_t i = 0; i < PLAN_FIGURES; i++) {
		struct skep_interval r = difference_of(c, side, i);
		lay_mean(layout, &r);
	}
	skep_layout_cell(layout, "%s", "");
	skep_layout_cell(layout, "%s", "");
}

static void lay_times(const struct plan_confirm *c, uint32_t side, struct skep_layout *layout)
{
	skep_layout_cell(layout, "times better than %s", c->side[side].name);
	for (uint32_t i = 0; i < PLAN_FIGURES; i++) {
		struct skep_interval r = plan_confirm_times(c, side, i);
		if (r.count > 1)
			skep_layout_cell(layout, "%.3f (%.3f to %.3f)", r.mean, r.low, r.high);
		else
			skep_layout_cell(layout, "-");
	}
	skep_layout_cell(layout, "%s", "");
	skep_layout_cell(layout, "%s", "");
}

static void lay_least(const struct plan_confirm *c, uint32_t side, struct skep_layout *layout)
{
	skep_layout_cell(layout, "  in the worst pair");
	for (uint32_t i = 0; i < PLAN_FIGURES; i++)
		if (isfinite(least_times(c, side, i)))
			skep_layout_cell(layout, "%.3f", least_times(c, side, i));
		else
			skep_layout_cell(layout, "-");
	skep_layout_cell(layout, "%s", "");
	skep_layout_cell(layout, "%s", "");
}

static void print_impossible(const struct plan_confirm *c, FILE *out)
{
	for (uint32_t i = 0; i < c->sides; i++)
		if (c->side[i].impossible > 0)
			fprintf(out,
				"%s: %" PRIu32 " of %" PRIu32
				" runs cannot be, and their pairs are left out; the first: %s\n",
				c->side[i].name, c->side[i].impossible, c->seeds, c->side[i].why);
}

void plan_confirm_print(const struct plan_work *w, const struct plan_confirm *c, FILE *out)
{
	static const char *const head[] = {"", "samples/s", "s to the loss", "USD to the loss", "ended", "reached"};
	static const char *const shared[] = {"without a trace", "with the one trace, played as the seed draws",
		"each with a trace of its own, drawn by the seed"};
	struct skep_layout layout;
	fprintf(out,
		"\nconfirmed with %" PRIu32 " seeds that the plan has not seen, %" PRIu64 " to %" PRIu64
		", %s:\nmeans with their intervals of 95 %% by Student's t; the plan is compared with others seed by seed\n\n",
		c->seeds, c->first_seed, c->first_seed + c->seeds - 1, shared[kind_of_trace(&w->scenario)]);
	skep_layout_begin(&layout, "lrrrrr", head);
	for (uint32_t i = 0; i < c->sides; i++)
		lay_side(c, i, &layout);
	for (uint32_t i = 0; i + 1 < c->sides; i++) {
		lay_difference(c, i, &layout);
		lay_times(c, i, &layout);
		lay_least(c, i, &layout);
	}
	skep_layout_end(&layout, out);
	print_impossible(c, out);
}

/* ---- a statement ---------------------------------------------------------------------------------------------------- */

static void say_mean(const struct plan_confirm *c, enum plan_figure figure, const char *unit, FILE *out)
{
	struct skep_interval r = plan_confirm_mean(c, c->sides - 1, figure);
	char text[SKEP_TEXT_BYTES];
	fprintf(out, "%s %s", skep_mean_text(r.mean, r.high - r.mean, text), unit);
}

void plan_confirm_print_stated(const struct plan_work *w, const char *margin, FILE *out)
{
	static const char *const shared[] = {"", ", the trace played as each draws", ", each with a trace of its own"};
	const struct plan_confirm *c = w->stated;
	const struct plan_side *plan = &c->side[c->sides - 1];
	fprintf(out, "%sexpected with %" PRIu32 " other seeds%s, ", margin, c->seeds,
		shared[kind_of_trace(&w->scenario)]);
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
	say_mean(c, PLAN_RATE, "samples/s", out);
	struct skep_interval times = plan_confirm_times(c, 0, PLAN_RATE);
	if (times.count > 1)
		fprintf(out, ", %.2f times random (%.2f to %.2f)", times.mean, times.low, times.high);
	if (plan->reached > 0) {
		fprintf(out, "\n%s  ", margin);
		say_mean(c, PLAN_TIME, "s to the target loss", out);
	}
	if (plan->reached > 0 && isfinite(plan_confirm_mean(c, c->sides - 1, PLAN_USD).mean)) {
		fprintf(out, ", ");
		say_mean(c, PLAN_USD, "USD", out);
	}
	if (plan->ended < c->seeds)
		fprintf(out, "; %" PRIu32 " of them end", plan->ended);
	fprintf(out, "\n");
}

/* ---- JSON ----------------------------------------------------------------------------------------------------------- */

static const char *const keys[] = {"throughput_samples_per_s", "time_to_target_s", "cost_to_target_usd"};

static cJSON *interval_of(const struct skep_interval *r)
{
	cJSON *object = cJSON_CreateObject();
	cJSON_AddNumberToObject(object, "count", r->count);
	skep_json_add_number(object, "mean", r->mean);
	skep_json_add_number(object, "low95", r->low);
	skep_json_add_number(object, "high95", r->high);
	return object;
}

static cJSON *side_of(const struct plan_confirm *c, uint32_t side)
{
	const struct plan_side *s = &c->side[side];
	cJSON *object = cJSON_CreateObject();
	cJSON_AddStringToObject(object, "name", s->name);
	cJSON_AddNumberToObject(object, "ended", s->ended);
	cJSON_AddNumberToObject(object, "reached", s->reached);
	cJSON_AddNumberToObject(object, "impossible", s->impossible);
	for (uint32_t i = 0; i < PLAN_FIGURES; i++) {
		struct skep_interval r = plan_confirm_mean(c, side, i);
		cJSON *figure = interval_of(&r), *values = cJSON_AddArrayToObject(figure, "values");
		for (uint32_t seed = 0; seed < c->seeds; seed++)
			cJSON_AddItemToArray(values, isfinite(s->value[i][seed]) ? cJSON_CreateNumber(s->value[i][seed])
										 : cJSON_CreateNull());
		cJSON_AddItemToObject(object, keys[i], figure);
	}
	return object;
}

static cJSON *against_of(const struct plan_confirm *c, uint32_t side)
{
	cJSON *object = cJSON_CreateObject();
	cJSON_AddStringToObject(object, "name", c->side[side].name);
	for (uint32_t i = 0; i < PLAN_FIGURES; i++) {
		struct skep_interval minus = difference_of(c, side, i), times = plan_confirm_times(c, side, i);
		cJSON *figure = cJSON_AddObjectToObject(object, keys[i]);
		cJSON_AddItemToObject(figure, "difference", interval_of(&minus));
		cJSON_AddItemToObject(figure, "times", interval_of(&times));
		skep_json_add_number(figure, "least_times", least_times(c, side, i));
	}
	return object;
}

void plan_confirm_add_json(const struct plan_work *w, const struct plan_confirm *c, cJSON *root)
{
	cJSON *confirmed = cJSON_AddObjectToObject(root, c->stated ? "stated" : "confirmed");
	if (c->stated) {
		cJSON_AddNumberToObject(confirmed, "rounds", c->span.rounds);
		cJSON_AddNumberToObject(confirmed, "rounds_not_counted", c->span.warm_up);
		cJSON_AddBoolToObject(confirmed, "whole", c->span.whole);
	}
	cJSON_AddNumberToObject(confirmed, "seeds", c->seeds);
	cJSON_AddNumberToObject(confirmed, "first_seed", (double)c->first_seed);
	cJSON_AddStringToObject(confirmed, "traces", traces[kind_of_trace(&w->scenario)]);
	cJSON *sides = cJSON_AddArrayToObject(confirmed, "sides"),
	      *against = cJSON_AddArrayToObject(confirmed, "plan_against");
	for (uint32_t i = 0; i < c->sides; i++)
		cJSON_AddItemToArray(sides, side_of(c, i));
	for (uint32_t i = 0; i + 1 < c->sides; i++)
		cJSON_AddItemToArray(against, against_of(c, i));
}
