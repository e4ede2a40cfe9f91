/* SPDX-License-Identifier: Apache-2.0
 *
 * gpu_predictor.c - chooses tables and laws for a GPU and a type, and asks them in the order of trust: measured, between
 * measured, fitted, assumed.
 *
 * Laws of ANALYTIC and REGRESSION are fitted to whole layers where there is such a table, since it holds all that training
 * adds to its products. TABLE fits products wherever they were measured, for they tell about other models, and layers for the
 * model that has such. Only rows of one GPU (tensor-parallel degree 1) are fitted to, and no embedding, which has no FLOPs.
 */
#include "topologies/gpu/gpu_predictor.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const skep_predictor_names[] = {"roofline", "table", "analytic", "regression", NULL};
const char *const skep_time_origin_names[] = {"measured", "interpolated", "fitted", "assumed", "memory", NULL};

/* Which type's table may stand in for another's: tensors of 4 bytes as TF32, fp16 as bf16. The type itself comes first. */
enum { STAND_INS_MAX = 2 };
static uint32_t stand_ins_of(enum skep_type type, enum skep_type ret[STAND_INS_MAX])
{
	uint32_t count = 0;
	ret[count++] = type;
	if (type == SKEP_TYPE_FP32)
		ret[count++] = SKEP_TYPE_TF32;
	if (type == SKEP_TYPE_FP16)
		ret[count++] = SKEP_TYPE_BF16;
	return count;
}

/* ---- fitting ----------------------------------------------------------------------------------------------------- */

static struct skep_fit_point point_of(const struct skep_table_row *row)
{
	return (struct skep_fit_point){.product = {row->axis[0], row->axis[1], row->axis[2], row->axis[3]},
		.flop = row->flop,
		.bytes = row->bytes,
		.seconds = row->seconds[0]};
}

/* What a backward pass costs by the books: twice the forward pass, in FLOPs and bytes. */
static struct skep_fit_point turned_back(const struct skep_table_row *row)
{
	struct skep_fit_point point = point_of(row);
	point.flop *= 2;
	point.bytes *= 2;
	point.seconds = row->seconds[SKEP_COLUMN_BACKWARD];
	return point;
}

static bool counts(const struct skep_table_row *row)
{
	return row->axis[1] <= 1 && row->flop > 0 && row->seconds[SKEP_COLUMN_BACKWARD] > 0;
}

/* The points of a table: of products all rows; of layers forward passes, backward passes, or both. */
static uint32_t take_points(const struct skep_gpu_table *t, bool forward, bool backward, struct skep_fit_point *ret)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < t->rows; i++) {
		const struct skep_table_row *row = &t->row[i];
		bool fits = t->kind == SKEP_TABLE_PRODUCTS || counts(row);
		if (fits && forward)
			ret[count++] = point_of(row);
		if (fits && backward)
			ret[count++] = turned_back(row);
	}
	return count;
}

static bool fit_table(const struct skep_predictor *p, enum skep_timing_model law, const struct skep_gpu_table *t,
	bool forward, bool backward, struct skep_fit *ret)
{
	struct skep_fit_point *point = calloc((size_t)2 * t->rows, sizeof *point);
	if (!point)
		return false;
	uint32_t points = take_points(t, forward, backward, point);
	bool made = skep_fit_make(law, p->gpu->peak[t->type], p->gpu->memory_Bps, point, points, ret);
	free(point);
	return made;
}

static void fit_layers(struct skep_predictor *p)
{
	if (p->kind == SKEP_PREDICTOR_ANALYTIC) {
		fit_table(p, SKEP_FIT_ANALYTIC, p->layers, true, true, &p->layer[0]);
		p->layer[1] = p->layer[0];
		return;
	}
	fit_table(p, SKEP_FIT_REGRESSION, p->layers, true, false, &p->layer[0]);
	fit_table(p, SKEP_FIT_REGRESSION, p->layers, false, true, &p->layer[1]);
	if (p->layer[1].points == 0)
		p->layer[0].points = 0;
}

/* Lets the table of products answer with departures from the law. */
static void expect(struct skep_predictor *p)
{
	for (uint32_t i = 0; i < p->products->rows && p->product.points > 0; i++) {
		struct skep_fit_point point = point_of(&p->products->row[i]);
		p->products->row[i].expected_s = skep_fit_seconds(&p->product, &point);
	}
}

