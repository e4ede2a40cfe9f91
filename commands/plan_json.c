/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_json.c - `skep plan --json`: one object. Numbers that there are not are null.
 */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>

#include "commands/plan_confirm.h"
#include "commands/plan_joint.h"
#include "commands/plan_out.h"
#include "scenarios/json.h"
#include "scenarios/pool.h"
#include "scenarios/recut.h"
#include "scenarios/split.h"

/* Of each slice; null: where the scenario cuts. */
static void add_layers(const struct plan_work *w, cJSON *row, const char *key, const uint32_t *layers)
{
	cJSON *list = layers ? cJSON_AddArrayToObject(row, key) : cJSON_AddNullToObject(row, key);
	for (uint32_t i = 0; layers && i < skep_plan_slices(&w->scenario.plan); i++)
		cJSON_AddItemToArray(list, cJSON_CreateNumber(layers[i]));
}

static cJSON *candidate(const struct plan_work *w, const struct plan_candidate *c)
{
	cJSON *row = cJSON_CreateObject();
	cJSON_AddStringToObject(row, "method", c->name);
	cJSON_AddStringToObject(row, "links", c->view == SKEP_VIEW_SHARED ? "shared" : "alone");
	skep_json_add_number(row, "expected_step_s", c->step_s[SKEP_VIEW_SHARED]);
	skep_json_add_number(row, "expected_step_alone_s", c->step_s[SKEP_VIEW_ALONE]);
	skep_json_add_number(row, "simulated_step_s", c->tried ? c->round_s : NAN);
	skep_json_add_number(row, "throughput_samples_per_s", c->tried ? c->samples_per_s : NAN);
	cJSON_AddNumberToObject(row, "evaluations", (double)c->evaluations);
	cJSON_AddBoolToObject(row, "least_expected", c->optimal);
	add_layers(w, row, "cut", c->layers);
	return row;
}

static cJSON *mean(const struct plan_mean *m)
{
	cJSON *row = cJSON_CreateObject();
	cJSON_AddNumberToObject(row, "count", m->count);
	skep_json_add_number(row, "mean", m->count > 0 ? m->mean : NAN);
	skep_json_add_number(row, "interval95", m->count > 1 ? m->half : NAN);
	return row;
}

/* That a worker splits its stage over. */
static uint32_t gpus_of(const struct plan_work *w, uint32_t worker)
{
	return skep_split_of(&w->scenario, w->scenario.topology.machine[w->planning.machine[worker]].gpu).gpus;
}

/* In all of its slices. */
static uint32_t layers_of(const struct plan_work *w, uint32_t stage)
{
	uint32_t slices = skep_plan_slices(&w->scenario.plan), first, count, sum = 0;
	for (uint32_t slice = stage; slice < slices; slice += w->planning.stages) {
		skep_model_cut(&w->scenario.model, slices, slice, &first, &count);
		sum += count;
	}
	return sum;
}

/* What was chosen, and the best that was simulated without another cut than the scenario's, as far as one was looked for. */
static void add_cut(const struct plan_work *w, cJSON *root)
{
	uint32_t *layers = calloc(skep_plan_slices(&w->scenario.plan), sizeof *layers);
	if (layers)
		skep_recut_of(&w->scenario, layers);
	add_layers(w, root, "cut", layers);
	cJSON_AddBoolToObject(root, "cut_searched", w->cuts);
	cJSON_AddBoolToObject(root, "cut_found", w->cut != NULL);
	skep_json_add_number(root, "throughput_without_cut_samples_per_s",
		w->cuts && w->even_samples_per_s > 0 ? w->even_samples_per_s : NAN);
	free(layers);
}

static void add_stages(const struct plan_work *w, cJSON *root)
{
	static const char *const by[] = {"compute", "send", "receive"};
	const struct plan_candidate *c = &w->candidate[w->chosen];
	struct skep_throughput_stage *stage = calloc(w->planning.stages, sizeof *stage);
	cJSON *rows = cJSON_AddArrayToObject(root, "stages");
	char crew[200];
	if (!stage)
		return;
	struct skep_throughput_parts parts = skep_throughput_explain(w->cost[c->view], c->stage_of, stage);
	for (uint32_t i = 0; i < w->planning.stages; i++) {
		cJSON *row = cJSON_CreateObject();
		plan_crew(w, c->stage_of, i, crew, sizeof crew);
		cJSON_AddNumberToObject(row, "stage", i);
		cJSON_AddNumberToObject(row, "layers", layers_of(w, i));
		cJSON_AddNumberToObject(row, "workers", stage[i].workers);
		cJSON_AddStringToObject(row, "who", crew);
		cJSON_AddNumberToObject(row, "gpus_of_slowest_worker", gpus_of(w, stage[i].slowest));
		skep_json_add_number(row, "pace_s", stage[i].pace_s);
		cJSON_AddStringToObject(row, "pace_by", by[stage[i].bottleneck]);
		skep_json_add_number(row, "reduction_s", stage[i].reduction_s);
		cJSON_AddBoolToObject(row, "bottleneck", i == parts.slowest_stage);
		cJSON_AddItemToArray(rows, row);
	}
	free(stage);
}

/* Of the machines of the topology's file; -1: it serves none. */
static void add_stage_of(const struct plan_work *w, cJSON *root)
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

void plan_print_json(const struct plan_work *w, const struct plan_confirm *confirm, FILE *out)
{
	cJSON *root = cJSON_CreateObject(), *rows;
	const struct plan_candidate *c = &w->candidate[w->chosen];
	cJSON_AddStringToObject(root, "scenario", w->scenario.name);
	cJSON_AddNumberToObject(root, "seed", (double)w->scenario.seed);
	cJSON_AddNumberToObject(root, "workers", w->planning.workers);
	cJSON_AddNumberToObject(root, "steps_simulated", w->rounds);
	cJSON_AddItemToObject(root, "start", candidate(w, &w->candidate[0]));
	cJSON_AddItemToObject(root, "random_expected_step_s", mean(&w->random_step));
	cJSON_AddItemToObject(root, "random_throughput_samples_per_s", mean(&w->random_rate));
	rows = cJSON_AddArrayToObject(root, "searches");
	for (uint32_t i = 1; i < w->candidates; i++)
		cJSON_AddItemToArray(rows, candidate(w, &w->candidate[i]));
	cJSON_AddStringToObject(root, "chosen", c->name);
	skep_json_add_number(root, "throughput_samples_per_s", c->samples_per_s);
	cJSON_AddStringToObject(root, "objective", skep_aim_name(w->aim));
	skep_json_add_number(root, "time_to_target_s", c->forecast.rounds > 0 ? c->forecast.time_s : NAN);
	skep_json_add_number(root, "cost_to_target_usd", c->forecast.rounds > 0 ? c->forecast.usd : NAN);
	cJSON_AddBoolToObject(root, "extrapolated", c->forecast.extrapolated);
	add_cut(w, root);
	if (w->joint)
		plan_joint_add_json(w->joint, root);
	else
		cJSON_AddNullToObject(root, "settings");
	add_stage_of(w, root);
	plan_out_add_json(w, root);
	add_stages(w, root);
	plan_confirm_add_json(w, w->stated, root);
	if (confirm)
		plan_confirm_add_json(w, confirm, root);
	else
		cJSON_AddNullToObject(root, "confirmed");
	skep_json_print(root, out);
}
