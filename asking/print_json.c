/* SPDX-License-Identifier: Apache-2.0
 *
 * print_json.c - an answer as one JSON object.
 */
#include <math.h>

#include "asking/answer.h"
#include "base/json.h"
#include "core/names.h"

static void add_interval(cJSON *to, const char *key, const struct skep_interval *r)
{
	cJSON *o = cJSON_AddObjectToObject(to, key);
	skep_json_add_number(o, "mean", r->count > 0 ? r->mean : NAN);
	skep_json_add_number(o, "low", r->low);
	skep_json_add_number(o, "high", r->high);
}

static void add_figures(cJSON *o, const char *name, const struct skep_ask_figures *f)
{
	skep_json_add_text(o, "name", name);
	cJSON_AddBoolToObject(o, "possible", f->ok);
	skep_json_add_text(o, "why", f->ok ? "" : f->why);
	skep_json_add_number(o, "time_s", f->ok ? f->time_s : NAN);
	skep_json_add_number(o, "cost_usd", f->ok ? skep_ask_usd(f) : NAN);
	skep_json_add_number(o, "egress_usd", f->ok ? f->usd_egress : NAN);
	skep_json_add_number(o, "tokens", f->ok ? f->tokens : NAN);
	skep_json_add_number(o, "utilisation", f->ok ? f->utilisation : NAN);
	skep_json_add_count(o, "seeds_without_end", f->lost);
	cJSON_AddBoolToObject(o, "extrapolated", f->extrapolated);
}

/* Those that can be by their rank, then the others. Returns the next row, or NULL behind the last one: *at begins with 0. */
static cJSON *add_next(cJSON *list, const struct skep_ask_tried *tried, uint32_t count, const uint32_t *rank,
	uint32_t ranked, uint32_t *at, uint32_t *ret_which)
{
	for (; *at < ranked + count; (*at)++) {
		uint32_t which = *at < ranked ? rank[*at] : *at - ranked;
		if (*at >= ranked && (which == 0 || tried[which].figures.ok))
			continue;
		cJSON *o = skep_json_add_row(list);
		add_figures(o, tried[which].variation.label, &tried[which].figures);
		skep_json_add_number(o, "times_faster",
			tried[which].figures.ok ? tried[0].figures.time_s / tried[which].figures.time_s : NAN);
		*ret_which = which;
		(*at)++;
		return o;
	}
	return NULL;
}

/* `longer`: 0.1: 10 % longer than the choice. */
static void add_settings(const struct skep_ask_answer *a, cJSON *root, bool money)
{
	cJSON *list = cJSON_AddArrayToObject(root, "settings");
	uint32_t rank[SKEP_ASK_VARIATIONS_MAX], ranked = skep_ask_rank(a->other, a->others, money, rank);
	uint32_t at = 0, which;
	cJSON *o;
	while ((o = add_next(list, a->other, a->others, rank, ranked, &at, &which)) != NULL) {
		struct skep_interval longer = skep_ask_times(&a->other[which].figures, &a->other[0].figures, false);
		skep_json_add_count(o, "seeds", longer.count);
		longer.mean -= 1;
		longer.low -= 1;
		longer.high -= 1;
		add_interval(o, "longer", &longer);
	}
	cJSON_AddBoolToObject(root, "settings_cut_short", a->cut_short);
}

/* `gain` is of time, or for the least money of money: 0.1: 10 % faster, or cheaper. */
static void add_helps(const struct skep_ask_answer *a, cJSON *root)
{
	cJSON *list = cJSON_AddArrayToObject(root, "helps"), *o;
	uint32_t rank[SKEP_ASK_VARIATIONS_MAX], told, ranked = skep_ask_rank_helps(a, rank, &told), at = 0, which;
	while ((o = add_next(list, a->help, a->helps, rank, ranked, &at, &which)) != NULL) {
		struct skep_interval gain;
		bool known = skep_ask_gain(a, which, &gain);
		gain.mean -= 1;
		gain.low -= 1;
		gain.high -= 1;
		add_interval(o, "gain", &gain);
		cJSON_AddBoolToObject(o, "told_from_nothing", known);
	}
	skep_json_add_count(root, "help_seeds", a->help_seeds);
}

/* `slower` and `longer`: 0.2: 20 % more. */
static void add_uncertain(const struct skep_ask_answer *a, cJSON *root)
{
	cJSON *list = cJSON_AddArrayToObject(root, "uncertain_gpus");
	for (uint32_t i = 0; i < a->uncertain_gpus; i++) {
		cJSON *o = skep_json_add_row(list);
		skep_json_add_text(o, "gpu", a->uncertain[i].gpu);
		skep_json_add_number(o, "slower", expm1(a->uncertain[i].deviation));
		skep_json_add_number(o, "longer", a->uncertain[i].time - 1);
		skep_json_add_number(o, "dearer", a->uncertain[i].money - 1);
	}
	add_interval(root, "uncertain_time_s", &a->uncertain_time_s);
	add_interval(root, "uncertain_cost_usd", &a->uncertain_usd);
}

