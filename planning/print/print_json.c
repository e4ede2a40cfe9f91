/* SPDX-License-Identifier: Apache-2.0
 *
 * print_json.c - see print.h: one object.
 */
#include "planning/print/print.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>

#include "analysis/store/number_format.h"
#include "base/json.h"
#include "planning/plan/confirm.h"
#include "planning/plan/free_settings.h"
#include "scenarios/plan/recut.h"
#include "scenarios/plan/split.h"
#include "scenarios/read/pool.h"

/* ---- allocations -------------------------------------------------------------------------------------------------- */

/* Of each virtual stage; null: where the scenario cuts. */
static void add_layers(const struct skep_planner *w, cJSON *row, const char *key, const uint32_t *layers)
{
	cJSON *list = layers ? cJSON_AddArrayToObject(row, key) : cJSON_AddNullToObject(row, key);
	for (uint32_t i = 0; layers && i < skep_plan_vstages(&w->scenario.plan); i++)
		cJSON_AddItemToArray(list, cJSON_CreateNumber(layers[i]));
}

static cJSON *candidate(const struct skep_planner *w, const struct skep_candidate *c)
{
	cJSON *row = cJSON_CreateObject();
	cJSON_AddStringToObject(row, "method", c->name);
	cJSON_AddStringToObject(row, "links", skep_planner_view(c));
	skep_json_add_number(row, "expected_step_s", c->expected_s);
	skep_json_add_number(row, "cost_shared_s", c->cost_s[SKEP_CONTENDED]);
	skep_json_add_number(row, "cost_alone_s", c->cost_s[SKEP_UNCONTENDED]);
	skep_json_add_number(row, "simulated_step_s", c->tried ? c->round_s : NAN);
	skep_json_add_number(row, "throughput_samples_per_s", c->tried ? c->samples_per_s : NAN);
	cJSON_AddNumberToObject(row, "evaluations", (double)c->evaluations);
	cJSON_AddBoolToObject(row, "least_cost", c->optimal);
	add_layers(w, row, "cut", c->layers);
	skep_json_add_number(row, "cost_mean_of_all_s", c->mean_s);
	skep_json_add_number(row, "cost_worst_of_all_s", c->worst_s);
	return row;
}

static cJSON *mean(const struct skep_planner_mean *m)
{
	cJSON *row = cJSON_CreateObject();
	cJSON_AddNumberToObject(row, "count", m->count);
	skep_json_add_number(row, "mean", m->count > 0 ? m->mean : NAN);
	skep_json_add_number(row, "interval95", m->count > 1 ? m->half : NAN);
	return row;
}

/* That a worker splits its stage over. */
static uint32_t gpus_of(const struct skep_planner *w, uint32_t worker)
{
	return skep_split_of(&w->scenario, w->scenario.topology.machine[w->planning.machine[worker]].gpu).gpus;
}

/* In all of its virtual stages. */
static uint32_t layers_of(const struct skep_planner *w, uint32_t stage)
{
	uint32_t vstages = skep_plan_vstages(&w->scenario.plan), first, count, sum = 0;
	for (uint32_t vstage = stage; vstage < vstages; vstage += w->planning.stages) {
		skep_model_cut(&w->scenario.model, vstages, vstage, &first, &count);
		sum += count;
	}
	return sum;
}

/* What was chosen, and the best that was simulated without another cut than the scenario's, as far as one was looked for. */
static void add_cut(const struct skep_planner *w, cJSON *root)
{
	uint32_t *layers = calloc(skep_plan_vstages(&w->scenario.plan), sizeof *layers);
	if (layers)
		skep_recut_of(&w->scenario, layers);
	add_layers(w, root, "cut", layers);
	cJSON_AddBoolToObject(root, "cut_searched", w->cuts);
	cJSON_AddBoolToObject(root, "cut_found", w->recut);
	skep_json_add_number(root, "throughput_without_cut_samples_per_s",
		w->cuts && w->even_samples_per_s > 0 ? w->even_samples_per_s : NAN);
	free(layers);
}

