/* SPDX-License-Identifier: Apache-2.0
 *
 * runs.c - see runs.h.
 */
#include "models/tensor/runs.h"

#include <assert.h>
#include <string.h>

struct visit {
	const struct skep_model *model;
	void (*take)(void *context, const struct skep_run *run);
	void *context;
};

static void visit_columns(const struct visit *visit, const struct skep_tensor *whole, const struct skep_tensor *own)
{
	struct skep_run run = {.tensor = whole, .own = own->offset};
	for (size_t row = 0; row < own->rows; row++) {
		size_t begin = row * whole->columns;
		for (uint32_t g = 0; g < SKEP_TENSOR_GROUPS_MAX && whole->group[g] > 0; g++) {
			run.at = begin + skep_model_first_of(visit->model, whole->group[g]);
			run.count = skep_model_own_of(visit->model, whole->group[g]);
			visit->take(visit->context, &run);
			run.own += run.count;
			begin += whole->group[g];
		}
	}
	assert(run.own == own->offset + (size_t)own->rows * own->columns);
}

void skep_layer_runs(
	const struct skep_layer *layer, void (*take)(void *context, const struct skep_run *run), void *context)
{
	const struct visit visit = {layer->model, take, context};
	const struct skep_model model = skep_model_whole(layer->model);
	struct skep_tensor own[SKEP_TENSORS_MAX], whole[SKEP_TENSORS_MAX];
	struct skep_layer of = *layer;
	of.model = &model;
	const bool cut = skep_model_ranks(layer->model) > 1;
	const uint32_t tensors = layer->type->tensors(layer, own), same = layer->type->tensors(&of, whole);
	assert(tensors == same);
	(void)same;
	for (uint32_t t = 0; t < tensors; t++) {
		struct skep_run run = {
			.tensor = &whole[t], .own = own[t].offset, .count = (size_t)own[t].rows * own[t].columns};
		if (cut && whole[t].cut == SKEP_TENSOR_BY_COLUMNS) {
			visit_columns(&visit, &whole[t], &own[t]);
			continue;
		}
		if (cut && whole[t].cut == SKEP_TENSOR_BY_ROWS) {
			struct skep_own_rows rows = skep_model_own_rows(layer->model, whole[t].rows);
			run.at = (size_t)rows.first * whole[t].columns;
			run.count = (size_t)rows.count * whole[t].columns;
		}
		take(context, &run);
	}
}

struct copy {
	const skep_real *shard;
	skep_real *ret_whole;
};

static void put_run(void *context, const struct skep_run *run)
{
	const struct copy *copy = context;
	memcpy(copy->ret_whole + run->tensor->offset + run->at, copy->shard + run->own,
		run->count * sizeof *copy->shard);
}

void skep_layer_put_shard(const struct skep_layer *layer, const skep_real *shard, skep_real *ret_whole)
{
	skep_layer_runs(layer, put_run, &(struct copy){shard, ret_whole});
}
