/* SPDX-License-Identifier: Apache-2.0
 *
 * compare.c - see make_plan.h. Each row is a plan of the scenario with two keys set, as if by --set behind those that were given.
 */

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/layout.h"
#include "planning/plan/make_plan.h"

static const struct {
	const char *name, *set[2];
} planners[] = {
	{"search", {"plan.method=search", "plan.objective=throughput"}},
	{"dt-fm", {"plan.method=search", "plan.objective=dt-fm"}},
	{"pipedream", {"plan.method=pipedream", "plan.objective=throughput"}},
	{"pipedream-tool", {"plan.method=pipedream-tool", "plan.objective=throughput"}},
	{"alpa", {"plan.method=alpa", "plan.objective=throughput"}},
};
#define PLANNERS (sizeof planners / sizeof *planners)

struct row {
	double samples_per_s, round_s, usd; /* of all steps; NAN: not known */
	char sizes[80];
	struct skep_diag error;
};

static void take(const struct skep_planner *w, struct row *ret)
{
	const struct skep_candidate *c = &w->candidate[w->chosen];
	ret->samples_per_s = c->samples_per_s;
	ret->round_s = c->round_s;
	ret->usd = skep_planner_whole_usd(w, skep_planner_whole_s(w));
	for (uint32_t s = 0; s < w->planning.stages; s++) {
		uint32_t size = 0;
		size_t at = strlen(ret->sizes);
		for (uint32_t i = 0; i < w->planning.workers; i++)
			size += c->stage_of[i] == s;
		if (at + 12 < sizeof ret->sizes)
			snprintf(ret->sizes + at, sizeof ret->sizes - at, "%s%u", s > 0 ? "-" : "", size);
	}
}

/* False: no memory. */
static bool plan_with(const struct skep_planner_options *given, size_t nth, struct row *ret)
{
	struct skep_planner_options options = *given;
	uint32_t sets = given->given.sets;
	const char **set = calloc(sets + 2, sizeof *set);
	struct skep_planner *w = calloc(1, sizeof *w);
	*ret = (struct row){.samples_per_s = NAN, .round_s = NAN, .usd = NAN};
	bool ok = set && w;
	if (ok) {
		for (uint32_t i = 0; i < sets; i++)
			set[i] = given->given.set[i];
		set[sets] = planners[nth].set[0];
		set[sets + 1] = planners[nth].set[1];
		options.given.set = set;
		options.given.sets = sets + 2;
		options.given.details = NULL;
		options.unstated = true;
		enum status status = skep_plan_begin(w, &options);
		if (status == STATUS_DONE)
			status = skep_plan_choose(w);
		if (status == STATUS_DONE)
			take(w, ret);
		ret->error = w->error;
		skep_plan_end(w);
	}
	free(set);
	free(w);
	return ok;
}

static void print_text(const struct row *row, FILE *out)
{
	char text[SKEP_TEXT_BYTES];
	fprintf(out, "%-15s %12s %12s %14s  %s\n", "planner", "step", "samples/s", "USD, all steps",
		"workers of each stage");
	for (size_t i = 0; i < PLANNERS; i++) {
		if (row[i].error.set) {
			fprintf(out, "%-15s %12s %12s %14s  %s\n", planners[i].name, "-", "-", "-",
				row[i].error.message);
			continue;
		}
		fprintf(out, "%-15s %12s %12.6g ", planners[i].name, skep_time_text(row[i].round_s, text),
			row[i].samples_per_s);
		if (isfinite(row[i].usd))
			fprintf(out, "%14.4g  %s\n", row[i].usd, row[i].sizes);
		else
			fprintf(out, "%14s  %s\n", "-", row[i].sizes);
	}
}

static void print_json(const struct row *row, FILE *out)
{
	cJSON *root = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(root, "planners");
	for (size_t i = 0; i < PLANNERS; i++) {
		cJSON *o = skep_json_add_row(list);
		cJSON_AddStringToObject(o, "planner", planners[i].name);
		cJSON_AddNumberToObject(o, "throughput_samples_per_s", row[i].samples_per_s);
		cJSON_AddNumberToObject(o, "step_s", row[i].round_s);
		cJSON_AddNumberToObject(o, "whole_run_usd", row[i].usd);
		cJSON_AddStringToObject(o, "stage_workers", row[i].sizes);
		if (row[i].error.set)
			cJSON_AddStringToObject(o, "why_not", row[i].error.message);
	}
	char *text = cJSON_Print(root);
	fprintf(out, "%s\n", text ? text : "");
	cJSON_free(text);
	cJSON_Delete(root);
}

enum status skep_compare_print(
	const struct skep_planner_options *options, bool json, FILE *out, struct skep_diag *reterr)
{
	struct row row[PLANNERS];
	bool any = false;
	for (size_t i = 0; i < PLANNERS; i++) {
		if (!plan_with(options, i, &row[i])) {
			skep_fail(reterr, "not enough memory to plan this scenario");
			return STATUS_FAILED;
		}
		any = any || !row[i].error.set;
	}
	if (!any) {
		*reterr = row[0].error;
		return STATUS_BAD_INPUT;
	}
	if (json)
		print_json(row, out);
	else
		print_text(row, out);
	return STATUS_DONE;
}
