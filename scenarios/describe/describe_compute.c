/* SPDX-License-Identifier: Apache-2.0
 *
 * describe_compute.c - for `skep check`: by which predictor times are found, how well its laws fit, and for each stage on each
 * GPU the times with where they come from.
 */
#include "scenarios/describe/describe_compute.h"

#include <inttypes.h>

#include "base/layout.h"

static double seconds(uint64_t ns)
{
	return 1e-9 * (double)ns;
}

/* "measured 93 %, memory 7 %" */
static const char *origin_text(const struct skep_compute_time *time, char *ret, size_t size)
{
	double sum = skep_compute_sum(time);
	size_t used = 0;
	ret[0] = '\0';
	for (int i = 0; i < SKEP_TIME_ORIGINS && used < size; i++)
		if (time->ns[i] > 0 && time->ns[i] >= 0.9995 * sum)
			used += (size_t)snprintf(ret + used, size - used, "%s", skep_time_origin_names[i]);
		else if (time->ns[i] >= 0.0005 * sum && time->ns[i] > 0)
			used += (size_t)snprintf(ret + used, size - used, "%s%s %.3g %%", used ? ", " : "",
				skep_time_origin_names[i], 100 * time->ns[i] / sum);
	return ret;
}

static const char *law_text(const struct skep_fit *fit, char *ret, size_t size)
{
	int used = snprintf(ret, size, "law off by %.1f %% (median), %.1f %% (p90) on %" PRIu32 " points",
		100 * fit->median_error, 100 * fit->p90_error, fit->points);
	if (fit->law == SKEP_FIT_ANALYTIC && used > 0 && (size_t)used < size)
		snprintf(ret + used, size - (size_t)used, ", lambda %.3f", fit->coefficient[0]);
	return ret;
}

static void print_table(const struct skep_gpu_table *t, FILE *out)
{
	fprintf(out, "              %" PRIu32 " %s in %s, %s\n", t->rows, skep_table_names[t->kind],
		skep_type_names[t->type], t->source);
}

static void print_gpu(const struct skep_predictor *p, FILE *out)
{
	char law[120];
	fprintf(out, "            %s\n", p->gpu->name);
	if (p->layers)
		print_table(p->layers, out);
	if (p->layer[0].points > 0) {
		fprintf(out, "                %s: %s\n", p->kind == SKEP_PREDICTOR_ANALYTIC ? "both passes" : "forward",
			law_text(&p->layer[0], law, sizeof law));
		if (p->kind != SKEP_PREDICTOR_ANALYTIC)
			fprintf(out, "                backward: %s\n", law_text(&p->layer[1], law, sizeof law));
	}
	if (p->products)
		print_table(p->products, out);
	if (p->product.points > 0)
		fprintf(out, "                %s\n", law_text(&p->product, law, sizeof law));
	if (!p->products && !p->layers)
		fprintf(out, "              no table in %s: assumed, %.3g of the published peak\n",
			skep_type_names[p->type], p->gpu->efficiency);
}

static void lay_vstage(const struct skep_scenario *s, uint32_t gpu, uint32_t vstage, struct skep_layout *layout)
{
	char text[SKEP_TEXT_BYTES], from[160];
	size_t at = (size_t)gpu * skep_plan_vstages(&s->plan) + vstage;
	const struct skep_op_time *time = &s->op_time[at];
	const struct skep_compute_stage *t = &s->timing[at];
	const uint64_t ns[] = {time->forward_ns, time->backward_ns, time->step_ns};
	bool fitted = skep_predictor_by_layer(&s->predictor[gpu], s->model.name);
	skep_layout_cell(layout, "%" PRIu32, vstage);
	skep_layout_cell(layout, "%s", s->topology.gpu[gpu].name);
	for (int i = 0; i < 3; i++)
		skep_layout_cell(layout, "%s", skep_time_range_text(seconds(ns[i]), seconds(ns[i]), text));
	skep_layout_cell(layout, "%s", origin_text(&t->forward, from, sizeof from));
	skep_layout_cell(layout, "%s",
		t->backward_measured ? origin_text(&t->backward, from, sizeof from)
		: fitted             ? "fitted"
				     : "from the forward pass");
	skep_layout_cell(layout, "%s", t->step_known ? origin_text(&t->step, from, sizeof from) : "memory");
}

/* Rows of whom it concerns at the start; JSON has all. */
static void print_stages(const struct skep_scenario *s, FILE *out)
{
	const uint32_t stages = s->plan.stages, vstages = skep_plan_vstages(&s->plan);
	const char *const head[] = {vstages > stages ? "slice" : "stage", "GPU", "forward", "backward", "step",
		"forward from", "backward from", "step from"};
	struct skep_layout layout;
	bool left_out = false;
	skep_layout_begin(&layout, "rlrrrlll", head);
	for (uint32_t vstage = 0; vstage < vstages; vstage++)
		for (uint32_t gpu = 0; gpu < s->topology.gpus; gpu++)
			if (s->memory[(size_t)gpu * stages + vstage % stages].workers > 0)
				lay_vstage(s, gpu, vstage, &layout);
			else
				left_out = true;
	skep_layout_end(&layout, out);
	if (left_out)
		fprintf(out, "(GPUs that serve the stage when the run starts; --json has every stage on every GPU)\n");
}