static void add_stages(const struct skep_planner *w, cJSON *root)
{
	static const char *const by[] = {"compute", "send", "receive"};
	const struct skep_candidate *c = &w->candidate[w->chosen];
	struct skep_throughput_stage *stage = calloc(w->planning.stages, sizeof *stage);
	cJSON *rows = cJSON_AddArrayToObject(root, "stages");
	char stage_workers[200];
	if (!stage)
		return;
	struct skep_throughput_parts parts = skep_throughput_explain(w->cost[c->view], c->stage_of, stage);
	for (uint32_t i = 0; i < w->planning.stages; i++) {
		cJSON *row = skep_json_add_row(rows);
		skep_planner_members(w, c->stage_of, i, stage_workers, sizeof stage_workers);
		cJSON_AddNumberToObject(row, "stage", i);
		cJSON_AddNumberToObject(row, "layers", layers_of(w, i));
		cJSON_AddNumberToObject(row, "workers", stage[i].workers);
		cJSON_AddStringToObject(row, "who", stage_workers);
		cJSON_AddNumberToObject(row, "gpus_of_slowest_worker", gpus_of(w, stage[i].slowest));
		skep_json_add_number(row, "pace_s", stage[i].pace_s);
		cJSON_AddStringToObject(row, "pace_by", by[stage[i].bottleneck]);
		skep_json_add_number(row, "reduction_s", stage[i].reduction_s);
		cJSON_AddBoolToObject(row, "bottleneck", i == parts.slowest_stage);
	}
	free(stage);
}

/* Of the machines of the topology's file; -1: it serves none. */
static void add_stage_of(const struct skep_planner *w, cJSON *root)
{
	cJSON *list = cJSON_AddArrayToObject(root, "stage_of");
	const uint32_t *stage_of = w->candidate[w->chosen].stage_of;
	uint32_t at = 0;
	for (uint32_t i = 0; i < skep_pool_machines(&w->scenario); i++) {
		bool here = at < w->planning.workers && skep_pool_machine(&w->scenario, w->planning.machine[at]) == i;
		bool serves = here && stage_of[at] != SKEP_SPARE;
		cJSON_AddItemToArray(list, cJSON_CreateNumber(serves ? (double)stage_of[at] : -1));
		at += here;
	}
}

static void add_left_out(const struct skep_planner *w, cJSON *root)
{
	const uint32_t *stage_of = w->candidate[w->chosen].stage_of;
	cJSON *rows = cJSON_AddArrayToObject(root, "left_out");
	for (uint32_t i = 0; i < w->planning.workers; i++) {
		if (stage_of[i] != SKEP_SPARE)
			continue;
		struct skep_left_out b = skep_planner_put_back(w, i);
		cJSON *row = skep_json_add_row(rows);
		cJSON_AddNumberToObject(row, "machine", skep_pool_machine(&w->scenario, w->planning.machine[i]));
		skep_json_add_number(row, "step_s_with_it", b.step_s);
		skep_json_add_number(row, "step_s_without_it", b.without_s);
	}
}

/* ---- settings ----------------------------------------------------------------------------------------------------- */

static cJSON *settings_of(const struct skep_free_settings *j, const struct skep_point *p)
{
	cJSON *object = cJSON_CreateObject();
	for (uint32_t i = 0; p->number != SKEP_AS_GIVEN && i < j->choices.keys; i++) {
		const struct skep_vary_key *key = &j->choices.free->key[j->choices.key[i]];
		cJSON_AddStringToObject(object, key->key, key->value[skep_choices_digit(&j->choices, p->number, i)]);
	}
	return object;
}

