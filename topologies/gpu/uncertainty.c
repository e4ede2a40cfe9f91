/* SPDX-License-Identifier: Apache-2.0
 *
 * uncertainty.c - see uncertainty.h. Two halves of a table are two tables of one profile each, so that a predictor is made of
 * them as of any other.
 */
#include "topologies/gpu/uncertainty.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/random.h"
#include "topologies/churn/deviate.h"

/* ---- what was not seen ------------------------------------------------------------------------------------------- */

/* Every second row, from row `first`; no rows: no memory. */
static struct skep_gpu_table half_of(const struct skep_gpu_table *table, uint32_t first)
{
	struct skep_gpu_table ret = *table;
	ret.rows = 0;
	ret.row = calloc(table->rows, sizeof *ret.row);
	for (uint32_t i = first; i < table->rows && ret.row; i += 2) {
		ret.row[ret.rows] = table->row[i];
		ret.row[ret.rows++].expected_s = 1;
	}
	return ret;
}

static double product_s(
	const struct skep_predictor *p, const struct skep_table_row *row, enum skep_time_origin *ret_origin)
{
	struct skep_product product = {row->axis[0], row->axis[1], row->axis[2], row->axis[3]};
	return skep_predictor_product_s(p, &product, ret_origin);
}

/* NAN: not a row that can be asked for: of several GPUs, an embedding, or beyond a law that could not be made. */
static double layer_s(const struct skep_predictor *p, const struct skep_table_row *row, enum skep_gpu_column column,
	enum skep_time_origin *ret_origin)
{
	double seconds;
	if (row->axis[1] > 1 || !(row->flop > 0) || !(row->seconds[SKEP_COLUMN_BACKWARD] > 0))
		return NAN;
	if (skep_predictor_layer(p, p->layers->model, (enum skep_layer_kind)row->axis[0], (uint32_t)row->axis[1],
		    (uint32_t)row->axis[2], column, &seconds, ret_origin))
		return seconds;
	return p->layer[0].points > 0 ? skep_predictor_model_s(p, column, row->flop, row->bytes, ret_origin) : NAN;
}

static uint32_t ask(const struct skep_predictor *learner, const struct skep_gpu_table *unseen, struct skep_unseen *ret)
{
	const bool layers = unseen->kind == SKEP_TABLE_LAYERS;
	uint32_t count = 0;
	for (uint32_t i = 0; i < unseen->rows; i++)
		for (int c = SKEP_COLUMN_FORWARD; c <= (layers ? SKEP_COLUMN_BACKWARD : SKEP_COLUMN_FORWARD); c++) {
			const struct skep_table_row *row = &unseen->row[i];
			enum skep_time_origin origin;
			double seconds = layers ? layer_s(learner, row, (enum skep_gpu_column)c, &origin)
			                        : product_s(learner, row, &origin);
			if (isfinite(seconds) && row->seconds[c] > 0)
				ret[count++] = (struct skep_unseen){log(seconds / row->seconds[c]), origin};
		}
	return count;
}

static uint32_t ask_half(const struct skep_predictor *p, const struct skep_gpu_table *table, uint32_t first,
	struct skep_unseen *ret, struct skep_diag *reterr)
{
	struct skep_gpu_table seen = half_of(table, first), unseen = half_of(table, 1 - first);
	struct skep_gpu gpu = *p->gpu;
	struct skep_predictor learner;
	uint32_t count = 0;
	gpu.table = &seen;
	gpu.tables = 1;
	gpu.stages = (struct skep_stage_table){0};
	if (!seen.row || !unseen.row)
		skep_fail(reterr, "not enough memory for half of the table %.200s", table->path);
	else if (seen.rows > 0 && skep_predictor_make(&gpu, p->kind, table->type, &learner, reterr))
		count = ask(&learner, &unseen, ret);
	skep_gpu_table_finish(&seen);
	skep_gpu_table_finish(&unseen);
	return count;
}

