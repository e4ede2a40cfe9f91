/* SPDX-License-Identifier: Apache-2.0
 *
 * recut.c - see recut.h. Keeps true: the first scenario is never written to.
 */
#include "scenarios/recut.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scenarios/plan.h"

void skep_recut_of(const struct skep_scenario *s, uint32_t *ret_layers)
{
	uint32_t slices = skep_plan_slices(&s->plan), first;
	for (uint32_t slice = 0; slice < slices; slice++)
		skep_model_cut(&s->model, slices, slice, &first, &ret_layers[slice]);
}

bool skep_recut_make(const struct skep_scenario *s, struct skep_scenario *ret)
{
	uint32_t slices = skep_plan_slices(&s->plan);
	size_t pairs = (size_t)slices * s->topology.gpus;
	*ret = *s;
	ret->model.cut = calloc(slices, sizeof *ret->model.cut);
	ret->stage = calloc(s->plan.stages, sizeof *ret->stage);
	ret->cost = calloc(slices, sizeof *ret->cost);
	ret->slice_bytes = calloc(slices, sizeof *ret->slice_bytes);
	ret->op_time = calloc(pairs, sizeof *ret->op_time);
	ret->timing = s->predictor ? calloc(pairs, sizeof *ret->timing) : NULL;
	if (!ret->model.cut || !ret->stage || !ret->cost || !ret->slice_bytes || !ret->op_time ||
		(s->predictor && !ret->timing)) {
		skep_recut_finish(ret);
		return false;
	}
	ret->plan.stage = ret->stage;
	ret->plan.slice_bytes = s->plan.slice_bytes ? ret->slice_bytes : NULL;
	skep_recut_of(s, ret->model.cut);
	ret->model.cuts = slices;
	skep_plan_cut(ret, INFINITY);
	return true;
}

void skep_recut_finish(struct skep_scenario *s)
{
	free(s->model.cut);
	free(s->stage);
	free(s->cost);
	free(s->slice_bytes);
	free(s->op_time);
	free(s->timing);
	*s = (struct skep_scenario){.target_loss = NAN};
}

void skep_recut_set(struct skep_scenario *s, const uint32_t *layers)
{
	uint64_t sum = 0;
	for (uint32_t slice = 0; slice < s->model.cuts; slice++) {
		assert(layers[slice] > 0);
		sum += layers[slice];
	}
	assert(sum == s->model.layers);
	memcpy(s->model.cut, layers, s->model.cuts * sizeof *layers);
	skep_plan_cut(s, INFINITY);
}

/* `count` layers for slices [from, to), all in the last but for one each. */
static void share_out(uint32_t *cut, uint32_t from, uint32_t to, uint32_t count)
{
	assert(count >= to - from && (to > from || count == 0));
	for (uint32_t i = from; i < to; i++)
		cut[i] = i + 1 < to ? 1 : count - (to - from - 1);
}

void skep_recut_set_slice(struct skep_scenario *s, uint32_t slice, uint32_t first, uint32_t end)
{
	assert(skep_plan_laps(&s->plan) == 1 && first < end);
	share_out(s->model.cut, 0, slice, first);
	s->model.cut[slice] = end - first;
	share_out(s->model.cut, slice + 1, s->model.cuts, s->model.layers - end);
	skep_plan_cut_slice(s, slice);
}

char *skep_recut_assignment(const uint32_t *layers, uint32_t slices)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);
	if (!out)
		return NULL;
	fprintf(out, "model.cut=[");
	for (uint32_t slice = 0; slice < slices; slice++)
		fprintf(out, "%s%" PRIu32, slice > 0 ? ", " : "", layers[slice]);
	fprintf(out, "]");
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}