static cJSON *row_of(const struct skep_free_settings *j, const struct skep_point *p)
{
	cJSON *row = cJSON_CreateObject();
	cJSON_AddItemToObject(row, "settings", settings_of(j, p));
	cJSON_AddBoolToObject(row, "as_written", p->number == SKEP_AS_GIVEN);
	skep_json_add_number(row, "expected_step_s", p->expected_s);
	skep_json_add_number(row, "simulated_step_s", p->round_s);
	skep_json_add_number(row, "throughput_samples_per_s", p->tried.samples_per_s);
	skep_json_add_number(row, "time_to_target_s", skep_point_time_s(p));
	skep_json_add_number(row, "cost_to_target_usd", skep_point_usd(p));
	cJSON_AddBoolToObject(row, "extrapolated", skep_point_extrapolates(p));
	cJSON_AddNumberToObject(row, "runs", p->runs);
	cJSON_AddNumberToObject(row, "reached", p->reached);
	cJSON_AddBoolToObject(row, "front", p->front);
	return row;
}

static void add_settings(const struct skep_planner *w, cJSON *root)
{
	const struct skep_free_settings *j = w->settings;
	cJSON *settings = skep_json_add_object(root, "settings", j != NULL);
	if (settings == NULL)
		return;
	uint32_t rows;
	const struct skep_point **row = skep_planner_points(j, &rows);
	cJSON_AddStringToObject(settings, "objective", skep_aim_name(j->aim));
	cJSON_AddNumberToObject(settings, "combinations", j->choices.points);
	cJSON_AddNumberToObject(settings, "looked_at", j->points - 1);
	cJSON_AddNumberToObject(settings, "refused", skep_planner_refused(j));
	cJSON_AddItemToObject(settings, "chosen", row_of(j, &j->point[j->chosen]));
	cJSON *list = cJSON_AddArrayToObject(settings, "simulated");
	for (uint32_t i = 0; row && i < rows; i++)
		cJSON_AddItemToArray(list, row_of(j, row[i]));
	free(row);
}

/* ---- what is expected and confirmed ------------------------------------------------------------------------------- */

static const char *const keys[] = {"throughput_samples_per_s", "time_to_target_s", "cost_to_target_usd"};

static cJSON *interval_of(struct skep_interval r)
{
	cJSON *object = cJSON_CreateObject();
	cJSON_AddNumberToObject(object, "count", r.count);
	skep_json_add_number(object, "mean", r.mean);
	skep_json_add_number(object, "low95", r.low);
	skep_json_add_number(object, "high95", r.high);
	return object;
}

static cJSON *side_of(const struct skep_confirm *c, uint32_t side)
{
	const struct skep_confirm_side *s = &c->side[side];
	cJSON *object = cJSON_CreateObject();
	cJSON_AddStringToObject(object, "name", s->name);
	cJSON_AddNumberToObject(object, "ended", s->ended);
	cJSON_AddNumberToObject(object, "reached", s->reached);
	cJSON_AddNumberToObject(object, "impossible", s->impossible);
	for (uint32_t i = 0; i < SKEP_FIGURES; i++) {
		cJSON *figure = interval_of(skep_confirm_mean(c, side, i)),
		      *values = cJSON_AddArrayToObject(figure, "values");
		for (uint32_t seed = 0; seed < c->seeds; seed++)
			cJSON_AddItemToArray(values, isfinite(s->value[i][seed]) ? cJSON_CreateNumber(s->value[i][seed])
										 : cJSON_CreateNull());
		cJSON_AddItemToObject(object, keys[i], figure);
	}
	return object;
}

static cJSON *against_of(const struct skep_confirm *c, uint32_t side)
{
	cJSON *object = cJSON_CreateObject();
	cJSON_AddStringToObject(object, "name", c->side[side].name);
	for (uint32_t i = 0; i < SKEP_FIGURES; i++) {
		cJSON *figure = cJSON_AddObjectToObject(object, keys[i]);
		cJSON_AddItemToObject(figure, "difference", interval_of(skep_confirm_difference(c, side, i)));
		cJSON_AddItemToObject(figure, "times", interval_of(skep_confirm_times(c, side, i)));
		skep_json_add_number(figure, "least_times", skep_confirm_least_times(c, side, i));
	}
	return object;
}