void skep_compute_print(const struct skep_scenario *s, FILE *out)
{
	if (s->compute.noise > 0)
		fprintf(out,
			"\nnoise     each pass and step takes its time give or take %.3g %% (standard deviation)\n",
			100 * s->compute.noise);
	if (!s->predictor)
		return;
	fprintf(out, "\ncompute by %s, %s%s\n", skep_predictor_names[s->compute.predictor],
		skep_type_names[s->compute.type],
		s->compute.predictor != SKEP_PREDICTOR_TABLE ? ""
		: s->compute.refuse_outside                  ? "; what is outside of a table is refused"
							     : "; outside of a table by the law fitted to it");
	for (uint32_t gpu = 0; gpu < s->topology.gpus; gpu++)
		print_gpu(&s->predictor[gpu], out);
	print_stages(s, out);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void add_origins(cJSON *object, const char *key, const struct skep_compute_time *time)
{
	cJSON *shares = cJSON_AddObjectToObject(object, key);
	double sum = skep_compute_sum(time);
	for (int i = 0; i < SKEP_TIME_ORIGINS; i++)
		if (time->ns[i] > 0)
			cJSON_AddNumberToObject(shares, skep_time_origin_names[i], time->ns[i] / sum);
}

static void add_law(cJSON *gpu, const char *key, const struct skep_fit *fit)
{
	if (fit->points == 0)
		return;
	cJSON *law = cJSON_AddObjectToObject(gpu, key);
	cJSON_AddNumberToObject(law, "points", fit->points);
	cJSON_AddNumberToObject(law, "median_error", fit->median_error);
	cJSON_AddNumberToObject(law, "p90_error", fit->p90_error);
	if (fit->law == SKEP_FIT_ANALYTIC)
		cJSON_AddNumberToObject(law, "lambda", fit->coefficient[0]);
}

static void add_vstage(const struct skep_scenario *s, uint32_t gpu, uint32_t vstage, cJSON *times)
{
	size_t at = (size_t)gpu * skep_plan_vstages(&s->plan) + vstage;
	const struct skep_op_time *time = &s->op_time[at];
	cJSON *object = cJSON_CreateObject();
	cJSON_AddNumberToObject(object, skep_plan_vstages(&s->plan) > s->plan.stages ? "slice" : "stage", vstage);
	cJSON_AddStringToObject(object, "gpu", s->topology.gpu[gpu].name);
	cJSON_AddNumberToObject(object, "forward_s", seconds(time->forward_ns));
	cJSON_AddNumberToObject(object, "backward_s", seconds(time->backward_ns));
	cJSON_AddNumberToObject(object, "step_s", seconds(time->step_ns));
	add_origins(object, "forward_from", &s->timing[at].forward);
	add_origins(object, "backward_from", &s->timing[at].backward);
	cJSON_AddBoolToObject(object, "backward_measured", s->timing[at].backward_measured);
	cJSON_AddBoolToObject(object, "step_measured", s->timing[at].step_known);
	cJSON_AddItemToArray(times, object);
}

void skep_compute_add_json(const struct skep_scenario *s, cJSON *root)
{
	if (!s->predictor)
		return;
	cJSON *compute = cJSON_AddObjectToObject(root, "compute");
	cJSON_AddStringToObject(compute, "predictor", skep_predictor_names[s->compute.predictor]);
	cJSON_AddStringToObject(compute, "type", skep_type_names[s->compute.type]);
	cJSON *gpus = cJSON_AddArrayToObject(compute, "gpus"), *times = cJSON_AddArrayToObject(compute, "times");
	for (uint32_t i = 0; i < s->topology.gpus; i++) {
		cJSON *gpu = cJSON_CreateObject();
		cJSON_AddStringToObject(gpu, "gpu", s->topology.gpu[i].name);
		add_law(gpu, "product_law", &s->predictor[i].product);
		add_law(gpu, "layer_law", &s->predictor[i].layer[0]);
		add_law(gpu, "layer_backward_law", &s->predictor[i].layer[1]);
		cJSON_AddItemToArray(gpus, gpu);
	}
	for (uint32_t stage = 0; stage < skep_plan_vstages(&s->plan); stage++)
		for (uint32_t gpu = 0; gpu < s->topology.gpus; gpu++)
			add_vstage(s, gpu, stage, times);
}
