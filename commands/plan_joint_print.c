/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_joint_print.c - the settings that `skep plan` compared, for a person and as JSON: those that were simulated, the best
 * first, and the scenario as it is written.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "commands/plan_joint.h"
#include "scenarios/json.h"
#include "scenarios/layout.h"

#define SHOWN 10u

static const char *const WANTED[SKEP_AIMS] = {"throughput", "time to the target loss", "cost to the target loss"};

static int by_value(const void *a, const void *b)
{
	const struct plan_point *x = *(const struct plan_point *const *)a, *y = *(const struct plan_point *const *)b;
	double first = plan_point_value(x), second = plan_point_value(y);
	if (x->rung == PLAN_WHOLE || y->rung == PLAN_WHOLE) /* what is confirmed stands above what is not */
		if (x->rung != y->rung)
			return x->rung == PLAN_WHOLE ? -1 : 1;
	return first != second ? (first > second) - (first < second)
	                       : (x->number > y->number) - (x->number < y->number);
}

/* Those that were simulated, sorted; the caller frees it. NULL: no memory. */
static const struct plan_point **sorted(const struct plan_joint *j, uint32_t *ret_count)
{
	const struct plan_point **row = calloc(j->points + 1, sizeof *row);
	*ret_count = 0;
	for (uint32_t i = 0; row && i < j->points; i++)
		if (j->point[i].can && j->point[i].rung >= PLAN_TRIAL)
			row[(*ret_count)++] = &j->point[i];
	if (row)
		qsort(row, *ret_count, sizeof *row, by_value);
	return row;
}

static bool extrapolates(const struct plan_point *p)
{
	return p->rung == PLAN_WHOLE ? p->extrapolated : p->tried.extrapolated;
}

static void lay_point(const struct plan_joint *j, const struct plan_point *p, struct skep_layout *layout)
{
	char text[SKEP_TEXT_BYTES], name[512];
	double time_s = plan_point_time_s(p), usd = plan_point_usd(p);
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
	skep_layout_cell(layout, "%s%s%s", chosen ? "chosen: " : "", name, extrapolates(p) ? " (extrapolated)" : "");
}

static void print_refused(const struct plan_joint *j, FILE *out)
{
	uint32_t refused = 0, first = 0;
	char name[512];
	for (uint32_t i = j->points; i-- > 1;)
		if (!j->point[i].can && j->point[i].why[0] != '\0') {
			refused++;
			first = i;
		}
	if (refused == 0)
		return;
	skep_choices_name(&j->choices, j->point[first].number, name, sizeof name);
	fprintf(out, "%" PRIu32 " cannot be, such as %s: %s\n", refused, name, j->point[first].why);
}

static void print_front(const struct plan_joint *j, const struct plan_point *const *row, uint32_t rows, FILE *out)
{
	char text[SKEP_TEXT_BYTES], name[512];
	uint32_t front = 0;
	if (!j->arguments.pareto)
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
		fprintf(out, "  %s, %.4g USD: %s\n", skep_time_text(plan_point_time_s(row[i]), text),
			plan_point_usd(row[i]), name);
	}
}

void plan_joint_print(const struct plan_joint *j, FILE *out)
{
	static const char *const head[] = {"expected", "simulated", "samples/s", "to the loss", "USD", "settings"};
	struct skep_layout layout;
	uint32_t rows;
	const struct plan_point **row = sorted(j, &rows);
	if (!row)
		return;
	fprintf(out,
		"settings for %s: %" PRIu32 " of %" PRIu32 " combinations looked at, %" PRIu32
		" simulated; a step's time as expected and simulated\n\n",
		WANTED[j->aim], j->points - 1, j->choices.points, rows);
	skep_layout_begin(&layout, "rrrrrl", head);
	for (uint32_t i = 0; i < rows; i++)
		if (i < SHOWN || row[i] == &j->point[j->chosen] || row[i]->number == SKEP_AS_WRITTEN || row[i]->front)
			lay_point(j, row[i], &layout);
	skep_layout_end(&layout, out);
	fprintf(out, "\n");
	print_refused(j, out);
	print_front(j, row, rows, out);
	fprintf(out, "\n");
	free(row);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static cJSON *settings_of(const struct plan_joint *j, const struct plan_point *p)
{
	cJSON *object = cJSON_CreateObject();
	for (uint32_t i = 0; p->number != SKEP_AS_WRITTEN && i < j->choices.keys; i++) {
		const struct skep_vary_key *key = &j->choices.free->key[j->choices.key[i]];
		cJSON_AddStringToObject(object, key->key, key->value[skep_choices_digit(&j->choices, p->number, i)]);
	}
	return object;
}

static cJSON *row_of(const struct plan_joint *j, const struct plan_point *p)
{
	cJSON *row = cJSON_CreateObject();
	cJSON_AddItemToObject(row, "settings", settings_of(j, p));
	cJSON_AddBoolToObject(row, "as_written", p->number == SKEP_AS_WRITTEN);
	skep_json_add_number(row, "expected_step_s", p->expected_s);
	skep_json_add_number(row, "simulated_step_s", p->round_s);
	skep_json_add_number(row, "throughput_samples_per_s", p->tried.samples_per_s);
	skep_json_add_number(row, "time_to_target_s", plan_point_time_s(p));
	skep_json_add_number(row, "cost_to_target_usd", plan_point_usd(p));
	cJSON_AddBoolToObject(row, "extrapolated", extrapolates(p));
	cJSON_AddNumberToObject(row, "runs", p->runs);
	cJSON_AddNumberToObject(row, "reached", p->reached);
	cJSON_AddBoolToObject(row, "front", p->front);
	return row;
}

void plan_joint_add_json(const struct plan_joint *j, cJSON *root)
{
	cJSON *settings = cJSON_AddObjectToObject(root, "settings");
	uint32_t rows, refused = 0;
	const struct plan_point **row = sorted(j, &rows);
	for (uint32_t i = 1; i < j->points; i++)
		refused += !j->point[i].can && j->point[i].why[0] != '\0';
	cJSON_AddStringToObject(settings, "objective", skep_aim_name(j->aim));
	cJSON_AddNumberToObject(settings, "combinations", j->choices.points);
	cJSON_AddNumberToObject(settings, "looked_at", j->points - 1);
	cJSON_AddNumberToObject(settings, "refused", refused);
	cJSON_AddItemToObject(settings, "chosen", row_of(j, &j->point[j->chosen]));
	cJSON *list = cJSON_AddArrayToObject(settings, "simulated");
	for (uint32_t i = 0; row && i < rows; i++)
		cJSON_AddItemToArray(list, row_of(j, row[i]));
	free(row);
}

void plan_joint_write(const struct plan_joint *j, FILE *out)
{
	char name[1024], text[SKEP_TEXT_BYTES];
	const struct plan_point *p = &j->point[j->chosen];
	skep_choices_name(&j->choices, p->number, name, sizeof name);
	fprintf(out, "# Settings chosen for %s: %s\n", WANTED[j->aim], name);
	if (isfinite(plan_point_time_s(p)))
		fprintf(out, "#   until the target loss %s", skep_time_text(plan_point_time_s(p), text));
	if (isfinite(plan_point_time_s(p)) && isfinite(plan_point_usd(p)))
		fprintf(out, ", %.4g USD", plan_point_usd(p));
	if (isfinite(plan_point_time_s(p)))
		fprintf(out, "%s\n", extrapolates(p) ? " (extrapolated: the law was fitted elsewhere)" : "");
}
