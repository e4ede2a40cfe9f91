/* SPDX-License-Identifier: Apache-2.0
 *
 * recut.c - see recut.h. Keeps true: the first scenario is never written to.
 */
#include "scenarios/plan/recut.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scenarios/plan/plan.h"

void skep_recut_of(const struct skep_scenario *s, uint32_t *ret_layers)
{
	uint32_t vstages = skep_plan_vstages(&s->plan), first;
	for (uint32_t vstage = 0; vstage < vstages; vstage++)
		skep_model_cut(&s->model, vstages, vstage, &first, &ret_layers[vstage]);
}

bool skep_recut_make(const struct skep_scenario *s, struct skep_scenario *ret)
{
	uint32_t vstages = skep_plan_vstages(&s->plan);
	size_t pairs = (size_t)vstages * s->topology.gpus;
	*ret = *s;
	ret->model.cut = calloc(vstages, sizeof *ret->model.cut);
	ret->stage = calloc(s->plan.stages, sizeof *ret->stage);
	ret->cost = calloc(vstages, sizeof *ret->cost);
	ret->vstage_bytes = calloc(vstages, sizeof *ret->vstage_bytes);
	ret->op_time = calloc(pairs, sizeof *ret->op_time);
	ret->timing = s->predictor ? calloc(pairs, sizeof *ret->timing) : NULL;
	if (!ret->model.cut || !ret->stage || !ret->cost || !ret->vstage_bytes || !ret->op_time ||
		(s->predictor && !ret->timing)) {
		skep_recut_finish(ret);
		return false;
	}
	ret->plan.stage = ret->stage;
	ret->plan.vstage_bytes = s->plan.vstage_bytes ? ret->vstage_bytes : NULL;
	skep_recut_of(s, ret->model.cut);
	ret->model.cuts = vstages;
	skep_plan_cut(ret, INFINITY);
	return true;
}

void skep_recut_finish(struct skep_scenario *s)
{
	free(s->model.cut);
	free(s->stage);
	free(s->cost);
	free(s->vstage_bytes);
	free(s->op_time);
	free(s->timing);
	*s = (struct skep_scenario){.target_loss = NAN};
}

void skep_recut_set(struct skep_scenario *s, const uint32_t *layers)
{
	uint64_t sum = 0;
	for (uint32_t vstage = 0; vstage < s->model.cuts; vstage++) {
		assert(layers[vstage] > 0);
		sum += layers[vstage];
	}
	assert(sum == s->model.layers);
	memcpy(s->model.cut, layers, s->model.cuts * sizeof *layers);
	skep_plan_cut(s, INFINITY);
}

/* `count` layers for virtual stages [from, to), all in the last but for one each. */
static void share_out(uint32_t *cut, uint32_t from, uint32_t to, uint32_t count)
{
	assert(count >= to - from && (to > from || count == 0));
	for (uint32_t i = from; i < to; i++)
		cut[i] = i + 1 < to ? 1 : count - (to - from - 1);
}

void skep_recut_set_vstage(struct skep_scenario *s, uint32_t vstage, uint32_t first, uint32_t end)
{
	assert(skep_plan_model_chunks(&s->plan) == 1 && first < end);
	share_out(s->model.cut, 0, vstage, first);
	s->model.cut[vstage] = end - first;
	share_out(s->model.cut, vstage + 1, s->model.cuts, s->model.layers - end);
	skep_plan_cut_vstage(s, vstage);
}

char *skep_recut_assignment(const uint32_t *layers, uint32_t vstages)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);
	if (!out)
		return NULL;
	fprintf(out, "model.cut=[");
	for (uint32_t vstage = 0; vstage < vstages; vstage++)
		fprintf(out, "%s%" PRIu32, vstage > 0 ? ", " : "", layers[vstage]);
	fprintf(out, "]");
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}
