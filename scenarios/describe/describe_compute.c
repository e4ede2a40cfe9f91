/* SPDX-License-Identifier: Apache-2.0
 *
 * describe_compute.c - for `skep check`: by which predictor times are found, how well its laws fit, and for each stage on each
 * GPU the times with where they come from.
 */
#include "scenarios/describe/describe_groups.h"

#include <inttypes.h>
#include <string.h>

#include "base/layout.h"
#include "base/units.h"

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
	if (p->stages)
		fprintf(out, "              %" PRIu32 " stages, %s\n", p->stages->rows, p->stages->source);
	if (!p->products && !p->layers && !p->stages)
		fprintf(out, "              no table in %s: assumed, %.3g of the published peak\n",
			skep_type_names[p->type], p->gpu->efficiency);
}

static void lay_vstage(const struct skep_scenario *s, uint32_t gpu, uint32_t vstage, struct skep_layout *layout)
{
	char text[SKEP_TEXT_BYTES], from[160];
	size_t at = (size_t)gpu * skep_plan_vstages(&s->plan) + vstage;
	const struct skep_op_time *time = &s->op_time[at];
	const struct skep_compute_stage *t = &s->timing[at];
	const uint64_t ns[] = {time->forward_ns, time->backward_ns, time->inner_ns, time->step_ns};
	const bool periodic = skep_plan_periodic(&s->plan);
	bool fitted = skep_predictor_by_layer(&s->predictor[gpu], s->model.name);
	skep_layout_cell(layout, "%" PRIu32, vstage);
	skep_layout_cell(layout, "%s", s->topology.gpu[gpu].name);
	for (int i = 0; i < 4; i++)
		if (i != 2 || periodic)
			skep_layout_cell(
				layout, "%s", skep_time_range_text(skep_seconds(ns[i]), skep_seconds(ns[i]), text));
	skep_layout_cell(layout, "%s", origin_text(&t->forward, from, sizeof from));
	skep_layout_cell(layout, "%s",
		t->backward_measured ? origin_text(&t->backward, from, sizeof from)
		: fitted             ? "fitted"
				     : "from the forward pass");
	if (periodic)
		skep_layout_cell(layout, "%s", t->inner_known ? origin_text(&t->inner, from, sizeof from) : "memory");
	skep_layout_cell(layout, "%s", t->step_known ? origin_text(&t->step, from, sizeof from) : "memory");
}