uint32_t skep_unseen_errors(const struct skep_predictor *p, const struct skep_gpu_table *table, struct skep_unseen *ret,
	struct skep_diag *reterr)
{
	assert(table->rows > 0 && table->kind != SKEP_TABLE_STAGES);
	uint32_t count = ask_half(p, table, 0, ret, reterr);
	return count + (reterr->set ? 0 : ask_half(p, table, 1, ret + count, reterr));
}

/* ---- the deviation of each origin -------------------------------------------------------------------------------- */

/* NAN: too few of that origin. `size` holds for `scratch` as for `unseen`. */
static double deviation_of(
	const struct skep_unseen *unseen, uint32_t count, enum skep_time_origin origin, double *scratch)
{
	uint32_t found = 0;
	for (uint32_t i = 0; i < count; i++)
		if (unseen[i].origin == origin)
			scratch[found++] = fabs(unseen[i].log_error);
	return found < SKEP_UNSEEN_LEAST ? NAN : skep_fit_quantile(scratch, found, 0.9) / SKEP_NORMAL_P90;
}

/* Of a law on the points that it was fitted to; NAN: there is none. */
static double deviation_seen(const struct skep_predictor *p, bool by_layer)
{
	double error = by_layer ? fmax(p->layer[0].p90_error, p->layer[1].p90_error) : p->product.p90_error;
	bool fitted = by_layer ? p->layer[0].points > 0 : p->product.points > 0;
	return fitted ? log1p(error) / SKEP_NORMAL_P90 : NAN;
}

bool skep_uncertainty_find(const struct skep_gpu *gpu, const struct skep_predictor *p, const char *model,
	double ret[SKEP_TIME_ORIGINS], struct skep_diag *reterr)
{
	for (int origin = 0; origin < SKEP_TIME_ORIGINS; origin++)
		ret[origin] = origin == SKEP_TIME_MEASURED ? 0 : gpu->uncertainty;
	const bool by_layer = p && skep_predictor_by_layer(p, model);
	const struct skep_gpu_table *table = !p ? NULL : by_layer ? p->layers : p->products;
	if (!table)
		return true;
	struct skep_unseen *unseen = calloc((size_t)2 * table->rows, sizeof *unseen);
	double *scratch = calloc((size_t)2 * table->rows, sizeof *scratch);
	if (!unseen || !scratch) {
		skep_fail(reterr, "not enough memory for the rows of %.200s", table->path);
	} else {
		uint32_t count = skep_unseen_errors(p, table, unseen, reterr);
		double fitted = deviation_of(unseen, count, SKEP_TIME_FITTED, scratch),
		       between = deviation_of(unseen, count, SKEP_TIME_INTERPOLATED, scratch);
		fitted = isnan(fitted) ? deviation_seen(p, by_layer) : fitted;
		ret[SKEP_TIME_FITTED] = isnan(fitted) ? gpu->uncertainty : fitted;
		ret[SKEP_TIME_INTERPOLATED] = isnan(between) ? ret[SKEP_TIME_FITTED] : between;
	}
	free(unseen);
	free(scratch);
	return !reterr->set;
}

/* ---- a draw ------------------------------------------------------------------------------------------------------ */

void skep_uncertainty_draw(const struct skep_gpu *gpu, const double deviation[SKEP_TIME_ORIGINS], uint64_t seed,
	double ret_factor[SKEP_TIME_ORIGINS])
{
	uint64_t name = skep_mix(seed ^ 0x756e6365727461u);
	for (const char *c = gpu->name; *c != '\0'; c++)
		name = skep_mix(name ^ (uint8_t)*c);
	for (int origin = 0; origin < SKEP_TIME_ORIGINS; origin++) {
		uint64_t state = skep_mix(name ^ (uint64_t)origin);
		double factor = skep_deviate_exp(deviation[origin] * skep_deviate_normal(&state));
		ret_factor[origin] = round(1e4 * factor) / 1e4;
	}
}