static void fit_products(struct skep_predictor *p)
{
	static const enum skep_timing_model law[] = {[SKEP_PREDICTOR_TABLE] = SKEP_FIT_SHAPE,
		[SKEP_PREDICTOR_ANALYTIC] = SKEP_FIT_ANALYTIC,
		[SKEP_PREDICTOR_REGRESSION] = SKEP_FIT_REGRESSION};
	fit_table(p, law[p->kind], p->products, true, false, &p->product);
	if (p->kind == SKEP_PREDICTOR_TABLE)
		expect(p);
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static void fail_type(const struct skep_gpu *gpu, enum skep_type type, struct skep_diag *reterr)
{
	char known[64] = "";
	for (int i = 0; i < SKEP_TYPES; i++)
		if (skep_gpu_has_type(gpu, (enum skep_type)i)) {
			size_t used = strlen(known);
			snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", skep_type_names[i]);
		}
	skep_diag_set(reterr, gpu->path, 0, 0, NULL, "%s is no type of %s, which has %s", skep_type_names[type],
		gpu->name, known);
}

bool skep_predictor_make(struct skep_gpu *gpu, enum skep_predictor_kind kind, enum skep_type type,
	struct skep_predictor *ret, struct skep_diag *reterr)
{
	enum skep_type candidate[STAND_INS_MAX];
	uint32_t candidates = stand_ins_of(type, candidate);
	assert(kind != SKEP_PREDICTOR_ROOFLINE);
	*ret = (struct skep_predictor){.kind = kind, .type = type, .gpu = gpu};
	bool has = false;
	for (uint32_t i = 0; i < candidates && !reterr->set; i++) {
		has = has || skep_gpu_has_type(gpu, candidate[i]);
		if (!ret->products)
			ret->products = skep_gpu_load(gpu, SKEP_TABLE_PRODUCTS, candidate[i], reterr);
		if (!ret->layers)
			ret->layers = skep_gpu_load(gpu, SKEP_TABLE_LAYERS, candidate[i], reterr);
	}
	if (kind == SKEP_PREDICTOR_TABLE && !reterr->set)
		ret->stages = skep_gpu_load_stages(gpu, reterr);
	if (!has)
		fail_type(gpu, type, reterr);
	if (reterr->set)
		return false;
	if (ret->layers)
		fit_layers(ret);
	if (ret->products)
		fit_products(ret);
	return true;
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

bool skep_predictor_layer(const struct skep_predictor *p, const char *model, enum skep_layer_kind kind, uint32_t degree,
	uint32_t microbatch, enum skep_gpu_column column, double *ret_seconds, enum skep_time_origin *ret_origin)
{
	if (p->kind != SKEP_PREDICTOR_TABLE || !p->layers || strcmp(p->layers->model, model) != 0)
		return false;
	enum skep_answer answer = skep_gpu_table_layer(p->layers, kind, degree, microbatch, column, ret_seconds);
	*ret_origin = answer == SKEP_ANSWER_EXACT ? SKEP_TIME_MEASURED : SKEP_TIME_INTERPOLATED;
	return answer != SKEP_ANSWER_NONE;
}

bool skep_predictor_by_layer(const struct skep_predictor *p, const char *model)
{
	return p->layer[0].points > 0 &&
	       (p->kind != SKEP_PREDICTOR_TABLE || p->product.points == 0 || strcmp(p->layers->model, model) == 0);
}

double skep_predictor_model_s(const struct skep_predictor *p, enum skep_gpu_column column, double flop, double bytes,
	enum skep_time_origin *ret_origin)
{
	bool back = column == SKEP_COLUMN_BACKWARD;
	struct skep_fit_point point = {.flop = back ? 2 * flop : flop, .bytes = back ? 2 * bytes : bytes};
	assert(p->layer[0].points > 0 && column != SKEP_COLUMN_UPDATE);
	*ret_origin = SKEP_TIME_FITTED;
	return skep_fit_seconds(&p->layer[back], &point);
}

/* Without a table of its type: the published roofline at the efficiency that the profile states. */
static double assumed_s(const struct skep_predictor *p, const struct skep_fit_point *point)
{
	enum skep_type candidate[STAND_INS_MAX];
	uint32_t candidates = stand_ins_of(p->type, candidate);
	double peak = 0;
	for (uint32_t i = 0; i < candidates && peak <= 0; i++)
		peak = p->gpu->peak[candidate[i]];
	return fmax(point->flop / (peak * p->gpu->efficiency), point->bytes / p->gpu->memory_Bps);
}

double skep_predictor_product_s(
	const struct skep_predictor *p, const struct skep_product *product, enum skep_time_origin *ret_origin)
{
	double ratio;
	struct skep_fit_point point = {.product = *product,
		.flop = skep_product_flop(product),
		.bytes = skep_product_bytes(product, p->products ? p->products->type : p->type)};
	*ret_origin = p->product.points > 0 ? SKEP_TIME_FITTED : SKEP_TIME_ASSUMED;
	double law_s = p->product.points > 0 ? skep_fit_seconds(&p->product, &point) : assumed_s(p, &point);
	if (p->kind != SKEP_PREDICTOR_TABLE || !p->products)
		return law_s;
	enum skep_answer answer = skep_gpu_table_product(p->products, product, &ratio);
	if (answer == SKEP_ANSWER_NONE)
		return law_s;
	*ret_origin = answer == SKEP_ANSWER_EXACT ? SKEP_TIME_MEASURED : SKEP_TIME_INTERPOLATED;
	return p->product.points > 0 ? ratio * law_s : ratio;
}