/* Rows of whom it concerns at the start; JSON has all. */
static void print_stages(const struct skep_scenario *s, FILE *out)
{
	const uint32_t stages = s->plan.stages, vstages = skep_plan_vstages(&s->plan);
	const char *const each = vstages > stages ? "vstage" : "stage";
	const char *const head[] = {
		each, "GPU", "forward", "backward", "step", "forward from", "backward from", "step from"};
	const char *const periodic[] = {each, "GPU", "forward", "backward", "inner step", "outer step", "forward from",
		"backward from", "inner from", "outer from"};
	struct skep_layout layout;
	bool left_out = false;
	if (skep_plan_periodic(&s->plan))
		skep_layout_begin(&layout, "rlrrrrllll", periodic);
	else
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

/* ---- the type ---------------------------------------------------------------------------------------------------- */

/* Not the same card in machines of another kind. */
static bool first_of_name(const struct skep_topology *t, uint32_t gpu)
{
	for (uint32_t i = 0; i < gpu; i++)
		if (strcmp(t->gpu[i].name, t->gpu[gpu].name) == 0)
			return false;
	return true;
}

/* "bf16 on A100-SXM4-40, fp16 on V100-SXM2-16": each type once where all GPUs share it. */
static void types_text(const struct skep_scenario *s, bool usual, char *ret, size_t size)
{
	const struct skep_topology *t = &s->topology;
	size_t used = 0;
	ret[0] = '\0';
	for (uint32_t i = 0; i < t->gpus && used < size; i++) {
		enum skep_type type = usual ? skep_gpu_training_type(&t->gpu[i]) : t->gpu[i].type;
		if (first_of_name(t, i))
			used += (size_t)snprintf(ret + used, size - used, "%s%s on %s", used ? ", " : "",
				skep_type_names[type], t->gpu[i].name);
	}
}

static bool all_usually_fp32(const struct skep_scenario *s)
{
	for (uint32_t i = 0; i < s->topology.gpus; i++)
		if (skep_gpu_training_type(&s->topology.gpu[i]) != SKEP_TYPE_FP32)
			return false;
	return true;
}

static bool all_alike(const struct skep_scenario *s)
{
	for (uint32_t i = 1; i < s->topology.gpus; i++)
		if (s->topology.gpu[i].type != s->topology.gpu[0].type)
			return false;
	return true;
}

/* Of a model whose times are given no type makes them; what its numbers take is the rest. */
void skep_compute_format_text(const struct skep_scenario *s, char *ret, size_t size)
{
	char types[180] = "fp32";
	if (s->model.kind == SKEP_MODEL_GIVEN)
		snprintf(types, sizeof types, "given times, %s", s->model.halves ? "numbers of 2 bytes" : "fp32");
	else if (s->topology.gpus > 0 && all_alike(s))
		snprintf(types, sizeof types, "%s", skep_type_names[s->topology.gpu[0].type]);
	else if (s->topology.gpus > 0)
		types_text(s, false, types, sizeof types);
	bool given = s->model.kind == SKEP_MODEL_GIVEN, wide = true;
	for (uint32_t i = 0; i < s->topology.gpus; i++)
		wide = wide && s->topology.gpu[i].type == SKEP_TYPE_FP32;
	snprintf(ret, size, "%s%s", types,
		given || wide     ? ""
		: s->model.halves ? ", mixed precision"
				  : ", fp32 tensors");
}

bool skep_compute_format_is_chosen(const struct skep_scenario *s)
{
	return s->model.kind != SKEP_MODEL_GIVEN && s->arithmetic != SKEP_ARITHMETIC_REAL && !s->compute.type_said &&
	       !all_usually_fp32(s);
}

static const char *tensors_text(const struct skep_scenario *s)
{
	return s->model.halves
	               ? "mixed precision: parameters, activations and gradients of 2 bytes, master copies and moments of 4"
	               : "parameters, messages and memory in fp32";
}

/* The fullest host. */
static double most_crowded(const struct skep_scenario *s, uint32_t *ret_worker)
{
	double most = 0;
	for (uint32_t i = 0; i < s->plan.workers; i++) {
		double crowding = skep_scenario_crowding(s, i);
		if (s->topology.machine[i].host > 0 && crowding > most) {
			most = crowding;
			*ret_worker = i;
		}
	}
	return most;
}

static uint32_t workers_beside(const struct skep_scenario *s, uint32_t worker)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < s->plan.workers; i++)
		count += s->topology.machine[i].host == s->topology.machine[worker].host;
	return count;
}

static void print_cores(const struct skep_scenario *s, FILE *out)
{
	uint32_t worker = 0;
	double crowding = most_crowded(s, &worker);
	if (crowding <= 0)
		return;
	uint32_t cores = s->topology.gpu[s->topology.machine[worker].gpu].board.cores;
	uint32_t workers = workers_beside(s, worker);
	fprintf(out, "            %" PRIu32 " worker%s on a host share %" PRIu32 " core%s: operations take ", workers,
		skep_plural(workers), cores, skep_plural(cores));
	if (crowding > 1)
		fprintf(out, "up to %.3g times as long as alone\n", crowding);
	else
		fprintf(out, "as long as alone\n");
}