/* What the same question is answered with for the other aim; null: there is no price, or nothing was found. */
static void add_other_aim(const struct skep_ask_answer *a, cJSON *root)
{
	const struct skep_ask_other_aim *other = &a->other_aim;
	cJSON *o = skep_json_add_object(root, "other_aim", other->known);
	if (o == NULL)
		return;
	skep_json_add_text(o, "aim", a->question.request->objective == SKEP_ASK_MONEY ? "time" : "money");
	skep_json_add_text(o, "answer", other->method);
	skep_json_add_text(o, "machines", other->machines);
	add_interval(o, "time_s", &other->time_s);
	add_interval(o, "cost_usd", &other->usd);
	skep_json_add_count(o, "seeds", other->seeds);
	skep_json_add_count(o, "seeds_without_end", other->lost);
}

static void add_stages(const struct skep_ask_answer *a, cJSON *root)
{
	cJSON *list = cJSON_AddArrayToObject(root, "stages");
	char members[600];
	for (uint32_t i = 0; i < a->chosen.plan.stages; i++) {
		cJSON *o = skep_json_add_row(list);
		uint32_t first, layers;
		skep_model_cut(&a->chosen.model, skep_plan_vstages(&a->chosen.plan), i, &first, &layers);
		skep_ask_members(a, i, members, sizeof members);
		skep_json_add_count(o, "first_layer", first);
		skep_json_add_count(o, "layers", layers);
		skep_json_add_number(o, "memory_bytes", a->chosen.memory_bytes[i]);
		skep_json_add_text(o, "machines", members);
	}
	skep_ask_members(a, SKEP_ASK_NO_STAGE, members, sizeof members);
	skep_json_add_text(root, "left_out", members);
}

static void add_traffic(const struct skep_ask_answer *a, cJSON *root)
{
	cJSON *list = cJSON_AddArrayToObject(root, "traffic");
	const struct skep_ask_question *q = &a->question;
	for (uint32_t i = 0; i < q->sites; i++)
		for (uint32_t j = 0; j < q->sites; j++) {
			double bytes = a->figures.bytes[i][j];
			if (i == j || !(bytes > 0))
				continue;
			cJSON *o = skep_json_add_row(list);
			skep_json_add_text(o, "from", q->site[i].name);
			skep_json_add_text(o, "to", q->site[j].name);
			skep_json_add_number(o, "bytes", bytes);
			skep_json_add_number(o, "cost_usd", bytes * q->link[i][j].usd_per_byte);
		}
}

void skep_ask_print_json(const struct skep_ask_answer *a, FILE *out)
{
	cJSON *root = cJSON_CreateObject();
	const struct skep_ask_figures *f = &a->figures;
	bool money = a->question.request->objective == SKEP_ASK_MONEY;
	char method[400];
	skep_ask_method(&a->chosen, method, sizeof method);
	skep_json_add_text(root, "model", a->model.name);
	skep_json_add_number(root, "parameters", a->model.parameters);
	skep_json_add_number(root, "tokens_asked", a->job.tokens);
	skep_json_add_text(root, "answer", method);
	skep_json_add_text(root, "pipeline",
		a->chosen.plan.stages > 1 ? skep_pipeline_name((uint8_t)a->chosen.plan.pipeline) : "");
	skep_json_add_count(root, "every", f->every);
	skep_json_add_count(root, "microbatch", a->chosen.samples);
	add_interval(root, "time_s", &a->time_s);
	add_interval(root, "cost_usd", &a->usd);
	skep_json_add_number(root, "machines_usd", f->usd_machines);
	skep_json_add_number(root, "egress_usd", f->usd_egress);
	skep_json_add_count(root, "seeds", f->stretches);
	skep_json_add_count(root, "seeds_without_end", f->lost);
	skep_json_add_number(root, "target_loss", a->job.target_loss);
	skep_json_add_number(root, "steps", f->steps);
	skep_json_add_number(root, "tokens", f->tokens);
	cJSON_AddBoolToObject(root, "extrapolated", f->extrapolated);
	skep_json_add_number(root, "utilisation", f->utilisation);
	skep_json_add_number(root, "passes_part", f->passes_part);
	skep_json_add_number(root, "reductions_part", f->reduction_part);
	skep_json_add_text(root, "bottleneck", f->bound);
	add_stages(a, root);
	add_settings(a, root, money);
	add_other_aim(a, root);
	add_helps(a, root);
	add_uncertain(a, root);
	add_traffic(a, root);
	skep_json_add_number(root, "downloaded_bytes", f->state_bytes);
	cJSON *notes = cJSON_AddArrayToObject(root, "assumed");
	for (uint32_t i = 0; i < a->question.notes; i++)
		cJSON_AddItemToArray(notes, cJSON_CreateString(a->question.note[i]));
	skep_json_add_text(root, "scenario", a->files.scenario);
	skep_json_add_number(root, "wall_s", a->wall_s);
	skep_json_print(root, out);
}
