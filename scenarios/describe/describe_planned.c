/* SPDX-License-Identifier: Apache-2.0
 *
 * describe_planned.c - see describe_groups.h: what `skep plan` is asked to choose.
 */
#include "scenarios/describe/describe_groups.h"

#include "scenarios/read/planned.h"

void skep_planned_print(const struct skep_scenario *s, FILE *out)
{
	if (!s->planned)
		return;
	fprintf(out, "  plan      for %s", skep_aim_name(s->planned->dtfm ? SKEP_AIMS : s->planned->aim));
	if (s->planned->seeds > 1)
		fprintf(out, ", the mean over %u seeds", s->planned->seeds);
	if (!s->planned->extrapolate)
		fprintf(out, ", where the law was fitted");
	if (s->planned->method != SKEP_PLANNED_SEARCH)
		fprintf(out, ", by %s", skep_planned_method_name(s->planned->method));
	fprintf(out, "; %s\n", s->planned->free.keys > 0 ? "free are" : "who serves which stage is free alone");
	if (s->planned->cuts)
		fprintf(out, "            model.cut: found, where that is better than as it is\n");
	for (uint32_t i = 0; i < s->planned->free.keys; i++) {
		const struct skep_vary_key *key = &s->planned->free.key[i];
		fprintf(out, "            %s:", key->key);
		for (uint32_t v = 0; v < key->values; v++)
			fprintf(out, "%s %s", v > 0 ? "," : "", key->value[v]);
		fprintf(out, "\n");
	}
}

void skep_planned_add_json(const struct skep_scenario *s, cJSON *root)
{
	cJSON *plan = skep_json_add_object(root, "plan", s->planned != NULL), *search;
	if (plan == NULL)
		return;
	cJSON_AddStringToObject(plan, "objective", skep_aim_name(s->planned->dtfm ? SKEP_AIMS : s->planned->aim));
	cJSON_AddStringToObject(plan, "method", skep_planned_method_name(s->planned->method));
	cJSON_AddNumberToObject(plan, "seeds", s->planned->seeds);
	cJSON_AddBoolToObject(plan, "extrapolate", s->planned->extrapolate);
	cJSON_AddBoolToObject(plan, "auto", s->planned->automatic);
	cJSON_AddBoolToObject(plan, "cuts", s->planned->cuts);
	search = cJSON_AddObjectToObject(plan, "search");
	for (uint32_t i = 0; i < s->planned->free.keys; i++) {
		const struct skep_vary_key *key = &s->planned->free.key[i];
		cJSON *list = cJSON_AddArrayToObject(search, key->key);
		for (uint32_t v = 0; v < key->values; v++)
			cJSON_AddItemToArray(list, cJSON_CreateString(key->value[v]));
	}
}