void skep_compute_print_type(const struct skep_scenario *s, FILE *out)
{
	char types[300], usual[300];
	types_text(s, false, types, sizeof types);
	types_text(s, true, usual, sizeof usual);
	if (s->model.kind == SKEP_MODEL_GIVEN)
		fprintf(out, "  type      times of passes are given by the model, on any GPU; %s\n",
			s->model.halves ? "parameters and gradients of 2 bytes, as cluster.compute.type says"
					: tensors_text(s));
	else if (s->compute.type_said)
		fprintf(out, "  type      %s (%s), as cluster.compute.type says\n", skep_type_names[s->compute.type],
			tensors_text(s));
	else if (all_usually_fp32(s))
		fprintf(out,
			"  type      fp32: no profile has a peak in bf16, or one in fp16 of more than twice the fp32 one\n");
	else if (s->arithmetic == SKEP_ARITHMETIC_REAL)
		fprintf(out,
			"  type      fp32, in which train.arithmetic: real computes; cluster.compute.type is for passes "
			"timed as %s\n",
			usual);
	else
		fprintf(out,
			"  type      %s (%s), as such GPUs train; cluster.compute.type: fp32 for another, whose "
			"tensors are fp32 without `mixed: true`\n",
			types, tensors_text(s));
	if (s->compute_scale != 1)
		fprintf(out,
			"  scaled    passes and steps take %g times as long as those of %s, as cluster.compute_scale says: of "
			"`sim`, and of `run --pace`; a real run without --pace knows nothing of it\n",
			s->compute_scale, s->model.name);
	print_cores(s, out);
}

/* Whether something of what a stage does on the GPU comes from there; updates that were not measured move memory. */
static bool comes_from(const struct skep_scenario *s, uint32_t gpu, enum skep_time_origin origin)
{
	const uint32_t vstages = skep_plan_vstages(&s->plan);
	bool does = origin == SKEP_TIME_MEMORY || (!s->predictor && origin == SKEP_TIME_ASSUMED);
	for (uint32_t v = 0; v < vstages && s->predictor; v++) {
		const struct skep_compute_stage *time = &s->timing[(size_t)gpu * vstages + v];
		does = does || time->forward.ns[origin] > 0 || time->backward.ns[origin] > 0;
	}
	return does;
}

/* "fitted 9.1 % (x 1.043)": the deviations above 0 of what this GPU's times come from, and what the seed draws. */
static const char *draw_text(const struct skep_scenario *s, uint32_t gpu, char *ret, size_t size)
{
	const struct skep_compute_draw *draw = &s->draw[gpu];
	size_t used = 0;
	ret[0] = '\0';
	for (int i = 0; i < SKEP_TIME_ORIGINS && used < size; i++)
		if (draw->deviation[i] > 0 && comes_from(s, gpu, (enum skep_time_origin)i))
			used += (size_t)snprintf(ret + used, size - used, "%s%s %.3g %% (x %.3f)", used ? ", " : "",
				skep_time_origin_names[i], 100 * draw->deviation[i], draw->factor[i]);
	return ret;
}

static void print_uncertainty(const struct skep_scenario *s, FILE *out)
{
	char text[200];
	fprintf(out,
		"\nuncertain the times of each kind of GPU are off by a factor that the seed draws; deviation of its "
		"logarithm (with seed %" PRIu64 "):\n",
		s->seed);
	for (uint32_t i = 0; i < s->topology.gpus; i++)
		if (first_of_name(&s->topology, i))
			fprintf(out, "            %-14s %s\n", s->topology.gpu[i].name,
				draw_text(s, i, text, sizeof text));
	fprintf(out,
		"            `skep sim --seeds 1..20` shows what that leaves of the prediction: mean, 5 %% and 95 %%\n");
}