/* As `stated` or `confirmed`; null: it is not. */
static void add_confirm(const struct skep_planner *w, const char *key, const struct skep_confirm *c, cJSON *root)
{
	static const char *const traces[] = {"none", "recorded", "drawn"};
	cJSON *confirmed = skep_json_add_object(root, key, c != NULL);
	if (confirmed == NULL)
		return;
	if (c->stated) {
		cJSON_AddNumberToObject(confirmed, "rounds", c->span.rounds);
		cJSON_AddNumberToObject(confirmed, "rounds_not_counted", c->span.warm_up);
		cJSON_AddBoolToObject(confirmed, "whole", c->span.whole);
	}
	cJSON_AddNumberToObject(confirmed, "seeds", c->seeds);
	cJSON_AddNumberToObject(confirmed, "first_seed", (double)c->first_seed);
	cJSON_AddStringToObject(confirmed, "traces", traces[skep_planner_trace(w)]);
	cJSON *sides = cJSON_AddArrayToObject(confirmed, "sides"),
	      *against = cJSON_AddArrayToObject(confirmed, "plan_against");
	for (uint32_t i = 0; i < c->sides; i++)
		cJSON_AddItemToArray(sides, side_of(c, i));
	for (uint32_t i = 0; i + 1 < c->sides; i++)
		cJSON_AddItemToArray(against, against_of(c, i));
}

/* ---- all of it ------------------------------------------------------------------------------------------------------ */

void skep_planner_print_json(const struct skep_planner *w, FILE *out)
{
	cJSON *root = cJSON_CreateObject(), *rows;
	const struct skep_candidate *c = &w->candidate[w->chosen];
	char format[SKEP_NUMBER_FORMAT_BYTES];
	cJSON_AddStringToObject(root, "scenario", w->scenario.name);
	cJSON_AddNumberToObject(root, "seed", (double)w->scenario.seed);
	skep_number_format_text(&w->scenario, "sim", "cpu", false, format);
	cJSON_AddStringToObject(root, "number_format", format);
	cJSON_AddNumberToObject(root, "workers", w->planning.workers);
	cJSON_AddNumberToObject(root, "steps_simulated", w->rounds);
	if (!w->published)
		cJSON_AddItemToObject(root, "start", candidate(w, &w->candidate[0]));
	cJSON_AddItemToObject(root, "random_expected_step_s", mean(&w->random_step));
	cJSON_AddItemToObject(root, "random_throughput_samples_per_s", mean(&w->random_rate));
	rows = cJSON_AddArrayToObject(root, "searches");
	for (uint32_t i = w->published ? 0 : 1; i < w->candidates; i++)
		cJSON_AddItemToArray(rows, candidate(w, &w->candidate[i]));
	cJSON_AddStringToObject(root, "chosen", c->name);
	skep_json_add_number(root, "throughput_samples_per_s", c->samples_per_s);
	if (w->published_s > 0)
		cJSON_AddNumberToObject(root, "method_step_s", w->published_s);
	cJSON_AddStringToObject(root, "objective", skep_planner_dtfm(w) ? "dt-fm" : skep_aim_name(w->aim));
	skep_json_add_number(root, "whole_run_s", skep_confirm_whole_s(w));
	skep_json_add_number(root, "whole_run_usd", skep_planner_whole_usd(w, skep_confirm_whole_s(w)));
	skep_json_add_number(root, "time_to_target_s", c->forecast.rounds > 0 ? c->forecast.time_s : NAN);
	skep_json_add_number(root, "cost_to_target_usd", c->forecast.rounds > 0 ? c->forecast.usd : NAN);
	cJSON_AddBoolToObject(root, "extrapolated", c->forecast.extrapolated);
	add_cut(w, root);
	add_settings(w, root);
	add_stage_of(w, root);
	add_left_out(w, root);
	add_stages(w, root);
	add_confirm(w, "stated", w->stated, root);
	add_confirm(w, "confirmed", w->confirmed, root);
	skep_json_print(root, out);
}
