/* SPDX-License-Identifier: Apache-2.0
 *
 * describe_experts.c - see describe_groups.h.
 */
#include "scenarios/describe/describe_groups.h"

#include <inttypes.h>

#include "models/layers/mixture.h"

/* Of all parameters, those that the arithmetic of one token reads: not the other experts'. */
static uint64_t met_by_a_token(const struct skep_model *m, uint64_t *ret_all)
{
	struct skep_cost cost;
	skep_model_cost(m, 1, 0, &cost);
	*ret_all = cost.parameters;
	uint64_t expert = (uint64_t)3 * m->hidden * m->feed_forward, groups = m->layers - 2;
	return cost.parameters - groups * (m->experts.count - m->experts.per_token) * expert;
}

void skep_experts_print(const struct skep_scenario *s, FILE *out)
{
	const struct skep_experts *e = &s->model.experts;
	if (e->count == 0)
		return;
	uint64_t all, met = met_by_a_token(&s->model, &all);
	size_t tokens = (size_t)s->samples * s->model.sequence;
	fprintf(out,
		"  experts   %" PRIu32 " in each block, %" PRIu32 " for each token%s: it meets %" PRIu64 " of %" PRIu64
		" parameters, %.3g %%\n",
		e->count, e->per_token, e->renormalized ? ", whose weights sum to 1" : "", met, all,
		100 * (double)met / (double)all);
	if (e->capacity_factor > 0)
		fprintf(out,
			"            each takes at most %zu of the %zu tokens of a microbatch, others are dropped\n",
			skep_mixture_capacity(e, tokens), tokens);
	if (e->aux_loss > 0 || e->z_loss > 0)
		fprintf(out, "            losses of each router: balance %g, z %g\n", e->aux_loss, e->z_loss);
}

void skep_experts_add_json(const struct skep_scenario *s, cJSON *root)
{
	const struct skep_experts *e = &s->model.experts;
	cJSON *experts = skep_json_add_object(root, "experts", e->count > 0);
	if (experts == NULL)
		return;
	uint64_t all, met = met_by_a_token(&s->model, &all);
	cJSON_AddNumberToObject(experts, "count", e->count);
	cJSON_AddNumberToObject(experts, "per_token", e->per_token);
	cJSON_AddNumberToObject(experts, "parameters_per_token", (double)met);
	cJSON_AddNumberToObject(
		experts, "capacity", (double)skep_mixture_capacity(e, (size_t)s->samples * s->model.sequence));
}