void skep_compute_print(const struct skep_scenario *s, FILE *out)
{
	if (s->draw)
		print_uncertainty(s, out);
	if (s->compute.noise > 0)
		fprintf(out,
			"\nnoise     each pass and step takes its time give or take %.3g %% (standard deviation)\n",
			100 * s->compute.noise);
	if (!s->predictor)
		return;
	char types[300];
	types_text(s, false, types, sizeof types);
	fprintf(out, "\ncompute by %s, %s%s\n", skep_predictor_names[s->compute.predictor],
		s->compute.type_said ? skep_type_names[s->compute.type] : types,
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
	cJSON *object = skep_json_add_row(times);
	cJSON_AddNumberToObject(object, skep_plan_vstages(&s->plan) > s->plan.stages ? "vstage" : "stage", vstage);
	cJSON_AddStringToObject(object, "gpu", s->topology.gpu[gpu].name);
	cJSON_AddNumberToObject(object, "forward_s", skep_seconds(time->forward_ns));
	cJSON_AddNumberToObject(object, "backward_s", skep_seconds(time->backward_ns));
	cJSON_AddNumberToObject(object, "step_s", skep_seconds(time->step_ns));
	add_origins(object, "forward_from", &s->timing[at].forward);
	add_origins(object, "backward_from", &s->timing[at].backward);
	cJSON_AddBoolToObject(object, "backward_measured", s->timing[at].backward_measured);
	cJSON_AddBoolToObject(object, "step_measured", s->timing[at].step_known);
	if (!skep_plan_periodic(&s->plan))
		return;
	cJSON_AddNumberToObject(object, "inner_s", skep_seconds(time->inner_ns));
	cJSON_AddBoolToObject(object, "inner_measured", s->timing[at].inner_known);
}

static void add_cores(const struct skep_scenario *s, cJSON *root)
{
	uint32_t worker = 0;
	double crowding = most_crowded(s, &worker);
	cJSON *cores = skep_json_add_object(root, "cores", crowding > 0);
	if (cores == NULL)
		return;
	cJSON_AddNumberToObject(cores, "cores", s->topology.gpu[s->topology.machine[worker].gpu].board.cores);
	cJSON_AddNumberToObject(cores, "workers", workers_beside(s, worker));
	cJSON_AddNumberToObject(cores, "crowding", crowding);
}

static void add_types(const struct skep_scenario *s, cJSON *root)
{
	cJSON *precision = cJSON_AddObjectToObject(root, "precision"),
	      *types = cJSON_AddObjectToObject(precision, "types");
	cJSON_AddBoolToObject(precision, "said", s->compute.type_said);
	cJSON_AddBoolToObject(precision, "mixed", s->model.halves);
	for (uint32_t i = 0; i < s->topology.gpus; i++)
		if (!cJSON_HasObjectItem(types, s->topology.gpu[i].name))
			cJSON_AddStringToObject(
				types, s->topology.gpu[i].name, skep_type_names[s->topology.gpu[i].type]);
}

static void add_draws(const struct skep_scenario *s, cJSON *root)
{
	cJSON *draws = skep_json_add_object(root, "uncertainty", s->draw != NULL);
	for (uint32_t i = 0; i < s->topology.gpus && s->draw; i++) {
		if (!first_of_name(&s->topology, i))
			continue;
		cJSON *gpu = cJSON_AddObjectToObject(draws, s->topology.gpu[i].name);
		for (int origin = 0; origin < SKEP_TIME_ORIGINS; origin++) {
			cJSON *object = cJSON_AddObjectToObject(gpu, skep_time_origin_names[origin]);
			cJSON_AddNumberToObject(object, "deviation", s->draw[i].deviation[origin]);
			cJSON_AddNumberToObject(object, "factor", s->draw[i].factor[origin]);
		}
	}
}

void skep_compute_add_json(const struct skep_scenario *s, cJSON *root)
{
	add_types(s, root);
	add_draws(s, root);
	cJSON_AddNumberToObject(root, "compute_scale", s->compute_scale);
	add_cores(s, root);
	if (!s->predictor)
		return;
	cJSON *compute = cJSON_AddObjectToObject(root, "compute");
	cJSON_AddStringToObject(compute, "predictor", skep_predictor_names[s->compute.predictor]);
	cJSON_AddStringToObject(compute, "type", skep_type_names[s->topology.gpu[0].type]);
	cJSON *gpus = cJSON_AddArrayToObject(compute, "gpus"), *times = cJSON_AddArrayToObject(compute, "times");
	for (uint32_t i = 0; i < s->topology.gpus; i++) {
		cJSON *gpu = skep_json_add_row(gpus);
		cJSON_AddStringToObject(gpu, "gpu", s->topology.gpu[i].name);
		add_law(gpu, "product_law", &s->predictor[i].product);
		add_law(gpu, "layer_law", &s->predictor[i].layer[0]);
		add_law(gpu, "layer_backward_law", &s->predictor[i].layer[1]);
	}
	for (uint32_t stage = 0; stage < skep_plan_vstages(&s->plan); stage++)
		for (uint32_t gpu = 0; gpu < s->topology.gpus; gpu++)
			add_vstage(s, gpu, stage, times);
}
